package file

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/wording"
)

// MaxLine bounds the memory of one line, in bytes: longer lines are cut.
const MaxLine = 1 << 20

// Lines reads lines of any length in bounded memory.
type Lines struct {
	Ends bool  // the last line ended in a line break
	Err  error // what ended the input, other than its end

	r    *bufio.Reader
	line []byte
}

// NewLines reads the lines of a text.
func NewLines(r io.Reader) *Lines { return &Lines{r: bufio.NewReaderSize(r, 64<<10)} }

// Next is the next line without its line break, valid until the following call. cut says that the rest of the line was
// skipped; ok is false at the end.
func (l *Lines) Next() (line []byte, cut, ok bool) {
	line, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.line = append(l.line[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = l.r.ReadSlice('\n')
			if room := MaxLine + 2 - len(l.line); len(line) > room { // the line break does not count
				line = line[:room]
			}
			l.line = append(l.line, line...)
		}
		line = l.line
	}
	if l.Ends = err == nil; !l.Ends && !errors.Is(err, io.EOF) {
		l.Err = err
	}
	if len(line) == 0 {
		return nil, false, false
	}
	if line = bytes.TrimRight(line, "\r\n"); len(line) > MaxLine {
		return line[:MaxLine], true, true
	}
	return line, false, true
}

// Split splits a record into fields. Fields may be quoted, and a doubled quote stands for one; text between a closing
// quote and the separator belongs to the field. The fields replace those of the list that is
// passed. It reports whether a quote was left open.
func Split(record string, separator byte, fields []string) ([]string, bool) {
	fields = fields[:0]
	for {
		field, open := "", false
		if strings.HasPrefix(record, `"`) {
			if field, record, open = unquoted(record[1:]); open {
				return append(fields, field), true
			}
		}
		end := strings.IndexByte(record, separator)
		if end < 0 {
			return append(fields, field+record), false
		}
		fields, record = append(fields, field+record[:end]), record[end+1:]
	}
}

// unquoted reads from after an opening quote. It returns the field, the text after the closing quote, and whether none
// was found.
func unquoted(s string) (field, rest string, open bool) {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '"':
		case strings.HasPrefix(s[i+1:], `"`):
			i++
		default:
			return strings.ReplaceAll(s[:i], `""`, `"`), s[i+1:], false
		}
	}
	return s, "", true
}

// WithoutNaN writes null for the NaN and Infinity that Python writes into JSON, outside of strings.
func WithoutNaN(b []byte) []byte {
	if !bytes.Contains(b, []byte("NaN")) && !bytes.Contains(b, []byte("Infinity")) {
		return b
	}
	out := make([]byte, 0, len(b)+1)
	inside := false // a text
	for part := range bytes.SplitSeq(b, []byte(`"`)) {
		escaped := inside && (len(part)-len(bytes.TrimRight(part, `\`)))%2 == 1
		for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
			if !inside {
				part = bytes.ReplaceAll(part, []byte(word), []byte("null"))
			}
		}
		out = append(append(out, part...), '"')
		inside = !inside || escaped
	}
	return out[:len(out)-1]
}

// Some names the first of the files, up to most, and says how many more there are.
func Some(names []string, most int) string {
	return wording.Some(names[:min(most, len(names))], len(names))
}
