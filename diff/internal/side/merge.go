package side

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Mean returns the mean of a summary; ok is false for nil.
func Mean(s *report.Summary) (float64, bool) {
	if s == nil {
		return 0, false
	}
	return s.Mean, true
}

// Merged returns the kernels of a side: means over its captures, in the order in which captures first have them. A
// kernel that a capture lacks counts as 0 there. There are none if a capture has those of another device alone.
func (s *Side) Merged() (list []Work, others Work) {
	others = Work{Name: "(others)", Position: -1}
	if s.Foreign() {
		return nil, others
	}
	n := float64(len(s.Views))
	for _, v := range s.Views {
		list = merge(list, v.Work, n)
		others.Count += v.Others.Count / n
		others.Time += v.Others.Time / n
		others.Alone += v.Others.Alone / n
	}
	return list, others
}

// Foreign reports whether a capture of the side has the kernels of another device than the one that is compared.
func (s *Side) Foreign() bool {
	return slices.ContainsFunc(s.Views, func(v *View) bool { return v.Foreign })
}

// MergedCategories returns the kernel categories of a side, merged in the same way.
func (s *Side) MergedCategories() []Work {
	var list []Work
	n := float64(len(s.Views))
	for _, v := range s.Views {
		list = merge(list, v.categories, n)
	}
	return list
}

// merge adds those of one of n captures to the means.
func merge(list, more []Work, n float64) []Work {
	for _, w := range more {
		none := w
		none.Count, none.Time, none.Alone, none.Threads = 0, 0, 0, 0
		x := lists.Entry(&list, func(x Work) bool { return x.Name == w.Name }, none)
		x.Count, x.Time, x.Alone, x.Threads = x.Count+w.Count/n, x.Time+w.Time/n, x.Alone+w.Alone/n, x.Threads+w.Threads/n
		if x.Position < 0 {
			x.Position = w.Position
		}
		if x.Geometry != w.Geometry {
			x.Geometry = ""
		}
	}
	return list
}

// Series returns all units of the view's device in run order, whatever their state, and which of them belong to the
// view; nil if the report does not list every unit.
func (v *View) Series() (units []report.UnitPoint, kept []bool) { return v.inState(Kept) }

// Times returns the times of the view's units that are in a state, ns; nil if the report does not list every unit.
func (v *View) Times(state string) (times []float64) {
	units, are := v.inState(state)
	for i := range units {
		if are[i] {
			times = append(times, float64(units[i].Duration))
		}
	}
	return times
}

// States of units that are compared, and of those that are warm-up.
const (
	Kept   = "kept"
	Warmup = "warmup"
)

// inState returns all units as Series does, and which of them are of the view's kind of work and in this state.
func (v *View) inState(state string) (units []report.UnitPoint, are []bool) {
	u := &v.C.Report.Unit
	group := slices.IndexFunc(u.Groups, func(g report.UnitGroup) bool { return g.ID == v.group.ID })
	if group < 0 {
		return nil, nil
	}
	for _, p := range everyUnit(u) {
		if p.Device == v.group.Device {
			units = append(units, p)
			are = append(are, p.Group == int64(group) && report.UnitStates[p.State] == state)
		}
	}
	return units, are
}

// Ran reports whether a unit ran completely, inside the analysed window.
func Ran(u report.UnitPoint) bool {
	s := report.UnitStates[u.State]
	return s != "cut" && s != "outside"
}
