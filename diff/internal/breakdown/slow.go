package breakdown

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// slowSteps describes what a few slow units add to a side: "3 of 64 steps took 6 times as long".
type slowSteps struct {
	Units int     // that took more than twice the median
	Of    int     // units looked at
	Times float64 // their mean over the side's median; 0 if there are none
	Every int     // their even distance, see [significance.Even]: 8 says "1 in 8"
}

// stallsOf describes the slow units of one capture, in run order.
func stallsOf(units []float64) slowSteps {
	e := slowSteps{Of: len(units)}
	middle := significance.Median.Of(slices.Clone(units))
	var sum float64
	var at []int
	for i, v := range units {
		if v <= significance.Stalled*middle {
			continue
		}
		e.Units++
		sum += v
		at = append(at, i)
	}
	if e.Units == 0 || !(middle > 0) {
		return slowSteps{Of: len(units)}
	}
	e.Times = sum / float64(e.Units) / middle
	e.Every = significance.Even(at, len(units))
	return e
}

// slowUnits finds the slow units of one capture: those above the median by more than 2 % of it and by more than six
// times the median distance from it. of is the number of units, sum the total excess of the slow ones, middle the
// median.
func slowUnits(units []float64) (n, of int, sum, middle float64) {
	middle = significance.Median.Of(slices.Clone(units))
	far := lists.Map(units, func(v float64) float64 { return math.Abs(v - middle) })
	limit := middle + max(6*significance.Median.Of(far), middle/50)
	for _, v := range units {
		if v > limit {
			n++
			sum += v - middle
		}
	}
	return n, len(units), sum, middle
}
