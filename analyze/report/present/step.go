package present

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/stacks"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Bounds of the drawing of a step.
const (
	drawnStreams = 8 // rows of GPU work; the others share one row
	drawnDepth   = 4 // nested ranges
	drawnRanges  = 150
	labelledGaps = 5
	otherKinds   = 2    // besides the main one, over devices and kinds of step
	leastLabel   = 0.01 // of the unit: smallest gap that is labelled
)

// medianStep draws the median unit of the main kind, for the first screen.
func medianStep(v *View) doc.Timeline {
	if steps := v.Unit.Steps; steps != nil && len(steps.List) > 0 {
		for _, u := range steps.List[0].Shown {
			if u.Which == "median" {
				return stepFigure(v, steps.List[0], u, 0)
			}
		}
	}
	return doc.Timeline{}
}

// stepFigures draws, folded, the slowest unit of the main kind (its median one is on the first screen), and the median
// unit of other devices and kinds.
func stepFigures(v *View) []doc.Block {
	if v.Unit.Steps == nil {
		return nil
	}
	var list, fold []doc.Block
	for i, k := range v.Unit.Steps.List {
		for _, u := range k.Shown {
			switch median := u.Which == "median"; {
			case i == 0 && !median:
				list = append(list, stepFigure(v, k, u, i))
			case i > 0 && median && len(fold) < otherKinds:
				fold = append(fold, stepFigure(v, k, u, i))
			}
		}
	}
	return append(append(list, doc.Fold("", "Other GPUs and kinds of step", fold...)), stepFlame(v)...)
}

// stepFigure draws one unit: ranges and calls of the launching thread, GPU work by stream, and gaps by cause.
func stepFigure(v *View, k *report.UnitStep, u *report.UnitShown, number int) doc.Timeline {
	steps := v.Unit.Steps
	work, calls, ranges, gaps := u.Events()
	title := "The median step"
	if u.Which != "median" {
		title = "The slowest step"
	}
	title += " on GPU " + strconv.FormatInt(k.Device, 10) + ": number " + strconv.FormatInt(u.Number, 10) + ", " +
		unit.Format(float64(u.Duration), report.Nanoseconds)
	g := lists.Find(v.Unit.Groups, func(g *report.UnitGroup) bool { return g.ID == k.Group })
	if number > 0 && len(v.Unit.Groups) > 1 && g != nil {
		title += ", " + g.Phase
	}
	t := doc.Timeline{ID: u.Which + "-" + strconv.Itoa(number), Title: title, Unit: report.Nanoseconds,
		Length: float64(u.Duration)}
	host := "host thread"
	if u.Thread != "" {
		host += " " + u.Thread
	}
	t.Lanes = []doc.Lane{rangeLane(steps, ranges, host), callLane(steps, calls, host)}
	for i := range u.Others {
		t.Lanes = append(t.Lanes, callLane(steps, u.Others[i].Events(), "host thread "+u.Others[i].Thread))
	}
	t.Lanes = append(t.Lanes, streamLanes(v, steps, work)...)
	t.Lanes = append(t.Lanes, gapLane(gaps, float64(u.Duration)), pathLane(u))
	t.Lanes = slices.DeleteFunc(t.Lanes, func(l doc.Lane) bool { return len(l.Marks) == 0 })
	if u.LeftOut > 0 {
		t.Note = doc.Spans(unit.Int(u.LeftOut) + " events are left out: there are too many.")
	}
	return t
}

func stepMark(steps *report.UnitSteps, e report.UnitEvent) doc.Mark {
	category := steps.Categories[e.Name]
	if category == "call" {
		category = "" // neither a launch nor a wait
	}
	return doc.Mark{Start: float64(e.Start), Length: float64(e.Duration), Name: steps.Names[e.Name], Colour: category}
}

