package diffdoc

import (
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/stacks"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

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
	short := shortNames(c)
	for i := range boxes {
		b := &boxes[i]
		name := shownName(s, short, s.Tree[i].Name)
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
