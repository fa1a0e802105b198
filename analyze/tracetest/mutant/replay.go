package mutant

import (
	"cmp"
	"slices"
	"strings"
)

const (
	shortestGap    = 1_000 // ns between two pieces of work that nothing else keeps apart
	shortestLaunch = 2_500 // ns from a launch call's start to its work
	shortestWait   = 1_000 // ns that a blocking call takes where it waits for nothing
	waitTail       = 3_000 // ns from the end of work to the end of an added blocking call
	longLaunch     = 20_000
	farAhead       = 100_000 // ns from the end of a launch call to the start of its work, with a full queue between
)

// device is one device while it is replayed.
type device struct {
	works  []int // by start
	pos    int   // works before are placed
	last   int64 // their latest end in the mutant
	ends   []int // works by end
	starts cursor
	hosts  cursor
}

// cursor walks over works in order of their end in the base.
type cursor struct {
	pos   int
	known bool  // there was one
	was   int64 // latest end in the base
	to    int64 // latest end in the mutant
}

// hostEvent is the start or the end of a call.
type hostEvent struct {
	t    int64
	rank int // at one time: ends, then added calls, then starts
	call int
	end  bool
}

// replay places every event in time, by the model in the package's comment.
func (c *Capture) replay() {
	for proc := range c.procs {
		c.replayProcess(proc)
	}
	c.moveOthers()
}

func (c *Capture) replayProcess(proc int) {
	var devices []*device
	for _, dev := range c.devices() {
		if c.lanes[dev].proc != proc {
			continue
		}
		d := &device{works: c.onGPU[dev]}
		d.ends = slices.Clone(d.works)
		slices.SortStableFunc(d.ends, func(a, b int) int { return cmp.Compare(c.events[a].end, c.events[b].end) })
		devices = append(devices, d)
	}
	placed := make([]bool, len(c.events)) // works and calls
	var host []hostEvent
	for i := range c.events {
		e := &c.events[i]
		if e.kind != call || e.proc != proc {
			continue
		}
		if e.fresh {
			host = append(host, hostEvent{e.start, 1, i, false})
			continue
		}
		host = append(host, hostEvent{e.start, 2, i, false}, hostEvent{e.end, 0, i, true})
		if e.start == e.end {
			host[len(host)-1].rank = 3
		}
	}
	slices.SortStableFunc(host, func(a, b hostEvent) int {
		return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.rank, b.rank))
	})

	c.first = map[int]int{}
	for _, d := range devices {
		for _, w := range d.works {
			by := c.events[w].call
			if old, ok := c.first[by]; !ok || c.events[w].start < c.events[old].start {
				c.first[by] = w
			}
		}
	}
	c.quick = c.latencies(devices)
	c.full = map[int]bool{}
	for _, d := range devices {
		c.findFull(d)
	}
	var last *event         // the call that ended last, in the base
	own := map[int]*event{} // by thread
	ahead := func() {       // places the work whose call is known
		for _, d := range devices {
			for d.pos < len(d.works) && c.place(d, placed) {
				d.pos++
			}
		}
	}
	for _, h := range host {
		e := &c.events[h.call]
		if !h.end {
			c.begin(e, last, own[e.lane])
			placed[h.call] = true
		}
		if h.end || e.fresh {
			ahead()
			c.finish(h.call, devices, placed)
			last, own[e.lane] = e, e
		}
	}
	ahead()
	for _, d := range devices { // work whose call never came: without it
		for ; d.pos < len(d.works); d.pos++ {
			c.events[d.works[d.pos]].call = -1
			c.place(d, placed)
		}
	}
}

// begin places the start of a call, as long after the last one as it was.
func (c *Capture) begin(e, last, own *event) {
	e.at = e.start
	if last != nil {
		e.at = last.to + e.start - last.end
	}
	if own != nil {
		e.at = max(e.at, own.to+min(e.start-own.end, shortestGap))
	}
	switch {
	case last == nil:
	case e.goes > 0:
		e.at -= max(0, min(e.goes, e.start-last.end))
		if own != nil {
			e.at = max(e.at, own.to)
		}
	case e.dead:
		e.at = last.to
	}
	e.at += e.stall
}

