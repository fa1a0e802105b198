package gpu

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

var Kernels = kit.Section{
	ID: "kernels", Group: report.GroupKernels, Title: "Top kernels", Steady: true,
	Derivation: "Kernel rows that start in the window, grouped by full name across all devices; durations are end " +
		"minus start, summed regardless of overlap. Percentiles are exact and interpolate between " +
		"closest ranks.",
	Findings: []kit.FindingDef{
		{ID: "dominant_kernel", Title: "One kernel takes most of the kernel time", General: true},
		{ID: "large_kernel", Title: "One kernel takes a large share of the kernel time", General: true},
		{ID: "fp32_math", Title: "Matrix arithmetic runs in FP32, without tensor cores"},
		{ID: "fp64_math", Title: "Matrix arithmetic runs in FP64 on a GPU that has little of it"},
		{ID: "dominant_graph", Title: "CUDA graphs take most of the judged time, and their kernels were not traced", General: true},
	},
	Metrics: []report.MetricDef{
		kit.TotalTime("kernel.total_time", report.Lower, report.Sum.Counting("kernel", "kernel"), "sum of kernel "+
			"durations; unlabelled over the whole window").Summarised().By("", "device", "kernel").Quoted(),
		kit.ExactCount("kernel.count", report.None, report.Sum,
			"number of kernels").By("", "device", "kernel").Quoted(),
		kit.Ratio("kernel.share", report.None, report.PartOf("kernel.total_time"),
			"share of all kernel time").By("kernel").Quoted(),
		kit.Ratio("kernel.window_share", report.Lower, report.Leave,
			"time of the kernel on the device where it takes most, as a share of the window; launches that overlap "+
				"count each. Of the kernel with most time").By("kernel").Quoted(),
	},
	Tables: []report.Table{
		{ID: "kernels", Title: "Kernels across devices", File: "kernels.csv", Columns: []report.Column{
			kit.NameCol("kernel_name", "Kernel").Merged(report.Key),
			kit.Wide(kit.NameCol("short", "Short name")).Merged(report.Key),
			kit.TextCol("category", "Category").Merged(report.Key),
			kit.Wide(report.Column{ID: "weak", Title: "Weak word", Kind: report.Bool}).Merged(report.Key),
			kit.Wide(kit.TextCol("library", "Library")).Merged(report.Key),
			kit.Wide(kit.IDCol("device_id", "GPU")).Merged(report.OneDevice),
			kit.CountCol("count", "Calls", "call_count").Merged(report.Sum),
			kit.NsCol("total", "Total", "total_time_ns", "total_time_ms").Merged(report.Sum.First()),
			kit.RatioCol("share", "Share", "pct_total_kernel_time").Merged(report.PartOf("total")),
			kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.RatioOf("total", "count")),
			kit.Wide(kit.NsCol("min", "Min", "min_duration_us")).Merged(report.Min),
			kit.Wide(kit.NsCol("max", "Max", "max_duration_us")).Merged(report.Max),
			kit.MeanCol("p50", "p50", "p50_duration_us").Merged(report.PercentileOf("kernel", 0.5)),
			kit.MeanCol("p90", "p90", "p90_duration_us").Merged(report.PercentileOf("kernel", 0.9)),
			kit.MeanCol("p99", "p99", "p99_duration_us").Merged(report.PercentileOf("kernel", 0.99)),
			kit.Wide(kit.TextCol("grid", "Grid")).Merged(report.OfMost),
			kit.Wide(kit.TextCol("block", "Block")).Merged(report.OfMost),
			kit.Wide(kit.FloatCol("avg_grid_size", "Mean grid", report.Count)).Merged(report.MeanBy("count")),
			kit.Wide(kit.FloatCol("avg_block_size", "Mean block", report.Count)).Merged(report.MeanBy("count")),
		}},
		{ID: "kernels_per_device", Title: "Kernels per device", File: "kernels_per_device.csv",
			Columns: []report.Column{
				kit.NameCol("kernel_name", "Kernel").Merged(report.Key),
				kit.IDCol("device_id", "GPU").Merged(report.Device),
				kit.CountCol("count", "Calls", "call_count").Merged(report.Same),
				kit.NsCol("total", "Total", "total_time_ns", "total_time_ms").Merged(report.Same),
				kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.Same),
				kit.Wide(kit.NsCol("min", "Min", "min_duration_us")).Merged(report.Same),
				kit.Wide(kit.NsCol("max", "Max", "max_duration_us")).Merged(report.Same),
				kit.MeanCol("p50", "p50", "p50_duration_us").Merged(report.Same),
				kit.MeanCol("p90", "p90", "p90_duration_us").Merged(report.Same),
				kit.RatioCol("share", "Share", "pct_total_kernel_time").Merged(report.Same),
			}},
		{ID: "kernel_stats", Title: "Kernel launches", File: "kernel_stats.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("kernel_name", "Kernel"),
			kit.NsCol("duration", "Duration", "duration_us"),
			kit.MomentCol("start", "Start", "start_ns"),
			kit.CountCol("grid_size", "Grid size"),
			kit.CountCol("block_size", "Block size"),
			kit.BytesCol("shared_mem_bytes", "Shared memory"),
			kit.CountCol("registersPerThread", "Registers"),
		}},
	},
	Early: func(in *kit.Input) { in.KernelStats() },
	Run:   kernels,
}

