package stepgraph

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// record is the place where an event was recorded last.
type record struct {
	call   int32
	stream int32 // index into streams, or -1 if not known
	epoch  int64
}

type eventKey struct {
	proc int32
	id   int64
}

// waiter goes through the calls in order.
type waiter struct {
	*builder
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

// findOwn finds, for each call that may have waited for its own work, or for room for it, its first piece of work; quick
// is [builder.quickest].
func (b *builder) findOwn(quick []int64) (own rowsOfCalls) {
	for di := range b.Timeline.Devices {
		d := &b.Timeline.Devices[di]
		last := trace.None // found before
		for i := range d.Len() {
			if c := d.Call(i); c != trace.None && c != last && b.mayWait(d, i, int(c), quick) {
				own = append(own, [2]int32{c, b.base[di] + int32(i)})
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
		f := &b.Found // counts before this pass, except those of collect
		f.Recorded, f.ByOrder, f.Unrecorded, f.Contradicted, f.Held = 0, 0, 0, 0, 0
		f.Handed, f.HandedInferred, f.ByWork, f.ByProcess, f.Locked, f.Outside = 0, 0, 0, 0, 0, 0
		b.kept = b.kept[:0]
		b.pass(own, guesses)
	}
}

// quickest is, by name, the time of a quick call that launches.
func (b *builder) quickest() []int64 {
	overall := make([]sample, len(b.api.Names))
	for c := range b.api.Len() {
		if n := b.api.Name(c); b.api.Names[n].Launch {
			overall[n].add(b.api.Dur(c))
		}
	}
	quick := make([]int64, len(b.api.Names))
	for n := range quick {
		quick[n] = overall[n].at(0.1, 0)
	}
	return quick
}

// pass goes through the calls, of which own may have waited for their own work; with guesses of waits between threads, or only to count how good such guesses would be.
func (b *builder) pass(own rowsOfCalls, guesses map[guess]*odds) {
	w := &waiter{builder: b, records: map[eventKey]record{}, byOrder: map[int32]int32{},
		syncs: byCall(b.calls.Sync), events: byCall(b.calls.Event)}
	hands := newHands(b, guesses)
	for c := range b.api.Len() {
		th := b.api.Thread(c)
		if th == trace.None {
			continue
		}
		before := hands.start(int32(c), th)
		b.waited.Set(c, before)
		piece := w.visit(int32(c), th, own.of(int32(c)))
		held := false
		if piece != trace.None {
			k := keptCall{call: int32(c), piece: piece, from: trace.None, before: before}
			if held = b.until(k) > b.api.Start(c); held {
				b.Found.Held++
			}
			b.kept = append(b.kept, k)
		}
		hands.end(int32(c), th, held)
	}
	b.typical.gap = hands.gaps.at(0.5, 0)
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
	n := &w.api.Names[w.api.Name(int(c))]
	proc := w.t.Threads[th].Proc
	end := w.api.End(int(c))
	switch {
	case n.Record:
		w.recorded(c, th, proc)
	case n.Wait:
		w.wait(c, th, proc)
	case n.Sync && strings.Contains(n.Name, "Event"):
		if row := w.syncs.of(c); row != trace.None {
			if p, ok := w.atRecord(proc, w.t.Syncs.Event(int(row)), w.t.Syncs.Epoch(int(row)), th); ok {
				return w.ended(p, end)
			}
			return w.streamUpTo(c, proc, row)
		}
	case n.Sync && strings.Contains(n.Name, "Stream"):
		if row := w.syncs.of(c); row != trace.None && w.t.Syncs.Stream(int(row)) >= 0 {
			return w.streamUpTo(c, proc, row)
		}
		return w.anyUpTo(c, proc, end)
	case n.Sync, n.OldSync:
		return w.anyUpTo(c, proc, end)
	case n.SyncCopy && own != trace.None:
		return w.ended(own, end)
	case n.AsyncCopy && own != trace.None: // of pageable memory
		if w.end(own) <= end && w.start(own) < end {
			return own
		}
	case n.Launch && own != trace.None:
		return w.room(c, own)
	case n.Frees && w.api.Dur(int(c)) > longCall:
		if p := w.anyUpTo(c, proc, end); p != trace.None && w.end(p) > w.api.Start(int(c)) {
			return p
		}
	}
	return trace.None
}

// ended is the piece if it had ended by a moment, else trace.None: then the times contradict that a call waited for it.
// If a piece by the GPU's clock began only after that moment, the one before it on its stream is taken instead.
func (w *waiter) ended(piece int32, by int64) int32 {
	for piece != trace.None && w.end(piece) <= by+clockSkew {
		if w.start(piece) < by {
			return piece
		}
		piece = w.before[piece]
	}
	return trace.None
}

// streamUpTo is the last piece that was launched into the stream of a synchronization before the call.
func (w *waiter) streamUpTo(c, proc, row int32) int32 {
	y := &w.t.Syncs
	if s := w.named(proc, y.Device(int(row)), y.Stream(int(row))); s >= 0 {
		return w.ended(w.streams[s].upTo(c), w.api.End(int(c)))
	}
	return trace.None
}

// anyUpTo is the piece of the process that ended last of those launched before the call and ended by a moment.
func (w *waiter) anyUpTo(c, proc int32, by int64) int32 {
	best, at := trace.None, int64(minTime)
	for _, s := range w.ofProc[proc] {
		if p := w.ended(w.streams[s].upTo(c), by); p != trace.None && w.end(p) > at {
			best, at = p, w.end(p)
		}
	}
	return best
}

// room is the piece whose start made room in a full queue for the work that a call launched, or trace.None if the queue
// was not full.
func (w *waiter) room(c, piece int32) int32 {
	d, i := w.Place(piece)
	device := &w.Timeline.Devices[d]
	s := w.named(device.Proc(i), device.ID, device.Stream(i))
	if s < 0 {
		return trace.None
	}
	x, end := &w.streams[s], w.api.End(int(c))
	at, _ := slices.BinarySearch(x.pieces, piece)
	room := func(full int) bool { return at < full || x.start(at-full) < end } // fewer have not started
	if room(fullQueue) || room(w.queue(x)) {
		return trace.None
	}
	if n := x.started(end); n > 0 && x.start(n-1) > w.api.Start(int(c)) {
		return x.pieces[n-1]
	}
	return trace.None
}

// start is when the k-th piece of a stream starts.
func (s *stream) start(k int) int64 { return s.d.Start(int(s.pieces[k] - s.base)) }

// started is how many of the pieces of a stream have started by a moment.
func (s *stream) started(by int64) int {
	return sort.Search(len(s.pieces), func(k int) bool { return s.start(k) >= by })
}

// queue is the queue length ahead of a launch into a stream at which it counts as full: nearly the longest one seen.
func (w *waiter) queue(s *stream) int {
	if s.full == 0 {
		most, started := 0, 0
		for k, piece := range s.pieces {
			call := s.d.Call(int(piece - s.base))
			if call == trace.None {
				continue
			}
			for end := w.api.End(int(call)); started < k && s.start(started) < end; {
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
	e := &w.t.Events[row]
	w.records[eventKey{proc, e.Event}] = record{c, w.named(proc, e.Device, e.Stream), e.Epoch}
}

// atRecord is the work that an event stands for: the last work launched before its record, into the stream it was
// recorded into. It is trace.None if there is none. ok is false if nothing says when it was recorded. If no row names
// the event, it is the last one that the thread recorded after its last launch.
func (w *waiter) atRecord(proc int32, event, epoch int64, th int32) (piece int32, ok bool) {
	if r, known := w.records[eventKey{proc, event}]; known && event >= 0 &&
		(epoch <= 0 || r.epoch <= 0 || r.epoch == epoch) {
		if r.stream < 0 {
			return trace.None, true
		}
		return w.streams[r.stream].upTo(r.call), true
	}
	call, known := w.byOrder[th]
	if !known {
		return trace.None, false
	}
	best, latest := trace.None, trace.None
	for _, s := range w.ofProc[proc] {
		x := &w.streams[s]
		if p := x.upTo(call); p != trace.None {
			d, i := w.Place(p)
			if by := w.Timeline.Devices[d].Call(i); by > latest && w.api.Thread(int(by)) == th {
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
		w.Found.Unrecorded++
		return
	}
	y := &w.t.Syncs
	s := w.named(proc, y.Device(int(row)), y.Stream(int(row)))
	if s < 0 {
		return // nothing of the timeline runs on this stream
	}
	next := w.streams[s].from(c)
	if next == trace.None {
		return
	}
	event, epoch := y.Event(int(row)), y.Epoch(int(row))
	p, ok := w.atRecord(proc, event, epoch, th)
	_, named := w.records[eventKey{proc, event}]
	switch {
	case !ok:
		w.Found.Unrecorded++
	case p == trace.None || w.start(p) >= w.start(next) && w.end(p) <= w.start(next): // no wait, or no length
	case w.end(p) > w.start(next):
		w.Found.Contradicted++
	default:
		if named {
			w.Found.Recorded++
		} else {
			w.Found.ByOrder++
		}
		if q := w.after.of(next); q == trace.None || w.end(q) < w.end(p) {
			w.after.set(next, p)
		}
	}
}
