package stepgraph

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// own is the rest of ns that a thread spends in a call, or before it.
func (r *replay) own(call int32, ns int64) int64 {
	k := call - r.callLo
	switch {
	case r.c.HostFree:
		return 0
	case call == trace.None:
		return ns
	case k >= 0 && (r.gone != nil && r.gone[k] || r.within != nil && r.within[k]):
		return 0
	case r.c.Call != nil:
		return scaled(ns, max(0, r.c.Call(r.g.api.Name(int(call)))))
	}
	return ns
}

// usualGaps is how many times the typical time between two launches still belongs to the second.
const usualGaps = 4

func (r *replay) startCall(call int32, at int64) {
	th := r.g.api.Thread(int(call))
	if th == trace.None {
		r.callAt[call-r.callLo] = at
		return
	}
	t := &r.threads[th]
	if !t.known { // its activity at the start of the stretch continues
		t.known, t.was = true, min(at, r.stretch.Start)
		t.is = t.was
	}
	if r.opens != nil && r.opens[call-r.callLo] {
		t.launching = false
	}
	inside := trace.None
	if n := len(t.open); n > 0 {
		inside = t.open[n-1]
	}
	var hand *keptCall
	piece := trace.None
	for r.nextKept < len(r.g.kept) && r.g.kept[r.nextKept].call <= call {
		switch k := &r.g.kept[r.nextKept]; {
		case k.call != call:
		case k.from != trace.None:
			hand = k
		default:
			piece = k.piece
		}
		r.nextKept++
	}
	was, is := t.was, t.is
	if hand != nil {
		was, is = r.handed(hand)
		was, is = max(was, r.stretch.Start), max(is, r.stretch.Start)
	}
	gap := at - was
	if r.gone != nil && r.gone[call-r.callLo] {
		gap = r.withoutLaunch(t, gap)
	}
	if hand == nil {
		t.is += r.own(inside, gap)
	} else {
		t.launching = false
		t.is = max(t.is+r.own(trace.None, min(hand.own, at-t.was)), is+r.own(trace.None, gap))
	}
	t.was, t.launched = at, r.g.forRoom(call)
	t.open = append(t.open, call)
	r.callAt[call-r.callLo] = t.is
	if r.within != nil && t.launching && r.g.forRoom(call) {
		r.within[call-r.callLo] = true
	}
	r.ends.Push(timeline.Next[ending]{At: r.g.api.End(int(call)), What: ending{call, piece}})
}

// handed is the moment from which a thread continued, in the capture and in the replay.
func (r *replay) handed(hand *keptCall) (was, is int64) {
	if hand.from == woken {
		_, is = r.now(hand.piece)
		return r.g.end(hand.piece), is
	}
	was = r.g.api.End(int(hand.from))
	if from := hand.from - r.callLo; from >= 0 {
		return was, r.callAt[from]
	}
	return was, was
}

// withoutLaunch is the rest of the time before a removed launch: the time since the launch before it is removed too, or
// if that is long, only the usual time between two launches.
func (r *replay) withoutLaunch(t *thread, gap int64) int64 {
	if t.launched && gap <= usualGaps*r.g.typical.gap {
		return 0
	}
	return gap - min(gap, r.g.typical.gap)
}

func (r *replay) endCall(call, piece int32) {
	t := &r.threads[r.g.api.Thread(int(call))]
	if i := slices.Index(t.open, call); i >= 0 {
		t.open = slices.Delete(t.open, i, i+1)
	}
	end := r.g.api.End(int(call))
	spent := end - t.was
	t.was = end
	k := call - r.callLo
	if piece == trace.None {
		t.is += r.own(call, spent)
	} else {
		r.keep(t, call, piece, spent)
	}
	if k < 0 {
		return
	}
	r.callAt[k] = t.is
	if r.opens == nil {
		return
	}
	switch n := &r.g.api.Names[r.g.api.Name(int(call))]; {
	case r.shuts[k]:
		t.launching = false
	case n.Launch:
		t.launching = true
	}
}

// noWait is the time in ns of a call that finds nothing to wait for.
const noWait = 1_000

// keep ends a call that waits for a piece of work, of which the last ns are still to come.
func (r *replay) keep(t *thread, call, piece int32, ns int64) {
	was := r.g.until(keptCall{call: call, piece: piece, from: trace.None})
	start, end := r.now(piece)
	is := end + was - r.g.end(piece)
	if r.g.forRoom(call) {
		is = start
	}
	waits := was > r.g.api.Start(int(call))
	after := ns // the part of the call's own time after the wait
	if waits {
		after = min(ns, r.g.api.End(int(call))-was)
		if !r.g.forRoom(call) {
			t.launching = false
		}
	}
	free := r.c.NoWait != nil && r.c.NoWait(call)
	switch {
	case !waits:
		t.is += r.own(call, after)
	case !free:
		t.is += r.own(call, min(after, noWait))
	}
	switch {
	case free, r.gone != nil && call >= r.callLo && r.gone[call-r.callLo]:
	case r.g.forRoom(call) && (t.launching || r.c.HostFree):
	default:
		if waits || is > was {
			t.is = max(t.is, is+r.own(call, min(after, r.g.api.End(int(call))-was)))
		}
	}
}
