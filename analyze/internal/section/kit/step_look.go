package kit

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// stepLook goes through the judged time.
type stepLook struct {
	step    Step
	in      *Input
	tl      *timeline.Timeline
	index   int
	idle    []*timeline.Visitor
	spans   interval.Cursor // over those of the step
	pieces  []timeline.HostPiece
	ranges  *RangeWalk
	marks   []threadMarks // by thread
	reads   map[string]int64
	places  *places
	counted map[int32]bool // calls that read back

	markers    map[int32]bool          // names of the ranges that mark judged steps
	folds      []int32                 // by range name: the number of its folded name, or None
	folded     lists.Numbering[string] // names that differ in their numbers are one
	open, seen []int32                 // ranges, reused
	behindWork latePart                // idle time of cause dependency, and where the work after it was launched
	late       interval.Set            // while the launching thread was late
	parts      [lateParts]latePart
	allocates  []bool              // by name of a call
	allocs     []interval.Interval // in such calls, of the gap
}

// latePart is the place of the launching thread in a part of the late time.
type latePart struct {
	IdlePlace
	host           [timeline.HostCauses]int64
	inside, around []int64 // by number of the folded range: time with it innermost, and time anywhere in it
}

// The parts of the late time.
const (
	lateRest      = iota
	lateRead      // caused by reading values back
	lateAllocates // in calls that allocate
	lateParts
)

func newLatePart() latePart {
	return latePart{IdlePlace: IdlePlace{Calls: map[LateCall]int64{}, Syncs: map[int32]int64{},
		Ranges: map[string]int64{}, Within: map[string]int64{}, Threads: map[int32]int64{},
		Stacks: map[int64]StackTime{}}}
}

const (
	markReadBack = iota
	markStaged
	markBlocked
	markSync
	markAllocation
)

func stepLookOf(in *Input) *stepLook {
	return Once(in, "step look", func() *stepLook { return newStepLook(in) })
}

func newStepLook(in *Input) *stepLook {
	x := &stepLook{in: in, tl: in.Timeline, reads: map[string]int64{}, counted: map[int32]bool{},
		markers: map[int32]bool{}}
	if in.Timeline == nil || len(in.Timeline.Devices) == 0 {
		return x
	}
	if units := in.Units.Judged(); len(units) > 0 {
		x.tl, x.index = in.Units.Timeline, int(in.Units.Units[units[0]].Index)
		for _, u := range units {
			unit := &in.Units.Units[u]
			x.step.Spans = append(x.step.Spans, interval.Interval{Start: unit.Start, End: unit.End})
			if unit.Marker != trace.None {
				x.markers[in.Trace.Ranges.Name(int(unit.Marker))], x.step.hasRanges = true, true
			}
		}
		lists.Sort(x.step.Spans, func(a, b interval.Interval) int { return cmp.Compare(a.Start, b.Start) })
		x.step.Units = int64(len(units))
	} else {
		for d := range x.tl.Devices {
			if x.tl.Devices[d].Busy() > x.tl.Devices[x.index].Busy() {
				x.index = d
			}
		}
		x.step.Spans = interval.Set{in.Span}
	}
	x.spans.Left, x.step.Of = x.step.Spans, x.step.Spans.Len()
	x.step.Device = x.tl.Devices[x.index]
	x.allocates = lists.Map(in.Trace.API.Names, func(n trace.APIName) bool { return Allocates(n.Name) })
	for i := range x.parts {
		x.parts[i] = newLatePart()
	}
	x.behindWork = newLatePart()
	x.ranges = NewRangeWalk(in.Trace)
	x.folds = slices.Repeat([]int32{trace.None}, len(in.Trace.Ranges.Names))
	x.places = NewPlaces(in)
	x.step.readWaits = map[int32]bool{}
	x.marks = callMarks(in.Trace, in.Calls, x.allocates, x.step.readWaits)
	x.idle = lists.Map(x.tl.Devices, func(*timeline.Device) *timeline.Visitor { return &timeline.Visitor{} })
	v := x.idle[x.index]
	v.Host = true
	v.Piece = func(p *timeline.HostPiece) { x.pieces = append(x.pieces, *p) }
	v.Gap = x.gap
	return x
}

