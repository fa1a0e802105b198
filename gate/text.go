package gate

import (
	"strings"
	"unicode"

	"github.com/nsys-llm/explain/analyze/report/pattern"
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

var commit = pattern.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// IsCommit reports whether a text is the full hash of a commit.
func IsCommit(ref string) bool { return commit().MatchString(ref) }

// ShortRef shortens a commit as GitHub does, and leaves names alone.
func ShortRef(ref string) string {
	if IsCommit(ref) {
		return ref[:7]
	}
	return ref
}
