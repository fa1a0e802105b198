package breakdown

import (
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/stacks"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// tree arranges both sides' units by the ranges around the calls, the kernels, and the idle time and copies before
// them. A kernel of the head takes the place of its pair in the base, whatever its name.
func (s *stepper) tree(of []int32) {
	var t stacks.Tree
	add := func(sd stacks.Side, p *side.Position, name string) {
		for c, ns := range p.Gap {
			if ns != 0 {
				t.Add(sd, p.Ranges, stacks.Box{Kind: stacks.Idle, Category: report.StepCauses[c]}, ns)
			}
		}
		if p.Copies != 0 {
			t.Add(sd, p.Ranges, stacks.Box{Kind: stacks.Copies, Category: "copy"}, p.Copies)
		}
		if p.Alone != 0 {
			t.Add(sd, p.Ranges, stacks.Box{Kind: stacks.Kernel, Name: name, Category: p.Category}, p.Alone)
		}
	}
	last := func(sd stacks.Side, q *side.Sequence) {
		t.Add(sd, nil, stacks.Box{Kind: stacks.End}, q.End.Sum())
		t.Add(sd, nil, stacks.Box{Kind: stacks.Rest}, q.Rest)
	}
	for i := range s.base.Positions {
		add(stacks.Base, &s.base.Positions[i], s.base.Positions[i].Name)
	}
	last(stacks.Base, s.base)
	for k := range s.head.Positions {
		p := s.head.Positions[k]
		name := p.Name
		if i := of[k]; i >= 0 {
			name, p.Category = s.base.Positions[i].Name, s.base.Positions[i].Category
		}
		add(stacks.Head, &p, name)
	}
	last(stacks.Head, s.head)
	for _, b := range t.Boxes(comparison.MaxStepBoxes, leastBox) {
		x := comparison.StepBox{Parent: b.Parent, Kind: b.Kind, Category: b.Category, Boxes: b.Boxes, Base: b.Base,
			Head: b.Head}
		if b.Kind == stacks.Range || b.Kind == stacks.Kernel {
			x.Name = s.name(b.Name)
		}
		s.out.Tree = append(s.out.Tree, x)
	}
}

// leastBox is the share of the unit below which adjacent boxes are joined.
const leastBox = 0.0005
