package timeline

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Stretches goes through single stretches of a device's window, without going through the work before them.
type Stretches struct {
	d      *Device
	cursor blockedCursor
	gap    Gap
}

// Stretches prepares for stretches, which are found fastest if they ascend.
func (d *Device) Stretches() *Stretches {
	return &Stretches{d: d, cursor: newBlockedCursor(d.blocking)}
}

// endsEvery is how many pieces of work go with one note of when the work before them had ended.
const endsEvery = 64

// From is the first piece of work that starts at a moment or later.
func (d *Device) From(moment int64) int {
	return sort.Search(d.Len(), func(i int) bool { return d.Start(i) >= moment })
}

// EndsBefore is when the last work of each class ends of what starts before a moment: no earlier than the window
// starts.
func (d *Device) EndsBefore(moment int64) [Idle]int64 { return d.endsBefore(d.From(moment)) }

// endsBefore is EndsBefore of the i-th piece.
func (d *Device) endsBefore(i int) [Idle]int64 {
	at := i / endsEvery
	ends := d.ends[at]
	for k := at * endsEvery; k < i; k++ {
		c := d.Class(k)
		ends[c] = max(ends[c], d.End(k))
	}
	return ends
}

// endsOf are the notes that endsBefore starts from.
func endsOf(d *Device) [][Idle]int64 {
	list := make([][Idle]int64, 0, d.Len()/endsEvery+1)
	ends := [Idle]int64{d.window.Start, d.window.Start, d.window.Start}
	for i := range d.Len() {
		if i%endsEvery == 0 {
			list = append(list, ends)
		}
		c := d.Class(i)
		ends[c] = max(ends[c], d.End(i))
	}
	if d.Len()%endsEvery == 0 {
		list = append(list, ends)
	}
	return list
}

// Visit goes through a stretch: it visits every gap that overlaps it, and every piece of work that starts in it and
// takes time, both in order, a gap before the work that ends it. ends is when the last work of each class ends of what
// comes before; Visit returns it for the end of the stretch. The gap is the visitor's until it returns.
func (s *Stretches) Visit(stretch interval.Interval, gap func(g *Gap, ends *[Idle]int64),
	piece func(i int, start, end int64, ends *[Idle]int64)) (ends [Idle]int64) {
	i := s.d.From(stretch.Start)
	ends = s.d.endsBefore(i)
	idle := func(until int64, next, call int32) {
		if busy := max(ends[Compute], ends[Comm], ends[Copy]); until > max(busy, stretch.Start) && busy < stretch.End {
			s.gap = Gap{Interval: interval.Interval{Start: busy, End: until}, Prev: trace.None, Next: next}
			s.gap.split(call, &s.d.in.trace.API, &s.cursor)
			gap(&s.gap, &ends)
		}
	}
	for ; i < s.d.Len(); i++ {
		start, end := s.d.Start(i), s.d.End(i)
		if end <= start {
			continue
		}
		idle(start, int32(i), s.d.Call(i))
		if start >= stretch.End {
			return ends
		}
		piece(i, start, end, &ends)
		c := s.d.Class(i)
		ends[c] = max(ends[c], end)
	}
	idle(s.d.window.End, trace.None, trace.None)
	return ends
}
