package timeline

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/trace/span"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Class of GPU time. Each nanosecond of a device's window belongs to exactly one, in this order.
type Class uint8

// Classes of GPU time.
const (
	Compute Class = iota // kernels that are not communication, and whole CUDA graphs
	Comm                 // communication kernels
	Copy                 // memcpy and memset
	Idle
)

// Causes of idle time, in the order in which they occur within a gap.
const (
	CauseSync       = iota // a blocking call ran on the thread that launched the next work
	CauseHost              // that thread did something else
	CauseLaunch            // the launching call itself
	CauseDependency        // launched, and waiting for an event, a stream or the device
	CauseUnknown           // no API row for the next work, or nothing came after
	Causes
)

// CauseNames are the labels of the causes.
var CauseNames = [Causes]string{"sync", "host", "launch", "dependency", "unknown"}

// Times is GPU time by class, and the idle part by cause, in nanoseconds. The classes are exclusive: if several apply,
// time is compute before communication, and communication before copies.
type Times struct {
	Compute, ExposedComm, ExposedCopy, Idle int64
	Cause                                   [Causes]int64
	Host                                    [HostCauses]int64 // of cause host; only if a sweep asks for it
}

// Busy is the time in which anything ran.
func (t *Times) Busy() int64 { return t.Compute + t.ExposedComm + t.ExposedCopy }

// Minus is the difference of two sums.
func (t *Times) Minus(x *Times) Times {
	d := Times{Compute: t.Compute - x.Compute, ExposedComm: t.ExposedComm - x.ExposedComm,
		ExposedCopy: t.ExposedCopy - x.ExposedCopy, Idle: t.Idle - x.Idle}
	for c := range d.Cause {
		d.Cause[c] = t.Cause[c] - x.Cause[c]
	}
	for c := range d.Host {
		d.Host[c] = t.Host[c] - x.Host[c]
	}
	return d
}

// Gap is a stretch of a device's window without work, split by cause.
type Gap struct {
	interval.Interval
	Prev, Next int32 // numbers of the device's work, or trace.None
	Cause      [Causes]int64
	Host       [HostCauses]int64 // of cause host; only if a sweep asks for it
}

// Main is the cause with the largest part, the earlier one if two are equal.
func (g *Gap) Main() int {
	return slices.Index(g.Cause[:], slices.Max(g.Cause[:]))
}

// clip is the part of the gap's causes before a moment within it: causes follow each other in their order.
func (g *Gap) clip(end int64) (ns [Causes]int64) {
	at := g.Start
	for c, n := range g.Cause {
		ns[c] = max(0, min(at+n, end)-at)
		at += n
	}
	return ns
}

// Within is the part of the gap's causes between two moments, ns.
func (g *Gap) Within(from, to int64) [Causes]int64 {
	before, ns := g.clip(max(from, g.Start)), g.clip(min(max(from, to), g.End))
	for c := range ns {
		ns[c] -= before[c]
	}
	return ns
}

// AddWithin adds Within to sums.
func (g *Gap) AddWithin(from, to int64, sums *[Causes]int64) {
	if from <= g.Start && to >= g.End { // as most gaps do
		for c, ns := range g.Cause {
			sums[c] += ns
		}
		return
	}
	for c, ns := range g.Within(from, to) {
		sums[c] += ns
	}
}

// clipHost is the part of the gap's causes of host time within the first ns of it, in their order.
func (g *Gap) clipHost(ns int64) (part [HostCauses]int64) {
	for c, n := range g.Host {
		part[c] = min(n, ns)
		ns -= part[c]
	}
	return part
}

// Device is the timeline of one GPU within the window. It keeps only the order of its work and the times of it, and
// computes everything else by going through it.
type Device struct {
	ID int32

	Times        // of the whole window
	Comm   int64 // time in which communication ran, including time hidden by compute
	Copies int64 // time in which copies and memsets ran, including time hidden by kernels

	Kernels    int64             // time in which kernels ran, whole graphs left out
	KernelSpan interval.Interval // from the first to the last of them; empty if there is none

	GapCount int

	// CommExposed is the time in which communication ran and no compute did.
	CommExposed interval.Set

	order    order      // the work that overlaps the window, by start, then correlation id
	span     trace.Span // of the order: asked for more often than anything else
	ends     [][Idle]int64
	in       *sources
	window   interval.Interval
	blocking []interval.Set // by thread: blocking calls
	after    Work           // the first piece that starts after a narrowed window; without length if there is none
}

// Timeline is the GPU work of every device in one window common to all.
type Timeline struct {
	Window  interval.Interval
	Devices []*Device // by id
}

// Pieces is how many pieces of work all devices have.
func (tl *Timeline) Pieces() int { return lists.Sum(tl.Devices, (*Device).Len) }

// WorkSpan is the time from the first start to the last end of GPU work on any device; ok is false if there is none.
func WorkSpan(t *trace.Trace) (span interval.Interval, ok bool) {
	for _, w := range []*trace.Work{&t.Kernels.Work, &t.Copies.Work, &t.Sets.Work, &t.Graphs.Work} {
		n := w.Len()
		if n == 0 {
			continue
		}
		if !ok {
			span, ok = interval.Interval{Start: w.Start(0), End: w.End(0)}, true
		}
		span.Start = min(span.Start, w.Start(0)) // events are sorted by start
		for i := range n {
			span.End = max(span.End, w.End(i))
		}
	}
	return span, ok
}

// New lays out the work of each device within the window. isComm says, by kernel name index, which kernels are
// communication.
func New(t *trace.Trace, calls *Calls, window interval.Interval, isComm []bool) *Timeline {
	in := newSources(t, calls, isComm)
	tl := &Timeline{Window: window, Devices: in.layOut(window)}
	blocking := blockingByThread(t)
	parallel.Each(len(tl.Devices), func(i int) {
		d := tl.Devices[i]
		d.blocking = blocking
		d.order.settle(in)
		d.span = span.Of(t.Memory(), len(d.order), func(i int) (start, end int64) { return in.start(d.order[i]), in.end(d.order[i]) })
		d.measure()
		d.ends = endsOf(d)
	})
	return tl
}

// blockingByThread is, for each thread, the union of its blocking API calls.
func blockingByThread(t *trace.Trace) []interval.Set {
	sets := make([]interval.Set, len(t.Threads))
	blocks := lists.Map(t.API.Names, func(n trace.APIName) bool { return n.Blocking() })
	for i := range t.API.Len() {
		if !blocks[t.API.Name(i)] {
			continue
		}
		if th := t.API.Thread(i); th != trace.None {
			sets[th].Add(t.API.Start(i), t.API.End(i))
		}
	}
	return sets
}
