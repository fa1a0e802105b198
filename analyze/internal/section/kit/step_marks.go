package kit

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// mark is a call that a copy makes slow.
type mark struct {
	start, end int64
	call       int32
	kind       uint8
}

// copyMarks are the calls that copies make slow, by thread; waits collects those that wait for a value read back.
func copyMarks(t *trace.Trace, joined *timeline.Calls, waits map[int32]bool) map[int32][]mark {
	list := map[int32][]mark{}
	c, api := &t.Copies, &t.API
	for i := range c.Len() {
		call := trace.None
		if joined != nil && t.Has.CopyKinds {
			call = joined.Copy[i]
		}
		if call == trace.None {
			continue
		}
		th, n := api.Thread(int(call)), &api.Names[api.Name(int(call))]
		if th == trace.None {
			continue
		}
		var kind uint8
		staged := CopySide(c, i) == MemPageable
		switch {
		case c.Kind(i) == CopyDtoH && c.Bytes(i) <= ReadBackBytes:
			kind = markReadBack
			waits[call] = n.SyncCopy || staged && 2*(api.End(int(call))-c.End(i)) <= api.Dur(int(call))
		case n.AsyncCopy && staged && c.Bytes(i) >= StagedBytes:
			kind = markStaged
		case n.SyncCopy && c.Bytes(i) > ReadBackBytes:
			kind = markBlocked
		default:
			continue
		}
		list[th] = append(list[th], mark{api.Start(int(call)), api.End(int(call)), call, kind})
	}
	for th := range list {
		lists.Sort(list[th], func(a, b mark) int { return cmp.Compare(a.start, b.start) })
	}
	addSyncs(api, list, waits)
	return list
}

// addSyncs adds the calls of the Synchronize family, and those that allocate. The mark of a read-back lasts to the end
// of the call that waits for it: the next call of the thread, where it is one of these.
func addSyncs(api *trace.API, list map[int32][]mark, waits map[int32]bool) {
	next, at, syncs := map[int32]int{}, map[int32]int{}, map[int32][]mark{}
	allocates := lists.Map(api.Names, func(n trace.APIName) bool { return Allocates(n.Name) })
	for i := range api.Len() {
		th, name := api.Thread(i), api.Name(i)
		sync := api.Names[name].Sync
		switch {
		case th == trace.None:
			continue
		case sync:
			syncs[th] = append(syncs[th], mark{api.Start(i), api.End(i), int32(i), markSync})
		case allocates[name]:
			syncs[th] = append(syncs[th], mark{api.Start(i), api.End(i), int32(i), markAllocation})
		}
		marks := list[th]
		if len(marks) == 0 {
			continue
		}
		if n, ok := next[th]; ok && marks[n].call != int32(i) {
			if sync && api.Start(i) >= marks[n].end {
				marks[n].end, waits[int32(i)] = api.End(i), true
			}
			delete(next, th)
		}
		for at[th] < len(marks) && marks[at[th]].start < api.Start(i) {
			at[th]++
		}
		if n := at[th]; n < len(marks) && marks[n].call == int32(i) && marks[n].kind == markReadBack {
			next[th] = n
		}
	}
	for th, more := range syncs {
		list[th] = append(list[th], more...)
		lists.Sort(list[th], func(a, b mark) int { return cmp.Compare(a.start, b.start) })
	}
}

// oldWaits are the times, by thread, of waits in cudaThreadSynchronize, and as long again after each: what the thread
// could have done at most meanwhile.
func oldWaits(api *trace.API) map[int32]interval.Set {
	list := map[int32]interval.Set{}
	if !slices.ContainsFunc(api.Names, func(n trace.APIName) bool { return n.OldSync }) {
		return list
	}
	for i := range api.Len() {
		if th := api.Thread(i); th != trace.None && api.Names[api.Name(i)].OldSync {
			set := list[th]
			set.Add(api.Start(i), api.End(i)+api.Dur(i))
			list[th] = set
		}
	}
	return list
}

// marked attributes a stretch of a thread's time to the copies around it.
func (x *stepLook) marked(part *latePart, thread int32, lo, hi int64) {
	marks, at := x.marks[thread], x.markAt[thread]
	for at < len(marks) && marks[at].end <= lo {
		at++
	}
	x.markAt[thread] = at
	for ; at < len(marks) && marks[at].start < hi; at++ {
		m := &marks[at]
		ns := min(hi, m.end) - max(lo, m.start)
		if ns <= 0 {
			continue
		}
		switch m.kind {
		case markReadBack:
			rng, _ := x.places.Place(m.call)
			x.reads[rng] += ns
			x.step.ReadBack += ns
			x.counted[m.call] = true
		case markStaged:
			x.step.Staged += ns
		case markBlocked:
			x.step.Blocked += ns
		case markSync:
			part.Syncs[x.in.Trace.API.Name(int(m.call))] += ns
		}
	}
}

// Blocking is the blocking call that at least 30 % of a time is in, or empty.
func (w *IdlePlace) Blocking(api *trace.API, of int64) string {
	list, _ := leading(w.blocking(api), of)
	return lists.Nth(list, 0, "")
}

// blocking is the time in blocking calls, by name.
func (w *IdlePlace) blocking(api *trace.API) map[string]int64 {
	calls := map[string]int64{}
	for name, ns := range w.Syncs {
		calls[api.Names[name].Name] += ns
	}
	return calls
}
