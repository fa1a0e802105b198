package workunit

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// opener finds the range that is open when a call is made: on the call's thread or on that of its process which counts
// as home.
type opener struct {
	trace    *trace.Trace
	list     []int32   // ranges by start
	byThread [][]int32 // indexes into list
	near     []int     // by thread: where the last search ended, since calls come mostly in order
	home     []int32   // by process: thread, or trace.None
}

func newOpener(t *trace.Trace, list []int32) *opener {
	o := &opener{trace: t, list: list, byThread: make([][]int32, len(t.Threads)), near: make([]int, len(t.Threads)),
		home: slices.Repeat([]int32{trace.None}, len(t.Procs))}
	for i, id := range list {
		th := t.Ranges.Thread(int(id))
		o.byThread[th] = append(o.byThread[th], int32(i))
	}
	return o
}

// eachThread visits the threads of known processes that have ranges.
func (o *opener) eachThread(visit func(proc, thread int32, list []int32)) {
	for th, list := range o.byThread {
		if p := o.trace.Threads[th].Proc; p != trace.None && len(list) > 0 {
			visit(p, int32(th), list)
		}
	}
}

// alone makes home of a process the thread that has all its ranges, if these do not overlap.
func (o *opener) alone() *opener {
	several := make([]bool, len(o.home))
	o.eachThread(func(p, th int32, list []int32) {
		several[p] = several[p] || o.home[p] != trace.None
		for k := 1; k < len(list); k++ {
			several[p] = several[p] || o.end(list[k-1]) > o.start(list[k])
		}
		o.home[p] = th
	})
	for p, is := range several {
		if is {
			o.home[p] = trace.None
		}
	}
	return o
}

// longest makes home of a process the thread whose outermost ranges are open longest.
func (o *opener) longest() *opener {
	most := make([]int64, len(o.home))
	o.eachThread(func(p, th int32, list []int32) {
		open, until := int64(0), int64(math.MinInt64)
		for _, k := range list {
			if o.start(k) >= until {
				open += o.end(k) - o.start(k)
				until = o.end(k)
			}
		}
		if o.home[p] == trace.None || open > most[p] {
			o.home[p], most[p] = th, open
		}
	})
	return o
}

func (o *opener) start(k int32) int64 { return o.trace.Ranges.Start(int(o.list[k])) }
func (o *opener) end(k int32) int64   { return o.trace.Ranges.End(int(o.list[k])) }

// last is the last range of a thread that starts by a moment, or -1.
func (o *opener) last(th int32, by int64) int32 {
	list := o.byThread[th]
	at := lists.Near(len(list), o.near[th], func(i int) bool { return o.start(list[i]) > by })
	if o.near[th] = at; at == 0 {
		return -1
	}
	return list[at-1]
}

// before is the last range that starts no later than a call, on its thread or, if that has none, at home; or -1.
func (o *opener) before(call int32) int32 {
	if call == trace.None {
		return -1
	}
	th := o.trace.API.Thread(int(call))
	if th != trace.None && len(o.byThread[th]) == 0 {
		th = o.homeOf(th)
	}
	if th == trace.None {
		return -1
	}
	return o.last(th, o.trace.API.Start(int(call)))
}

// homeOf is the home of a thread's process, or trace.None.
func (o *opener) homeOf(th int32) int32 {
	if p := o.trace.Threads[th].Proc; p != trace.None {
		return o.home[p]
	}
	return trace.None
}

// around is the range around a call, if no two of a thread contain each other: the one open on the call's thread, or at
// home even if another thread made the call; or -1.
func (o *opener) around(call int32) int32 {
	if call == trace.None || o.trace.API.Thread(int(call)) == trace.None {
		return -1
	}
	th := o.trace.API.Thread(int(call))
	start, end := o.trace.API.Start(int(call)), o.trace.API.End(int(call))
	if k := o.last(th, start); k >= 0 && o.end(k) >= end && o.end(k) > start {
		return k
	}
	if home := o.homeOf(th); home != trace.None && home != th {
		if k := o.last(home, start); k >= 0 && o.end(k) >= end {
			return k
		}
	}
	return -1
}

// Members gives the unit of each piece of a device's work, or trace.None, as runs of consecutive pieces of one unit.
type Members struct {
	ends, units []int32 // by run: index after its last piece; its unit
}

// NewMembers takes over a list of units by piece.
func NewMembers(of spill.Indexes) (m Members) {
	for i, n := 0, of.Len(); i < n; i++ {
		if i+1 == n || of.At(i+1) != of.At(i) {
			m.ends, m.units = append(m.ends, int32(i+1)), append(m.units, of.At(i))
		}
	}
	of.Free()
	return m
}

// membersOf takes over lists by device; nil if there are none.
func membersOf(of owned) []Members {
	if of == nil {
		return nil
	}
	all := make([]Members, len(of))
	parallel.Each(len(of), func(d int) { all[d] = NewMembers(of[d]) })
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

// Run returns the unit of the i-th piece, and the index of the first later piece of another unit, at most
// n; i must not decrease.
func (w *Walk) Run(i, n int) (unit int32, end int) {
	unit = w.Of(i)
	return unit, min(w.end, n)
}

func (w *Walk) advance(i int) int32 {
	for m := w.members; w.run < len(m.ends); w.run++ {
		if int(m.ends[w.run]) > i {
			w.end, w.unit = int(m.ends[w.run]), m.units[w.run]
			return w.unit
		}
	}
	w.end, w.unit = math.MaxInt, trace.None
	return trace.None
}
