package timeline

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Threads whose ranges do not nest: each range is a node, chained to the innermost one when it started. A range that
// ended while a younger one is still open is skipped, and dropped once such ranges are more than half of a chain, so
// that no walk is longer than about twice the ranges open at that moment.

const minChain = 64

// popAlone takes the ranges that ended by now off the top.
func (c *Contexts) popAlone(s *openRanges, now int64) {
	for s.top != trace.None && c.ranges.End(int(c.alone[s.top])) <= now {
		s.top = c.out[s.top]
		s.len--
	}
}

// pushAlone opens range i.
func (c *Contexts) pushAlone(s *openRanges, i int32) {
	c.popAlone(s, c.ranges.Start(int(i)))
	if s.len >= s.maxLen {
		c.dropEnded(s, c.ranges.Start(int(i)))
	}
	s.top = c.node(s.top, c.ranges.Name(int(i)), c.ranges.Thread(int(i)), i)
	s.len++
}

// dropEnded rebuilds a chain from copies of the nodes that are still open. The old nodes stay as they are, for the
// calls that saw them open.
func (c *Contexts) dropEnded(s *openRanges, now int64) {
	var open []int32
	for n := s.top; n != trace.None; n = c.out[n] {
		if c.ranges.End(int(c.alone[n])) > now {
			open = append(open, n)
		}
	}
	s.top = trace.None
	for _, n := range slices.Backward(open) {
		s.top = c.node(s.top, c.name[n], c.thread[n], c.alone[n])
	}
	s.len, s.maxLen = len(open), max(minChain, 2*len(open))
}

// openAlone is the first node from the top outward whose range encloses a call.
func (c *Contexts) openAlone(s *openRanges, start, end int64) int32 {
	c.popAlone(s, start)
	n := s.top
	for n != trace.None && !c.encloses(c.alone[n], start, end) {
		n = c.out[n]
	}
	return n
}
