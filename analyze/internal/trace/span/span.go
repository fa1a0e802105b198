// Package span holds the times of many events in little memory.
package span

import (
	"encoding/binary"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/spill"
)

// Span holds start and end of each event, sorted by start. The two lie side by side in as few bits as nearly all events
// need: a start is so many behind that of its block, an end as many behind its start. What does not fit is kept aside.
type Span struct {
	base  []int64 // start of the first event of each block, in ns
	times []byte  // by event: start minus base, and above it end minus start
	n     int     // events
	wide  int     // bytes of an event
	bits  uint    // of each of the two
	mask  uint64  // bits of one
	none  uint64  // bits of both: the event is kept aside
	aside map[int]times
}

// times of an event, in ns.
type times struct{ start, length int64 }

// Open is the length of a range without end, until [CloseOpen].
const Open = -1

const (
	blockShift = 6       // how many rows share a base, as a power of two
	wideBits   = 32      // 4 s
	thinBits   = 24      // 17 ms
	fewEvents  = 1 << 16 // of which nobody minds the memory
	asideShare = 256     // of so many events, one at most may lie aside to save a quarter of the memory
	pad        = 8       // bytes behind the last event, which is read eight at a time
)

// Len is the number of events.
func (s *Span) Len() int { return s.n }

// Start of event i.
func (s *Span) Start(i int) int64 {
	if v := binary.LittleEndian.Uint64(s.times[i*s.wide:]) & s.none; v != s.none {
		return s.base[i>>blockShift] + int64(v&s.mask)
	}
	return s.aside[i].start
}

// End of event i, never before its start.
func (s *Span) End(i int) int64 {
	if v := binary.LittleEndian.Uint64(s.times[i*s.wide:]) & s.none; v != s.none {
		return s.base[i>>blockShift] + int64(v&s.mask) + int64(v>>(s.bits&63))
	}
	return s.aside[i].start + s.aside[i].length
}

// Dur is End minus Start.
func (s *Span) Dur(i int) int64 {
	if v := binary.LittleEndian.Uint64(s.times[i*s.wide:]) & s.none; v != s.none {
		return int64(v >> (s.bits & 63))
	}
	return s.aside[i].length
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

// Builder makes a span.
type Builder struct{ s Span }

// newBuilder has room for n events, to be put in order.
func newBuilder(a *spill.Arena, n int, bits uint) *Builder {
	s := Span{n: n, bits: bits, wide: int(bits) / 4, mask: 1<<bits - 1, none: 1<<(2*bits) - 1, aside: map[int]times{}}
	s.base = make([]int64, 0, n>>blockShift+1)
	s.times = spill.Make[byte](a, n*s.wide+pad)
	return &Builder{s}
}

// Make is a span of n events that fill puts. fill may end early where the builder is crowded, and is called once more.
func Make(a *spill.Arena, n int, fill func(b *Builder)) Span {
	if n >= fewEvents {
		b := newBuilder(a, n, thinBits)
		if fill(b); !b.Crowded() {
			return b.s
		}
		Free(a, &b.s)
	}
	b := newBuilder(a, n, wideBits)
	fill(b)
	return b.s
}

// Free gives back what a span takes.
func Free(a *spill.Arena, s *Span) {
	spill.Free(a, s.times)
	*s = Span{}
}

// Crowded reports whether so many events lie aside that wider times are better.
func (b *Builder) Crowded() bool { return b.s.bits == thinBits && len(b.s.aside) > b.s.n/asideShare }

// Put sets event i; those before it are there. length is [Open] for a range without end.
func (b *Builder) Put(i int, start, length int64) {
	s := &b.s
	if i&(1<<blockShift-1) == 0 {
		s.base = append(s.base, start)
	}
	v := uint64(start - s.base[i>>blockShift])
	if d := uint64(length); v < s.mask && d < s.mask {
		v |= d << (s.bits & 63)
	} else {
		v = s.none
		s.aside[i] = times{start, length}
	}
	binary.LittleEndian.PutUint64(s.times[i*s.wide:], v) // with 24 bits it clears two bytes of the next, not put yet
}

// Take is the events of a span that order names, in that order.
func Take(a *spill.Arena, s *Span, order []int32) Span {
	return Make(a, len(order), func(b *Builder) {
		for i := 0; i < len(order) && !b.Crowded(); i++ {
			from := int(order[i])
			b.Put(i, s.Start(from), s.Dur(from))
		}
	})
}

// CloseOpen ends the ranges without end at the moment given.
func CloseOpen(s *Span, last int64) {
	for i, t := range s.aside {
		if t.length == Open {
			s.aside[i] = times{t.start, last - t.start}
		}
	}
}
