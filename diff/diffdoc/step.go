package diffdoc

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/stacks"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Bounds of the drawing of a step.
const (
	drawnJoins   = 150
	drawnStreams = 8 // rows of a side; other streams share the last one
	labelledRows = 5
	leastLabel   = 0.004 // of the longer unit: smallest change that is labelled
	leastDrawn   = 0.001 // likewise, that is drawn: smaller ones vary from step to step
)

// stepFigure draws the mean unit of both sides below each other on one time axis: kernels in the colours of their
// categories, lines between paired ones, idle time by cause, and in red where only the head waits longer, in green
// where it waits less.
func stepFigure(c *comparison.Comparison) doc.Timeline {
	s := c.Step
	if s == nil || !c.Comparable || s.Delta == 0 && s.Idle == 0 {
		return doc.Timeline{}
	}
	t := doc.Timeline{ID: "step", Unit: report.Nanoseconds, Length: max(s.Base, s.Head),
		Title: "Mean of " + wording.Count(s.BaseUnits, "unit") + " and of " +
			unit.Int(s.HeadUnits) + ", GPU " + strconv.FormatInt(s.Device, 10)}
	shown := shownNames(c)
	base := doc.Lane{Title: "base, " + unit.Format(s.Base, report.Nanoseconds), Rows: 1}
	head := doc.Lane{Title: "head, " + unit.Format(s.Head, report.Nanoseconds), Rows: 1}
	var joins doc.Lane
	every := max(1, (len(s.Rows)-1)/drawnJoins+1)
	streams := lists.Most(s.Rows, func(x comparison.StepRow) int { return x.Stream + 1 })
	if base.Rows, head.Rows = min(streams, drawnStreams), min(streams, drawnStreams); streams > 1 {
		base.Title += ": a row for each of " + strconv.Itoa(streams) + " streams"
		head.Title += ", likewise"
	}
	for i, r := range s.Rows {
		if r.Kind == comparison.RowEnd || r.Kind == comparison.RowRest {
			continue
		}
		add := func(l *doc.Lane, name *int, position *int64, start, kernel, hidden float64) {
			if r.Kind != comparison.RowFolded { // concurrent work is drawn in the row of its stream
				kernel += hidden
			}
			if position != nil && kernel > 0 {
				l.Marks = append(l.Marks, stepMark(&r, shown(name), *position, start, kernel))
			}
		}
		add(&base, r.Name, r.BasePosition, r.BaseStart, r.BaseKernel, r.BaseHidden)
		add(&head, cmp.Or(r.HeadName, r.Name), r.HeadPosition, r.HeadStart, r.HeadKernel, r.HeadHidden)
		if r.BasePosition != nil && r.HeadPosition != nil && i%every == 0 {
			joins.Joins = append(joins.Joins, doc.Join{From: r.BaseStart, To: r.HeadStart})
		}
	}
	t.Lanes = append(t.Lanes, base)
	if len(joins.Joins) > 0 {
		t.Lanes = append(t.Lanes, joins)
	}
	t.Lanes = append(t.Lanes, head)
	if !moved(c) { // differences are noise, and would be drawn at full height
		return t
	}
	t.Lanes = append(t.Lanes, changeLane(s, t.Length))
	t.Note = doc.Spans("Below: idle time that only the head has, in ", doc.Text("red").With(doc.Bad),
		"; that it saved, in ", doc.Text("green").With(doc.Good),
		". Idle time changed by "+delta(s.Idle)+": "+delta(s.Systematic)+" in every step (medians by position), "+delta(s.Sporadic)+
			" in single steps. Less than "+unit.Percent(leastDrawn)+" of the step is not drawn.")
	return t
}

func delta(ns float64) string { return unit.Delta(ns, report.Nanoseconds) }

