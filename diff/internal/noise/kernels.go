package noise

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/infer"
	"github.com/nsys-llm/explain/diff/internal/match"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Kernels fills in the rows of kernels, and counts all that were compared.
func (x *Decider) Kernels(base, head []side.Work, rows, rest []match.Pair) {
	time, _ := x.Base.Mean(func(v *side.View) (float64, bool) { return v.Time.Mean, true })
	for _, p := range slices.Concat(rows, rest) {
		if p.Base >= 0 && p.Head >= 0 {
			x.C.Counts.KernelsPaired++
		}
		x.C.Counts.KernelsCompared++
	}
	for _, p := range rows {
		x.C.Kernels = append(x.C.Kernels, match.KernelRow(base, head, p, time))
	}
	x.kernelTests(base, head, slices.Concat(rows, rest), len(rows))
}

// kernelTests decides the rows of kernels that both sides run: together, false discoveries held to the policy's share
// over them (Benjamini and Hochberg). Of several captures a side the common shift of all kernels is taken out, where
// it is plausible noise. A kernel that runs more or less often has changed if its time did by more than the floor.
func (x *Decider) kernelTests(base, head []side.Work, pairs []match.Pair, rows int) {
	var numbers []infer.Number
	var samples []infer.Sample
	var weights []float64
	var history []infer.History
	var place []int // by number: the row
	several := len(x.Base.Captures) > 1 && len(x.Head.Captures) > 1
	for i, p := range pairs {
		if p.Base < 0 || p.Head < 0 {
			continue
		}
		b, h := base[p.Base], head[p.Head]
		l := report.Labels{"kernel": b.Name}
		n := x.number("kernel.time_per_unit", l, report.Nanoseconds, infer.Mean)
		var ok, ok2 bool
		n.Base, ok = kernelOf(x.Base, b.Name)
		n.Head, ok2 = kernelOf(x.Head, h.Name)
		if !ok || !ok2 {
			continue
		}
		if several {
			id := strconv.Itoa(len(samples))
			samples = append(samples, infer.Sample{ID: id, Base: logs(n.Base), Head: logs(n.Head)})
			weights = append(weights, b.Time)
			if s2, df, ok := x.noise.Variance("kernel.time_per_unit", l, true); ok {
				history = append(history, infer.History{ID: id, S2: s2, DF: df})
			}
		}
		at := -1
		if i < rows && x.C.Kernels[i].Why == "" {
			at = i
		}
		numbers, place = append(numbers, n), append(place, at)
	}
	note := x.common(numbers, samples, weights, history)
	var judged []infer.Number
	var at []int
	for i := range numbers {
		if place[i] >= 0 {
			judged, at = append(judged, numbers[i]), append(at, place[i])
		}
	}
	f := x.Many()
	for i, v := range x.Judge(judged, f) {
		x.kernelRow(&x.C.Kernels[at[i]], &judged[i], &v, f, note)
	}
}

// kernelRow fills in what became of a row.
func (x *Decider) kernelRow(k *comparison.Kernel, n *infer.Number, v *infer.Verdict, f Family, note string) {
	k.Class, k.Why = ClassOf(v), x.Why(n, v, f)+note
	k.P, k.PAdjusted, k.Test = &v.P, &v.PAdjusted, Tested(n, v)
	if v.Level > 0 && v.Ratio > 0 { // around the change that is shown, the common shift included
		shift := comparison.Value(k.Ratio) / v.Ratio
		k.Interval = &comparison.Interval{Low: v.Low * shift, High: v.High * shift, Level: v.Level, Method: v.Method}
	}
	counts := comparison.Value(k.HeadCount) - comparison.Value(k.BaseCount)
	beyond := math.Abs(math.Log(comparison.Value(k.Ratio))) > math.Log1p(v.Floor)
	change := unit.Change(comparison.Value(k.Ratio) - 1)
	switch {
	case math.Abs(counts) > 0.01*comparison.Value(k.BaseCount) && beyond:
		k.Class = comparison.Better(k.Delta)
		k.Why = fmt.Sprintf("%s, %.4g → %.4g runs per unit, beyond the noise floor of %s", change,
			comparison.Value(k.BaseCount), comparison.Value(k.HeadCount), unit.Percent(v.Floor))
	case k.Category == side.Communication && beyond:
		k.Class, k.Why = comparison.Unsettled, change+": communication lasts as long as it waits for others"
	default:
		if x.kernels == nil {
			x.kernels = map[string]infer.Number{}
		}
		x.kernels[kernelKey(k)] = *n
	}
}

func kernelKey(k *comparison.Kernel) string {
	name := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return name(k.BaseName) + "\x00" + name(k.HeadName)
}

// Kernel is what a row of a kernel was judged by; ok is false where its class needed no statistics.
func (x *Decider) Kernel(k *comparison.Kernel) (n infer.Number, ok bool) {
	if x == nil {
		return n, false
	}
	n, ok = x.kernels[kernelKey(k)]
	return n, ok
}

// common takes the shift of all kernels out of numbers, in place, and says so; where it is no plausible noise it
// stays, and both readings are said.
func (x *Decider) common(numbers []infer.Number, samples []infer.Sample, w []float64, h []infer.History) string {
	if len(samples) == 0 {
		return ""
	}
	sd := 0.0
	if x.noise != nil && x.noise.CommonMode != nil {
		sd = x.noise.CommonMode.Noise
	}
	shift, adjusted, ok := infer.PlausibleShift(samples, w, sd, h...)
	if !ok {
		return ""
	}
	change := unit.Change(math.Expm1(shift.Ln))
	if !shift.Plausible {
		return fmt.Sprintf("; half of the kernels changed by %s or more, which is too much or too uneven for clocks and is "+
			"not taken out: if it were, this one would have changed by that much less", change)
	}
	x.Shift = &shift.Ln
	byID := make(map[string]*infer.History, len(h))
	for i := range h {
		byID[h[i].ID] = &h[i]
	}
	for i := range numbers {
		for _, s := range []struct {
			captures []infer.Capture
			ln       []float64
		}{{numbers[i].Base, adjusted[i].Base}, {numbers[i].Head, adjusted[i].Head}} {
			for k := range s.captures {
				c := &s.captures[k]
				v := math.Exp(s.ln[k])
				c.SD, c.Value = c.SD*v/c.Value, v
			}
		}
		numbers[i].History = byID[samples[i].ID]
	}
	return fmt.Sprintf("; the shift of all kernels, %s, is taken out", change)
}

func logs(captures []infer.Capture) []float64 {
	list := make([]float64, len(captures))
	for i := range captures {
		list[i] = math.Log(captures[i].Value)
	}
	return list
}

// kernelOf is a kernel's time per unit by capture; ok is false where a capture lacks it.
func kernelOf(s *side.Side, name string) (list []infer.Capture, ok bool) {
	for _, v := range s.Views {
		at := slices.IndexFunc(v.Work, func(w side.Work) bool { return w.Name == name })
		if at < 0 || v.Work[at].Time <= 0 {
			return nil, false
		}
		w := &v.Work[at]
		list = append(list, infer.Capture{Value: w.Time, N: int(w.Units), SD: w.Spread, Lag1: infer.Lag1(times(v.Units))})
	}
	return list, true
}
