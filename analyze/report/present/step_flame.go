package present

import (
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/stacks"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

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
