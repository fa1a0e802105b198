package host

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Launches = kit.Section{
	ID: "launches", Group: report.GroupLate, Steady: true, Title: "Launches",
	Derivation: "API calls whose name, version suffix stripped, starts with cudaLaunch, cuLaunch, cudaGraphLaunch or " +
		"cuGraphLaunch and is not a host function: one per graph launch, however many kernels it " +
		"runs. The rate is over the analysed window. Kernels per second is a separate number. Kernels are joined " +
		"to their launch call by process and correlation id.",
	Findings: []kit.FindingDef{
		{ID: "launch_errors", Title: "Launch calls returned errors", Failure: true},
		{ID: "launch_storm", Title: "Launch storm: very many launches of very short kernels"},
		{ID: "launch_rate", Title: "Very high launch rate"},
		{ID: "slow_launches", Title: "One launch call takes long on the host"},
	},
	Metrics: []report.MetricDef{
		kit.ExactCount("launch.count", report.Lower, report.Sum, "launch API calls").By("", "pid", "api").Quoted(),
		kit.Rate("launch.rate", report.None, report.Leave,
			"launch API calls per second of the window").By("", "pid", "api").Quoted(),
		kit.TotalTime("launch.api_time", report.Lower, report.Sum.Counting("api"), "time spent inside launch API "+
			"calls, summed over threads; the summary is over calls").Summarised().By("", "pid", "api").Quoted(),
		kit.ExactCount("launch.errors", report.Lower, report.Sum, "launch API calls that returned an error").Quoted(),
		kit.EventTime("launch.queue_time", report.None, report.Leave,
			"median time from the return of a launch call to the start of its kernel, over kernels launched one by "+
				"one that had not started before; the summary is over those kernels. Long: the GPU is behind the "+
				"host. Short: the host only just keeps up").Summarised().By("", "pid"),
		kit.Rate("kernel.rate", report.None, report.Leave,
			"kernels per second of the window, those inside CUDA graphs included").By("", "pid"),
		kit.EventTime("kernel.duration", report.None, report.MedianOf("kernel"),
			"median duration of one kernel; the summary is over kernels").Summarised().By("", "pid"),
		kit.ExactCount("kernel.tiny_count", report.Lower, report.Sum, "kernels of at most 5 µs").By("", "pid"),
		kit.Ratio("kernel.under_ratio", report.Lower, report.Leave,
			"share of kernels shorter than the given duration").By("under"),
		kit.TotalTime("api.time", report.Lower, report.Sum.Counting("api", "api"), "time spent inside CUDA API calls "+
			"of any kind, summed over threads; the summary is over calls").Summarised().By("", "api"),
		kit.ExactCount("api.count", report.Lower, report.Sum, "CUDA API calls of any kind").By("", "api"),
	},
	Tables: []report.Table{
		{ID: "launches", Title: "Launch calls", File: "launches.csv", Columns: []report.Column{
			kit.NameCol("api_name", "API").Merged(report.Key),
			kit.CountCol("count", "Calls", "call_count").Merged(report.Sum.First()),
			kit.FloatCol("rate", "Per second", report.PerSecond).Merged(report.Leave),
			kit.NsCol("total", "Total", "total_time_ns", "total_time_ms").Merged(report.Sum),
			kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.RatioOf("total", "count")),
			kit.MeanCol("p50", "p50", "p50_duration_us").Merged(report.PercentileOf("api", 0.5)),
			kit.MeanCol("p90", "p90", "p90_duration_us").Merged(report.PercentileOf("api", 0.9)),
			kit.MeanCol("p99", "p99", "p99_duration_us").Merged(report.PercentileOf("api", 0.99)),
			kit.Wide(kit.NsCol("max", "Max", "max_duration_us")).Merged(report.Max),
		}},
		{ID: "launch_errors", Title: "Failed launches", File: "launch_errors.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("api_name", "API"),
			kit.IDCol("code", "CUDA error"),
			kit.CountCol("count", "Calls", "call_count"),
		}},
		{ID: "launches_by_pid", Title: "Launches per process", File: "launches_by_pid.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("pid", "PID"),
			kit.CountCol("launches", "Launches", "launch_count"),
			kit.FloatCol("rate", "Per second", report.PerSecond),
			kit.NsCol("api_time", "API time", "api_time_ms"),
			kit.MeanCol("mean", "Mean call", "avg_api_time_us"),
			kit.CountCol("kernels", "Kernels", "kernel_count"),
			kit.FloatCol("kernel_rate", "Kernels per second", report.PerSecond),
			kit.MeanCol("p50", "p50 kernel", "p50_kernel_us"),
			{ID: "is_launch_storm", Title: "Storm", Kind: report.Bool},
		}},
		{ID: "tiny_kernels", Title: "Tiny kernels (at most 5 µs)", File: "tiny_kernels.csv", Columns: []report.Column{
			kit.NameCol("kernel_name", "Kernel").Merged(report.Key),
			kit.CountCol("count", "Calls", "call_count").Merged(report.Sum.First()),
			kit.NsCol("total", "Total", "total_time_ms").Merged(report.Sum),
			kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.RatioOf("total", "count")),
		}},
		{ID: "launch_queue", Title: "From launch call to kernel", File: "launch_queue.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("pid", "PID"),
			kit.IDCol("device_id", "GPU"),
			kit.NameCol("api_name", "API"),
			kit.CountCol("kernels", "Kernels", "kernel_count"),
			kit.MeanCol("api_mean", "Mean call", "avg_api_time_us"),
			kit.CountCol("queued", "Queued", "queued_count"),
			kit.MeanCol("mean", "Mean wait", "avg_queue_us"),
			kit.MeanCol("p50", "p50 wait", "p50_queue_us"),
			kit.MeanCol("p90", "p90 wait", "p90_queue_us"),
			kit.Wide(kit.NsCol("min", "Min wait", "min_queue_us")),
			kit.Wide(kit.NsCol("max", "Max wait", "max_queue_us")),
		}},
		{ID: "cuda_api", Title: "CUDA API calls", File: "cuda_api.csv", Columns: []report.Column{
			kit.NameCol("api_name", "API").Merged(report.Key),
			kit.CountCol("count", "Calls", "call_count").Merged(report.Sum),
			kit.NsCol("total", "Total", "total_time_ns", "total_time_ms").Merged(report.Sum.First()),
			kit.RatioCol("share", "Share", "pct_total_api_time").Merged(report.PartOf("total")),
			kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.RatioOf("total", "count")),
			kit.MeanCol("p50", "p50", "p50_duration_us").Merged(report.PercentileOf("api", 0.5)),
			kit.Wide(kit.MeanCol("p90", "p90", "p90_duration_us")).Merged(report.PercentileOf("api", 0.9)),
			kit.Wide(kit.MeanCol("p99", "p99", "p99_duration_us")).Merged(report.PercentileOf("api", 0.99)),
			kit.Wide(kit.NsCol("min", "Min", "min_duration_us")).Merged(report.Min),
			kit.NsCol("max", "Max", "max_duration_us").Merged(report.Max),
		}},
	},
	Early: func(in *kit.Input) { in.CallStats() },
	Run:   launches,
}

