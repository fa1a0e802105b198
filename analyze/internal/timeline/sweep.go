package timeline

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// sweep goes through the work of a device once, by start, and attributes each moment of the window to its class. Three
// ends describe the work that is still running: those of the compute, communication and copies that last longest. Time
// is attributed when the next piece of work is reached.
type sweep struct {
	d   *Device
	now int64 // everything before is attributed
	end [Idle]int64
	sum Times

	prev, prevEnd int64 // the piece that ended last before now, or none
	cursor        blockedCursor

	visitors []*Visitor
	next     int64     // the first moment at which a visitor needs the sums
	host     *hostWalk // nil: host time is not split
	hole     Gap       // the gap that visitors get
	commed   *interval.Set
}

// Visitor gets the events on a device, as one of several that go through it together. Every function may be missing.
type Visitor struct {
	// Gap is called for every gap, in order. The gap is the visitor's until it returns.
	Gap func(g *Gap)
	// Piece is called for every stretch of idle time of cause host, before Gap is called for its gap. The piece is the
	// visitor's until it returns.
	Piece func(p *HostPiece)
	// Whole is called for the part of each gap that is to be split, in ascending stretches.
	Whole func(thread int32, stretch interval.Interval)
	// Moments, which ascend, are those at which Times become what each class got from the start of the window on. They
	// are put into the memory of Times, if that has room for all.
	Moments []int64
	Times   []Times
	// End is called when the device is through, and Times are there.
	End func()
	// Host says that gaps and times also split the launching thread's activity while their cause was host.
	Host bool

	visited bool
}

// Visited reports whether the visitor has been through a device.
func (v *Visitor) Visited() bool { return v.visited }

func (v *Visitor) next() int64 {
	if n := len(v.Times); n < len(v.Moments) {
		return v.Moments[n]
	}
	return math.MaxInt64
}

// Visit goes through the device once, with all visitors. x may be nil if none of them needs the activity of threads.
func (d *Device) Visit(x *Threads, visitors ...*Visitor) { d.run(x, nil, visitors) }

// run sweeps the whole window. exposed, if given, collects the time in which communication was exposed.
func (d *Device) run(x *Threads, exposed *interval.Set, visitors []*Visitor) Times {
	start := d.window.Start
	s := sweep{d: d, now: start, end: [Idle]int64{start, start, start}, prev: int64(trace.None), visitors: visitors, commed: exposed}
	for _, v := range visitors {
		v.visited = true
		v.Times = slices.Grow(v.Times[:0], len(v.Moments))
		if s.host == nil && (v.Host || v.Piece != nil || v.Whole != nil) {
			s.host = x.walk(visitors)
		}
	}
	s.cursor = newBlockedCursor(d.blocking)
	s.plan()
	for s.next <= s.now && s.next < math.MaxInt64 {
		s.tell(&s.sum)
	}
	window, in := d.window, d.in
	busy := window.Start // up to where anything ran
	at := 0
	for ; at < len(d.order); at++ {
		r := d.order[at]
		from, to := d.Start(at), d.End(at)
		start, end := max(from, window.Start), min(to, window.End)
		if end <= start { // without length in the window: it ends no gap
			if from >= window.End {
				break
			}
			if to <= busy && to >= s.prevEnd || s.prev < 0 && to <= busy {
				s.prev, s.prevEnd = int64(at), to
			}
			continue
		}
		if start > busy {
			s.advance(busy)
			s.idle(start, int32(at), in.calls[r.sort()][r.row()])
		} else {
			s.advance(start)
		}
		c := sortClass[r.sort()]
		s.end[c] = max(s.end[c], end)
		busy = max(busy, end)
		if s.prev < 0 || to >= s.prevEnd {
			s.prev, s.prevEnd = int64(at), to
		}
	}
	s.advance(busy)
	if busy < window.End {
		next, call := trace.None, trace.None
		for ; at < len(d.order); at++ {
			if w := d.Work(at); w.Start == window.End && w.End > w.Start {
				next, call = int32(at), w.Call
				break
			}
		}
		if next == trace.None && d.after.End > d.after.Start {
			call = d.after.Call
		}
		s.idle(window.End, next, call)
	}
	for s.next < math.MaxInt64 {
		s.tell(&s.sum)
	}
	for _, v := range visitors {
		if v.End != nil {
			v.End()
		}
	}
	return s.sum
}

// plan finds the next moment that a visitor needs.
func (s *sweep) plan() {
	s.next = math.MaxInt64
	for _, v := range s.visitors {
		s.next = min(s.next, v.next())
	}
}

// tell calls the visitors that need the current moment.
func (s *sweep) tell(t *Times) {
	for _, v := range s.visitors {
		if v.next() == s.next {
			v.Times = append(v.Times, *t)
		}
	}
	s.plan()
}

// advance attributes the time up to a moment before which something runs.
func (s *sweep) advance(to int64) {
	for s.now < to {
		var until int64
		var into *int64
		switch {
		case s.end[Compute] > s.now:
			until, into = min(s.end[Compute], to), &s.sum.Compute
		case s.end[Comm] > s.now:
			until, into = min(s.end[Comm], to), &s.sum.ExposedComm
			if s.commed != nil {
				s.commed.Add(s.now, until)
			}
		default:
			until, into = to, &s.sum.ExposedCopy
		}
		if s.next <= until {
			whole := *into
			for s.next <= until {
				*into = whole + s.next - s.now
				s.tell(&s.sum)
			}
			*into = whole
		}
		*into += until - s.now
		s.now = until
	}
}

