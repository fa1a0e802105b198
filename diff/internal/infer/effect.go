package infer

import (
	"math"
	"slices"
	"sort"
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
	m, n := mean(values)
	if n < 2 {
		return 0
	}
	return math.Sqrt(squares(values, m) / float64(n-1))
}

// MAD is the median absolute deviation from the median, without a factor.
func MAD(values []float64) float64 {
	m := median(slices.Clone(values))
	d := make([]float64, len(values))
	for i, v := range values {
		d[i] = math.Abs(v - m)
	}
	return median(d)
}
