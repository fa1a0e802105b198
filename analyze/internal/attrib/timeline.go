package attrib

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/trace"
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

// Kind of a piece of GPU work: the table it is a row of.
type Kind uint8

// Kinds of GPU work.
const (
	KernelWork Kind = iota
	GraphWork
	CopyWork
	SetWork
)

// Work is one piece of GPU work on a device's timeline.
type Work struct {
	Start, End int64
	Corr       int64
	Row        int32 // row in the table of its kind
	Call       int32 // the API call that launched it, or trace.None
	Kind       Kind
	Class      Class
}

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

// Gap is a stretch of a device's window without work, split by cause.
type Gap struct {
	interval.Interval
	Prev, Next int32 // indexes into Device.Work, or trace.None
	Cause      [Causes]int64
}

// Main is the cause with the largest part, the earlier one where two are equal.
func (g *Gap) Main() int {
	best := 0
	for c := range g.Cause {
		if g.Cause[c] > g.Cause[best] {
			best = c
		}
	}
	return best
}

// Device is the timeline of one GPU within the window.
type Device struct {
	ID   int32
	Work []Work // that overlaps the window, by start, then correlation id

	Busy interval.Set // all work, clipped to the window
	// The exclusive classes: disjoint, and together with the gaps they are the window.
	Compute, ExposedComm, ExposedCopy interval.Set
	// Before exclusion: communication and copies also where something hides them, and kernel rows alone (no graphs).
	CommBusy, CopyBusy, KernelBusy interval.Set
	Gaps                           []Gap

	after Work // the first piece that starts after a narrowed window; of no length where there is none
}

// Idle is the device's idle time in nanoseconds.
func (d *Device) Idle() int64 {
	var sum int64
	for i := range d.Gaps {
		sum += d.Gaps[i].Len()
	}
	return sum
}

// Timeline is the GPU work of every device in one window common to all.
type Timeline struct {
	Window  interval.Interval
	Devices []Device // by id
}

// WorkSpan is the time from the first start to the last end of GPU work on any device; ok is false where there is none.
func WorkSpan(t *trace.Trace) (span interval.Interval, ok bool) {
	for _, w := range []*trace.Work{&t.Kernels.Work, &t.Copies.Work, &t.Sets.Work, &t.Graphs.Work} {
		for i := range w.Len() {
			if !ok {
				span, ok = interval.Interval{Start: w.Start(i), End: w.End(i)}, true
			}
			span.Start, span.End = min(span.Start, w.Start(i)), max(span.End, w.End(i))
		}
	}
	return span, ok
}

// NewTimeline lays out the work of each device within the window. isComm says, by kernel name index, which kernels are
// communication.
func NewTimeline(t *trace.Trace, calls *Calls, window interval.Interval, isComm []bool) *Timeline {
	byDevice := map[int32][]Work{}
	after := map[int32]Work{}
	add := func(w *trace.Work, calls []int32, kind Kind, class func(i int) Class) {
		for i := range w.Len() {
			d := w.Device(i)
			if w.End(i) < window.Start || w.Start(i) > window.End {
				if _, ok := byDevice[d]; !ok {
					byDevice[d] = nil // a device without work in the window is idle, not absent
				}
				if w.Start(i) > window.End && w.End(i) > w.Start(i) {
					next := Work{Start: w.Start(i), End: w.End(i), Corr: w.Corr(i), Row: int32(i), Call: calls[i], Kind: kind, Class: class(i)}
					if first, ok := after[d]; !ok || next.before(&first) {
						after[d] = next
					}
				}
				continue
			}
			byDevice[d] = append(byDevice[d], Work{Start: w.Start(i), End: w.End(i), Corr: w.Corr(i), Row: int32(i), Call: calls[i], Kind: kind, Class: class(i)})
		}
	}
	always := func(c Class) func(int) Class { return func(int) Class { return c } }
	add(&t.Kernels.Work, calls.Kernel, KernelWork, func(i int) Class {
		if isComm[t.Kernels.Name(i)] {
			return Comm
		}
		return Compute
	})
	add(&t.Graphs.Work, calls.Graph, GraphWork, always(Compute))
	add(&t.Copies.Work, calls.Copy, CopyWork, always(Copy))
	add(&t.Sets.Work, calls.Set, SetWork, always(Copy))

	tl := &Timeline{Window: window, Devices: make([]Device, 0, len(byDevice))}
	for id := range byDevice {
		tl.Devices = append(tl.Devices, Device{ID: id, Work: byDevice[id], after: after[id]})
	}
	sort.Slice(tl.Devices, func(i, j int) bool { return tl.Devices[i].ID < tl.Devices[j].ID })
	blocking := blockingByThread(t)
	for i := range tl.Devices {
		tl.Devices[i].build(window, &t.API, blocking)
	}
	return tl
}

