package file

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// UTF8 makes UTF-8 of UTF-16 with a byte order mark, as PowerShell writes it, and drops the mark of UTF-8.
func UTF8(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	mark, _ := b.Peek(3)
	switch {
	case bytes.HasPrefix(mark, []byte{0xff, 0xfe}):
		return &wide{r: b, low: 0, high: 1}
	case bytes.HasPrefix(mark, []byte{0xfe, 0xff}):
		return &wide{r: b, low: 1, high: 0}
	case bytes.HasPrefix(mark, []byte("\xef\xbb\xbf")):
		_, _ = b.Discard(3) // they were peeked at
	}
	return b
}

// wide reads UTF-16 as UTF-8.
type wide struct {
	r         *bufio.Reader
	low, high int // which byte of a pair is which
	out       []byte
	err       error
}

func (w *wide) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		w.fill()
	}
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n, nil
}

// fill decodes one character.
func (w *wide) fill() {
	first, ok := w.unit()
	switch {
	case !ok || first == 0xfeff:
		return
	case utf16.IsSurrogate(first):
		second, _ := w.unit()
		first = utf16.DecodeRune(first, second)
	}
	w.out = utf8.AppendRune(w.out[:0], first)
}

// unit reads one 16-bit unit; false at the end, where w.err says why.
func (w *wide) unit() (rune, bool) {
	var pair [2]byte
	if _, err := io.ReadFull(w.r, pair[:]); err != nil {
		w.err = err
		if errors.Is(err, io.ErrUnexpectedEOF) {
			w.err = io.EOF
		}
		return 0, false
	}
	return rune(pair[w.high])<<8 | rune(pair[w.low]), true
}
