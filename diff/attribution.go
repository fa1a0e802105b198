package diff

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// Kinds of attribution rows.
const (
	KindClass    = "class"
	KindCategory = "category"
	KindKernel   = "kernel"
	KindCause    = "idle_cause"
	KindOthers   = "others"
)

// Classes of a unit's time, the rows of KindClass.
const (
	ClassCompute = "compute"
	ClassComm    = "exposed_comm"
	ClassCopy    = "exposed_copy"
	ClassIdle    = "idle"
)

// mean of a summary; ok is false where the report has none.
func mean(s *report.Summary) (float64, bool) {
	if s == nil {
		return 0, false
	}
	return s.Mean, true
}

// merged are the kernels of a side: means over its captures, in the order of the first capture that has them. A kernel that
// a capture does not have counts as none there.
func (s *side) merged() (list []work, others work) {
	others = work{name: "(others)", position: -1}
	n := float64(len(s.views))
	for _, v := range s.views {
		for i := range v.work {
			w := v.work[i]
			w.count, w.time, w.alone = w.count/n, w.time/n, w.alone/n
			at := slices.IndexFunc(list, func(x work) bool { return x.name == w.name })
			if at < 0 {
				list = append(list, w)
				continue
			}
			x := &list[at]
			x.count, x.time, x.alone = x.count+w.count, x.time+w.time, x.alone+w.alone
			if x.position < 0 {
				x.position = w.position
			}
		}
		others.count += v.others.count / n
		others.time += v.others.time / n
		others.alone += v.others.alone / n
	}
	return list, others
}

// mergedCategories are the categories of a side, likewise.
func (s *side) mergedCategories() []work {
	var list []work
	n := float64(len(s.views))
	for _, v := range s.views {
		for i := range v.categories {
			w := v.categories[i]
			w.count, w.time, w.alone = w.count/n, w.time/n, w.alone/n
			at := slices.IndexFunc(list, func(x work) bool { return x.name == w.name })
			if at < 0 {
				list = append(list, w)
				continue
			}
			list[at].count, list[at].time, list[at].alone = list[at].count+w.count, list[at].time+w.time, list[at].alone+w.alone
		}
	}
	return list
}

// effects splits the change from c0 runs that take x0 together to c1 runs that take x1 in what the number of runs and what
// the length of one did, see [Kernel]. They sum to x1-x0.
func effects(c0, x0, c1, x1 float64) (count, perCall float64) {
	delta := x1 - x0
	switch {
	case c0 == c1:
		return 0, delta
	case c0 <= 0 || c1 <= 0:
		return delta, 0
	}
	count = (c1 - c0) * (x0/c0 + x1/c1) / 2
	return count, delta - count
}

// kernelRows works out which kernels get a row of their own: those with a share of MinShare on either side, or whose change
// has that share, the largest changes first, at most Top.
func (x *Sides) kernelRows(base, head []work, unit float64) (rows []pair, rest []pair) {
	least := x.opt.MinShare * unit
	for _, p := range pairWork(base, head) {
		b, h := of(base, p.base), of(head, p.head)
		if max(b.alone, h.alone, b.time, h.time) >= least && !x.uncertain(p, b, h) {
			rows = append(rows, p)
		} else {
			rest = append(rest, p)
		}
	}
	order.Stable(rows, func(p, q pair) int {
		dp, dq := of(head, p.head).time-of(base, p.base).time, of(head, q.head).time-of(base, q.base).time
		return cmp.Or(cmp.Compare(math.Abs(dq), math.Abs(dp)), cmp.Compare(of(base, q.base).time, of(base, p.base).time), strings.Compare(name(base, head, p), name(base, head, q)))
	})
	if len(rows) > x.opt.Top {
		rest = append(rest, rows[x.opt.Top:]...)
		rows = rows[:x.opt.Top]
	}
	return rows, rest
}

// uncertain reports whether a kernel that seems added or removed may only be among those that the other side's report sums
// up without a name.
func (x *Sides) uncertain(p pair, b, h work) bool {
	hides := func(s *side, w work) bool {
		for _, v := range s.views {
			if v.hasOthers && v.others.alone >= w.alone/2 && v.others.alone > 0 {
				return true
			}
		}
		return false
	}
	return p.base < 0 && hides(x.base, h) || p.head < 0 && hides(x.head, b)
}

