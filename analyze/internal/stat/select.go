package stat

import (
	"math/bits"

	"github.com/nsys-llm/explain/analyze/report"
)

// SummaryOnce is the summary of a sample in any order, without sorting all of it. The sample is lost.
func (s Sample) SummaryOnce() *report.Summary {
	if len(s.narrow) < minRadix {
		s.Sort(nil)
		return s.Summary()
	}
	return selected(s.narrow)
}

// Buckets of numbers that share their leading bits, in ascending order: within one, numbers differ by less than 2 %.
const (
	leadBits = 6
	buckets  = (32 - leadBits + 1) << leadBits
)

func bucket(v uint32) int {
	shift := max(0, bits.Len32(v)-leadBits-1)
	return shift<<leadBits + int(v>>shift)
}

// selected counts the numbers by bucket, and sorts only the buckets that hold a percentile.
func selected(list []uint32) *report.Summary {
	n := len(list)
	mean, sd := moments(list)
	low, high := list[0], list[0]
	var count [buckets]int32
	for _, v := range list {
		low, high = min(low, v), max(high, v)
		count[bucket(v)]++
	}
	shares := [...]float64{0.5, 0.9, 0.99}
	var part [len(shares)]float64
	var ranks [2 * len(shares)]int // of the numbers around each percentile, ascending
	for i, q := range shares {
		lo, p := rank(n, q)
		part[i], ranks[2*i], ranks[2*i+1] = p, lo, min(lo+1, n-1)
	}
	var kept [buckets]bool
	below, dropped, k := 0, 0, 0 // numbers in the buckets before, and those of them that are not kept
	for b, c := range count {
		for ; k < len(ranks) && ranks[k] < below+int(c); k++ {
			kept[b] = true
			ranks[k] -= dropped
		}
		if below += int(c); !kept[b] {
			dropped += int(c)
		}
	}
	near := list[:0]
	for _, v := range list {
		if kept[bucket(v)] {
			near = append(near, v)
		}
	}
	SortIn(near, list[len(near):n])
	at := func(i int) float64 { return between(near[ranks[2*i]], near[ranks[2*i+1]], part[i]) }
	return &report.Summary{N: int64(n), Min: float64(low), Max: float64(high), P50: at(0), P90: at(1), P99: at(2),
		Mean: mean, Stddev: sd}
}