func (x *stepLook) gap(g *timeline.Gap) {
	if x.spans.Advance(g.Start, g.End) {
		x.judge(g)
	}
	x.pieces = x.pieces[:0]
}

func (x *stepLook) judge(g *timeline.Gap) {
	t := x.in.Trace
	x.spans.Each(g.Start, g.End, func(_ int, lo, hi int64) {
		x.step.Idle += hi - lo
		g.AddWithin(lo, hi, &x.step.Cause)
	})
	long := LongGap{Interval: g.Interval, Next: g.Next, Call: trace.None, Thread: trace.None}
	if g.Next != trace.None {
		if long.Call = x.step.Device.Call(int(g.Next)); long.Call != trace.None {
			x.behind(g, long.Call)
			long.Thread = t.API.Thread(int(long.Call))
		}
	}
	if g.Len() > x.step.Gap.Len() {
		x.step.Gap = long
	}
	late := g.Start + g.Cause[timeline.CauseSync] + g.Cause[timeline.CauseHost] + g.Cause[timeline.CauseLaunch]
	from, to := late, late // the part caused by reading a value back
	if long.Thread != trace.None {
		from, to = x.readBackIn(long.Thread, g.Start, late)
	}
	var host [lateParts]int64
	x.allocs = x.allocs[:0]
	for i := range x.pieces {
		p := &x.pieces[i]
		allocates := p.Cause == timeline.HostAPI && x.allocates[t.API.Name(int(p.Row))]
		if allocates {
			x.allocs = append(x.allocs, interval.Interval{Start: p.Start, End: p.End})
		}
		x.apart(p.Start, p.End, from, to, func(k int, lo, hi int64) {
			if allocates {
				k = lateAllocates
			}
			ns, part := hi-lo, &x.parts[k]
			x.step.Host[p.Cause] += ns
			part.host[p.Cause] += ns
			host[k] += ns
			part.Early += max(0, min(hi, x.firstFifth(lo))-lo)
			key, ok := LateCallOf(x.in.Trace, p)
			if !ok {
				return
			}
			part.Calls[key] += ns
			if p.Cause == timeline.HostOS && t.OSStacks.Len() > 0 {
				if id := t.OS.Number(int(p.Row)); id > 0 {
					part.Stacks[id] = StackTime{key.What, part.Stacks[id].Time + ns}
				}
			}
		})
	}
	for i, ns := range host {
		if part := &x.parts[i]; ns > 0 {
			part.Gaps, part.Longest = part.Gaps+1, max(part.Longest, ns)
		}
	}
	if long.Thread == trace.None {
		return
	}
	if old := x.marks[long.Thread].old; len(old) > 0 {
		x.spans.Each(g.Start, late, func(_ int, lo, hi int64) { x.step.OldWaits += old.Within(lo, hi) })
	}
	x.apart(g.Start, late, from, to, func(k int, lo, hi int64) {
		for _, a := range x.allocs {
			if start, end := max(lo, a.Start), min(hi, a.End); start < end {
				x.place(&x.parts[k], long.Thread, lo, start)
				x.place(&x.parts[lateAllocates], long.Thread, start, end)
				lo = end
			}
		}
		x.place(&x.parts[k], long.Thread, lo, hi)
	})
	x.spans.Each(from, to, func(_ int, lo, hi int64) { g.AddWithin(lo, hi, &x.step.ReadBackBy) })
}

// place attributes a stretch of a late thread's time to where it was.
func (x *stepLook) place(part *latePart, thread int32, lo, hi int64) {
	if lo >= hi {
		return
	}
	part.Total += hi - lo
	part.Threads[thread] += hi - lo
	x.late.Add(lo, hi)
	x.ranges.Each(thread, lo, hi, func(open []int32, ns int64) { x.inRanges(part, open, ns) })
	x.marked(part, thread, lo, hi)
}

// firstFifth is the end of the first fifth of the judged stretch around a moment.
func (x *stepLook) firstFifth(moment int64) int64 {
	for _, s := range x.spans.Left {
		if moment < s.End {
			return s.Start + s.Len()/5
		}
	}
	return moment
}

