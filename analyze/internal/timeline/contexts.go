package timeline

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Contexts are the NVTX ranges open on each thread at each API call, as nodes of a tree: a node is a range name inside
// the node around it. A program opens the same ranges in the same places again and again, so that millions of ranges
// make a few hundred nodes, and a question about every call is answered once per node.
//
// Start/end ranges need not nest. On a thread with ranges that do not, each range is a node of its own, and a node on
// the way outward may have ended already: Walk and Nearest skip those.
type Contexts struct {
	ranges *trace.Ranges
	api    *trace.API

	// By node, outer nodes first. One node is always inward of the one it names.
	out    []int32 // the node outward of it, or trace.None
	name   []int32 // index into Ranges.Names
	thread []int32
	alone  []int32 // the single range of this node, if ranges of its thread do not nest; else trace.None
	sums   []RangeSum

	from    spill.Indexes // by API call: the innermost node around it, or trace.None
	crossed []bool        // by thread: its ranges do not nest
	tangled bool          // ranges of some thread do not nest
	whole   bool          // sums cover all ranges of the capture
}

// RangeSum is how many ranges there are, and their durations added up, in ns.
type RangeSum struct{ Count, Time int64 }

// NewContexts sweeps ranges and calls once, both by start. A range that starts at the same moment as another is inside
// it if it ends earlier.
func NewContexts(t *trace.Trace) *Contexts {
	crossed := make([]bool, len(t.Threads))
	c, ok := sweepContexts(t, crossed)
	if !ok { // again, now that the threads with ranges that do not nest are known
		c.Free()
		c, _ = sweepContexts(t, crossed)
	}
	return c
}

// Free releases the memory of the contexts.
func (c *Contexts) Free() { c.from.Free() }

// sweepContexts fails, and marks the threads, if ranges of a thread that is not marked do not nest.
func sweepContexts(t *trace.Trace, crossed []bool) (c *Contexts, ok bool) {
	a := &t.API
	c = &Contexts{ranges: &t.Ranges, api: a, crossed: crossed, from: spill.NewIndexes(t.Memory(), a.Len()),
		tangled: slices.Contains(crossed, true)}
	x := newRangeSweep(c, len(t.Threads))
	for i := range a.Len() {
		start := a.Start(i)
		x.openUpTo(start)
		if th := a.Thread(i); th != trace.None && t.Ranges.Len() > 0 {
			if s := &x.stacks[th]; crossed[th] {
				c.from.Set(i, c.openAlone(s, start, a.End(i)))
			} else {
				c.from.Set(i, s.around(start, a.End(i)))
			}
		}
	}
	ok = x.ok
	if ok && !c.tangled {
		x.late = true
		x.openUpTo(math.MaxInt64)
		c.whole = x.ok && !x.lost
	}
	return c, ok
}

// rangeSweep opens ranges in the order in which they start.
type rangeSweep struct {
	c      *Contexts
	stacks []openRanges // by thread
	nodes  nodeIndex
	next   int     // the first range that is not open yet
	group  []int32 // of ranges that start together
	ok     bool    // the ranges of every thread that is not marked nest
	lost   bool    // the thread of some range is not known
	late   bool    // after all calls: ranges that do not nest enclose none
}

func newRangeSweep(c *Contexts, threads int) *rangeSweep {
	stacks := slices.Repeat([]openRanges{{top: trace.None, maxLen: minChain}}, threads)
	return &rangeSweep{c: c, stacks: stacks, nodes: nodeIndex{all: map[nodeKey]int32{}}, ok: true}
}

// openUpTo opens all ranges that start up to a moment.
func (x *rangeSweep) openUpTo(at int64) {
	r := x.c.ranges
	n := r.Len()
	if x.next == n {
		return
	}
	for start := r.Start(x.next); start <= at; {
		first, this := x.next, start
		for start == this && x.next < n {
			if x.next++; x.next < n {
				start = r.Start(x.next)
			}
		}
		if x.next == first+1 {
			x.open(first, this)
		} else {
			x.group = x.group[:0]
			for i := first; i < x.next; i++ {
				x.group = append(x.group, int32(i))
			}
			longestFirst(x.group, r)
			for _, i := range x.group {
				x.open(int(i), this)
			}
		}
		if x.next == n {
			return
		}
	}
}

