package noise

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// Kernels makes the rows of kernels, and decides those of kernels that both sides run. It judges them together and
// limits false discoveries to the policy's share (Benjamini and Hochberg). A kernel whose run count changed is a change
// if its time changed by more than the floor.
func (x *Decider) Kernels(pairs []pairing.Pair) []comparison.Kernel {
	time := x.Base.UnitTime()
	rows := lists.Map(pairs, func(p pairing.Pair) comparison.Kernel { return pairing.KernelRow(p, time) })
	var numbers []significance.Number
	var place []int // by number: the row
	for i, p := range pairs {
		if !p.Both() || rows[i].Why != "" {
			continue
		}
		if unsteady(x.Base, p.Base.Name) || unsteady(x.Head, p.Head.Name) {
			rows[i].Why = "the report does not say how it varies on this GPU"
			continue
		}
		n := x.Known.number("kernel.time_per_unit", report.Labels{"kernel": p.Base.Name}, report.Nanoseconds, significance.Mean)
		var ok, ok2 bool
		n.Base, ok = kernelOf(x.Base, p.Base.Name)
		n.Head, ok2 = kernelOf(x.Head, p.Head.Name)
		if ok && ok2 {
			numbers, place = append(numbers, n), append(place, i)
		}
	}
	f := Many(x.Policy.Stats.FDR)
	for i, v := range x.Judge(numbers, f) {
		k := &rows[place[i]]
		if kernelRow(k, &numbers[i], &v, x.Why(&numbers[i], &v, f)) {
			x.Judged[kernelKey(k)] = numbers[i]
		}
	}
	return rows
}

// kernelRow fills in the verdict of a row, and reports whether the number decided it.
func kernelRow(k *comparison.Kernel, n *significance.Number, v *significance.Verdict, why string) bool {
	k.Class, k.Why = v.Class, why
	k.P, k.PAdjusted, k.Test = &v.P, &v.PAdjusted, Tested(n, v)
	if v.Level > 0 && v.Ratio > 0 { // scale the interval to the shown ratio
		shown := comparison.Value(k.Ratio) / v.Ratio
		k.Interval = &comparison.Interval{Low: v.Low * shown, High: v.High * shown, Level: v.Level, Method: v.Method}
	}
	counts := comparison.Value(k.HeadCount) - comparison.Value(k.BaseCount)
	beyond := math.Abs(math.Log(comparison.Value(k.Ratio))) > math.Log1p(v.Floor)
	change := unit.Change(comparison.Value(k.Ratio) - 1)
	switch {
	case math.Abs(counts) > 0.01*comparison.Value(k.BaseCount) && beyond:
		k.Class = comparison.Better(k.Delta)
		k.Why = change + ", " + wording.Means("runs per unit", comparison.Value(k.BaseCount), comparison.Value(k.HeadCount)) +
			", beyond the noise floor of " + unit.Percent(v.Floor)
	case k.Category == side.Communication && beyond:
		k.Class, k.Why = comparison.Unsettled, change+": communication lasts as long as it waits for others"
	default:
		return true
	}
	return false
}

func kernelKey(k *comparison.Kernel) string {
	return comparison.Value(k.BaseName) + "\x00" + comparison.Value(k.HeadName)
}

// unsteady reports whether only several captures could show how a kernel's time varies, and there is one.
func unsteady(s *side.Side, name string) bool {
	return len(s.Views) == 1 && slices.ContainsFunc(s.Views[0].Work, func(w side.Work) bool { return w.Name == name && w.Spread < 0 })
}

// kernelOf returns a kernel's time per unit in each capture, ns; ok is false if a capture lacks it.
func kernelOf(s *side.Side, name string) (list []significance.Capture, ok bool) {
	for _, v := range s.Views {
		w := lists.Find(v.Work, func(w *side.Work) bool { return w.Name == name })
		if w == nil || w.Time <= 0 {
			return nil, false
		}
		list = append(list, significance.Capture{Value: w.Time, N: int(w.Units), SD: max(0, w.Spread),
			Lag1: significance.Lag1(side.UnitValues(v.Units, "unit.time"))})
	}
	return list, true
}