// nsys-llm-explainer's launch-storm rule, on launches: rate and median kernel duration, either pair.
const (
	stormRate1, stormP50a = 50e3, 10_000.0
	stormRate2, stormP50b = 100e3, 20_000.0
	tinyRows              = 10
)

// A launch call takes 2 to 6 µs on a healthy host, the profiler's part included.
const (
	slowLaunch      = 10_000.0 // ns, median of one API
	slowLaunchCalls = 100      // below this many calls the median says little
)

func isStorm(rate, p50 float64) bool {
	return rate >= stormRate1 && p50 <= stormP50a || rate >= stormRate2 && p50 <= stormP50b
}

func launches(in *kit.Input, out *kit.Output) {
	if !in.Trace.Tables.Has(trace.RoleAPI) {
		out.Status(report.Unavailable, in.Lack(trace.RoleAPI))
		if len(in.Timeline.Devices) == 0 { // no call and no work: the capture holds no launch
			out.From(trace.RoleAPI, 0, "nameId")
			out.Int("launch.count", nil, 0)
		}
		return
	}
	if callsUnknown(in, out, "launch.count", "launch.rate", "launch.api_time") {
		return
	}
	api, k := &in.Trace.API, &in.Trace.Kernels
	lo, hi := api.Starting(in.Host.Start, in.Host.End)
	stats := in.CallStats()
	seconds := float64(in.Span.Len()) / 1e9
	list := stats.Chosen(func(n *trace.APIName) bool { return n.Launch })

	emit := func(l report.Labels, s *kit.Sums) (rate *float64) {
		out.From(trace.RoleAPI, int(s.Count), "start", "end", "nameId", "globalTid")
		rate = stat.Ratio(s.Count, seconds)
		out.Int("launch.count", l, s.Count)
		out.Metric("launch.rate", l, rate)
		out.Int("launch.api_time", l, s.Total).Summary = s.Summary
		return rate
	}
	calls := int(stats.Launches.Count)
	rate := emit(nil, &stats.Launches.Sums)
	t := out.Table("launches")
	for _, e := range list {
		r := emit(kit.Labels("api", api.Names[e.Key].Name), &e.Sums)
		t.Row(append(t.Stats(e.Summary), kit.Text("api_name", api.Names[e.Key].Name), kit.Int("count", e.Count),
			kit.Maybe("rate", r), kit.Int("total", e.Total))...)
	}
	t.Add()
	launchErrors(in, out, lo, hi, calls)

	klo, khi := k.Starting(in.Span.Start, in.Span.End)
	durs := &in.KernelStats().All
	kernelDurations(in, out, nil, durs, seconds)
	if khi > klo {
		for i, under := range kit.ShortDurations {
			out.Metric("kernel.under_ratio", kit.Labels("under", under.Label), stat.Ratio(durs.Under[i], durs.Count))
		}
	}
	tinyKernels(in, out)
	storm := launchesByProc(in, out, khi-klo, seconds, emit)
	launchQueue(in, out, klo, khi)
	apiCalls(in, out)
	if calls == 0 {
		out.Status(report.NotApplicable, "no launch call in the window")
		return
	}
	if in.Trace.Graphs.Len() > 0 {
		out.Note("CUDA graphs were traced as a whole: kernel rates, durations and tiny kernels cover only kernels outside graphs.")
	}
	launchFindings(in, out, storm, rate, durs)
	for _, e := range list {
		if n := &api.Names[e.Key]; !n.GraphLaunch {
			slowLaunches(in, out, n.Name, e)
			break // the one that takes most of the time
		}
	}
}

