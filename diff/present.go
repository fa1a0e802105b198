package diff

import (
	"io"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// The voices of a comparison. They select and lay out, and compute nothing.

// WriteText writes the comparison for a terminal of 100 columns.
func WriteText(w io.Writer, c *Comparison, o render.TerminalOptions) error {
	return render.Terminal(w, c.Terminal(), o)
}

// WriteMarkdown writes the comparison as GitHub-flavoured markdown: the verdict and its cause first, details folded.
func WriteMarkdown(w io.Writer, c *Comparison, o render.MarkdownOptions) error {
	return render.Markdown(w, c.Page(), o)
}

// Bounds of the terminal's tables.
const (
	maxPrimary    = 6
	maxMeasuredUp = 16 // where numbers are all there is
	termKernelMax = 8
	termGates     = 6
	termResidue   = 4
	termText      = 330 // characters of a sentence
)

// Terminal is what the command prints.
func (c *Comparison) Terminal() doc.Document {
	var d doc.Document
	d.Add(doc.Heading{Level: 1, Spans: c.verdictLine()})
	if c.Cause != "" {
		d.Add(doc.P(doc.Text(clip(c.Cause))))
	}
	d.Add(doc.P(c.sides()...))
	d.Add(c.reasons()...)
	add := func(t doc.Table, ok bool) {
		if ok {
			d.Add(t)
		}
	}
	add(c.primaryTable(c.Primary[:min(len(c.Primary), c.mostPrimary())]))
	if c.Comparable { // the parts of different work explain nothing
		if c.moved() {
			add(c.attributionTable(termKernelMax, false))
		}
		add(c.kernelTable(c.changedKernels(), termKernelMax, false))
		add(c.apiTable(true))
		d.Add(c.structureList()...)
	}
	d.Add(c.gateList(termGates)...)
	d.Add(c.waiverList(termGates)...)
	d.Add(c.residue(termResidue)...)
	d.Add(doc.P(c.checked()...))
	return d
}

// mostPrimary is how many rows the first table shows.
func (c *Comparison) mostPrimary() int {
	if c.Depth == DepthEvidence {
		return maxMeasuredUp
	}
	return maxPrimary
}

// Page is the whole comparison, for a pull request.
func (c *Comparison) Page() doc.Document {
	var d doc.Document
	d.Add(doc.Heading{Level: 1, ID: "verdict", Spans: c.verdictLine()})
	if c.Cause != "" {
		d.Add(doc.P(doc.Strong(c.Cause)))
	}
	d.Add(c.reasons()...)
	if t, ok := c.primaryTable(c.Primary[:min(len(c.Primary), c.mostPrimary())]); ok {
		d.Add(t)
	}
	d.Add(doc.P(c.sides()...))
	if c.Comparable {
		if t, ok := c.attributionTable(termKernelMax, true); ok {
			d.Add(doc.H(2, "causes", "Where the change comes from"))
			t.Caption = nil
			d.Add(t, doc.P(doc.Text(c.attributionText()).With(doc.Muted)))
		}
		d.Add(c.structureList()...)
		if t, ok := c.kernelTable(c.changedKernels(), termKernelMax, false); ok {
			d.Add(t)
		}
		if t, ok := c.apiTable(true); ok {
			d.Add(t)
		}
	}
	if t, ok := c.gateTable(c.noticedGates(), len(c.Gates)); ok {
		t.Caption = nil
		d.Add(doc.H(2, "gates", "Gates that did not pass"), t)
	}
	d.Add(c.waiverList(len(c.Waivers))...)
	d.Add(doc.P(c.checked()...))
	d.Add(c.details()...)
	return d
}

// details are the folded parts.
func (c *Comparison) details() []doc.Block {
	var list []doc.Block
	fold := func(summary string, blocks ...doc.Block) {
		if len(blocks) > 0 {
			list = append(list, doc.Details{Summary: doc.Spans(doc.Text(summary)), Blocks: blocks})
		}
	}
	if t, ok := c.kernelTable(c.Kernels, len(c.Kernels), true); ok {
		t.Caption = nil
		fold("All kernels ("+unit.Int(c.Counts.KernelsCompared)+" compared, "+unit.Int(c.Counts.KernelsPaired)+" paired)", t)
	}
	if t, ok := c.apiTable(false); ok {
		t.Caption = nil
		fold("All host calls per unit", t)
	}
	if t, ok := c.primaryTable(c.Primary); ok {
		blocks := []doc.Block{c.decisions()}
		if len(c.Primary) > c.mostPrimary() {
			blocks = []doc.Block{t, c.decisions()}
		}
		fold("How each metric was decided", blocks...)
	}
	if t, ok := c.gateTable(c.Gates, len(c.Gates)); ok {
		t.Caption = nil
		fold(count(int64(len(c.Gates)), "gate"), t)
	}
	if t, ok := c.mixTable(); ok {
		fold("Mix of units", t)
	}
	if len(c.Residue) > 0 {
		fold("What differs and was not compared", c.residue(len(c.Residue))...)
	}
	return list
}

func verdictTone(v Verdict) doc.Tone {
	switch v {
	case Pass:
		return doc.Good
	case Warn, Inconclusive:
		return doc.Warn
	case Fail, Error:
		return doc.Bad
	}
	return doc.Plain
}

func classTone(c Class) doc.Tone {
	switch c {
	case Improved:
		return doc.Good
	case Regressed:
		return doc.Bad
	case Unsettled:
		return doc.Warn
	case Same:
		return doc.Muted
	case Added, Removed:
	}
	return doc.Plain
}

// verdictLine is the verdict with the number it stands on.
func (c *Comparison) verdictLine() []doc.Span {
	spans := doc.Spans(doc.Strong(strings.ToUpper(string(c.Verdict))).With(verdictTone(c.Verdict)))
	switch {
	case c.FirstRun():
		return append(spans, doc.Text(" first run, no baseline"))
	case !c.Comparable:
		return append(spans, doc.Text(" not comparable"))
	}
	row, gate := c.headline()
	switch {
	case gate != nil:
		spans = append(append(spans, doc.Text(" ")), c.gateMetric(gate)...)
		return append(spans, doc.Text(": "+clip(gate.Reason)))
	case row == nil:
		return spans
	case row.Delta != nil && *row.Delta != 0:
		return append(spans, doc.Text(" "+row.Metric+" "+changeText(row)+", "+unit.Format(*row.Base, row.Unit)+" → "+unit.Format(*row.Head, row.Unit)))
	}
	return append(spans, doc.Text(" "+row.Metric+" unchanged"))
}

// headline is what the verdict stands on: the row that the worst gate judged, or that gate where it judged another number.
func (c *Comparison) headline() (*Row, *Gate) {
	for _, v := range []Verdict{Fail, Inconclusive} {
		var first *Gate
		for i := range c.Gates {
			g := &c.Gates[i]
			if g.Verdict != v || g.Level != LevelError {
				continue
			}
			for k := range c.Primary {
				if row := &c.Primary[k]; row.Metric == g.Metric && row.Labels.String() == g.Labels.String() && row.Base != nil && row.Head != nil && row.Delta != nil && *row.Delta != 0 {
					return row, nil
				}
			}
			if first == nil {
				first = g
			}
		}
		if first != nil {
			return nil, first
		}
	}
	if len(c.Primary) > 0 && c.Primary[0].Base != nil && c.Primary[0].Head != nil {
		return &c.Primary[0], nil
	}
	return nil, nil
}

// changeText is a relative change, or an absolute one where there is nothing to divide by.
func changeText(r *Row) string {
	if r.Ratio != nil && r.Unit != report.Ratio {
		return unit.Change(*r.Ratio - 1)
	}
	if r.Delta != nil {
		return unit.Delta(*r.Delta, r.Unit)
	}
	return noValue
}

// noValue stands in a cell whose value is not known.
const noValue = "–"

func format(v *float64, u string) string {
	if v == nil {
		return noValue
	}
	return unit.Format(*v, u)
}

// sides names what was compared.
func (c *Comparison) sides() []doc.Span {
	var spans []doc.Span
	names := func(s Side) {
		for i, n := range s.Names {
			if i > 0 {
				spans = append(spans, doc.Text(", "))
			}
			spans = append(spans, doc.Name(n))
		}
	}
	if !c.FirstRun() {
		names(c.Base)
		spans = append(spans, doc.Text(" → "))
	}
	names(c.Head)
	if c.FirstRun() {
		return append(spans, doc.Text(" · "+count(int64(c.Head.Captures), "capture")))
	}
	if c.Unit.Kind != "" && c.Unit.Kind != "none" {
		spans = append(spans, doc.Text(" · per unit of work ("+c.Unit.Kind))
		if c.Unit.Name != "" {
			spans = append(spans, doc.Text(" "), doc.Name(c.Unit.Name))
		}
		if c.Unit.Phase != "" {
			spans = append(spans, doc.Text(", "), doc.Name(c.Unit.Phase))
		}
		if c.Unit.Batch != nil {
			spans = append(spans, doc.Text(", batch "+unit.Int(*c.Unit.Batch)))
		}
		if c.Unit.Tokens != nil {
			spans = append(spans, doc.Text(", "+unit.Int(*c.Unit.Tokens)+" prompt tokens"))
		}
		spans = append(spans, doc.Text("): "+unit.Int(c.Unit.BaseN)+" → "+count(c.Unit.HeadN, "unit")))
	}
	if c.unreplicated() {
		spans = append(spans, doc.Text(" · unreplicated: one capture on a side"))
	} else {
		spans = append(spans, doc.Text(" · "+strconv.Itoa(c.Base.Captures)+" → "+count(int64(c.Head.Captures), "capture")))
	}
	return spans
}

func (c *Comparison) unreplicated() bool { return c.Base.Captures < 2 || c.Head.Captures < 2 }

// reasons say why the sides are not comparable, or not conclusive.
func (c *Comparison) reasons() []doc.Block {
	if len(c.Reasons) == 0 {
		return nil
	}
	note := doc.Note{Kind: doc.Info}
	list := c.Reasons
	if !c.Comparable && !c.Identical && !c.FirstRun() && c.Cause != "" {
		list = list[1:] // the cause says the first one
	}
	for _, r := range list {
		note.Blocks = append(note.Blocks, doc.P(doc.Code(string(r.Code)), doc.Text(": "+r.Text)))
	}
	if !c.Comparable {
		note.Kind = doc.Caution
	}
	if len(note.Blocks) == 0 {
		return nil
	}
	return []doc.Block{note}
}

// moved reports whether the time of a unit changed, so that there is something to split.
func (c *Comparison) moved() bool {
	for i := range c.Primary {
		if r := &c.Primary[i]; strings.HasPrefix(r.Metric, "unit.time") && r.Class != Same {
			return true
		}
	}
	return false
}

// checked says how much was looked at, even when nothing changed.
func (c *Comparison) checked() []doc.Span {
	n := map[Verdict]int64{}
	for i := range c.Gates {
		n[c.Gates[i].Verdict]++
	}
	inconclusive := "inconclusive"
	if !c.Comparable && !c.FirstRun() {
		inconclusive = "not answered, since the sides are not comparable"
	}
	text := count(c.Counts.GatesChecked, "gate") + " checked"
	sep := ": "
	for _, v := range []struct {
		verdict Verdict
		word    string
	}{{Pass, "passed"}, {Warn, "warned"}, {Fail, "failed"}, {Inconclusive, inconclusive}} {
		if n[v.verdict] > 0 {
			text += sep + unit.Int(n[v.verdict]) + " " + v.word
			sep = ", "
			if a := c.accepted(); v.verdict == Pass && a > 0 {
				text += " (" + unit.Int(a) + " by a waiver)"
			}
		}
	}
	if w := c.idleWaivers(); w > 0 {
		text += "; " + count(w, "waiver") + " unused or expired"
	}
	text += ". Compared " + count(c.Counts.MetricsCompared, "metric")
	if c.Counts.KernelsCompared > 0 {
		text += ", " + count(c.Counts.KernelsCompared, "kernel") + " (" + unit.Int(c.Counts.KernelsPaired) + " paired)"
	}
	if c.Counts.UnitsBase > 0 || c.Counts.UnitsHead > 0 {
		text += ", " + unit.Int(c.Counts.UnitsBase) + " → " + count(c.Counts.UnitsHead, "unit")
	}
	text += "."
	return doc.Spans(doc.Text(text))
}

// count writes a number with its noun.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return unit.Int(n) + " " + noun + "s"
}

// clip keeps the start of a long sentence.
func clip(s string) string { return clipTo(s, termText) }

// clipTo keeps at most limit characters.
func clipTo(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if r := []rune(s); len(r) > limit {
		return strings.TrimRight(string(r[:limit-2]), " ,;:.") + " …"
	}
	return s
}
