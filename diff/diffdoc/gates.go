package diffdoc

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// noticedGates returns the gates that did not pass, except those whose only reason is that the sides are not
// comparable.
func noticedGates(c *comparison.Comparison) []comparison.Gate {
	var list []comparison.Gate
	for _, v := range []comparison.Verdict{comparison.Fail, comparison.Inconclusive, comparison.Warn} {
		list = append(list, lists.Filter(c.Gates, func(g comparison.Gate) bool {
			return g.Verdict == v && (len(c.Reasons) == 0 || c.Comparable || g.Code != c.Reasons[0].Code)
		})...)
	}
	return list
}

// gateList lists the gates that did not pass, in sentences.
func gateList(c *comparison.Comparison, limit int) (l doc.List) {
	gates := slices.DeleteFunc(noticedGates(c), warnsOfStructure)
	for i := range gates[:min(len(gates), limit)] {
		g := &gates[i]
		l.Add(doc.Strong(string(g.Verdict)).With(verdictTones[g.Verdict]), " ", ruleSpans(g), " on ", gateMetric(c, g), ": "+clip(g.Reason))
	}
	moreItems(&l, len(gates)-limit)
	return l
}

// moreItems ends a list with the number of items that it leaves out.
func moreItems(l *doc.List, n int) {
	if n > 0 {
		l.Add("and " + unit.Int(n) + " more")
	}
}

// warnsOfStructure reports whether a gate warns about the structure of a step, which has a list of its own.
func warnsOfStructure(g comparison.Gate) bool {
	return g.Metric == comparison.MetricStructure && g.Verdict == comparison.Warn
}

// waiverList lists the waivers that were judged: what they accepted, and which of them need attention. Without it
// nobody could see why a change that broke a rule passes, or why a waiver turned the verdict into warn.
func waiverList(c *comparison.Comparison, limit int) (l doc.List) {
	judged := lists.Filter(c.Waivers, func(w comparison.WaiverUse) bool {
		return w.Status != comparison.WaiverNotJudged
	})
	lists.Lead(judged, func(w comparison.WaiverUse) bool { return w.Warns() })
	for i := range judged[:min(len(judged), limit)] {
		l.Add(waiverSpans(&judged[i]))
	}
	moreItems(&l, len(judged)-limit)
	return l
}

// waiverSpans states a waiver and its result in one sentence.
func waiverSpans(w *comparison.WaiverUse) []doc.Span {
	spans := doc.Spans("the waiver of ", doc.Name(w.Rule))
	if w.Warns() {
		spans = doc.Spans(doc.Strong(string(comparison.Warn)).With(doc.Warn), " ", spans)
	}
	if w.Match != "" {
		spans = doc.Spans(spans, " for ", doc.Name(w.Match))
	}
	switch w.Status {
	case comparison.WaiverApplied:
		spans = doc.Spans(spans, " accepts "+wording.Count(w.Gates, "gate")+" that would not pass, until ")
	case comparison.WaiverUnused:
		spans = doc.Spans(spans, " is unused: nothing is there to accept, take it out of the policy. It lasts until ")
	case comparison.WaiverExpired:
		spans = doc.Spans(spans, " no longer accepts anything: fix what it covered, renew it, or remove it from the policy. It expired on ")
	case comparison.WaiverExceeded:
		spans = doc.Spans(spans, " covers more than its ceiling of ", doc.Name(w.Ceiling), ", until ")
	}
	spans = append(spans, doc.Name(w.Expires))
	if w.Issue != "" {
		spans = doc.Spans(spans, ", ", doc.Name(w.Issue))
	}
	return doc.Spans(spans, ": "+clip(w.Reason))
}

// accepted counts the gates that only pass because of a waiver.
func accepted(c *comparison.Comparison) int {
	return lists.Count(c.Gates, func(g comparison.Gate) bool {
		return g.Waiver != nil && g.Waiver.Status == comparison.WaiverApplied
	})
}

func idleWaivers(c *comparison.Comparison) int {
	return lists.Count(c.Waivers, func(w comparison.WaiverUse) bool { return w.Warns() })
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

// gateTable lists every gate, those that did not pass first.
func gateTable(c *comparison.Comparison) doc.Table {
	t := doc.Table{ID: "gates", Columns: doc.Cols("Verdict", "Rule", "Metric", "Reason")}
	gates := slices.Clone(c.Gates)
	lists.Sort(gates, func(a, b comparison.Gate) int {
		return comparison.Rank(b.Verdict) - comparison.Rank(a.Verdict)
	})
	for _, g := range gates {
		t.Row(doc.Text(string(g.Verdict)).With(verdictTones[g.Verdict]), ruleSpans(&g), gateMetric(c, &g), g.Reason)
	}
	return t
}
