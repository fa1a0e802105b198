package attrib

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Stacks are the NVTX ranges open on each thread at each API call.
type Stacks struct {
	// Parent is, for each range, the innermost range open on its thread when it started, or trace.None.
	Parent []int32
	// Innermost is, for each API call, the innermost range open around it, or trace.None.
	Innermost []int32

	ranges *trace.Ranges
	api    *trace.API
}

// NewStacks sweeps each thread once: ranges and calls are sorted by start, and a range that starts at the same moment
// as another is inside it if it ends earlier. Start/end ranges need not nest; one that ended while a younger one is
// still open is passed over by Walk.
func NewStacks(t *trace.Trace) *Stacks {
	r, a := &t.Ranges, &t.API
	s := &Stacks{Parent: make([]int32, r.Len()), Innermost: make([]int32, a.Len()), ranges: r, api: a}
	for i := range s.Innermost {
		s.Innermost[i] = trace.None
	}
	if r.Len() == 0 {
		return s
	}
	top := make([]int32, len(t.Threads)) // innermost range of each thread, linked outward by Parent
	for i := range top {
		top[i] = trace.None
	}
	push := func(i int32) {
		th := r.Thread(int(i))
		s.Parent[i] = trace.None
		if th == trace.None {
			return
		}
		start := r.Start(int(i))
		for top[th] != trace.None && r.End(int(top[th])) <= start {
			top[th] = s.Parent[top[th]]
		}
		s.Parent[i] = top[th]
		top[th] = i
	}
	next, group := 0, make([]int32, 0, 16)
	pushUpTo := func(at int64) {
		for next < r.Len() && r.Start(next) <= at {
			group = append(group[:0], int32(next))
			for next++; next < r.Len() && r.Start(next) == r.Start(int(group[0])); next++ {
				group = append(group, int32(next))
			}
			longestFirst(group, r)
			for _, i := range group {
				push(i)
			}
		}
	}
	for i := range a.Len() {
		start := a.Start(i)
		pushUpTo(start)
		th := a.Thread(i)
		if th == trace.None {
			continue
		}
		for top[th] != trace.None && r.End(int(top[th])) <= start {
			top[th] = s.Parent[top[th]]
		}
		s.Innermost[i] = s.openFrom(top[th], a.Start(i), a.End(i))
	}
	if n := r.Len(); n > 0 {
		pushUpTo(r.Start(n - 1))
	}
	return s
}

// longestFirst sorts the ranges that start at one moment, few as a rule: the outer one is the longer one.
func longestFirst(group []int32, r *trace.Ranges) {
	slices.SortStableFunc(group, func(a, b int32) int { return cmp.Compare(r.End(int(b)), r.End(int(a))) })
}

// openFrom returns the first range from r outward that encloses the call.
func (s *Stacks) openFrom(r int32, start, end int64) int32 {
	for r != trace.None && !(s.ranges.Start(int(r)) <= start && s.ranges.End(int(r)) >= end) {
		r = s.Parent[r]
	}
	return r
}

// Walk calls visit for every range that encloses the API call, from the innermost outward, until visit says stop.
func (s *Stacks) Walk(call int32, visit func(r int32) (more bool)) {
	if call == trace.None {
		return
	}
	start, end := s.api.Start(int(call)), s.api.End(int(call))
	for r := s.Innermost[call]; r != trace.None; r = s.openFrom(s.Parent[r], start, end) {
		if !visit(r) {
			return
		}
	}
}
