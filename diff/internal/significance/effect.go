package significance

import (
	"math"
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// CliffsDelta is how far head lies above base, as an effect size without unit (Cliff 1993): the share of all pairs
// in which head is larger minus the share in which base is, from -1 to 1. Values may be in any unit. ok is false for
// an empty side.
func CliffsDelta(base, head []float64) (delta float64, ok bool) {
	if len(base) == 0 || len(head) == 0 {
		return 0, false
	}
	sorted := slices.Clone(base)
	slices.Sort(sorted)
	var more, less int64
	for _, h := range head {
		lo := sort.SearchFloat64s(sorted, h)
		hi := lo + sort.Search(len(sorted)-lo, func(i int) bool { return sorted[lo+i] > h })
		more += int64(lo)
		less += int64(len(sorted) - hi)
	}
	return float64(more-less) / (float64(len(base)) * float64(len(head))), true
}

// Deviation is the standard deviation of a sample, with n-1 in the denominator; 0 for fewer than two values.
func Deviation(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	return math.Sqrt(squares(values) / float64(len(values)-1))
}

// NormalMAD times the median absolute deviation is the standard deviation of normal values.
const NormalMAD = 1.4826

// MAD is the median absolute deviation from the median, without a factor.
func MAD(values []float64) float64 {
	m := order.Median(slices.Clone(values))
	d := lists.Map(values, func(v float64) float64 { return math.Abs(v - m) })
	return order.Median(d)
}

// steadiness estimates the standard deviation of a series without drifts and single slow steps: the smaller of
//
//	1.4826/√2 · median |x(i+1) - x(i)|         which a drift does not inflate
//	(shortest stretch that holds half) / 1.349   which slow steps do not, as long as they are fewer than half
//
// both of which estimate σ of independent normal values (Rousseeuw & Leroy 1987). It needs at least two values.
func steadiness(values []float64) float64 {
	steps := make([]float64, len(values)-1)
	for i := range steps {
		steps[i] = math.Abs(values[i+1] - values[i])
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	half := len(sorted) / 2
	shortest := math.Inf(1)
	for i := range len(sorted) - half {
		shortest = min(shortest, sorted[i+half]-sorted[i])
	}
	return min(NormalMAD*order.Median(steps)/math.Sqrt2, shortest*NormalMAD/2)
}
