// Package stepgraph is the dependency graph of a capture: what each piece of GPU work had to wait for before it could
// start, and what kept the host's calls. Edges are the order of calls on a thread, from a launch to what it launched,
// the order of a stream, from an event's record to the stream that waits for it, from work to the call that waits for
// its end, and between the kernels of one collective on several devices.
//
// Of it are made: why work that was launched did not start ([Graph.Reason]), the chain of work and calls that a moment
// waited for ([Graph.Walk]: the critical path), and what steps would take if something were faster ([Graph.Replay]).
//
// An edge that the times contradict, work that starts before what it should wait for has ended, is left out and
// counted. The room knows no names of kernels and no sections.
package stepgraph

import (
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Graph is what waits for what. A piece of GPU work is known by its number: those of the first device come first, in
// the order of its timeline.
type Graph struct {
	Timeline *timeline.Timeline
	Found    Found

	trace   *trace.Trace
	api     *trace.API
	base    []int32 // by device: the number of its first piece
	before  []int32 // by piece: what it follows on its stream, or trace.None
	after   sparse  // by piece: what else it waited for, through an event or as it seems
	kept    []keptCall
	waited  []int32 // by piece: what was kept last before its call, on that thread: an index of kept, or trace.None
	group   sparse  // by piece: its collective
	groups  []collective
	typical latencies
}

// keptCall is a call that was kept: by a piece of work, for whose end it waited, or, before it began, by another
// thread, for which its own waited. They are in the order of the calls; of one call the other thread comes first.
type keptCall struct {
	call  int32
	piece int32 // that it waited for; of another thread what kept that last, an index of kept, or trace.None
	// from is the last call of the other thread, trace.None where a piece of work kept the call, or woken, where the
	// thread slept, before the call, until a piece of work had ended.
	from int32
	// before is what was kept before on the thread, an index of kept, or trace.None.
	before int32
	own    int64 // ns that the thread itself worked between its call before and the end of its wait for another thread
}

// woken stands for no call, see keptCall.
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

// Found counts what is known of waits.
type Found struct {
	// Waits of streams for events: by a record that names the event, by the order of the calls alone, of events that
	// nothing of the capture recorded, and such that the times contradict.
	Recorded, ByOrder, Unrecorded, Contradicted int64
	// Inferred is work that started right after other work of its device had ended, which nothing else explains.
	Inferred int64
	// Collectives whose kernels on several devices were found.
	Collectives int64
	// Held are the calls that waited for the GPU.
	Held int64
	// Handed are the waits of threads for other threads: seen in calls of the operating system or off the CPU, and
	// inferred where the capture records neither of the thread.
	Handed, HandedInferred int64
	// ByWork are the waits of threads for the end of GPU work without a CUDA call, ByProcess those for another process:
	// guessed, as they end right after that far more often than by chance.
	ByWork, ByProcess int64
	// Locked are those of all these in which the thread waited for Python's lock; unknown unless the capture names such
	// waits.
	Locked int64
	Locks  bool
	// Outside is the time, in ns, of waits in the operating system and off the CPU between two calls that no thread with
	// CUDA calls explains.
	Outside int64
}

// Threads says in words what is known of the waits of threads; empty where none waited.
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
			text += "Whether one was for Python's lock is not known (--trace=python-gil records it). "
		}
	}
	if f.Outside > 0 {
		text += "Threads slept for " + strconv.FormatFloat(float64(f.Outside)/1e6, 'f', 1, 64) + " ms more, in all, for what " +
			"is not in the graph: time of the host, which only --host-free takes away."
	}
	return strings.TrimSpace(text)
}

// inferred marks a number in after: nobody said so.
const inferred = 1 << 30

// maxWork is how many pieces of GPU work a graph can number.
const maxWork = inferred

// collective is one collective across devices: nothing of it ends before the last has joined.
type collective struct {
	last int32 // the piece that joined last
}

// latencies are typical times, in ns, by the kind of what starts.
type latencies struct {
	launch [timeline.SetWork + 1][2]int64 // from the end of the launching call; from its start, where it still runs
	quick  [timeline.SetWork + 1]int64    // of the quickest from the start of a call that still runs
	stream [timeline.SetWork + 1]int64    // from the end of the work before on the stream
	event  int64
	gap    int64 // between two launches of a thread
}

// Number is the number of the i-th piece of a device's work.
func (g *Graph) Number(device, i int) int32 { return g.base[device] + int32(i) }

// Place is the device, by index of the timeline, and the place in its order of a piece of work.
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

// Trace is the capture that the graph is of.
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

// Hold is how a piece of work was kept from starting earlier.
type Hold uint8

// Holds.
const (
	ByNothing Hold = iota // that is known
	ByLaunch              // it was launched no earlier
	ByStream              // the work before it on its stream
	ByEvent               // an event that its stream waited for
	BySeeming             // other work of the device that had just ended
)

// hold is what a piece of work waited for last.
type hold struct {
	by    Hold
	piece int32 // of a stream, an event, or as it seems
	call  int32 // of a launch
	at    int64 // when that was over: the end of the piece or of the call, or the start of one that still ran
	ready int64 // when the work could have started, by typical latencies, at most its start
}

// begun is what of a piece of work says what it waited for.
type begun struct {
	start int64
	call  int32 // that launched it, or trace.None
	kind  timeline.Kind
}

// begin is the i-th piece of a device's work.
func begin(d *timeline.Device, i int) begun { return begun{d.Start(i), d.Call(i), d.Kind(i)} }

// bind is what work waited for last: of all that it depends on, what lets it start latest.
func (g *Graph) bind(piece int32) (w begun, best hold) {
	device, i := g.Place(piece)
	d := &g.Timeline.Devices[device]
	w = begin(d, i)
	best = hold{piece: trace.None, call: trace.None, at: minTime, ready: minTime}
	if w.call != trace.None {
		if at, still := g.launched(w.call, w.start); at <= w.start {
			best.by, best.call, best.at = ByLaunch, w.call, at
			best.ready = min(w.start, at+g.typical.launch[w.kind][still])
		}
	}
	if p := g.before[piece]; p != trace.None {
		at := d.End(int(p - g.base[device]))
		if ready := min(w.start, at+g.typical.stream[w.kind]); best.isBefore(ready, at) {
			best.by, best.piece, best.call, best.at, best.ready = ByStream, p, trace.None, at, ready
		}
	}
	if p := g.after.of(piece); p != trace.None {
		by := ByEvent
		if p&inferred != 0 {
			by = BySeeming
		}
		p &^= inferred
		at := g.end(p)
		if ready := min(w.start, at+g.typical.event); best.isBefore(ready, at) {
			best.by, best.piece, best.call, best.at, best.ready = by, p, trace.None, at, ready
		}
	}
	return w, best
}

// isBefore reports whether something else lets the work start later.
func (h *hold) isBefore(ready, at int64) bool {
	return ready > h.ready || ready == h.ready && at > h.at
}

// launched is the moment from which the launch latency of work counts: the end of the call, or, where the work starts
// while the call still runs, 1, its start.
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
