package gate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// oneLine makes text fit for a log line: it replaces control and format characters (newlines, terminal codes,
// bidirectional marks) with blanks, and cuts the text at max characters.
func oneLine(s string, max int) string {
	text := []rune(s[:min(len(s), utf8.UTFMax*(max+1))]) // what is beyond is cut in any case
	for i, r := range text {
		if !unicode.IsGraphic(r) || r == unicode.ReplacementChar || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			text[i] = ' '
		}
	}
	if len(text) > max {
		text = append(text[:max], '…')
	}
	return strings.TrimSpace(string(text))
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