// callsUnknown reports whether calls have no names: then these metrics are unknown.
func callsUnknown(in *kit.Input, out *kit.Output, metrics ...string) bool {
	if in.Trace.API.Named() {
		return false
	}
	out.Status(report.Unavailable, kit.NoCallNames)
	out.From(trace.RoleAPI, in.Trace.API.Len(), "nameId")
	for _, id := range metrics {
		out.Metric(id, nil, nil)
	}
	return true
}

// launchErrors counts the launches that failed, by code. A launch never returns 600 (not ready), which queries do.
func launchErrors(in *kit.Input, out *kit.Output, lo, hi, all int) {
	if !in.Trace.Has.APIReturn {
		return
	}
	type failure struct{ name, code int32 }
	api := &in.Trace.API
	failures, total := kit.NewTally[failure, int64](), int64(0)
	for i := lo; i < hi; i++ {
		if code := api.Return(i); code != 0 && api.Names[api.Name(i)].Launch {
			*failures.At(failure{api.Name(i), code})++
			total++
		}
	}
	out.From(trace.RoleAPI, all, "nameId", "returnValue")
	out.Int("launch.errors", nil, total)
	if total == 0 {
		return
	}
	t := out.Table("launch_errors")
	for n, f := range failures.Keys {
		t.Row(kit.Text("api_name", api.Names[f.name].Name), kit.Int("code", int64(f.code)), kit.Int("count", *failures.Values[n]))
	}
	t.Cut(in.Options.Top, "count").Add()
	out.Find("launch_errors", kit.Refs("launch.errors", "launch.count"),
		"A failed launch runs nothing: run the workload under compute-sanitizer. Error 701 is a launch out of resources (too many registers or too much shared memory for the block size), 209 and 222 a kernel that was not built for this GPU.")
}

