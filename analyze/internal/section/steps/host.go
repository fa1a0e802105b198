package steps

import (
	"cmp"
	"math"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// unitCalls are the API calls of the units of a set for which the host's time of work is known.
type unitCalls struct {
	unitWork
	rows int
}

// callsOf goes through the API calls once.
func callsOf(in *kit.Input, s *unitSet) *unitCalls {
	api, x := &in.Trace.API, in.Units
	byProc := make([][]int32, len(in.Trace.Procs)) // places in known, by host start
	var known []int32
	for _, u := range s.Units {
		if p := x.Units[u].Proc; p != trace.None && x.Units[u].HostKnown() {
			byProc[p] = append(byProc[p], int32(len(known)))
			known = append(known, u)
		}
	}
	c := &unitCalls{unitWork: unitWork{names: len(api.Names), units: len(known)}}
	if len(known) == 0 {
		return c
	}
	at := make([]int, len(byProc))
	c.time = newParts(len(api.Names))
	for p := range byProc {
		lists.Sort(byProc[p], func(a, b int32) int {
			return cmp.Compare(x.Units[known[a]].HostStart, x.Units[known[b]].HostStart)
		})
	}
	shown := lists.Map(api.Names, func(n trace.APIName) bool {
		return n.Launch || n.Sync || n.SyncCopy || n.AsyncCopy || n.Memset
	})
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, u := range known {
		first, last = min(first, x.Units[u].HostStart), max(last, x.Units[u].HostEnd)
	}
	lo, hi := api.Starting(first, last)
	for i := lo; i < hi; i++ {
		if !shown[api.Name(i)] {
			continue
		}
		p := in.Trace.ProcOf(api.Thread(i))
		if p == trace.None {
			continue
		}
		own := byProc[p]
		start := api.Start(i)
		for at[p] < len(own) && x.Units[known[own[at[p]]]].HostEnd <= start {
			at[p]++
		}
		if at[p] == len(own) || x.Units[known[own[at[p]]]].HostStart > start {
			continue
		}
		c.time.add(api.Name(i), own[at[p]], api.Dur(i))
		c.rows++
	}
	return c
}

// apis emits the host's calls during the units of a set; those of the primary group have no labels, and a table.
func apis(in *kit.Input, out *kit.Output, with report.Labels, s *unitSet, w *unitCalls) {
	api := &in.Trace.API
	if !in.Trace.Tables.Has(trace.RoleAPI) || w.units == 0 {
		return
	}
	out.From(trace.RoleAPI, w.rows, "start", "end", "nameId", "globalTid")
	total, calls := w.total(w.time, partTime), w.total(w.time, partCount)
	names := lists.Where(len(calls), func(n int32) bool { return calls[n] > 0 })
	lists.Sort(names, func(a, b int32) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(api.Names[a].Name, api.Names[b].Name))
	})
	slot := slotsOf(names, len(calls))
	time := w.samples(w.time, slot, len(names), partTime)
	count := w.samples(w.time, slot, len(names), partCount)
	for i, n := range names {
		l := kit.And(with, "api", api.Names[n].Name)
		s.summary(out, "api.time_per_unit", l, time[i])
		s.summary(out, "api.count_per_unit", l, count[i])
	}
	if len(with) > 0 || in.Brief {
		return
	}
	t := out.Table("unit_api")
	for _, n := range names {
		units := float64(w.units)
		t.Row(
			kit.Text("api_name", api.Names[n].Name), kit.Float("calls", float64(calls[n])/units),
			kit.Float("time", float64(total[n])/units), kit.Float("mean", float64(total[n])/float64(calls[n])))
	}
	t.Add()
}
