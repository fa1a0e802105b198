package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
)

// WriteLines writes what v points to as a JSON object with one field, and one element of its lists of objects, per
// line, so that diffs of two files are readable and the same object always gives the same bytes. An object whose field
// is tagged lines:"true" is written likewise. Text is not HTML-escaped: kernel names can be searched for.
func WriteLines(w io.Writer, v any) error {
	var b bytes.Buffer
	if err := lines(&b, reflect.ValueOf(v).Elem()); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := b.WriteTo(w)
	return err
}

func lines(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('{')
	first := true
	for _, f := range fields(v.Type()) {
		in := v.FieldByIndex(f.at)
		if f.omitEmpty && (in.IsZero() || in.Kind() == reflect.Slice && in.Len() == 0) {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		fmt.Fprintf(b, "\n%q: ", f.name)
		var err error
		switch {
		case f.lines:
			err = lines(b, reflect.Indirect(in))
		case in.Kind() == reflect.Slice && in.Type().Elem().Kind() == reflect.Struct:
			err = list(b, in)
		default:
			err = put(b, in)
		}
		if err != nil {
			return err
		}
	}
	b.WriteString("\n}")
	return nil
}

func list(b *bytes.Buffer, v reflect.Value) error {
	b.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		if err := put(b, v.Index(i).Addr()); err != nil {
			return err
		}
	}
	if v.Len() > 0 {
		b.WriteByte('\n')
	}
	b.WriteByte(']')
	return nil
}

func put(b *bytes.Buffer, v reflect.Value) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	err := e.Encode(v.Interface())
	if err == nil {
		b.Truncate(b.Len() - 1) // the end of the line
	}
	return err
}
