package section

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// maxAPIMetrics bounds the metrics by API name; the table has the rest in its others row.
const maxAPIMetrics = 100

// launchQueue shows how long kernels waited between the return of their launch call and their start. A kernel that
// started before its call returned did not wait. Kernels inside CUDA graphs wait for each other and are left out.
func launchQueue(in *Input, out *Output, lo, hi int) {
	k, api := &in.Trace.Kernels, &in.Trace.API
	memory := in.Trace.Memory()
	places, paths := newPairs(), newPairs() // process and device; index into places and API name
	var launched, eligible int
	var calls, callTime []int64 // by path: kernels, queued or not, and the time of their calls
	waited := func(i int) int64 { return k.Start(i) - api.End(int(in.Calls.Kernel[i])) }
	last, place := pair{}, int32(-1)
	queued := gather(memory, 0, lo, hi, func(i int) int32 {
		call := in.Calls.Kernel[i]
		if k.InGraph(i) || call != trace.None && api.Names[api.Name(int(call))].GraphLaunch {
			return -1
		}
		if eligible++; call == trace.None {
			return -1
		}
		launched++
		if x := (pair{k.Proc(i), k.Device(i)}); place < 0 || x != last {
			last, place = x, places.of(x.a, x.b)
		}
		p := paths.of(place, api.Name(int(call)))
		if int(p) == len(calls) {
			calls, callTime = append(calls, 0), append(callTime, 0)
		}
		calls[p]++
		callTime[p] += api.Dur(int(call))
		if k.Start(i) < api.End(int(call)) {
			return -1
		}
		return p
	}, waited)
	for len(queued.offset) <= len(calls) { // paths on which no kernel waited
		queued.offset = append(queued.offset, queued.offset[len(queued.offset)-1])
	}
	queued.sort()
	defer queued.free()
	byProc := make([][]int, len(in.Trace.Procs))
	for p, x := range paths.list {
		if proc := places.list[x.a].a; proc != trace.None {
			byProc[proc] = append(byProc[proc], p)
		}
	}
	t := out.Table("launch_queue")
	order := make([]int, len(paths.list))
	for p := range order {
		order[p] = p
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(calls[b], calls[a]) })
	for _, p := range order {
		at := places.list[paths.list[p].a]
		row := []report.Cell{report.I(in.Trace.Procs[at.a].PID), report.I(int64(at.b)), report.S(api.Names[paths.list[p].b].Name), report.I(calls[p]), cell(stat.Ratio(callTime[p], calls[p])),
			report.I(int64(queued.of(p).Len())), report.Null, report.Null, report.Null, report.Null, report.Null}
		if s := queued.of(p).Summary(); s != nil {
			copy(row[6:], []report.Cell{report.F(s.Mean), report.F(s.P50), report.F(s.P90), report.I(int64(s.Min)), report.I(int64(s.Max))})
		}
		t.Row(row...)
	}
	t.Cut(in.Options.Top, "kernels", "queued").Add()
	emit := func(l report.Labels, waits stat.Together) *report.Metric {
		s := waits.Summary()
		if s == nil {
			return nil
		}
		out.From(trace.RoleKernel, waits.Len(), "start", "correlationId", "globalPid")
		out.With(trace.RoleAPI, "end", "correlationId", "globalTid")
		m := out.Float("launch.queue_time", l, s.P50)
		m.Summary = s
		return m
	}
	for p := range in.Trace.Procs {
		emit(Labels("pid", in.pid(int32(p))), queued.together(byProc[p]))
	}
	if m := emit(nil, queued.everything()); m != nil {
		m.Coverage = stat.Ratio(int64(launched), int64(eligible))
	}
	if launched < eligible {
		out.Note("Some kernels have no launch call in the capture (it was cut, or rows were dropped): they are missing from the table of waits, whose metric states the coverage.")
	}
}

// apiCalls shows what the host spends its time in, over all CUDA API calls.
func apiCalls(in *Input, out *Output) {
	api, stats := &in.Trace.API, in.callStats()
	total, calls := stats.all.total, int(stats.all.count)
	out.From(trace.RoleAPI, calls, "start", "end", "nameId")
	t := out.Table("cuda_api")
	for n, e := range stats.names {
		s, name := e.summary, api.Names[e.key].Name
		if n < maxAPIMetrics {
			l := Labels("api", name)
			out.source.Rows = e.count
			out.Int("api.time", l, e.total).Summary = s
			out.Int("api.count", l, e.count)
		}
		t.Row(report.S(name), report.I(e.count), report.I(e.total), cell(stat.Ratio(e.total, total)), report.F(s.Mean), report.F(s.P50), report.F(s.P90), report.F(s.P99), report.I(int64(s.Min)), report.I(int64(s.Max)))
	}
	t.Cut(in.Options.Top, "count", "total", "share").Add()
	out.source.Rows = int64(calls)
	out.Int("api.time", nil, total).Summary = stats.all.summary
	out.Int("api.count", nil, int64(calls))
}
