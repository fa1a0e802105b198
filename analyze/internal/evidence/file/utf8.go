package file

import (
	"io"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// UTF8 makes UTF-8 of UTF-16 with a byte order mark, as PowerShell writes it, and drops the mark of UTF-8. Text without
// a mark passes through as it is, valid UTF-8 or not.
func UTF8(r io.Reader) io.Reader { return transform.NewReader(r, unicode.BOMOverride(transform.Nop)) }
