package stat

import (
	"math/bits"
	"slices"

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

// selected counts the numbers by bucket, and sorts only the buckets that hold what a summary asks for.
func selected(list []uint32) *report.Summary {
	n := len(list)
	mean, sd := moments(list)
	var count [buckets]int32
	for _, v := range list {
		count[bucket(v)]++
	}
	var ranks []int // that a summary asks for, ascending
	summary(n, mean, sd, func(k int) float64 { ranks = append(ranks, k); return 0 })
	slices.Sort(ranks)
	place := map[int]int{} // by rank, among the numbers that are kept
	var kept [buckets]bool
	below, dropped := 0, 0 // numbers in the buckets before, and those of them that are not kept
	for b, c := range count {
		for ; len(ranks) > 0 && ranks[0] < below+int(c); ranks = ranks[1:] {
			kept[b], place[ranks[0]] = true, ranks[0]-dropped
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
	return summary(n, mean, sd, func(k int) float64 { return float64(near[place[k]]) })
}
