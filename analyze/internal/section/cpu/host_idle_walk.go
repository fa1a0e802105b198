package cpu

import (
	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// rangeWalk splits stretches of threads' time, which ascend, by the innermost range open on the thread.
type rangeWalk struct {
	r    *trace.Ranges
	next int           // range still to come
	open [][]openRange // by thread
}

type openRange struct {
	start, end int64
	name       int32
}

// add adds the time of a stretch by name; that outside of any range to the last.
func (w *rangeWalk) add(thread int32, i interval.Interval, times []int64) {
	for at := i.Start; at < i.End; {
		for ; w.next < w.r.Len() && w.r.Start(w.next) <= at; w.next++ {
			if w.r.End(w.next) > at { // most end between the stretches
				w.push(w.next)
			}
		}
		open := w.ended(thread, at)
		until, name := i.End, len(times)-1
		if len(open) > 0 {
			top := &open[len(open)-1]
			until, name = min(until, top.end), int(top.name)
		}
		if w.next < w.r.Len() {
			until = min(until, w.r.Start(w.next))
		}
		times[name] += until - at
		at = until
	}
}

// ended takes the innermost ranges that have ended off a thread.
func (w *rangeWalk) ended(thread int32, at int64) []openRange {
	open := w.open[thread]
	for len(open) > 0 && open[len(open)-1].end <= at {
		open = open[:len(open)-1]
	}
	w.open[thread] = open
	return open
}

// push opens a range. Of ranges that start together the longer one is the outer one.
func (w *rangeWalk) push(row int) {
	thread := w.r.Thread(row)
	if thread == trace.None {
		return
	}
	o := openRange{w.r.Start(row), w.r.End(row), w.r.Name(row)}
	open := append(w.ended(thread, o.start), o)
	for i := len(open) - 1; i > 0 && open[i-1].start == o.start && open[i-1].end < o.end; i-- {
		open[i-1], open[i] = open[i], open[i-1]
	}
	w.open[thread] = open
}

// cpuWalk says who is on the CPU that a thread left.
type cpuWalk struct {
	threads *attrib.Threads
	s       *trace.Observed
	seen    *observers
	thread  map[int32]*lastCPU
	cpu     map[int64]*onCPU
}

type lastCPU struct {
	rows attrib.RowWalk
	cpu  int64 // or -1
}

type onCPU struct {
	rows   attrib.RowWalk // still to come
	global int64          // who is on it, or 0
}

func newCPUWalk(in *kit.Input, seen *observers) *cpuWalk {
	return &cpuWalk{threads: in.Threads, s: &in.Trace.Sched, seen: seen, thread: map[int32]*lastCPU{},
		cpu: map[int64]*onCPU{}}
}

// switched is the switch that a walk is at, if it is not after the moment; it goes to the next one.
func (w *cpuWalk) switched(rows *attrib.RowWalk, at int64) (x trace.Subject, ok bool) {
	row := int(rows.Row)
	if rows.Row == trace.None || w.s.Start(row) > at {
		return x, false
	}
	rows.Next()
	return w.s.Subjects[w.s.Subject(row)], true
}

// instead adds, by thread, the time in which another was on the CPU that the thread was on before.
func (w *cpuWalk) instead(p *attrib.HostPiece, times map[int64]int64) {
	th := w.thread[p.Thread]
	if th == nil {
		th = &lastCPU{rows: w.threads.Switches(p.Thread), cpu: -1}
		w.thread[p.Thread] = th
	}
	for k, ok := w.switched(&th.rows, p.Start); ok; k, ok = w.switched(&th.rows, p.Start) {
		th.cpu = k.What >> 1
	}
	if th.cpu < 0 {
		return
	}
	on := w.cpu[th.cpu]
	if on == nil {
		on = &onCPU{rows: w.seen.byCPU.Of(int32(th.cpu))}
		w.cpu[th.cpu] = on
	}
	for at := p.Start; at < p.End; {
		for k, ok := w.switched(&on.rows, at); ok; k, ok = w.switched(&on.rows, at) {
			switch {
			case k.What&1 == 1:
				on.global = k.Global
			case on.global == k.Global:
				on.global = 0
			}
		}
		until := p.End
		if on.rows.Row != trace.None {
			until = min(until, w.s.Start(int(on.rows.Row)))
		}
		if on.global != 0 {
			times[on.global] += until - at
		}
		at = until
	}
}
