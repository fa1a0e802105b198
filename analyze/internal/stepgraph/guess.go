package stepgraph

import "github.com/nsys-llm/explain/analyze/internal/trace"

// guess is a wait that neither a call nor a row states, of a thread for the end of GPU work that its process launched,
// or for another process. It counts only if the thread continues right after it far more often than by chance.
type guess struct{ thread, process int32 } // process is trace.None for GPU work

// odds is how often a wait ended right after the guessed event, and how often it would have by chance.
type odds struct {
	hits   int
	chance float64
}

// Bounds of guesses.
const (
	leastHits    = 4
	timesChance  = 3      // hits must exceed the number by chance by this factor
	wakeNear     = 50_000 // ns from the end of work or of a call to the end of the wait
	nearOfWait   = 4      // of a longer wait the last quarter, if the other process had waited for the GPU
	mostWorkSeen = 32     // pieces of a stream that are looked at before the end of a wait
	mostOthers   = 16     // processes
)

func (o *odds) hold() bool { return o.hits >= leastHits && float64(o.hits) >= timesChance*o.chance }

// guess counts a wait, or, in the second pass, says whether the guess is accepted.
func (h *hands) guess(g guess, hit bool, chance float64) bool {
	o := h.guesses[g]
	switch {
	case h.sure:
		return hit && o != nil
	case o == nil:
		o = &odds{}
		h.guesses[g] = o
	}
	if hit {
		o.hits++
	}
	o.chance += min(1, chance)
	return false
}

// byWork says whether a thread slept until a piece of work of its process had ended, after which its stream was idle.
func (h *hands) byWork(k *keptCall, own *crew, th int32, began, until int64) bool {
	if len(h.streams[own.proc]) > mostPeers {
		return false
	}
	best, chance := trace.None, 0.0
	for _, s := range h.streams[own.proc] {
		list, n := s.pieces, s.started(until)
		ends, from := 0, until
		for i := n - 1; i >= max(0, n-mostWorkSeen); i-- {
			end := h.g.end(list[i])
			if end <= began {
				break
			}
			if from = max(began, h.g.start(list[i])); end > until || !h.drains(s, i) {
				continue
			}
			if ends++; until-end <= wakeNear && (best == trace.None || end > h.g.end(best)) {
				best = list[i]
			}
		}
		chance += float64(ends) * wakeNear / float64(max(1, until-from))
	}
	k.from, k.piece = woken, best
	return h.guess(guess{th, trace.None}, best != trace.None, chance)
}

// drains reports whether a stream was idle when its i-th piece ended.
func (h *hands) drains(s *stream, i int) bool {
	if i+1 == len(s.pieces) {
		return true
	}
	call := s.d.Call(int(s.pieces[i+1] - s.base))
	return call != trace.None && h.g.api.Start(int(call)) >= h.g.end(s.pieces[i])
}

// byProcess is another process, after its last call, that a thread waited for; nil if there is none.
func (h *hands) byProcess(own *crew, th int32, began, until int64, slept bool) (best *turn) {
	for _, other := range h.order[:min(len(h.order), mostOthers)] {
		if other == own || until <= other.began {
			continue
		}
		elapsed, near := float64(until-other.began), max(wakeNear, (until-began)/nearOfWait)
		x := latest(&other.held, until)
		hit := x != nil && x.end > began && until-x.end <= near
		chance := float64(near*other.waits) / elapsed
		if slept {
			if chance += float64(other.near) / elapsed; !hit {
				x = latest(&other.calls, until)
				hit = x != nil && x.end > began && until-x.end <= wakeNear
			}
		}
		if h.guess(guess{th, other.proc}, hit, chance) && (best == nil || x.end > best.end) {
			best = x
		}
	}
	return best
}

// crew is the state of a process with calls at the moment of the walk.
type crew struct {
	proc        int32
	threads     []int32 // with calls, the first ones
	calls, held [2]turn // that ended last, and of those that waited for the GPU; the later one first
	began       int64   // its first call
	near        int64   // ns that lie within wakeNear after the end of a call
	waits       int64   // calls that waited for the GPU
}

// crew is the state of that process.
func (h *hands) crew(proc int32) *crew {
	c := h.crews[proc]
	if c == nil {
		c = &crew{proc: proc, began: maxTime}
		h.crews[proc], h.order = c, append(h.order, c)
	}
	return c
}

// note records a call that has started, in the order of the calls.
func (c *crew) note(x turn, start int64) {
	if c.began == maxTime {
		c.began = start
		none := turn{trace.None, trace.None, start, minTime}
		c.calls, c.held = [2]turn{none, none}, [2]turn{none, none}
	}
	last := c.calls[0].end
	if put(&c.calls, x) {
		c.near += max(0, min(wakeNear, x.end-last))
	}
	if x.heldEnd == x.end && put(&c.held, x) {
		c.waits++
	}
}

// put keeps the two turns that end last, and says whether this one is new.
func put(list *[2]turn, x turn) bool {
	for i := range list {
		if x.call == list[i].call {
			list[i] = x
			return false
		}
	}
	switch {
	case x.end >= list[0].end:
		list[1], list[0] = list[0], x
	case x.end > list[1].end:
		list[1] = x
	}
	return true
}

// latest is the turn that ended last by a moment, or nil.
func latest(list *[2]turn, by int64) *turn {
	for i := range list {
		if x := &list[i]; x.call != trace.None && x.end <= by {
			return x
		}
	}
	return nil
}