// finish places the end of a call.
func (c *Capture) finish(i int, devices []*device, placed []bool) {
	e := &c.events[i]
	if e.dead {
		e.to = e.at
		return
	}
	var was, to int64
	known := false
	for _, d := range devices {
		if e.wait { // all that is placed was launched before
			to, known = max(to, d.last), known || d.pos > 0
			continue
		}
		c.advance(&d.hosts, d.ends, e.end, placed)
		if d.hosts.known {
			was, to, known = max(was, d.hosts.was), max(to, d.hosts.to), true
		}
	}
	switch {
	case e.wait:
		e.to = e.at + e.dur
		if known {
			e.to = max(e.to, to+waitTail)
		}
	case !known || !c.blocks(e) && !c.blocksForOwn(i):
		e.to = e.at + e.dur
	case was > e.start && e.loose:
		e.to = e.at + min(e.dur, shortestWait)
	case was > e.start && e.free:
		e.to = max(e.at, to)
	case was > e.start: // it waited
		e.to = max(e.at+min(e.dur, shortestWait), to+e.end-was)
	default:
		e.to = max(e.at+e.dur, to+min(e.dur, shortestWait))
	}
}

// blocks reports whether a call waits for work of the GPU.
func (c *Capture) blocks(e *event) bool {
	copies := strings.Contains(e.name, "Memcpy") && !strings.Contains(e.name, "Async")
	return copies || strings.Contains(e.name, "Synchronize")
}

// blocksForOwn reports whether a call waited for the copy that it made, as one of pageable memory does, or for room in
// the queue of launches.
func (c *Capture) blocksForOwn(call int) bool {
	w, ok := c.first[call]
	if !ok {
		return false
	}
	e, own := &c.events[call], &c.events[w]
	if own.row < 0 {
		return false
	}
	if t := c.tables[own.table]; t.name == memcpyTable {
		src, _ := t.num(own.row, "srcKind")
		dst, _ := t.num(own.row, "dstKind")
		return own.end <= e.end && (src == 0 || dst == 0)
	}
	return strings.Contains(e.name, "Launch") && e.end-e.start > longLaunch && own.start-e.end > farAhead && c.full[call]
}

// latencies are the medians from the start of a call to its copy or fill, where that waited for nothing else, by table.
func (c *Capture) latencies(devices []*device) map[int]int64 {
	samples := map[int][]float64{}
	for _, d := range devices {
		var reached int64
		for _, w := range d.works {
			e := &c.events[w]
			if e.call >= 0 && c.events[e.call].start > reached && !c.isKernel(e) {
				samples[e.table] = append(samples[e.table], float64(e.start-c.events[e.call].start))
			}
			reached = max(reached, e.end)
		}
	}
	list := map[int]int64{}
	for table, s := range samples {
		list[table] = int64(median(s))
	}
	return list
}

// findFull finds the calls that launched work into a device with nearly as much launched work ahead of it as there ever
// was.
func (c *Capture) findFull(d *device) {
	ahead := make([]int, len(d.works))
	most, started := 0, 0
	for i, w := range d.works {
		by := c.events[w].call
		if by < 0 {
			continue
		}
		for started < i && c.events[d.works[started]].start < c.events[by].end {
			started++
		}
		ahead[i] = i - started
		most = max(most, ahead[i])
	}
	for i, w := range d.works {
		if by := c.events[w].call; by >= 0 && 10*ahead[i] >= 9*most {
			c.full[by] = true
		}
	}
}

