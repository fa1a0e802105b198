package noise

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// Marks are what a capture says of the place of its units, in the order in which they ran. Zero values are not known.
type Marks struct {
	Places   []int64          // of the units among all that ran on the device, from 0
	Work     []string         // what each unit runs: its signature, or its kernels and launches
	Prologue string           // units before the first that run what none of Work does
	Kernels  int64            // of the whole capture
	Units    int64            // of this kind, of which Work may be a sample
	Steps    map[int64]string // what all units run, by the number that their markers carry
}

// tiedShare of the units must run the same work on both sides for units to be paired by their index.
const tiedShare = 0.99

// commonSteps of the shorter side's must be on both sides for units to be paired by their number.
const commonSteps = 0.5

// tieOf says what ties units of base to units of head. Markers that carry equal numbers do, if half of the shorter
// side's are on both; if they carry others, nothing does. Without numbers, unit i is unit i by the same places, the
// same work at 99 % of them, and the same start. Work is the same where it changes from unit to unit alike, whatever
// the kernels are called. Captures start alike if the same units of other work ran before, such as a first step that
// compiles, or if both hold the whole program: as many units and as many kernels, which captures that a clock ended
// hardly ever do.
func tieOf(base, head Marks) significance.Tie {
	if len(base.Steps) > 0 && len(head.Steps) > 0 {
		return byNumber(base.Steps, head.Steps)
	}
	if base.Units != head.Units { // what reports list is then not the same sample of the units
		return significance.TieNone
	}
	n := min(len(base.Work), len(head.Work))
	places := min(len(base.Places), len(head.Places))
	if n < significance.MinUnits || places > 0 && !slices.Equal(base.Places[:min(n, places)], head.Places[:min(n, places)]) {
		return significance.TieNone
	}
	whole := base.Kernels > 0 && base.Kernels == head.Kernels
	if float64(alike(base.Work[:n], head.Work[:n])) >= tiedShare*float64(n) && (whole || base.Prologue != "" && base.Prologue == head.Prologue) {
		return significance.TieStart
	}
	return significance.TieNone
}

// byNumber ties the units of equal numbers, if these run the same work.
func byNumber(base, head map[int64]string) significance.Tie {
	var common []int64
	for step := range base {
		if _, ok := head[step]; ok {
			common = append(common, step)
		}
	}
	slices.Sort(common)
	n := len(common)
	if n < significance.MinUnits || float64(n) < commonSteps*float64(min(len(base), len(head))) {
		return significance.TieNone
	}
	b, h := make([]string, n), make([]string, n)
	for i, step := range common {
		b[i], h[i] = base[step], head[step]
	}
	if float64(alike(b, h)) < tiedShare*float64(n) {
		return significance.TieNone
	}
	return significance.TieNumber
}

// alike counts the units whose work changes on both sides in the same way.
func alike(base, head []string) (n int) {
	b, h := pattern(base), pattern(head)
	for i := range b {
		if b[i] == h[i] {
			n++
		}
	}
	return n
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
func (x *Decider) tie() significance.Tie {
	if len(x.Base.Views) != 1 || len(x.Head.Views) != 1 {
		return significance.TieNone
	}
	return tieOf(x.marksOf(x.Base.Views[0]), x.marksOf(x.Head.Views[0]))
}

// tied says what ties the units of a number, which are those that are compared.
func (x *Decider) tied(n *significance.Number) {
	if n.Tie = x.tie(); n.Tie != significance.TieNumber {
		return
	}
	for _, s := range []struct {
		captures []significance.Capture
		view     *side.View
	}{{n.Base, x.Base.Views[0]}, {n.Head, x.Head.Views[0]}} {
		c := &s.captures[0]
		for i := range s.view.Units {
			c.Steps = append(c.Steps, s.view.Units[i].Step)
		}
		if len(c.Steps) != len(c.Units) { // the number is of other units
			n.Tie = significance.TieNone
		}
	}
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
	if s := v.C.Report.Unit.Series; s != nil && len(s.Step) > 0 {
		m.Steps = map[int64]string{}
		for i, u := range list {
			if kept[i] {
				m.Steps[u.Step] = u.Signature
			}
		}
		if len(m.Steps) != len(m.Work) { // of several processes
			m.Steps = nil
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