// idle emits a gap up to the start of the work that a call launched.
func (s *sweep) idle(to int64, next, call int32) {
	s.hole = Gap{Interval: interval.Interval{Start: s.now, End: to}, Prev: int32(s.prev), Next: next}
	g := &s.hole
	g.split(call, &s.d.in.trace.API, &s.cursor)
	if s.host != nil {
		s.host.split(g, call, s.d.blocking)
	}
	for s.next <= to {
		part := s.sum
		part.Idle += s.next - s.now
		ns := g.clip(s.next)
		for c := range ns {
			part.Cause[c] += ns[c]
		}
		for c, ns := range g.clipHost(ns[CauseHost]) {
			part.Host[c] += ns
		}
		s.tell(&part)
	}
	s.sum.Idle += g.Len()
	for c := range g.Cause { // in place: a copy of what was just written takes longer than all of the rest
		s.sum.Cause[c] += g.Cause[c]
	}
	if s.host != nil {
		for c := range g.Host {
			s.sum.Host[c] += g.Host[c]
		}
	}
	s.now = to
	for _, v := range s.visitors {
		if v.Gap != nil {
			v.Gap(g)
		}
	}
}

// blockedCursor finds the blocked time of threads in consecutive gaps.
type blockedCursor struct {
	sets []interval.Set
	at   []int // by thread: the first interval that does not end before the gap
}

func newBlockedCursor(sets []interval.Set) blockedCursor {
	return blockedCursor{sets, make([]int, len(sets))}
}

// within is how long the thread was blocked in [lo, hi). It takes longer where lo goes back.
func (c *blockedCursor) within(thread int32, lo, hi int64) (sum int64) {
	set, at := c.sets[thread], c.at[thread]
	for at > 0 && set[at-1].End > lo {
		at--
	}
	for at < len(set) && set[at].End <= lo {
		at++
	}
	c.at[thread] = at
	for ; at < len(set) && set[at].Start < hi; at++ {
		sum += min(hi, set[at].End) - max(lo, set[at].Start)
	}
	return sum
}

// split divides the gap by the call [a0, a1] that launched the next work. Up to a0 it is sync while a blocking call ran
// on the launching thread, else host; from a0 to a1 it is launch; the rest is dependency.
func (g *Gap) split(call int32, api *trace.API, blocked *blockedCursor) {
	if call == trace.None {
		g.Cause[CauseUnknown] = g.Len()
		return
	}
	a0 := min(max(api.Start(int(call)), g.Start), g.End)
	a1 := min(max(api.End(int(call)), a0), g.End)
	if th := api.Thread(int(call)); th != trace.None {
		g.Cause[CauseSync] = blocked.within(th, g.Start, a0)
	}
	g.Cause[CauseHost] = a0 - g.Start - g.Cause[CauseSync]
	g.Cause[CauseLaunch] = a1 - a0
	g.Cause[CauseDependency] = g.End - a1
}

// measure computes the sums of the device over the whole window.
func (d *Device) measure() {
	d.Times = d.run(nil, &d.CommExposed, []*Visitor{{Gap: func(*Gap) { d.GapCount++ }}})
	comm, copies, kernels := d.window.Start, d.window.Start, d.window.Start // up to where they have run
	add := func(sum, reached *int64, start, end int64) {
		if end > *reached {
			*sum += end - max(start, *reached)
			*reached = end
		}
	}
	for i, r := range d.order {
		start, end := max(d.Start(i), d.window.Start), min(d.End(i), d.window.End)
		if end <= start {
			continue
		}
		switch r.sort() {
		case commKernel:
			add(&d.Comm, &comm, start, end)
		case memoryCopy, memorySet:
			add(&d.Copies, &copies, start, end)
		}
		if r.sort() <= commKernel {
			if d.Kernels == 0 {
				d.KernelSpan.Start = start
			}
			add(&d.Kernels, &kernels, start, end)
			d.KernelSpan.End = kernels
		}
	}
}

// ByStart calls visit for the work of all devices by start.
func (tl *Timeline) ByStart(visit func(d *Device, i int)) {
	byStart(tl.Devices, func(n, i int) { visit(tl.Devices[n], i) })
}

// Together calls visit for every stretch of the window in which anything ran on any device, in order; stretches do not
// touch.
func (tl *Timeline) Together(visit func(start, end int64)) {
	var now interval.Interval
	tl.ByStart(func(d *Device, i int) {
		start, end := max(d.Start(i), d.window.Start), min(d.End(i), d.window.End)
		switch {
		case end <= start:
		case now.Len() > 0 && start <= now.End:
			now.End = max(now.End, end)
		default:
			if now.Len() > 0 {
				visit(now.Start, now.End)
			}
			now = interval.Interval{Start: start, End: end}
		}
	})
	if now.Len() > 0 {
		visit(now.Start, now.End)
	}
}
