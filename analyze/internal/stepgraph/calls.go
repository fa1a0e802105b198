package stepgraph

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// record is the place where an event was recorded last.
type record struct {
	call   int32
	stream *stream // nil if not known
	epoch  int64
}

type eventKey struct {
	proc int32
	id   int64
}

// waiter goes through the calls in order.
type waiter struct {
	g       *Graph
	streams streams
	records map[eventKey]record
	byOrder map[int32]int32 // by thread: the last call that recorded an event that no row names
	syncs   rowsOfCalls
	events  rowsOfCalls
}

// rowsOfCalls finds the row of a table that belongs to a call.
type rowsOfCalls [][2]int32 // call, row

func byCall(calls []int32) rowsOfCalls {
	list := make(rowsOfCalls, 0, len(calls))
	for row, c := range calls {
		if c != trace.None {
			list = append(list, [2]int32{c, int32(row)})
		}
	}
	list.sort()
	return list
}

func (r rowsOfCalls) sort() {
	slices.SortFunc(r, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
}

// of is the row of a call, or trace.None. Calls must be asked for in order.
func (r *rowsOfCalls) of(call int32) int32 {
	for len(*r) > 0 && (*r)[0][0] < call {
		*r = (*r)[1:]
	}
	if len(*r) > 0 && (*r)[0][0] == call {
		return (*r)[0][1]
	}
	return trace.None
}

// findOwn finds, for each call that may have waited for its own work, or for room for it, its first piece of work;
// quick is [builder.quickest].
func (b *builder) findOwn(quick []int64) (own rowsOfCalls) {
	for di, d := range b.g.Timeline.Devices {
		last := trace.None // found before
		for i := range d.Len() {
			if c := d.Call(i); c != trace.None && c != last && b.mayWait(d, i, int(c), quick) {
				own = append(own, [2]int32{c, b.g.base[di] + int32(i)})
				last = c
			}
		}
	}
	own.sort()
	return own
}

// hosts finds the work that held each call, and the events that streams waited for.
func (b *builder) hosts() {
	own := b.findOwn(b.quickest())
	guesses := map[guess]*odds{}
	b.pass(own, guesses)
	maps.DeleteFunc(guesses, func(_ guess, o *odds) bool { return !o.hold() })
	if len(guesses) > 0 {
		b.g.Found, b.g.kept = Found{}, b.g.kept[:0]
		b.pass(own, guesses)
	}
}

// quickest is, by name, the time of a quick call that launches.
func (b *builder) quickest() []int64 {
	overall := make([]sample, len(b.g.api.Names))
	for c := range b.g.api.Len() {
		if n := b.g.api.Name(c); b.g.api.Names[n].Launch {
			overall[n].add(b.g.api.Dur(c))
		}
	}
	return lists.Map(overall, func(s sample) int64 { return s.at(0.1, 0) })
}

// pass goes through the calls, of which own may have waited for their own work; with guesses of waits between threads,
// or only to count how good such guesses would be.
func (b *builder) pass(own rowsOfCalls, guesses map[guess]*odds) {
	w := &waiter{g: b.g, streams: b.streams, records: map[eventKey]record{}, byOrder: map[int32]int32{},
		syncs: byCall(b.calls.Sync), events: byCall(b.calls.Event)}
	hands := newHands(b.g, b.streams, guesses)
	for c := range b.g.api.Len() {
		th := b.g.api.Thread(c)
		if th == trace.None {
			continue
		}
		before := hands.start(int32(c), th)
		b.g.waited.Set(c, before)
		piece := w.visit(int32(c), th, own.of(int32(c)))
		held := false
		if piece != trace.None {
			k := keptCall{call: int32(c), piece: piece, from: trace.None, before: before}
			if held = b.g.until(k) > b.g.api.Start(c); held {
				b.g.Found.Held++
			}
			b.g.kept = append(b.g.kept, k)
		}
		hands.end(int32(c), th, held)
	}
	b.g.typical.gap = hands.gaps.at(0.5, 0)
}

// clockSkew is by how many ns work may end, by the clock of the GPU, after the call that waited for it has returned, by
// the clock of the host.
const clockSkew = 20_000

// until is the moment until which a call was held: the end of the work it waited for, or the start of the work that
// made room in the queue.
func (g *Graph) until(k keptCall) int64 {
	if g.forRoom(k.call) {
		return g.start(k.piece)
	}
	return min(g.end(k.piece), g.api.End(int(k.call)))
}

// forRoom reports whether a held call waited for room in the queue of its stream.
func (g *Graph) forRoom(call int32) bool { return g.api.Names[g.api.Name(int(call))].Launch }

// visit is the work that held a call, which may be its own work, or trace.None.
func (w *waiter) visit(c, th, own int32) int32 {
	n := &w.g.api.Names[w.g.api.Name(int(c))]
	proc := w.g.trace.Threads[th].Proc
	end := w.g.api.End(int(c))
	switch {
	case n.Record:
		w.recorded(c, th, proc)
	case n.Wait:
		w.wait(c, th, proc)
	case n.Sync && strings.Contains(n.Name, "Event"):
		if row := w.syncs.of(c); row != trace.None {
			if p, ok := w.atRecord(proc, w.g.trace.Syncs.Event(int(row)), w.g.trace.Syncs.Epoch(int(row)), th); ok {
				return w.ended(p, end)
			}
			return w.streamUpTo(c, proc, row)
		}
	case n.Sync && strings.Contains(n.Name, "Stream"):
		if row := w.syncs.of(c); row != trace.None && w.g.trace.Syncs.Stream(int(row)) >= 0 {
			return w.streamUpTo(c, proc, row)
		}
		return w.anyUpTo(c, proc, end)
	case n.Sync, n.OldSync:
		return w.anyUpTo(c, proc, end)
	case n.SyncCopy && own != trace.None:
		return w.ended(own, end)
	case n.AsyncCopy && own != trace.None: // of pageable memory
		if w.g.end(own) <= end && w.g.start(own) < end {
			return own
		}
	case n.Launch && own != trace.None:
		return w.room(c, own)
	case n.Frees && w.g.api.Dur(int(c)) > longCall:
		if p := w.anyUpTo(c, proc, end); p != trace.None && w.g.end(p) > w.g.api.Start(int(c)) {
			return p
		}
	}
	return trace.None
}

// ended is the piece if it had ended by a moment, else trace.None: then the times contradict that a call waited for it.
// If a piece by the GPU's clock began only after that moment, the one before it on its stream is taken instead.
func (w *waiter) ended(piece int32, by int64) int32 {
	for piece != trace.None && w.g.end(piece) <= by+clockSkew {
		if w.g.start(piece) < by {
			return piece
		}
		piece = w.g.before[piece]
	}
	return trace.None
}

// streamUpTo is the last piece that was launched into the stream of a synchronization before the call.
func (w *waiter) streamUpTo(c, proc, row int32) int32 {
	y := &w.g.trace.Syncs
	if s := w.streams.named(proc, y.Device(int(row)), y.Stream(int(row))); s != nil {
		return w.ended(s.upTo(c), w.g.api.End(int(c)))
	}
	return trace.None
}

// anyUpTo is the piece of the process that ended last of those launched before the call and ended by a moment.
func (w *waiter) anyUpTo(c, proc int32, by int64) int32 {
	best, at := trace.None, int64(minTime)
	for _, s := range w.streams[proc] {
		if p := w.ended(s.upTo(c), by); p != trace.None && w.g.end(p) > at {
			best, at = p, w.g.end(p)
		}
	}
	return best
}

// room is the piece whose start made room in a full queue for the work that a call launched, or trace.None if the queue
// was not full.
func (w *waiter) room(c, piece int32) int32 {
	d, i := w.g.Place(piece)
	device := w.g.Timeline.Devices[d]
	x, end := w.streams.named(device.Proc(i), device.ID, device.Stream(i)), w.g.api.End(int(c))
	if x == nil {
		return trace.None
	}
	at, _ := slices.BinarySearch(x.pieces, piece)
	room := func(full int) bool { return at < full || x.start(at-full) < end } // fewer have not started
	if room(fullQueue) || room(x.queue(w.g.api)) {
		return trace.None
	}
	if n := x.started(end); n > 0 && x.start(n-1) > w.g.api.Start(int(c)) {
		return x.pieces[n-1]
	}
	return trace.None
}

// start is when the k-th piece of a stream starts.
func (s *stream) start(k int) int64 { return s.d.Start(int(s.pieces[k] - s.base)) }

// started is how many of the pieces of a stream have started by a moment. Moments come mostly in order: it looks near
// the last one first.
func (s *stream) started(by int64) int {
	s.near = lists.Near(len(s.pieces), s.near, func(k int) bool { return s.start(k) >= by })
	return s.near
}

// queue is the queue length ahead of a launch into a stream at which it counts as full: nearly the longest one seen.
func (s *stream) queue(api *trace.API) int {
	if s.full == 0 {
		most, started := 0, 0
		for k, piece := range s.pieces {
			call := s.d.Call(int(piece - s.base))
			if call == trace.None {
				continue
			}
			for end := api.End(int(call)); started < k && s.start(started) < end; {
				started++
			}
			most = max(most, k-started)
		}
		s.full = max(fullQueue, most*nearlyFull/100)
	}
	return s.full
}

// recorded remembers which stream an event was recorded into.
func (w *waiter) recorded(c, th, proc int32) {
	row := w.events.of(c)
	if row == trace.None {
		w.byOrder[th] = c
		return
	}
	e := &w.g.trace.Events[row]
	w.records[eventKey{proc, e.Event}] = record{c, w.streams.named(proc, e.Device, e.Stream), e.Epoch}
}

// atRecord is the work that an event stands for: the last work launched before its record, into the stream it was
// recorded into. It is trace.None if there is none. ok is false if nothing says when it was recorded. If no row names
// the event, it is the last one that the thread recorded after its last launch.
func (w *waiter) atRecord(proc int32, event, epoch int64, th int32) (piece int32, ok bool) {
	if r, known := w.records[eventKey{proc, event}]; known && event >= 0 &&
		(epoch <= 0 || r.epoch <= 0 || r.epoch == epoch) {
		if r.stream == nil {
			return trace.None, true
		}
		return r.stream.upTo(r.call), true
	}
	call, known := w.byOrder[th]
	if !known {
		return trace.None, false
	}
	best, latest := trace.None, trace.None
	for _, s := range w.streams[proc] {
		if p := s.upTo(call); p != trace.None {
			d, i := w.g.Place(p)
			if by := w.g.Timeline.Devices[d].Call(i); by > latest && w.g.api.Thread(int(by)) == th {
				best, latest = p, by
			}
		}
	}
	return best, true
}

// wait makes the next work launched into a stream wait for an event.
func (w *waiter) wait(c, th, proc int32) {
	row := w.syncs.of(c)
	if row == trace.None {
		w.g.Found.Unrecorded++
		return
	}
	y := &w.g.trace.Syncs
	s := w.streams.named(proc, y.Device(int(row)), y.Stream(int(row)))
	if s == nil {
		return // nothing of the timeline runs on this stream
	}
	next := s.from(c)
	if next == trace.None {
		return
	}
	event, epoch := y.Event(int(row)), y.Epoch(int(row))
	p, ok := w.atRecord(proc, event, epoch, th)
	_, named := w.records[eventKey{proc, event}]
	switch {
	case !ok:
		w.g.Found.Unrecorded++
	case p == trace.None || w.g.start(p) >= w.g.start(next) && w.g.end(p) <= w.g.start(next): // no wait, or no length
	case w.g.end(p) > w.g.start(next):
		w.g.Found.Contradicted++
	default:
		if named {
			w.g.Found.Recorded++
		} else {
			w.g.Found.ByOrder++
		}
		if q := w.g.after.of(next); q == trace.None || w.g.end(q) < w.g.end(p) {
			w.g.after.set(next, p)
		}
	}
}
