// Package fetch copies an input into a file of its own: standard input, or an https:// address, such as a presigned one
// of an object store. Other inputs are files already. The query of an address may be secret: no error shows it.
package fetch

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/limit"
)

// Remote reports whether an input is not a file and has to be fetched.
func Remote(in string) bool {
	return in == "-" || strings.HasPrefix(in, "https://") || strings.HasPrefix(in, "http://")
}

// Shown returns the name of an input for messages: an address without what may be secret in it.
func Shown(in string) string {
	if u, err := url.Parse(in); err == nil && Remote(in) && in != "-" {
		return u.Scheme + "://" + u.Host + u.EscapedPath()
	}
	return in
}

// Name is the file name of an input.
func Name(in string) string {
	u, err := url.Parse(in)
	switch {
	case in == "-":
		return "stdin"
	case err != nil || !Remote(in):
		return filepath.Base(in)
	case path.Base(u.Path) == "." || path.Base(u.Path) == "/":
		return "download"
	}
	return path.Base(u.Path)
}

// File returns the path of a file with the content of an input; remove deletes it if it was fetched. stdin is the input
// for -.
func File(ctx context.Context, in string, stdin io.Reader) (name string, remove func(), err error) {
	if !Remote(in) {
		return in, func() {}, nil
	}
	body := io.NopCloser(stdin)
	if in != "-" {
		if body, err = get(ctx, in); err != nil {
			return "", nil, err
		}
	}
	defer body.Close()
	dir, err := os.MkdirTemp("", "explain-")
	if err != nil {
		return "", nil, fmt.Errorf("%s needs a scratch copy, and the temporary folder cannot take it; name another with TMPDIR: %w", Shown(in), err)
	}
	remove = func() { os.RemoveAll(dir) }
	name = filepath.Join(dir, safe(Name(in)))
	if err := save(name, body); err != nil {
		remove()
		return "", nil, fmt.Errorf("cannot copy %s: %w", Shown(in), hide(err))
	}
	return name, remove, nil
}

func save(name string, body io.Reader) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bufio.NewReaderSize(body, 1<<20))
	return errors.Join(err, f.Close())
}

// safe reduces a name to characters that every file system takes.
func safe(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, name)
	return name[max(0, len(name)-100):]
}

func get(ctx context.Context, address string) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	most := limit.Wait(time.Minute)
	silence := time.AfterFunc(most, func() { cancel(limit.Late("the server's silence", most)) })
	end := func() { silence.Stop(); cancel(nil) }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		end()
		return nil, fmt.Errorf("%s is not an address", Shown(address))
	}
	resp, err := http.DefaultClient.Do(req)
	silence.Stop()
	if err != nil {
		defer end()
		return nil, fmt.Errorf("cannot fetch %s: %w", Shown(address), hide(cmp.Or(context.Cause(ctx), err)))
	}
	body := &heard{resp.Body, ctx, end, silence, most}
	if resp.StatusCode != http.StatusOK {
		body.Close()
		return nil, fmt.Errorf("cannot fetch %s: the server answered %s; a presigned address may have expired", Shown(address), resp.Status)
	}
	return body, nil
}

// heard is a body that fails if its server is silent for longer than most during a read.
type heard struct {
	io.ReadCloser
	ctx     context.Context
	end     func()
	silence *time.Timer
	most    time.Duration
}

func (h *heard) Read(b []byte) (int, error) {
	h.silence.Reset(h.most)
	n, err := h.ReadCloser.Read(b)
	h.silence.Stop()
	if cause := context.Cause(h.ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

func (h *heard) Close() error {
	h.end()
	return h.ReadCloser.Close()
}

// hide removes the address from an error of net/http.
func hide(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