func stepMark(r *comparison.StepRow, name string, position int64, start, length float64) doc.Mark {
	m := doc.Mark{Start: start, Length: length, Row: min(r.Stream, drawnStreams-1), Name: "#" +
		strconv.FormatInt(position, 10) + " " + name,
		Colour: r.Category, Text: "Δ " + delta(r.HeadKernel-r.BaseKernel)}
	switch r.Kind {
	case comparison.RowPaired:
	case comparison.RowFolded:
		m.Name = unit.Int(r.Positions) + " kernels from #" + strconv.FormatInt(position, 10)
	default:
		m.Text = r.Kind
	}
	return m
}

// changeLane draws the change of the gap before each kernel, at its place in the head; the largest are labelled.
func changeLane(s *comparison.Step, length float64) doc.Lane {
	l := doc.Lane{Title: "idle: head less base", Rows: 1}
	change := func(i int) float64 { return s.Rows[i].HeadGap - s.Rows[i].BaseGap }
	order := lists.Indexes[int](len(s.Rows))
	labels := map[int]string{}
	for _, i := range largestChanges(order, labelledRows, change) {
		if math.Abs(change(i)) >= leastLabel*length {
			labels[i] = changeWords(s, i, change(i))
		}
	}
	for i, r := range s.Rows {
		d := change(i)
		if math.Abs(d) < leastDrawn*length || r.Kind == comparison.RowRest {
			continue
		}
		m := doc.Mark{Start: max(r.HeadStart-max(d, 0), 0), Length: math.Abs(d), Colour: "bad",
			Name: "idle before " + rowName(s, i),
			Text: changeWords(s, i, d), Label: labels[i]}
		if r.HeadPosition == nil {
			m.Start = min(r.BaseStart, length-m.Length)
		}
		if r.Kind == comparison.RowEnd {
			m.Start = max(min(r.HeadStart, length-m.Length), 0)
		}
		if d < 0 {
			m.Colour = "good"
		}
		l.Marks = append(l.Marks, m)
	}
	return l
}

func rowName(s *comparison.Step, i int) string {
	switch r := &s.Rows[i]; {
	case r.Kind == comparison.RowEnd:
		return "the next step"
	case r.BasePosition != nil:
		return "#" + strconv.FormatInt(comparison.Value(r.BasePosition), 10)
	default:
		return "#" + strconv.FormatInt(comparison.Value(r.HeadPosition), 10) + " (added)"
	}
}

// changeWords says how much of a change is in every step, and how much in hiccups.
func changeWords(s *comparison.Step, i int, d float64) string {
	r := &s.Rows[i]
	text := delta(d) + " before " + rowName(s, i)
	if r.Cause != "" {
		text += ", " + r.Cause
	}
	list, of := s.HeadHiccups, ""
	if d < 0 {
		list, of = s.BaseHiccups, " of base"
	}
	n := lists.Count(list, func(h comparison.Hiccup) bool { return h.Row == i && h.Part == comparison.PartGap })
	switch {
	case math.Abs(r.GapMedian) >= 0.8*math.Abs(d):
		return text + ", in every step"
	case n > 0:
		return text + ": " + delta(r.GapMedian) + " in every step, the rest in " + wording.Count(n, "hiccup") + of
	}
	return text + ": " + delta(r.GapMedian) + " in every step"
}

