package workunit

import (
	"math"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// owners finds the marker of an API call: the one open around it on its thread. If one thread has all markers of the
// process, it is the one open there, even if another thread made the call.
type owners struct {
	trace    *trace.Trace
	m        *marked
	byThread []markerList
	alone    []int32 // by process: the thread that has all its markers, if they do not overlap, or trace.None
}

// markerList is the markers of one thread, as indexes into marked.ranges. Both starts and ends ascend, because no
// marker contains another.
type markerList struct {
	list []int32
	near int // where the last search ended: calls come mostly in order
}

func newOwners(t *trace.Trace, m *marked) *owners {
	r := &t.Ranges
	o := &owners{trace: t, m: m, byThread: make([]markerList, len(t.Threads)), alone: make([]int32, len(t.Procs))}
	const several = -2
	for p := range o.alone {
		o.alone[p] = trace.None
	}
	for i, id := range m.ranges {
		th := r.Thread(int(id))
		list := &o.byThread[th].list
		overlap := len(*list) > 0 && r.End(int(m.ranges[(*list)[len(*list)-1]])) > r.Start(int(id))
		*list = append(*list, int32(i))
		p := t.Threads[th].Proc
		if p == trace.None {
			continue
		}
		switch {
		case o.alone[p] == trace.None:
			o.alone[p] = th
		case o.alone[p] != th || overlap:
			o.alone[p] = several
		}
	}
	for p := range o.alone {
		if o.alone[p] == several {
			o.alone[p] = trace.None
		}
	}
	return o
}

// of returns the index of the call's marker, or -1.
func (o *owners) of(call int32) int32 {
	if call == trace.None {
		return -1
	}
	api := &o.trace.API
	th := api.Thread(int(call))
	if th == trace.None {
		return -1
	}
	start, end := api.Start(int(call)), api.End(int(call))
	if m := o.open(th, start, end); m >= 0 && o.end(m) > start {
		return m
	}
	p := o.trace.Threads[th].Proc
	if p == trace.None || o.alone[p] == trace.None || o.alone[p] == th {
		return -1
	}
	return o.open(o.alone[p], start, end)
}

// before returns the last marker that started before the call, on its thread or on the one that has all markers of its
// process, or -1.
func (o *owners) before(call int32) int32 {
	if call == trace.None {
		return -1
	}
	th := o.trace.API.Thread(int(call))
	if th == trace.None {
		return -1
	}
	if p := o.trace.Threads[th].Proc; len(o.byThread[th].list) == 0 && p != trace.None {
		th = o.alone[p]
	}
	if th == trace.None {
		return -1
	}
	list, start := o.byThread[th].list, o.trace.API.Start(int(call))
	k := sort.Search(len(list), func(i int) bool { return o.start(list[i]) > start })
	if k == 0 {
		return -1
	}
	return list[k-1]
}

func (o *owners) start(m int32) int64 { return o.trace.Ranges.Start(int(o.m.ranges[m])) }
func (o *owners) end(m int32) int64   { return o.trace.Ranges.End(int(o.m.ranges[m])) }

// open returns the last marker of the thread that starts no later than start, if it is open until end, else -1.
func (o *owners) open(th int32, start, end int64) int32 {
	l := &o.byThread[th]
	if len(l.list) == 0 {
		return -1
	}
	last := func(i int) bool { // whether the i-th is the last that starts no later than start
		return o.start(l.list[i]) <= start && (i+1 == len(l.list) || o.start(l.list[i+1]) > start)
	}
	switch {
	case last(l.near):
	case l.near+1 < len(l.list) && last(l.near+1):
		l.near++
	default:
		at := sort.Search(len(l.list), func(i int) bool { return o.start(l.list[i]) > start })
		if at == 0 {
			return -1
		}
		l.near = at - 1
	}
	if m := l.list[l.near]; o.end(m) >= end {
		return m
	}
	return -1
}

// Members gives the unit of each piece of a device's work, or trace.None. Consecutive pieces mostly belong to one unit,
// so it is stored as runs, unless there are many.
type Members struct {
	ends, units []int32       // by run: index after its last piece; its unit
	dense       spill.Indexes // by piece; used instead of runs if there are any
}

// runRatio is the mean number of pieces per run from which runs are used.
const runRatio = 8

// NewMembers takes over a list of units by piece.
func NewMembers(of spill.Indexes) Members {
	n, runs := of.Len(), 0
	for i := range n {
		if i == 0 || of.At(i) != of.At(i-1) {
			runs++
		}
	}
	if runs*runRatio > n {
		return Members{dense: of}
	}
	m := Members{ends: make([]int32, 0, runs), units: make([]int32, 0, runs)}
	for i := range n {
		if i+1 == n || of.At(i+1) != of.At(i) {
			m.ends, m.units = append(m.ends, int32(i+1)), append(m.units, of.At(i))
		}
	}
	of.Free()
	return m
}

// membersOf takes over lists by device; nil if there are none.
func membersOf(lists owned) []Members {
	if lists == nil {
		return nil
	}
	all := make([]Members, len(lists))
	for d, of := range lists {
		all[d] = NewMembers(of)
	}
	return all
}

// Walk returns a walk through the pieces, from the first.
func (m *Members) Walk() Walk { return Walk{members: m} }

// Walk reads the units of a device's pieces in order.
type Walk struct {
	members *Members
	run     int
	end     int // pieces before it are of unit
	unit    int32
}

// Of returns the unit of the i-th piece, or trace.None; i must not decrease.
func (w *Walk) Of(i int) int32 {
	if i < w.end {
		return w.unit
	}
	return w.advance(i)
}

// Run returns the unit of the i-th piece, and the index of the first later piece that may be of another unit, at most
// n; i must not decrease.
func (w *Walk) Run(i, n int) (unit int32, end int) {
	if unit = w.Of(i); w.members.dense.Len() > 0 {
		return unit, i + 1
	}
	return unit, min(w.end, n)
}

func (w *Walk) advance(i int) int32 {
	m := w.members
	if m.dense.Len() > 0 {
		return m.dense.At(i)
	}
	for ; w.run < len(m.ends); w.run++ {
		if int(m.ends[w.run]) > i {
			w.end, w.unit = int(m.ends[w.run]), m.units[w.run]
			return w.unit
		}
	}
	w.end, w.unit = math.MaxInt, trace.None
	return trace.None
}
