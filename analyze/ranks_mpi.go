package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

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

// What the host does between two collectives besides calls that are traced.
const (
	ownCode        = "its own code"
	otherCalls     = "other calls"
	whileComputing = " while the GPU computes" // after the name of a call that waits for it
	maxActs        = 48
)

// hostCall is a call on a host thread.
type hostCall struct {
	start, end int64
	name       string
	mpi        *trace.MPICall // nil: another
	computed   int64          // of a call that waits for the GPU: while that computes
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
			threads[c.Thread] = append(threads[c.Thread], hostCall{c.Start, c.End, c.Name, c, 0})
		}
	}
	computes := computing(in, proc)
	for i := range t.API.Len() {
		th := t.API.Thread(i)
		if th == trace.None {
			continue
		}
		if g, n := t.Threads[th].Global, &t.API.Names[t.API.Name(i)]; threads[g] != nil {
			c := hostCall{t.API.Start(i), t.API.End(i), n.Name, nil, 0}
			if n.Sync || n.OldSync || n.SyncCopy {
				c.computed = computes.Within(c.start, c.end)
			}
			threads[g] = append(threads[g], c)
		}
	}
	type made struct {
		call  ranks.Call
		parts []ranks.Part
	}
	var list []made
	for _, th := range slices.Sorted(maps.Keys(threads)) {
		calls := threads[th]
		lists.Sort(calls, func(a, b hostCall) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		})
		parts, known := map[string]int64{}, false
		var reached, ended int64 // up to where time is accounted for, and the end of the collective before
		for _, c := range calls {
			kind := mpiBlocking[c.name]
			if kind == "" || c.mpi != nil && comms.alone(c.mpi) {
				if known && c.end > reached {
					ns := c.end - max(c.start, reached)
					computed := min(ns, c.computed)
					parts[c.name] += ns - computed
					if computed > 0 {
						parts[c.name+whileComputing] += computed
					}
					reached = c.end
				}
				continue
			}
			if c.start < in.Host.Start || c.start >= in.Host.End {
				known = false
				continue
			}
			m := made{call: ranks.Call{Start: c.start, End: c.end, Kind: lists.Place[int32](&tr.Kinds, kind)}}
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
	lists.Sort(list, func(a, b made) int { return cmp.Compare(a.call.Start, b.call.Start) })
	for i := range list[:min(len(list), ranks.MaxCalls)] {
		tr.Add(list[i].call, list[i].parts)
	}
	return tr
}

// computing is when the GPUs of a process compute.
func computing(in *kit.Input, proc int64) interval.Set {
	var ran []interval.Interval
	for _, d := range in.Timeline.Devices {
		for j := range d.Len() {
			if p := d.Proc(j); p != trace.None && in.Trace.Procs[p].Global == proc && d.Class(j) == timeline.Compute {
				ran = append(ran, interval.Interval{Start: d.Start(j), End: d.End(j)})
			}
		}
	}
	return interval.Of(ran)
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
	one := len(t.MPIProcesses()) == 1
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
