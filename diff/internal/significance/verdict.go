package significance

import (
	"cmp"
	"math"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/student"
)

// p returns the probability that noise alone moves the change beyond tau: over captures, or the larger of those over
// units and over captures. If there are few units, the sides must also be separated by more than tau.
func (q *question) p(tau float64) float64 {
	over := 0.0
	if q.r != nil {
		if q.r.SE == 0 {
			return 1
		}
		over = student.Beyond(q.r.Effect, tau, q.r.SE, q.r.DF)
		if q.r.Effect*q.d < 0 {
			over = 1
		}
	}
	switch {
	case q.several() && q.r == nil, !q.several() && q.few && !(q.overUnits && above(q.apart, tau)):
		return 1
	case q.several():
		return over
	}
	return max(over, q.c.p(q.unitTau(tau)))
}

// unitTau returns the threshold, ln, for the units inside one capture a side. The change must exceed both a tolerance
// of tau and the floor. If the floor of a time exceeds the tolerance, it covers it: listed units then only have to show
// that there is a change.
func (q *question) unitTau(tau float64) float64 {
	if tau <= q.floor && !q.n.Count && (len(q.base[0].Units) > 0 || q.n.Trimmed > 0) {
		return 0
	}
	return tau
}

// above reports whether a change, ln, exceeds a limit by more than rounding: 1.03 is not above 3 %, nor is 1/1.03, whatever
// their logarithms round to.
func above(change, limit float64) bool { return change > limit+1e-12 }

// decide turns p-values into a verdict.
func (q *question) decide(p, adjustedRule, adjustedClass float64, o Options) {
	v := &q.v
	v.P, v.PAdjusted = p, adjustedRule
	low, high := q.interval(o)
	stays := !q.several() || q.n.FloorStays
	least := math.Abs(q.d)
	if q.overUnits && !q.several() {
		least = q.c.least
	}
	beyond := !stays || above(least, q.floor)
	open := !q.drifts && !(q.several() && q.few)
	change := beyond && open && adjustedClass <= o.Alpha && above(math.Abs(q.d), q.tauClass)
	reach := math.Log(math.Exp(q.tau) + math.Expm1(q.floor))
	surely := v.Level > 0 && open && (!q.few || q.overUnits)
	same := q.tauClass
	if stays {
		same = q.floor
	}
	small := !above(q.d, q.tau)
	switch {
	case change && q.d > 0:
		v.Class = comparison.Regressed
	case change:
		v.Class = comparison.Improved
	case surely && !above(-low, same) && !above(high, same) && !above(math.Abs(q.d), q.tauClass):
		v.Class = comparison.Same
	}
	certain := change && adjustedRule <= o.Alpha
	switch {
	case certain || !above(math.Abs(q.d), q.tau):
	case q.few:
		v.Open = comparison.TooFewUnits
	case q.drifts, q.loose && (v.Base.drifts(unitsOf(q.base)) || v.Head.drifts(unitsOf(q.head))): // nothing ties unit to unit
		v.Open = comparison.Trend
	default:
		v.Open = comparison.WideInterval
	}
	switch {
	case certain && !small:
		v.Outcome, v.Code = Fails, ""
	case surely && small && !above(high, reach):
		v.Outcome, v.Code = Holds, ""
		if v.Class == comparison.Regressed && above(high, q.tau) { // slower for certain, and perhaps by more than the rule allows
			v.Outcome = Warns
		}
	case q.few && v.Level == 0:
		v.Code = comparison.TooFewUnits
	// small and uncertain: the resolution says how much would have been seen; of a count there is no other noise to
	// know of
	case (v.Level > 0 || q.n.Count) && small:
		v.Outcome, v.Code, v.Loose = Holds, "", true
	default:
		v.Code = cmp.Or(v.Open, comparison.WideInterval)
	}
	q.resolution(o)
}

// interval fills in the displayed interval, and returns it in ln.
func (q *question) interval(o Options) (low, high float64) {
	v := &q.v
	low, high = q.d, q.d
	switch {
	case q.overUnits && !q.several():
		low, high = q.c.low, q.c.high
		v.Level, v.Method = q.level, q.c.method
	case q.r != nil && q.r.SE > 0:
		low, high = q.r.Low, q.r.High
		v.Level, v.Method = 1-o.Alpha, "t interval over captures"
	}
	v.Ratio, v.Low, v.High = ratio(q.d), ratio(low), ratio(high)
	return low, high
}

// ratio returns exp(ln), limited so that it and its inverse stay finite.
func ratio(ln float64) float64 { return math.Exp(min(max(ln, -700), 700)) }

// resolution sets the smallest loss that these captures, with their noise, would have failed.
func (q *question) resolution(o Options) {
	if q.drifts || q.several() && (q.few || q.r == nil || q.r.SE == 0) {
		return
	}
	least := q.tau
	if !q.several() || q.n.FloorStays {
		least = max(least, q.floor)
	}
	if q.r != nil {
		near := student.Quantile(o.Alpha, q.r.DF)
		least = max(least, student.Least(q.tau, q.r.SE, q.r.DF, o.Alpha, near))
	}
	switch {
	case q.several():
	case q.overUnits:
		least = max(least, q.unitTau(q.tau)+q.c.d-q.c.low)
	case q.r == nil:
		return
	}
	q.v.Resolution = ratio(least) - 1
	if q.n.HigherBetter {
		q.v.Resolution = -math.Expm1(-least)
	}
}

// need sets how many captures a side would settle it. If the noise between captures is unknown, it takes the floor as
// 2.326 standard deviations of a difference.
func (q *question) need(o Options) {
	p := Plan{SD: q.sd, DF: q.sdDF, Tau: q.tau, Alpha: o.Alpha}
	if q.r == nil && q.sdDF == 0 {
		p.SD = q.floor / (student.NormalQuantile(0.01) * math.Sqrt2)
	}
	p.SD = max(p.SD, q.timer())
	p.Margin = math.Log(math.Exp(q.tau)+math.Expm1(q.floor)) - q.tau
	q.v.Need = p.Need(max(q.d, 0), Power)
}

// verdict returns the answer in terms of the original sides.
func (q *question) verdict() Verdict {
	v := q.v
	v.Test = q.r
	if !q.n.HigherBetter {
		return v
	}
	if v.Ratio != 0 {
		v.Ratio, v.Low, v.High = 1/v.Ratio, 1/v.High, 1/v.Low
	}
	if t := v.Test; t != nil {
		t.Effect, t.Low, t.High = -t.Effect, -t.High, -t.Low
	}
	v.Base, v.Head = v.Head, v.Base
	return v
}
