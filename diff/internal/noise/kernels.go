package noise

import (
	"fmt"
	"math"
	"slices"

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
		b, h := match.At(base, p.Base), match.At(head, p.Head)
		k := comparison.Kernel{PairedBy: p.By, Category: b.Category, Note: p.Note, Delta: h.Time - b.Time}
		k.CountEffect, k.PerCallEffect = match.Effects(b.Count, b.Time, h.Count, h.Time)
		if p.Base >= 0 {
			k.BaseName, k.Base, k.BaseCount = &base[p.Base].Name, &base[p.Base].Time, &base[p.Base].Count
			share := b.Time / time
			k.Share = &share
		}
		if p.Of >= 0 {
			k.SplitOf = &base[p.Of].Name
		}
		if p.Head >= 0 {
			k.HeadName, k.Head, k.HeadCount = &head[p.Head].Name, &head[p.Head].Time, &head[p.Head].Count
			if p.Base < 0 {
				k.Category = h.Category
			}
		}
		if k.Base != nil && k.Head != nil && b.Time > 0 {
			ratio := h.Time / b.Time
			k.Ratio = &ratio
		}
		if p.Base >= 0 && p.Head >= 0 && p.By != comparison.ByExact && k.Note == "" {
			k.Note = "replaced: paired by " + p.By
		}
		x.kernelClass(&k, b, h)
		x.C.Kernels = append(x.C.Kernels, k)
	}
	x.kernelTests(base, head, slices.Concat(rows, rest), len(rows))
}

// kernelClass decides one row with one capture a side. A kernel's time has changed if it did so by more than the noise
// floor and by more than the spread over units explains,
//
//	|head - base| > 2.576 sqrt(s0²/n0 + s1²/n1)
//
// or if it runs more or less often, which is exact.
func (x *Decider) kernelClass(k *comparison.Kernel, b, h side.Work) {
	switch {
	case k.BaseName == nil:
		k.Class, k.Why = comparison.Added, "runs on the head's side only"
		return
	case k.HeadName == nil:
		k.Class, k.Why = comparison.Removed, "runs on the base's side only"
		return
	case k.Delta == 0:
		k.Class, k.Why = comparison.Same, "both sides are equal"
		return
	case k.Ratio == nil || *k.Ratio <= 0:
		k.Class, k.Why = comparison.Unsettled, "one side is 0"
		return
	}
	floor, text := x.floor("kernel.time_per_unit", report.Labels{"kernel": b.Name})
	change := unit.Change(*k.Ratio - 1)
	beyond := math.Abs(math.Log(*k.Ratio)) > math.Log1p(floor)
	half := 0.0
	if b.Units > 0 && h.Units > 0 {
		half = 2.576 * math.Sqrt(b.Spread*b.Spread/float64(b.Units)+h.Spread*h.Spread/float64(h.Units))
	}
	counts := ""
	if math.Abs(h.Count-b.Count) > 0.01*b.Count {
		counts = fmt.Sprintf(", %.4g → %.4g runs per unit", b.Count, h.Count)
	}
	switch {
	case k.Category == side.Communication && counts == "" && beyond:
		k.Class, k.Why = comparison.Unsettled, change+": communication lasts as long as it waits for others"
	case beyond && (math.Abs(k.Delta) > half || counts != ""):
		k.Class, k.Why = comparison.Better(k.Delta), change+counts+", beyond the "+text
	case beyond:
		k.Class, k.Why = comparison.Unsettled, change+", beyond the "+text+", but units differ as much"
	case math.Abs(math.Log(*k.Ratio)) <= math.Log1p(min(floor, Tau)):
		k.Class, k.Why = comparison.Same, change+", within the "+text
	default:
		k.Class, k.Why = comparison.Unsettled, change+", within the "+text+" but more than "+unit.Percent(Tau)
	}
}

// kernelTests decides the rows with several captures on each side: all paired kernels are tested together, their common
// shift taken out, and false discoveries held to the policy's share, 5 % by default, over the rows (Benjamini
// and Hochberg).
func (x *Decider) kernelTests(base, head []side.Work, pairs []match.Pair, rows int) {
	if len(x.Base.Captures) < 2 || len(x.Head.Captures) < 2 {
		return
	}
	var samples []infer.Sample
	place := make([]int, 0, len(pairs)) // by sample: the row, or -1
	var history []infer.History
	for i, p := range pairs {
		if p.Base < 0 || p.Head < 0 {
			continue
		}
		b, ok := x.Base.LogTimes(base[p.Base].Name)
		h, ok2 := x.Head.LogTimes(head[p.Head].Name)
		if !ok || !ok2 {
			continue
		}
		samples = append(samples, infer.Sample{ID: base[p.Base].Name, Base: b, Head: h})
		at := -1
		if i < rows {
			at = i
		}
		place = append(place, at)
		if x.noise != nil {
			if s2, df, ok := x.noise.Variance("kernel.time_per_unit", report.Labels{"kernel": base[p.Base].Name},
				true); ok {
				history = append(history, infer.History{ID: base[p.Base].Name, S2: s2, DF: df})
			}
		}
	}
	shift, adjusted, ok := infer.CommonMode(samples)
	if ok {
		x.Shift = &shift
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
		t, k := &results[at], &x.C.Kernels[place[at]]
		k.P, k.PAdjusted = &p[i], &q[i]
		k.Test = &comparison.Test{Effect: t.Effect, SE: t.SE, DF: t.DF, Tau: math.Log1p(Tau),
			S2: t.S2, Moderated: t.Moderated}
		k.Class, k.Why = x.tested(t, q[i], x.Opt.Policy.Stats.FDR, "Benjamini-Hochberg")
		if ok {
			k.Why += fmt.Sprintf("; the shift of all kernels, %s, is taken out", unit.Change(math.Expm1(shift)))
		}
	}
}
