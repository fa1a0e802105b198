package stepgraph

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Change is the difference in a replay. The zero value changes nothing.
type Change struct {
	// Work is the factor on the time of a piece of work, 0 if it is removed; nil: no factor. For a collective it
	// applies to the time after the last device has joined.
	Work func(d *timeline.Device, i int) float64
	// Call is the factor on the time of calls, by index of the name; waiting does not count.
	Call func(name int32) float64
	// NoWait are the calls, by row, that no longer wait for the GPU.
	NoWait func(call int32) bool
	// HostFree: calls take no time, nor do threads between them. Calls still wait for the GPU.
	HostFree bool
	// Overlap: communication runs beside everything else, and nothing waits for it. A unit is never shorter than its
	// communication.
	Overlap bool
	// Graph: all launches of a unit between two waits, except the first, take no time on the host and have no latency.
	Graph bool
	// NoLatency: work starts as soon as its dependencies are over.
	NoLatency bool
	// Typical latencies replace the measured ones: the result is only what the graph explains.
	Typical bool
}

// Instant is the factor on work that takes no time and is not removed: its call and its latencies stay, and what waits
// for it still waits for the work before it.
const Instant = math.SmallestNonzeroFloat32

// Replay runs the work and calls that start in a stretch of time again, with a change: everything starts as soon as its
// dependencies allow, with the measured latencies. Times outside the stretch stay. It returns the time in ns of each
// unit in the stretch, -1 for others. Without a change every time is that of the capture. Nothing starts before the
// stretch: all its units together take no longer with a change than without, and no longer with two changes than with
// one of them.
//
// Its run time is n log t in the rows of the stretch and the threads.
func (g *Graph) Replay(stretch interval.Interval, u *Units, c *Change) []int64 {
	r := newReplay(g, stretch, c)
	defer r.free()
	r.mark(u)
	r.run()
	return r.times(u)
}

// thread is the progress of the replay of a thread.
type thread struct {
	known     bool
	was, is   int64 // its last event: in the capture, in the replay
	open      []int32
	launching bool // within a graph that takes the place of launches
	launched  bool // its last call was a launch
}

// ending is a call or a kernel of a collective that has yet to end.
type ending struct {
	call  int32 // or trace.None
	piece int32 // the kernel, or what kept the call, or trace.None
}

type replay struct {
	g            *Graph
	c            *Change
	lo, hi       []int32 // by device: its pieces that are replayed
	base         []int32 // by device: the index of the first of them in from and to
	from, to     []int64
	stretch      interval.Interval
	callLo       int32
	nextKept     int     // of kept: the first whose call has not started
	callAt       []int64 // by call above callLo: its start, and once it has ended its end
	factor       []float32
	gone         []bool // by call above callLo: all work that it launched is removed
	opens, shuts []bool // by call above callLo: it launched a unit's first work, or its last
	within       []bool // by call above callLo: a launch that a graph's replaces
	joined       map[int32]int64
	threads      []thread
	ends         timeline.Queue[ending]
	memory       *spill.Arena
}

func newReplay(g *Graph, stretch interval.Interval, c *Change) *replay {
	devices := g.Timeline.Devices
	r := &replay{g: g, c: c, lo: make([]int32, len(devices)), hi: make([]int32, len(devices)),
		base: make([]int32, len(devices)), joined: map[int32]int64{}, memory: g.memory(), stretch: stretch}
	n, first := int32(0), int64(maxTime) // first is when the first work or call of the stretch starts
	for d, x := range devices {
		lo, hi := int32(x.From(stretch.Start)), int32(x.From(stretch.End))
		r.lo[d], r.hi[d], r.base[d] = lo, hi, n
		n += hi - lo
		if lo < hi {
			first = min(first, x.Start(int(lo)))
		}
	}
	r.from, r.to = spill.Make[int64](r.memory, int(n)), spill.Make[int64](r.memory, int(n))
	lo, hi := g.api.Starting(stretch.Start, stretch.End)
	r.callLo = int32(lo)
	if lo < hi {
		first = min(first, g.api.Start(lo))
	}
	r.stretch.Start = max(stretch.Start, first)
	r.nextKept, _ = slices.BinarySearchFunc(g.kept, r.callLo, func(k keptCall, call int32) int {
		return cmp.Compare(k.call, call)
	})
	r.callAt = spill.Make[int64](r.memory, hi-lo)
	r.threads = make([]thread, len(g.trace.Threads))
	r.openCalls()
	if c.Work != nil {
		r.factors(int(n), hi-lo)
	}
	return r
}

