package section

import (
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// surrounding is what the host did during a gap, on the thread that launched the work after it.
type surrounding struct {
	api      string // the API that thread spent at least half of the gap in; empty: none, it was busy elsewhere
	text     string // name of the innermost NVTX range open in the middle of the gap; empty: none
	pid, tid report.Cell
}

// lookAround finds what the host did during each gap. It goes through calls and ranges once, to pick out those of the
// few threads it needs.
func lookAround(in *Input, gaps []deviceGap) []surrounding {
	t := in.Trace
	list := make([]surrounding, len(gaps))
	threads := make([]int32, len(gaps))
	needed := make([]bool, len(t.Threads))
	for i, g := range gaps {
		threads[i] = trace.None
		if g.Next == trace.None {
			continue
		}
		w := &g.device.Work[g.Next]
		if w.Call != trace.None {
			threads[i] = t.API.Thread(int(w.Call))
		}
		if th := threads[i]; th != trace.None {
			needed[th] = true
			list[i].pid, list[i].tid = report.I(t.Procs[t.Threads[th].Proc].PID), report.I(t.Threads[th].TID)
		}
	}
	calls := onThreads(needed, t.API.Len(), t.API.Thread)
	ranges := onThreads(needed, t.Ranges.Len(), t.Ranges.Thread)
	spent := make([]int64, len(t.API.Names))
	for i, g := range gaps {
		th := threads[i]
		if th == trace.None {
			continue
		}
		list[i].api = mainCall(&t.API, calls[th], g.Start, g.End, spent)
		list[i].text = openAt(in, ranges[th], g.Start+g.Len()/2)
	}
	return list
}

// onThreads lists, for each thread that is needed, its events in order of start.
func onThreads(needed []bool, n int, thread func(i int) int32) [][]int32 {
	lists := make([][]int32, len(needed))
	for i := range n {
		if th := thread(i); th != trace.None && needed[th] {
			lists[th] = append(lists[th], int32(i))
		}
	}
	return lists
}

// mainCall is the API that took at least half of the time from start to end, all of its calls together, or empty. spent
// is scratch, by API name, and zero between calls.
func mainCall(api *trace.API, calls []int32, start, end int64, spent []int64) string {
	var used []int32
	after := sort.Search(len(calls), func(i int) bool { return api.Start(int(calls[i])) >= end })
	for i := after - 1; i >= 0; i-- {
		c := int(calls[i])
		if api.End(c) <= start {
			break // calls of one thread follow each other
		}
		n := api.Name(c)
		if spent[n] == 0 {
			used = append(used, n)
		}
		spent[n] += min(api.End(c), end) - max(api.Start(c), start)
	}
	best := ""
	for _, n := range used {
		if name := api.Names[n].Name; 2*spent[n] >= end-start && (best == "" || name < best) {
			best = name
		}
		spent[n] = 0
	}
	return best
}

// openAt is the name of the innermost range of the thread that is open at a moment.
func openAt(in *Input, ranges []int32, at int64) string {
	r := &in.Trace.Ranges
	after := sort.Search(len(ranges), func(i int) bool { return r.Start(int(ranges[i])) > at })
	if after == 0 {
		return ""
	}
	open := ranges[after-1]
	for i := after - 2; i >= 0 && r.Start(int(ranges[i])) == r.Start(int(open)); i-- {
		if end := r.End(int(ranges[i])); end > at && (end < r.End(int(open)) || r.End(int(open)) <= at) {
			open = ranges[i] // of ranges that start together the shorter one is inside
		}
	}
	for open != trace.None && r.End(int(open)) <= at {
		open = in.Stacks.Parent[open]
	}
	if open == trace.None {
		return ""
	}
	return r.Names[r.Name(int(open))].Text
}