// occupancyColumn is present if the profiler estimated occupancy from launch configuration and device: warps that can
// be active on an SM over those it can hold, if the grid is spread evenly.
var occupancyColumn = kit.RatioCol("occupancy_estimate", "Est. occupancy", "est_occupancy_pct").Merged(report.MeanBy("count"))

// Bounds that keep report.json small: kernels by time until either is reached; the others row holds the rest.
const (
	maxKernelMetrics   = 400
	maxKernelNameBytes = 120 << 10
)

// Shares of kernel time of the top kernel, from nsys-llm-explainer. If two kernels are equal, neither takes most.
const (
	dominantKernel = 0.50
	largeKernel    = 0.25
	// leastTold is the share of the judged time, 0..1, from which a kernel is a finding for its size alone: to save a
	// tenth of the time it would have to run half as fast again. A smaller kernel needs another reason.
	leastTold = 1.0 / 3
)

func kernels(in *kit.Input, out *kit.Output) {
	if !in.Trace.Tables.Has(trace.RoleKernel) {
		noKernels(in, out)
		return
	}
	k := &in.Trace.Kernels
	lo, hi := k.Starting(in.Span.Start, in.Span.End)
	stats := in.KernelStats()
	list, total := stats.Names, stats.All.Total

	out.From(trace.RoleKernel, hi-lo, "start", "end", "demangledName", "shortName")
	out.Int("kernel.total_time", nil, total)
	out.Int("kernel.count", nil, int64(hi-lo))
	if hi == lo {
		out.Status(report.NotApplicable, "no kernel starts in the window")
		return
	}
	byDevice := kernelsPerDevice(in, out)

	launched := launchConfigs(k, lo, hi)
	devices := map[int32]int32{} // by name of the kernel: the only device, or -1
	for _, e := range stats.OnDevices {
		if _, seen := devices[e.Name]; seen {
			e.Device = -1
		}
		devices[e.Name] = e.Device
	}
	t := out.Table("kernels")
	measured := kit.NewNcuMatch(in.Evidence, in.Trace.Kernels.Names)
	if measured != nil {
		t.Columns = append(slices.Clone(t.Columns), kit.NcuColumns...)
	}
	occupancy := slices.ContainsFunc(k.Configs, func(c trace.LaunchConfig) bool { return c.Occupancy >= 0 })
	if occupancy {
		t.Columns = append(slices.Clone(t.Columns), occupancyColumn)
	}
	room := kit.Budget{Names: maxKernelMetrics, Bytes: maxKernelNameBytes}
	for n, e := range list {
		name := k.Names[e.Key].Name
		kind := &in.Kinds[e.Key]
		share := stat.Ratio(e.Total, total)
		if room.Take(name) {
			l := kit.Labels("kernel", name)
			out.Source.Rows = e.Count
			m := out.Int("kernel.total_time", l, e.Total)
			if in.Options.Percentiles {
				m.Summary = e.Summary
				if n < kit.MaxHistograms {
					m.Histogram = stats.Histograms[n]
				}
			}
			out.Int("kernel.count", l, e.Count)
			if n < in.Options.Top {
				out.Metric("kernel.share", l, share)
			}
		}
		config := &launched[e.Key]
		c := k.Configs[config.common]
		row := append(durations(in, t, e.Summary),
			kit.Text("kernel_name", name), kit.Text("short", kind.Display), kit.Text("category", string(kind.Category)),
			kit.Put("weak", report.B(kind.Weak)), kit.Text("library", kind.Library), kit.Put("device_id", kit.Known(int64(devices[int32(e.Key)]))),
			kit.Int("count", e.Count), kit.Int("total", e.Total), kit.Maybe("share", share),
			kit.Text("grid", dims(c.Grid)), kit.Text("block", dims(c.Block)),
			kit.Put("avg_grid_size", meanSize(config.grid, e.Count)), kit.Put("avg_block_size",
				meanSize(config.block, e.Count)))
		row = append(row, measured.Cells(name)...)
		if occupancy {
			row = append(row, kit.Put("occupancy_estimate", kit.Cell(stat.Ratio(config.occupancy, 100*config.estimated))))
		}
		t.Partial(row...)
	}
	t.Cut(in.Options.Top, "count", "total", "share").Add()
	byDevice.Cut(2*in.Options.Top, "count", "total", "share").Add()
	if !in.Options.Percentiles {
		out.Note("Percentiles were switched off (--no-kernel-percentiles).")
	}
	hidden, graphs := wholeGraphs(in)
	if graphs > 0 {
		out.Status(report.Partial, hiddenKernels)
		out.Coverage(stat.Ratio(total, total+hidden))
	}
	kernelDetails(in, out, lo, hi)
	top := list[0]
	if name := k.Names[top.Key].Name; len(name) <= maxKernelNameBytes && in.Options.Top > 0 {
		on := lists.Filter(stats.OnDevices, func(e kit.PlaceTotals) bool { return int(e.Name) == top.Key })
		time := lists.Most(on, func(e kit.PlaceTotals) int64 { return e.Total })
		out.Source.Rows = top.Count
		out.Metric("kernel.window_share", kit.Labels("kernel", name), stat.Ratio(time, in.Span.Len()))
	}
	topKernelFindings(in, out)
}

