package timeline

import (
	"math"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Activity of the launching thread in idle time of cause host. Each nanosecond has the first that applies.
const (
	HostAPI          = iota // another CUDA call, of those that do not block
	HostProfiler            // the profiler's own work
	HostOS                  // a call of the operating system
	HostNotScheduled        // it was on no CPU
	HostRunning             // none of these, for a thread whose scheduler switches are in the capture
	HostUnknown             // none of these, for any other thread
	HostCauses
)

// HostCauseNames are the labels of these causes.
var HostCauseNames = [HostCauses]string{"api", "profiler", "os_call", "not_scheduled", "running", "unknown"}

// Threads are the activities of each thread with CUDA calls, as far as the capture says. If calls of one thread
// overlap, the time belongs to the one that started first.
type Threads struct {
	trace             *trace.Trace
	api, os, switches Rows
	overhead          []interval.Set
}

// NewThreads sorts what the capture says by thread.
func NewThreads(t *trace.Trace) *Threads {
	n := len(t.Threads)
	x := &Threads{trace: t, overhead: make([]interval.Set, n)}
	x.api = NewRows(t.Memory(), n, t.API.Len(), t.API.Thread)
	x.os, x.switches = x.Observed(&t.OS), x.Observed(&t.Sched)
	lists := make([][]interval.Interval, n)
	o := &t.Overhead
	for i := range o.Len() {
		if th := o.Subjects[o.Subject(i)].Thread; x.Calls(th) {
			lists[th] = append(lists[th], interval.Interval{Start: o.Start(i), End: o.End(i)})
		}
	}
	for th, list := range lists {
		x.overhead[th] = interval.Of(list)
	}
	return x
}

// Calls reports whether a thread makes CUDA calls, so that it can have launched something.
func (x *Threads) Calls(thread int32) bool {
	return thread != trace.None && x.api.Has(thread)
}

// Observed are the rows of a table by thread, for threads that make CUDA calls.
func (x *Threads) Observed(o *trace.Observed) Rows {
	thread := make([]int32, len(o.Subjects))
	for i, s := range o.Subjects {
		if thread[i] = trace.None; x.Calls(s.Thread) {
			thread[i] = s.Thread
		}
	}
	return NewRows(x.trace.Memory(), len(x.trace.Threads), o.Len(), func(i int) int32 { return thread[o.Subject(i)] })
}

// Switches are those of a thread that makes CUDA calls.
func (x *Threads) Switches(thread int32) RowWalk { return x.switches.Of(thread) }

// HostPiece is a stretch of idle time of cause host.
type HostPiece struct {
	interval.Interval
	Thread int32
	Cause  int
	// Row is the API call, the piece of Trace.Overhead or the call of the operating system; trace.None for other
	// causes. Overhead that overlaps is one piece, with row None.
	Row int32
}

// hostWalk goes through the activity of threads along the gaps of one device.
type hostWalk struct {
	*Threads
	at     []*threadWalk // by thread; nil if none of its gaps was reached
	pieces []func(p *HostPiece)
	wholes []func(thread int32, stretch interval.Interval)

	free, rest []interval.Interval
	piece      HostPiece // the piece that visitors get
}

// threadWalk is how far the walk got on one thread.
type threadWalk struct {
	sync, overhead setWalk
	api, os        callWalk
	off            offWalk
}

// layer is an activity of a thread, in pieces that ascend and do not overlap.
type layer interface {
	// seek goes to the first piece that ends after a moment; moments must ascend; ok is false if there is none.
	seek(at int64) (piece interval.Interval, row int32, ok bool)
}

type setWalk struct {
	set interval.Set
	at  int
}

func (w *setWalk) seek(at int64) (interval.Interval, int32, bool) {
	for ; w.at < len(w.set); w.at++ {
		if w.set[w.at].End > at {
			return w.set[w.at], trace.None, true
		}
	}
	return interval.Interval{}, trace.None, false
}

// callWalk yields the union of the calls of a thread, each moment with the call that started first.
type callWalk struct {
	span *trace.Span
	rows RowWalk
	now  interval.Interval // ends where all calls so far have ended
	row  int32
}

func newCallWalk(span *trace.Span, rows RowWalk) callWalk {
	return callWalk{span: span, rows: rows, now: interval.Interval{Start: math.MinInt64, End: math.MinInt64}}
}

func (w *callWalk) seek(at int64) (interval.Interval, int32, bool) {
	for w.now.End <= at {
		if w.row = w.rows.Row; w.row == trace.None {
			return interval.Interval{}, trace.None, false
		}
		w.rows.Next()
		if end := w.span.End(int(w.row)); end > w.now.End {
			w.now = interval.Interval{Start: max(w.span.Start(int(w.row)), w.now.End), End: end}
		}
	}
	return w.now, w.row, true
}

// offWalk yields when a thread was on no CPU: from a switch that takes it off to the next that brings it on. Before the
// first switch it is in the opposite state; the last one holds to the end.
type offWalk struct {
	sched *trace.Observed
	rows  RowWalk
	now   interval.Interval
}

func newOffWalk(sched *trace.Observed, rows RowWalk) offWalk {
	w := offWalk{sched: sched, rows: rows, now: interval.Interval{Start: math.MinInt64, End: math.MinInt64}}
	if rows.Row != trace.None && w.comes() {
		w.now.End = sched.Start(int(rows.Row))
	}
	return w
}

func (w *offWalk) comes() bool { return w.sched.Subjects[w.sched.Subject(int(w.rows.Row))].What&1 == 1 }

func (w *offWalk) seek(at int64) (interval.Interval, int32, bool) {
	for w.now.End <= max(at, w.now.Start) {
		for w.rows.Row != trace.None && w.comes() {
			w.rows.Next()
		}
		if w.rows.Row == trace.None {
			return interval.Interval{}, trace.None, false
		}
		w.now = interval.Interval{Start: w.sched.Start(int(w.rows.Row)), End: math.MaxInt64}
		for w.rows.Row != trace.None && !w.comes() {
			w.rows.Next()
		}
		if w.rows.Row != trace.None {
			w.now.End = w.sched.Start(int(w.rows.Row))
		}
	}
	return w.now, trace.None, true
}

func (x *Threads) walk(visitors []*Visitor) *hostWalk {
	w := &hostWalk{Threads: x, at: make([]*threadWalk, len(x.overhead))}
	for _, v := range visitors {
		if v.Piece != nil {
			w.pieces = append(w.pieces, v.Piece)
		}
		if v.Whole != nil {
			w.wholes = append(w.wholes, v.Whole)
		}
	}
	return w
}

func (w *hostWalk) on(thread int32, blocking []interval.Set) *threadWalk {
	if w.at[thread] == nil {
		w.at[thread] = &threadWalk{
			sync: setWalk{set: blocking[thread]}, overhead: setWalk{set: w.overhead[thread]},
			off: newOffWalk(&w.trace.Sched, w.switches.Of(thread)),
			api: newCallWalk(&w.trace.API.Span, w.api.Of(thread)), os: newCallWalk(&w.trace.OS.Span, w.os.Of(thread)),
		}
	}
	return w.at[thread]
}

// split divides the part of a gap whose cause is host. Gaps must ascend.
func (w *hostWalk) split(g *Gap, call int32, blocking []interval.Set) {
	g.Host = [HostCauses]int64{}
	if g.Cause[CauseHost] == 0 {
		return
	}
	thread := w.trace.API.Thread(int(call))
	w.free = append(w.free[:0], interval.Interval{Start: g.Start, End: min(w.trace.API.Start(int(call)), g.End)})
	rest := HostUnknown
	if thread != trace.None {
		on := w.on(thread, blocking)
		w.without(&on.sync, g, thread, none)
		for _, whole := range w.wholes {
			for _, i := range w.free {
				whole(thread, i)
			}
		}
		w.without(&on.api, g, thread, HostAPI)
		w.without(&on.overhead, g, thread, HostProfiler)
		w.without(&on.os, g, thread, HostOS)
		w.without(&on.off, g, thread, HostNotScheduled)
		if w.switches.Has(thread) {
			rest = HostRunning
		}
	}
	for _, i := range w.free {
		w.give(g, i, thread, rest, trace.None)
	}
}

// none stands for time that is not split by cause here.
const none = -1

func (w *hostWalk) give(g *Gap, i interval.Interval, thread int32, cause int, row int32) {
	g.Host[cause] += i.Len()
	w.piece = HostPiece{i, thread, cause, row}
	for _, visit := range w.pieces {
		visit(&w.piece)
	}
}

// without attributes the part of the remaining time that a layer covers to a cause.
func (w *hostWalk) without(l layer, g *Gap, thread int32, cause int) {
	if len(w.free) == 0 {
		return
	}
	if len(w.free) == 1 { // most gaps, which most layers leave as they are
		if p, _, ok := l.seek(w.free[0].Start); !ok || p.Start >= w.free[0].End {
			return
		}
	}
	w.rest = w.rest[:0]
	for _, i := range w.free {
		for i.Start < i.End {
			p, row, ok := l.seek(i.Start)
			if !ok || p.Start >= i.End {
				break
			}
			if p.Start > i.Start {
				w.rest = append(w.rest, interval.Interval{Start: i.Start, End: p.Start})
			}
			from := max(i.Start, p.Start)
			i.Start = min(i.End, p.End)
			if cause != none {
				w.give(g, interval.Interval{Start: from, End: i.Start}, thread, cause, row)
			}
		}
		if i.Start < i.End {
			w.rest = append(w.rest, i)
		}
	}
	w.free, w.rest = w.rest, w.free
}
