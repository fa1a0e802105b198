package pairing

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// OverlapNeeded is the share of work, 0 to 1, that two units must have in common to do the same work.
//
// If one of two models has twice the layers of the other, half of the work is in common. Replacing a kernel by one or
// several others, or adding tens of small kernels, lowers the share only a little, see [overlap].
const OverlapNeeded = 0.6

// overlap returns the share of work that two units have in common, 0 to 1, on the side where it is smaller. It counts
// how often kernels run, weighted by their share of the side's own compute time, so that a kernel that takes three
// times as long is still the same work:
//
//  1. Kernels of one family (library, operation, type) that run c0 and c1 times have min(c0, c1) runs in common.
//  2. The remaining runs of each category (gemm, attention, …) are matched across families in the same way: a kernel
//     was replaced.
//  3. The share is runs in common over all runs, weighted by time. Communication does not count: it waits for others.
//  4. If that is not enough, and kernels of equal names have at least three quarters of the runs in common, that share
//     is used: the work stays the same if kernels of unknown names replace one long kernel.
func overlap(a, b []side.Work) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	pools := [2][]pool{families(a), families(b)}
	common := [2]float64{}
	for range 2 { // by family, then by category
		for i := range pools[0] {
			p := &pools[0][i]
			if q := lists.Find(pools[1], func(q *pool) bool { return q.family == p.family && q.category == p.category }); q != nil {
				x, y := match(p, q)
				common[0] += x
				common[1] += y
			}
		}
		for i := range pools {
			pools[i] = byCategory(pools[i])
		}
	}
	share := min(common[0], common[1], 1)
	if runs := equalRuns(a, b); share < OverlapNeeded && runs >= runsNeeded {
		share = runs
	}
	return math.Round(share*1e9) / 1e9
}

// runsNeeded is the least share of runs of kernels of equal names for two units to do the same work, however long they
// take.
const runsNeeded = 0.75

// equalRuns returns the share of runs, 0 to 1, that kernels of equal canonical names have in common, on the side where
// it is smaller.
func equalRuns(a, b []side.Work) float64 {
	compute := func(w side.Work) bool { return w.Category != side.Communication }
	a, b = lists.Filter(a, compute), lists.Filter(b, compute)
	x, y, n, m := runs(a), runs(b), total(a), total(b)
	common := 0.0
	for _, name := range slices.Sorted(maps.Keys(x)) { // sorted: sums of fractions depend on their order
		common += min(x[name], y[name])
	}
	if n <= 0 || m <= 0 {
		return 0
	}
	return min(common/n, common/m)
}

// pool holds the unmatched runs of one family or category.
type pool struct {
	family, category string
	count, share     float64
}

// match takes from both pools the runs that they have in common, and returns their share of time on each side.
func match(a, b *pool) (float64, float64) {
	n := min(a.count, b.count)
	if n <= 0 {
		return 0, 0
	}
	x, y := a.share*n/a.count, b.share*n/b.count
	a.share, a.count = a.share-x, a.count-n
	b.share, b.count = b.share-y, b.count-n
	return x, y
}

func families(list []side.Work) []pool {
	var pools []pool
	total := 0.0
	for i := range list {
		w := &list[i]
		if w.Category == side.Communication || w.Count <= 0 {
			continue
		}
		total += w.Alone
		same := func(p pool) bool { return p.family == w.Family && p.category == w.Category }
		p := lists.Entry(&pools, same, pool{family: w.Family, category: w.Category})
		p.count, p.share = p.count+w.Count, p.share+w.Alone
	}
	for i := range pools {
		if total > 0 {
			pools[i].share /= total
		}
	}
	return pools
}

func byCategory(list []pool) []pool {
	var pools []pool
	for _, p := range list {
		same := func(q pool) bool { return q.category == p.category }
		q := lists.Entry(&pools, same, pool{category: p.category})
		q.count, q.share = q.count+p.count, q.share+p.share
	}
	return pools
}

