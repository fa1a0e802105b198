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

// short is a commit as it is printed.
func short(sha string) string {
	if len(sha) > 7 {
		return sha[:7]
	}
	return sha
}
