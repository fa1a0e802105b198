package breakdown

import (
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// slowSteps describes what a few slow units add to a side: "3 of 64 steps took 6 times as long".
type slowSteps struct {
	Units int     // that took more than twice the median
	Of    int     // units looked at
	Times float64 // their mean over the side's median; 0 if there are none
	Every int     // their even distance, see [significance.Even]: 8 says "1 in 8"
	First bool    // they are the first ones, as if the program were still warming up
}

// stallsOf describes the slow units of one capture, in run order.
func stallsOf(units []float64) slowSteps {
	e := slowSteps{Of: len(units)}
	middle := significance.Median.Of(slices.Clone(units))
	at := lists.Where(len(units), func(i int) bool { return units[i] > significance.Stalled*middle })
	if len(at) == 0 || !(middle > 0) {
		return e
	}
	e.Units = len(at)
	e.Times = lists.Sum(at, func(i int) float64 { return units[i] }) / float64(e.Units) / middle
	e.Every, e.First = significance.Even(at, len(units)), at[e.Units-1] == e.Units-1
	return e
}

// slowUnits finds the slow units of one capture: those above the median by more than 2 % of it and by more than six
// times the median distance from it. of is the number of units, sum the total excess of the slow ones, middle the
// median.
func slowUnits(units []float64) (n, of int, sum, middle float64) {
	middle = significance.Median.Of(slices.Clone(units))
	far := lists.Map(units, func(v float64) float64 { return math.Abs(v - middle) })
	limit := middle + max(6*significance.Median.Of(far), middle/50)
	slow := lists.Filter(units, func(v float64) bool { return v > limit })
	return len(slow), len(units), lists.Sum(slow, func(v float64) float64 { return v - middle }), middle
}

// Limits for units of two lengths.
const (
	leastApart  = 1.1  // of the longer ones over the others
	sameLength  = 0.01 // most change of the median of either length
	leastLonger = 2    // units of either length on either side
)

// otherLengths says that a mean changed because more or fewer units are the longer ones of two lengths that both sides
// have. It is empty if either length changed.
func otherLengths(base, head []float64) string {
	all := slices.Sorted(slices.Values(slices.Concat(base, head)))
	limit, widest := 0.0, leastApart
	for i := 1; i < len(all); i++ {
		if apart := all[i] / all[i-1]; apart > widest {
			limit, widest = all[i], apart
		}
	}
	isShort, isLong := func(v float64) bool { return v < limit }, func(v float64) bool { return v >= limit }
	b, moreB := lists.Filter(base, isShort), lists.Filter(base, isLong)
	h, moreH := lists.Filter(head, isShort), lists.Filter(head, isLong)
	if limit == 0 || min(len(b), len(moreB), len(h), len(moreH)) < leastLonger {
		return ""
	}
	middle := significance.Median.Of
	short, long := middle(slices.Clone(b)), middle(slices.Clone(moreB))
	was, is := float64(len(moreB))/float64(len(base)), float64(len(moreH))/float64(len(head))
	if math.Abs(middle(slices.Clone(h))/short-1) > sameLength || math.Abs(middle(slices.Clone(moreH))/long-1) > sameLength || was == is {
		return ""
	}
	return fmt.Sprintf("%s of the longer steps: %d of %d instead of %d of %d take %.2g times as long as the others, and either take as long as before",
		more(is-was, "more", "fewer"), len(moreH), len(head), len(moreB), len(base), long/short)
}

// allTimes are the times of a side's units, ns.
func allTimes(s *side.Side) []float64 { return slices.Concat(lists.Map(s.Views, times)...) }

// warmups names the first steps of a side that are warm-up, if what they take beyond as many others is more than on the
// other side by a step.
func warmups(base, head *side.Side) string {
	b, h := warmupOf(base), warmupOf(head)
	more, name := h, "head"
	if b.over() > h.over() {
		more, name = b, "base"
	}
	if math.Abs(h.over()-b.over()) < 1 {
		return ""
	}
	steps := "step is"
	if more.Units > 1 {
		steps = fmt.Sprintf("%d steps are", more.Units)
	}
	const text = "%s: the first %s warm-up, %.2g times as long as the others, and not compared"
	return fmt.Sprintf(text, name, steps, more.Times)
}

// over is what the units take beyond as many others, in units.
func (s slowSteps) over() float64 { return float64(s.Units) * (s.Times - 1) }

// warmupOf describes the warm-up of a side's capture that has most.
func warmupOf(s *side.Side) (most slowSteps) {
	for _, v := range s.Views {
		warm := v.Times(side.Warmup)
		if len(warm) == 0 {
			continue
		}
		one := slowSteps{Units: len(warm), Times: significance.Mean.Of(warm) / significance.Median.Of(times(v))}
		if one.over() > most.over() {
			most = one
		}
	}
	return most
}
