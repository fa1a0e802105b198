package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/internal/infer"
)

// ns is a time as text.
func ns(v float64) string { return unit.Format(v, report.Nanoseconds) }

// kernels fills in the rows of kernels, and counts all that were compared.
func (x *Decider) kernels(base, head []work, rows, rest []pair) {
	time, _ := x.base.mean(func(v *view) (float64, bool) { return v.time.Mean, true })
	for _, p := range slices.Concat(rows, rest) {
		if p.base >= 0 && p.head >= 0 {
			x.c.Counts.KernelsPaired++
		}
		x.c.Counts.KernelsCompared++
	}
	for _, p := range rows {
		b, h := of(base, p.base), of(head, p.head)
		k := Kernel{PairedBy: p.by, Category: b.category, Note: p.note, Delta: h.time - b.time}
		k.CountEffect, k.PerCallEffect = effects(b.count, b.time, h.count, h.time)
		if p.base >= 0 {
			k.BaseName, k.Base, k.BaseCount = &base[p.base].name, &base[p.base].time, &base[p.base].count
			share := b.time / time
			k.Share = &share
		}
		if p.of >= 0 {
			k.SplitOf = &base[p.of].name
		}
		if p.head >= 0 {
			k.HeadName, k.Head, k.HeadCount = &head[p.head].name, &head[p.head].time, &head[p.head].count
			if p.base < 0 {
				k.Category = h.category
			}
		}
		if k.Base != nil && k.Head != nil && b.time > 0 {
			ratio := h.time / b.time
			k.Ratio = &ratio
		}
		if p.base >= 0 && p.head >= 0 && p.by != ByExact && k.Note == "" {
			k.Note = "replaced: paired by " + p.by
		}
		x.kernelClass(&k, b, h)
		x.c.Kernels = append(x.c.Kernels, k)
	}
	x.kernelTests(base, head, slices.Concat(rows, rest), len(rows))
}

// kernelClass decides one row with one capture a side. A kernel's time has changed if it did so by more than the noise
// floor and by more than the spread over units explains,
//
//	|head - base| > 2.576 sqrt(s0²/n0 + s1²/n1)
//
// or if it runs more or less often, which is exact.
func (x *Decider) kernelClass(k *Kernel, b, h work) {
	switch {
	case k.BaseName == nil:
		k.Class, k.Why = Added, "runs on the head's side only"
		return
	case k.HeadName == nil:
		k.Class, k.Why = Removed, "runs on the base's side only"
		return
	case k.Delta == 0:
		k.Class, k.Why = Same, "both sides are equal"
		return
	case k.Ratio == nil || *k.Ratio <= 0:
		k.Class, k.Why = Unsettled, "one side is 0"
		return
	}
	floor, text := x.floor("kernel.time_per_unit", report.Labels{"kernel": b.name})
	change := unit.Change(*k.Ratio - 1)
	beyond := math.Abs(math.Log(*k.Ratio)) > math.Log1p(floor)
	half := 0.0
	if b.units > 0 && h.units > 0 {
		half = 2.576 * math.Sqrt(b.spread*b.spread/float64(b.units)+h.spread*h.spread/float64(h.units))
	}
	counts := ""
	if math.Abs(h.count-b.count) > 0.01*b.count {
		counts = fmt.Sprintf(", %.4g → %.4g runs per unit", b.count, h.count)
	}
	switch {
	case k.Category == communication && counts == "" && beyond:
		k.Class, k.Why = Unsettled, change+": communication lasts as long as it waits for others"
	case beyond && (math.Abs(k.Delta) > half || counts != ""):
		k.Class, k.Why = better(k.Delta), change+counts+", beyond the "+text
	case beyond:
		k.Class, k.Why = Unsettled, change+", beyond the "+text+", but units differ as much"
	case math.Abs(math.Log(*k.Ratio)) <= math.Log1p(min(floor, Tau)):
		k.Class, k.Why = Same, change+", within the "+text
	default:
		k.Class, k.Why = Unsettled, change+", within the "+text+" but more than "+unit.Percent(Tau)
	}
}

// kernelTests decides the rows with several captures on each side: all paired kernels are tested together, their common
// shift taken out, and false discoveries held to the policy's share, 5 % by default, over the rows (Benjamini and Hochberg).
func (x *Decider) kernelTests(base, head []work, pairs []pair, rows int) {
	if len(x.base.captures) < 2 || len(x.head.captures) < 2 {
		return
	}
	var samples []infer.Sample
	place := make([]int, 0, len(pairs)) // by sample: the row, or -1
	var history []infer.History
	for i, p := range pairs {
		if p.base < 0 || p.head < 0 {
			continue
		}
		b, ok := x.base.logTimes(base[p.base].name)
		h, ok2 := x.head.logTimes(head[p.head].name)
		if !ok || !ok2 {
			continue
		}
		samples = append(samples, infer.Sample{ID: base[p.base].name, Base: b, Head: h})
		at := -1
		if i < rows {
			at = i
		}
		place = append(place, at)
		if x.noise != nil {
			if s2, df, ok := x.noise.Variance("kernel.time_per_unit", report.Labels{"kernel": base[p.base].name}, true); ok {
				history = append(history, infer.History{ID: base[p.base].name, S2: s2, DF: df})
			}
		}
	}
	shift, adjusted, ok := infer.CommonMode(samples)
	if ok {
		x.shift = &shift
	}
	results := infer.TREAT(adjusted, math.Log1p(Tau), x.alpha(), false, history...)
	var p []float64
	var of []int
	for i := range results {
		if place[i] >= 0 && results[i].Known {
			p, of = append(p, results[i].P), append(of, i)
		}
	}
	q := infer.BH(p)
	for i, at := range of {
		t, k := &results[at], &x.c.Kernels[place[at]]
		k.P, k.PAdjusted = &p[i], &q[i]
		k.Test = &Test{Effect: t.Effect, SE: t.SE, DF: t.DF, Tau: math.Log1p(Tau), S2: t.S2, Moderated: t.Moderated}
		k.Class, k.Why = x.tested(t, q[i], x.opt.Policy.Stats.FDR, "Benjamini-Hochberg")
		if ok {
			k.Why += fmt.Sprintf("; the shift of all kernels, %s, is taken out", unit.Change(math.Expm1(shift)))
		}
	}
}

// logTimes are the logarithms of a kernel's time per unit by capture.
func (s *side) logTimes(name string) ([]float64, bool) {
	var list []float64
	for _, v := range s.views {
		at := slices.IndexFunc(v.work, func(w work) bool { return w.name == name })
		if at < 0 || v.work[at].time <= 0 {
			return nil, false
		}
		list = append(list, math.Log(v.work[at].time))
	}
	return list, true
}
