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

	// Nodes are what Walk follows. Node n below the number of ranges is range n, and out[n] the node outward of it; the
	// nodes beyond are copies, made where start/end ranges that do not nest would leave long chains of ended ones behind.
	// Until the first copy, out is Parent and from is Innermost.
	out, from []int32
	copies    []node
}

type node struct{ of, out int32 }

// chain is the stack of one thread: its innermost node, how long it is with ended ranges counted, and how long it may get
// before the ended ones are dropped.
type chain struct {
	top         int32
	len, maxLen int
}

const minChain = 64

// NewStacks sweeps each thread once: ranges and calls are sorted by start, and a range that starts at the same moment
// as another is inside it if it ends earlier. Start/end ranges need not nest; one that ended while a younger one is
// still open is passed over by Walk, and dropped once such ranges are more than half of a chain, so that no walk is
// longer than about twice the ranges open at that moment.
func NewStacks(t *trace.Trace) *Stacks {
	r, a := &t.Ranges, &t.API
	s := &Stacks{Parent: make([]int32, r.Len()), Innermost: make([]int32, a.Len()), ranges: r, api: a}
	s.out, s.from = s.Parent, s.Innermost
	for i := range s.Innermost {
		s.Innermost[i] = trace.None
	}
	if r.Len() == 0 {
		return s
	}
	chains := make([]chain, len(t.Threads))
	for i := range chains {
		chains[i] = chain{top: trace.None, maxLen: minChain}
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
				s.Parent[i], s.out[i] = trace.None, trace.None
				if th := r.Thread(int(i)); th != trace.None {
					s.push(&chains[th], i)
				}
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
		c := &chains[th]
		s.pop(c, start)
		n := s.openFrom(c.top, start, a.End(i))
		s.Innermost[i] = s.rangeOf(n)
		s.from[i] = n
	}
	pushUpTo(r.Start(r.Len() - 1))
	return s
}

// pop takes the ranges that ended by now off the top.
func (s *Stacks) pop(c *chain, now int64) {
	for c.top != trace.None && s.ranges.End(int(s.rangeOf(c.top))) <= now {
		c.top = s.outward(c.top)
		c.len--
	}
}

// push puts range i on top.
func (s *Stacks) push(c *chain, i int32) {
	s.pop(c, s.ranges.Start(int(i)))
	if c.len >= c.maxLen {
		s.dropEnded(c, s.ranges.Start(int(i)))
	}
	s.Parent[i] = s.rangeOf(c.top)
	s.out[i] = c.top
	c.top = i
	c.len++
}

// dropEnded rebuilds a chain from copies of the nodes that are still open. The old nodes stay as they are, for the calls
// that saw them open.
func (s *Stacks) dropEnded(c *chain, now int64) {
	if len(s.copies) == 0 {
		s.out, s.from = slices.Clone(s.Parent), slices.Clone(s.Innermost)
	}
	var open []int32
	for n := c.top; n != trace.None; n = s.outward(n) {
		if r := s.rangeOf(n); s.ranges.End(int(r)) > now {
			open = append(open, r)
		}
	}
	c.top = trace.None
	for _, r := range slices.Backward(open) {
		s.copies = append(s.copies, node{of: r, out: c.top})
		c.top = int32(len(s.Parent) + len(s.copies) - 1)
	}
	c.len, c.maxLen = len(open), max(minChain, 2*len(open))
}

// rangeOf is the range a node stands for.
func (s *Stacks) rangeOf(n int32) int32 {
	if int(n) < len(s.Parent) {
		return n // trace.None included
	}
	return s.copies[int(n)-len(s.Parent)].of
}

// outward is the next node outward.
func (s *Stacks) outward(n int32) int32 {
	if int(n) < len(s.out) {
		return s.out[n]
	}
	return s.copies[int(n)-len(s.out)].out
}

// longestFirst sorts the ranges that start at one moment, few as a rule: the outer one is the longer one.
func longestFirst(group []int32, r *trace.Ranges) {
	slices.SortStableFunc(group, func(a, b int32) int { return cmp.Compare(r.End(int(b)), r.End(int(a))) })
}

// encloses reports whether a call from start to end lies in the range; one without length at the range's end does not.
func (s *Stacks) encloses(r int32, start, end int64) bool {
	return s.ranges.Start(int(r)) <= start && s.ranges.End(int(r)) >= end && s.ranges.End(int(r)) > start
}

// openFrom returns the first node from n outward whose range encloses the call.
func (s *Stacks) openFrom(n int32, start, end int64) int32 {
	for n != trace.None {
		if s.encloses(s.rangeOf(n), start, end) {
			break
		}
		n = s.outward(n)
	}
	return n
}

// Walk calls visit for every range that encloses the API call, from the innermost outward, until visit says stop.
func (s *Stacks) Walk(call int32, visit func(r int32) (more bool)) {
	if call == trace.None {
		return
	}
	start, end := s.api.Start(int(call)), s.api.End(int(call))
	for n := s.from[call]; n != trace.None; n = s.openFrom(s.outward(n), start, end) {
		if !visit(s.rangeOf(n)) {
			return
		}
	}
}

// Nearest finds the nearest range outward from a call that has some property. What it finds on the way it remembers, so
// that many calls deep inside many ranges cost one walk together.
type Nearest struct {
	stacks *Stacks
	has    func(r int32) bool
	near   []int32 // by node: the nearest node from it outward that has the property, trace.None, or unseen
	path   []int32
}

const unseen int32 = -2

// Nearest prepares a search for ranges that have a property.
func (s *Stacks) Nearest(has func(r int32) bool) *Nearest {
	x := &Nearest{stacks: s, has: has, near: make([]int32, len(s.Parent)+len(s.copies))}
	for i := range x.near {
		x.near[i] = unseen
	}
	return x
}

// Of returns the nearest range that encloses the call and has the property, or trace.None.
func (x *Nearest) Of(call int32) int32 {
	if call == trace.None {
		return trace.None
	}
	s := x.stacks
	start, end := s.api.Start(int(call)), s.api.End(int(call))
	for n := x.from(s.from[call]); n != trace.None; n = x.from(s.outward(n)) {
		if r := s.rangeOf(n); s.encloses(r, start, end) {
			return r
		}
	}
	return trace.None
}

func (x *Nearest) from(n int32) int32 {
	x.path = x.path[:0]
	for n != trace.None && x.near[n] == unseen && !x.has(x.stacks.rangeOf(n)) {
		x.path = append(x.path, n)
		n = x.stacks.outward(n)
	}
	if n != trace.None {
		if x.near[n] == unseen {
			x.near[n] = n
		}
		n = x.near[n]
	}
	for _, p := range x.path {
		x.near[p] = n
	}
	return n
}
