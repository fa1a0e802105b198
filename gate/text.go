package gate

import (
	"strings"
	"unicode"
)

// oneLine makes text fit for a log line: it replaces control and format characters (newlines, terminal codes,
// bidirectional marks) with blanks, and cuts the text at max characters.
func oneLine(s string, max int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > max {
			b.WriteString("…")
			break
		}
		if !unicode.IsGraphic(r) || r == unicode.ReplacementChar || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// ShortRef shortens a commit as GitHub does, and leaves names alone.
func ShortRef(ref string) string {
	if commit().MatchString(ref) {
		return ref[:7]
	}
	return ref
}
