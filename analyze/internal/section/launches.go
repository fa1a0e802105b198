package section

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var _ = register(Section{
	ID: "launches", Title: "Launches", Rank: 70,
	Needs:      []trace.Role{trace.RoleAPI},
	Derivation: "API calls whose name, version suffix stripped, starts with cudaLaunch, cuLaunch, cudaGraphLaunch or cuGraphLaunch and is no host function: one per graph launch, however many kernels it runs. The rate is over the analysed window. Kernels per second is a separate number.",
	Metrics: []report.MetricDef{
		def("launch.count", report.Count, report.Lower, report.Exact, "launch API calls", "", "pid", "api"),
		def("launch.rate", report.PerSecond, report.None, report.Noisy, "launch API calls per second of the window", "", "pid", "api"),
		def("launch.api_time", report.Nanoseconds, report.Lower, report.Noisy, "time spent inside launch API calls, summed over threads; the summary is over calls", "", "pid", "api"),
		def("launch.errors", report.Count, report.Lower, report.Exact, "launch API calls that returned an error", ""),
		def("kernel.rate", report.PerSecond, report.None, report.Noisy, "kernels per second of the window, those inside CUDA graphs included", "", "pid"),
		def("kernel.duration", report.Nanoseconds, report.None, report.Noisy, "median duration of one kernel; the summary is over kernels", "", "pid"),
		def("kernel.tiny_count", report.Count, report.Lower, report.Exact, "kernels of at most 5 µs", "", "pid"),
		def("kernel.under_ratio", report.Ratio, report.Lower, report.Noisy, "share of kernels shorter than the given duration", "under"),
	},
	Run: launches,
})

// nsys-llm-explainer's launch-storm rule, on launches: rate and median kernel duration, either pair.
const (
	stormRate1, stormP50a = 50e3, 10_000.0
	stormRate2, stormP50b = 100e3, 20_000.0
	tinyKernel            = 5_000 // ns
	tinyRows              = 10
)

func isStorm(rate, p50 float64) bool {
	return rate >= stormRate1 && p50 <= stormP50a || rate >= stormRate2 && p50 <= stormP50b
}

func launches(in *Input, out *Output) {
	api, k := &in.Trace.API, &in.Trace.Kernels
	lo, hi := api.Starting(in.Host.Start, in.Host.End)
	isLaunch := func(i int) bool { return api.Names[api.Name(i)].Launch }
	byName := gather(len(api.Names), lo, hi, func(i int) int32 {
		if !isLaunch(i) {
			return -1
		}
		return api.Name(i)
	}, api.Dur)
	errors := 0
	for i := lo; i < hi; i++ {
		if isLaunch(i) && api.Return(i) != 0 {
			errors++
		}
	}
	seconds := float64(in.Span.Len()) / 1e9
	all := slices.Clone(byName.durs)
	list := byName.rank(len(api.Names), func(a, b int) int { return cmp.Compare(api.Names[a].Name, api.Names[b].Name) })

	out.From(trace.RoleAPI, len(all), "start", "end", "nameId", "globalTid")
	emit := func(l report.Labels, durs []int64) (rate *float64) {
		out.source.Rows = int64(len(durs))
		rate = per(len(durs), seconds)
		out.Int("launch.count", l, int64(len(durs)))
		out.Metric("launch.rate", l, rate)
		m := out.Int("launch.api_time", l, sum(durs))
		m.Summary = stat.Summarize(durs)
		return rate
	}
	rate := emit(nil, all)
	t := out.Table("launches", "Launch calls", "launches.csv", nameCol("api_name", "API"), countCsv("count", "Calls", "call_count"),
		rateCol("rate", "Per second", report.PerSecond), nsCol("total", "Total", "total_time_ns", "total_time_ms"), meanCol("mean", "Mean", "avg_duration_us"),
		meanCol("p50", "p50", "p50_duration_us"), meanCol("p90", "p90", "p90_duration_us"), meanCol("p99", "p99", "p99_duration_us"), wide(nsCol("max", "Max", "max_duration_us")))
	for _, e := range list {
		l := Labels("api", api.Names[e.key].Name)
		r := emit(l, byName.of(e.key))
		s := e.summary
		t.Row(report.S(api.Names[e.key].Name), report.I(e.count), cell(r), report.I(e.total), report.F(s.Mean), report.F(s.P50), report.F(s.P90), report.F(s.P99), report.I(int64(s.Max)))
	}
	t.Cut(-1).Add()
	if in.Trace.Has.APIReturn {
		out.source.Rows = int64(len(all))
		out.Int("launch.errors", nil, int64(errors))
		if errors > 0 {
			out.Find("launch_errors", report.High, "Launch calls returned errors", []report.MetricRef{Ref("launch.errors"), Ref("launch.count")},
				"A failed launch runs nothing: run the workload under compute-sanitizer, and look for launches out of resources (too many registers or too much shared memory for the block size).")
		}
	}

	klo, khi := k.Starting(in.Span.Start, in.Span.End)
	durs := durations(klo, khi, k.Dur)
	slices.Sort(durs)
	in.kernelDurations(out, nil, durs, seconds)
	if khi > klo {
		for _, under := range []struct {
			label string
			ns    int64
		}{{"5us", 5000}, {"10us", 10000}, {"20us", 20000}} {
			n, _ := slices.BinarySearch(durs, under.ns)
			out.Metric("kernel.under_ratio", Labels("under", under.label), stat.Ratio(int64(n), int64(len(durs))))
		}
	}
	tinyKernels(in, out, klo, khi)

	storm := false
	procs := out.Table("launches_by_pid", "Launches per process", "launches_by_pid.csv", idCol("pid", "PID"), countCsv("launches", "Launches", "launch_count"),
		rateCol("rate", "Per second", report.PerSecond), nsCol("api_time", "API time", "api_time_ms"), countCsv("kernels", "Kernels", "kernel_count"),
		rateCol("kernel_rate", "Kernels per second", report.PerSecond), meanCol("p50", "p50 kernel", "p50_kernel_us"), report.Column{ID: "is_launch_storm", Title: "Storm", Kind: report.Bool})
	for p := range in.Trace.Procs {
		l := durationsWhere(lo, hi, func(i int) bool {
			return isLaunch(i) && api.Thread(i) != trace.None && in.Trace.Threads[api.Thread(i)].Proc == int32(p)
		}, api.Dur)
		kd := durationsWhere(klo, khi, func(i int) bool { return k.Proc(i) == int32(p) }, k.Dur)
		if len(l) == 0 && len(kd) == 0 {
			continue
		}
		slices.Sort(kd)
		pid := Labels("pid", in.pid(int32(p)))
		out.From(trace.RoleAPI, len(l), "start", "end", "nameId", "globalTid")
		r := emit(pid, l)
		kr := in.kernelDurations(out, pid, kd, seconds)
		p50, isS := report.Null, report.Null
		if len(kd) > 0 {
			v := stat.Percentile(kd, 0.5)
			p50 = report.F(v)
			if r != nil {
				isS = report.B(isStorm(*r, v))
				storm = storm || isStorm(*r, v)
			}
		}
		procs.Row(report.I(in.Trace.Procs[p].PID), report.I(int64(len(l))), cell(r), report.I(sum(l)), report.I(int64(len(kd))), cell(kr), p50, isS)
	}
	procs.Cut(-1).Add()
	if len(all) == 0 {
		out.Status(report.NotApplicable, "no launch call in the window")
		return
	}
	launchFindings(out, storm, rate, durs)
}

