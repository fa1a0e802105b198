package comparison

import (
	"strings"
	"unicode"
)

// Override is an acceptance of a failure, by a label say.
type Override struct {
	Label string  `json:"label"`
	By    string  `json:"by"` // who set it; empty: not known
	From  Verdict `json:"from"`
	To    Verdict `json:"to"`
}

// maxOverrideText bounds, in characters, what is kept of a label or a name.
const maxOverrideText = 100

// Accept records that somebody accepts what was found, by a label on the pull request say: a verdict of fail or
// inconclusive becomes warn, and the comparison names who said so. The gates stand as they were judged. It reports
// whether there was anything to accept; if not, nothing is recorded.
func (c *Comparison) Accept(label, by string) bool {
	if c.Verdict != Fail && c.Verdict != Inconclusive {
		return false
	}
	c.Overrides = append(c.Overrides, Override{Label: printable(label), By: printable(by), From: c.Verdict, To: Warn})
	c.Verdict = Warn
	return true
}

// Withdraw takes back what [Comparison.Accept] did: the reader of another job's comparison asks for the label again.
func (c *Comparison) Withdraw() {
	if len(c.Overrides) > 0 {
		c.Verdict, c.Overrides = c.Overrides[0].From, []Override{}
	}
}

// printable keeps the start of a text, without what cannot be printed.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if r := []rune(s); len(r) > maxOverrideText {
		s = string(r[:maxOverrideText])
	}
	return s
}
