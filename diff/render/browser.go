package render

import (
	"io"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// WriteHTML writes the comparison as one page for a browser, which loads nothing from elsewhere.
func WriteHTML(w io.Writer, c *comparison.Comparison) error {
	title := "explain: " + string(c.Verdict)
	if len(c.Base.Names) > 0 && len(c.Head.Names) > 0 {
		title += ", " + c.Base.Names[0] + " → " + c.Head.Names[0]
	}
	return render.HTML(w, Browser(c), render.HTMLOptions{Title: title})
}

// The groups of the page's contents, as the report's page has them.
const (
	groupAnswer   = "Answer"
	groupStep     = "Step"
	groupGPU      = "GPU"
	groupHost     = "Host"
	groupEvidence = "Evidence"
)

// Browser is the comparison for a browser: the same page with key numbers as tiles, charts, and every row.
func Browser(c *comparison.Comparison) doc.Document {
	var d doc.Document
	d.Add(opening(c)...)
	if t := tiles(c); len(t.Items) > 0 {
		d.Add(t)
	}
	d.Add(doc.P(checkedText(c)...))
	part := func(group, id, title string, blocks ...doc.Block) {
		if len(blocks) > 0 {
			h := doc.H(2, id, title)
			h.Group = group
			d.Add(h)
			d.Add(blocks...)
		}
	}
	if t, ok := obstacles(c); ok {
		part(groupAnswer, "obstacles", "What to change so that the sides can be compared", t)
	}
	if f, ok := forest(c); ok {
		part(groupAnswer, "judged", "What was judged", f)
	}
	if c.Comparable {
		part(groupStep, "step", "The step, before and after", stepBlocks(c)...)
		part(groupStep, "causes", "Where the change comes from", causeBlocks(c)...)
		if s := structureList(c); len(s) > 1 {
			part(groupStep, "structure", "Structure", s[1:]...)
		}
		part(groupGPU, "kernels", "Kernels", kernelBlocks(c)...)
		part(groupHost, "api", "Host calls per unit", apiBlocks(c)...)
	}
	part(groupStep, "ranks", "Ranks", rankBlocks(c, pageRanks)...)
	if t, ok := primaryTable(c, c.Primary); ok && shows(c) {
		part(groupEvidence, "metrics", "Every metric, and how it was decided", named(t), decisions(c))
	}
	if t, ok := gateTable(c, c.Gates, len(c.Gates)); ok {
		t.Caption = nil
		part(groupEvidence, "gates", "Gates", t)
	}
	if l := waiverList(c, len(c.Waivers)); len(l) > 1 {
		part(groupEvidence, "waivers", "Waivers", l[1:]...)
	}
	if t, ok := mixTable(c); ok {
		t.Caption = nil
		part(groupEvidence, "mix", "Mix of units", t)
	}
	if t, ok := unjudgedTable(c); ok {
		part(groupEvidence, "unjudged", "Tokens, and time outside the units", named(t))
	}
	if len(c.Residue) > 0 && c.Comparable {
		part(groupEvidence, "residue", "What differs and was not compared", residue(c, len(c.Residue))...)
	}
	return d
}

// named gives the column of relative changes a name, which on a page is a button and is read aloud.
func named(t doc.Table) doc.Table {
	for i := range t.Columns {
		if t.Columns[i].Title == "" {
			t.Columns[i].Title = "%"
		}
	}
	return t
}

// opening is what every page begins with: the verdict and its size, the values, the causes, what was compared, and what
// limits the answer.
func opening(c *comparison.Comparison) []doc.Block {
	list := append([]doc.Block{doc.Heading{Level: 1, ID: "verdict", Spans: verdictLine(c)}}, answerBlocks(c)...)
	return append(append(list, doc.P(sides(c)...)), reasons(c)...)
}

// shows reports whether numbers of both sides may stand beside each other: those of different work or of different
// machines say nothing.
func shows(c *comparison.Comparison) bool { return c.Comparable || c.FirstRun() || c.Identical }

func noteKind(v comparison.Verdict) doc.NoteKind {
	switch v {
	case comparison.Fail, comparison.Error:
		return doc.Danger
	case comparison.Warn, comparison.Inconclusive:
		return doc.Caution
	case comparison.Pass:
	}
	return doc.Info
}

// tiles are the first metrics with their changes.
func tiles(c *comparison.Comparison) doc.Tiles {
	t := doc.Tiles{Slim: true}
	if !shows(c) {
		return t
	}
	kinds := severalKinds(c)
	rows := rowsToShow(c, maxPrimary)
	for i := range rows {
		r := &rows[i]
		label := r.Metric
		if kinds && r.Kind != "" {
			label += " " + r.Kind
		}
		value := format(r.Head, r.Unit)
		if r.Ratio != nil {
			value = unit.Change(comparison.Value(r.Ratio) - 1)
		}
		t.Items = append(t.Items, doc.Tile{Label: label, Value: doc.Spans(doc.Text(value).With(classTone(r.Class))),
			Detail: doc.Spans(
				doc.Text(format(r.Base, r.Unit) + " → " + format(r.Head, r.Unit) + ", " + string(r.Class)))})
	}
	return t
}
