package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/merge/ranks"
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
	for i := range in.Timeline.Devices {
		d := &in.Timeline.Devices[i]
		for _, p := range processesOn(d) {
			if p == trace.None {
				continue
			}
			if tr := deviceTrack(in, d, p, comms); len(tr.Calls) > 0 {
				add(t.Procs[p].Global, tr)
			}
		}
	}
	for _, p := range mpiProcesses(t) {
		if tr := mpiTrack(in, p); len(tr.Calls) > 0 {
			add(p, tr)
		}
	}
	for i := range in.Timeline.Devices {
		d := &in.Timeline.Devices[i]
		for _, p := range processesOn(d) {
			if p != trace.None && !seen[t.Procs[p].Global] {
				add(t.Procs[p].Global, &ranks.Track{Device: int64(d.ID)})
			}
		}
	}
	return list
}

// processesOn are the processes that worked on a device, in the order of their numbers.
func processesOn(d *timeline.Device) []int32 {
	seen := map[int32]bool{}
	for j := range d.Len() {
		seen[d.Proc(j)] = true
	}
	var list []int32
	for p := range seen {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
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
	list := &x.parts[at/2]
	if k := slices.IndexFunc(*list, func(o ranks.Part) bool { return o.Act == act }); k >= 0 {
		(*list)[k].Time += ns
		return
	}
	*list = append(*list, ranks.Part{Act: act, Time: ns})
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
	for i := range t.NCCL {
		n := &t.NCCL[i]
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
	for i := range in.Timeline.Devices {
		d := &in.Timeline.Devices[i]
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
	call.Kind = ranks.Place(&tr.Kinds, collective)
}

// calls are the ranges of NCCL that a kernel runs: those since the communication kernel before it on its thread, or the
// last one.
func (c *comms) calls(launched int32) []int {
	thread, at, ok := c.launch(launched)
	if !ok {
		return nil
	}
	list := c.byThread[thread]
	end, _ := slices.BinarySearchFunc(list, at+1, func(n int, start int64) int { return cmp.Compare(c.t.NCCL[n].Start, start) })
	before, _ := slices.BinarySearch(c.launches[thread], at)
	from := 0
	if before > 0 {
		from, _ = slices.BinarySearchFunc(list, c.launches[thread][before-1]+1, func(n int, start int64) int {
			return cmp.Compare(c.t.NCCL[n].Start, start)
		})
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

// mpiBlocking are the calls of MPI in which a rank may wait for another.
var mpiBlocking = map[string]string{
	"MPI_Bcast": ranks.Broadcast, "MPI_Scatter": ranks.Scatter, "MPI_Scatterv": ranks.Scatter,
	"MPI_Reduce": ranks.Reduce, "MPI_Gather": ranks.Gather, "MPI_Gatherv": ranks.Gather,
	"MPI_Send": ranks.Send, "MPI_Ssend": ranks.Send, "MPI_Rsend": ranks.Send, "MPI_Recv": ranks.Recv,
	"MPI_Sendrecv": ranks.SendRecv, "MPI_Sendrecv_replace": ranks.SendRecv,
	"MPI_Wait": ranks.Wait, "MPI_Waitall": ranks.Wait, "MPI_Waitany": ranks.Wait, "MPI_Waitsome": ranks.Wait,

	"MPI_Allreduce": kernelname.CollAllReduce, "MPI_Barrier": kernelname.CollBarrier,
	"MPI_Allgather": kernelname.CollAllGather, "MPI_Allgatherv": kernelname.CollAllGather,
	"MPI_Reduce_scatter": kernelname.CollReduceScatter, "MPI_Reduce_scatter_block": kernelname.CollReduceScatter,
	"MPI_Alltoall": kernelname.CollAllToAll, "MPI_Alltoallv": kernelname.CollAllToAll,
	"MPI_Alltoallw": kernelname.CollAllToAll,
}

// mpiProcesses are the processes that call MPI, by their number.
func mpiProcesses(t *trace.Trace) []int64 {
	var list []int64
	for i := range t.MPI {
		if p := t.MPI[i].Thread &^ tidBits; len(list) == 0 || list[len(list)-1] != p {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// What the host does between two collectives besides calls that are traced.
const (
	ownCode    = "its own code"
	otherCalls = "other calls"
	maxActs    = 48
)

// hostCall is a call on a host thread.
type hostCall struct {
	start, end int64
	name       string
	mpi        *trace.MPICall // nil: another
}

// mpiTrack is the blocking communication of a process, with what their thread did in between: the calls that are
// traced, by name, where one holds others the outer one.
func mpiTrack(in *kit.Input, proc int64) *ranks.Track {
	t := in.Trace
	tr := &ranks.Track{Device: -1, Acts: []string{ownCode}}
	comms := mpiComms(t, proc)
	threads := map[int64][]hostCall{}
	for i := range t.MPI {
		if c := &t.MPI[i]; c.Thread&^tidBits == proc {
			threads[c.Thread] = append(threads[c.Thread], hostCall{c.Start, c.End, c.Name, c})
		}
	}
	for i := range t.API.Len() {
		th := t.API.Thread(i)
		if th == trace.None {
			continue
		}
		if g := t.Threads[th].Global; threads[g] != nil {
			threads[g] = append(threads[g], hostCall{t.API.Start(i), t.API.End(i), t.API.Names[t.API.Name(i)].Name, nil})
		}
	}
	type made struct {
		call  ranks.Call
		parts []ranks.Part
	}
	var list []made
	for _, th := range slices.Sorted(maps.Keys(threads)) {
		calls := threads[th]
		slices.SortStableFunc(calls, func(a, b hostCall) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		})
		parts, known := map[string]int64{}, false
		var reached, ended int64 // up to where time is accounted for, and the end of the collective before
		for _, c := range calls {
			kind := mpiBlocking[c.name]
			if c.mpi != nil && comms.alone(c.mpi) {
				kind = ""
			}
			if kind == "" {
				if known && c.end > reached {
					parts[c.name] += c.end - max(c.start, reached)
					reached = c.end
				}
				continue
			}
			if c.start < in.Host.Start || c.start >= in.Host.End {
				known = false
				continue
			}
			m := made{call: ranks.Call{Start: c.start, End: c.end, Kind: ranks.Place(&tr.Kinds, kind)}}
			comms.tell(tr, &m.call, c.mpi)
			if known && reached <= c.start {
				rest := c.start - ended
				for _, name := range slices.Sorted(maps.Keys(parts)) {
					m.parts = append(m.parts, ranks.Part{Act: actOf(tr, name, otherCalls), Time: parts[name]})
					rest -= parts[name]
				}
				if rest > 0 {
					m.parts = append(m.parts, ranks.Part{Act: actOf(tr, ownCode, otherCalls), Time: rest})
				}
			}
			clear(parts)
			reached, ended, known = c.end, c.end, true
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b made) int { return cmp.Compare(a.call.Start, b.call.Start) })
	for i := range list[:min(len(list), ranks.MaxCalls)] {
		tr.Add(list[i].call, list[i].parts)
	}
	return tr
}

// handles are the communicators of a process of MPI, by their handles in calls.
type handles struct {
	of   map[int64]trace.MPIComm
	only bool // the export does not say what handles are, and calls have one at most
}

// mpiComms reads the communicators of a process. A handle that was given to two is of none.
func mpiComms(t *trace.Trace, proc int64) *handles {
	h := &handles{of: map[int64]trace.MPIComm{}}
	rank, ok := t.Ranks[proc]
	one := len(mpiProcesses(t)) == 1
	twice := map[int64]bool{}
	for _, c := range t.MPIComms {
		if !one && (!ok || rank.Rank != c.Rank) {
			continue
		}
		if old, ok := h.of[c.Handle]; ok && old != c {
			twice[c.Handle] = true
		}
		h.of[c.Handle] = c
	}
	for handle := range twice {
		delete(h.of, handle)
	}
	seen := map[int64]bool{}
	for i := range t.MPI {
		if c := &t.MPI[i]; c.Thread&^tidBits == proc && c.Comm != 0 {
			seen[c.Comm] = true
		}
	}
	h.only = len(h.of) == 0 && len(seen) <= 1
	return h
}

// alone reports whether a call is within one rank, if nobody waits.
func (h *handles) alone(c *trace.MPICall) bool { return h.of[c.Comm].Size == 1 }

// tell gives a call its communicator, root or peer, and tag, where the export says what they are. Without communicators
// ranks are those of the run, if all calls are of one.
func (h *handles) tell(tr *ranks.Track, call *ranks.Call, c *trace.MPICall) {
	call.Comm = -1
	comm, ok := h.of[c.Comm]
	if ok && comm.Root >= 0 && comm.ID >= 0 {
		call.Comm = tr.Communicator(fmt.Sprintf("mpi %d.%d of %d", comm.Root, comm.ID, comm.Size), comm.Local)
	}
	if call.Comm >= 0 || h.only || c.Comm == 0 {
		call.Peer = int32(c.Peer + 1)
	}
	if c.Tag < math.MaxInt32 {
		call.Tag = int32(c.Tag + 1)
	}
}

// actOf is the place of a call's name among what a rank does; beyond maxActs all others are one, of the name others.
func actOf(tr *ranks.Track, name, others string) int32 {
	if len(tr.Acts) >= maxActs && !slices.Contains(tr.Acts, name) {
		name = others
	}
	return ranks.Place(&tr.Acts, name)
}