// open opens range i.
func (x *rangeSweep) open(i int, start int64) {
	th := x.c.ranges.Thread(i)
	if th == trace.None {
		x.lost = true
		return
	}
	switch s := &x.stacks[th]; {
	case x.c.crossed[th] && x.c.tangled:
		x.c.pushAlone(s, int32(i))
	case x.c.crossed[th]: // found in this sweep, which is then repeated
	case !x.c.push(s, &x.nodes, i, th, start):
		x.ok = false
		x.c.crossed[th] = !x.late
	}
}

// longestFirst sorts the ranges that start at one moment, few as a rule: the outer one is the longer one.
func longestFirst(group []int32, r *trace.Ranges) {
	slices.SortStableFunc(group, func(a, b int32) int { return cmp.Compare(r.End(int(b)), r.End(int(a))) })
}

// openRanges is the stack of one thread.
type openRanges struct {
	open []openRange // if ranges nest: from the outermost in, each ends no later than the one before it

	// If they do not: the innermost node, the length of its chain including ended ranges, and the length from which the
	// ended ones are dropped.
	top         int32
	len, maxLen int
}

type openRange struct {
	end  int64
	node int32
}

// around is the innermost node that encloses a call.
func (s *openRanges) around(start, end int64) int32 {
	n := len(s.open)
	for n > 0 && s.open[n-1].end <= start {
		n--
	}
	s.open = s.open[:n]
	if n > 0 && s.open[n-1].end < end { // the call outlasts ranges, which real calls never do
		n = sort.Search(n, func(i int) bool { return s.open[i].end < end })
	}
	if n == 0 {
		return trace.None
	}
	return s.open[n-1].node
}

// push opens range i. It reports false if the range outlasts one that is open.
func (c *Contexts) push(s *openRanges, nodes *nodeIndex, i int, th int32, start int64) bool {
	end := start + c.ranges.Dur(i)
	n := len(s.open)
	for n > 0 && s.open[n-1].end <= start {
		n--
	}
	outer := trace.None
	if n > 0 {
		if s.open[n-1].end < end {
			return false
		}
		outer = s.open[n-1].node
	}
	node := nodes.of(c, outer, c.ranges.Name(i), th)
	c.sums[node].Count++
	c.sums[node].Time += end - start
	s.open = append(s.open[:n], openRange{end, node})
	return true
}

// node adds a node.
func (c *Contexts) node(out, name, thread, alone int32) int32 {
	c.out, c.name, c.thread = append(c.out, out), append(c.name, name), append(c.thread, thread)
	c.sums = append(c.sums, RangeSum{})
	if c.tangled {
		c.alone = append(c.alone, alone)
	}
	return int32(len(c.out) - 1)
}

// nodeIndex finds a node by the one outward of it and its name.
type nodeIndex struct {
	all    map[nodeKey]int32
	recent [1 << recentBits]struct { // by hash of the key
		key  nodeKey
		node int32 // plus 1; 0 if there is none
	}
}

const recentBits = 11

// nodeKey packs two 32-bit numbers into one key, for which Go's maps have a fast path.
type nodeKey uint64

func (x *nodeIndex) of(c *Contexts, outer, name, thread int32) int32 {
	place := outer
	if outer == trace.None { // the outermost nodes differ by thread
		place = -2 - thread
	}
	key := nodeKey(uint32(place))<<32 | nodeKey(uint32(name))
	last := &x.recent[key*0x9e3779b97f4a7c15>>(64-recentBits)] // the golden ratio spreads keys evenly
	if last.node == 0 || last.key != key {
		n, ok := x.all[key]
		if !ok {
			n = c.node(outer, name, thread, trace.None)
			x.all[key] = n
		}
		last.key, last.node = key, n+1
	}
	return last.node - 1
}