// apart is the judged part of a stretch, cut at the ends of the time caused by reading a value back.
func (x *stepLook) apart(start, end, from, to int64, visit func(k int, lo, hi int64)) {
	for i, cut := range [][2]int64{{start, min(end, from)}, {max(start, from), min(end, to)}, {max(start, to), end}} {
		if cut[0] < cut[1] {
			x.spans.Each(cut[0], cut[1], func(_ int, lo, hi int64) { visit(i%2, lo, hi) })
		}
	}
}

const deepest = 64 // ranges around a call that are looked at

// behind finds which part of a gap passed in the launching call and after it.
func (x *stepLook) behind(g *timeline.Gap, call int32) {
	from := g.End - g.Cause[timeline.CauseDependency]
	x.spans.Each(from-g.Cause[timeline.CauseLaunch], from, func(_ int, lo, hi int64) {
		if hi-lo > x.step.LongLaunch {
			x.step.LongLaunch, x.step.LongCall = hi-lo, x.in.Trace.API.Name(int(call))
		}
	})
	x.spans.Each(from, g.End, func(_ int, lo, hi int64) {
		if hi-lo > x.step.LongWait {
			x.step.LongWait, x.step.LongWaitNext = hi-lo, g.Next
		}
		if g.End-from <= ShortGap {
			x.step.Short, x.step.Shorts = x.step.Short+hi-lo, x.step.Shorts+1
		}
		x.behindWork.Total += hi - lo
		seen := x.seen[:0]
		x.in.Contexts.Walk(call, func(name int32) bool {
			if n := x.fold(name); !slices.Contains(seen, n) {
				seen = append(seen, n)
				*lists.At(&x.behindWork.around, n) += hi - lo
			}
			return len(seen) < deepest
		})
		x.seen = seen
	})
}

// readBackIn is the part of a stretch caused by a read-back of the thread: the time in the call and its wait, and after
// it at most as long again, which is the most that the thread could have done meanwhile; memory that it allocates then
// is another cause. Empty if there is none.
func (x *stepLook) readBackIn(thread int32, lo, hi int64) (from, to int64) {
	marks := &x.marks[thread]
	from, to = hi, hi
	for at := marks.at; at < len(marks.list) && marks.list[at].start < to; at++ {
		switch m := &marks.list[at]; {
		case m.kind == markReadBack && m.end > lo && from == hi:
			from, to = max(lo, m.start), min(hi, m.end+m.end-m.start)
		case m.kind == markAllocation && from < hi:
			return from, max(from, m.start)
		}
	}
	return from, to
}

// inRanges attributes time to the ranges that were open, the innermost last. Names that differ in their numbers are
// one. Ranges that mark the steps do not count as a place inside them.
func (x *stepLook) inRanges(part *latePart, open []int32, ns int64) {
	open = slices.DeleteFunc(append(x.open[:0], open...), func(name int32) bool { return x.markers[name] })
	if x.open = open; len(open) == 0 {
		return
	}
	*lists.At(&part.inside, x.fold(open[len(open)-1])) += ns
	for i, name := range open {
		n := x.fold(name)
		if !slices.ContainsFunc(open[:i], func(other int32) bool { return x.folds[other] == n }) {
			*lists.At(&part.around, n) += ns
		}
	}
}

// fold is the number of a range's folded name.
func (x *stepLook) fold(name int32) int32 {
	if x.folds[name] == trace.None {
		x.folds[name] = x.folded.Of(string(kernelname.AppendRangeCanonical(nil, x.in.Trace.Ranges.Names[name].Text)))
	}
	return x.folds[name]
}

// finish adds up the work, and names what the waits were for.
func (x *stepLook) finish() {
	x.work()
	x.step.ReadBacks = int64(len(x.counted))
	all, left := newLatePart(), newLatePart()
	for i := range x.parts {
		part := &x.parts[i]
		if i != lateAllocates || !Told(&x.step, part.host[timeline.HostAPI]) {
			all.add(part)
			if i != lateRead || !x.step.ReadBacksTold() {
				left.add(part)
			}
		}
	}
	ranges := x.folded.Keys
	x.step.Where, x.step.Everywhere, x.step.HostLeft = left.named(ranges), all.named(ranges), left.host
	x.step.AfterRead, x.step.Allocating = x.parts[lateRead].named(ranges), x.parts[lateAllocates].named(ranges)
	x.step.Behind, x.step.Meanwhile = x.behindWork.named(ranges), x.meanwhile()
	delete(x.reads, "")
	names, _ := leading(x.reads, x.step.ReadBack)
	x.step.ReadBackAt = lists.Nth(names, 0, "")
	delete(x.step.AfterRead.Ranges, x.step.ReadBackAt)
	delete(x.step.AfterRead.Within, x.step.ReadBackAt)
	*x = stepLook{step: x.step} // the rest is not needed any more
}

