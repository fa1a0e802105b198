package significance

import (
	"math"
	"slices"
)

// eighths is how many stretches a capture is looked at in.
const eighths = 8

// Trend is how much the work of the units drifts over one capture.
type Trend struct {
	Correlation float64 // of ln of the value with its place, -1 to 1
	Range       float64 // largest over smallest of the medians of eighths, at least 1
	Lag1        float64 // of ln of the values, see [Lag1]

	low, high float64 // ln of the smallest and the largest of the medians of eighths
}

// TrendOf looks at the units of one capture in their order; values are plain and positive. Below MinUnits there is
// nothing to see: the zero value, with a Range of 1.
func TrendOf(units []float64) Trend {
	n := len(units)
	if n < MinUnits || slices.Min(units) <= 0 {
		return Trend{Range: 1}
	}
	ln := logs(units)
	lo, hi := math.Inf(1), 0.0
	for k := range eighths {
		m := Median.Of(slices.Clone(units[k*n/eighths : (k+1)*n/eighths]))
		lo, hi = min(lo, m), max(hi, m)
	}
	t := Trend{Range: hi / lo, Lag1: Lag1(ln), low: math.Log(lo), high: math.Log(hi)}
	m, _ := mean(ln)
	middle := float64(n-1) / 2
	var xy, xx, yy float64
	for i, v := range ln {
		x := float64(i) - middle
		xy, xx, yy = xy+x*(v-m), xx+x*x, yy+(v-m)*(v-m)
	}
	if yy > 0 {
		t.Correlation = xy / math.Sqrt(xx*yy)
	}
	return t
}

// drifts reports whether the values of n units depend on their place by more than chance would have it: |correlation|
// > 0.5, or eighths that differ by more than 15 % in a series of which neighbours are alike (lag 1 > 0.3); both at
// least 2/√n, two standard errors of a correlation.
func (t Trend) drifts(n int) bool {
	chance := 2 / math.Sqrt(float64(n))
	return math.Abs(t.Correlation) > max(0.5, chance) || t.Range > 1.15 && t.Lag1 > max(0.3, chance)
}

// strong reports whether two captures with this trend say nothing unless it is known which unit of one belongs to
// which of the other: they drift, and by more than 15 %.
func (t Trend) strong(n int) bool { return t.Range > 1.15 && t.drifts(n) }

// apart reports whether the captures lie further apart than their drifts explain: from the largest eighth of the faster
// one to the smallest of the slower one it is more than twice what the one that drifts less does so from end to end.
// For a drift alone to do that, more than two lengths of a capture would have to lie between them.
func (t Trend) apart(u Trend) bool {
	return max(t.low-u.high, u.low-t.high) > 2*math.Log(min(t.Range, u.Range))
}

func logs(values []float64) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = math.Log(v)
	}
	return list
}