// durations are the columns of statistics, percentiles only if they were asked for.
func durations(in *kit.Input, t *kit.Table, s *report.Summary) []kit.Field {
	return slices.DeleteFunc(t.Stats(s), func(f kit.Field) bool {
		return !in.Options.Percentiles && strings.HasPrefix(f.Column, "p")
	})
}

// noKernels distinguishes two kinds of capture without kernel rows: if nothing was launched, it holds no kernels and
// their number is 0; if something was, GPU activity was not captured and the number is unknown.
func noKernels(in *kit.Input, out *kit.Output) {
	switch {
	case in.Trace.Graphs.Len() > 0 || in.CallStats().InCapture(func(n *trace.APIName) bool { return n.Launch }) > 0:
		out.Status(report.Unavailable, in.Lack(trace.RoleKernel))
		return
	case in.Trace.Tables.Has(trace.RoleAPI):
		out.Status(report.NotApplicable, "no kernel ran: the capture has CUDA API calls, and no launch among them")
		out.From(trace.RoleAPI, in.Trace.API.Len(), "nameId")
	default:
		out.Status(report.Unavailable, in.Lack(trace.RoleKernel))
		out.From(trace.RoleKernel, 0, "start", "end")
	}
	out.Int("kernel.total_time", nil, 0)
	out.Int("kernel.count", nil, 0)
}

// topKernelFindings report the kernel with most of the judged time, and arithmetic that could run on tensor cores.
func topKernelFindings(in *kit.Input, out *kit.Output) {
	s := in.Step()
	fp32Finding(in, out, s)
	fp64Finding(in, out, s)
	graphFinding(out, s)
	top := topKernel(in, s)
	if top < 0 || in.Options.Top < 1 || len(in.Trace.Kernels.Names[top].Name) > maxKernelNameBytes {
		return
	}
	ns, all, name := s.Kernels[top], s.Compute, in.Kinds[top].Display
	id, title := "large_kernel", kit.Quoted(name)+" takes "+unit.Percent(s.Share(ns))+" of the "+s.What()
	switch {
	case float64(ns) > dominantKernel*float64(all):
		id, title = "dominant_kernel", title+", most of its compute"
	case float64(ns) < largeKernel*float64(all):
		return
	}
	advice := append(slices.Clone(kernelAdvice[in.Kinds[top].Category]), counterAdvice(in))
	f := out.FindAs(id, title, kernelRefs(in, s, top), advice...).At(name)
	if s.Share(ns) >= leastTold {
		f.Costs(s.Worth(ns), kit.KernelClaim(int32(top), ns))
	}
}

