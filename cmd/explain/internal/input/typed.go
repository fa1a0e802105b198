package input

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/cmd/explain/internal/fetch"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// AsTyped names a file in an error as the user did: of two captures called trace.sqlite, the folder says which.
func AsTyped(err error, path string) error {
	if wrong, ok := errors.AsType[*analyze.InputError](err); ok && wrong.File == filepath.Base(path) {
		wrong.File = path
	}
	return err
}

// Plain returns the text of an error; errors about missing, unreadable or wrong files are in plain words.
func Plain(err error) string {
	text := err.Error()
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return text
	}
	said := ""
	switch {
	case errors.Is(at.Err, fs.ErrNotExist):
		said = at.Path + ": does not exist; check the path"
	case errors.Is(at.Err, fs.ErrPermission):
		said = at.Path + ": you may not read or write it; check its permissions"
	case errors.Is(at.Err, syscall.EISDIR):
		said = at.Path + ": is a folder; name a file"
	default:
		return text
	}
	return strings.Replace(text, at.Error(), said, 1)
}

// Spool copies standard input into a file if an argument is -, since a capture is read more than once, and puts the
// name of the file, stdin, into the arguments. remove deletes it.
func Spool(ctx context.Context, in io.Reader, args []string) (remove func(), err error) {
	at := slices.Index(args, "-")
	switch {
	case at < 0:
		return func() {}, nil
	case slices.Contains(args[at+1:], "-"):
		return func() {}, usage.Errorf("- is named twice, and there is one standard input")
	}
	path, remove, err := fetch.File(ctx, "-", in)
	if err != nil {
		return func() {}, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return remove, usage.Errorf("- is standard input, and nothing came in")
	}
	args[at] = path
	return remove, nil
}
