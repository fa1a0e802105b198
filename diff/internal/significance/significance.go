// Package significance decides what few captures prove about a change: pure statistics over float64 slices, standard
// library only; every result depends on its arguments alone.
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

import "math"

// Sample is one metric or kernel over all captures: one value per capture, natural logarithms; NaN if a capture
// lacks it.
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

// Result is one test. Known is false if the variance between captures is unknown: then P is 1, SE is 0 and Low = High =
// Effect, and no conclusion may be drawn.
type Result struct {
	Known     bool
	Effect    float64 // mean of head minus mean of base, ln
	S2        float64 // variance between captures of one side, pooled over both sides and the history
	Moderated float64 // S2 moderated by the other samples
	SE        float64 // of Effect, from the moderated variance
	DF        float64 // degrees of freedom of Moderated, at most student.MaxDF
	P         float64 // against the threshold, see TREAT
	Low, High float64 // two-sided confidence interval of Effect
	NBase     int     // captures that have the value
	NHead     int
}

// mean returns the mean of the values that are not NaN, and their number.
func mean(values []float64) (m float64, n int) {
	var sum float64
	for _, v := range values {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	if n == 0 {
		return 0, 0
	}
	return sum / float64(n), n
}

// squares returns the sum of squared deviations from the mean m, over the values that are not NaN.
func squares(values []float64, m float64) float64 {
	var sum float64
	for _, v := range values {
		if !math.IsNaN(v) {
			sum += (v - m) * (v - m)
		}
	}
	return sum
}
