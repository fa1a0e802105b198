package stat

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Sample is a list of whole numbers, in 32 bits each if all of them fit. The zero value is empty.
type Sample struct {
	narrow []uint32
	wide   []int64
}

// Narrow makes a sample of numbers below 2^32. It keeps the list.
func Narrow(list []uint32) Sample { return Sample{narrow: list} }

// Wide makes a sample of any whole numbers. It keeps the list.
func Wide(list []int64) Sample { return Sample{wide: list} }

// Len is how many numbers there are.
func (s Sample) Len() int { return len(s.narrow) + len(s.wide) }

// At is the i-th number.
func (s Sample) At(i int) int64 {
	if s.wide != nil {
		return s.wide[i]
	}
	return int64(s.narrow[i])
}

// Slice is the numbers lo <= i < hi, which it shares with s.
func (s Sample) Slice(lo, hi int) Sample {
	if s.wide != nil {
		return Sample{wide: s.wide[lo:hi]}
	}
	return Sample{narrow: s.narrow[lo:hi]}
}

// Sum of the numbers.
func (s Sample) Sum() int64 { return sumOf(s.narrow) + sumOf(s.wide) }

func sumOf[T uint32 | int64](list []T) int64 {
	return lists.Sum(list, func(v T) int64 { return int64(v) })
}

// Sort orders the numbers in place. room is as SortIn has it, for numbers of 32 bits.
func (s Sample) Sort(room []uint32) {
	SortIn(s.narrow, room)
	Sort(s.wide)
}

// Under is how many numbers of a sorted sample are less than limit.
func (s Sample) Under(limit int64) int {
	if s.wide != nil {
		n, _ := slices.BinarySearch(s.wide, limit)
		return n
	}
	if limit > math.MaxUint32 {
		return len(s.narrow)
	}
	n, _ := slices.BinarySearch(s.narrow, uint32(max(limit, 0)))
	return n
}

// Percentile of a sorted sample that is not empty, as the function of this name.
func (s Sample) Percentile(q float64) float64 {
	if s.wide != nil {
		return Percentile(s.wide, q)
	}
	return Percentile(s.narrow, q)
}

// Summary describes a sorted sample, or is nil for an empty one.
func (s Sample) Summary() *report.Summary {
	if s.wide != nil {
		return describe(s.wide)
	}
	return describe(s.narrow)
}

// Histogram counts a sorted sample in log-spaced bins.
func (s Sample) Histogram() *report.Histogram {
	if s.wide != nil {
		return Histogram(s.wide)
	}
	return Histogram(s.narrow)
}

// Add adds a number, into the room behind the list of a narrow sample as long as the numbers fit into 32 bits.
func (s *Sample) Add(v int64) {
	switch {
	case s.wide != nil:
		s.wide = append(s.wide, v)
	case v < 0 || v > math.MaxUint32:
		s.wide = make([]int64, 0, 2*len(s.narrow)+1)
		for _, x := range s.narrow {
			s.wide = append(s.wide, int64(x))
		}
		s.narrow, s.wide = nil, append(s.wide, v)
	default:
		s.narrow = append(s.narrow, uint32(v))
	}
}
