package diff

import (
	"slices"
	"testing"
)

// Base: 100 ns 99 times and 500 ns once, head: 200 ns. The slower p99 is 200, so that 40 bins of 2.5 ns lead from 100 to
// 200; the outlier at 500 counts in the last bin.
func TestDistribution(t *testing.T) {
	side := func(times ...float64) *side {
		v := &view{}
		for _, x := range times {
			v.units = append(v.units, unitRow{time: x})
		}
		return &side{views: []*view{v}}
	}
	base := append(slices.Repeat([]float64{100}, 99), 500)
	x := &Parts{Sides: &Sides{base: side(base...), head: side(slices.Repeat([]float64{200}, 10)...), c: &Comparison{}}}
	x.distribution()
	d := x.c.Distribution
	if len(d.Edges) != 40 || d.Edges[0] != 100 || d.Edges[1] != 103 || d.Edges[39] != 198 {
		t.Fatalf("edges %v", d.Edges)
	}
	if d.Base[0] != 99 || d.Base[39] != 1 || d.Head[39] != 10 {
		t.Errorf("base %v, head %v", d.Base, d.Head)
	}
	if err := d.validate(); err != nil {
		t.Error(err)
	}
	d.Base[3] = -1
	if d.validate() == nil {
		t.Error("a bin of -1 units is valid")
	}
}

// Units of one time have no distribution to draw.
func TestDistributionOfOneTime(t *testing.T) {
	v := &view{units: []unitRow{{time: 5}, {time: 5}}}
	x := &Parts{Sides: &Sides{base: &side{views: []*view{v}}, head: &side{views: []*view{v}}, c: &Comparison{}}}
	x.distribution()
	if len(x.c.Distribution.Edges) != 0 {
		t.Errorf("%v", x.c.Distribution)
	}
}
