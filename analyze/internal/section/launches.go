package section

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var launchesSection = Section{
	ID: "launches", Title: "Launches", Rank: 70,
	Derivation: "API calls whose name, version suffix stripped, starts with cudaLaunch, cuLaunch, " +
		"cudaGraphLaunch or cuGraphLaunch and is no host function: one per graph launch, however many kernels it " +
		"runs. The rate is over the analysed window. Kernels per second is a separate number. Kernels are joined " +
		"to their launch call by process and correlation id.",
	Metrics: []report.MetricDef{
		{
			ID: "launch.count", Unit: report.Count, Better: report.Lower, Assume: report.Exact,
			Scale: report.Total, Labels: []string{"", "pid", "api"},
			Meaning: "launch API calls",
		},
		{
			ID: "launch.rate", Unit: report.PerSecond, Better: report.None, Assume: report.Noisy,
			Scale: report.Level, Labels: []string{"", "pid", "api"},
			Meaning: "launch API calls per second of the window",
		},
		{
			ID: "launch.api_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Stats: true, Labels: []string{"", "pid", "api"},
			Meaning: "time spent inside launch API calls, summed over threads; the summary is over calls",
		},
		{
			ID: "launch.errors", Unit: report.Count, Better: report.Lower, Assume: report.Exact,
			Scale: report.Total, Labels: []string{""},
			Meaning: "launch API calls that returned an error",
		},
		{
			ID: "launch.queue_time", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Event, Stats: true, Labels: []string{"", "pid"},
			Meaning: "median time from the return of a launch call to the start of its kernel, over kernels " +
				"launched one by one that had not started before; the summary is over those kernels. Long: the " +
				"GPU is behind the host. Short: the host only just keeps up",
		},
		{
			ID: "kernel.rate", Unit: report.PerSecond, Better: report.None, Assume: report.Noisy,
			Scale: report.Level, Labels: []string{"", "pid"},
			Meaning: "kernels per second of the window, those inside CUDA graphs included",
		},
		{
			ID: "kernel.duration", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Event, Stats: true, Labels: []string{"", "pid"},
			Meaning: "median duration of one kernel; the summary is over kernels",
		},
		{
			ID: "kernel.tiny_count", Unit: report.Count, Better: report.Lower, Assume: report.Exact,
			Scale: report.Total, Labels: []string{"", "pid"},
			Meaning: "kernels of at most 5 µs",
		},
		{
			ID: "kernel.under_ratio", Unit: report.Ratio, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Level, Labels: []string{"under"},
			Meaning: "share of kernels shorter than the given duration",
		},
		{
			ID: "api.time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Stats: true, Labels: []string{"", "api"},
			Meaning: "time spent inside CUDA API calls of any kind, summed over threads; the summary is over " +
				"calls",
		},
		{
			ID: "api.count", Unit: report.Count, Better: report.Lower, Assume: report.Exact,
			Scale: report.Total, Labels: []string{"", "api"},
			Meaning: "CUDA API calls of any kind",
		},
	},
	Tables: []report.Table{
		{ID: "launches", Title: "Launch calls", File: "launches.csv", Columns: []report.Column{
			nameCol("api_name", "API"),
			countCsv("count", "Calls", "call_count"),
			rateCol("rate", "Per second", report.PerSecond),
			nsCol("total", "Total", "total_time_ns", "total_time_ms"),
			meanCol("mean", "Mean", "avg_duration_us"),
			meanCol("p50", "p50", "p50_duration_us"),
			meanCol("p90", "p90", "p90_duration_us"),
			meanCol("p99", "p99", "p99_duration_us"),
			wide(nsCol("max", "Max", "max_duration_us")),
		}},
		{ID: "launch_errors", Title: "Failed launches", File: "launch_errors.csv", Columns: []report.Column{
			nameCol("api_name", "API"),
			idCol("code", "CUDA error"),
			countCsv("count", "Calls", "call_count"),
		}},
		{ID: "launches_by_pid", Title: "Launches per process", File: "launches_by_pid.csv", Columns: []report.Column{
			idCol("pid", "PID"),
			countCsv("launches", "Launches", "launch_count"),
			rateCol("rate", "Per second", report.PerSecond),
			nsCol("api_time", "API time", "api_time_ms"),
			meanCol("mean", "Mean call", "avg_api_time_us"),
			countCsv("kernels", "Kernels", "kernel_count"),
			rateCol("kernel_rate", "Kernels per second", report.PerSecond),
			meanCol("p50", "p50 kernel", "p50_kernel_us"),
			{ID: "is_launch_storm", Title: "Storm", Kind: report.Bool},
		}},
		{ID: "tiny_kernels", Title: "Tiny kernels (at most 5 µs)", File: "tiny_kernels.csv", Columns: []report.Column{
			nameCol("kernel_name", "Kernel"),
			countCsv("count", "Calls", "call_count"),
			nsCol("total", "Total", "total_time_ms"),
			meanCol("mean", "Mean", "avg_duration_us"),
		}},
		{ID: "launch_queue", Title: "From launch call to kernel", File: "launch_queue.csv", Columns: []report.Column{
			idCol("pid", "PID"),
			idCol("device_id", "GPU"),
			nameCol("api_name", "API"),
			countCsv("kernels", "Kernels", "kernel_count"),
			meanCol("api_mean", "Mean call", "avg_api_time_us"),
			countCsv("queued", "Queued", "queued_count"),
			meanCol("mean", "Mean wait", "avg_queue_us"),
			meanCol("p50", "p50 wait", "p50_queue_us"),
			meanCol("p90", "p90 wait", "p90_queue_us"),
			wide(nsCol("min", "Min wait", "min_queue_us")),
			wide(nsCol("max", "Max wait", "max_queue_us")),
		}},
		{ID: "cuda_api", Title: "CUDA API calls", File: "cuda_api.csv", Columns: []report.Column{
			nameCol("api_name", "API"),
			countCsv("count", "Calls", "call_count"),
			nsCol("total", "Total", "total_time_ns", "total_time_ms"),
			ratioCol("share", "Share", "pct_total_api_time"),
			meanCol("mean", "Mean", "avg_duration_us"),
			meanCol("p50", "p50", "p50_duration_us"),
			wide(meanCol("p90", "p90", "p90_duration_us")),
			wide(meanCol("p99", "p99", "p99_duration_us")),
			wide(nsCol("min", "Min", "min_duration_us")),
			nsCol("max", "Max", "max_duration_us"),
		}},
	},
	Run: launches,
}

