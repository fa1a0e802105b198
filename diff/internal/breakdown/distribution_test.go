package breakdown

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// capture is one of which only the name is asked.
func capture() *side.Capture {
	return &side.Capture{Index: &report.Index{Report: &report.Report{Trace: report.Provenance{Name: "x.sqlite"}}}}
}

// Base: 100 ns 99 times and 500 ns once, head: 200 ns. The slower p99 is 200, so that 40 bins of 2.5 ns lead from 100 to
// 200; the outlier at 500 counts in the last bin.
func TestDistribution(t *testing.T) {
	side := func(times ...float64) *side.Side {
		v := &side.View{C: capture()}
		for _, x := range times {
			v.Units = append(v.Units, side.UnitRow{Time: x})
		}
		return &side.Side{Views: []*side.View{v}}
	}
	base := append(slices.Repeat([]float64{100}, 99), 500)
	d := Distribution(side(base...), side(slices.Repeat([]float64{200}, 10)...))
	if len(d.Edges) != 40 || d.Edges[0] != 100 || d.Edges[1] != 103 || d.Edges[39] != 198 {
		t.Fatalf("edges %v", d.Edges)
	}
	if d.Base[0] != 99 || d.Base[39] != 1 || d.Head[39] != 10 {
		t.Errorf("base %v, head %v", d.Base, d.Head)
	}
	if len(d.Captures) != 2 || d.Captures[0].Side != "base" || !slices.Equal(d.Captures[0].Times, base) ||
		d.Captures[1].Side != "head" || d.Captures[1].Count != 10 || d.Captures[1].Name != "x.sqlite" {
		t.Errorf("captures %+v", d.Captures)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	d.Base[3] = -1
	if d.Validate() == nil {
		t.Error("a bin of -1 units is valid")
	}
}

// Of 1000 units every third is listed: 334 of them, the first and the last among them.
func TestManyUnitsAreThinnedOut(t *testing.T) {
	v := &side.View{C: capture()}
	for i := range 1000 {
		v.Units = append(v.Units, side.UnitRow{Time: float64(i)})
	}
	got := captureUnits("base", v)
	if got.Count != 1000 || len(got.Times) != 334 || got.Times[1] != 3 || got.Times[333] != 999 {
		t.Errorf("%d of %d: %v", len(got.Times), got.Count, got.Times)
	}
}

// Units of one time have no distribution to draw.
func TestDistributionOfOneTime(t *testing.T) {
	v := &side.View{C: capture(), Units: []side.UnitRow{{Time: 5}, {Time: 5}}}
	s := &side.Side{Views: []*side.View{v}}
	if d := Distribution(s, s); len(d.Edges) != 0 {
		t.Errorf("%v", d)
	}
}