// blockingByThread is, for each thread, the union of its blocking API calls.
func blockingByThread(t *trace.Trace) []interval.Set {
	sets := make([]interval.Set, len(t.Threads))
	for i := range t.API.Len() {
		if th := t.API.Thread(i); th != trace.None && t.API.Names[t.API.Name(i)].Blocking() {
			sets[th].Add(t.API.Start(i), t.API.End(i))
		}
	}
	return sets
}

// before orders the work of a device: by start, then the lowest correlation id.
func (w *Work) before(x *Work) bool {
	switch {
	case w.Start != x.Start:
		return w.Start < x.Start
	case w.Corr != x.Corr:
		return w.Corr < x.Corr
	case w.Kind != x.Kind:
		return w.Kind < x.Kind
	}
	return w.Row < x.Row
}

func (d *Device) build(window interval.Interval, api *trace.API, blocking []interval.Set) {
	sort.Slice(d.Work, func(i, j int) bool { return d.Work[i].before(&d.Work[j]) })
	var compute, comm, copies, busy, kernels interval.Set
	for i := range d.Work {
		w := &d.Work[i]
		start, end := max(w.Start, window.Start), min(w.End, window.End)
		switch w.Class {
		case Compute:
			compute.Add(start, end)
		case Comm:
			comm.Add(start, end)
		default:
			copies.Add(start, end)
		}
		busy.Add(start, end)
		if w.Kind == KernelWork {
			kernels.Add(start, end)
		}
	}
	d.Compute, d.CommBusy, d.CopyBusy, d.KernelBusy, d.Busy = compute, comm, copies, kernels, busy
	d.ExposedComm = interval.Subtract(comm, compute)
	d.ExposedCopy = interval.Subtract(copies, interval.Union(compute, comm))
	d.findGaps(window, api, blocking)
}

// findGaps walks the work and the busy set side by side: a gap's next work is the first piece that starts at its end,
// its previous work the piece that ended last before it. A gap that the end of a narrowed window cuts has no next work in
// the window; what came after it in the capture still says what the device waited for.
func (d *Device) findGaps(window interval.Interval, api *trace.API, blocking []interval.Set) {
	prev, at := trace.None, 0
	for _, hole := range d.Busy.Gaps(window.Start, window.End) {
		for ; at < len(d.Work) && d.Work[at].Start < hole.End; at++ {
			end := d.Work[at].End
			if end <= hole.Start && (prev == trace.None || end >= d.Work[prev].End) {
				prev = int32(at)
			}
		}
		g := Gap{Interval: hole, Prev: prev, Next: trace.None}
		call := trace.None
		// A piece of work without length can start in the hole or at its end; it ends no gap and is no neighbour of one.
		for n := at; n < len(d.Work) && d.Work[n].Start == hole.End; n++ {
			if d.Work[n].End > d.Work[n].Start {
				g.Next, call = int32(n), d.Work[n].Call
				break
			}
		}
		if g.Next == trace.None && hole.End == window.End && d.after.End > d.after.Start {
			call = d.after.Call
		}
		g.split(call, api, blocking)
		d.Gaps = append(d.Gaps, g)
	}
}

// split divides the gap by the call [a0, a1] that launched the next work: up to a0 it is sync where a blocking call ran
// on the launching thread, else host; from a0 to a1 it is launch; the rest is dependency.
func (g *Gap) split(call int32, api *trace.API, blocking []interval.Set) {
	if call == trace.None {
		g.Cause[CauseUnknown] = g.Len()
		return
	}
	a0 := min(max(api.Start(int(call)), g.Start), g.End)
	a1 := min(max(api.End(int(call)), a0), g.End)
	if th := api.Thread(int(call)); th != trace.None {
		g.Cause[CauseSync] = blocking[th].Within(g.Start, a0)
	}
	g.Cause[CauseHost] = a0 - g.Start - g.Cause[CauseSync]
	g.Cause[CauseLaunch] = a1 - a0
	g.Cause[CauseDependency] = g.End - a1
}
