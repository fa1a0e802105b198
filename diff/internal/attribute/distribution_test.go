package attribute

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/match"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Base: 100 ns 99 times and 500 ns once, head: 200 ns. The slower p99 is 200, so that 40 bins of 2.5 ns lead from 100 to
// 200; the outlier at 500 counts in the last bin.
func TestDistribution(t *testing.T) {
	side := func(times ...float64) *side.Side {
		v := &side.View{}
		for _, x := range times {
			v.Units = append(v.Units, side.UnitRow{Time: x})
		}
		return &side.Side{Views: []*side.View{v}}
	}
	base := append(slices.Repeat([]float64{100}, 99), 500)
	x := &Parts{Sides: &match.Sides{Base: side(base...), Head: side(slices.Repeat([]float64{200}, 10)...), C: &comparison.Comparison{}}}
	x.Distribution()
	d := x.C.Distribution
	if len(d.Edges) != 40 || d.Edges[0] != 100 || d.Edges[1] != 103 || d.Edges[39] != 198 {
		t.Fatalf("edges %v", d.Edges)
	}
	if d.Base[0] != 99 || d.Base[39] != 1 || d.Head[39] != 10 {
		t.Errorf("base %v, head %v", d.Base, d.Head)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	d.Base[3] = -1
	if d.Validate() == nil {
		t.Error("a bin of -1 units is valid")
	}
}

// Units of one time have no distribution to draw.
func TestDistributionOfOneTime(t *testing.T) {
	v := &side.View{Units: []side.UnitRow{{Time: 5}, {Time: 5}}}
	x := &Parts{Sides: &match.Sides{Base: &side.Side{Views: []*side.View{v}}, Head: &side.Side{Views: []*side.View{v}}, C: &comparison.Comparison{}}}
	x.Distribution()
	if len(x.C.Distribution.Edges) != 0 {
		t.Errorf("%v", x.C.Distribution)
	}
}
