package ncu

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
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

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(file.UTF8(r), 64<<10)} }

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

// split takes a record apart. Fields are quoted or not, a doubled quote in quotes is one; what follows a closing quote
// up to the separator belongs to the field. It reports whether a quote was left open.
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