func of(list []work, i int) work {
	if i < 0 {
		return work{position: -1}
	}
	return list[i]
}

// name of a pair: A, or "A → B" for a replacement.
func name(base, head []work, p pair) string {
	switch {
	case p.base < 0:
		return head[p.head].name
	case p.head < 0 || base[p.base].name == head[p.head].name:
		return base[p.base].name
	}
	return base[p.base].name + " → " + head[p.head].name
}

// Parts works out where a change comes from.
type Parts struct {
	*Sides
	shift *float64 // of all kernels, ln, where several captures a side tell
}

// attribute splits the change of the mean unit.time. Every step is a difference of means, so the parts sum to the total but
// for rounding, which Residual holds.
func (x *Parts) attribute(base, head []work, baseOthers, headOthers work, rows, rest []pair) {
	a := &x.c.Attribution
	a.Metric = "unit.time"
	both := func(of func(v *view) *report.Summary) (b, h float64) {
		b, _ = x.base.mean(func(v *view) (float64, bool) { return mean(of(v)) })
		h, _ = x.head.mean(func(v *view) (float64, bool) { return mean(of(v)) })
		return b, h
	}
	a.Base, a.Head = both(func(v *view) *report.Summary { return v.time })
	a.TotalDelta = a.Head - a.Base
	fine := 0.0
	add := func(id, kind, category string, b, h float64, count, perCall *float64) {
		a.Rows = append(a.Rows, AttributionRow{ID: id, Kind: kind, Category: category, Base: b, Head: h, Delta: h - b, CountEffect: count, PerCallEffect: perCall})
		if kind == KindKernel || kind == KindOthers || kind == KindCause || id == ClassCopy {
			fine += h - b
		}
	}
	compute0, compute1 := both(func(v *view) *report.Summary { return v.compute })
	comm0, comm1 := both(func(v *view) *report.Summary { return v.comm })
	copy0, copy1 := both(func(v *view) *report.Summary { return v.copied })
	idle0, idle1 := both(func(v *view) *report.Summary { return v.idle })
	add(ClassCompute, KindClass, "", compute0, compute1, nil, nil)
	add(ClassComm, KindClass, "", comm0, comm1, nil, nil)
	add(ClassCopy, KindClass, "", copy0, copy1, nil, nil)
	add(ClassIdle, KindClass, "", idle0, idle1, nil, nil)
	for i, cause := range causes() {
		b, h := both(func(v *view) *report.Summary { return v.causes[i] })
		add(cause, KindCause, "", b, h, nil, nil)
	}
	if x.c.Depth != DepthKernel {
		add("kernels", KindOthers, "", compute0+comm0, compute1+comm1, nil, nil)
		a.Residual = a.TotalDelta - fine
		return
	}
	x.categoryRows(add)
	for _, p := range rows {
		b, h := of(base, p.base), of(head, p.head)
		count, perCall := effects(b.count, b.alone, h.count, h.alone)
		category := b.category
		if p.base < 0 {
			category = h.category
		}
		add(name(base, head, p), KindKernel, category, b.alone, h.alone, &count, &perCall)
	}
	b0, h0 := baseOthers.alone, headOthers.alone
	for _, p := range rest {
		b0 += of(base, p.base).alone
		h0 += of(head, p.head).alone
	}
	add("others", KindOthers, "", b0, h0, nil, nil)
	a.Residual = a.TotalDelta - fine
}

func (x *Parts) categoryRows(add func(id, kind, category string, b, h float64, count, perCall *float64)) {
	base, head := x.base.mergedCategories(), x.head.mergedCategories()
	row := func(name string, b, h work) {
		count, perCall := effects(b.count, b.alone, h.count, h.alone)
		add(name, KindCategory, name, b.alone, h.alone, &count, &perCall)
	}
	for _, b := range base {
		row(b.name, b, of(head, slices.IndexFunc(head, func(h work) bool { return h.name == b.name })))
	}
	for _, h := range head {
		if !slices.ContainsFunc(base, func(b work) bool { return b.name == h.name }) {
			row(h.name, work{}, h)
		}
	}
}