// counterAdvice says how to find out what bounds a kernel.
func counterAdvice(in *kit.Input) string {
	return "`explain report " + traceArg(in.Trace.File.Name) +
		" --ncu-targets kernels.yaml` writes the Nsight Compute command that says whether it is compute, memory or latency bound."
}

// toldAlone reports whether a kernel is a finding of its own.
func toldAlone(in *kit.Input, s *kit.Step, name int) bool {
	ns := s.Kernels[name]
	return name == topKernel(in, s) && float64(ns) >= largeKernel*float64(s.Compute) && s.Share(ns) >= leastTold
}

// topKernel is the name of the kernel with most compute of the judged time, or -1.
func topKernel(in *kit.Input, s *kit.Step) int {
	_, _, top := kernelClaims(in, s, func(int) bool { return true })
	return top
}

// kernelClaims are the compute times of some kernels, and the name of the one with most; -1 if there is none. CUDA
// graphs traced as a whole are not asked for.
func kernelClaims(in *kit.Input, s *kit.Step, are func(name int) bool) (claims []kit.Claim, ns int64, largest int) {
	largest = -1
	claims, ns = s.KernelClaims(func(n int) bool {
		if n >= len(in.Kinds) || !are(n) {
			return false
		}
		if largest < 0 || heavier(in, s, n, largest) {
			largest = n
		}
		return true
	})
	return claims, ns, largest
}

// heavier reports whether kernel a has more of the judged time than b, or as much and the first name.
func heavier(in *kit.Input, s *kit.Step, a, b int) bool {
	names := in.Trace.Kernels.Names
	return s.Kernels[a] > s.Kernels[b] || s.Kernels[a] == s.Kernels[b] && names[a].Name < names[b].Name
}

// kernelRefs point at the time of a kernel: in a unit of work, or in the window.
func kernelRefs(in *kit.Input, s *kit.Step, name int) []report.MetricRef {
	full := in.Trace.Kernels.Names[name].Name
	if s.Units > 0 {
		return []report.MetricRef{kit.Ref("kernel.exclusive_time_per_unit", "kernel", full)}
	}
	return []report.MetricRef{kit.Ref("kernel.total_time", "kernel", full), kit.Ref("kernel.share", "kernel", full)}
}

// mostlyGraphs is the share of the judged time from which CUDA graphs traced as a whole are the finding.
const mostlyGraphs = 0.80

// graphFinding says that CUDA graphs traced as a whole take the judged time: the GPU is busy, but the capture does not
// hold the kernels.
func graphFinding(out *kit.Output, s *kit.Step) {
	last := len(s.Kernels) - 1
	if ns := s.Kernels[last]; s.Share(ns) >= mostlyGraphs {
		out.FindAs("dominant_graph", "CUDA graphs take "+unit.Percent(s.Share(ns))+" of the "+s.What()+": the GPU sets the pace, and which kernels run in them was not traced",
			stepRefs(s, "unit.compute_time", "gpu.compute_time"),
			"Capture again with --cuda-graph-trace=node: the kernels inside say what to make faster.",
		).Costs(s.Worth(ns), kit.KernelClaim(int32(last), ns))
	}
}

var kernelAdvice = map[kernelname.Category][]string{
	kernelname.Attention:   {"Compare attention back ends for this shape and GPU" + kit.SetAttention + ", and check that head size and dtype use the fast path."},
	kernelname.GEMM:        {"Check the dtype (fp8 or bf16 rather than fp32), that tensor cores are used, and whether the batch is large enough to fill the GPU."},
	kernelname.MoEGEMM:     {"Check for a tuned fused-MoE configuration for this GPU and expert count, and whether tokens are spread over the experts."},
	kernelname.Comm:        {"A communication kernel also waits for the slowest rank: compare the devices before looking at the link."},
	kernelname.Elementwise: {"Fuse it into its neighbours: torch.compile, or the engine's fused kernels."},
	kernelname.Memory:      {"Find who copies or changes layouts (the NVTX range around the launch), and keep tensors in the layout their consumer wants."},
}

