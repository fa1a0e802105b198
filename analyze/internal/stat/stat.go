// Package stat holds the descriptive statistics of the report, exact over whole samples.
package stat

import (
	"math"
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Number is the type of the numbers in a sample.
type Number interface{ int64 | uint32 | float64 }

// Percentile interpolates linearly between closest ranks (Hyndman and Fan's type 7, numpy's default) in a sorted,
// non-empty sample. q is in [0,1].
func Percentile[T Number](sorted []T, q float64) float64 {
	return percentile(len(sorted), q, func(k int) float64 { return float64(sorted[k]) })
}

// percentile is Percentile of n > 0 numbers; at is the one of rank k, counted from 0.
func percentile(n int, q float64, at func(k int) float64) float64 {
	pos := q * float64(n-1)
	lo := int(pos)
	low := at(lo)
	return low + (pos-float64(lo))*(at(min(lo+1, n-1))-low)
}

// summary describes n > 0 numbers by their moments; at is the one of rank k, counted from 0.
func summary(n int, mean, sd float64, at func(k int) float64) *report.Summary {
	return &report.Summary{N: int64(n), Min: at(0), Max: at(n - 1), P50: percentile(n, 0.5, at),
		P90: percentile(n, 0.9, at), P99: percentile(n, 0.99, at), Mean: mean, Stddev: sd}
}

// Summarize describes a sample, or returns nil for an empty one. It sorts the sample.
func Summarize[T Number](sample []T) *report.Summary {
	if len(sample) == 0 {
		return nil
	}
	switch list := any(sample).(type) {
	case []int64:
		Sort(list)
	default:
		slices.Sort(sample)
	}
	return describe(sample)
}

// describe summarizes a sorted sample.
func describe[T Number](sample []T) *report.Summary {
	if len(sample) == 0 {
		return nil
	}
	mean, sd := moments(sample)
	return summary(len(sample), mean, sd, func(k int) float64 { return float64(sample[k]) })
}

// moments are the mean, total over count, and the population standard deviation around it.
func moments[T Number](sample []T) (mean, sd float64) {
	var m sums
	switch list := any(sample).(type) {
	case []int64:
		m.add(Wide(list))
	case []uint32:
		m.add(Narrow(list))
	case []float64:
		var total, squares float64
		for _, v := range list {
			total += v
		}
		mean = total / float64(len(list))
		for _, v := range list {
			d := v - mean
			squares += d * d
		}
		return mean, math.Sqrt(squares / float64(len(list)))
	}
	return m.moments()
}

// Growth is the ratio of neighbouring histogram bins: no value is further than 2 % from its bin's lower edge.
const Growth = 1.02

var logGrowth = math.Log(Growth)

// Histogram counts a sorted sample in log-spaced bins.
func Histogram[T Number](sorted []T) *report.Histogram {
	h := &report.Histogram{Growth: Growth, Bins: [][2]int64{}}
	i := sort.Search(len(sorted), func(i int) bool { return sorted[i] > 0 })
	h.Zero = int64(i)
	for i < len(sorted) {
		k := bin(float64(sorted[i]))
		// The logarithm is taken a few times per bin, not per value
		to := lists.Near(len(sorted), i, func(j int) bool { return bin(float64(sorted[j])) != k })
		h.Bins = append(h.Bins, [2]int64{k, int64(to - i)})
		i = to
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

// Ratio is a over b, or nil if b is not positive.
func Ratio[A, B Number](a A, b B) *float64 {
	if b <= 0 {
		return nil
	}
	return new(float64(a) / float64(b))
}

// Wilson is the 95 % interval of a share, both ends in [0,1], after hits successes in n > 0 independent trials
// (Wilson's score interval, 1927).
func Wilson(hits, n int64) (low, high float64) {
	const z = 1.959963984540054
	p, m := float64(hits)/float64(n), float64(n)
	middle := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	scale := 1 + z*z/m
	return max(0, (middle-half)/scale), min(1, (middle+half)/scale)
}
