package serverlog

import (
	"strings"
	"testing"
)

// The runtime of Kubernetes splits long lines: P marks a part, F the last one. Parts of the two streams may alternate.
func TestLineInParts(t *testing.T) {
	const at = "2026-12-15T18:32:12.331095044Z "
	whole := strings.TrimSuffix(lineOf("(APIServer pid=1)", 12), "\n")
	part := func(flag, text string) string { return at + "stderr " + flag + " " + text + "\n" }
	prompt := "INFO 12-15 18:32:12 [logger.py:1] Received request x: prompt: 'a "
	for name, c := range map[string]struct {
		text    string
		samples int
	}{
		"one part":    {part("F", whole), 1},
		"two parts":   {part("P", whole[:90]) + part("F", whole[90:]), 1},
		"three parts": {part("P", whole[:9]) + part("P", whole[9:70]) + part("F", whole[70:]), 1},
		"streams":     {part("P", whole[:90]) + at + "stdout F x\n" + part("F", whole[90:]), 1},
		"both streams": {part("P", whole[:90]) + at + "stdout P " + whole[:70] + "\n" + part("F", whole[90:]) +
			at + "stdout F " + whole[70:], 2},
		"no end":      {part("P", whole), 0},
		"of a prompt": {part("P", prompt) + part("F", whole), 0}, // a client's text is no line
	} {
		d, tally := read(t, []byte(c.text))
		if len(d.Samples) != c.samples || int(tally.Unknown) > strings.Count(c.text, "stdout F x") {
			t.Errorf("%s: %d samples, want %d, %+v", name, len(d.Samples), c.samples, *tally)
		}
	}
}
