package kit

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// mark is a call that a copy makes slow, that synchronises or that allocates.
type mark struct {
	start, end int64
	call       int32
	kind       uint8
}

// threadMarks are the marked calls of a thread.
type threadMarks struct {
	list []mark // by start
	at   int    // those before it ended before the time that was looked at last
	read int    // a read-back, if it is the thread's last call so far: its place plus one
	// old is when it waited in cudaThreadSynchronize, and as long again after each wait: what the thread could have done
	// at most meanwhile.
	old interval.Set
}

// callMarks are, by thread, the calls that copies make slow, those of the Synchronize family and those that allocate;
// waits collects those that wait for a value read back. The mark of a read-back lasts to the end of the call that waits
// for it: the next call of the thread, if it is of that family.
func callMarks(t *trace.Trace, joined *timeline.Calls, allocates []bool, waits map[int32]bool) []threadMarks {
	api, copies, next := &t.API, copyMarks(t, joined, waits), 0
	threads := make([]threadMarks, len(t.Threads))
	for i := range api.Len() {
		first := next
		for next < len(copies) && int(copies[next].call) == i {
			next++
		}
		th, name := api.Thread(i), api.Name(i)
		if th == trace.None {
			continue
		}
		x, sync := &threads[th], api.Names[name].Sync
		if x.read > 0 {
			if m := &x.list[x.read-1]; sync && api.Start(i) >= m.end {
				m.end, waits[int32(i)] = api.End(i), true
			}
			x.read = 0
		}
		if first < next && copies[first].kind == markReadBack {
			x.read = len(x.list) + 1
		}
		x.list = append(x.list, copies[first:next]...)
		switch {
		case sync:
			x.list = append(x.list, mark{api.Start(i), api.End(i), int32(i), markSync})
		case allocates[name]:
			x.list = append(x.list, mark{api.Start(i), api.End(i), int32(i), markAllocation})
		case api.Names[name].OldSync:
			x.old.Add(api.Start(i), api.End(i)+api.Dur(i))
		}
	}
	return threads
}

// copyMarks are the calls that copies make slow, by call.
func copyMarks(t *trace.Trace, joined *timeline.Calls, waits map[int32]bool) (list []mark) {
	c, api := &t.Copies, &t.API
	if joined == nil || !t.Has.CopyKinds {
		return nil
	}
	for i, call := range joined.Copy {
		if call == trace.None || api.Thread(int(call)) == trace.None {
			continue
		}
		var kind uint8
		n, staged := &api.Names[api.Name(int(call))], CopySide(c, i) == MemPageable
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
		list = append(list, mark{api.Start(int(call)), api.End(int(call)), call, kind})
	}
	lists.Sort(list, func(a, b mark) int { return cmp.Compare(a.call, b.call) })
	return list
}

// marked attributes a stretch of a thread's time to the copies around it.
func (x *stepLook) marked(part *latePart, thread int32, lo, hi int64) {
	marks := &x.marks[thread]
	for marks.at < len(marks.list) && marks.list[marks.at].end <= lo {
		marks.at++
	}
	for i := marks.at; i < len(marks.list) && marks.list[i].start < hi; i++ {
		m := &marks.list[i]
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
