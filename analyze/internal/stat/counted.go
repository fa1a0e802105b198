package stat

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// Counted is a sample as its distinct values, ascending, with how often each occurs. Samples of several captures merge
// by adding counts, and their percentiles stay exact.
type Counted struct {
	Values []int64
	Counts []int64 // above 0
}

// Count makes a counted sample of a sorted one.
func Count(sorted []int64) (c Counted) {
	for i, v := range sorted {
		if i > 0 && sorted[i-1] == v {
			c.Counts[len(c.Counts)-1]++
			continue
		}
		c.Values, c.Counts = append(c.Values, v), append(c.Counts, 1)
	}
	return c
}

// Merge adds up counted samples.
func (c Counted) Merge(x Counted) (sum Counted) {
	sum.Values, sum.Counts = make([]int64, 0, len(c.Values)+len(x.Values)), make([]int64, 0, len(c.Values)+len(x.Values))
	put := func(v, n int64) { sum.Values, sum.Counts = append(sum.Values, v), append(sum.Counts, n) }
	i, k := 0, 0
	for i < len(c.Values) || k < len(x.Values) {
		switch {
		case k == len(x.Values) || i < len(c.Values) && c.Values[i] < x.Values[k]:
			put(c.Values[i], c.Counts[i])
			i++
		case i == len(c.Values) || x.Values[k] < c.Values[i]:
			put(x.Values[k], x.Counts[k])
			k++
		default:
			put(c.Values[i], c.Counts[i]+x.Counts[k])
			i, k = i+1, k+1
		}
	}
	return sum
}

// Summary describes the observations exactly as [Summarize] does for the whole sample; nil if there are none.
func (c Counted) Summary() *report.Summary {
	if len(c.Values) == 0 {
		return nil
	}
	var m sums
	for i, v := range c.Values {
		m.addTimes(v, c.Counts[i])
	}
	mean, sd := m.moments()
	var ends []int64 // rank after the last observation of each value
	var at int64
	for _, k := range c.Counts {
		at += k
		ends = append(ends, at)
	}
	value := func(k int64) int64 {
		i, _ := slices.BinarySearch(ends, k+1)
		return c.Values[min(i, len(c.Values)-1)]
	}
	percentile := func(q float64) float64 {
		lo, part := rank(int(m.n), q)
		return between(value(int64(lo)), value(min(int64(lo)+1, m.n-1)), part)
	}
	return &report.Summary{N: m.n, Min: float64(c.Values[0]), Max: float64(c.Values[len(c.Values)-1]),
		P50: percentile(0.5), P90: percentile(0.9), P99: percentile(0.99), Mean: mean, Stddev: sd}
}

// Coarse puts the observations into log-spaced bins, each at the middle of its whole numbers: values, and with them
// percentiles, are then off by 1 % at most. The first and the last value stay exact. Bins are the same in every sample,
// so that merging coarse samples and making them coarse again loses no more.
func (c Counted) Coarse() (out Counted) {
	for i, v := range c.Values {
		if i > 0 && i < len(c.Values)-1 {
			v = middleOfBin(v)
		}
		if n := len(out.Values); n > 0 && out.Values[n-1] >= v { // one of the ends is in the bin
			out.Values[n-1], out.Counts[n-1] = max(v, c.Values[0]), out.Counts[n-1]+c.Counts[i]
			continue
		}
		out.Values, out.Counts = append(out.Values, v), append(out.Counts, c.Counts[i])
	}
	return out
}

func middleOfBin(v int64) int64 { return MiddleOf(BinOf(v)) }

// Bins of coarse samples: values below least stay as they are, and those below fine, an edge, have bins half as wide,
// since whole numbers are coarse there already.
const least, fine = 100, 4094

var firstFine, lastFine, firstBin = bin(least * least), bin((fine - 1) * (fine - 1)), bin(fine)

// BinOf is the number of the bin of coarse samples that a value falls into.
func BinOf(v int64) int64 {
	switch {
	case v < least:
		return v
	case v < fine:
		return least + bin(float64(v)*float64(v)) - firstFine
	}
	return least + lastFine - firstFine + 1 + bin(float64(v)) - firstBin
}

// MiddleOf is the value that stands for all of a bin.
func MiddleOf(number int64) int64 {
	if number < least {
		return number
	}
	k, power := float64(number-least+firstFine), 2.0
	if int64(k) > lastFine {
		k, power = float64(number-least-(lastFine-firstFine+1)+firstBin), 1
	}
	lo, hi := math.Ceil(math.Pow(Growth, k/power)), math.Ceil(math.Pow(Growth, (k+1)/power))-1
	return max(least, int64(math.Round(2*lo*hi/(lo+hi))))
}
