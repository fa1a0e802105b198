// Package stepgraph is the dependency graph of a capture: what each piece of GPU work had to wait for before it could
// start, and what held the host's calls. Its edges are: the order of calls on a thread; from a launch to the work that
// it launched; the order of a stream; from the record of an event to the stream that waits for it; from work to the
// call that waits for its end; and between the kernels of one collective on several devices.
//
// It answers why launched work did not start ([Graph.Reason]), which chain of work and calls a moment waited for
// ([Graph.Walk]: the critical path), and how long steps would take if something were faster ([Graph.Replay]).
//
// An edge that the times contradict, because work starts before its predecessor has ended, is left out and counted. The
// package knows no names of kernels and no sections.
package stepgraph

import (
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Graph is the graph of dependencies. Pieces of GPU work are numbered: those of the first device come first, in the
// order of its timeline.
type Graph struct {
	Timeline *timeline.Timeline
	Found    Found

	trace   *trace.Trace
	api     *trace.API
	base    []int32 // by device: the number of its first piece
	before  []int32 // by piece: its predecessor on its stream, or trace.None
	after   sparse  // by piece: another wait, for an event or as it seems
	kept    []keptCall
	waited  spill.Indexes // by call: the last held call before it on its thread, an index of kept, or trace.None
	group   sparse        // by piece: its collective across devices
	lasts   []int32       // by collective: the piece that joined last, before which nothing of it ends
	typical latencies
}

// keptCall is a call that was held: by a piece of work whose end it waited for, or, before it began, by another thread
// that its own thread waited for. They are in the order of the calls; for one call the other thread comes first.
type keptCall struct {
	call  int32
	piece int32 // that it waited for; for another thread that thread's last held call, an index of kept, or trace.None
	// from is the last call of the other thread; trace.None if a piece of work held the call; or woken if the thread
	// slept, before the call, until a piece of work had ended.
	from int32
	// before is the previous held call of the thread, an index of kept, or trace.None.
	before int32
	own    int64 // ns that the thread itself worked between its call before and the end of its wait for another thread
}

// woken is not a call, see keptCall.
const woken = -2

// sparse is a number for a few of many pieces of work.
type sparse struct {
	has []uint64 // by piece, a bit each
	at  map[int32]int32
}

func newSparse(pieces int) sparse {
	return sparse{has: make([]uint64, (pieces+63)/64), at: map[int32]int32{}}
}

// of is the number of a piece, or trace.None.
func (s *sparse) of(piece int32) int32 {
	if s.has[piece>>6]>>(piece&63)&1 == 0 {
		return trace.None
	}
	return s.at[piece]
}

func (s *sparse) set(piece, number int32) {
	s.has[piece>>6] |= 1 << (piece & 63)
	s.at[piece] = number
}

// Found counts the waits that are known.
type Found struct {
	// Waits of streams for events: by a record that names the event, by the order of the calls alone, for events that
	// nothing in the capture recorded, and waits that the times contradict.
	Recorded, ByOrder, Unrecorded, Contradicted int64
	// Inferred counts work that started right after other work of its device had ended, without any other explanation.
	Inferred int64
	// Collectives whose kernels on several devices were found.
	Collectives int64
	// Held counts the calls that waited for the GPU.
	Held int64
	// Handed counts the waits of threads for other threads: seen in calls of the operating system or off the CPU, and
	// inferred if the capture records neither for the thread.
	Handed, HandedInferred int64
	// ByWork counts the waits of threads for the end of GPU work without a CUDA call, ByProcess those for another
	// process. Both are guesses: the waits end right after it far more often than by chance.
	ByWork, ByProcess int64
	// Locked counts those of all these in which the thread waited for Python's lock; unknown unless the capture names
	// such waits.
	Locked int64
	Locks  bool
	// Outside is the time, in ns, of waits in the operating system and off the CPU between two calls that no other
	// thread with CUDA calls explains.
	Outside int64
}

// Threads describes the known waits of threads; empty if none waited.
func (f *Found) Threads() string {
	var parts []string
	for _, x := range []struct {
		n    int64
		text string
	}{{f.Handed, "for another thread, as calls of the operating system, the scheduler or the start of the thread show"},
		{f.HandedInferred, "for another thread, inferred from the order of CUDA calls alone (--trace=osrt records it)"},
		{f.ByWork, "for the end of GPU work, inferred from when they ended"},
		{f.ByProcess, "for another process, inferred from when they ended"}} {
		if x.n > 0 {
			parts = append(parts, strconv.FormatInt(x.n, 10)+" "+x.text)
		}
	}
	text := ""
	if len(parts) > 0 {
		text = "Waits of threads between CUDA calls: " + strings.Join(parts, "; ") + ". "
		if f.Locks {
			text += strconv.FormatInt(f.Locked, 10) + " of them were for Python's lock. "
		} else {
			text += "It is unknown whether any was for Python's lock (--trace=python-gil records it). "
		}
	}
	if f.Outside > 0 {
		text += "Threads slept for " + strconv.FormatFloat(float64(f.Outside)/1e6, 'f', 1, 64) + " ms more in all, for " +
			"causes outside the graph: time of the host, which only --host-free removes."
	}
	return strings.TrimSpace(text)
}

// inferred marks a number in after that no record states.
const inferred = 1 << 30

// maxWork is how many pieces of GPU work a graph can number.
const maxWork = inferred

// latencies are typical times, in ns, by kind of the work that starts.
type latencies struct {
	launch [timeline.SetWork + 1][2]int64 // from the end of the launching call; from its start, if the call still runs
	quick  [timeline.SetWork + 1]int64    // of the quickest from the start of a call that still runs
	stream [timeline.SetWork + 1]int64    // from the end of the work before on the stream
	event  int64
	gap    int64 // between two launches of a thread
}

// Number is the number of the i-th piece of a device's work.
func (g *Graph) Number(device, i int) int32 { return g.base[device] + int32(i) }

// Place is the device, by index of the timeline, and the index in its order of a piece of work.
func (g *Graph) Place(piece int32) (device, i int) {
	for end := len(g.base); end-device > 1; {
		if middle := (device + end) / 2; g.base[middle] <= piece {
			device = middle
		} else {
			end = middle
		}
	}
	return device, int(piece - g.base[device])
}

// Trace is the capture that the graph describes.
func (g *Graph) Trace() *trace.Trace { return g.trace }

func (g *Graph) memory() *spill.Arena { return g.trace.Memory() }

func (g *Graph) start(piece int32) int64 {
	d, i := g.Place(piece)
	return g.Timeline.Devices[d].Start(i)
}

func (g *Graph) end(piece int32) int64 {
	d, i := g.Place(piece)
	return g.Timeline.Devices[d].End(i)
}

// Hold is the reason why a piece of work did not start earlier.
type Hold uint8

// Holds.
const (
	ByNothing Hold = iota // that is known
	ByLaunch              // it was not launched earlier
	ByStream              // it waited for the work before it on its stream
	ByEvent               // its stream waited for an event
	BySeeming             // it seems to have waited for other work of the device that had just ended
)

// hold is the last wait of a piece of work.
type hold struct {
	by    Hold
	piece int32 // of a stream, an event, or as it seems
	call  int32 // of a launch
	at    int64 // the end of the wait: of the piece or of the call, or the start of a call that still ran
	ready int64 // when the work could have started, by typical latencies, at most its start
}

// begun is the part of a piece of work that its wait is found from.
type begun struct {
	start int64
	call  int32 // that launched it, or trace.None
	kind  timeline.Kind
}

// begin is the i-th piece of a device's work.
func begin(d *timeline.Device, i int) begun { return begun{d.Start(i), d.Call(i), d.Kind(i)} }

// bind finds the last wait of work: of all its dependencies, the one that lets it start latest.
func (g *Graph) bind(piece int32) (w begun, best hold) {
	device, i := g.Place(piece)
	d := g.Timeline.Devices[device]
	w = begin(d, i)
	best = hold{piece: trace.None, call: trace.None, at: minTime, ready: minTime}
	later := func(by Hold, p, call int32, at, latency int64) {
		if ready := min(w.start, at+latency); ready > best.ready || ready == best.ready && at > best.at {
			best = hold{by, p, call, at, ready}
		}
	}
	if w.call != trace.None {
		if at, still := g.launched(w.call, w.start); at <= w.start {
			later(ByLaunch, trace.None, w.call, at, g.typical.launch[w.kind][still])
		}
	}
	if p := g.before[piece]; p != trace.None {
		later(ByStream, p, trace.None, d.End(int(p-g.base[device])), g.typical.stream[w.kind])
	}
	if p, by := g.other(piece); p != trace.None {
		later(by, p, trace.None, g.end(p), g.typical.event)
	}
	return w, best
}

// other is the work that a piece waited for beside its stream, by an event or as it seems, or trace.None.
func (g *Graph) other(piece int32) (p int32, by Hold) {
	switch p = g.after.of(piece); {
	case p == trace.None:
		return p, ByNothing
	case p&inferred != 0:
		return p &^ inferred, BySeeming
	}
	return p, ByEvent
}

// launched is the moment from which the launch latency of work counts: the end of the call with 0, or its start with 1
// if the work starts while the call still runs.
func (g *Graph) launched(call int32, start int64) (at int64, still int) {
	if end := g.api.End(int(call)); end <= start {
		return end, 0
	}
	return g.api.Start(int(call)), 1
}

const (
	minTime = -1 << 63
	maxTime = 1<<63 - 1
)
