package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// ReadVersioned reads one of the JSON files that explain writes: of at most limit bytes, with the field "schema" naming
// the format, as explain.report/1. Unknown fields are ignored, so that a newer writer of the same major version can be
// read; another major version is an error that names both. So is nesting or a text beyond all that explain writes. what
// is the file's name for error messages: "report". Content is not validated beyond its types.
func ReadVersioned[T any](rd io.Reader, what, schema string, limit int64) (*T, error) {
	var text bytes.Buffer
	if sized, ok := rd.(interface{ Len() int }); ok {
		text.Grow(sized.Len() + bytes.MinRead)
	}
	if _, err := text.ReadFrom(io.LimitReader(rd, limit+1)); err != nil {
		return nil, err
	}
	b := text.Bytes()
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s is larger than %d MB", what, limit>>20)
	}
	if err := bounded(b); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", what, err)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if head.Schema = SchemaFirst(b); head.Schema == "" {
		if err := json.Unmarshal(b, &head); err != nil {
			return nil, fmt.Errorf("not a %s: %w", what, err)
		}
	}
	family, _, _ := strings.Cut(schema, "/")
	switch {
	case head.Schema == schema:
	case strings.HasPrefix(head.Schema, family+"/"):
		return nil, fmt.Errorf("%s has format %q, this version reads %q: make it again, or use the explain that wrote it",
			what, head.Schema, schema)
	default:
		return nil, fmt.Errorf("not an explain %s: field \"schema\" is %q, expected %q", what, head.Schema, schema)
	}
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", what, err)
	}
	return v, nil
}

// SchemaFirst is the format of a file, of which b is at least the start, that names it in its first field, as all files
// of explain do; empty for others.
func SchemaFirst(b []byte) string {
	d := json.NewDecoder(bytes.NewReader(b))
	for _, want := range []json.Token{json.Delim('{'), "schema"} {
		if t, err := d.Token(); err != nil || t != want {
			return ""
		}
	}
	t, _ := d.Token() // nil if it fails
	schema, _ := t.(string)
	return schema
}

// Bounds of what is read from files that may come from anybody. What explain writes is far below them.
const (
	maxDepth = 32       // of objects and lists
	maxText  = 64 << 10 // bytes of one text as it is written; names of kernels reach some ten thousand
)

// bounded reports JSON that is nested deeper or has longer texts than any file of explain. It looks at brackets and
// quotes alone: whether the text is JSON is for the decoder to say.
func bounded(b []byte) error {
	depth, start := 0, -1
	for i := 0; i < len(b); i++ {
		if start >= 0 {
			switch b[i] {
			case '\\':
				i++
			case '"':
				if i-start > maxText {
					return fmt.Errorf("a text of %d bytes, at most %d are read", i-start, maxText)
				}
				start = -1
			}
			continue
		}
		switch b[i] {
		case '"':
			start = i + 1
		case '[', '{':
			if depth++; depth > maxDepth {
				return fmt.Errorf("nested more than %d deep", maxDepth)
			}
		case ']', '}':
			depth--
		}
	}
	return nil
}
