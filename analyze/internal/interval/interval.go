// Package interval computes with time: sets of half-open intervals [Start, End) in nanoseconds. Every function runs in
// time linear in its inputs.
package interval

import (
	"cmp"
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Interval is the time from Start up to, not including, End.
type Interval struct{ Start, End int64 }

// Len is the interval's length in nanoseconds.
func (i Interval) Len() int64 { return i.End - i.Start }

// Holds reports whether an event that starts at t belongs to the interval. The end counts as inside, so that an event
// of length 0 at the very end of a capture belongs to it.
func (i Interval) Holds(t int64) bool { return t >= i.Start && t <= i.End }

// Set is sorted by start, and its intervals are disjoint, not empty and not touching.
type Set []Interval

// Add appends [start, end), which must not start before an interval added earlier; what overlaps or touches is merged.
func (s *Set) Add(start, end int64) {
	if end <= start {
		return
	}
	if n := len(*s); n > 0 && start <= (*s)[n-1].End {
		if end > (*s)[n-1].End {
			(*s)[n-1].End = end
		}
		return
	}
	*s = append(*s, Interval{start, end})
}

// Of makes a set of intervals in any order; it sorts its argument.
func Of(list []Interval) Set {
	slices.SortFunc(list, func(a, b Interval) int { return cmp.Compare(a.Start, b.Start) })
	s := make(Set, 0, len(list))
	for _, i := range list {
		s.Add(i.Start, i.End)
	}
	return s
}

// Len is the total length of the set in nanoseconds.
func (s Set) Len() int64 {
	return lists.Sum(s, func(i Interval) int64 { return i.End - i.Start })
}

// Intersect is the time in both sets.
func Intersect(a, b Set) Set {
	var out Set
	for len(a) > 0 && len(b) > 0 {
		out.Add(max(a[0].Start, b[0].Start), min(a[0].End, b[0].End))
		if a[0].End < b[0].End {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// Clip is the part of the set within [lo, hi).
func (s Set) Clip(lo, hi int64) Set {
	return Intersect(s, Set{{lo, hi}})
}

// Within is the length of the part of the set within [lo, hi), found by binary search.
func (s Set) Within(lo, hi int64) int64 {
	var sum int64
	for i := sort.Search(len(s), func(i int) bool { return s[i].End > lo }); i < len(s) && s[i].Start < hi; i++ {
		sum += min(hi, s[i].End) - max(lo, s[i].Start)
	}
	return sum
}
