package stepgraph

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Bounds of waits of one thread for another, in ns except the last.
const (
	leastSleep = 2_000   // sleep between two calls from which its reason is sought
	leastGap   = 20_000  // the same without a record; a shorter time fits a whole call of the other thread
	leastTurn  = 100_000 // the same if nothing was recorded and the other thread did not wait for the GPU
	mostPeers  = 64      // threads of a process that are looked at; the first ones
	wakeWithin = 2_000   // by how much a call of the other thread may end after the wait, as the capture has them
)

// hands finds, in the order of the calls, which threads waited for which other thread. A thread that sleeps between two
// of its CUDA calls, and continues after the last call of another thread of its process, is assumed to have waited for
// it. Its sleep is known if calls of the operating system, switches of the scheduler or waits for Python's lock were
// recorded for it. If not, it is inferred: a blocking call of the other thread ended in between, or the two alternated.
// Waits for the end of GPU work without a CUDA call, and for other processes, are guesses, see [guess].
type hands struct {
	g       *Graph
	streams streams
	threads []handThread
	crews   map[int32]*crew // of processes with calls
	order   []*crew         // the same, by their first call
	guesses map[guess]*odds
	sure    bool           // guesses are used; if not, they are counted
	os      int            // the first row of Trace.OS that has not started
	sched   int            // of Trace.Sched
	ranges  int            // and of Trace.Ranges
	waits   []bool         // by subject of Trace.OS: the function is a wait
	locks   []bool         // by name of Trace.Ranges: the range is a wait for Python's lock
	locked  map[int64]bool // by stack of Trace.OSStacks: the stack is a wait for Python's lock
	gaps    sample         // between launches that follow each other on a thread
}

// handThread is the state of a thread at the moment of the walk.
type handThread struct {
	now, old turn  // after the last call that is not nested, and after the one before
	crew     *crew // of its process; nil before its first call
	launches bool  // it has launched work
	launched bool  // its last call did
	seen     bool  // calls of the operating system or switches of this thread are in the capture
	slept    int64 // ns that it waited in the operating system or was off the CPU since the end of the last call,
	from, to int64 // the start of that time, and its end
	off      int64 // since when it is off the CPU, or minTime
	lock     bool  // it waited for Python's lock, by a stack or a range
}

// turn is a thread after one of its calls.
type turn struct {
	call    int32 // or trace.None
	kept    int32 // the last held call, an index of kept, or trace.None
	end     int64
	heldEnd int64 // when the last call that waited for the GPU had ended, or minTime
}

func newHands(g *Graph, streams streams, guesses map[guess]*odds) *hands {
	t := g.trace
	none := turn{trace.None, trace.None, minTime, minTime}
	h := &hands{g: g, streams: streams, guesses: guesses, sure: len(guesses) > 0, crews: map[int32]*crew{},
		threads: slices.Repeat([]handThread{{now: none, old: none, off: minTime}}, len(t.Threads)),
		waits:   lists.Map(t.OS.Subjects, func(s trace.Subject) bool { return sleeps(t.OSName(s.What)) })}
	for _, s := range slices.Concat(t.OS.Subjects, t.Sched.Subjects) {
		if s.Thread != trace.None {
			h.threads[s.Thread].seen = true
		}
	}
	h.findLocks()
	return h
}

// findLocks finds the ranges and stacks that mark a wait for Python's lock.
func (h *hands) findLocks() {
	h.locks = lists.Map(h.g.trace.Ranges.Names, func(n trace.RangeName) bool { return trace.WaitsForGIL(n.Text) })
	some := slices.Contains(h.locks, true)
	if !some {
		h.ranges = h.g.trace.Ranges.Len()
	}
	h.locked, h.g.Found.Locks = map[int64]bool{}, some
	frames := &h.g.trace.OSStacks
	if !slices.ContainsFunc(frames.Kinds, func(f trace.Frame) bool { return f.Function == takesLock }) {
		return
	}
	for i := range frames.Len() {
		if frames.Kinds[frames.Kind(i)].Function == takesLock {
			h.locked[frames.Stack(i)], h.g.Found.Locks = true, true
		}
	}
}

// takesLock is the function of CPython in which a thread waits for the interpreter's lock.
const takesLock = "take_gil"

// sleepers are the beginnings of functions of the operating system in which a thread waits for something.
var sleepers = []string{"futex", "sem_wait", "sem_timedwait", "sem_clockwait", "poll", "ppoll", "epoll_", "select",
	"pselect", "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "pthread_mutex_", "pthread_rwlock_",
	"pthread_join", "pthread_timedjoin", "pthread_barrier_wait", "read", "recv", "accept", "wait", "sigwait", "sigtimedwait",
	"sleep", "usleep", "nanosleep", "clock_nanosleep", "mq_receive", "mq_timedreceive", "msgrcv", "semop", "semtimedop"}

func sleeps(function string) bool {
	return slices.ContainsFunc(sleepers, func(s string) bool { return strings.HasPrefix(function, s) })
}

