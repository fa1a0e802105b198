package cpu

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// late is what launching threads did while devices waited for them.
type late struct {
	devices []deviceLate
	total   int64 // idle time of cause host, over all devices
	calls   []lateCall
	ranges  []named
	stacks  map[int64]stackTime // by id of the stack, of calls of the operating system
	called  map[string]called   // by the call's name: where most of its time was called from

	samples, stacked int64 // samples of that time, and those with a call stack
	frames           []lateFrame

	instead       []occupant
	threads, cpus int64
	processes     map[int64]string
}

type named struct {
	name string
	time int64
}

type lateCall struct {
	cause       int
	name        string
	count, time int64
}

type stackTime struct{ what, time int64 }

type called struct {
	from string
	time int64
}

type lateFrame struct {
	name, module string
	within, self int64
}

type occupant struct{ global, time int64 }

// deviceLate is the part of one device.
type deviceLate struct {
	causes [attrib.HostCauses]int64

	calls   map[kit.LateCall]*lateCall
	stacks  map[int64]stackTime
	ranges  []int64 // by name, and those without a range last
	samples []int32
	instead map[int64]int64 // time by globalTid
}

// lateness is worked out once.
func lateness(in *kit.Input) *late {
	return kit.Once(in, "host idle", func() *late { return newLate(in) })
}

func newLate(in *kit.Input) *late {
	t := in.Trace
	x := &late{devices: make([]deviceLate, len(in.Timeline.Devices)), processes: t.Programs}
	seen := newObservers(in)
	defer seen.free(t)
	parallel.Each(len(x.devices), func(i int) { x.devices[i].look(in, &in.Timeline.Devices[i], seen) })
	type call struct {
		cause int
		name  string
	}
	calls, ranges := map[call]*lateCall{}, make([]int64, len(t.Ranges.Names)+1)
	x.stacks = map[int64]stackTime{}
	instead := map[int64]int64{}
	sampled := map[int64]bool{}
	for i := range x.devices {
		d := &x.devices[i]
		for _, ns := range d.causes {
			x.total += ns
		}
		for key, c := range d.calls {
			k := call{key.Cause, key.Name(t)}
			if calls[k] == nil {
				calls[k] = &lateCall{cause: k.cause, name: k.name}
			}
			calls[k].count += c.count
			calls[k].time += c.time
		}
		for n, ns := range d.ranges {
			ranges[n] += ns
		}
		for id, s := range d.stacks {
			x.stacks[id] = stackTime{s.what, x.stacks[id].time + s.time}
		}
		for global, ns := range d.instead {
			instead[global] += ns
		}
		for _, row := range d.samples {
			sampled[t.Samples.Number(int(row))] = true
		}
	}
	for _, c := range calls {
		x.calls = append(x.calls, *c)
	}
	slices.SortFunc(x.calls, func(a, b lateCall) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.cause, b.cause), strings.Compare(a.name, b.name))
	})
	x.ranges = rankRanges(t, ranges)
	for global, ns := range instead {
		x.instead = append(x.instead, occupant{global, ns})
	}
	slices.SortFunc(x.instead, func(a, b occupant) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.global, b.global))
	})
	x.samples = int64(len(sampled))
	x.addFrames(t, sampled)
	x.addCallers(t)
	x.countThreads(in)
	return x
}

