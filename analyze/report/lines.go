package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Lines writes a JSON object with one field, and one element of its lists, per line, so that diffs of two files are
// readable and the same object always gives the same bytes. Text is not HTML-escaped: kernel names can be searched for.
// The zero value is an empty object.
type Lines struct {
	b   bytes.Buffer
	err error
}

// Field adds a field.
func (l *Lines) Field(name string, v any) {
	l.name(name)
	l.put(v)
}

// List adds a field that is a list.
func List[T any](l *Lines, name string, v []T) {
	l.name(name)
	l.b.WriteByte('[')
	for i := range v {
		if i > 0 {
			l.b.WriteByte(',')
		}
		l.b.WriteByte('\n')
		l.put(&v[i])
	}
	if len(v) > 0 {
		l.b.WriteByte('\n')
	}
	l.b.WriteByte(']')
}

// Object adds a field that is an object of lines itself.
func (l *Lines) Object(name string, inner *Lines) {
	l.name(name)
	b, err := inner.bytes()
	l.b.Write(bytes.TrimRight(b, "\n"))
	if l.err == nil {
		l.err = err
	}
}

// Write writes the object, ended by a newline, unless there was an error on the way: the first one is returned.
func (l *Lines) Write(w io.Writer) error {
	b, err := l.bytes()
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func (l *Lines) bytes() ([]byte, error) {
	if l.b.Len() == 0 {
		l.b.WriteString("{")
	}
	return append(bytes.Clone(l.b.Bytes()), "\n}\n"...), l.err
}

func (l *Lines) name(name string) {
	if l.b.Len() == 0 {
		l.b.WriteString("{\n")
	} else {
		l.b.WriteString(",\n")
	}
	fmt.Fprintf(&l.b, "%q: ", name)
}

func (l *Lines) put(v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil && l.err == nil {
		l.err = err
	}
	l.b.Write(bytes.TrimRight(b.Bytes(), "\n"))
}
