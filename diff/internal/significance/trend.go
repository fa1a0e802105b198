package significance

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// eighths is the number of stretches into which a capture is divided.
const eighths = 8

// Trend describes how the work of the units drifts over one capture.
type Trend struct {
	Correlation float64 // of ln of the value with its index, -1 to 1
	Range       float64 // largest over smallest of the medians of eighths, at least 1
	Lag1        float64 // of ln of the values, see [Lag1]

	low, high float64 // ln of the smallest and the largest of the medians of eighths
}

// TrendOf looks at the units of one capture in run order; values are plain and positive. Below MinUnits it returns the
// zero value with a Range of 1.
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
	m := mean(ln)
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

// drifts reports whether the values of n units depend on their index by more than chance: |correlation| > 0.5, or
// eighths that differ by more than 15 % while neighbours are alike (lag 1 > 0.3). Both must also exceed 2/√n, two
// standard errors of a correlation.
func (t Trend) drifts(n int) bool {
	chance := 2 / math.Sqrt(float64(n))
	return math.Abs(t.Correlation) > max(0.5, chance) || t.Range > 1.15 && t.Lag1 > max(0.3, chance)
}

// strong reports whether the trend makes captures incomparable unless it is known which units correspond: they drift,
// by more than 15 %.
func (t Trend) strong(n int) bool { return t.Range > 1.15 && t.drifts(n) }

// apart reports whether the captures differ by more than their drifts explain: the gap between the largest eighth of
// the faster one and the smallest of the slower one is more than twice the larger of the two drifts. A drift alone
// would need more than two lengths of a capture between them.
func (t Trend) apart(u Trend) bool {
	return max(t.low-u.high, u.low-t.high) > 2*math.Log(max(t.Range, u.Range))
}

func logs(values []float64) []float64 {
	return lists.Map(values, math.Log)
}
