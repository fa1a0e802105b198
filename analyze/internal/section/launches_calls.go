package section

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// maxAPIMetrics bounds the metrics by API name; the table has the rest in its others row.
const maxAPIMetrics = 100

// launchQueue shows how long kernels waited between the return of their launch call and their start. A kernel that
// started before its call returned did not wait. Kernels inside CUDA graphs wait for each other and are left out.
func launchQueue(in *Input, out *Output, lo, hi int) {
	type path struct{ proc, device, name int32 }
	k, api := &in.Trace.Kernels, &in.Trace.API
	paths := newNumbering[path]()
	memory := in.Trace.Memory()
	keys := spill.Make[int32](memory, hi-lo)
	defer spill.Free(memory, keys)
	var launched, eligible int
	calls := make([]int64, 0, 16) // kernels by path, queued or not
	var callTime []int64          // of those, the time of their calls
	waited := func(i int) int64 { return k.Start(i) - api.End(int(in.Calls.Kernel[i])) }
	for i := lo; i < hi; i++ {
		keys[i-lo] = -1
		call := in.Calls.Kernel[i]
		if k.InGraph(i) || call != trace.None && api.Names[api.Name(int(call))].GraphLaunch {
			continue
		}
		if eligible++; call == trace.None {
			continue
		}
		launched++
		p := paths.of(path{k.Proc(i), k.Device(i), api.Name(int(call))})
		if int(p) == len(calls) {
			calls, callTime = append(calls, 0), append(callTime, 0)
		}
		calls[p]++
		callTime[p] += api.Dur(int(call))
		if waited(i) >= 0 {
			keys[i-lo] = p
		}
	}
	queued := gatherIn(memory, len(paths.keys), lo, hi, func(i int) int32 { return keys[i-lo] }, waited).sort()
	defer queued.free()
	byProc := gatherIn(memory, len(in.Trace.Procs), lo, hi, func(i int) int32 {
		if keys[i-lo] < 0 {
			return -1
		}
		return k.Proc(i)
	}, waited).sort()
	defer byProc.free()
	t := out.Table("launch_queue")
	order := make([]int, len(paths.keys))
	for p := range order {
		order[p] = p
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(calls[b], calls[a]) })
	for _, p := range order {
		key := &paths.keys[p]
		row := []report.Cell{report.I(in.Trace.Procs[key.proc].PID), report.I(int64(key.device)), report.S(api.Names[key.name].Name), report.I(calls[p]), cell(stat.Ratio(callTime[p], calls[p])),
			report.I(int64(queued.of(p).Len())), report.Null, report.Null, report.Null, report.Null, report.Null}
		if s := queued.of(p).Summary(); s != nil {
			copy(row[6:], []report.Cell{report.F(s.Mean), report.F(s.P50), report.F(s.P90), report.I(int64(s.Min)), report.I(int64(s.Max))})
		}
		t.Row(row...)
	}
	t.Cut(in.Options.Top, "kernels", "queued").Add()
	emit := func(l report.Labels, waits stat.Sample) *report.Metric {
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
		emit(Labels("pid", in.pid(int32(p))), byProc.of(p))
	}
	byProc.all.Sort()
	if m := emit(nil, byProc.all); m != nil { // last: the processes are mixed up now
		m.Coverage = stat.Ratio(int64(launched), int64(eligible))
	}
	if launched < eligible {
		out.Note("Some kernels have no launch call in the capture (it was cut, or rows were dropped): they are missing from the table of waits, whose metric states the coverage.")
	}
}

// apiCalls shows what the host spends its time in, over all CUDA API calls.
func apiCalls(in *Input, out *Output) {
	api, times := &in.Trace.API, in.callTimes()
	all := times.join(times.list)
	total, calls := all.Sum(), all.Len()
	out.From(trace.RoleAPI, calls, "start", "end", "nameId")
	t := out.Table("cuda_api")
	for n, e := range times.list {
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
	out.Int("api.time", nil, total).Summary = all.Summary()
	out.Int("api.count", nil, int64(calls))
}