func launchFindings(out *Output, storm bool, rate *float64, durs []int64) {
	if rate == nil || len(durs) == 0 {
		return
	}
	p50 := stat.Percentile(durs, 0.5)
	evidence := []report.MetricRef{Ref("launch.rate"), Ref("launch.count"), Ref("kernel.duration")}
	switch {
	case storm || isStorm(*rate, p50):
		out.Find("launch_storm", report.High, "Launch storm: very many launches of very short kernels", evidence,
			"Run the step as a CUDA graph: one launch instead of one per kernel (vLLM: no --enforce-eager; SGLang: no --disable-cuda-graph).",
			"Fuse pointwise kernels (torch.compile, the engine's fused norm, activation and rope kernels) and check that the fused attention and MLP paths are taken.",
			"Give each launch more work: larger batches, persistent kernels.")
	case *rate >= stormRate2:
		out.Find("launch_rate", report.Medium, "Very high launch rate", evidence, "Look at the tiny kernels below, and at what could be fused or captured into a CUDA graph.")
	}
}

// kernelDurations emits what is said of the kernels of the whole trace or of one process. durs is sorted.
func (in *Input) kernelDurations(out *Output, l report.Labels, durs []int64, seconds float64) (rate *float64) {
	if !in.has(trace.RoleKernel) {
		return nil
	}
	out.From(trace.RoleKernel, len(durs), "start", "end")
	rate = per(len(durs), seconds)
	out.Metric("kernel.rate", l, rate)
	tiny, _ := slices.BinarySearch(durs, tinyKernel+1)
	out.Int("kernel.tiny_count", l, int64(tiny))
	if s := stat.Summarize(durs); s != nil {
		m := out.Float("kernel.duration", l, s.P50)
		m.Summary = s
	}
	return rate
}

func tinyKernels(in *Input, out *Output, lo, hi int) {
	k := &in.Trace.Kernels
	g := gather(len(k.Names), lo, hi, func(i int) int32 {
		if k.Dur(i) > tinyKernel {
			return -1
		}
		return k.Name(i)
	}, k.Dur)
	list := g.rank(len(k.Names), func(a, b int) int { return cmp.Compare(k.Names[a].Name, k.Names[b].Name) })
	slices.SortStableFunc(list, func(a, b totals) int { return cmp.Compare(b.count, a.count) })
	t := out.Table("tiny_kernels", "Tiny kernels (at most 5 µs)", "tiny_kernels.csv", nameCol("kernel_name", "Kernel"), countCsv("count", "Calls", "call_count"),
		nsCol("total", "Total", "total_time_ms"), meanCol("mean", "Mean", "avg_duration_us"))
	for _, e := range list {
		t.Row(report.S(k.Names[e.key].Name), report.I(e.count), report.I(e.total), report.F(e.summary.Mean))
	}
	t.Cut(tinyRows, "count", "total").Add()
}

func durationsWhere(lo, hi int, where func(i int) bool, dur func(i int) int64) []int64 {
	var list []int64
	for i := lo; i < hi; i++ {
		if where(i) {
			list = append(list, dur(i))
		}
	}
	return list
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
	own := in.Trace.Procs[p]
	for i, other := range in.Trace.Procs {
		if int32(i) != p && other.PID == own.PID {
			return strconv.FormatInt(own.PID, 10) + "@" + strconv.FormatInt(own.Global>>48, 16)
		}
	}
	return strconv.FormatInt(own.PID, 10)
}