// look advances to the rows of the operating system and of the scheduler that began by a moment.
func (h *hands) look(now int64) {
	for os := &h.g.trace.OS; h.os < os.Len() && os.Start(h.os) <= now; h.os++ {
		at := os.Subject(h.os)
		if th := os.Subjects[at].Thread; th != trace.None && h.waits[at] {
			h.threads[th].sleep(os.Start(h.os), os.End(h.os))
			h.threads[th].lock = h.threads[th].lock || h.locked[os.Number(h.os)]
		}
	}
	for r := &h.g.trace.Ranges; h.ranges < r.Len() && r.Start(h.ranges) <= now; h.ranges++ {
		if th := r.Thread(h.ranges); th != trace.None && h.locks[r.Name(h.ranges)] {
			h.threads[th].sleep(r.Start(h.ranges), r.End(h.ranges))
			h.threads[th].lock = true
		}
	}
	for sched := &h.g.trace.Sched; h.sched < sched.Len() && sched.Start(h.sched) <= now; h.sched++ {
		s := &sched.Subjects[sched.Subject(h.sched)]
		if s.Thread == trace.None {
			continue
		}
		t, at := &h.threads[s.Thread], sched.Start(h.sched)
		switch comes := s.What&1 == 1; {
		case !comes && t.off == minTime:
			t.off = at
		case comes && t.off != minTime:
			t.sleep(t.off, at)
			t.off = minTime
		}
	}
}

// sleep adds a wait of a thread, if it is after its last call and not known yet.
func (t *handThread) sleep(from, to int64) {
	if from = max(from, t.now.end, t.to); from >= to {
		return
	}
	if t.slept == 0 {
		t.from = from
	}
	t.slept, t.to = t.slept+to-from, to
}

// start begins a call, and returns the last held call of its thread: an index of kept, or trace.None.
func (h *hands) start(c, th int32) int32 {
	at := h.g.api.Start(int(c))
	h.look(at)
	t := &h.threads[th]
	if at < t.now.end { // within another call
		k := t.now.kept
		for k != trace.None && h.over(k) > at {
			k = h.g.kept[k].before
		}
		return k
	}
	if t.launched && h.g.forRoom(c) {
		h.gaps.add(at - t.now.end)
	}
	if t.crew == nil {
		if t.crew = h.crew(h.g.trace.Threads[th].Proc); len(t.crew.threads) < mostPeers {
			t.crew.threads = append(t.crew.threads, th)
		}
	}
	k, count := h.waitedFor(t, t.crew, c, th, at)
	if count == nil {
		h.g.Found.Outside += t.slept
		return t.now.kept
	}
	if *count++; t.lock {
		h.g.Found.Locked++
	}
	k.call, k.before = c, t.now.kept
	h.g.kept = append(h.g.kept, k)
	t.now.kept = int32(len(h.g.kept) - 1)
	return t.now.kept
}

// over is when a held call continued.
func (h *hands) over(k int32) int64 {
	if x := &h.g.kept[k]; x.from == trace.None {
		return h.g.api.End(int(x.call))
	} else {
		return h.g.api.Start(int(x.call))
	}
}

// end records a call that has ended, and whether it waited for the GPU: then it is the last held call.
func (h *hands) end(c, th int32, held bool) {
	t := &h.threads[th]
	launches := h.g.forRoom(c)
	t.launches = t.launches || launches
	start, end := h.g.api.Start(int(c)), h.g.api.End(int(c))
	if start < t.now.end {
		if end > t.now.end {
			t.now.end = end
		}
	} else {
		t.old = t.now
		t.now.call, t.now.end, t.launched = c, end, launches
		t.slept, t.to, t.lock = 0, end, false
	}
	if held {
		t.now.kept, t.now.heldEnd = int32(len(h.g.kept)-1), t.now.end
	}
	t.crew.note(t.now, start)
}

// waitedFor is the target of the wait of a thread that is about to make a call, and the counter that it belongs to; nil
// if no wait is known. own is the time that the thread worked itself before its wait was over.
func (h *hands) waitedFor(t *handThread, own *crew, c, th int32, at int64) (k keptCall, count *int64) {
	first, gap := t.now.call == trace.None, at-t.now.end
	began, until := t.now.end, at
	slept := !first && t.slept >= leastSleep
	switch {
	case first:
		began = minTime // the thread may have been started by any other
	case slept:
		began, until = t.from, min(at, t.to+wakeWithin)
		k.own = max(0, t.to-t.now.end-t.slept)
	case gap < leastSleep, t.seen:
		return k, nil
	}
	var from, held *turn
	n := &h.g.api.Names[h.g.api.Name(int(c))]
	waiter := (n.Sync || n.OldSync) && !t.launches // the work that it will wait for was launched by another thread
	for _, p := range own.threads {
		if p == th {
			continue
		}
		x := &h.threads[p].now
		if x.end > until {
			x = &h.threads[p].old
		}
		if x.call == trace.None || x.end > until || x.end <= began || h.g.api.Names[h.g.api.Name(int(x.call))].Poll {
			continue
		}
		if from == nil || x.end > from.end {
			from = x
		}
		whole := slept || gap >= leastGap || h.g.api.Start(int(x.call)) >= began
		if whole && (x.heldEnd > began || waiter) && (held == nil || x.end > held.end) {
			held = x
		}
	}
	k.from, k.piece = trace.None, trace.None
	count = &h.g.Found.HandedInferred
	if slept || first {
		count = &h.g.Found.Handed
	}
	switch {
	case held != nil:
		from = held
	case slept && h.byWork(&k, own, th, began, until):
		return k, &h.g.Found.ByWork
	default:
		if slept || !first && gap >= leastTurn && t.now.heldEnd < t.now.end {
			if x := h.byProcess(own, th, began, until, slept); x != nil {
				from, count = x, &h.g.Found.ByProcess
				break
			}
		}
		if from != nil && !first && !slept && (gap < leastTurn || at-from.end > gap/2) {
			from = nil
		}
	}
	if from == nil {
		return k, nil
	}
	k.from, k.piece = from.call, from.kept
	return k, count
}
