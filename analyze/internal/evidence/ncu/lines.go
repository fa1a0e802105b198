package ncu

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds on what is held of a file at a time.
const (
	maxLine = 1 << 20 // bytes of a line; the rest of a longer one is dropped
	maxJoin = 64      // lines that one record with line breaks in quotes may span
)

// lines reads a text line by line in bounded memory.
type lines struct {
	r    *bufio.Reader
	ends bool  // the last line ended in a line break
	long int64 // lines that were cut
	err  error // why reading stopped, other than at the end
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(decode(r), 64<<10)} }

// next returns the next line without its line break; false at the end or at an error.
func (l *lines) next() (string, bool) {
	var line []byte
	cut := false
	for {
		chunk, err := l.r.ReadSlice('\n')
		if room := maxLine - len(line); len(chunk) > room {
			chunk, cut = chunk[:room], true
		}
		line = append(line, chunk...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			l.err = err
		}
		if len(line) == 0 && err != nil {
			return "", false
		}
		l.ends = err == nil
		break
	}
	if cut {
		l.long++
	}
	line = bytes.TrimRight(line, "\r\n")
	return string(bytes.ToValidUTF8(line, []byte("\uFFFD"))), true
}

// decode makes UTF-8 of UTF-16, which PowerShell writes, and drops a byte order mark.
func decode(r io.Reader) io.Reader {
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

// split takes a record apart. Fields are quoted or not, a doubled quote in quotes is one; what follows a closing quote up to the
// separator belongs to the field. It reports whether a quote was left open.
func split(record string, separator byte, fields []string) ([]string, bool) {
	fields = fields[:0]
	for i := 0; ; i++ {
		if i < len(record) && record[i] == '"' {
			field, end, open := quoted(record, i+1)
			if open {
				return append(fields, field), true
			}
			rest := end
			for end < len(record) && record[end] != separator {
				end++
			}
			fields = append(fields, field+record[rest:end])
			i = end
		} else {
			end := i
			for end < len(record) && record[end] != separator {
				end++
			}
			fields = append(fields, record[min(i, len(record)):end])
			i = end
		}
		if i >= len(record) {
			return fields, false
		}
	}
}

// quoted reads from behind an opening quote: the field, the index behind the closing quote, and whether there is none.
func quoted(s string, start int) (field string, end int, open bool) {
	var b []byte // nil while the field is a part of s as it stands
	from := start
	for i := start; i < len(s); i++ {
		if s[i] != '"' {
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			b = append(b, s[from:i+1]...)
			i++
			from = i + 1
			continue
		}
		if b == nil {
			return s[start:i], i + 1, false
		}
		return string(append(b, s[from:i]...)), i + 1, false
	}
	return s[start:], len(s), true
}