// named is the place with the names of the ranges.
func (x *latePart) named(names []string) IdlePlace {
	for n, ns := range x.around {
		x.Within[names[n]] = ns
	}
	for n, ns := range x.inside {
		if ns > 0 {
			x.Ranges[names[n]] = ns
		}
	}
	return x.IdlePlace
}

func (x *latePart) add(o *latePart) {
	x.Total += o.Total
	x.Gaps, x.Longest, x.Early = x.Gaps+o.Gaps, max(x.Longest, o.Longest), x.Early+o.Early
	for c, ns := range o.host {
		x.host[c] += ns
	}
	for n, ns := range o.inside {
		*lists.At(&x.inside, n) += ns
	}
	for n, ns := range o.around {
		*lists.At(&x.around, n) += ns
	}
	lists.AddTo(x.Calls, o.Calls)
	lists.AddTo(x.Syncs, o.Syncs)
	lists.AddTo(x.Threads, o.Threads)
	for k, s := range o.Stacks {
		x.Stacks[k] = StackTime{s.What, x.Stacks[k].Time + s.Time}
	}
}

// Another thread's range is named if it holds this share of the late time and is one of several: a range that is open
// for most of the judged time does not explain a late step.
const (
	meanwhileShare = 0.60
	meanwhileLong  = 0.50
)

// meanwhile is the narrowest range of a thread without CUDA calls that holds most of the time in which the launching
// thread was late.
func (x *stepLook) meanwhile() (best Meanwhile) {
	total := x.late.Len()
	if total == 0 || report.SeverityOf(x.step.Share(total)) == report.Low {
		return best
	}
	type key struct{ thread, name int32 }
	r, times := &x.in.Trace.Ranges, map[key]int64{}
	from, to := x.step.Spans[0].Start, x.step.Spans[len(x.step.Spans)-1].End
	for i := range r.Len() {
		th := r.Thread(i)
		if th == trace.None || x.in.Threads.Calls(th) {
			continue
		}
		start, end := max(r.Start(i), from), min(r.End(i), to)
		if start >= end || float64(end-start) > meanwhileLong*float64(to-from) {
			continue
		}
		times[key{th, x.fold(r.Name(i))}] += x.late.Within(start, end)
	}
	for k, ns := range times {
		share, name := min(1, float64(ns)/float64(total)), x.folded.Keys[k.name]
		if share >= meanwhileShare && (best.Range == "" || share < best.Share || share == best.Share &&
			(name < best.Range || name == best.Range && k.thread < best.Thread)) {
			best = Meanwhile{Thread: k.thread, Range: name, Share: share}
		}
	}
	return best
}

// work attributes moments with kernels to one of them, as unit times do.
func (x *stepLook) work() {
	t, d := x.in.Trace, x.step.Device
	x.step.Kernels = make([]int64, len(t.Kernels.Names)+1)
	given, spans := int64(math.MinInt64), interval.Cursor{Left: x.step.Spans}
	for i := range d.Len() {
		if d.Class(i) != timeline.Compute {
			continue
		}
		from, to := max(d.Start(i), given), d.End(i)
		if from >= to {
			continue
		}
		given = to
		if !spans.Advance(from, to) {
			continue
		}
		name, graph := len(x.step.Kernels)-1, true
		if d.Kind(i) == timeline.KernelWork {
			name, graph = int(t.Kernels.Name(d.Row(i))), t.Kernels.InGraph(d.Row(i))
		}
		spans.Each(from, to, func(_ int, lo, hi int64) {
			x.step.Kernels[name] += hi - lo
			x.step.Compute += hi - lo
			if graph {
				x.step.Graphed += hi - lo
			}
		})
	}
	x.step.Comm = interval.Intersect(d.CommExposed, x.step.Spans).Len()
	x.step.Copy = max(0, x.step.Of-x.step.Compute-x.step.Comm-x.step.Idle)
}
