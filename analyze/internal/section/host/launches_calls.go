package host

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// maxAPIMetrics bounds the metrics by API name; the table has the rest in its others row.
const maxAPIMetrics = 100

// launchQueue shows how long kernels waited between the return of their launch call and their start. A kernel that
// started before its call returned did not wait. Kernels inside CUDA graphs wait for each other and are left out.
func launchQueue(in *kit.Input, out *kit.Output, lo, hi int) {
	k, api := &in.Trace.Kernels, &in.Trace.API
	type path struct{ proc, device, api int32 }
	paths := kit.NewTally[path, kit.Sums]() // kernels, queued or not, and the time of their calls
	var launched, eligible int
	waited := func(i int) int64 { return k.Start(i) - api.End(int(in.Calls.Kernel[i])) }
	queued := kit.Gather(in.Trace.Memory(), 0, lo, hi, func(i int) int32 {
		call := in.Calls.Kernel[i]
		if k.InGraph(i) || call != trace.None && api.Names[api.Name(int(call))].GraphLaunch {
			return -1
		}
		if eligible++; call == trace.None {
			return -1
		}
		launched++
		at := path{k.Proc(i), k.Device(i), api.Name(int(call))}
		p := paths.At(at)
		p.Count++
		p.Total += api.Dur(int(call))
		if k.Start(i) < api.End(int(call)) {
			return -1
		}
		return paths.Of(at)
	}, waited)
	for len(queued.Offset) <= len(paths.Keys) { // paths on which no kernel waited
		queued.Offset = append(queued.Offset, queued.Offset[len(queued.Offset)-1])
	}
	queued.Sort()
	defer queued.Free()
	byProc := make([][]int, len(in.Trace.Procs))
	for p, x := range paths.Keys {
		if x.proc != trace.None {
			byProc[x.proc] = append(byProc[x.proc], p)
		}
	}
	t := out.Table("launch_queue")
	order := lists.Indexes[int](len(paths.Keys))
	lists.Sort(order, func(a, b int) int { return cmp.Compare(paths.Values[b].Count, paths.Values[a].Count) })
	for _, p := range order {
		x, calls := paths.Keys[p], paths.Values[p]
		row := []kit.Field{
			kit.Int("pid", in.Trace.Procs[x.proc].PID), kit.Int("device_id", int64(x.device)),
			kit.Text("api_name", api.Names[x.api].Name), kit.Int("kernels", calls.Count),
			kit.Maybe("api_mean", stat.Ratio(calls.Total, calls.Count)), kit.Int("queued", int64(queued.Of(p).Len())),
		}
		t.Row(append(row, t.Stats(queued.Of(p).Summary())...)...)
	}
	t.Cut(in.Options.Top, "kernels", "queued").Add()
	emit := func(l report.Labels, waits stat.Merged) *report.Metric {
		s := waits.Summary()
		if s == nil {
			return nil
		}
		out.From(trace.RoleKernel, waits.Len(), "start", "correlationId", "globalPid")
		out.Source.With(trace.RoleAPI, "end", "correlationId", "globalTid")
		m := out.Float("launch.queue_time", l, s.P50)
		m.Summary = s
		return m
	}
	for p := range in.Trace.Procs {
		emit(kit.Labels("pid", kit.PIDText(in, int32(p))), queued.Together(byProc[p]))
	}
	if m := emit(nil, queued.Everything()); m != nil {
		m.Coverage = stat.Ratio(int64(launched), int64(eligible))
	}
	if launched < eligible {
		out.Note("Some kernels have no launch call in the capture (it was cut, or rows were dropped): they are missing from the table of waits, whose metric states the coverage.")
	}
}

// apiCalls lists the host's time in all CUDA API calls.
func apiCalls(in *kit.Input, out *kit.Output) {
	api, stats := &in.Trace.API, in.CallStats()
	emit := func(l report.Labels, s *kit.Sums) { out.Calls("api.time", "api.count", l, s, "start", "end", "nameId") }
	t := out.Table("cuda_api")
	for n, e := range stats.Names {
		name := api.Names[e.Key].Name
		if n < maxAPIMetrics {
			emit(kit.Labels("api", name), &e.Sums)
		}
		t.Row(append(t.Stats(e.Summary), kit.Text("api_name", name), kit.Int("count", e.Count), kit.Int("total", e.Total),
			kit.Maybe("share", stat.Ratio(e.Total, stats.All.Total)))...)
	}
	t.Cut(in.Options.Top, "count", "total", "share").Add()
	emit(nil, &stats.All.Sums)
}
