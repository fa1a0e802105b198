package analyze

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
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
	comms := newComms(t)
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
func processesOn(d *attrib.Device) []int32 {
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

// deviceTrack is the collectives that a process runs on a device within the window.
func deviceTrack(in *kit.Input, d *attrib.Device, proc int32, comms *comms) *ranks.Track {
	tr := &ranks.Track{Device: int64(d.ID), Acts: slices.Clone(actsOfDevice)}
	var work []int
	for j := range d.Len() {
		if d.Class(j) == attrib.Comm && d.Proc(j) == proc && d.Start(j) >= in.Span.Start && len(work) < ranks.MaxCalls &&
			slices.Contains(ranks.Synchronising, in.Kinds[in.Trace.Kernels.Name(d.Row(j))].Collective) {
			work = append(work, j)
		}
	}
	var moments []int64
	for k := 1; k < len(work); k++ {
		if end, start := d.End(work[k-1]), d.Start(work[k]); end <= start {
			moments = append(moments, end, start)
		}
	}
	late := lateIn{in: in, tr: tr, moments: moments, parts: make([][]ranks.Part, len(moments)/2)}
	v := attrib.Visitor{Piece: late.piece, Moments: moments}
	d.Visit(in.Threads, &v)
	times := v.Times
	at := 0
	for k, j := range work {
		c := ranks.Call{Start: d.Start(j), End: d.End(j), Comm: -1,
			Kind: ranks.Place(&tr.Kinds, in.Kinds[in.Trace.Kernels.Name(d.Row(j))].Collective)}
		if name := comms.of(d.Call(j)); name != "" {
			c.Comm = ranks.Place(&tr.Comms, name)
		}
		var parts []ranks.Part
		if k > 0 && d.End(work[k-1]) <= c.Start {
			x := times[at+1].Minus(&times[at])
			host := late.parts[at/2]
			at += 2
			for _, p := range host {
				x.Cause[attrib.CauseHost] -= p.Time
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
func (x *lateIn) piece(p *attrib.HostPiece) {
	name := ""
	switch call, ok := x.in.LateCallOf(p); {
	case ok:
		name = ranks.HostIn + call.Name(x.in.Trace)
	case p.Cause == attrib.HostNotScheduled:
		name = ranks.HostIn + ranks.OnNoCPU
	case p.Cause == attrib.HostRunning:
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
	byThread map[int64][]int // by globalTid: places in NCCL, by start
}

func newComms(t *trace.Trace) *comms {
	c := &comms{t: t, byThread: map[int64][]int{}}
	for i := range t.NCCL {
		if n := &t.NCCL[i]; n.Rank < 0 || n.Bytes >= 0 { // a call; others begin a communicator
			c.byThread[n.Thread] = append(c.byThread[n.Thread], i)
		}
	}
	return c
}

// of is the communicator of what an API call launched; empty where nothing says it.
func (c *comms) of(call int32) string {
	api := &c.t.API
	if call == trace.None || api.Thread(int(call)) == trace.None || api.Names[api.Name(int(call))].GraphLaunch {
		return ""
	}
	list := c.byThread[c.t.Threads[api.Thread(int(call))].Global]
	at, exact := slices.BinarySearchFunc(list, api.Start(int(call)), func(n int, start int64) int {
		return cmp.Compare(c.t.NCCL[n].Start, start)
	})
	if !exact {
		at--
	}
	if at < 0 {
		return ""
	}
	return strconv.FormatUint(c.t.NCCL[list[at]].Comm, 16)
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
	peer       int32 // rank plus 1; 0 unknown
}

// mpiTrack is the blocking communication of a process, with what their thread did in between: the calls that are traced,
// by name, where one holds others the outer one.
func mpiTrack(in *kit.Input, proc int64) *ranks.Track {
	t := in.Trace
	tr := &ranks.Track{Device: -1, Acts: []string{ownCode}}
	threads := map[int64][]hostCall{}
	for i := range t.MPI {
		if c := &t.MPI[i]; c.Thread&^tidBits == proc {
			threads[c.Thread] = append(threads[c.Thread], hostCall{c.Start, c.End, c.Name, int32(c.Peer + 1)})
		}
	}
	for i := range t.API.Len() {
		th := t.API.Thread(i)
		if th == trace.None {
			continue
		}
		if g := t.Threads[th].Global; threads[g] != nil {
			threads[g] = append(threads[g], hostCall{t.API.Start(i), t.API.End(i), t.API.Names[t.API.Name(i)].Name, 0})
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
			m := made{call: ranks.Call{Start: c.start, End: c.end, Comm: -1, Peer: c.peer, Kind: ranks.Place(&tr.Kinds, kind)}}
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

// actOf is the place of a call's name among what a rank does; beyond maxActs all others are one, of the name others.
func actOf(tr *ranks.Track, name, others string) int32 {
	if len(tr.Acts) >= maxActs && !slices.Contains(tr.Acts, name) {
		name = others
	}
	return ranks.Place(&tr.Acts, name)
}
