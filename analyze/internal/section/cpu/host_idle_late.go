package cpu

import (
	"cmp"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// late describes launching threads while devices waited for them.
type late struct {
	devices []*deviceLate
	total   int64 // idle time of cause host, over all devices
	gil     int64 // of it in waits for Python's lock
	calls   []*lateCall
	ranges  map[string]int64      // by name; empty: in none
	called  map[string]kit.Called // by the call's name: where most of its time was called from

	samples, stacked int64 // samples of that time, and those with a call stack
	frames           []lateFrame
	pythonSamples    int64
	python           []lateFrame

	instead       map[int64]int64 // by globalTid: who had the CPU instead
	threads, cpus int64
	processes     map[int64]string
}

type lateCall struct {
	cause       int
	name        string
	count, time int64
	last        int32 // row of the last one
}

type lateFrame struct {
	name, module string
	line         int64 // of a function in Python: where most of its samples are
	within, self int64
}

type deviceLate struct {
	timeline.Visitor
	causes [timeline.HostCauses]int64

	calls   map[kit.LateCall]*lateCall
	stacks  map[int64]kit.StackTime
	ranges  []int64 // by name, and those without a range last; only these if the device is not split
	samples []int32
	python  []int32         // indexes of Trace.Python
	instead map[int64]int64 // time by globalTid
}

func newLate(in *kit.Input) *late {
	t := in.Trace
	looks := lateLooks(in)
	x := &late{devices: looks.devices, processes: t.Programs, ranges: map[string]int64{}, instead: map[int64]int64{}}
	in.Visit(in.Timeline, looks.visitors())
	looks.seen.free(t)
	for _, d := range x.devices {
		d.finish()
	}
	type call struct {
		cause int
		name  string
	}
	calls := kit.NewTally[call, lateCall]()
	stacks := map[int64]kit.StackTime{}
	sampled, python := map[int64]bool{}, map[int32]bool{}
	for _, d := range x.devices {
		x.total += lists.Total(d.causes[:])
		for key, c := range d.calls {
			sum := calls.At(call{key.Cause, key.Name(t)})
			*sum = lateCall{cause: key.Cause, name: key.Name(t), count: sum.count + c.count, time: sum.time + c.time}
		}
		for n, ns := range d.ranges {
			name := ""
			if n < len(d.ranges)-1 {
				name = t.Ranges.Names[n].Text
			}
			if ns != 0 {
				x.ranges[name] += ns
			}
		}
		for id, s := range d.stacks {
			stacks[id] = kit.StackTime{What: s.What, Time: stacks[id].Time + s.Time}
		}
		lists.AddTo(x.instead, d.instead)
		for _, row := range d.samples {
			sampled[t.Samples.Number(int(row))] = true
		}
		for _, i := range d.python {
			python[i] = true
		}
	}
	x.calls = calls.Values
	lists.Sort(x.calls, func(a, b *lateCall) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.cause, b.cause), strings.Compare(a.name, b.name))
	})
	x.samples = int64(len(sampled))
	x.addFrames(t, sampled)
	x.addPython(t, python)
	x.called = kit.CallersOf(t, stacks)
	x.countThreads(in)
	return x
}

// countThreads counts the threads that came onto a CPU in the window, and the CPUs.
func (x *late) countThreads(in *kit.Input) {
	s := &in.Trace.Sched
	threads, cpus := map[int64]bool{}, map[int64]bool{}
	seen := make([]bool, len(s.Subjects))
	lo, hi := s.Starting(in.Host.Start, in.Host.End)
	for i := lo; i < hi; i++ {
		seen[s.Subject(i)] = true
	}
	for k, yes := range seen {
		if yes && s.Subjects[k].What&1 == 1 {
			threads[s.Subjects[k].Global], cpus[s.Subjects[k].What>>1] = true, true
		}
	}
	x.threads, x.cpus = int64(len(threads)), int64(len(cpus))
}

// observers are rows that are compared with the gaps of all devices.
type observers struct {
	samples, python timeline.Rows // by thread
	byCPU           timeline.Rows // switches
}

func newObservers(in *kit.Input) *observers {
	t := in.Trace
	s := &t.Sched
	most := int64(-1)
	for _, x := range s.Subjects {
		most = max(most, x.What>>1)
	}
	return &observers{
		samples: in.Threads.Observed(&t.Samples),
		python: timeline.NewRows(t.Memory(), len(t.Threads), len(t.Python),
			func(i int) int32 { return t.Python[i].Thread }),
		byCPU: timeline.NewRows(t.Memory(), int(most+1), s.Len(),
			func(i int) int32 { return int32(s.Subjects[s.Subject(i)].What >> 1) }),
	}
}

func (x *observers) free(t *trace.Trace) {
	x.samples.Free(t.Memory())
	x.python.Free(t.Memory())
	x.byCPU.Free(t.Memory())
}

// looks go through the gaps of the devices.
type looks struct {
	devices []*deviceLate
	seen    *observers
}

