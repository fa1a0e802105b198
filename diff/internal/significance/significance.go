// Package significance decides what few captures prove about a change: pure statistics over float64 slices, in the
// words of comparisons; every result depends on its arguments alone.
//
// [Judge] decides every noisy number. The capture is the sample: launches and units inside one capture share its
// clocks, other load on the machine, and chance. With several captures a side it tests the change between them against a
// threshold; with one a side it tests the units inside the captures, and the change must exceed a noise floor.
// [JudgeParts] judges the parts of a unit, and [Plan] says what a comparison could find. The page statistics gives the
// method and its sources.
//
// Values are natural logarithms unless a function says otherwise, so that differences are ratios: a difference d is a
// change of exp(d)-1.
package significance

import (
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Sample is one metric or kernel over all captures, at least one a side: one value per capture, natural logarithms.
type Sample struct {
	Base, Head []float64
	// Resolution is the least credible standard error, ln: resolution of the timer over the value. 0: none.
	Resolution float64
}

// History is the variance of a number between earlier captures of one commit, such as a calibration.
type History struct {
	S2 float64 // variance of ln between captures
	DF float64 // degrees of freedom behind it: captures - 1
}

// Result is one test over captures, whose Tau is left to the caller. DF is 0 if the variance between captures is
// unknown: then SE is 0 and Low = High = Effect, and no conclusion may be drawn.
type Result struct {
	comparison.Test
	Low, High float64 // two-sided confidence interval of Effect
}

func mean(values []float64) float64 { return lists.Total(values) / float64(len(values)) }

// squares returns the sum of squared deviations from the mean.
func squares(values []float64) float64 {
	m := mean(values)
	return lists.Sum(values, func(v float64) float64 { return (v - m) * (v - m) })
}
