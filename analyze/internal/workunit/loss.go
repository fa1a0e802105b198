package workunit

import (
	"cmp"
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// MostIncomplete is the largest share of units with missing events, 0 to 1, that are left out. If more lack events, the
// rest is no sample of the capture: all stay, as lower bounds, see [Result.Incomplete].
const MostIncomplete = 0.5

// hole is a place where an event is missing: a launch without its work, between two launches of its thread that have
// theirs, or a kernel without its call, after one of its stream that has its call.
type hole struct {
	by       int32 // name of what lacks the event: an API name, or a kernel's name, numbered after those
	habit    bool  // common in some programs: a copy of no bytes leaves no row
	at       int64 // of a launch: its call's start
	from, to spot  // moments around it; equal for a kernel
	last     bool  // a launch after which no launch has work: the capture stopped before its work ran, or rows are missing
}

// spot is a moment on a device in a process.
type spot struct {
	device, proc int32
	time         int64
	call         int32 // call whose work it is, until that is located
}

// holes returns the events that are evidently missing from a capture. Messages of nsys do not count, nor do gaps in
// correlation ids, because most calls that nsys does not record use one.
func holes(t *trace.Trace, calls *timeline.Calls) []hole {
	has := &t.Has
	if t.API.Len() == 0 || !has.KernelCorrelation || !has.APICorrelation || !has.KernelPID {
		return nil
	}
	return append(callless(t, calls), workless(t, calls)...)
}

// workless finds launches without work. A launch that failed, or in a stream that is being captured into a graph, has
// none by design.
func workless(t *trace.Trace, calls *timeline.Calls) []hole {
	api := &t.API
	ran := timeline.Launched(t, calls.Kernel, calls.Copy, calls.Set, calls.Graph)
	type lane struct {
		before    int32 // last call with work, or none
		capturing bool
		open      []hole
	}
	lanes := slices.Repeat([]lane{{before: trace.None}}, len(t.Threads))
	var list []hole
	for i := range api.Len() {
		th := api.Thread(i)
		if th == trace.None {
			continue
		}
		l, name := &lanes[th], api.Name(i)
		switch n := &api.Names[name]; {
		case n.BeginsGraph:
			l.capturing = true
		case n.EndsGraph:
			l.capturing = false
		case !n.Launch && !n.AsyncCopy && !n.SyncCopy && !n.Memset:
		case ran[i]:
			for _, h := range l.open {
				h.to.call = int32(i)
				list = append(list, h)
			}
			l.before, l.open = int32(i), l.open[:0]
		case l.before != trace.None && !l.capturing && api.Return(i) == 0:
			l.open = append(l.open, hole{by: name, habit: !n.Launch || n.GraphLaunch, at: api.Start(i),
				from: spot{call: l.before}, to: spot{call: trace.None}})
		}
	}
	for i := range lanes {
		for _, h := range lanes[i].open {
			h.last, h.to = true, h.from
			list = append(list, h)
		}
	}
	locate(t, calls, list)
	return list
}

// locate finds when and where the work of calls ran.
func locate(t *trace.Trace, calls *timeline.Calls, list []hole) {
	if len(list) == 0 {
		return
	}
	at := map[int32]spot{}
	asked := make([]bool, t.API.Len())
	for i := range list {
		for _, call := range [2]int32{list[i].from.call, list[i].to.call} {
			if call != trace.None {
				asked[call] = true
			}
		}
	}
	for _, x := range []struct {
		work  *trace.Work
		calls []int32
	}{{&t.Kernels.Work, calls.Kernel}, {&t.Copies.Work, calls.Copy}, {&t.Sets.Work, calls.Set}, {&t.Graphs.Work, calls.Graph}} {
		for row, call := range x.calls {
			if call != trace.None && asked[call] {
				at[call] = spot{x.work.Device(row), x.work.Proc(row), x.work.Start(row), call}
			}
		}
	}
	for i := range list {
		list[i].from, list[i].to = at[list[i].from.call], at[list[i].to.call]
	}
}

// callless finds kernels without a call that follow one of their stream with a call. Earlier ones were launched before
// the capture began.
func callless(t *trace.Trace, calls *timeline.Calls) (list []hole) {
	k := &t.Kernels
	if !t.Has.EveryLaunch || !slices.Contains(calls.Kernel, trace.None) {
		return nil
	}
	type stream struct {
		proc, device int32
		id           int64
	}
	joined := map[stream]bool{}
	for row, call := range calls.Kernel {
		at := stream{k.Proc(row), k.Device(row), k.Stream(row)}
		switch {
		case call != trace.None:
			joined[at] = true
		case joined[at]:
			here := spot{at.device, at.proc, k.Start(row), trace.None}
			list = append(list, hole{by: int32(len(t.API.Names)) + k.Name(row), habit: true, from: here, to: here})
		}
	}
	return list
}

// lose marks the kept units that lack events, and leaves them out if they are few.
func (r *Result) lose(missing []hole) {
	habit, by := map[int32]bool{}, map[int32]map[int]bool{} // by name: whether it is one, and the units
	kept := lists.Count(r.Units, func(u Unit) bool { return u.State == Kept })
	for i := range missing {
		h := &missing[i]
		habit[h.by] = h.habit
		a, b := r.around(&h.from), r.around(&h.to)
		launched := func(u int) bool {
			return u >= 0 && r.Units[u].HostKnown() && r.Units[u].HostStart <= h.at && h.at < r.Units[u].HostEnd
		}
		switch {
		case h.last:
			if launched(a) && !r.Units[a].closed && r.Units[a].State == Kept {
				r.Units[a].State = Cut
			}
			continue
		case launched(a):
			b = a
		case launched(b):
			a = b
		}
		for _, u := range []int{a, b} {
			if u >= 0 && r.Units[u].State == Kept {
				if by[h.by] == nil {
					by[h.by] = map[int]bool{}
				}
				by[h.by][u] = true
			}
		}
	}
	lost := 0
	for name, units := range by {
		if habit[name] && 2*len(units) > kept {
			continue
		}
		for u := range units {
			if x := &r.Units[u]; !x.incomplete {
				x.incomplete = true
				lost++
			}
		}
	}
	if float64(lost) > MostIncomplete*float64(kept) {
		return
	}
	for i := range r.Units {
		if r.Units[i].incomplete {
			r.Units[i].State = Cut
		}
	}
}

// around is the index of the unit of a device and process that contains a moment, or -1.
func (r *Result) around(s *spot) int {
	at := sort.Search(len(r.Units), func(i int) bool {
		u := &r.Units[i]
		return cmp.Or(cmp.Compare(u.Device, s.device), cmp.Compare(u.Proc, s.proc), cmp.Compare(u.Start, s.time)) > 0
	}) - 1
	if at < 0 || r.Units[at].Device != s.device || r.Units[at].Proc != s.proc || s.time >= r.Units[at].End {
		return -1
	}
	return at
}

// Incomplete returns the number of units that lack events, including those left out for it (n), and of all units that
// are not outside the window (of).
func (r *Result) Incomplete() (n, of int64) {
	for i := range r.Units {
		if u := &r.Units[i]; u.State != Outside {
			of++
			if u.incomplete {
				n++
			}
		}
	}
	return n, of
}