func lateLooks(in *kit.Input) *looks {
	return kit.Once(in, "host idle looks", func() *looks {
		x := &looks{seen: newObservers(in)}
		for i := range in.Timeline.Devices {
			d := &deviceLate{}
			d.look(in, x.seen, i < kit.MaxDevices)
			x.devices = append(x.devices, d)
		}
		return x
	})
}

func (x *looks) visitors() []*timeline.Visitor {
	return lists.Map(x.devices, func(d *deviceLate) *timeline.Visitor { return &d.Visitor })
}

// look prepares the visit of one device. Unless it is split, nobody asks what its launching thread did: every device
// may have waited for every call.
func (x *deviceLate) look(in *kit.Input, seen *observers, split bool) {
	t := in.Trace
	if !split {
		x.ranges = make([]int64, 1)
		x.Gap = func(g *timeline.Gap) { x.causes[timeline.HostUnknown] += g.Cause[timeline.CauseHost] }
		return
	}
	x.calls, x.stacks, x.instead = map[kit.LateCall]*lateCall{}, map[int64]kit.StackTime{}, map[int64]int64{}
	x.ranges = make([]int64, len(t.Ranges.Names)+1)
	ranges, samples := kit.NewRangeWalk(t), map[int32]*sampleWalk{}
	inRange := func(open []int32, ns int64) {
		name := len(x.ranges) - 1
		if len(open) > 0 {
			name = int(open[len(open)-1])
		}
		x.ranges[name] += ns
	}
	cpus := &cpuWalk{threads: in.Threads, s: &in.Trace.Sched, seen: seen, thread: map[int32]*switches{}, cpu: map[int64]*switches{}}
	x.Piece = func(p *timeline.HostPiece) {
		x.causes[p.Cause] += p.Len()
		key, ok := kit.LateCallOf(in.Trace, p)
		if p.Cause == timeline.HostNotScheduled {
			cpus.instead(p, x.instead)
		}
		if !ok {
			return
		}
		if p.Cause == timeline.HostOS && t.OSStacks.Len() > 0 {
			if id := t.OS.Number(int(p.Row)); id > 0 {
				x.stacks[id] = kit.StackTime{What: key.What, Time: x.stacks[id].Time + p.Len()}
			}
		}
		c := x.calls[key]
		if c == nil {
			c = &lateCall{last: trace.None}
			x.calls[key] = c
		}
		c.time += p.Len()
		if p.Row == trace.None || c.last != p.Row {
			c.count++
			c.last = p.Row
		}
	}
	x.Whole = func(thread int32, i interval.Interval) {
		ranges.Each(thread, i.Start, i.End, inRange)
		on := samples[thread]
		if on == nil {
			on = &sampleWalk{seen.samples.Of(thread), seen.python.Of(thread)}
			samples[thread] = on
		}
		x.samples = within(x.samples, &on.samples, i, t.Samples.Start)
		x.python = within(x.python, &on.python, i, func(i int) int64 { return t.Python[i].At })
	}
}

// finish counts host time of calls without a thread as outside of ranges, in the last entry.
func (x *deviceLate) finish() {
	split := lists.Total(x.ranges)
	rest := &x.ranges[len(x.ranges)-1]
	*rest += lists.Total(x.causes[:]) - split
}

// sampleWalk is how far the samples of a thread have been looked at.
type sampleWalk struct{ samples, python timeline.RowWalk }

// within adds the rows of moments in an interval; intervals must come in ascending order.
func within(list []int32, rows *timeline.RowWalk, i interval.Interval, at func(row int) int64) []int32 {
	for ; rows.Row != trace.None && at(int(rows.Row)) < i.End; rows.Next() {
		if at(int(rows.Row)) >= i.Start {
			list = append(list, rows.Row)
		}
	}
	return list
}

// cpuWalk finds which thread runs on the CPU that a thread left.
type cpuWalk struct {
	threads *timeline.Threads
	s       *trace.Observed
	seen    *observers
	thread  map[int32]*switches
	cpu     map[int64]*switches
}

// switches of a thread or of a CPU.
type switches struct {
	rows timeline.RowWalk // still to come
	now  int64            // the thread's CPU, or -1; the globalTid that is on the CPU, or 0
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
		th = &switches{w.threads.Switches(p.Thread), -1}
		w.thread[p.Thread] = th
	}
	for k, ok := w.switched(&th.rows, p.Start); ok; k, ok = w.switched(&th.rows, p.Start) {
		th.now = k.What >> 1
	}
	if th.now < 0 {
		return
	}
	on := w.cpu[th.now]
	if on == nil {
		on = &switches{rows: w.seen.byCPU.Of(int32(th.now))}
		w.cpu[th.now] = on
	}
	for at := p.Start; at < p.End; {
		for k, ok := w.switched(&on.rows, at); ok; k, ok = w.switched(&on.rows, at) {
			switch {
			case k.What&1 == 1:
				on.now = k.Global
			case on.now == k.Global:
				on.now = 0
			}
		}
		until := p.End
		if on.rows.Row != trace.None {
			until = min(until, w.s.Start(int(on.rows.Row)))
		}
		if on.now != 0 {
			times[on.now] += until - at
		}
		at = until
	}
}
