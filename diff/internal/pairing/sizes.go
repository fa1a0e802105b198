package pairing

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Limits for a problem of another size. A kernel of twice the threads may take four times as long, as attention
// over twice the tokens does. If it takes less than √2 times as long, the launch may only have been tuned, unless
// several kernels have the same ratio of sizes.
const (
	otherSized   = 0.05 // relative difference in threads from which on launches have another size
	sameRatio    = 0.02 // relative difference up to which ratios are the same
	leastScaling = 0.5  // ln of the ratio of times over ln of the ratio of sizes
	mostScaling  = 2
	agreeing     = 3   // kernels
	mostOfEqual  = 0.5 // share of the compute time of the kernels that both sides run equally often
	mostOfUnit   = 0.2 // share of the unit's
)

// sized is a kernel that both sides run equally often.
type sized struct {
	base, head *side.Work
	share      float64 // of the compute time, averaged over the sides
	size, time float64 // ln head/base, of the threads of a launch and of its time
}

// scales reports whether launches have another size and their time changed with it.
func (s sized) scales(least float64) bool {
	size, time := math.Abs(s.size), s.time*math.Copysign(1, s.size)
	return size > math.Log1p(otherSized) && time >= least*size-sameRatio && time <= mostScaling*size+sameRatio
}

// otherSize says that two units work on problems of other sizes, such as another batch or longer sequences: most
// of the time of the kernels that both run equally often is in launches of more threads that take longer, or of
// fewer that take less long. It is empty if it is not.
func otherSize(a, b []side.Work, names map[string]string) string {
	list := runByBoth(a, b)
	most := lists.Filter(list, func(s sized) bool { return s.scales(leastScaling) })
	for _, of := range list {
		agree := lists.Filter(list, func(s sized) bool {
			return s.scales(0) && math.Abs(s.size-of.size) <= sameRatio
		})
		if len(agree) >= agreeing && shareOf(agree) > shareOf(most) {
			most = agree
		}
	}
	share := shareOf(most)
	if share < max(mostOfUnit, mostOfEqual*shareOf(list)) {
		return ""
	}
	k := slices.MaxFunc(most, func(p, q sized) int { return cmp.Compare(p.share, q.share) })
	return fmt.Sprintf("kernel %s is launched with %.3g times the threads (%s), and kernels like it take %s of a unit's "+
		"compute time: a problem of another size, such as another batch or other sequence lengths",
		wording.Shorten(cmp.Or(names[k.base.Name], k.base.Name), 60), math.Exp(k.size), comparison.FromTo(k.base.Threads, k.head.Threads, report.Count),
		unit.Percent(share))
}

func shareOf(list []sized) float64 { return lists.Sum(list, func(s sized) float64 { return s.share }) }

// runByBoth lists the kernels that two units run equally often and whose sizes are known.
func runByBoth(a, b []side.Work) (list []sized) {
	alone := func(w side.Work) float64 {
		if w.Category == side.Communication {
			return 0
		}
		return w.Alone
	}
	sumA, sumB := lists.Sum(a, alone), lists.Sum(b, alone)
	for i := range a {
		x := &a[i]
		y := lists.Find(b, func(w *side.Work) bool { return w.Name == x.Name })
		if y == nil || min(x.Threads, y.Threads, x.Time, y.Time, sumA, sumB) <= 0 || alike(x.Count, y.Count) < 1-equalRun {
			continue
		}
		list = append(list, sized{x, y, (alone(*x)/sumA + alone(*y)/sumB) / 2, math.Log(y.Threads / x.Threads),
			math.Log(y.Time / y.Count / (x.Time / x.Count))})
	}
	return list
}
