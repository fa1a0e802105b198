package diff

import (
	"regexp"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/unit"
)

// ownWord is what ids of metrics and codes of reasons look like. Nothing else goes into [Comparison.OneLine].
var ownWord = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}(\.[a-z0-9_]{1,30}){0,3}$`)

// OneLine is the verdict's number in one line of explain's own words: ids of metrics, codes and numbers, no name out of a
// capture or a file. It fits where text is dangerous: workflow commands, commit statuses.
func (c *Comparison) OneLine() string {
	own := func(s string) string {
		if ownWord.MatchString(s) {
			return s
		}
		return "a metric"
	}
	text := ""
	row, g := c.headline()
	switch {
	case c.FirstRun():
		text = "first run, no baseline"
	case !c.Comparable && len(c.Reasons) > 0:
		text = "not comparable"
		sep := ": "
		for _, r := range c.Reasons[:min(len(c.Reasons), 5)] {
			if ownWord.MatchString(string(r.Code)) {
				text += sep + string(r.Code)
				sep = ", "
			}
		}
	case g != nil:
		text = own(g.Metric) + ": " + string(g.Verdict)
	case row == nil:
		text = "nothing was compared"
	case row.Delta != nil && *row.Delta != 0:
		text = own(row.Metric) + " " + changeText(row) + ", " + unit.Format(*row.Base, row.Unit) + " → " + unit.Format(*row.Head, row.Unit)
	default:
		text = own(row.Metric) + " unchanged"
	}
	n := map[Verdict]int64{}
	for i := range c.Gates {
		n[c.Gates[i].Verdict]++
	}
	text += "; " + count(c.Counts.GatesChecked, "gate") + " checked"
	for _, v := range []struct {
		verdict Verdict
		word    string
	}{{Fail, "failed"}, {Warn, "warned"}} {
		if n[v.verdict] > 0 {
			text += ", " + unit.Int(n[v.verdict]) + " " + v.word
		}
	}
	if a := c.accepted(); a > 0 {
		text += ", " + unit.Int(a) + " accepted by a waiver"
	}
	if w := c.idleWaivers(); w > 0 {
		text += "; " + count(w, "waiver") + " unused or expired"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}

// Classes counts the metrics and kernels that got worse, got better, and are not settled.
func (c *Comparison) Classes() (regressed, improved, unsettled int) {
	var classes []Class
	for i := range c.Primary {
		classes = append(classes, c.Primary[i].Class)
	}
	for i := range c.Kernels {
		classes = append(classes, c.Kernels[i].Class)
	}
	for _, class := range classes {
		switch class {
		case Regressed:
			regressed++
		case Improved:
			improved++
		case Unsettled:
			unsettled++
		case Same, Added, Removed:
		}
	}
	return regressed, improved, unsettled
}
