package render

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

func formatEdge(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// WriteHTML writes the comparison as one page for a browser, which loads nothing from elsewhere.
func WriteHTML(w io.Writer, c *comparison.Comparison) error {
	title := "explain: " + string(c.Verdict)
	if len(c.Base.Names) > 0 && len(c.Head.Names) > 0 {
		title += ", " + c.Base.Names[0] + " → " + c.Head.Names[0]
	}
	return render.HTML(w, Browser(c), render.HTMLOptions{Title: title})
}

// Browser is the comparison for a browser: the same page with key numbers as tiles, charts, and every row.
func Browser(c *comparison.Comparison) doc.Document {
	var d doc.Document
	d.Add(doc.Heading{Level: 1, ID: "verdict", Spans: verdictLine(c)})
	if c.Cause != "" {
		d.Add(doc.Note{Kind: noteKind(c.Verdict), Blocks: []doc.Block{doc.P(doc.Strong(c.Cause))}})
	}
	if t := tiles(c); len(t.Items) > 0 {
		d.Add(t)
	}
	d.Add(doc.P(sides(c)...))
	d.Add(reasons(c)...)
	d.Add(doc.P(checkedText(c)...))
	part := func(id, title string, blocks ...doc.Block) {
		if len(blocks) > 0 {
			d.Add(doc.H(2, id, title))
			d.Add(blocks...)
		}
	}
	if c.Comparable {
		part("step", "The step, before and after", stepBlocks(c)...)
		part("causes", "Where the change comes from", causeBlocks(c)...)
		if s := structureList(c); len(s) > 1 {
			part("structure", "Structure", s[1:]...)
		}
		part("kernels", "Kernels", kernelBlocks(c)...)
		if t, ok := apiTable(c, false); ok {
			t.Caption = nil
			part("api", "Host calls per unit", t)
		}
	}
	if t, ok := primaryTable(c, c.Primary); ok {
		part("metrics", "Every metric, and how it was decided", t, decisions(c))
	}
	if t, ok := gateTable(c, c.Gates, len(c.Gates)); ok {
		t.Caption = nil
		part("gates", "Gates", t)
	}
	if l := waiverList(c, len(c.Waivers)); len(l) > 1 {
		part("waivers", "Waivers", l[1:]...)
	}
	if t, ok := mixTable(c); ok {
		t.Caption = nil
		part("mix", "Mix of units", t)
	}
	if t, ok := unjudgedTable(c); ok {
		part("unjudged", "Tokens, and time outside the units", t)
	}
	if len(c.Residue) > 0 {
		part("residue", "What differs and was not compared", residue(c, len(c.Residue))...)
	}
	return d
}

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
	var t doc.Tiles
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
			value = unit.Change(*r.Ratio - 1)
		}
		t.Items = append(t.Items, doc.Tile{Label: label, Value: doc.Spans(doc.Text(value).With(classTone(r.Class))),
			Detail: doc.Spans(
				doc.Text(format(r.Base, r.Unit) + " → " + format(r.Head, r.Unit) + ", " + string(r.Class)))})
	}
	return t
}

// causeBlocks are the attribution as drawings and as a table.
func causeBlocks(c *comparison.Comparison) []doc.Block {
	var blocks []doc.Block
	if chart, ok := waterfall(c); ok {
		blocks = append(blocks, chart)
	}
	if chart, ok := classes(c); ok {
		blocks = append(blocks, chart)
	}
	if chart, ok := distribution(c); ok {
		blocks = append(blocks, chart)
	}
	if t, ok := attributionTable(c, len(c.Attribution.Rows), true); ok {
		t.Caption = nil
		blocks = append(blocks, t, doc.P(doc.Text(attributionText(c)).With(doc.Muted)))
	}
	return blocks
}

// waterfallParts bounds the bars between the two totals.
const waterfallParts = 14

