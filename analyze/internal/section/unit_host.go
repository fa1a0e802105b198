package section

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// apis emits what the host did during the units of a set; those of the primary group have no labels, and a table.
func (r *unitRun) apis(with report.Labels, s *unitSet) {
	api, x := &r.in.Trace.API, r.in.Units
	if !r.in.has(trace.RoleAPI) {
		return
	}
	byProc := make([][]int32, len(r.in.Trace.Procs)) // places in known, by host start
	var known []int32
	for _, u := range s.units {
		if p := x.Units[u].Proc; p != trace.None && x.Units[u].HostKnown() {
			byProc[p] = append(byProc[p], int32(len(known)))
			known = append(known, u)
		}
	}
	if len(known) == 0 {
		return
	}
	at := make([]int, len(byProc))
	var parts []part
	rows := 0
	for p := range byProc {
		slices.SortFunc(byProc[p], func(a, b int32) int { return cmp.Compare(x.Units[known[a]].HostStart, x.Units[known[b]].HostStart) })
	}
	w := &unitWork{names: len(api.Names), units: len(known)}
	for i := range api.Len() {
		n := &api.Names[api.Name(i)]
		th := api.Thread(i)
		if th == trace.None || !(n.Launch || n.Sync || n.SyncCopy || n.AsyncCopy || n.Memset) {
			continue
		}
		p := r.in.Trace.Threads[th].Proc
		if p == trace.None {
			continue
		}
		list := byProc[p]
		for at[p] < len(list) && x.Units[known[list[at[p]]]].HostEnd <= api.Start(i) {
			at[p]++
		}
		if at[p] == len(list) || x.Units[known[list[at[p]]]].HostStart > api.Start(i) {
			continue
		}
		parts = append(parts, part{api.Name(i), list[at[p]], api.Dur(i)})
		rows++
	}
	r.out.From(trace.RoleAPI, rows, "start", "end", "nameId", "globalTid")
	total := w.total(parts)
	var names []int32
	slot := make([]int32, len(api.Names))
	calls := make([]int64, len(api.Names))
	for i := range parts {
		calls[parts[i].name]++
	}
	for n := range slot {
		if slot[n] = -1; calls[n] > 0 {
			names = append(names, int32(n))
		}
	}
	slices.SortFunc(names, func(a, b int32) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(api.Names[a].Name, api.Names[b].Name))
	})
	for i, n := range names {
		slot[n] = int32(i)
	}
	time := w.samples(parts, slot, len(names), partTime)
	count := w.samples(parts, slot, len(names), partCount)
	for i, n := range names {
		l := and(with, "api", api.Names[n].Name)
		r.out.summary("api.time_per_unit", l, time[i])
		r.out.summary("api.count_per_unit", l, count[i])
	}
	if len(with) > 0 {
		return
	}
	t := r.out.Table("unit_api")
	for _, n := range names {
		units := float64(len(known))
		t.Row(report.S(api.Names[n].Name), report.F(float64(calls[n])/units), report.F(float64(total[n])/units), report.F(float64(total[n])/float64(calls[n])))
	}
	t.Cut(-1).Add()
}