// Work checks that both sides do the same work, and sets the depth to which they can be compared.
func (x *Sides) Work() {
	x.found.Depth = comparison.DepthKernel
	views := slices.Concat(x.Base.Views, x.Head.Views)
	if slices.ContainsFunc(views, func(v *side.View) bool { return !v.HasWork }) {
		x.found.Depth = comparison.DepthUnit
	}
	hides := func(v *side.View) bool { return v.Hidden }
	b, h := x.Base.Views[0], x.Head.Views[0]
	if hidden := lists.Count(views, hides); hidden > 0 && hidden < len(views) {
		x.found.Depth = comparison.DepthUnit
		on := "head"
		if slices.ContainsFunc(x.Base.Views, hides) {
			on = "base"
		}
		x.found.reason(comparison.GraphCaptureMismatch, "on "+on+" CUDA graphs were traced as a whole, which hides the "+
			"kernels inside: only times of the whole unit are compared, and only their length shows that both sides do the "+
			"same work; capture with --cuda-graph-trace=node to see kernels")
		if r := h.Time.P50 / b.Time.P50; !(r <= hiddenRange && r >= 1/hiddenRange) {
			x.differentWork(fmt.Sprintf("a unit takes %.3g times as long, and its kernels cannot be compared: this may be different work", r))
		}
		return
	}
	if x.found.Depth != comparison.DepthKernel {
		return
	}
	if text := cmp.Or(onlyWarmup("base", "head", b, h), onlyWarmup("head", "base", h, b)); text != "" {
		x.found.refuse(comparison.TooFewUnits, text)
	}
	if text := ramp(b, h); text != "" && len(x.Base.Views)+len(x.Head.Views) == 2 {
		x.found.refuse(comparison.Trend, text)
	}
	least, size, names := 1.0, "", x.Base.DisplayNames()
	for _, v := range views {
		least = min(least, overlap(b.Work, v.Work))
		size = cmp.Or(size, otherSize(b.Work, v.Work, names))
	}
	x.found.Overlap = &least
	graphs := otherGraphs(b.Work, h.Work)
	if x.Base.Foreign() || x.Head.Foreign() {
		x.found.Depth = comparison.DepthUnit
	}
	switch {
	case size != "":
		x.differentWork(size, comparison.StudyBatch)
	case graphs != "":
		x.differentWork(graphs)
	case least >= OverlapNeeded:
	case x.found.Comparable && tied(x.Base, x.Head) && !moreOfTheSame(b.Work, h.Work):
		text := func(v *side.View) string {
			return fmt.Sprintf("%.4g a unit (%s)", total(v.Work), topCategories(v.Work))
		}
		x.found.Residue = append(x.found.Residue, comparison.Residue{
			Field: fmt.Sprintf("kernels, %.0f %% of the compute time in common", 100*least), Base: text(b), Head: text(h)})
	default:
		if !x.Opt.studied(comparison.StudyWork) {
			x.found.Depth = comparison.DepthUnit
		}
		text := func(v *side.View) string {
			return fmt.Sprintf("%s (%s)", wording.Means("kernels a unit", total(v.Work)), topCategories(v.Work))
		}
		x.differentWork(fmt.Sprintf("only %.0f %% of a unit's compute time is in kernels common to both sides, by family or "+
			"category (%.0f %% needed): different work; base runs %s, head %s", 100*least, 100*OverlapNeeded, text(b), text(h)))
	}
}

// runs returns how often kernels run, by canonical name.
func runs(list []side.Work) map[string]float64 {
	by := make(map[string]float64, len(list))
	for i := range list {
		by[list[i].Canonical] += list[i].Count
	}
	return by
}

// farMore is the ratio of runs from which on a kernel runs far more often on one side.
const farMore = 4.0 / 3

// moreOfTheSame reports whether two units with little work in common mostly run kernels of the same names, and one runs
// most of them far more often, by their time and by their number. Twice the layers are another model, whatever ties the
// steps. One kernel that became many of its name, while the others run as often as before, is the same step.
func moreOfTheSame(a, b []side.Work) bool {
	more := func(a, b []side.Work) bool {
		own, other := runs(a), runs(b)
		var time, shared, moreTime, names, moreNames float64
		for i := range a {
			if a[i].Category == side.Communication {
				continue
			}
			time += a[i].Alone
			if n, m := own[a[i].Canonical], other[a[i].Canonical]; m > 0 {
				shared += a[i].Alone
				names++
				if max(n, m) >= farMore*min(n, m) {
					moreTime += a[i].Alone
					moreNames++
				}
			}
		}
		return shared >= OverlapNeeded*time && moreTime > shared/2 && moreNames > names/2
	}
	return more(a, b) && more(b, a)
}

// Numbers of units that tie two sides: equal ones from the first on, and from the second on those that differ by one,
// since sides that are cut at different kernels lose different parts at their ends.
const (
	leastTied  = 3
	nearlyTied = 8
)

// tied reports whether the program shows that units of both sides are the same step, whatever kernels do its work: by
// markers or ranges of one name, or by equally many units. Optimisers often replace a kernel that takes most of a step.
func tied(base, head *side.Side) bool {
	first := &base.Captures[0].Report.Unit
	units := func(u *report.Unit) int64 {
		kept := lists.Sum(u.Groups, func(g report.UnitGroup) int64 { return g.Count })
		return kept + u.Trimmed.Cut + u.Trimmed.Warmup + u.Trimmed.Other
	}
	named, equal, n := first.Kind == "nvtx", units(first) >= leastTied, units(first)
	for _, c := range slices.Concat(base.Captures, head.Captures) {
		u := &c.Report.Unit
		named = named && u.Kind == first.Kind && u.Name == first.Name
		equal = equal && u.Kind == first.Kind && (units(u) == n || min(units(u), n) >= nearlyTied && max(units(u)-n, n-units(u)) == 1)
	}
	return named || equal
}

func total(list []side.Work) float64 {
	return lists.Sum(list, func(w side.Work) float64 { return w.Count })
}

// topCategories names the three categories with most runs.
func topCategories(list []side.Work) string {
	pools := byCategory(lists.Map(list, func(w side.Work) pool { return pool{category: w.Category, count: w.Count} }))
	lists.Sort(pools, func(a, b pool) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.category, b.category))
	})
	text := func(p pool) string { return fmt.Sprintf("%.4g %s", p.count, p.category) }
	return strings.Join(lists.Map(pools[:min(3, len(pools))], text), ", ")
}