// rankRanges brings names together that differ in their tags; an empty one stands for no range.
func rankRanges(t *trace.Trace, times []int64) (list []named) {
	at := map[string]int{}
	for n, ns := range times {
		if ns == 0 {
			continue
		}
		name := ""
		if n < len(t.Ranges.Names) {
			name = t.Ranges.Names[n].Text
		}
		i, ok := at[name]
		if !ok {
			i = len(list)
			at[name], list = i, append(list, named{name: name})
		}
		list[i].time += ns
	}
	slices.SortFunc(list, func(a, b named) int {
		return cmp.Or(cmp.Compare(b.time, a.time), strings.Compare(a.name, b.name))
	})
	return list
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

// observers are rows by thread, and switches by CPU, that all devices look at.
type observers struct {
	samples, switches attrib.Rows // by thread
	byCPU             attrib.Rows
}

func newObservers(in *kit.Input) *observers {
	t, x := in.Trace, &observers{}
	n, memory := len(t.Threads), t.Memory()
	of := func(o *trace.Observed) attrib.Rows {
		threads := in.Threads.Subjects(o)
		return attrib.NewRows(memory, n, o.Len(), func(i int) int32 { return threads[o.Subject(i)] })
	}
	x.samples, x.switches = of(&t.Samples), of(&t.Sched)
	most := int64(-1)
	for _, s := range t.Sched.Subjects {
		most = max(most, s.What>>1)
	}
	x.byCPU = attrib.NewRows(memory, int(most+1), t.Sched.Len(),
		func(i int) int32 { return int32(t.Sched.Subjects[t.Sched.Subject(i)].What >> 1) })
	return x
}

func (x *observers) free(t *trace.Trace) {
	for _, r := range []*attrib.Rows{&x.samples, &x.switches, &x.byCPU} {
		r.Free(t.Memory())
	}
}

// look goes through the gaps of one device.
func (x *deviceLate) look(in *kit.Input, d *attrib.Device, seen *observers) {
	t := in.Trace
	x.calls, x.stacks, x.instead = map[kit.LateCall]*lateCall{}, map[int64]stackTime{}, map[int64]int64{}
	x.ranges = make([]int64, len(t.Ranges.Names)+1)
	ranges, samples := &rangeWalk{r: &t.Ranges, open: make([][]openRange, len(t.Threads))}, map[int32][]int32{}
	cpus := newCPUWalk(&t.Sched, seen)
	last := map[kit.LateCall]int32{}
	piece := func(p *attrib.HostPiece) {
		x.causes[p.Cause] += p.Len()
		key, ok := in.LateCallOf(p)
		if p.Cause == attrib.HostNotScheduled {
			cpus.instead(p, x.instead)
		}
		if !ok {
			return
		}
		if p.Cause == attrib.HostOS && t.OSStacks.Len() > 0 {
			if id := t.OS.Number(int(p.Row)); id > 0 {
				x.stacks[id] = stackTime{key.What, x.stacks[id].time + p.Len()}
			}
		}
		c := x.calls[key]
		if c == nil {
			c = &lateCall{cause: key.Cause}
			x.calls[key] = c
			last[key] = trace.None - 1
		}
		c.time += p.Len()
		if p.Row == trace.None || last[key] != p.Row {
			c.count++
			last[key] = p.Row
		}
	}
	whole := func(thread int32, i interval.Interval) {
		ranges.add(thread, i, x.ranges)
		rows, ok := samples[thread]
		if !ok {
			rows = seen.samples.Of(thread)
		}
		for len(rows) > 0 && t.Samples.Start(int(rows[0])) < i.Start {
			rows = rows[1:]
		}
		for len(rows) > 0 && t.Samples.Start(int(rows[0])) < i.End {
			x.samples = append(x.samples, rows[0])
			rows = rows[1:]
		}
		samples[thread] = rows
	}
	d.SweepHost(in.Threads, nil, piece, whole, nil)
	var split int64
	for _, ns := range x.ranges {
		split += ns
	}
	for _, ns := range x.causes {
		x.ranges[len(t.Ranges.Names)] += ns
	}
	x.ranges[len(t.Ranges.Names)] -= split // of calls without a thread: in no range
}

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
		for w.next < w.r.Len() && w.r.Start(w.next) <= at {
			w.push(w.next)
			w.next++
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
	s      *trace.Observed
	seen   *observers
	thread map[int32]*lastCPU
	cpu    map[int64]*onCPU
}

type lastCPU struct {
	rows []int32
	cpu  int64 // or -1
}

type onCPU struct {
	rows   []int32 // still to come
	global int64   // who is on it, or 0
}

func newCPUWalk(s *trace.Observed, seen *observers) *cpuWalk {
	return &cpuWalk{s: s, seen: seen, thread: map[int32]*lastCPU{}, cpu: map[int64]*onCPU{}}
}

// instead adds, by thread, the time in which another was on the CPU that the thread was on before.
func (w *cpuWalk) instead(p *attrib.HostPiece, times map[int64]int64) {
	th := w.thread[p.Thread]
	if th == nil {
		th = &lastCPU{rows: w.seen.switches.Of(p.Thread), cpu: -1}
		w.thread[p.Thread] = th
	}
	for len(th.rows) > 0 && w.s.Start(int(th.rows[0])) <= p.Start {
		th.cpu = w.s.Subjects[w.s.Subject(int(th.rows[0]))].What >> 1
		th.rows = th.rows[1:]
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
		for len(on.rows) > 0 && w.s.Start(int(on.rows[0])) <= at {
			k := w.s.Subjects[w.s.Subject(int(on.rows[0]))]
			switch {
			case k.What&1 == 1:
				on.global = k.Global
			case on.global == k.Global:
				on.global = 0
			}
			on.rows = on.rows[1:]
		}
		until := p.End
		if len(on.rows) > 0 {
			until = min(until, w.s.Start(int(on.rows[0])))
		}
		if on.global != 0 {
			times[on.global] += until - at
		}
		at = until
	}
}

// addFrames counts the functions on the stacks of the samples.
func (x *late) addFrames(t *trace.Trace, sampled map[int64]bool) {
	f := &t.SampleStack
	names, of := frameNames(f)
	count := make([]lateFrame, len(names))
	copy(count, names)
	lastIn := make([]int64, len(names))
	for i := range lastIn {
		lastIn[i] = math.MinInt64
	}
	id, wanted := int64(math.MinInt64), false
	eachFrame(f, func(i int) {
		if s := f.Stack(i); s != id {
			if id, wanted = s, sampled[s]; wanted {
				x.stacked++
			}
		}
		if !wanted {
			return
		}
		n := of[f.Kind(i)]
		if lastIn[n] != id {
			lastIn[n] = id
			count[n].within++
		}
		if f.Depth(i) == 0 {
			count[n].self++
		}
	})
	for _, c := range count {
		if c.within > 0 {
			x.frames = append(x.frames, c)
		}
	}
	slices.SortFunc(x.frames, func(a, b lateFrame) int {
		return cmp.Or(cmp.Compare(b.self, a.self), cmp.Compare(b.within, a.within), strings.Compare(a.name, b.name))
	})
}

// frameNames are the functions by name and, by kind of frame, which it is. What nsys did not resolve is one function of its
// module.
func frameNames(f *trace.Frames) (names []lateFrame, of []int32) {
	index := map[string]int32{}
	of = make([]int32, len(f.Kinds))
	for k, frame := range f.Kinds {
		if strings.HasPrefix(frame.Function, "0x") {
			frame.Function = "[unresolved]"
			if frame.Module != "" {
				frame.Function = "[unresolved in " + frame.Module + "]"
			}
		}
		n, ok := index[frame.Function]
		if !ok {
			n = int32(len(names))
			index[frame.Function] = n
			names = append(names, lateFrame{name: frame.Function, module: frame.Module})
		}
		if names[n].module != frame.Module {
			names[n].module = "" // several modules have one of this name
		}
		of[k] = n
	}
	return names, of
}

// eachFrame visits the frames stack by stack: in the order of the table as a rule, which is that.
func eachFrame(f *trace.Frames, visit func(i int)) {
	sorted := true
	for i := 1; i < f.Len() && sorted; i++ {
		sorted = f.Stack(i-1) <= f.Stack(i)
	}
	if sorted {
		for i := range f.Len() {
			visit(i)
		}
		return
	}
	order := make([]int32, f.Len())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(f.Stack(int(a)), f.Stack(int(b))) })
	for _, i := range order {
		visit(int(i))
	}
}