// place places the next work of a device, unless its call is not placed yet.
func (c *Capture) place(d *device, placed []bool) bool {
	w := d.works[d.pos]
	e := &c.events[w]
	if e.call >= 0 && !placed[e.call] {
		return false
	}
	c.advance(&d.starts, d.ends, e.start, placed)
	s := &d.starts
	placed[w] = true
	var by *event
	launch, quick := int64(0), max(shortestLaunch, c.quick[e.table]) // from the start of the call
	if e.call >= 0 {
		by = &c.events[e.call]
		launch = e.start - by.start // a shorter call brings it nearer
		launch = max(min(launch, shortestLaunch), launch-max(0, min(by.end, e.start)-by.start-by.dur))
	}
	switch {
	case s.known && by != nil && by.start > s.was && !e.fresh: // it waited for its launch
		e.at = max(s.to+min(e.start-s.was, shortestGap), by.at+launch)
	case s.known:
		gap := e.start - s.was
		if e.fresh {
			gap = shortestGap
		}
		e.at = s.to + gap
		if by != nil {
			e.at = max(e.at, by.at+min(launch, quick))
			if e.fresh {
				e.at = max(e.at, by.at+shortestLaunch)
			}
		}
	case by != nil:
		e.at = by.at + launch
	default:
		e.at = e.start
	}
	e.to = e.at + e.dur
	if e.dead {
		e.to = e.at
	}
	d.last = max(d.last, e.to)
	return true
}

// advance takes up the work that had ended by t in the base. Work that is removed moves the base's clock only.
func (c *Capture) advance(k *cursor, ends []int, t int64, placed []bool) {
	for ; k.pos < len(ends); k.pos++ {
		w := ends[k.pos]
		e := &c.events[w]
		if e.end > t || !placed[w] {
			return
		}
		switch {
		case !k.known:
			k.to = e.at
			if !e.dead {
				k.to = e.to
			}
		case !e.dead:
			k.to = max(k.to, e.to)
		}
		k.known, k.was = true, e.end
	}
}

// moveOthers moves ranges and the like with the calls of their thread, or of their process.
func (c *Capture) moveOthers() {
	type point struct{ t, to int64 }
	byThread, byProc := map[int][]point{}, map[int][]point{}
	for i := range c.events {
		if e := &c.events[i]; e.kind == call && (!e.fresh || e.inside) {
			p := []point{{e.start, e.at}, {e.end, e.to}}
			byThread[e.lane], byProc[e.proc] = append(byThread[e.lane], p...), append(byProc[e.proc], p...)
		}
	}
	if len(byProc) == 0 { // no calls: they move with the work
		for i := range c.events {
			if e := &c.events[i]; e.kind == work && !e.fresh {
				byProc[e.proc] = append(byProc[e.proc], point{e.start, e.at}, point{e.end, e.to})
			}
		}
	}
	for _, m := range []map[int][]point{byThread, byProc} {
		for _, l := range m {
			slices.SortStableFunc(l, func(a, b point) int { return cmp.Compare(a.t, b.t) })
			for i := 1; i < len(l); i++ {
				l[i].to = max(l[i].to, l[i-1].to)
			}
		}
	}
	move := func(l []point, t int64) int64 {
		at, _ := slices.BinarySearchFunc(l, t+1, func(p point, t int64) int { return cmp.Compare(p.t, t) })
		switch {
		case len(l) == 0:
			return t
		case at == 0:
			return min(t+l[0].to-l[0].t, l[0].to)
		case at == len(l):
			return l[at-1].to + t - l[at-1].t
		}
		return min(l[at-1].to+t-l[at-1].t, l[at].to)
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != other {
			continue
		}
		if e.around != nil {
			first, last := &c.events[e.around[0]], &c.events[e.around[1]]
			e.at, e.to = first.at-first.stall, last.to
			if e.begins {
				e.to = last.at
			}
			continue
		}
		if e.call >= 0 { // what is recorded about a call ends with it
			by := &c.events[e.call]
			e.at = by.at + e.start - by.start
			e.to = max(e.at, by.to-(by.end-e.end))
			e.dead = e.dead || by.dead
			continue
		}
		l := byThread[e.lane]
		if len(l) == 0 {
			l = byProc[e.proc]
		}
		e.at = move(l, e.start)
		e.to = max(e.at, move(l, e.end))
	}
}
