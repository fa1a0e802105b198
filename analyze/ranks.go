package analyze

import (
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// tidBits are the bits of a globalTid below those of its process.
const tidBits = 0xffffff

// tracks are the collectives of each process of a capture: one track for each device on which it communicates, one for
// its calls of MPI, and one without any where it does neither.
func tracks(in *kit.Input) []*ranks.Track {
	t := in.Trace
	var list []*ranks.Track
	seen := map[int64]bool{}
	add := func(global int64, tr *ranks.Track) {
		tr.Rank, tr.World, tr.PID = -1, -1, global>>24&tidBits
		if r, ok := t.Ranks[global]; ok {
			tr.Rank, tr.World, tr.From = r.Rank, r.World, r.From
		}
		seen[global] = true
		list = append(list, tr)
	}
	comms := newComms(in)
	for _, d := range in.Timeline.Devices {
		for _, p := range processesOn(d) {
			if tr := deviceTrack(in, d, p, comms); len(tr.Calls) > 0 {
				add(t.Procs[p].Global, tr)
			}
		}
	}
	for _, p := range t.MPIProcesses() {
		if tr := mpiTrack(in, p); len(tr.Calls) > 0 {
			add(p, tr)
		}
	}
	for _, d := range in.Timeline.Devices {
		for _, p := range processesOn(d) {
			if !seen[t.Procs[p].Global] {
				add(t.Procs[p].Global, &ranks.Track{Device: int64(d.ID)})
			}
		}
	}
	return list
}

// processesOn are the known processes that worked on a device, in the order of their numbers.
func processesOn(d *timeline.Device) []int32 {
	seen := map[int32]bool{}
	for j := range d.Len() {
		seen[d.Proc(j)] = true
	}
	delete(seen, trace.None)
	return slices.Sorted(maps.Keys(seen))
}

// actsOfDevice are what a device does between two collectives: the classes of its time, and idle time by cause. Idle
// time of cause host has an act for each call that the launching thread was in.
var actsOfDevice = []string{"compute", "other communication", "copies", "idle: sync", "idle: host", "idle: launch",
	"idle: dependency", "idle: unknown"}

// communicates are the kinds of communication kernel in which a rank may wait for another.
var communicates = append(slices.Clone(ranks.Synchronising), ranks.Broadcast, ranks.Reduce, ranks.SendRecv)

// deviceTrack is the communication kernels that a process runs on a device within the window.
func deviceTrack(in *kit.Input, d *timeline.Device, proc int32, comms *comms) *ranks.Track {
	tr := &ranks.Track{Device: int64(d.ID), Acts: slices.Clone(actsOfDevice)}
	var work []int
	var edges []int64 // when kernels begin and end
	for j := range d.Len() {
		if d.Class(j) == timeline.Comm && d.Proc(j) == proc && d.Start(j) >= in.Span.Start && len(work) < ranks.MaxCalls &&
			slices.Contains(communicates, in.Kinds[in.Trace.Kernels.Name(d.Row(j))].Collective) {
			work = append(work, j)
			edges = append(edges, d.Start(j), d.End(j))
		}
	}
	slices.Sort(edges)
	var moments []int64
	for k := 1; k < len(work); k++ {
		if end, start := d.End(work[k-1]), d.Start(work[k]); end <= start {
			moments = append(moments, end, start)
		}
	}
	late := lateIn{in: in, tr: tr, moments: moments, parts: make([][]ranks.Part, len(moments)/2)}
	v, all := timeline.Visitor{Piece: late.piece, Moments: moments}, timeline.Visitor{Moments: slices.Compact(edges)}
	d.Visit(in.Threads, &v, &all)
	computed := func(at int64) int64 {
		i, _ := slices.BinarySearch(all.Moments, at)
		return all.Times[i].Compute
	}
	times := v.Times
	at := 0
	for k, j := range work {
		c := ranks.Call{Start: d.Start(j), End: d.End(j)}
		c.Hidden = min(c.End-c.Start, computed(c.End)-computed(c.Start))
		comms.tell(tr, &c, d.Call(j), proc, in.Kinds[in.Trace.Kernels.Name(d.Row(j))].Collective)
		var parts []ranks.Part
		if k > 0 && d.End(work[k-1]) <= c.Start {
			x := times[at+1].Minus(&times[at])
			host := late.parts[at/2]
			at += 2
			for _, p := range host {
				x.Cause[timeline.CauseHost] -= p.Time
			}
			for act, ns := range append([]int64{x.Compute, x.ExposedComm, x.ExposedCopy}, x.Cause[:]...) {
				if ns > 0 {
					parts = append(parts, ranks.Part{Act: int32(act), Time: ns})
				}
			}
			parts = append(parts, host...)
		}
		tr.Add(c, parts)
	}
	return tr
}

// lateIn sorts idle time of cause host between collectives by what the launching thread did.
type lateIn struct {
	in      *kit.Input
	tr      *ranks.Track
	moments []int64        // end of a collective and start of the next, by turns
	parts   [][]ranks.Part // by pair of moments
}

// piece adds a stretch of such time. What nothing is known of stays idle time of cause host.
func (x *lateIn) piece(p *timeline.HostPiece) {
	name := ""
	switch call, ok := kit.LateCallOf(x.in.Trace, p); {
	case ok:
		name = ranks.HostIn + call.Name(x.in.Trace)
	case p.Cause == timeline.HostNotScheduled:
		name = ranks.HostIn + ranks.OnNoCPU
	case p.Cause == timeline.HostRunning:
		name = ranks.HostIn + ownCode
	default:
		return
	}
	at, found := slices.BinarySearch(x.moments, p.Start)
	if !found {
		at--
	}
	if at < 0 || at%2 == 1 { // not between two collectives
		return
	}
	ns := min(p.End, x.moments[at+1]) - p.Start
	act := actOf(x.tr, name, ranks.HostIn+otherCalls)
	same := func(o ranks.Part) bool { return o.Act == act }
	lists.Entry(&x.parts[at/2], same, ranks.Part{Act: act}).Time += ns
}

// comms finds the communicator of a kernel: that of the range of NCCL around the call that launched it, or of the last
// one before it on that thread, since calls of a group are launched at the group's end.
type comms struct {
	t        *trace.Trace
	byThread map[int64][]int   // by globalTid: places in NCCL, by start
	launches map[int64][]int64 // by globalTid: when communication kernels were launched, ascending
	local    map[commOf]int64  // rank in a communicator; -1 if a process has several
	size     map[uint64]int64
}

// commOf is a communicator in one process.
type commOf struct {
	proc int64 // its globalPid
	comm uint64
}

func newComms(in *kit.Input) *comms {
	t := in.Trace
	c := &comms{t: t, byThread: map[int64][]int{}, launches: map[int64][]int64{}, local: map[commOf]int64{}, size: map[uint64]int64{}}
	for i, n := range t.NCCL {
		if n.Rank < 0 || n.Bytes >= 0 { // a call; others begin a communicator
			c.byThread[n.Thread] = append(c.byThread[n.Thread], i)
			continue
		}
		of, rank := commOf{n.Thread &^ tidBits, n.Comm}, n.Rank
		if old, ok := c.local[of]; ok && old != rank {
			rank = -1
		}
		c.local[of], c.size[n.Comm] = rank, n.World
	}
	for _, d := range in.Timeline.Devices {
		for j := range d.Len() {
			if d.Class(j) == timeline.Comm {
				if thread, at, ok := c.launch(d.Call(j)); ok {
					c.launches[thread] = append(c.launches[thread], at)
				}
			}
		}
	}
	for _, list := range c.launches {
		slices.Sort(list)
	}
	return c
}

// launch is the thread that a kernel was launched on, and when; not ok if that is not known, and of graphs.
func (c *comms) launch(call int32) (thread, at int64, ok bool) {
	api := &c.t.API
	if call == trace.None || api.Thread(int(call)) == trace.None || api.Names[api.Name(int(call))].GraphLaunch {
		return 0, 0, false
	}
	return c.t.Threads[api.Thread(int(call))].Global, api.Start(int(call)), true
}

// tell gives a kernel of a collective its kind and, where payloads say so, its communicator and its root or its other
// sides.
func (c *comms) tell(tr *ranks.Track, call *ranks.Call, launched, proc int32, collective string) {
	call.Comm = -1
	list := c.calls(launched)
	if len(list) > 0 {
		n := &c.t.NCCL[list[len(list)-1]]
		local, ok := c.local[commOf{c.t.Procs[proc].Global, n.Comm}]
		if !ok {
			local = -1
		}
		call.Comm = tr.Communicator(strconv.FormatUint(n.Comm, 16), local)
		switch collective {
		case ranks.Broadcast, ranks.Reduce:
			call.Peer = int32(n.Peer + 1)
		case ranks.SendRecv:
			collective = c.sides(call, list, local)
		}
	}
	call.Kind = lists.Place[int32](&tr.Kinds, collective)
}

// calls are the ranges of NCCL that a kernel runs: those since the communication kernel before it on its thread, or the
// last one.
func (c *comms) calls(launched int32) []int {
	thread, at, ok := c.launch(launched)
	if !ok {
		return nil
	}
	list := c.byThread[thread]
	upTo := func(at int64) int {
		return sort.Search(len(list), func(i int) bool { return c.t.NCCL[list[i]].Start > at })
	}
	before, _ := slices.BinarySearch(c.launches[thread], at)
	from, end := 0, upTo(at)
	if before > 0 {
		from = upTo(c.launches[thread][before-1])
	}
	return list[max(0, min(from, end-1)):end]
}

// sides finds the ranks that a kernel sends to and receives from, and returns its kind of call: an AllToAll if these
// are all others. In any other call, a side with more than one rank counts as unknown.
func (c *comms) sides(call *ranks.Call, list []int, local int64) string {
	to, from := map[int64]bool{}, map[int64]bool{}
	for _, i := range list {
		n := &c.t.NCCL[i]
		switch {
		case n.Op == "alltoall":
			return kernelname.CollAllToAll
		case n.Peer < 0 || n.Peer == local:
		case n.Op == "send":
			to[n.Peer] = true
		case n.Op == "recv":
			from[n.Peer] = true
		}
	}
	others := c.size[c.t.NCCL[list[0]].Comm] - 1
	if n := int64(len(to)); n > 2 && n == int64(len(from)) && (n == others || n > others && local < 0) {
		return kernelname.CollAllToAll
	}
	one := func(side map[int64]bool) int32 {
		for peer := range side {
			if len(side) == 1 && peer < math.MaxInt32 {
				return int32(peer) + 1
			}
		}
		return 0
	}
	switch {
	case len(to)+len(from) == 0:
		return ranks.SendRecv
	case len(from) == 0:
		call.Peer = one(to)
		return ranks.Send
	case len(to) == 0:
		call.Peer = one(from)
		return ranks.Recv
	}
	call.Peer, call.Source = one(to), one(from)
	return ranks.SendRecv
}

// actOf is the place of a call's name among what a rank does; beyond maxActs all others are one, of the name others.
func actOf(tr *ranks.Track, name, others string) int32 {
	if len(tr.Acts) >= maxActs && !slices.Contains(tr.Acts, name) {
		name = others
	}
	return lists.Place[int32](&tr.Acts, name)
}