// Nodes is how many nodes there are.
func (c *Contexts) Nodes() int { return len(c.out) }

// Of is the innermost node around an API call, or trace.None.
func (c *Contexts) Of(call int32) int32 {
	if call == trace.None {
		return trace.None
	}
	return c.from.At(int(call))
}

// NameOf is the range name of a node, an index into Ranges.Names.
func (c *Contexts) NameOf(node int32) int32 { return c.name[node] }

// ThreadOf is the thread whose ranges are the node.
func (c *Contexts) ThreadOf(node int32) int32 { return c.thread[node] }

// Whole reports whether [Contexts.Ranges] of all nodes are all ranges of the capture, each within one of the node
// around it: true if the ranges of every thread nest.
func (c *Contexts) Whole() bool { return c.whole }

// Ranges are the ranges of the node.
func (c *Contexts) Ranges(node int32) RangeSum { return c.sums[node] }

// Descend goes through all nodes: it enters each after those around it, and leaves it after those inside.
func (c *Contexts) Descend(enter, leave func(node int32)) {
	n := len(c.out)
	// By node, the outermost ones behind all: inward, and beside it.
	first, next := slices.Repeat([]int32{trace.None}, n+1), make([]int32, n)
	for node := n - 1; node >= 0; node-- {
		at := c.out[node]
		if at == trace.None {
			at = int32(n)
		}
		next[node], first[at] = first[at], int32(node)
	}
	for node := first[n]; node != trace.None; {
		enter(node)
		if in := first[node]; in != trace.None {
			node = in
			continue
		}
		leave(node)
		for next[node] == trace.None && c.out[node] != trace.None {
			node = c.out[node]
			leave(node)
		}
		node = next[node]
	}
}

// holds reports whether a node, found on the way outward from a call, is still around it.
func (c *Contexts) holds(node int32, start, end int64) bool {
	return !c.tangled || c.alone[node] == trace.None || c.encloses(c.alone[node], start, end)
}

// encloses reports whether a call from start to end lies in the range; one without length at the range's end does not.
func (c *Contexts) encloses(r int32, start, end int64) bool {
	return c.ranges.Start(int(r)) <= start && c.ranges.End(int(r)) >= end && c.ranges.End(int(r)) > start
}

// Settled reports whether every call of the node has the same ranges around it, as is the case if ranges nest.
func (c *Contexts) Settled(node int32) bool { return !c.tangled || c.alone[node] == trace.None }

// Walk calls visit with the name of every range that encloses the API call, from the innermost outward, until visit
// says stop.
func (c *Contexts) Walk(call int32, visit func(name int32) (more bool)) {
	if call == trace.None {
		return
	}
	start, end := c.api.Start(int(call)), c.api.End(int(call))
	for n := c.from.At(int(call)); n != trace.None; n = c.out[n] {
		if c.holds(n, start, end) && !visit(c.name[n]) {
			return
		}
	}
}

// Nearest finds the nearest range around a call whose name has a property.
type Nearest struct {
	contexts *Contexts
	near     []int32 // by node: the nearest around it that has the property, or trace.None
}

// Nearest prepares a search for range names that have a property.
func (c *Contexts) Nearest(has func(name int32) bool) *Nearest {
	x := &Nearest{contexts: c, near: make([]int32, len(c.out))}
	for n, out := range c.out {
		switch {
		case has(c.name[n]):
			x.near[n] = int32(n)
		case out != trace.None:
			x.near[n] = x.near[out]
		default:
			x.near[n] = trace.None
		}
	}
	return x
}

// Of returns the name of the nearest range that encloses the call and has the property, or trace.None.
func (x *Nearest) Of(call int32) int32 {
	c := x.contexts
	for n := c.Of(call); n != trace.None; n = c.out[n] {
		if n = x.near[n]; n == trace.None {
			break
		}
		if !c.tangled || c.holds(n, c.api.Start(int(call)), c.api.End(int(call))) {
			return c.name[n]
		}
	}
	return trace.None
}
