package stepgraph

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// StepKind is the kind of a stretch of a path.
type StepKind uint8

// Kinds of stretch.
const (
	Runs        StepKind = iota // a piece of work runs
	AfterWork                   // the work after it could start, and has not started yet
	AfterCall                   // the call is over, and the work that it launched has not started yet
	InCall                      // the call runs
	OnHost                      // the thread does something before the call
	Unexplained                 // the time between the wait and the piece exceeds typical latencies
	Unknown                     // no wait is known
)

// Step is a stretch of a path. A path has no holes: each step ends where the step after it in time begins.
type Step struct {
	Kind       StepKind
	Piece      int32 // that runs, that has ended, or that starts later than explained
	Call       int32 // for AfterCall, InCall and OnHost
	Start, End int64
}

// stuck is how many steps without length end a path: only a damaged capture has so many.
const stuck = 256

// walker follows a path back in time.
type walker struct {
	g         *Graph
	at, until int64 // everything from at on has been visited
	tell      func(s *Step)
	step      Step
	// gpuFirst: from work that was launched too late the path goes along the host back to the work that it would have
	// waited for if launched in time, and continues through that.
	gpuFirst bool
}

// Walk follows the waits before the start of a piece of work back in time, from its start to until, and visits each
// step. If work was launched too late, the host gets only the time that the GPU lost by it: up to the end of the work
// that it would else have waited for. So the time on the host is roughly the gain if the host took no time.
func (g *Graph) Walk(piece int32, until int64, tell func(s *Step)) {
	w := walker{g: g, at: g.start(piece), until: until, tell: tell, gpuFirst: true}
	w.back(piece)
}

// cut visits the time from a moment on, as far as it was not visited.
func (w *walker) cut(kind StepKind, piece, call int32, from int64) {
	if from = max(from, w.until); from < w.at {
		w.step = Step{kind, piece, call, from, w.at}
		w.at = from
		w.tell(&w.step)
	}
}

func (w *walker) back(piece int32) {
	for idle, last := 0, w.at; w.at > w.until; {
		if w.at == last {
			if idle++; idle > stuck {
				break
			}
		} else {
			idle, last = 0, w.at
		}
		x, h := w.g.bind(piece)
		until, ran := w.until, trace.None
		if h.by == ByLaunch && w.gpuFirst {
			if ran = w.ranBefore(piece, x.start); ran != trace.None {
				w.until = max(until, w.g.end(ran))
			}
		}
		if h.by != ByNothing && x.start-h.ready > unexplain && !(h.by == ByLaunch && w.g.api.End(int(h.call)) > x.start) {
			w.cut(Unexplained, piece, x.call, h.ready)
		}
		next, started := trace.None, false // where the path continues, and whether from the start of that
		switch h.by {
		case ByNothing:
		case ByLaunch:
			w.cut(AfterCall, piece, h.call, w.g.api.End(int(h.call)))
			w.cut(InCall, piece, h.call, w.g.api.Start(int(h.call)))
			next, started = w.host(piece, h.call, w.g.waited.At(int(h.call)))
		case ByStream, ByEvent, BySeeming:
			w.cut(AfterWork, h.piece, trace.None, h.at)
			next = h.piece
		}
		if ran != trace.None && w.at <= w.until {
			next, started = ran, false
		}
		if w.until = until; next == trace.None {
			break
		}
		if piece = next; !started { // to its start; of a collective, to that of the piece that joined it last
			piece = w.g.joinedLast(next)
			w.cut(Runs, next, trace.None, w.g.start(piece))
		}
	}
	w.cut(Unknown, piece, trace.None, w.until)
}

// ranBefore is the work that a piece would have waited for if launched in time, or trace.None: the last to end of the
// work before it on its stream and of the event that it waited for.
func (w *walker) ranBefore(piece int32, start int64) int32 {
	best, at := trace.None, int64(minTime)
	other, _ := w.g.other(piece)
	for _, p := range []int32{w.g.before[piece], other} {
		if p == trace.None {
			continue
		}
		if end := w.g.end(p); end <= start && end > at {
			best, at = p, end
		}
	}
	return best
}

// host follows the path from the start of a call back along its thread, to the thread that this one waited for, and so
// on, to the piece of work that one of them waited for: to its end or, if started, its start. It is trace.None at the
// end of the path. at is the last held call before the call, an index of kept.
func (w *walker) host(piece, call, at int32) (next int32, started bool) {
	for at != trace.None && w.at > w.until {
		k := &w.g.kept[at]
		switch k.from {
		case woken:
			w.cut(OnHost, piece, call, w.g.end(k.piece))
			return k.piece, false
		case trace.None:
			w.cut(OnHost, piece, call, w.g.api.End(int(k.call)))
			w.cut(InCall, k.piece, k.call, w.g.until(*k))
			if started = w.g.forRoom(k.call); started {
				w.cut(AfterWork, k.piece, trace.None, w.g.start(k.piece))
			}
			return k.piece, started
		}
		w.cut(OnHost, piece, call, w.g.api.End(int(k.from)))
		if call, at = k.from, k.piece; at == trace.None || w.g.kept[at].call != call {
			w.cut(InCall, piece, call, w.g.api.Start(int(call)))
		}
	}
	w.cut(OnHost, piece, call, w.until)
	return trace.None, false
}