// nsys-llm-explainer's launch-storm rule, on launches: rate and median kernel duration, either pair.
const (
	stormRate1, stormP50a = 50e3, 10_000.0
	stormRate2, stormP50b = 100e3, 20_000.0
	tinyKernel            = 5_000 // ns
	tinyRows              = 10
)

// A launch call takes 2 to 6 µs on a healthy host, the profiler's part included.
const (
	slowLaunch, verySlowLaunch = 10_000.0, 20_000.0 // ns, median of one API
	slowLaunchCalls            = 100                // below this many calls the median says little
)

func isStorm(rate, p50 float64) bool {
	return rate >= stormRate1 && p50 <= stormP50a || rate >= stormRate2 && p50 <= stormP50b
}

func launches(in *Input, out *Output) {
	if !in.has(trace.RoleAPI) {
		out.Status(report.Unavailable, in.lack(trace.RoleAPI))
		if len(in.Timeline.Devices) == 0 { // no call and no work: the capture holds no launch
			out.From(trace.RoleAPI, 0, "nameId")
			out.Int("launch.count", nil, 0)
		}
		return
	}
	api, k := &in.Trace.API, &in.Trace.Kernels
	lo, hi := api.Starting(in.Host.Start, in.Host.End)
	stats := in.callStats()
	seconds := float64(in.Span.Len()) / 1e9
	list := some(stats.names, func(name int) bool { return api.Names[name].Launch })

	emit := func(l report.Labels, count, total int64, s *report.Summary) (rate *float64) {
		out.From(trace.RoleAPI, int(count), "start", "end", "nameId", "globalTid")
		rate = per(int(count), seconds)
		out.Int("launch.count", l, count)
		out.Metric("launch.rate", l, rate)
		out.Int("launch.api_time", l, total).Summary = s
		return rate
	}
	calls := int(stats.launches.count)
	rate := emit(nil, stats.launches.count, stats.launches.total, stats.launches.summary)
	t := out.Table("launches")
	for _, e := range list {
		r := emit(Labels("api", api.Names[e.key].Name), e.count, e.total, e.summary)
		s := e.summary
		t.Row(report.S(api.Names[e.key].Name), report.I(e.count), cell(r), report.I(e.total), report.F(s.Mean), report.F(s.P50), report.F(s.P90), report.F(s.P99), report.I(int64(s.Max)))
	}
	t.Cut(-1).Add()
	launchErrors(in, out, lo, hi, calls)

	klo, khi := k.Starting(in.Span.Start, in.Span.End)
	durs := &in.kernelStats().all
	in.kernelDurations(out, nil, durs, seconds)
	if khi > klo {
		for i, under := range shortDurations {
			out.Metric("kernel.under_ratio", Labels("under", under.label), stat.Ratio(durs.under[i], durs.count))
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
		out.Note("CUDA graphs were traced as a whole: kernel rates, durations and tiny kernels are of the kernels outside graphs only.")
	}
	launchFindings(out, storm, rate, durs)
	for _, e := range list {
		if n := &api.Names[e.key]; !n.GraphLaunch {
			slowLaunches(out, n.Name, e.summary)
			break // the one that takes most of the time
		}
	}
}

// launchErrors counts the launches that failed, by code. A launch never returns 600 (not ready), which queries do.
func launchErrors(in *Input, out *Output, lo, hi, all int) {
	if !in.Trace.Has.APIReturn {
		return
	}
	type failure struct{ name, code int32 }
	api := &in.Trace.API
	failures := newNumbering[failure]()
	var counts []int64
	var total int64
	for i := lo; i < hi; i++ {
		if code := api.Return(i); code != 0 && api.Names[api.Name(i)].Launch {
			n := failures.of(failure{api.Name(i), code})
			if int(n) == len(counts) {
				counts = append(counts, 0)
			}
			counts[n]++
			total++
		}
	}
	out.From(trace.RoleAPI, all, "nameId", "returnValue")
	out.Int("launch.errors", nil, total)
	if total == 0 {
		return
	}
	t := out.Table("launch_errors")
	for n, f := range failures.keys {
		t.Row(report.S(api.Names[f.name].Name), report.I(int64(f.code)), report.I(counts[n]))
	}
	t.Cut(in.Options.Top, "count").Add()
	out.Find("launch_errors", report.High, "Launch calls returned errors", []report.MetricRef{Ref("launch.errors"), Ref("launch.count")},
		"A failed launch runs nothing: run the workload under compute-sanitizer. Error 701 is a launch out of resources (too many registers or too much shared memory for the block size), 209 and 222 a kernel that was not built for this GPU.")
}

// launchesByProc shows each process, and returns the pid of the one with the worst launch storm, if any.
func launchesByProc(in *Input, out *Output, kernels int, seconds float64, emit func(report.Labels, int64, int64, *report.Summary) *float64) (storm string) {
	calls, ran := in.callStats(), in.kernelStats()
	var known int64 // kernels whose process is
	for p := range ran.procs {
		known += ran.procs[p].count
	}
	t := out.Table("launches_by_pid")
	worst := 0.0
	for p := range in.Trace.Procs {
		l, kd := &calls.procs[p], &ran.procs[p]
		if l.count == 0 && kd.count == 0 {
			continue
		}
		pid := Labels("pid", in.pid(int32(p)))
		row := []report.Cell{report.I(in.Trace.Procs[p].PID), report.Null, report.Null, report.Null, report.Null, report.Null, report.Null, report.Null, report.Null}
		var rate *float64
		if l.count > 0 || calls.knownLaunches == calls.launches.count { // else its calls may be among those of unknown process
			rate = emit(pid, l.count, l.total, l.summary)
			copy(row[1:], []report.Cell{report.I(l.count), cell(rate), report.I(l.total), cell(stat.Ratio(l.total, l.count))})
		}
		if kd.count > 0 || known == int64(kernels) && in.has(trace.RoleKernel) {
			row[5], row[6] = report.I(kd.count), cell(in.kernelDurations(out, pid, kd, seconds))
		}
		if kd.count > 0 {
			p50 := kd.summary.P50
			row[7] = report.F(p50)
			if rate != nil {
				row[8] = report.B(isStorm(*rate, p50))
				if isStorm(*rate, p50) && *rate > worst {
					worst, storm = *rate, pid["pid"]
				}
			}
		}
		t.Row(row...)
	}
	t.Cut(-1).Add()
	return storm
}

func launchFindings(out *Output, stormPid string, rate *float64, durs *durationStats) {
	if rate == nil || durs.count == 0 {
		return
	}
	var labels []string
	storm := isStorm(*rate, durs.summary.P50)
	if stormPid != "" {
		storm, labels = true, []string{"pid", stormPid}
	}
	evidence := []report.MetricRef{Ref("launch.rate", labels...), Ref("launch.count", labels...), Ref("kernel.duration", labels...)}
	switch {
	case storm:
		out.Find("launch_storm", report.High, "Launch storm: very many launches of very short kernels", evidence,
			"Run the step as a CUDA graph: one launch instead of one per kernel (vLLM: no --enforce-eager; SGLang: no --disable-cuda-graph).",
			"Fuse pointwise kernels (torch.compile, the engine's fused norm, activation and rope kernels) and check that the fused attention and MLP paths are taken.",
			"Give each launch more work: larger batches, persistent kernels.")
	case *rate >= stormRate2:
		out.Find("launch_rate", report.Medium, "Very high launch rate", evidence, "Look at the tiny kernels, and at what could be fused or captured into a CUDA graph.")
	}
}

// slowLaunches says when the median call of the API that takes most launch time is slow. The median is robust against
// the calls that wait because the launch queue is full, which is the GPU's slowness and not the host's.
func slowLaunches(out *Output, name string, s *report.Summary) {
	if s.N < slowLaunchCalls || s.P50 < slowLaunch {
		return
	}
	severity := report.Low
	if s.P50 >= verySlowLaunch {
		severity = report.Medium
	}
	out.Find("slow_launches", severity, "One launch call takes long on the host", []report.MetricRef{Ref("launch.api_time", "api", name), Ref("launch.count", "api", name)},
		"Check the CPU: governor and frequency, cores shared with other work (taskset, cgroup limits), NUMA distance to the GPU, a debugger or a second profiler attached.",
		"Then check the capture: tracing of call stacks (--cudabacktrace), OS calls and sampling all make calls slower. Capture with --trace=cuda,nvtx --sample=none --cpuctxsw=none and compare.")
}

// kernelDurations emits what is said of the kernels of the whole trace or of one process. durs is sorted.
func (in *Input) kernelDurations(out *Output, l report.Labels, durs *durationStats, seconds float64) (rate *float64) {
	if !in.has(trace.RoleKernel) {
		return nil
	}
	out.From(trace.RoleKernel, int(durs.count), "start", "end")
	rate = per(int(durs.count), seconds)
	out.Metric("kernel.rate", l, rate)
	out.Int("kernel.tiny_count", l, durs.tiny)
	if s := durs.summary; s != nil {
		m := out.Float("kernel.duration", l, s.P50)
		m.Summary = s
	}
	return rate
}

func tinyKernels(in *Input, out *Output) {
	k := &in.Trace.Kernels
	list := slices.DeleteFunc(slices.Clone(in.kernelStats().tiny), func(e totals) bool { return e.count == 0 })
	slices.SortFunc(list, func(a, b totals) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.total, a.total), cmp.Compare(k.Names[a.key].Name, k.Names[b.key].Name))
	})
	t := out.Table("tiny_kernels")
	for _, e := range list {
		t.Row(report.S(k.Names[e.key].Name), report.I(e.count), report.I(e.total), report.F(float64(e.total)/float64(e.count)))
	}
	t.Cut(tinyRows, "count", "total").Add()
}

// per is a rate per second, unknown where there is no window.
func per(n int, seconds float64) *float64 {
	if seconds <= 0 {
		return nil
	}
	v := float64(n) / seconds
	return &v
}

// pid is the label of a process: its pid, and its full identity where another process of the capture has the same pid
// (two machines or virtual machines in one capture).
func (in *Input) pid(p int32) string {
	if p == trace.None {
		return "unknown"
	}
	own := in.Trace.Procs[p]
	for i, other := range in.Trace.Procs {
		if int32(i) != p && other.PID == own.PID {
			return strconv.FormatInt(own.PID, 10) + "@" + strconv.FormatInt(own.Global>>48, 16)
		}
	}
	return strconv.FormatInt(own.PID, 10)
}
