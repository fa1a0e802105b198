package pairing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Effects splits the change from c0 runs of x0 in total to c1 runs of x1 into the effect of the number of runs and that
// of the time per run, see [Kernel]. The two sum to x1-x0.
func Effects(c0, x0, c1, x1 float64) (count, perCall float64) {
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

// KernelRows decides which kernels get a row: those that take at least minShare of the shorter unit on either side, and
// all that another kernel replaced. It returns at most top rows, the largest changes first.
func KernelRows(b, h *side.Side, minShare float64, top int) (rows []Pair, rest []Pair) {
	least := minShare * Shorter(b, h)
	for _, p := range Kernels(b, h) {
		was, is := p.Works()
		replaced := p.By == comparison.ByFamily || p.By == comparison.ByPosition
		hidden := p.Base == nil && hides(b, is) || p.Head == nil && hides(h, was)
		if replaced || max(was.Alone, is.Alone, was.Time, is.Time) >= least && !hidden {
			rows = append(rows, p)
		} else {
			rest = append(rest, p)
		}
	}
	lists.Sort(rows, func(p, q Pair) int {
		was, is := p.Works()
		wasQ, isQ := q.Works()
		return cmp.Or(cmp.Compare(math.Abs(isQ.Time-wasQ.Time), math.Abs(is.Time-was.Time)),
			cmp.Compare(wasQ.Time, was.Time), strings.Compare(p.Name(), q.Name()))
	})
	if len(rows) > top {
		rest = append(rest, rows[top:]...)
		rows = rows[:top]
	}
	return rows, rest
}

// KernelRow returns the row of a pair. Its class is set if that needs no statistics, else unsettled. unit is the mean
// time of a unit of the base, ns.
func KernelRow(p Pair, unit float64) comparison.Kernel {
	b, h := p.Works()
	k := comparison.Kernel{PairedBy: p.By, Category: b.Category, Note: p.Note,
		Delta: h.Time - b.Time, Class: comparison.Unsettled}
	k.CountEffect, k.PerCallEffect = Effects(b.Count, b.Time, h.Count, h.Time)
	if p.Base != nil {
		k.BaseName, k.Base, k.BaseCount = &b.Name, &b.Time, &b.Count
		k.Share = new(b.Time / unit)
	}
	if p.Of != nil {
		k.SplitOf = &p.Of.Name
	}
	if p.Head != nil {
		k.HeadName, k.Head, k.HeadCount = &h.Name, &h.Time, &h.Count
		if p.Base == nil {
			k.Category = h.Category
		}
	}
	if k.Base != nil && k.Head != nil && b.Time > 0 {
		k.Ratio = new(h.Time / b.Time)
	}
	switch {
	case !p.Both() || p.By == comparison.ByExact || k.Note != "":
	case Renamed(&k):
		k.Note = "renamed: paired by " + p.By + ", of equal time"
	default:
		k.Note = "replaced: paired by " + p.By
	}
	if g := launchedOtherwise(&b, &h); g != "" {
		k.Note = strings.TrimPrefix(k.Note+"; "+g, "; ")
		k.Launch = g
	}
	switch {
	case k.BaseName == nil:
		k.Class, k.Why = comparison.Added, "runs on the head's side only"
	case k.HeadName == nil:
		k.Class, k.Why = comparison.Removed, "runs on the base's side only"
	case k.Delta == 0:
		k.Class, k.Why = comparison.Same, "both sides are equal"
	case k.Ratio == nil || comparison.Value(k.Ratio) <= 0:
		k.Why = "one side is 0"
	}
	return k
}

// equalTime is the relative change up to which a kernel of another name counts as renamed.
const equalTime = 0.01

func equalTimes(a, b float64) bool { return math.Abs(a-b) <= equalTime*min(a, b) }

// Renamed reports whether a pair's names differ while both kernels run equally often and take equally long.
func Renamed(k *comparison.Kernel) bool {
	return k.BaseName != nil && k.HeadName != nil && *k.BaseName != *k.HeadName && k.Base != nil && k.Head != nil &&
		equalTimes(comparison.Value(k.Base), comparison.Value(k.Head)) && comparison.Value(k.BaseCount) == comparison.Value(k.HeadCount)
}

// OnlyNames reports whether the kernels that have no pair run as often and take as long on one side as on the other:
// several of them have one name now, or one has several.
func OnlyNames(pairs []Pair) bool {
	var b, h side.Work
	for _, p := range pairs {
		switch {
		case p.Base == nil:
			h.Count, h.Time = h.Count+p.Head.Count, h.Time+p.Head.Time
		case p.Head == nil:
			b.Count, b.Time = b.Count+p.Base.Count, b.Time+p.Base.Time
		}
	}
	return b.Time > 0 && math.Abs(b.Count-h.Count) <= 1e-6*b.Count && equalTimes(b.Time, h.Time)
}

// launchedOtherwise says which parts of a launch geometry changed, "block 4×4 → 16×16", or by how much launches of
// several geometries grew; empty if neither did, or a side does not say. A side may lack shared memory.
func launchedOtherwise(was, is *side.Work) string {
	base, head := was.Geometry, is.Geometry
	switch {
	case (base == "" || head == "") && min(was.Threads, is.Threads) > 0 && alike(was.Threads, is.Threads) < 1-otherSized:
		return fmt.Sprintf("launches of %.3g times the threads", is.Threads/was.Threads)
	case base == "" || head == "" || base == head:
		return ""
	}
	of := func(text string) map[string]string {
		parts := map[string]string{}
		for _, p := range strings.Split(text, ", ") {
			name, size, _ := strings.Cut(p, " ")
			parts[name] = size
		}
		return parts
	}
	b, h := of(base), of(head)
	var list []string
	for _, name := range []string{"block", "grid", "shared"} {
		if b[name] != h[name] {
			list = append(list, name+" "+cmp.Or(b[name], "none")+" → "+cmp.Or(h[name], "none"))
		}
	}
	return strings.Join(list, ", ")
}

// hides reports whether a kernel that a side seems to lack may be among those that its report sums up unnamed.
func hides(s *side.Side, w side.Work) bool {
	return slices.ContainsFunc(s.Views, func(v *side.View) bool {
		return v.Others.Alone >= w.Alone/2 && v.Others.Alone > 0
	})
}

// NS formats a time in ns.
func NS(v float64) string { return unit.Format(v, report.Nanoseconds) }

// Shorter returns the mean time of a unit on the side where it is shorter, ns. Shares that decide what is shown or
// judged refer to it, so that swapping the sides changes nothing.
func Shorter(base, head *side.Side) float64 {
	return min(base.UnitTime(), head.UnitTime())
}