// launchesByProc shows each process, and returns the pid of the one with the worst launch storm, if any.
func launchesByProc(in *kit.Input, out *kit.Output, kernels int, seconds float64,
	emit func(report.Labels, *kit.Sums) *float64) (storm string) {
	calls, ran := in.CallStats(), in.KernelStats()
	known := lists.Sum(ran.Procs, func(d kit.DurationStats) int64 { return d.Count }) // kernels whose process is
	t := out.Table("launches_by_pid")
	worst := 0.0
	for p := range in.Trace.Procs {
		l, kd := &calls.Procs[p], &ran.Procs[p]
		if l.Count == 0 && kd.Count == 0 {
			continue
		}
		pid := kit.Labels("pid", kit.PIDText(in, int32(p)))
		row := []kit.Field{kit.Int("pid", in.Trace.Procs[p].PID)}
		var rate *float64
		// else its calls may belong to an unknown process
		if l.Count > 0 || calls.KnownLaunches == calls.Launches.Count {
			rate = emit(pid, &l.Sums)
			row = append(row, kit.Int("launches", l.Count), kit.Maybe("rate", rate), kit.Int("api_time", l.Total),
				kit.Maybe("mean", stat.Ratio(l.Total, l.Count)))
		}
		if kd.Count > 0 || known == int64(kernels) && in.Trace.Tables.Has(trace.RoleKernel) {
			row = append(row, kit.Int("kernels", kd.Count),
				kit.Maybe("kernel_rate", kernelDurations(in, out, pid, kd, seconds)))
		}
		if kd.Count > 0 {
			p50 := kd.Summary.P50
			row = append(row, kit.Float("p50", p50))
			if rate != nil {
				row = append(row, kit.Put("is_launch_storm", report.B(isStorm(*rate, p50))))
				if isStorm(*rate, p50) && *rate > worst {
					worst, storm = *rate, pid["pid"]
				}
			}
		}
		t.Partial(row...)
	}
	t.Cut(kit.MaxShown, "launches", "api_time", "kernels").Add()
	return storm
}

func launchFindings(in *kit.Input, out *kit.Output, stormPid string, rate *float64, durs *kit.DurationStats) {
	if rate == nil || durs.Count == 0 {
		return
	}
	var labels []string
	storm := isStorm(*rate, durs.Summary.P50)
	if stormPid != "" {
		storm, labels = true, []string{"pid", stormPid}
	}
	evidence := []report.MetricRef{kit.Ref("launch.rate", labels...), kit.Ref("launch.count", labels...),
		kit.Ref("kernel.duration", labels...)}
	switch {
	case storm:
		stormFinding(in, out, evidence)
	case *rate >= stormRate2:
		out.Find("launch_rate", evidence,
			"Look at the tiny kernels, and at what could be fused or captured into a CUDA graph.",
		).OfIdle(in.Step(), in.CallStats().Launches.Total, timeline.CauseLaunch)
	}
}