// callLane draws the calls of a thread.
func callLane(steps *report.UnitSteps, calls []report.UnitEvent, host string) doc.Lane {
	marks := lists.Map(calls, func(e report.UnitEvent) doc.Mark { return stepMark(steps, e) })
	return doc.Lane{Title: "calls of the " + host, Rows: 1, Marks: marks}
}

// rangeLane draws the NVTX ranges of the thread, nested ones below; only the longest if there are many.
func rangeLane(steps *report.UnitSteps, ranges []report.UnitEvent, host string) doc.Lane {
	list := slices.DeleteFunc(slices.Clone(ranges), func(e report.UnitEvent) bool { return e.Lane >= drawnDepth })
	if len(list) > drawnRanges {
		lists.Sort(list, func(a, b report.UnitEvent) int { return cmp.Compare(b.Duration, a.Duration) })
		list = list[:drawnRanges]
		lists.Sort(list, func(a, b report.UnitEvent) int { return cmp.Compare(a.Start, b.Start) })
	}
	l := doc.Lane{Title: "NVTX ranges of the " + host, Rows: 1}
	for _, e := range list {
		l.Rows = max(l.Rows, int(e.Lane)+1)
		l.Marks = append(l.Marks, doc.Mark{Start: float64(e.Start), Length: float64(e.Duration), Row: int(e.Lane),
			Name: steps.Names[e.Name]})
	}
	return l
}

// streamLanes draws a row per stream, the one with the most work first, and one row for the rest.
func streamLanes(v *View, steps *report.UnitSteps, work []report.UnitEvent) (lanes []doc.Lane) {
	streams := lists.Groups(work, func(e report.UnitEvent) int64 { return e.Lane })
	busy := func(list []report.UnitEvent) int64 {
		return lists.Sum(list, func(e report.UnitEvent) int64 { return e.Duration })
	}
	lists.Sort(streams, func(a, b []report.UnitEvent) int { return cmp.Compare(busy(b), busy(a)) })
	drawn := map[int64]bool{}
	for i, list := range streams[:min(len(streams), drawnStreams)] {
		stream := list[0].Lane
		title := "stream " + strconv.FormatInt(stream, 10)
		if more := len(streams) - i; i == drawnStreams-1 && more > 1 {
			title = unit.Int(more) + " more streams"
			list = lists.Filter(work, func(e report.UnitEvent) bool { return !drawn[e.Lane] })
		} else if stream < 0 {
			title = "GPU work"
		}
		drawn[stream] = true
		lanes = append(lanes, doc.Lane{Title: title, Rows: 1, Marks: lists.Map(list, func(e report.UnitEvent) doc.Mark {
			m := stepMark(steps, e)
			if steps.Categories[e.Name] != "copy" {
				m.Name = v.names.span(m.Name).Text
			}
			return m
		})})
	}
	return lanes
}

// gapLane draws the time in which nothing ran on the device, by cause; the longest gaps are labelled.
func gapLane(gaps []report.UnitGap, length float64) doc.Lane {
	order := lists.Indexes[int](len(gaps))
	lists.Sort(order, func(a, b int) int { return cmp.Compare(gaps[b].Duration(), gaps[a].Duration()) })
	labelled := map[int]bool{}
	for _, i := range order[:min(len(order), labelledGaps)] {
		labelled[i] = float64(gaps[i].Duration()) >= leastLabel*length
	}
	l := doc.Lane{Title: "GPU idle, by cause", Rows: 1}
	for i, g := range gaps {
		causes := lists.Where(len(g.Causes), func(c int) bool { return g.Causes[c] > 0 })
		parts := lists.Map(causes, func(c int) string {
			return report.StepCauses[c] + " " + unit.Format(float64(g.Causes[c]), report.Nanoseconds)
		})
		main := slices.Index(g.Causes[:], slices.Max(g.Causes[:]))
		at, whole := float64(g.Start), unit.Format(float64(g.Duration()), report.Nanoseconds)
		for _, c := range causes {
			name, ns := report.StepCauses[c], float64(g.Causes[c])
			m := doc.Mark{Start: at, Length: ns, Colour: name, Name: "idle",
				Text: "gap of " + whole + ": " + strings.Join(parts, ", ")}
			if c == main && labelled[i] {
				m.Label = whole + " idle, " + name
			}
			l.Marks = append(l.Marks, m)
			at += ns
		}
	}
	return l
}