// openCalls takes the calls that began before the stretch and waited for work after its start.
func (r *replay) openCalls() {
	for _, k := range r.g.kept[:r.nextKept] {
		if r.g.api.End(int(k.call)) <= r.stretch.Start || k.from != trace.None {
			continue
		}
		if th := r.g.api.Thread(int(k.call)); th != trace.None {
			t := &r.threads[th]
			t.known, t.was, t.is = true, r.stretch.Start, r.stretch.Start
			t.open = append(t.open, k.call)
			r.ends.Push(timeline.Next[ending]{At: r.g.api.End(int(k.call)), What: ending{k.call, k.piece}})
		}
	}
}

// factors gets the factor of every piece, and finds the calls all of whose work is removed.
func (r *replay) factors(pieces, calls int) {
	r.factor = make([]float32, pieces)
	r.gone = make([]bool, calls)
	kept := make([]bool, calls)
	for d, device := range r.g.Timeline.Devices {
		for i := r.lo[d]; i < r.hi[d]; i++ {
			f := max(0, r.c.Work(device, int(i)))
			r.factor[r.base[d]+i-r.lo[d]] = float32(f)
			if c := device.Call(int(i)) - r.callLo; c >= 0 && int(c) < calls {
				if f == 0 {
					r.gone[c] = true
				} else {
					kept[c] = true
				}
			}
		}
	}
	for c := range r.gone {
		r.gone[c] = r.gone[c] && !kept[c]
	}
}

func (r *replay) free() {
	spill.Free(r.memory, r.from)
	spill.Free(r.memory, r.to)
	spill.Free(r.memory, r.callAt)
}

// mark finds the calls that launched a unit's first and last work.
func (r *replay) mark(u *Units) {
	if !r.c.Graph {
		return
	}
	r.opens, r.shuts, r.within = make([]bool, len(r.callAt)), make([]bool, len(r.callAt)), make([]bool, len(r.callAt))
	first := slices.Repeat([]int32{trace.None}, len(u.First))
	last := slices.Clone(first)
	for d := range u.Of {
		device, members := r.g.Timeline.Devices[d], u.Of[d].Walk()
		for i := r.lo[d]; i < r.hi[d]; i++ {
			if id, call := members.Of(int(i)), device.Call(int(i)); id != trace.None && call >= r.callLo {
				last[id] = max(last[id], call)
				if first[id] == trace.None || call < first[id] {
					first[id] = call
				}
			}
		}
	}
	set := func(at []bool, call int32) {
		if c := call - r.callLo; call != trace.None && int(c) < len(at) {
			at[c] = true
		}
	}
	for i := range first {
		set(r.opens, first[i])
		set(r.shuts, last[i])
	}
}

// run goes through the starts and ends of calls and work in the order of the capture, in which dependencies come first.
func (r *replay) run() {
	var q timeline.Queue[int32] // the next piece of each device
	for d, device := range r.g.Timeline.Devices {
		if i := r.lo[d]; i < r.hi[d] {
			q.Push(timeline.Next[int32]{At: device.Start(int(i)), Order: int32(d), What: i})
		}
	}
	call := r.callLo
	callEnd := r.callLo + int32(len(r.callAt))
	starts := func() int64 {
		if call < callEnd {
			return r.g.api.Start(int(call))
		}
		return maxTime
	}
	callStart := starts()
	for {
		start := q.At()
		switch {
		case len(r.ends) > 0 && r.ends.At() <= min(start, callStart):
			p := r.ends.Pop()
			if p.call != trace.None {
				r.endCall(p.call, p.piece)
			} else {
				r.endCollective(p.piece)
			}
		case call < callEnd && callStart <= start:
			r.startCall(call, callStart)
			call++
			callStart = starts()
		case len(q) > 0:
			d, i := q[0].Order, q[0].What
			r.work(int(d), i)
			if i++; i < r.hi[d] {
				q.Replace(timeline.Next[int32]{At: r.g.Timeline.Devices[d].Start(int(i)), Order: d, What: i})
			} else {
				q.Pop()
			}
		default:
			return
		}
	}
}

// slot is the index of a piece in from and to, or -1 if it is not replayed.
func (r *replay) slot(piece int32) int32 {
	d, i := r.g.Place(piece)
	if x := int32(i); x >= r.lo[d] && x < r.hi[d] {
		return r.base[d] + x - r.lo[d]
	}
	return -1
}

// now is when a piece starts and ends in the replay.
func (r *replay) now(piece int32) (start, end int64) {
	if s := r.slot(piece); s >= 0 {
		return r.from[s], r.to[s]
	}
	return r.g.start(piece), r.g.end(piece)
}

// left is the factor on the piece of a slot.
func (r *replay) left(slot int32) float64 {
	if r.factor == nil {
		return 1
	}
	return float64(r.factor[slot])
}

func scaled(ns int64, f float64) int64 { return int64(float64(ns)*f + 0.5) }

