package trace

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/spill"
)

// Columns are as wide as their data as a rule needs, which is what makes them fit into memory: a start is 32 bits
// behind that of its block, an end 32 bits behind its start, a number 32 bits, an index into a dictionary as many as
// the dictionary needs. What does not fit is kept aside, by row.

// farAway stands in a column for a value that is kept aside, by row. (A lookup in a map is what lets the methods below
// be inlined; there are few such values.)
const farAway = 1<<32 - 1

// blockShift says how many rows share a base: 256 neighbours seldom span four seconds.
const blockShift = 8

// Span holds start and end of each event, sorted by start.
type Span struct {
	base    []int64       // start of the first event of each block, in ns
	off     []uint32      // start minus base
	dur     []uint32      // end minus start
	starts  map[int]int64 // those kept aside
	lengths map[int]int64 // end minus start of those kept aside, or openLength
}

// Len is the number of events.
func (s *Span) Len() int { return len(s.off) }

// Start of event i.
func (s *Span) Start(i int) int64 {
	if o := s.off[i]; o != farAway {
		return s.base[i>>blockShift] + int64(o)
	}
	return s.starts[i]
}

// End of event i, never before its start.
func (s *Span) End(i int) int64 { return s.Start(i) + s.Dur(i) }

// Dur is End minus Start.
func (s *Span) Dur(i int) int64 {
	if d := s.dur[i]; d != farAway {
		return int64(d)
	}
	return s.lengths[i]
}

// Starting returns the index range [lo, hi) of the events that start within [from, to]. What starts at to and goes on
// after it is no part of that time.
func (s *Span) Starting(from, to int64) (lo, hi int) {
	lo = sort.Search(s.Len(), func(i int) bool { return s.Start(i) >= from })
	hi = lo + sort.Search(s.Len()-lo, func(i int) bool { return s.Start(lo+i) > to })
	for hi > lo && s.Start(hi-1) == to && s.Dur(hi-1) > 0 {
		hi--
	}
	return lo, hi
}

func newSpan(n int, off, dur []uint32) Span {
	return Span{base: make([]int64, 0, n>>blockShift+1), off: off, dur: dur, starts: map[int]int64{},
		lengths: map[int]int64{}}
}

// rewrite makes the span anew of n rows whose starts and lengths at gives.
func (s *Span) rewrite(a *spill.Arena, n int, at func(i int) (start, length int64)) {
	w := newSpan(n, spill.Make[uint32](a, n), spill.Make[uint32](a, n))
	for i := range n {
		start, length := at(i)
		w.put(i, start, length)
	}
	spill.Free(a, s.off)
	spill.Free(a, s.dur)
	*s = w
}

func (s *Span) put(i int, start, length int64) {
	if i&(1<<blockShift-1) == 0 {
		s.base = append(s.base, start)
	}
	s.off[i], s.dur[i] = farAway, farAway
	if o := uint64(start - s.base[i>>blockShift]); o < farAway {
		s.off[i] = uint32(o)
	} else {
		s.starts[i] = start
	}
	if d := uint64(length); d < farAway {
		s.dur[i] = uint32(d)
	} else {
		s.lengths[i] = length
	}
}

// openLength is the length of a range without end while the trace is being loaded.
const openLength = -1

// close ends the ranges without end at the moment given.
func (s *Span) close(last int64) {
	for i, l := range s.lengths {
		if l == openLength {
			s.lengths[i] = last - s.Start(i)
		}
	}
}

// numbers is a column of whole numbers from -1 up.
type numbers struct {
	v   []uint32      // the number plus 1
	far map[int]int64 // those kept aside
}

func (n *numbers) at(i int) int64 {
	if v := n.v[i]; v != farAway {
		return int64(v) - 1
	}
	return n.far[i]
}

// take keeps the rows of order, in that order.
func (n *numbers) take(a *spill.Arena, order []int32) {
	w := numbers{v: spill.Make[uint32](a, len(order)), far: map[int]int64{}}
	for to, from := range order {
		if w.v[to] = n.v[from]; w.v[to] == farAway {
			w.far[to] = n.far[int(from)]
		}
	}
	spill.Free(a, n.v)
	*n = w
}

// codes is a column of indexes into a dictionary.
type codes struct {
	w8  []uint8
	w16 []uint16
	w32 []uint32
}

func (c *codes) at(i int) int32 {
	if c.w8 != nil {
		return int32(c.w8[i])
	}
	if c.w16 != nil {
		return int32(c.w16[i])
	}
	return int32(c.w32[i])
}

func (c *codes) take(a *spill.Arena, order []int32) {
	c.w8 = taken(a, c.w8, order)
	c.w16 = taken(a, c.w16, order)
	c.w32 = taken(a, c.w32, order)
}

func taken[T any](a *spill.Arena, column []T, order []int32) []T {
	if column == nil {
		return nil
	}
	moved := spill.Make[T](a, len(order))
	for to, from := range order {
		moved[to] = column[from]
	}
	spill.Free(a, column)
	return moved
}

// steps is a column of numbers that mostly grow by one from row to row: rowids. It keeps the rows where they do not.
type steps struct {
	at []int32
	v  []int64
}

func (s *steps) get(i int) int64 {
	k := sort.Search(len(s.at), func(k int) bool { return s.at[k] > int32(i) }) - 1
	return s.v[k] + int64(int32(i)-s.at[k])
}

func (s *steps) add(i int32, v int64) {
	if k := len(s.at) - 1; k < 0 || s.v[k]+int64(i-s.at[k]) != v {
		s.at, s.v = append(s.at, i), append(s.v, v)
	}
}

func (s *steps) take(order []int32) {
	var w steps
	for to, from := range order {
		w.add(int32(to), s.get(int(from)))
	}
	*s = w
}
