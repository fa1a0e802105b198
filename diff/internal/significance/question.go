package significance

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/student"
)

// leastFloor is the least calibrated floor: two captures that agree better were lucky, or are copies.
const leastFloor = 0.005

// question is a number being judged, turned so that more is worse: the sides are swapped if higher is better.
type question struct {
	n             *Number
	base, head    []Capture
	b, h          []float64 // value of each capture, as the row shows it
	settled       bool      // v is final
	d             float64   // ln of the ratio of the values
	tau, tauClass float64   // ln
	floor         float64   // ln
	c             contrast  // over units
	overUnits     bool      // c is set
	level         float64   // of c
	few           bool      // too few units for c
	apart         float64   // if few: ln of the smallest ratio of any two units, in the direction of d
	loose         bool      // the units are compared as two untied samples
	drifts        bool      // strongly, and loose
	r             *Result   // over captures; nil if the noise between them is unknown
	sd, sdDF      float64   // between captures; sdDF comes from a calibration
	v             Verdict
}

func (q *question) several() bool { return len(q.base) > 1 && len(q.head) > 1 }

// ask prepares a question, and settles at once what needs no statistics.
func ask(n *Number, o Options) question {
	q := question{n: n, base: n.Base, head: n.Head}
	tolerance := cmp.Or(n.Tolerance, o.Tau)
	q.tau, q.tauClass = math.Log1p(tolerance), math.Log1p(min(tolerance, o.Tau))
	if n.HigherBetter {
		q.base, q.head = n.Head, n.Base
		q.tau, q.tauClass = -math.Log1p(-min(tolerance, 0.999)), -math.Log1p(-min(tolerance, o.Tau))
	}
	q.b, q.h = valuesOf(q.base, n.Stat), valuesOf(q.head, n.Stat)
	floor := n.Floor
	switch {
	case floor > 0:
	case n.History != nil && n.History.DF > 0:
		floor = max(leastFloor, Floor(math.Sqrt(n.History.S2), n.History.DF))
	default:
		floor = comparison.DefaultFloor
	}
	q.floor = math.Log1p(floor)
	q.v = Verdict{Class: comparison.Unsettled, P: 1, PAdjusted: 1, Floor: floor, Code: comparison.WideInterval, Replicated: q.several()}
	b, h := mean(q.b), mean(q.h)
	switch {
	case len(q.b) == 0 || len(q.h) == 0:
		q.settled = true
	case same(q.base, q.head) && slices.Equal(q.b, q.h):
		q.settle(comparison.Same, Holds)
		q.v.Ratio, q.v.Low, q.v.High = 1, 1, 1
	case !all(q.b, positive) || !all(q.h, positive) || !listed(q.base) || !listed(q.head):
		q.settled = true
	case n.Count && constant(q.base) && constant(q.head):
		q.d = math.Log(h / b)
		q.exact()
	default:
		q.d = math.Log(h / b)
	}
	return q
}

// Floor is the change, as a ratio, that 99 % of comparisons of two captures of one commit stay below, from the
// standard deviation of ln between captures and its degrees of freedom: exp( t(0.99, df) · sd · √2 ) - 1.
func Floor(sd, df float64) float64 {
	return math.Expm1(student.Quantile(0.01, min(df, student.MaxDF)) * sd * math.Sqrt2)
}

// same reports whether both sides list the same units.
func same(base, head []Capture) bool {
	return slices.EqualFunc(base, head, func(a, b Capture) bool {
		return slices.Equal(a.Units, b.Units) && a.SD == b.SD
	})
}

func valuesOf(side []Capture, stat Statistic) []float64 {
	list := make([]float64, 0, len(side))
	for i := range side {
		switch v := side[i].Value; {
		case v != 0:
			list = append(list, v)
		case len(side[i].Units) > 0:
			list = append(list, stat.Of(slices.Clone(side[i].Units)))
		}
	}
	return list
}

func all(values []float64, ok func(float64) bool) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !ok(v) })
}

// listed reports whether all listed units are valid values of a time or a count.
func listed(side []Capture) bool {
	return !slices.ContainsFunc(side, func(c Capture) bool {
		number := func(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }
		return !all(c.Units, number) || !number(c.SD)
	})
}

// constant reports whether a number is the same in all units of all captures.
func constant(side []Capture) bool {
	first := math.NaN()
	for i := range side {
		if len(side[i].Units) == 0 && side[i].SD != 0 {
			return false
		}
		for _, v := range append([]float64{side[i].Value}, side[i].Units...) {
			switch {
			case v == 0 && len(side[i].Units) > 0:
			case math.IsNaN(first):
				first = v
			case v != first:
				return false
			}
		}
	}
	return true
}

func (c *Capture) units() int {
	if c.N > 0 {
		return c.N
	}
	return len(c.Units)
}

func (q *question) settle(class comparison.Class, outcome Outcome) {
	q.settled, q.v.Class, q.v.Outcome, q.v.Code = true, class, outcome, ""
}

// exact decides a constant count: any difference is a change, and the rule applies to the value itself.
func (q *question) exact() {
	r := ratio(q.d)
	q.v.Ratio, q.v.Low, q.v.High, q.v.Level, q.v.Method = r, r, r, 1, "exact: it is the same in every unit"
	q.v.P, q.v.PAdjusted = 0, 0
	q.v.Floor, q.v.Resolution = 0, math.Expm1(q.tau)
	class, outcome := comparison.Regressed, Holds
	switch {
	case q.d == 0:
		class = comparison.Same
	case q.d < 0:
		class = comparison.Improved
	}
	if above(q.d, q.tau) {
		outcome = Fails
	}
	q.settle(class, outcome)
}
