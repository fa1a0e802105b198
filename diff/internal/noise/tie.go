package noise

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/diff/internal/infer"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Marks are what a capture says of the place of its units, in the order in which they ran. Zero values are not known.
type Marks struct {
	Places   []int64  // of the units among all that ran on the device, from 0
	Work     []string // what each unit runs: its signature, or its kernels and launches
	Prologue string   // units before the first that run what none of Work does
	Kernels  int64    // of the whole capture
	Units    int64    // of this kind, of which Work may be a sample
}

// tiedShare of the units must run the same work on both sides for units to be paired by their index.
const tiedShare = 0.99

// tieOf says what ties unit i of base to unit i of head: the same places, the same work at 99 % of them, and the same
// start. Work is the same where it changes from unit to unit alike, whatever the kernels are called. Captures start
// alike if the same units of other work ran before, such as a first step that compiles, or if both hold the whole
// program: as many units and as many kernels, which captures that a clock ended hardly ever do.
func tieOf(base, head Marks) infer.Tie {
	n := min(len(base.Work), len(head.Work))
	places := min(len(base.Places), len(head.Places))
	if n < infer.MinUnits || places > 0 && !slices.Equal(base.Places[:min(n, places)], head.Places[:min(n, places)]) {
		return infer.TieNone
	}
	b, h := pattern(base.Work[:n]), pattern(head.Work[:n])
	alike := 0
	for i := range n {
		if b[i] == h[i] {
			alike++
		}
	}
	whole := base.Kernels > 0 && base.Kernels == head.Kernels && base.Units == head.Units
	if float64(alike) >= tiedShare*float64(n) && (whole || base.Prologue != "" && base.Prologue == head.Prologue) {
		return infer.TieStart
	}
	return infer.TieNone
}

// pattern numbers the work of units in the order in which it first comes up.
func pattern(work []string) []int {
	seen := map[string]int{}
	list := make([]int, len(work))
	for i, w := range work {
		if _, ok := seen[w]; !ok {
			seen[w] = len(seen)
		}
		list[i] = seen[w]
	}
	return list
}

// tie of the units that are compared, with one capture a side.
func (x *Decider) tie() infer.Tie {
	if len(x.Base.Views) != 1 || len(x.Head.Views) != 1 || x.Base.Units() != x.Head.Units() {
		return infer.TieNone // what reports list is then not the same sample of the units
	}
	return tieOf(x.marksOf(x.Base.Views[0]), x.marksOf(x.Head.Views[0]))
}

func (x *Decider) marksOf(v *side.View) Marks {
	if m, ok := x.marks[v]; ok {
		return m
	}
	m := Marks{Units: v.Time.N}
	if n, ok := v.C.Value("kernel.count", nil); ok {
		m.Kernels = int64(n)
	}
	m.series(v)
	if len(m.Work) != len(v.Units) { // the report lists a sample, or is older than the series
		m.Places, m.Work, m.Prologue = nil, nil, ""
		for i := range v.Units {
			u := &v.Units[i]
			m.Work = append(m.Work, strconv.FormatFloat(u.Kernels, 'g', -1, 64)+"/"+strconv.FormatFloat(u.Launches, 'g', -1, 64))
		}
	}
	x.marks[v] = m
	return m
}

// series fills in what the report's list of all units says.
func (m *Marks) series(v *side.View) {
	list, kept := v.Series()
	own := map[string]bool{}
	for i, u := range list {
		if kept[i] {
			m.Places, m.Work = append(m.Places, u.Number), append(m.Work, u.Signature)
			own[u.Signature] = true
		}
	}
	for i, u := range list {
		switch {
		case kept[i]:
			return
		case !own[u.Signature] && u.Signature != "" && side.Ran(u):
			m.Prologue += fmt.Sprintf("%d/%d ", u.Number, u.State)
		}
	}
}
