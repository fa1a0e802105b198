package diffdoc

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// noticedGates returns the gates that did not pass, except those whose only reason is that the sides are not
// comparable.
func noticedGates(c *comparison.Comparison) []comparison.Gate {
	var list []comparison.Gate
	for _, v := range []comparison.Verdict{comparison.Fail, comparison.Inconclusive, comparison.Warn} {
		for _, g := range c.Gates {
			if g.Verdict == v && !(len(c.Reasons) > 0 && !c.Comparable && g.Code == c.Reasons[0].Code) {
				list = append(list, g)
			}
		}
	}
	return list
}

// gateList lists the gates that did not pass, in sentences.
func gateList(c *comparison.Comparison, limit int) []doc.Block {
	gates := slices.DeleteFunc(noticedGates(c), func(g comparison.Gate) bool {
		return g.Metric == comparison.MetricStructure && g.Verdict == comparison.Warn
	}) // they have a list of their own
	if len(gates) == 0 {
		return nil
	}
	var l doc.List
	for i := range gates[:min(len(gates), limit)] {
		g := &gates[i]
		spans := doc.Spans(doc.Strong(string(g.Verdict)).With(verdictTone(g.Verdict)), " ", ruleSpans(g))
		spans = append(append(append(spans, doc.Text(" on ")), gateMetric(c, g)...), doc.Text(": "+clip(g.Reason)))
		l.Add(spans)
	}
	if n := len(gates) - limit; n > 0 {
		l.Add("and " + unit.Int(int64(n)) + " more")
	}
	return []doc.Block{doc.H(2, "gates", "Gates that did not pass"), l}
}

// structural counts the warnings about the structure of a step, which gateList leaves to the list of the structure.
func structural(c *comparison.Comparison) (n int64) {
	for i := range c.Gates {
		if c.Gates[i].Metric == comparison.MetricStructure && c.Gates[i].Verdict == comparison.Warn {
			n++
		}
	}
	return n
}

// waiverList lists the waivers that were judged: what they accepted, and which of them need attention. Without it
// nobody could see why a change that broke a rule passes, or why a waiver turned the verdict into warn.
func waiverList(c *comparison.Comparison, limit int) []doc.Block {
	var l doc.List
	for _, needsHand := range []bool{true, false} {
		for i := range c.Waivers {
			if w := &c.Waivers[i]; w.Status != comparison.WaiverNotJudged && w.Warns() == needsHand {
				l.Add(waiverSpans(w))
			}
		}
	}
	if len(l.Items) == 0 {
		return nil
	}
	if n := len(l.Items) - limit; n > 0 {
		l.Items = append(l.Items[:limit:limit],
			doc.Item{Spans: doc.Spans("and " + unit.Int(int64(n)) + " more")})
	}
	return []doc.Block{doc.H(2, "waivers", "Waivers"), l}
}

// waiverSpans states a waiver and its result in one sentence.
func waiverSpans(w *comparison.WaiverUse) []doc.Span {
	spans := doc.Spans("the waiver of ", doc.Name(w.Rule))
	if w.Warns() {
		spans = doc.Spans(doc.Strong(string(comparison.Warn)).With(doc.Warn), " ", spans)
	}
	if w.Match != "" {
		spans = append(spans, doc.Text(" for "), doc.Name(w.Match))
	}
	say := func(text string) { spans = append(spans, doc.Text(text)) }
	switch w.Status {
	case comparison.WaiverApplied:
		say(" accepts " + wording.Count(w.Gates, "gate") + " that would not pass, until ")
	case comparison.WaiverUnused:
		say(" is unused: nothing is there to accept, take it out of the policy. It lasts until ")
	case comparison.WaiverExpired:
		say(
			" no longer accepts anything: fix what it covered, renew it, or remove it from the policy. It expired on ")
	case comparison.WaiverExceeded:
		say(" covers more than its ceiling of ")
		spans = append(spans, doc.Name(w.Ceiling), doc.Text(", until "))
	}
	spans = append(spans, doc.Name(w.Expires))
	if w.Issue != "" {
		spans = append(spans, doc.Text(", "), doc.Name(w.Issue))
	}
	return append(spans, doc.Text(": "+clip(w.Reason)))
}

// accepted counts the gates that only pass because of a waiver.
func accepted(c *comparison.Comparison) int64 {
	n := int64(0)
	for i := range c.Gates {
		if w := c.Gates[i].Waiver; w != nil && w.Status == comparison.WaiverApplied {
			n++
		}
	}
	return n
}

// idleWaivers counts the waivers that warn.
func idleWaivers(c *comparison.Comparison) int64 {
	n := int64(0)
	for i := range c.Waivers {
		if c.Waivers[i].Warns() {
			n++
		}
	}
	return n
}

// gateMetric names what a gate judged; a kernel by its display name.
func gateMetric(c *comparison.Comparison, g *comparison.Gate) doc.Cell {
	if k, ok := g.Labels["kernel"]; ok && len(g.Labels) == 1 {
		return append(doc.Cell{doc.Code(g.Metric), doc.Text(" ")}, display(c, k)...)
	}
	return metricCell(g.Metric, g.Labels)
}

// ruleSpans states the rule's name, which is the user's text, and its threshold.
func ruleSpans(g *comparison.Gate) []doc.Span {
	spans := doc.Spans(doc.Name(g.Rule))
	if g.Threshold != "" && !strings.Contains(g.Rule, ":") {
		spans = append(spans, doc.Text(" "+g.Threshold))
	}
	return spans
}

func gateTable(c *comparison.Comparison, gates []comparison.Gate, limit int) (doc.Table, bool) {
	if len(gates) == 0 {
		return doc.Table{}, false
	}
	t := doc.Table{ID: "gates", Caption: doc.Spans("Gates"),
		Columns: doc.Cols("Verdict", "Rule", "Metric", "Reason")}
	for i := range gates[:min(len(gates), limit)] {
		g := &gates[i]
		t.Row(doc.Text(string(g.Verdict)).With(verdictTone(g.Verdict)), ruleSpans(g), gateMetric(c, g), g.Reason)
	}
	if n := len(gates) - limit; n > 0 {
		t.Last(nil, "and "+unit.Int(int64(n))+" more")
	}
	return t, true
}
