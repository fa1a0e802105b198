package noise

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// Marks describe the units of a capture in the order in which they ran. A zero value means unknown.
type Marks struct {
	Places   []int64          // number of each unit among all units of the device, from 0
	Work     []string         // work of each unit: its signature, or its counts of kernels and launches
	Prologue string           // units before the first that run work found nowhere in Work
	Kernels  int64            // count in the whole capture
	Units    int64            // count of this kind; Work may be a sample of them
	Ran      int              // units of all kinds and states on the device; 0 if the report does not list them all
	Steps    map[int64]string // work of all units, by their markers' number
}

// tiedShare is the least share of units with the same work on both sides for pairing units.
const tiedShare = 0.99

// commonSteps is the least share of the shorter side's marker numbers on both sides for pairing by number.
const commonSteps = 0.5

// tieOf returns how units of base and head can be paired. If both have marker numbers, equal numbers pair units if half
// of the shorter side's are on both sides; other numbers pair nothing. Without numbers, unit i is paired with unit i if
// their places are equal, 99 % of them run the same work, and both captures start at the same point. Work is the same
// if it changes from unit to unit in the same way; kernel names do not matter. Captures start at the same point if the
// same other units ran before, such as a first step that compiles, or if both hold the whole program: equal counts of
// units and of kernels, which captures that end by a timer hardly ever have. If as many units of whole programs
// ran but a side leaves some out, such as a slow first one, units of equal place are paired.
func tieOf(base, head Marks) significance.Tie {
	if len(base.Steps) > 0 && len(head.Steps) > 0 {
		return byNumber(base.Steps, head.Steps)
	}
	whole := base.Kernels > 0 && base.Kernels == head.Kernels
	if base.Units != head.Units { // the reports then list different samples of the units
		if whole && base.Ran > 0 && base.Ran == head.Ran && byNumber(base.byPlace(), head.byPlace()) != significance.TieNone {
			return significance.TieStart
		}
		return significance.TieNone
	}
	n := min(len(base.Work), len(head.Work))
	places := min(len(base.Places), len(head.Places))
	if n < significance.MinUnits || places > 0 && !slices.Equal(base.Places[:min(n, places)], head.Places[:min(n, places)]) {
		return significance.TieNone
	}
	if float64(alike(base.Work[:n], head.Work[:n])) >= tiedShare*float64(n) && (whole || base.Prologue != "" && base.Prologue == head.Prologue) {
		return significance.TieStart
	}
	return significance.TieNone
}

// byPlace returns the work of units by their place.
func (m *Marks) byPlace() map[int64]string {
	work := make(map[int64]string, len(m.Work))
	for i, at := range m.Places {
		work[at] = m.Work[i]
	}
	return work
}

// byNumber pairs units with equal numbers if they run the same work.
func byNumber(base, head map[int64]string) significance.Tie {
	common := lists.Filter(slices.Sorted(maps.Keys(base)), func(step int64) bool {
		_, ok := head[step]
		return ok
	})
	n := len(common)
	if n < significance.MinUnits || float64(n) < commonSteps*float64(min(len(base), len(head))) {
		return significance.TieNone
	}
	of := func(work map[int64]string) []string {
		return lists.Map(common, func(step int64) string { return work[step] })
	}
	if float64(alike(of(base), of(head))) < tiedShare*float64(n) {
		return significance.TieNone
	}
	return significance.TieNumber
}

// alike counts the units whose work changes in the same way on both sides.
func alike(base, head []string) (n int) {
	b, h := pattern(base), pattern(head)
	for i := range b {
		if b[i] == h[i] {
			n++
		}
	}
	return n
}

// pattern replaces the work of each unit by a number, in order of first appearance.
func pattern(work []string) []int32 {
	var seen lists.Numbering[string]
	return lists.Map(work, seen.Of)
}

// ties says how units can be paired. It keeps what it read of each view.
type ties map[*side.View]Marks

// between returns how the units of two sides can be paired; only single captures a side can be.
func (t ties) between(base, head []*side.View) significance.Tie {
	if len(base) != 1 || len(head) != 1 {
		return significance.TieNone
	}
	return tieOf(t.marks(base[0]), t.marks(head[0]))
}

// tie sets how the units of n can be paired, if they are those of the views.
func (t ties) tie(n *significance.Number, base, head []*side.View) {
	n.Tie = t.between(base, head)
	if n.Tie == significance.TieNone {
		return
	}
	b, h := t.marks(base[0]).Places, t.marks(head[0]).Places
	if n.Tie == significance.TieNumber {
		b, h = markers(base[0]), markers(head[0])
	} else if slices.Equal(b, h) || len(b) != len(n.Base[0].Units) || len(h) != len(n.Head[0].Units) {
		return // unit i is unit i, or in samples at most 1 % of the units away
	}
	if len(b) != len(n.Base[0].Units) || len(h) != len(n.Head[0].Units) { // n describes other units
		n.Tie = significance.TieNone
	}
	n.Base[0].Steps, n.Head[0].Steps = b, h
}

// markers returns the marker numbers of a view's units.
func markers(v *side.View) []int64 {
	return lists.Map(v.Units, func(u side.UnitRow) int64 { return u.Step })
}

func (t ties) marks(v *side.View) Marks {
	if m, ok := t[v]; ok {
		return m
	}
	m := Marks{Units: v.Time.N}
	if n, ok := v.C.Value("kernel.count", nil); ok {
		m.Kernels = int64(n)
	}
	m.series(v)
	if m.Ran == 0 { // the report lists a sample, or is too old to have the series
		for i := range v.Units {
			u := &v.Units[i]
			m.Work = append(m.Work, strconv.FormatFloat(u.Kernels, 'g', -1, 64)+"/"+strconv.FormatFloat(u.Launches, 'g', -1, 64))
		}
	}
	t[v] = m
	return m
}

// series fills in m from the report's list of all units.
func (m *Marks) series(v *side.View) {
	list, kept := v.Series()
	m.Ran = len(list)
	own, steps := map[string]bool{}, map[int64]string{}
	for i, u := range list {
		if kept[i] {
			m.Places, m.Work = append(m.Places, u.Number), append(m.Work, u.Signature)
			own[u.Signature], steps[u.Step] = true, u.Signature
		}
	}
	s := v.C.Report.Unit.Series
	if s != nil && len(s.Step) > 0 && len(steps) == len(m.Work) { // else several processes use the same numbers
		m.Steps = steps
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