func kernelsPerDevice(in *kit.Input, out *kit.Output) *kit.Table {
	k := &in.Trace.Kernels
	list := slices.Clone(in.KernelStats().OnDevices)
	lists.Sort(list, func(a, b kit.PlaceTotals) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Count, a.Count),
			cmp.Compare(k.Names[a.Name].Name, k.Names[b.Name].Name), cmp.Compare(a.Device, b.Device))
	})
	devices := kit.NewTally[int32, kit.Sums]()
	for _, e := range list {
		s := devices.At(e.Device)
		s.Count, s.Total = s.Count+e.Count, s.Total+e.Total
	}
	for _, d := range slices.Sorted(slices.Values(devices.Keys)) {
		s, l := devices.At(d), kit.Labels("device", strconv.Itoa(int(d)))
		out.Source.Rows = s.Count
		out.Int("kernel.total_time", l, s.Total)
		out.Int("kernel.count", l, s.Count)
	}
	t := out.Table("kernels_per_device")
	for _, e := range list {
		t.Partial(append(durations(in, t, e.Summary),
			kit.Text("kernel_name", k.Names[e.Name].Name), kit.Int("device_id", int64(e.Device)),
			kit.Int("count", e.Count), kit.Int("total", e.Total), kit.Maybe("share", stat.Ratio(e.Total, in.KernelStats().All.Total)))...)
	}
	return t
}

// launchConfig is how the kernels of one name were launched.
type launchConfig struct {
	common      int32 // the most common configuration, the first launched if several are
	most        int64 // how often it occurs
	grid, block int64 // blocks, and threads of a block, summed over launches

	occupancy, estimated int64 // percent summed over the launches for which it was estimated, and their number
}

// launchConfigs is by kernel name.
func launchConfigs(k *trace.Kernels, lo, hi int) []launchConfig {
	seen := kit.NewCombos(len(k.Names), len(k.Configs))
	var counts []int64
	for i := lo; i < hi; i++ {
		*lists.At(&counts, seen.Of(k.Name(i), k.Config(i)))++
	}
	list := make([]launchConfig, len(k.Names))
	for n, x := range seen.Keys {
		c, l := &k.Configs[x.B], &list[x.A]
		if counts[n] > l.most {
			l.most, l.common = counts[n], x.B
		}
		l.grid += counts[n] * volume(c.Grid)
		l.block += counts[n] * volume(c.Block)
		if c.Occupancy >= 0 {
			l.occupancy += counts[n] * int64(c.Occupancy)
			l.estimated += counts[n]
		}
	}
	return list
}

// meanSize is the mean size of launches, null if the export lacks it: no launch has size 0.
func meanSize(total, launches int64) report.Cell {
	if total == 0 {
		return report.Null
	}
	return report.F(float64(total) / float64(launches))
}

func dims(d [3]int32) string { return fmt.Sprintf("%d×%d×%d", d[0], d[1], d[2]) }

// kernelDetails is profilemate's kernel_stats.csv: one row per launch, the longest ones if there are more than asked
// for.
func kernelDetails(in *kit.Input, out *kit.Output, lo, hi int) {
	k := &in.Trace.Kernels
	t := out.Table("kernel_stats")
	for _, i := range in.Options.Longest(lo, hi, k.Dur) {
		c := k.Configs[k.Config(i)]
		t.Row(
			kit.Text("kernel_name", k.Names[k.Name(i)].Name), kit.Int("duration", k.Dur(i)),
			kit.Int("start", k.Start(i)), kit.Int("grid_size", volume(c.Grid)),
			kit.Int("block_size", volume(c.Block)),
			kit.Int("shared_mem_bytes", int64(c.SharedStatic)+int64(c.SharedDynamic)),
			kit.Int("registersPerThread", int64(c.Registers)))
	}
	t.AttachDetails(hi - lo)
}

func volume(d [3]int32) int64 { return int64(d[0]) * int64(d[1]) * int64(d[2]) }

// traceArg is a trace's name as a command takes it, or TRACE where the name would have to be quoted.
func traceArg(name string) string {
	if plainFile.MatchString(name) {
		return name
	}
	return "TRACE"
}

var plainFile = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$`)