// CallsBetween visits the calls of a thread in a stretch, backwards: each call that began in it, with the time outside
// of nested calls, and the time between calls, with trace.None. last is the call after the stretch.
func (g *Graph) CallsBetween(last int32, from, to int64, tell func(call int32, start, end int64)) {
	th := g.api.Thread(int(last))
	at, before := to, 0
	for c := int(last) - 1; c >= 0 && at > from && before < enclosing; c-- {
		start, end := g.api.Start(c), min(g.api.End(c), at)
		if start < from {
			before++
		}
		if g.api.Thread(c) != th || end <= from {
			continue
		}
		if end < at {
			tell(trace.None, end, at)
			at = end
		}
		if start = max(start, from); start < at {
			tell(int32(c), start, at)
			at = start
		}
	}
	if at > from {
		tell(trace.None, from, at)
	}
}

// enclosing is how many calls that began before a stretch are checked for one that reaches into it.
const enclosing = 64

// Reason is the reason for idle time of cause dependency: work that was launched and had not started.
type Reason uint8

// Reasons.
const (
	WaitsKernel     Reason = iota // a compute kernel, or a whole graph, before it on its stream
	WaitsCollective               // a kernel of communication
	WaitsCopy                     // a copy or memset
	WaitsEvent                    // an event: work of another stream or device
	WaitsLaunch                   // the launch to reach the device
	WaitsUnresolved               // unknown
	Reasons
)

// ReasonNames are the labels of the reasons.
var ReasonNames = [Reasons]string{"kernel", "collective", "copy", "event", "launch", "unresolved"}

// Reason splits the last ns before a piece of work starts, in which it was launched and waited: how long for a known
// reason, which is returned with its piece or call, and how long without one. A known reason explains the time up to
// its end and its typical latency; if the work starts more than unexplain ns later, it explains no more than that.
func (g *Graph) Reason(piece int32, ns int64) (r Reason, what, call int32, known, unresolved int64) {
	w, h := g.bind(piece)
	what, call = h.piece, h.call
	switch h.by {
	case ByNothing:
		return WaitsUnresolved, trace.None, trace.None, 0, ns
	case ByLaunch:
		r = WaitsLaunch
	case ByEvent:
		r = WaitsEvent
	case ByStream, BySeeming:
		d, i := g.Place(h.piece)
		switch g.Timeline.Devices[d].Class(i) {
		case timeline.Comm:
			r = WaitsCollective
		case timeline.Copy:
			r = WaitsCopy
		case timeline.Compute, timeline.Idle:
			r = WaitsKernel
		}
	}
	if late := w.start - h.ready; late > unexplain {
		unresolved = min(ns, late)
	}
	return r, what, call, ns - unresolved, unresolved
}

// Absence is a cause of time in which nothing computes on a device.
type Absence uint8

// Causes of time without compute.
const (
	Starved       Absence = iota // the next compute was not launched yet
	BlockedByComm                // it waited for communication, directly or through other work
	BlockedByCopy                // it waited for a copy or memset
	Dependent                    // it was launched, and waited for anything else
	AbsentUnknown                // nothing computes afterwards, or nothing is known about the next work
	Absences
)

// AbsenceNames are the labels of the causes.
var AbsenceNames = [Absences]string{"launch_starved", "blocking_comm", "blocking_copy", "dependency", "unknown"}

// Absent visits all the time of a device's window in which nothing computes, in order, in pieces that do not overlap,
// with the cause of each.
func (g *Graph) Absent(device int, tell func(a Absence, start, end int64)) {
	d := g.Timeline.Devices[device]
	window := g.Timeline.Window
	var path []Step
	w := walker{g: g, tell: func(s *Step) { path = append(path, *s) }}
	at := window.Start
	for i := range d.Len() {
		if d.Class(i) != timeline.Compute {
			continue
		}
		start, end := d.Start(i), min(d.End(i), window.End)
		if end <= max(start, window.Start) {
			continue
		}
		if start > at {
			path = path[:0]
			w.at, w.until = start, at
			w.back(g.Number(device, i))
			for _, s := range slices.Backward(path) {
				tell(g.absence(&s), s.Start, s.End)
			}
		}
		at = max(at, end)
	}
	if at < window.End {
		tell(AbsentUnknown, at, window.End)
	}
}

// absence is the cause that a step of a path stands for.
func (g *Graph) absence(s *Step) Absence {
	switch s.Kind {
	case InCall, OnHost:
		return Starved
	case Unknown:
		return AbsentUnknown
	case Unexplained:
		if s.Call == trace.None {
			return AbsentUnknown // the moment of its launch is unknown
		}
	case Runs:
		d, i := g.Place(s.Piece)
		switch g.Timeline.Devices[d].Class(i) {
		case timeline.Comm:
			return BlockedByComm
		case timeline.Copy:
			return BlockedByCopy
		case timeline.Compute, timeline.Idle:
		}
	case AfterWork, AfterCall:
	}
	return Dependent
}