// stormFinding claims idle time and, if kernels that are mostly tiny are less than half of the compute, their time too:
// fused into the others they take none. If they are most of it, they are the work.
func stormFinding(in *kit.Input, out *kit.Output, evidence []report.MetricRef) {
	step, stats := in.Step(), in.KernelStats()
	tiny, count, most := mostlyTiny(stats.Tiny, stats.Names)
	isTiny := func(name int) bool { return tiny[name] }
	claims, ns := step.KernelClaims(isTiny)
	title, place := "Launch storm: very many launches of very short kernels", ""
	if 2*most.Count > count {
		place = in.Kinds[most.Key].Display
		title += ", most of them " + kit.Quoted(place)
	}
	if at := kit.LaunchedIn(in, isTiny, ns); at != "" {
		title += ", launched inside " + kit.Quoted(at)
	}
	short := step.Short * count / max(1, stats.All.Count) // the gaps before them
	if 2*ns > step.Compute {
		claims, ns, short = nil, 0, 0
	}
	causes := []int{timeline.CauseLaunch}
	if step.Units > 0 { // a replay tells how much of it
		causes = append(causes, timeline.CauseDependency)
	}
	idle := min(in.CallStats().Launches.Total, step.IdleOf(timeline.CauseLaunch))
	out.FindAs("launch_storm", title, evidence,
		"Run the step as a CUDA graph: one launch instead of one per kernel"+kit.SetGraphs+".",
		"Fuse pointwise kernels (torch.compile, the engine's fused norm, activation and rope kernels) and check that the fused attention and MLP paths are taken.",
		"Give each launch more work: larger batches, persistent kernels.",
	).At(place).Costs(step.Worth(ns+idle+short), append(claims, step.IdleClaims(step.Idle, causes...)...)...)
}

// mostlyTiny are the names more than half of whose kernels are tiny, how many such kernels there are, and the name with
// most of them.
func mostlyTiny(tiny, all []kit.Totals) (names map[int]bool, count int64, most kit.Totals) {
	names = map[int]bool{}
	for i, e := range tiny {
		if 2*e.Count > all[i].Count {
			names[e.Key], count = true, count+e.Count
			if e.Count > most.Count {
				most = e
			}
		}
	}
	return names, count, most
}

// slowLaunches reports a slow median call of the API that takes most launch time. The median is robust against calls
// that wait because the launch queue is full, when the GPU is slow and not the host.
func slowLaunches(in *kit.Input, out *kit.Output, name string, e kit.Totals) {
	s := e.Summary
	if s.N < slowLaunchCalls || s.P50 < slowLaunch {
		return
	}
	out.Find("slow_launches",
		[]report.MetricRef{kit.Ref("launch.api_time", "api", name), kit.Ref("launch.count", "api", name)},
		"Check the CPU: governor and frequency, cores shared with other work (taskset, cgroup limits), NUMA distance to the GPU, a debugger or a second profiler attached.",
		"Then check the capture: tracing of call stacks (--cudabacktrace), OS calls and sampling all make calls slower. Capture with --trace=cuda,nvtx --sample=none --cpuctxsw=none and compare.",
	).OfIdle(in.Step(), e.Total, timeline.CauseLaunch)
}

// kernelDurations emits the durations of the kernels of the whole trace or of one process. durs is sorted.
func kernelDurations(in *kit.Input, out *kit.Output, l report.Labels, durs *kit.DurationStats,
	seconds float64) (rate *float64) {
	if !in.Trace.Tables.Has(trace.RoleKernel) {
		return nil
	}
	out.From(trace.RoleKernel, int(durs.Count), "start", "end")
	rate = stat.Ratio(durs.Count, seconds)
	out.Metric("kernel.rate", l, rate)
	out.Int("kernel.tiny_count", l, durs.Tiny)
	if s := durs.Summary; s != nil {
		out.Float("kernel.duration", l, s.P50).Summary = s
	}
	return rate
}

func tinyKernels(in *kit.Input, out *kit.Output) {
	k := &in.Trace.Kernels
	list := lists.Filter(in.KernelStats().Tiny, func(e kit.Totals) bool { return e.Count > 0 })
	lists.Sort(list, func(a, b kit.Totals) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Total, a.Total),
			cmp.Compare(k.Names[a.Key].Name, k.Names[b.Key].Name))
	})
	t := out.Table("tiny_kernels")
	for _, e := range list {
		t.Row(
			kit.Text("kernel_name", k.Names[e.Key].Name), kit.Int("count", e.Count), kit.Int("total", e.Total),
			kit.Float("mean", float64(e.Total)/float64(e.Count)))
	}
	t.Cut(tinyRows, "count", "total").Add()
}
