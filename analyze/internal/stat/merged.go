package stat

import (
	"maps"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Merged is a view of several sorted samples as one sorted sample, without moving a number. The number of rank k is
// found by bisection over values: is the number of values up to the middle, summed over all samples, more than k?
//
//	a: 2 4 4        b: 4 5 5 7 9        rank 3 of a and b together, 0-based, values 2..9
//
//	middle 5: 3 of a and 3 of b are at most 5, 6 > 3: at most 5
//	middle 3: 1 of a and 0 of b are at most 3, 1 <= 3: at least 4
//	middle 4: 3 of a and 1 of b are at most 4, 4 > 3: it is 4
//
// That costs 64 steps of one binary search per sample at most, whatever the samples hold. The 32-bit samples of a
// capture with 10 million kernels take 40 MB; to join them for one percentile would take that again.
type Merged []Sample

// Len is how many numbers there are.
func (t Merged) Len() int {
	return lists.Sum(t, func(s Sample) int { return s.Len() })
}

// Sum of the numbers.
func (t Merged) Sum() int64 {
	return lists.Sum(t, func(s Sample) int64 { return s.Sum() })
}

// Under is how many numbers are less than limit.
func (t Merged) Under(limit int64) int {
	return lists.Sum(t, func(s Sample) int { return s.Under(limit) })
}

// SumUnder is the sum of the numbers less than limit.
func (t Merged) SumUnder(limit int64) int64 {
	return lists.Sum(t, func(s Sample) int64 { return s.Slice(0, s.Under(limit)).Sum() })
}

// perSample is how many numbers a sample must have on average for bisection to pay: fewer are sorted in less time, and
// take little room.
const perSample = 1 << 8

// Summary describes the numbers, or is nil if there are none.
func (t Merged) Summary() *report.Summary {
	n := t.Len()
	switch {
	case len(t) == 1:
		return t[0].Summary()
	case n == 0:
		return nil
	case n/len(t) < perSample:
		all := make([]int64, 0, n)
		for _, s := range t {
			for i := range s.Len() {
				all = append(all, s.At(i))
			}
		}
		return Summarize(all)
	}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	var m sums
	for _, s := range t {
		if k := s.Len(); k > 0 {
			least, most = min(least, s.At(0)), max(most, s.At(k-1))
		}
		m.add(s)
	}
	mean, sd := m.moments()
	return summary(n, mean, sd, func(k int) float64 { return float64(t.at(k, least, most)) })
}

// at is the number of rank k, counted from 0. All numbers are within least and most.
func (t Merged) at(k int, least, most int64) int64 {
	for least < most {
		middle := least + int64((uint64(most)-uint64(least))/2) // below most
		if t.Under(middle+1) > k {
			most = middle
		} else {
			least = middle + 1
		}
	}
	return least
}

// Histogram counts the numbers in log-spaced bins.
func (t Merged) Histogram() *report.Histogram {
	h := &report.Histogram{Growth: Growth, Bins: [][2]int64{}}
	counts := map[int64]int64{}
	for _, s := range t {
		one := s.Histogram()
		h.Zero += one.Zero
		for _, b := range one.Bins {
			counts[b[0]] += b[1]
		}
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		h.Bins = append(h.Bins, [2]int64{k, counts[k]})
	}
	return h
}
