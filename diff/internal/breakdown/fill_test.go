package breakdown

import (
	"testing"

	"github.com/nsys-llm/explain/diff/internal/side"
)

// TestFilled: work that takes 80 longer fills gaps behind it, also those of the next step, unless the host waited for
// the device before; a host that is faster where no work is late fills nothing.
func TestFilled(t *testing.T) {
	steps := func(gaps, alone []float64, sync int) *side.Sequence {
		var list []side.Position
		for i, name := range []string{"embed", "gemm", "sample"} {
			p := position(name, 0, gaps[i], gaps[i], alone[i])
			if i == sync {
				p.Gap[0], p.Gap[1] = 3, p.Gap[1]-3 // the host returns from its wait
			}
			list = append(list, p)
		}
		return sequence(5, list...)
	}
	work, longer := []float64{100, 500, 50}, []float64{100, 580, 50}
	before := func(gaps ...float64) *side.Sequence { return steps(gaps, work, -1) }
	after := func(gaps ...float64) *side.Sequence { return steps(gaps, longer, -1) }
	for _, x := range []struct {
		what       string
		base, head *side.Sequence
		want       float64
	}{
		{"a gap behind it", before(0, 10, 200), after(0, 10, 120), -80},
		{"a part, the step is longer", before(0, 10, 30), after(0, 10, 0), -30},
		{"in the next step", before(300, 10, 0), after(220, 10, 0), -80},
		{"more than it takes: the host is faster too", before(0, 10, 200), after(0, 10, 20), -80},
		{"after a wait of the host", steps([]float64{0, 10, 200}, work, 2), steps([]float64{0, 10, 120}, longer, 2), 0},
		{"before it, a wait after", steps([]float64{0, 110, 40}, work, 2), steps([]float64{0, 30, 40}, longer, 2), 0},
		{"equal work", before(0, 10, 200), before(0, 10, 120), 0},
		{"longer work and a slower host", before(0, 10, 200), after(0, 10, 290), 0},
	} {
		if got := stepBetween(t, x.base, x.head, nil).Filled; got != x.want {
			t.Errorf("%s: %v, want %v", x.what, got, x.want)
		}
		if got := stepBetween(t, x.head, x.base, nil).Filled; got != -x.want {
			t.Errorf("%s, back: %v, want %v", x.what, got, -x.want)
		}
	}
	// A kernel that only the head runs, 20 after sample, of 60: of the gap of 200 before the next step, 80 are less.
	base, head := steps([]float64{200, 10, 0}, work, -1), steps([]float64{120, 10, 0}, work, -1)
	head.Positions = append(head.Positions, position("log", 0, 20, 20, 60))
	head.Time += 80
	if s := stepBetween(t, base, head, nil); s.Filled != -60 || s.Delta != 0 || s.Idle != -60 {
		t.Errorf("%+v", s)
	}
	if s := stepBetween(t, head, base, nil); s.Filled != 60 {
		t.Errorf("back: %v", s.Filled)
	}
}
