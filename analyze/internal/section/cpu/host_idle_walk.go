package cpu

import (
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// cpuWalk finds which thread runs on the CPU that a thread left.
type cpuWalk struct {
	threads *timeline.Threads
	s       *trace.Observed
	seen    *observers
	thread  map[int32]*lastCPU
	cpu     map[int64]*onCPU
}

type lastCPU struct {
	rows timeline.RowWalk
	cpu  int64 // or -1
}

type onCPU struct {
	rows   timeline.RowWalk // still to come
	global int64            // who is on it, or 0
}

func newCPUWalk(in *kit.Input, seen *observers) *cpuWalk {
	return &cpuWalk{threads: in.Threads, s: &in.Trace.Sched, seen: seen, thread: map[int32]*lastCPU{},
		cpu: map[int64]*onCPU{}}
}

// switched is the current switch of a walk, unless it is after the moment; it moves to the next one.
func (w *cpuWalk) switched(rows *timeline.RowWalk, at int64) (x trace.Subject, ok bool) {
	row := int(rows.Row)
	if rows.Row == trace.None || w.s.Start(row) > at {
		return x, false
	}
	rows.Next()
	return w.s.Subjects[w.s.Subject(row)], true
}

// instead adds, by thread, the time in which another thread ran on the CPU that the thread was on before.
func (w *cpuWalk) instead(p *timeline.HostPiece, times map[int64]int64) {
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
