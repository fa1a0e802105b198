// Package file holds the types that all readers of evidence share: an input that can be reopened and is unpacked if it
// is compressed, and the count of records read, understood and not understood.
package file

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/nsys-llm/explain/analyze/limit"
)

// Kind of evidence, as the report names it.
type Kind string

// Kinds of evidence of explain's own; package compat has more. A file is of a kind by its content, never by its name.
const (
	NCU         Kind = "ncu-csv"      // Nsight Compute, raw or details page
	ServerLog   Kind = "server-log"   // vLLM, SGLang, TensorRT-LLM, LMDeploy or text-generation-inference
	Prometheus  Kind = "prometheus"   // text exposition of /metrics
	Load        Kind = "load"         // what explain load measured
	ModelConfig Kind = "model-config" // config.json of a Hugging Face model
)

// Input is one file of evidence. Name is the file's own name, or its path below the folder that was named, with
// slashes; never an absolute path.
type Input struct {
	Kind  Kind
	Name  string
	Path  string // where to open it; never shown
	Found bool   // by a folder or a pattern: nobody named it
	Bytes int64  // on disk
	Tally *Tally // filled by the reader
}

// Tally counts what a reader made of a file. No line is lost silently: Records = Understood + Blank + Unknown.
type Tally struct {
	Format     string // what exactly it is: "raw page", "vLLM V1", …; explain's own words
	Version    string // of the program that wrote it, where it says so
	Records    int64  // lines of a log, rows of a table
	Understood int64  // records that a number or a fact was taken from
	Known      int64  // records of a known form that hold nothing to take
	Unknown    int64  // records of no known form
}

// Took counts a record of a known form, from which something was taken or not.
func (t *Tally) Took(something bool) {
	if something {
		t.Understood++
	} else {
		t.Known++
	}
}

// New is the input for the file in path, shown as name.
func New(path, name string) (Input, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Input{}, err
	}
	if !info.Mode().IsRegular() {
		return Input{}, errors.New("not a regular file")
	}
	if err := limit.Evidence.Size(info.Size()); err != nil {
		return Input{}, err
	}
	return Input{Name: filepath.ToSlash(name), Path: path, Bytes: info.Size(), Tally: &Tally{}}, nil
}

// Open opens the file for reading from its start, and unpacks gzip and zstd. The unpacked size is bounded. Text in
// UTF-16 with a byte order mark, as PowerShell writes it, is read as UTF-8, and the mark of UTF-8 is dropped; text
// without a mark passes through unchanged, valid UTF-8 or not.
func (in *Input) Open() (io.ReadCloser, error) {
	f, err := os.Open(in.Path)
	if err != nil {
		return nil, err
	}
	packed := bufio.NewReader(f)
	magic, _ := packed.Peek(4) // what cannot be read, reading tells again
	var z io.Reader = packed
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err = gzip.NewReader(packed)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err = zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	plain := transform.NewReader(limit.Evidence.Unpacked(in.Bytes).Reader(z), unicode.BOMOverride(transform.Nop))
	return struct {
		io.Reader
		io.Closer
	}{plain, f}, nil
}

// Each opens the files one after the other and calls read with each. An error names its file.
func Each(ctx context.Context, files []Input, read func(in *Input, r io.Reader) error) error {
	for i := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := files[i].read(read); err != nil {
			return fmt.Errorf("%s: %w", files[i].Name, err)
		}
	}
	return nil
}

func (in *Input) read(read func(in *Input, r io.Reader) error) error {
	r, err := in.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	return read(in, r)
}

// HeadBytes is how many bytes at the start of a file are read to find its kind.
const HeadBytes = 64 << 10

// Head reads the start of the file, HeadBytes at most.
func (in *Input) Head() ([]byte, error) {
	r, err := in.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	head, err := io.ReadAll(io.LimitReader(r, HeadBytes))
	if len(head) > 0 { // the start of a damaged file may still show its kind
		return head, nil
	}
	return head, err
}

// Any reports whether a line of the file is of a kind, as far as a search goes.
func (in *Input) Any(is func(line []byte) bool) (found bool) {
	_ = in.read(func(_ *Input, r io.Reader) error { // what cannot be read has none
		found = AnyLine(limit.Search.Reader(r), is)
		return nil
	})
	return found
}

// AnyLine reports whether a line of a text is of a kind.
func AnyLine(r io.Reader, is func(line []byte) bool) bool {
	for l := NewLines(r); ; {
		if line, _, ok := l.Next(); !ok || is(line) {
			return ok
		}
	}
}
