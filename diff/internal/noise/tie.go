package noise

import (
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/diff/internal/infer"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Marks are what a capture says of the place of its units, in the order in which they ran. Zero values are not known.
type Marks struct {
	Numbers  []int64  // of the markers, one per unit
	Work     []string // what each unit runs: its signature, or its kernels and launches
	Prologue string   // what ran before the first unit
	Kernels  int64    // of the whole capture
	Units    int64    // of this kind, of which Work may be a sample
}

// tiedShare of the units must run the same work on both sides for units to be paired by their index.
const tiedShare = 0.99

// TieOf says what ties unit i of base to unit i of head: equal numbers of markers; or the same work at 99 % of the
// places, and the same start. Captures start alike if they have the same prologue, or if both hold the whole program:
// as many units and as many kernels, which captures that a clock ended hardly ever do.
func TieOf(base, head Marks) infer.Tie {
	n := min(len(base.Work), len(head.Work))
	alike := 0
	for i := range n {
		if base.Work[i] == head.Work[i] {
			alike++
		}
	}
	if n < infer.MinUnits || float64(alike) < tiedShare*float64(n) {
		return infer.TieNone
	}
	if m := min(len(base.Numbers), len(head.Numbers)); m >= n && slices.Equal(base.Numbers[:n], head.Numbers[:n]) {
		return infer.TieNumber
	}
	whole := base.Kernels > 0 && base.Kernels == head.Kernels && base.Units == head.Units
	if whole || base.Prologue != "" && base.Prologue == head.Prologue {
		return infer.TieStart
	}
	return infer.TieNone
}

// tie of the units that are compared, with one capture a side.
func (x *Decider) tie() infer.Tie {
	if len(x.Base.Views) != 1 || len(x.Head.Views) != 1 || x.Base.Units() != x.Head.Units() {
		return infer.TieNone // what reports list is then not the same sample of the units
	}
	return TieOf(marksOf(x.Base.Views[0]), marksOf(x.Head.Views[0]))
}

func marksOf(v *side.View) Marks {
	m := Marks{Units: v.Time.N}
	for i := range v.Units {
		u := &v.Units[i]
		m.Work = append(m.Work, strconv.FormatFloat(u.Kernels, 'g', -1, 64)+"/"+strconv.FormatFloat(u.Launches, 'g', -1, 64))
	}
	if n, ok := v.C.Value("kernel.count", nil); ok {
		m.Kernels = int64(n)
	}
	return m
}
