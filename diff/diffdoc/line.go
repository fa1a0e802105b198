package diffdoc

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/report/pattern"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// ownWord matches ids of metrics and codes of reasons. Nothing else goes into [OneLine].
var ownWord = pattern.New(`^[a-z][a-z0-9_]{0,30}(\.[a-z0-9_]{1,30}){0,3}$`)

// OneLine states the verdict's number in one line, using only ids of metrics, codes and numbers, and no names from a
// capture or a file. It is safe where text is dangerous: workflow commands, commit statuses.
func OneLine(c *comparison.Comparison) string {
	own := func(s string) string {
		if ownWord().MatchString(s) {
			return s
		}
		return "a metric"
	}
	text := ""
	a := &c.Answer
	_, g := c.Headline()
	why := decisive(c)
	switch {
	case c.Study != nil:
		return "a study: no verdict"
	case c.FirstRun():
		text = "no baseline"
		if gates := standing(c); len(gates) > 0 {
			text = own(gates[0].Metric) + ": " + string(gates[0].Verdict) + "; " + text
		}
	case !c.Comparable && len(c.Reasons) > 0:
		text = "not comparable"
		sep := ": "
		for _, r := range c.Reasons[:min(len(c.Reasons), 5)] {
			if ownWord().MatchString(string(r.Code)) {
				text += sep + string(r.Code)
				sep = ", "
			}
		}
	case why != nil && why.Code == comparison.SameCapture:
		text = "same_capture: base and head are not two captures"
	case why != nil:
		text = own(string(why.Code))
	case g != nil && (a.Metric == g.Metric || g.Verdict == comparison.Fail):
		text = own(g.Metric) + ": " + string(g.Verdict)
	case a.From == nil || a.To == nil:
		text = "nothing was compared"
	case comparison.Value(a.From) != comparison.Value(a.To):
		number := *a
		number.Metric, number.Per = own(a.Metric), ""
		text = number.Size() + ", " + number.Sides()
	default:
		text = own(a.Metric) + " unchanged"
	}
	text += "; " + wording.Count(c.Counts.GatesChecked, "gate") + " checked"
	words := []verdictCount{{comparison.Fail, "failed"}, {comparison.Warn, "warned"}}
	for _, part := range tally(c.Gates, words, func(g comparison.Gate) comparison.Verdict { return g.Verdict }) {
		text += ", " + part
	}
	if a := accepted(c); a > 0 {
		text += ", " + unit.Int(a) + " accepted by a waiver"
	}
	if w := idleWaivers(c); w > 0 {
		text += "; " + wording.Count(w, "waiver") + " unused or expired"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}