// waterfall leads from the base's unit to the head's by categories of kernels, exposed copies and causes of idle time,
// which sum to the change. Small parts are added up.
func waterfall(c *comparison.Comparison) (doc.Chart, bool) {
	a := &c.Attribution
	var parts []comparison.AttributionRow
	for _, r := range a.Rows {
		switch {
		case r.Kind == "category", r.Kind == "idle_cause", r.Kind == "class" && r.ID == "exposed_copy":
			parts = append(parts, r)
		}
	}
	if len(parts) == 0 {
		return doc.Chart{}, false
	}
	slices.SortStableFunc(parts,
		func(x, y comparison.AttributionRow) int { return cmp.Compare(math.Abs(y.Delta), math.Abs(x.Delta)) })
	s := doc.Series{Name: "mean " + a.Metric, Labels: []string{"base"}, Values: []float64{a.Base}}
	rest, named := a.TotalDelta, 0
	for _, r := range parts {
		if r.Delta == 0 || named == waterfallParts {
			break
		}
		name := strings.ReplaceAll(r.ID, "_", " ")
		if r.Kind == "idle_cause" {
			name = "idle: " + name
		}
		s.Labels, s.Values = append(s.Labels, name), append(s.Values, r.Delta)
		rest -= r.Delta
		named++
	}
	if named < len(parts) || math.Abs(rest) >= 0.5 { // the residual of the rounding of means is no part
		if math.Abs(rest) >= 0.5 {
			s.Labels, s.Values = append(s.Labels, "others"), append(s.Values, rest)
		}
	}
	s.Labels, s.Values = append(s.Labels, "head"), append(s.Values, a.Head)
	return doc.Chart{ID: "waterfall", Title: "From base to head: what the change of one unit is made of",
		Kind: "waterfall", Unit: report.Nanoseconds, Series: []doc.Series{s}}, true
}

// classes are both sides' units by class.
func classes(c *comparison.Comparison) (doc.Chart, bool) {
	base, head := doc.Series{Name: "base"}, doc.Series{Name: "head"}
	for _, r := range c.Attribution.Rows {
		if r.Kind != "class" {
			continue
		}
		name := strings.ReplaceAll(r.ID, "_", " ")
		base.Labels, base.Values = append(base.Labels, name), append(base.Values, r.Base)
		head.Labels, head.Values = append(head.Labels, name), append(head.Values, r.Head)
	}
	chart := doc.Chart{ID: "classes", Title: "One unit by class", Kind: "stacked", Unit: report.Nanoseconds,
		Series: []doc.Series{base, head}}
	return chart, len(base.Values) > 0
}

// drawnKernels bounds the kernels of the drawing.
const drawnKernels = 12

// kernelBlocks are the kernels with most change, drawn, and all of them as a table.
func kernelBlocks(c *comparison.Comparison) []doc.Block {
	var blocks []doc.Block
	list := make([]*comparison.Kernel, 0, len(c.Kernels))
	for i := range c.Kernels {
		if c.Kernels[i].Delta != 0 {
			list = append(list, &c.Kernels[i])
		}
	}
	slices.SortStableFunc(list,
		func(x, y *comparison.Kernel) int { return cmp.Compare(math.Abs(y.Delta), math.Abs(x.Delta)) })
	base, head := doc.Series{Name: "base"}, doc.Series{Name: "head"}
	for _, k := range list[:min(len(list), drawnKernels)] {
		label := kernelLabel(k)
		base.Labels, base.Values = append(base.Labels, label), append(base.Values, orZero(k.Base))
		head.Labels, head.Values = append(head.Labels, label), append(head.Values, orZero(k.Head))
	}
	if len(base.Values) > 0 {
		blocks = append(
			blocks,
			doc.Chart{ID: "kernel-deltas", Title: "Kernels with most change, time in one unit", Kind: "bar",
				Unit: report.Nanoseconds, Series: []doc.Series{base, head}},
		)
	}
	if t, ok := kernelTable(c, c.Kernels, len(c.Kernels), true); ok {
		t.Caption = nil
		blocks = append(blocks, t)
	}
	return blocks
}

// kernelLabel is a kernel's name, or "A → B" where one replaced the other.
func kernelLabel(k *comparison.Kernel) string {
	switch {
	case k.BaseShort == nil && k.HeadShort == nil:
		return ""
	case k.BaseShort == nil:
		return *k.HeadShort + " (added)"
	case k.HeadShort == nil:
		return *k.BaseShort + " (removed)"
	case *k.BaseShort != *k.HeadShort:
		return *k.BaseShort + " → " + *k.HeadShort
	}
	return *k.BaseShort
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// distribution lays the times of both sides' units over each other.
func distribution(c *comparison.Comparison) (doc.Chart, bool) {
	x := &c.Distribution
	if len(x.Edges) < 2 {
		return doc.Chart{}, false
	}
	series := func(name string, counts []int64) doc.Series {
		s := doc.Series{Name: name}
		for i, n := range counts {
			s.Labels, s.Values = append(s.Labels, formatEdge(x.Edges[i])), append(s.Values, float64(n))
		}
		return s
	}
	return doc.Chart{ID: "distribution", Title: "Times of single units, as shares of each side",
		Kind: "histogram", Unit: report.Count, XUnit: report.Nanoseconds,
		Series: []doc.Series{series("base", x.Base), series("head", x.Head)}}, true
}
