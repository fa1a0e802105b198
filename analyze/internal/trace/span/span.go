// Package span holds the times of many events in little memory.
package span

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/spill"
)

// Span holds start and end of each event, sorted by start, in as few bits as nearly all events need: a start is so many
// behind that of its block, an end so many behind its start. What does not fit is kept aside.
//
//	thin   low   24 bits of start, above them 8 of length     high   the upper 16 bits of length
//	wide   low   32 bits of start                             long   32 bits of length
type Span struct {
	base  []int64  // start of the first event of each block, in ns
	low   []uint32 // start minus base; all bits of it set: the event is kept aside
	mask  uint32   // bits of a start
	high  []uint16 // nil if wide
	long  []uint32 // nil if thin
	aside map[int]times
}

// times of an event, in ns.
type times struct{ start, length int64 }

// Open is the length of a range without end, until [CloseOpen].
const Open = -1

const (
	blockShift = 6 // how many rows share a base, as a power of two
	thinBits   = 24
	thinMask   = 1<<thinBits - 1 // 17 ms
	wideMask   = 1<<32 - 1       // 4 s
	fewEvents  = 1 << 16         // of which nobody minds the memory
	asideShare = 256             // of so many events, one at most may lie aside to save a quarter of the memory
)

// Len is the number of events.
func (s *Span) Len() int { return len(s.low) }

// Start of event i.
func (s *Span) Start(i int) int64 {
	if v := s.low[i] & s.mask; v != s.mask {
		return s.base[i>>blockShift] + int64(v)
	}
	return s.aside[i].start
}

// End of event i, never before its start.
func (s *Span) End(i int) int64 {
	v := s.low[i]
	start := v & s.mask
	if start == s.mask {
		return s.aside[i].start + s.aside[i].length
	}
	length := v >> thinBits
	if s.high != nil {
		length |= uint32(s.high[i]) << (32 - thinBits)
	} else {
		length = s.long[i]
	}
	return s.base[i>>blockShift] + int64(start) + int64(length)
}

// Dur is End minus Start.
func (s *Span) Dur(i int) int64 {
	v := s.low[i]
	switch {
	case v&s.mask == s.mask:
		return s.aside[i].length
	case s.high != nil:
		return int64(v>>thinBits | uint32(s.high[i])<<(32-thinBits))
	}
	return int64(s.long[i])
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

// Fit finds out whether events are thin: all of them are added, in order, before a builder is made.
type Fit struct {
	base     int64
	n, aside int
}

// Add looks at the next event.
func (f *Fit) Add(start, length int64) {
	if f.n&(1<<blockShift-1) == 0 {
		f.base = start
	}
	if f.n++; uint64(start-f.base) >= thinMask || uint64(length) >= 1<<thinBits {
		f.aside++
	}
}

// Builder makes a span.
type Builder struct{ s Span }

// Over returns a builder in the memory of two columns that spill.Make returned: [Builder.Put] may overwrite what lies
// at or before the event's place in them. [Builder.Done] gives back the rest of their memory.
func (f *Fit) Over(a *spill.Arena, starts, lengths []uint32) *Builder {
	s := Span{mask: wideMask, aside: map[int]times{}, base: make([]int64, 0, f.n>>blockShift+1),
		low: spill.Narrow[uint32](a, starts, f.n)}
	if f.n >= fewEvents && f.aside <= f.n/asideShare {
		s.mask, s.high = thinMask, spill.Narrow[uint16](a, lengths, f.n)
	} else {
		s.long = spill.Narrow[uint32](a, lengths, f.n)
	}
	return &Builder{s}
}

// Put sets event i; those before it are there. length is [Open] for a range without end.
func (b *Builder) Put(i int, start, length int64) {
	s := &b.s
	if i&(1<<blockShift-1) == 0 {
		s.base = append(s.base, start)
	}
	v, d := uint64(start-s.base[i>>blockShift]), uint64(length)
	switch {
	case v >= uint64(s.mask) || d > wideMask || s.high != nil && d > thinMask:
		s.low[i] = s.mask
		s.aside[i] = times{start, length}
	case s.high != nil:
		s.low[i] = uint32(v) | uint32(d)<<thinBits
		s.high[i] = uint16(d >> (32 - thinBits))
	default:
		s.low[i], s.long[i] = uint32(v), uint32(d)
	}
}

// Done is what was put.
func (b *Builder) Done(a *spill.Arena) Span {
	s := b.s
	spill.Cut(a, s.low, len(s.low))
	spill.Cut(a, s.high, len(s.high))
	spill.Cut(a, s.long, len(s.long))
	return s
}

// Free gives back what a span takes.
func Free(a *spill.Arena, s *Span) {
	spill.Free(a, s.low)
	spill.Free(a, s.high)
	spill.Free(a, s.long)
	*s = Span{}
}

// Take is the events of a span that order names, in that order.
func Take(a *spill.Arena, s *Span, order []int32) Span {
	return Of(a, len(order), func(i int) (start, end int64) { return s.Start(int(order[i])), s.End(int(order[i])) })
}

// Of is n events, sorted by start.
func Of(a *spill.Arena, n int, at func(i int) (start, end int64)) Span {
	var f Fit
	for i := range n {
		start, end := at(i)
		f.Add(start, end-start)
	}
	b := f.Over(a, spill.Make[uint32](a, n), spill.Make[uint32](a, n))
	for i := range n {
		start, end := at(i)
		b.Put(i, start, end-start)
	}
	return b.Done(a)
}

// CloseOpen ends the ranges without end at the moment given.
func CloseOpen(s *Span, last int64) {
	for i, t := range s.aside {
		if t.length == Open {
			s.aside[i] = times{t.start, last - t.start}
		}
	}
}