// stepTable lists the positions with the largest changes, largest first.
func stepTable(c *comparison.Comparison, most int) doc.Table {
	s := c.Step
	t := doc.Table{ID: "step", Caption: doc.Spans("Positions with most change"), Columns: doc.Cols(">#", "Kernel", ">Δ",
		">Gap before, base", ">Gap, head", ">Δ in every step", "Mostly", ">+Kernel, base", ">+Kernel, head")}
	order := lists.Where(len(s.Rows), func(i int) bool { return s.Rows[i].Delta != 0 })
	order = largestChanges(order, len(order), func(i int) float64 { return s.Rows[i].Delta })
	left := order[min(len(order), most):]
	shown := shownNames(c)
	ns := func(v float64) string { return unit.Format(v, report.Nanoseconds) }
	for _, i := range order[:min(len(order), most)] {
		r := &s.Rows[i]
		var name []doc.Span
		switch r.Kind {
		case comparison.RowEnd:
			name = doc.Spans("(until the next unit)")
		case comparison.RowRest:
			name = doc.Spans("(other units' kernels)")
		case comparison.RowFolded:
			name = doc.Spans(wording.Count(r.Positions, "kernel") + " " + r.Category)
		default:
			name = doc.Spans(doc.Name(shown(r.Name)))
			if r.HeadName != nil {
				name = append(name, doc.Text(" → "), doc.Name(shown(r.HeadName)))
			}
			if r.Kind != comparison.RowPaired {
				name = append(name, doc.Text(" ("+r.Kind+")"))
			}
		}
		var number any
		if r.BasePosition != nil || r.HeadPosition != nil {
			number = strings.TrimSuffix(strings.TrimPrefix(rowName(s, i), "#"), " (added)")
		}
		t.Row(number, name, delta(r.Delta), ns(r.BaseGap), ns(r.HeadGap), delta(r.GapMedian+r.KernelMedian), r.Cause,
			ns(r.BaseKernel), ns(r.HeadKernel))
	}
	if len(left) > 0 {
		sum := lists.Sum(left, func(i int) float64 { return s.Rows[i].Delta })
		t.Last(nil, unit.Int(len(left))+" more positions", delta(sum))
	}
	return t
}

// shownNames looks up the names of the step as tables show them: short ones of kernels that have one.
func shownNames(c *comparison.Comparison) func(n *int) string {
	names := map[string]string{}
	for _, k := range c.Kernels {
		names[comparison.Value(k.BaseName)] = comparison.Value(k.BaseShort)
		names[comparison.Value(k.HeadName)] = comparison.Value(k.HeadShort)
	}
	delete(names, "")
	return func(n *int) string { return cmp.Or(names[c.Step.NameOf(n)], c.Step.NameOf(n)) }
}

// pageRows bounds the positions that the page lists.
const pageRows = 40

// stepBlocks returns the figure and the positions with the largest changes.
func stepBlocks(c *comparison.Comparison) []doc.Block {
	figure, positions := stepFigure(c), doc.Table{}
	if len(figure.Lanes) > 0 && moved(c) {
		positions = stepTable(c, pageRows)
	}
	return []doc.Block{figure, positions, flame(c)}
}

// flame draws both sides' unit by ranges, kernels and idle time: each box is as wide as on the side where it is longer,
// red if the head has more of it and green if it has less.
func flame(c *comparison.Comparison) doc.Chart {
	s := c.Step
	if s == nil || !c.Comparable || len(s.Tree) < 2 {
		return doc.Chart{}
	}
	boxes := make([]stacks.Box, len(s.Tree))
	for i, b := range s.Tree {
		boxes[i] = stacks.Box{Parent: b.Parent, Kind: b.Kind, Category: b.Category, Boxes: b.Boxes, Base: b.Base,
			Head: b.Head}
	}
	depth, start, width := stacks.Places(boxes)
	chart := doc.Chart{ID: "step-flame", Title: "The step by ranges and kernels: red is more, green is less", Kind: "flame",
		Unit: report.Nanoseconds}
	shown := shownNames(c)
	for i, b := range boxes {
		name := shown(s.Tree[i].Name)
		if s.Tree[i].Name == nil {
			name = b.Words()
		}
		chart.Series = append(chart.Series, doc.Series{Name: name, Category: b.Category,
			Labels: []string{"depth", "start", "width", "base", "head"},
			Values: []float64{float64(depth[i]), start[i], width[i], b.Base, b.Head}})
	}
	chart.Note = "A box is as wide as the side that has more of it, so removed work stays visible. A box that holds others is " +
		"their sum on each side; the whole is one step, " + unit.Format(s.Base, report.Nanoseconds) + " → " +
		unit.Format(s.Head, report.Nanoseconds) + ". Idle time counts for the ranges whose calls launched the next work: there " +
		"the host takes its time."
	return chart
}
