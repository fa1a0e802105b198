// Package stat holds the descriptive statistics of the report, exact over whole samples.
package stat

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// Number is what samples are made of.
type Number interface{ ~int64 | ~float64 }

// Percentile interpolates linearly between closest ranks (Hyndman and Fan's type 7, numpy's default) in a sorted,
// non-empty sample. q is in [0,1].
func Percentile[T Number](sorted []T, q float64) float64 {
	pos := q * float64(len(sorted)-1)
	lo := int(pos)
	if lo >= len(sorted)-1 {
		return float64(sorted[len(sorted)-1])
	}
	a, b := float64(sorted[lo]), float64(sorted[lo+1])
	return a + (pos-float64(lo))*(b-a)
}

// Summarize describes a sample, or returns nil for an empty one. It sorts the sample.
func Summarize[T Number](sample []T) *report.Summary {
	if len(sample) == 0 {
		return nil
	}
	slices.Sort(sample)
	mean, sd := moments(sample)
	return &report.Summary{
		N: int64(len(sample)), Min: float64(sample[0]), Max: float64(sample[len(sample)-1]),
		P50: Percentile(sample, 0.5), P90: Percentile(sample, 0.9), P99: Percentile(sample, 0.99),
		Mean: mean, Stddev: sd,
	}
}

// moments are the mean, total over count, and the population standard deviation around it.
func moments[T Number](sample []T) (mean, sd float64) {
	var sum T
	for _, v := range sample {
		sum += v
	}
	n := float64(len(sample))
	mean = float64(sum) / n
	var squares float64
	for _, v := range sample {
		d := float64(v) - mean
		squares += d * d
	}
	return mean, math.Sqrt(squares / n)
}

// Growth is the ratio of neighbouring histogram bins: no value is further than 2 % from its bin's lower edge.
const Growth = 1.02

var logGrowth = math.Log(Growth)

// Histogram counts a sorted sample in log-spaced bins.
func Histogram[T Number](sorted []T) *report.Histogram {
	h := &report.Histogram{Growth: Growth, Bins: [][2]int64{}}
	for _, v := range sorted {
		if v <= 0 {
			h.Zero++
			continue
		}
		k := bin(float64(v))
		if n := len(h.Bins); n > 0 && h.Bins[n-1][0] == k {
			h.Bins[n-1][1]++
		} else {
			h.Bins = append(h.Bins, [2]int64{k, 1})
		}
	}
	return h
}

// bin is the k with Growth^k <= v < Growth^(k+1), made exact at the edges where the logarithm rounds.
func bin(v float64) int64 {
	k := int64(math.Floor(math.Log(v) / logGrowth))
	for math.Pow(Growth, float64(k+1)) <= v {
		k++
	}
	for math.Pow(Growth, float64(k)) > v {
		k--
	}
	return k
}

// Ratio is a over b, or nil where b is not positive.
func Ratio[A, B Number](a A, b B) *float64 {
	if b <= 0 {
		return nil
	}
	r := float64(a) / float64(b)
	return &r
}
