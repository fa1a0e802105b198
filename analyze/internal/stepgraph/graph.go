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
	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Graph is what waits for what. A piece of GPU work is known by its number: those of the first device come first, in
// the order of its timeline.
type Graph struct {
	Timeline *attrib.Timeline
	Found    Found

	trace   *trace.Trace
	api     *trace.API
	base    []int32 // by device: the number of its first piece
	before  []int32 // by piece: what it follows on its stream, or trace.None
	after   []int32 // by piece: what else it waited for, through an event or as it seems, or trace.None
	held    []int32 // by call: the piece that kept it, or trace.None
	waited  []int32 // by call: the last call on its thread before it that was kept, or trace.None
	group   []int32 // by piece: its collective, or trace.None; nil where there is none
	groups  []collective
	typical latencies
}

// Found counts what is known of waits.
type Found struct {
	// Waits of streams for events: by a record that names the event, by the order of the calls alone, of events that
	// nothing of the capture recorded, and such that the times contradict.
	Recorded, ByOrder, Unrecorded, Contradicted int64
	// Inferred is work that started right after other work of its device had ended, which nothing else explains.
	Inferred int64
	// Collectives whose kernels on several devices were found, and kernels of communication that are of none.
	Collectives, Alone int64
	// Held are the calls that waited for the GPU.
	Held int64
}

// inferred marks a number in after: nobody said so.
const inferred = 1 << 30

// maxWork is how many pieces of GPU work a graph can number.
const maxWork = inferred

// collective is one collective across devices: nothing of it ends before the last has joined.
type collective struct {
	last    int32 // the piece that joined last
	members int32
}

// latencies are typical times, in ns, by the kind of what starts.
type latencies struct {
	launch [attrib.SetWork + 1][2]int64 // from the end of the launching call; from its start, where it still runs
	stream [attrib.SetWork + 1]int64    // from the end of the work before on the stream
	event  int64
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

// Work is a piece of work by its number.
func (g *Graph) Work(piece int32) attrib.Work {
	d, i := g.Place(piece)
	return g.Timeline.Devices[d].Work(i)
}

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

// bind is what work waited for last: of all that it depends on, what lets it start latest.
func (g *Graph) bind(w *attrib.Work, piece int32) hold {
	best := hold{piece: trace.None, call: trace.None, at: minTime, ready: minTime}
	if w.Call != trace.None {
		if at, still := g.launched(w); at <= w.Start {
			best = hold{ByLaunch, trace.None, w.Call, at, min(w.Start, at+g.typical.launch[w.Kind][still])}
		}
	}
	if p := g.before[piece]; p != trace.None {
		at := g.end(p)
		if ready := min(w.Start, at+g.typical.stream[w.Kind]); best.isBefore(ready, at) {
			best = hold{ByStream, p, trace.None, at, ready}
		}
	}
	if p := g.after[piece]; p != trace.None {
		by := ByEvent
		if p&inferred != 0 {
			by = BySeeming
		}
		p &^= inferred
		at := g.end(p)
		if ready := min(w.Start, at+g.typical.event); best.isBefore(ready, at) {
			best = hold{by, p, trace.None, at, ready}
		}
	}
	return best
}

// isBefore reports whether something else lets the work start later.
func (h *hold) isBefore(ready, at int64) bool {
	return ready > h.ready || ready == h.ready && at > h.at
}

// launched is the moment from which the launch latency of work counts: the end of the call, or, where the work starts
// while the call still runs, 1, its start.
func (g *Graph) launched(w *attrib.Work) (at int64, still int) {
	if end := g.api.End(int(w.Call)); end <= w.Start {
		return end, 0
	}
	return g.api.Start(int(w.Call)), 1
}

const (
	minTime = -1 << 63
	maxTime = 1<<63 - 1
)
