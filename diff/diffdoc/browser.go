package diffdoc

import (
	"io"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/diff/comparison"
)

// WriteHTML writes the comparison as one page for a browser, which loads nothing else.
func WriteHTML(w io.Writer, c *comparison.Comparison, sides Links) error {
	title := "explain: " + strings.ToLower(verdictWord(c.Verdict).Text)
	if len(c.Base.Names) > 0 && len(c.Head.Names) > 0 {
		title += ", " + c.Base.Names[0] + " → " + c.Head.Names[0]
	}
	return render.HTML(w, Browser(c, sides), title)
}

// Links are the paths of the base's and the head's report pages, relative to the comparison's page; empty: there is
// none.
type Links struct{ Base, Head string }

// The groups of the page's table of contents, as on the report's page.
const (
	groupAnswer   = "Answer"
	groupEvidence = "Evidence"
)

// Browser returns the comparison for a browser: the answer, the step before and after, the evidence, and every row.
func Browser(c *comparison.Comparison, links Links) doc.Document {
	var d doc.Document
	d.Add(doc.Heading{Level: 1, ID: "verdict", Spans: verdictLine(c)}, doc.P(doc.Strong(sidesText(&c.Answer))), warnedBy(c))
	if t := causeTable(&c.Answer); len(t.Rows) > 0 {
		d.Add(t)
	} else if n := notes(c); len(n) > 0 {
		d.Add(doc.P(sentence(n[:1])))
	}
	d.Add(doc.P(reportsOf(links)))
	if shows(c) {
		d.Add(reasons(c)...)
	}
	if settle := settling(c); settle != "" {
		d.Add(doc.P("New captures of both sides, recorded in turn on one machine, would answer it:"), doc.Command{Text: settle})
	}
	part := func(group, id, title string, blocks ...doc.Block) {
		d.Add(doc.Part(doc.H(2, id, title).In(group), blocks...)...)
	}
	part(groupAnswer, "obstacles", "What to change so that the sides can be compared", obstacles(c))
	if c.Comparable {
		part(groupAnswer, "step", "The step, before and after", stepBlocks(c)...)
	}
	if !shows(c) {
		d.Add(doc.P(sides(c)), doc.P(checkedText(c)))
		return d
	}
	part(groupAnswer, "judged", "How sure", sure(c)...)
	part(groupEvidence, "numbers", "All numbers", everyNumber(c)...)
	return d
}

// everyNumber returns the folded parts: where the change is, and each row that was compared; only what the rules said if
// the numbers of both sides mean nothing side by side.
func everyNumber(c *comparison.Comparison) (list []doc.Block) {
	rules := []doc.Block{doc.Fold("gates", "Gates", gateTable(c)),
		doc.Fold("waivers", "Waivers", waiverList(c, len(c.Waivers)))}
	if !shows(c) {
		return rules
	}
	ranks := rankBlocks(c, pageRanks)
	if len(ranks) > 0 {
		ranks = append(ranks, rankSteps(c.Ranks))
	}
	if c.Comparable {
		list = append(list, doc.Fold("causes", "Where the change comes from", causeBlocks(c)...),
			doc.Fold("structure", "Structure", structureList(c)),
			doc.Fold("kernels", "Kernels", kernelTable(c, c.Kernels, len(c.Kernels), true)),
			doc.Fold("api", "Host calls per unit", apiTable(c, false)))
	}
	list = append(list, doc.Fold("ranks", "Ranks", ranks...),
		doc.Fold("metrics", "Every metric, and how it was decided", primaryTable(c, c.Primary), decisions(c)))
	list = append(append(list, rules...), doc.Fold("mix", "Mix of units", mixTable(c)),
		doc.Fold("unjudged", "Tokens, and time outside the units", unjudgedTable(c)))
	if c.Comparable {
		list = append(list, doc.Fold("residue", "What else differs", residue(c, len(c.Residue))))
	}
	return list
}

// shows reports whether numbers of both sides may be shown side by side: if the work or the machines differ, they mean
// nothing.
func shows(c *comparison.Comparison) bool { return c.Comparable || c.FirstRun() || c.Identical }

// sure shows the basis of the answer: what was judged, the times of single units, and what was checked.
func sure(c *comparison.Comparison) []doc.Block {
	var list []doc.Block
	if c.Comparable {
		list = append(list, forest(c), distribution(c))
	}
	if len(c.Answer.Rows) > 0 {
		list = append(list, doc.P(sentence(c.Answer.Notes)))
	}
	return append(list, doc.P(sides(c)), doc.P(checkedText(c)))
}

// reportsOf links to the reports of both sides.
func reportsOf(l Links) []doc.Span {
	links := []doc.Span{doc.Link("report of the base", l.Base), doc.Link("report of the head", l.Head)}
	known := lists.Filter(links, func(s doc.Span) bool { return s.Behind() != "" })
	return doc.Joined(" · ", known, func(s doc.Span) any { return s })
}

// settling is the command that would answer what this comparison leaves open; empty if nothing is open, or if new
// captures of the same work would not help.
func settling(c *comparison.Comparison) string {
	if c.Verdict != comparison.Inconclusive || c.FirstRun() || len(c.Reasons) == 0 {
		return ""
	}
	switch c.Reasons[0].Code {
	case comparison.WideInterval, comparison.TooFewUnits, comparison.Trend:
		return "explain capture --pair --until-decided 'BASE COMMAND' 'HEAD COMMAND'"
	case comparison.EnvironmentMismatch, comparison.GraphCaptureMismatch, comparison.SameCapture, comparison.OneSession,
		comparison.IncompleteCapture, comparison.LowCoverage, comparison.EmptySide:
		return "explain capture --pair 'BASE COMMAND' 'HEAD COMMAND'"
	}
	return ""
}

// causeTable has a bar for each cause, as long as its change, and a row for the rest.
func causeTable(a *comparison.Answer) doc.Table {
	t := doc.Table{ID: "answer", Columns: doc.Cols(">Change", "Cause")}
	var deltas []float64
	add := func(d float64, text string, with []string) {
		deltas = append(deltas, d)
		cell := doc.Cell{doc.Text(text)}
		if len(with) > 0 {
			cell = append(cell, doc.Text(": "+strings.Join(with, ", ")).With(doc.Muted))
		}
		t.Row(doc.Strong(delta(d)), cell)
	}
	for _, r := range a.Rows {
		add(r.Delta, strings.TrimSuffix(r.What+" "+r.Where, " "), r.With)
	}
	if a.RestText() != "" {
		add(comparison.Value(a.Rest), "the rest", nil)
	}
	t.Columns[0].Bars = deltaBars(deltas)
	return t
}