// work starts a piece of work.
func (r *replay) work(device int, i int32) {
	d := r.g.Timeline.Devices[device]
	piece := r.g.base[device] + i
	w, h := r.g.bind(piece)
	slot := r.base[device] + i - r.lo[device]
	factor := r.left(slot)
	at, over := int64(minTime), int64(minTime) // its start; the end of all that it waits for
	after := func(by Hold, was, is, typical, inCall int64) {
		lag := w.start - was - inCall
		switch {
		case by == ByLaunch && r.within != nil && w.call >= r.callLo && r.within[w.call-r.callLo]:
			lag = 0
		case r.c.NoLatency && (lag <= typical+unexplain || by != h.by):
			lag = 0
		case by != h.by || r.c.Typical:
			lag = min(lag, typical)
		}
		at, over = max(at, is+lag), max(over, is)
	}
	if w.call != trace.None {
		if was, still := r.g.launched(w.call, w.start); was <= w.start {
			is := was
			if k := w.call - r.callLo; k >= 0 && int(k) < len(r.callAt) {
				is = r.callAt[k]
			}
			typical, inCall := r.g.typical.launch[w.kind][still], int64(0)
			if still > 0 && h.by == ByLaunch { // the call's time up to the start of the work is as long as the call
				inCall = max(0, w.start-was-r.g.typical.quick[w.kind])
				is += r.own(w.call, inCall)
				typical -= min(typical, inCall)
			}
			after(ByLaunch, was, is, typical, inCall)
		}
	}
	if p := r.g.before[piece]; p != trace.None {
		start, end := r.now(p)
		after(ByStream, r.g.end(p), end, r.g.typical.stream[w.kind], 0)
		at = max(at, min(start, end))
	}
	if p, by := r.g.other(piece); p != trace.None {
		_, end := r.now(p)
		after(by, r.g.end(p), end, r.g.typical.event, 0)
	}
	if at == minTime {
		at, over = w.start, w.start
	}
	at = max(at, r.stretch.Start)
	end := d.End(int(i))
	ns := end - w.start
	if r.c.Overlap && d.Class(int(i)) == timeline.Comm {
		ns = 0
	}
	r.from[slot], r.to[slot] = at, at+scaled(ns, factor)
	if factor == 0 { // removed work has no latency; its place still borders its unit
		r.to[slot] = max(over, r.stretch.Start)
	}
	c := r.g.group.of(piece)
	if c == trace.None || ns == 0 {
		return
	}
	if old, ok := r.joined[c]; !ok || at > old {
		r.joined[c] = at
	}
	r.ends.Push(timeline.Next[ending]{At: end, What: ending{trace.None, piece}})
}

// endCollective ends a kernel of a collective: not before the last device has joined, plus its own time from then on.
func (r *replay) endCollective(piece int32) {
	slot := r.slot(piece)
	c := r.g.group.of(piece)
	last := r.g.lasts[c]
	joined := r.joined[c]
	if r.slot(last) < 0 {
		joined = max(joined, r.g.start(last))
	}
	r.to[slot] = max(r.from[slot], joined+scaled(r.g.end(piece)-r.g.start(last), r.left(slot)))
}

// times are the times of the units. A unit begins no earlier than the one before it on its device.
func (r *replay) times(u *Units) []int64 {
	list := slices.Repeat([]int64{-1}, len(u.First))
	var comm []int64
	if r.c.Overlap {
		comm = r.communication(u)
	}
	reached := slices.Repeat([]int64{minTime}, len(r.lo)) // by device
	for i, first := range u.First {
		if first == trace.None || u.Next[i] == trace.None {
			continue
		}
		a, b := r.slot(first), r.slot(u.Next[i])
		if a < 0 || b < 0 {
			continue
		}
		d, _ := r.g.Place(first)
		from := max(reached[d], r.from[a])
		reached[d] = max(from, r.from[b])
		list[i] = reached[d] - from
		if comm != nil {
			list[i] = max(list[i], comm[i])
		}
	}
	return list
}

// communication is, by unit, how long its device communicates after all have joined.
func (r *replay) communication(u *Units) []int64 {
	sum := make([]int64, len(u.First))
	for d := range u.Of {
		device, members := r.g.Timeline.Devices[d], u.Of[d].Walk()
		for i := r.lo[d]; i < r.hi[d]; i++ {
			id := members.Of(int(i))
			if id == trace.None || device.Class(int(i)) != timeline.Comm {
				continue
			}
			piece := r.g.base[d] + i
			ns := device.End(int(i)) - r.g.start(r.g.joinedLast(piece))
			sum[id] += scaled(ns, r.left(r.slot(piece)))
		}
	}
	return sum
}