// callers is how many functions of a stack are named.
const callers = 3

// addCallers names, by call of the operating system, the callers from which most of its time was called.
func (x *late) addCallers(t *trace.Trace) {
	if len(x.stacks) == 0 {
		return
	}
	f := &t.OSStacks
	type from struct{ call, text string }
	times := map[from]int64{}
	id, names := int64(math.MinInt64), []string{}
	flush := func() {
		if s, ok := x.stacks[id]; ok && len(names) > 0 {
			times[from{t.OSName(s.what), strings.Join(names, " ← ")}] += s.time
		}
		names = names[:0]
	}
	eachFrame(f, func(i int) {
		if f.Stack(i) != id {
			flush()
			id = f.Stack(i)
		}
		if _, ok := x.stacks[id]; ok && len(names) < callers {
			if frame := f.Kinds[f.Kind(i)]; !strings.HasPrefix(frame.Function, "0x") {
				names = append(names, frame.Function)
			}
		}
	})
	flush()
	x.called = map[string]called{}
	for k, ns := range times {
		if best := x.called[k.call]; ns > best.time || ns == best.time && k.text < best.from {
			x.called[k.call] = called{k.text, ns}
		}
	}
}

// mostStack is from where most of the time of a call was called, or -1 where that is not known.
func (x *late) mostStack(c *lateCall) (from string, ns int64) {
	if best, ok := x.called[c.name]; ok && c.cause == attrib.HostOS {
		return best.from, best.time
	}
	return "", -1
}