// pathLane draws the critical path: what determines the step's time at each moment, from its start to its end.
func pathLane(u *report.UnitShown) doc.Lane {
	l := doc.Lane{Title: "critical path: what the step waits for", Rows: 1}
	at := float64(0)
	for i := 0; i+2 <= len(u.Path); i += 2 {
		name, ns := report.PathParts[u.Path[i]], float64(u.Path[i+1])
		l.Marks = append(l.Marks, doc.Mark{Start: at, Length: ns, Name: name, Colour: name, Text: "on the critical path"})
		at += ns
	}
	return l
}

// Bounds of the flame of a step.
const (
	flameBoxes = 200
	flameShare = 0.0005 // of the step; adjacent boxes narrower than this are merged
)

// stepFlame draws the mean step of the main kind by the ranges around the calls, the kernels, and the idle time and
// copies before them: all of its time, including the host's.
func stepFlame(v *View) []doc.Block {
	steps := v.Unit.Steps
	if steps == nil || len(steps.List) == 0 {
		return nil
	}
	k := steps.List[0]
	list, _ := k.Positions() // validated
	var t stacks.Tree
	n := float64(k.Units)
	add := func(ranges []string, b stacks.Box, ns int64) {
		if ns != 0 {
			t.Add(stacks.Base, ranges, b, float64(ns)/n)
		}
	}
	ranges := map[int][]string{}
	for _, p := range list {
		if _, ok := ranges[p.Inside]; !ok {
			ranges[p.Inside] = steps.Stack(p.Inside)
		}
		in := ranges[p.Inside]
		for c, ns := range p.Gap {
			add(in, stacks.Box{Kind: stacks.Idle, Category: report.StepCauses[c]}, ns)
		}
		add(in, stacks.Box{Kind: stacks.Copies, Category: "copy"}, p.Copies)
		add(in, stacks.Box{Kind: stacks.Kernel, Name: steps.Names[p.Name], Category: steps.Categories[p.Name]}, p.Alone)
	}
	add(nil, stacks.Box{Kind: stacks.End, Category: "idle"}, k.End.Copies+lists.Total(k.End.Gap))
	add(nil, stacks.Box{Kind: stacks.Rest, Category: "unknown"}, k.Rest)
	boxes := t.Boxes(flameBoxes, flameShare)
	if len(boxes) < 2 {
		return nil
	}
	depth, start, width := stacks.Places(boxes)
	own := make([]float64, len(boxes))
	for i := range boxes {
		own[i] += width[i]
		if p := boxes[i].Parent; p >= 0 {
			own[p] -= width[i]
		}
	}
	for i := range own {
		if own[i] < 0.5/n { // each part has whole ns over all units: this is what rounding left
			own[i] = 0
		}
	}
	c := doc.Chart{ID: "step-flame", Title: "The mean step by ranges, kernels and idle time: " +
		unit.Format(boxes[0].Base, report.Nanoseconds), Kind: "flame", Unit: report.Nanoseconds}
	for i, b := range boxes {
		s := doc.Series{Name: b.Words(), Category: b.Category, Labels: []string{"depth", "start", "total", "self"},
			Values: []float64{float64(depth[i]), start[i], width[i], own[i]}}
		switch b.Kind {
		case stacks.Kernel:
			s.Name = v.names.span(b.Name).Text
		case stacks.Range:
			s.Name = b.Name
		}
		c.Series = append(c.Series, s)
	}
	return []doc.Block{c, doc.P(doc.Text("Idle time counts for the ranges whose calls launched the next work: there " +
		"the host spends its time.").With(doc.Muted))}
}
