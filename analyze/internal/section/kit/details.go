package kit

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/stat"
)

// Detail files are CSV files with a row per event. If there are too many, they hold the longest events.

// LongestFirst returns the events lo <= i < hi, or the longest DetailRows, the longest first; if two are equal, the
// earlier first.
func (o *Options) LongestFirst(lo, hi int, dur func(i int) int64) []int {
	rows := o.Longest(lo, hi, dur)
	slices.SortFunc(rows, func(a, b int) int { return cmp.Or(cmp.Compare(dur(b), dur(a)), a-b) })
	return rows
}

// Longest returns the events lo <= i < hi in order: all of them, or the longest DetailRows; if some are equal, the
// earlier. It looks at each event once, and keeps at most twice as many.
func (o *Options) Longest(lo, hi int, dur func(i int) int64) []int {
	n := min(o.DetailRows, hi-lo)
	best := make([]int, 0, min(2*n, hi-lo))
	bar := int64(-1) // the length that an event has to exceed
	var lengths []int64
	cut := func() {
		if len(best) <= n {
			return
		}
		lengths = lengths[:0]
		for _, i := range best {
			lengths = append(lengths, dur(i))
		}
		stat.Sort(lengths)
		bar = lengths[len(lengths)-n]
		longer, _ := slices.BinarySearch(lengths, bar+1)
		equal := n - (len(lengths) - longer) // of those as long as the bar
		best = slices.DeleteFunc(best, func(i int) bool {
			d := dur(i)
			if d == bar {
				equal--
			}
			return d < bar || d == bar && equal < 0
		})
	}
	for i := lo; i < hi; i++ {
		if dur(i) <= bar {
			continue
		}
		if best = append(best, i); len(best) == 2*n {
			cut()
		}
	}
	cut()
	return best
}

// AttachDetails ends a detail file about n events, of which some rows were written.
func (t *Table) AttachDetails(n int) {
	t.TotalRows = int64(n)
	t.Attach()
}

// Total is the sum of the durations of the events lo <= i < hi.
func Total(lo, hi int, dur func(i int) int64) int64 {
	var sum int64
	for i := lo; i < hi; i++ {
		sum += dur(i)
	}
	return sum
}
