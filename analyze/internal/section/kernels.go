package section

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var kernelsSection = Section{
	ID: "kernels", Title: "Top kernels", Rank: 30,
	Derivation: "Kernel rows that start in the window, grouped by full name across all devices; durations are " +
		"end minus start, added up without regard to overlap. Percentiles are exact and interpolate between " +
		"closest ranks.",
	Metrics: []report.MetricDef{
		{
			ID: "kernel.total_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Stats: true, Labels: []string{"", "device", "kernel"},
			Meaning: "sum of kernel durations; unlabelled over the whole window",
		},
		{
			ID: "kernel.count", Unit: report.Count, Better: report.None, Assume: report.Exact,
			Scale: report.Total, Labels: []string{"", "device", "kernel"},
			Meaning: "number of kernels",
		},
		{
			ID: "kernel.share", Unit: report.Ratio, Better: report.None, Assume: report.Noisy,
			Scale: report.Level, Labels: []string{"kernel"},
			Meaning: "share of all kernel time",
		},
	},
	Tables: []report.Table{
		{ID: "kernels", Title: "Kernels across devices", File: "kernels.csv", Columns: []report.Column{
			nameCol("kernel_name", "Kernel"),
			wide(nameCol("short", "Short name")),
			textCol("category", "Category"),
			wide(textCol("library", "Library")),
			wide(idCol("device_id", "GPU")),
			countCsv("count", "Calls", "call_count"),
			nsCol("total", "Total", "total_time_ns", "total_time_ms"),
			ratioCol("share", "Share", "pct_total_kernel_time"),
			meanCol("mean", "Mean", "avg_duration_us"),
			wide(nsCol("min", "Min", "min_duration_us")),
			wide(nsCol("max", "Max", "max_duration_us")),
			meanCol("p50", "p50", "p50_duration_us"),
			meanCol("p90", "p90", "p90_duration_us"),
			meanCol("p99", "p99", "p99_duration_us"),
			wide(textCol("grid", "Grid")),
			wide(textCol("block", "Block")),
			wide(sizeCol("avg_grid_size", "Mean grid")),
			wide(sizeCol("avg_block_size", "Mean block")),
		}},
		{ID: "kernels_per_device", Title: "Kernels per device", File: "kernels_per_device.csv", Columns: []report.Column{
			nameCol("kernel_name", "Kernel"),
			idCol("device_id", "GPU"),
			countCsv("count", "Calls", "call_count"),
			nsCol("total", "Total", "total_time_ns", "total_time_ms"),
			meanCol("mean", "Mean", "avg_duration_us"),
			wide(nsCol("min", "Min", "min_duration_us")),
			wide(nsCol("max", "Max", "max_duration_us")),
			meanCol("p50", "p50", "p50_duration_us"),
			meanCol("p90", "p90", "p90_duration_us"),
			ratioCol("share", "Share", "pct_total_kernel_time"),
		}},
		{ID: "kernel_stats", Title: "Kernel launches", File: "kernel_stats.csv", Columns: []report.Column{
			nameCol("kernel_name", "Kernel"),
			nsCol("duration", "Duration", "duration_us"),
			momentCol("start", "Start", "start_ns"),
			countCol("grid_size", "Grid size"),
			countCol("block_size", "Block size"),
			bytesCol("shared_mem_bytes", "Shared memory"),
			countCol("registersPerThread", "Registers"),
		}},
	},
	Run: kernels,
}

// Bounds that keep report.json small: kernels by time until either is reached, the rest is in the others row.
const (
	maxKernelMetrics   = 400
	maxKernelNameBytes = 120 << 10
	maxHistograms      = 30
)

// Shares of kernel time of the top kernel, from nsys-llm-explainer.
const (
	dominantKernel = 0.50
	largeKernel    = 0.25
)

func kernels(in *Input, out *Output) {
	if !in.has(trace.RoleKernel) {
		noKernels(in, out)
		return
	}
	k := &in.Trace.Kernels
	lo, hi := k.Starting(in.Span.Start, in.Span.End)
	stats := in.kernelStats()
	list, total := stats.names, stats.all.total

	out.From(trace.RoleKernel, hi-lo, "start", "end", "demangledName", "shortName")
	out.Int("kernel.total_time", nil, total)
	out.Int("kernel.count", nil, int64(hi-lo))
	if hi == lo {
		out.Status(report.NotApplicable, "no kernel starts in the window")
		return
	}
	byDevice := kernelsPerDevice(in, out)

	launched := launchConfigs(k, lo, hi)
	devices := namesOnDevices(k, lo, hi)
	t := out.Table("kernels")
	measured := in.ncuMatch()
	if measured != nil {
		t.t.Columns = append(slices.Clone(t.t.Columns), ncuColumns...)
	}
	bytes := 0
	for n, e := range list {
		name := k.Names[e.key].Name
		kind := &in.Kinds[e.key]
		share := stat.Ratio(e.total, total)
		if bytes += len(name); n < maxKernelMetrics && bytes <= maxKernelNameBytes {
			l := Labels("kernel", name)
			out.source.Rows = e.count
			m := out.Int("kernel.total_time", l, e.total)
			if in.Options.Percentiles {
				m.Summary = e.summary
				if n < maxHistograms {
					m.Histogram = stats.histograms[n]
				}
			}
			out.Int("kernel.count", l, e.count)
			if n < in.Options.Top {
				out.Metric("kernel.share", l, share)
			}
		}
		config := &launched[e.key]
		c := k.Configs[config.common]
		p50, p90, p99 := report.Null, report.Null, report.Null
		if in.Options.Percentiles {
			p50, p90, p99 = report.F(e.summary.P50), report.F(e.summary.P90), report.F(e.summary.P99)
		}
		device := report.Null
		if d := devices[e.key]; d >= 0 {
			device = report.I(int64(d))
		}
		row := []report.Cell{report.S(name), report.S(kind.Display), report.S(string(kind.Category)), report.S(kind.Library), device,
			report.I(e.count), report.I(e.total), cell(share), report.F(e.summary.Mean), report.I(int64(e.summary.Min)), report.I(int64(e.summary.Max)),
			p50, p90, p99, report.S(dims(c.Grid)), report.S(dims(c.Block)), meanSize(config.grid, e.count), meanSize(config.block, e.count)}
		t.Row(append(row, measured.cells(name)...)...)
	}
	out.Chart(kernelMap(in, list, total))
	t.Cut(in.Options.Top, "count", "total", "share").Add()
	byDevice.Cut(2*in.Options.Top, "count", "total", "share").Add()
	if !in.Options.Percentiles {
		out.Note("Percentiles were switched off (--no-kernel-percentiles).")
	}
	hidden, graphs := in.wholeGraphs()
	if graphs > 0 {
		out.Status(report.Partial, hiddenKernels)
		out.Coverage(stat.Ratio(total, total+hidden))
	}
	kernelDetails(in, out, lo, hi)
	topKernelFindings(in, out, list, total, hidden)
}

// noKernels tells two kinds of capture without kernel rows apart: where nothing was launched, it holds no kernels and
// their number is 0; where something was, GPU activity was not captured and the number is unknown.
func noKernels(in *Input, out *Output) {
	a := &in.Trace.API
	launched := in.Trace.Graphs.Len() > 0
	launched = launched || in.countCalls(func(n *trace.APIName) bool { return n.Launch }) > 0
	switch {
	case launched:
		out.Status(report.Unavailable, in.lack(trace.RoleKernel))
		return
	case in.has(trace.RoleAPI):
		out.Status(report.NotApplicable, "no kernel ran: the capture has CUDA API calls, and no launch among them")
		out.From(trace.RoleAPI, a.Len(), "nameId")
	default:
		out.Status(report.Unavailable, in.lack(trace.RoleKernel))
		out.From(trace.RoleKernel, 0, "start", "end")
	}
	out.Int("kernel.total_time", nil, 0)
	out.Int("kernel.count", nil, 0)
}

// hiddenKernels is why sections about kernels are partial where CUDA graphs were traced as a whole.
const hiddenKernels = "CUDA graphs were traced as a whole (--cuda-graph-trace=graph): the kernels inside them are not in the capture; capture with --cuda-graph-trace=node to see them"

// wholeGraphs are the CUDA graphs of the window that were traced as a whole: the sum of their times, and how many.
func (in *Input) wholeGraphs() (total int64, count int) {
	g := &in.Trace.Graphs
	lo, hi := g.Starting(in.Span.Start, in.Span.End)
	for i := lo; i < hi; i++ {
		total += g.Dur(i)
	}
	return total, hi - lo
}

// topKernelFindings holds the top kernel against all GPU time that kernels account for, hidden graphs included: the top
// of the few kernels outside of CUDA graphs dominates nothing.
func topKernelFindings(in *Input, out *Output, list []totals, total, hidden int64) {
	top := list[0]
	share := float64(top.total) / float64(max(total+hidden, 1))
	name := in.Trace.Kernels.Names[top.key].Name
	if len(name) > maxKernelNameBytes || in.Options.Top < 1 {
		return
	}
	evidence := []report.MetricRef{Ref("kernel.share", "kernel", name), Ref("kernel.total_time", "kernel", name), Ref("kernel.count", "kernel", name)}
	severity, first := report.High, "Inspect it with Nsight Compute and see whether it is compute, memory or latency bound: "+ncuCommand(top.count)+"."
	if share < dominantKernel {
		severity, first = report.Medium, "Start there: no other kernel offers as much. "+ncuCommand(top.count)+" says whether it is compute, memory or latency bound."
	}
	advice := append([]string{first}, kernelAdvice[in.Kinds[top.key].Category]...)
	if in.minor(top.total) {
		advice = append([]string{"Kernels take little of the GPUs' time in this window: look first at what fills the rest."}, advice...)
	}
	switch {
	case share >= dominantKernel:
		out.Find("dominant_kernel", severity, "One kernel takes most of the kernel time", evidence, advice...)
	case share >= largeKernel:
		out.Find("large_kernel", severity, "One kernel takes a large share of the kernel time", evidence, advice...)
	}
}

// ncuCommand is the command that measures a kernel which is launched n times, past its first launches.
func ncuCommand(n int64) string {
	skip := ""
	if s := min(100, n/2); s > 0 {
		skip = " --launch-skip " + strconv.FormatInt(s, 10)
	}
	return "`ncu --set full --kernel-name regex:NAME" + skip + " --launch-count " + strconv.FormatInt(max(1, min(5, n/2)), 10) + "`"
}

// minorShare of the devices' time in the window is little: what takes less is no place to start, however large a share of
// the kernel time it is.
const minorShare = 0.05

func (in *Input) minor(ns int64) bool {
	return float64(ns) < minorShare*float64(in.Span.Len())*float64(len(in.Timeline.Devices))
}

// kernelAdvice is what an expert would try, by category.
var kernelAdvice = map[kernelname.Category][]string{
	kernelname.Attention:   {"Compare attention back ends for this shape and GPU (vLLM and SGLang: --attention-backend; older vLLM: VLLM_ATTENTION_BACKEND), and check that head size and dtype use the fast path."},
	kernelname.GEMM:        {"Check the dtype (fp8 or bf16 rather than fp32), that tensor cores are used, and whether the batch is large enough to fill the GPU."},
	kernelname.MoEGEMM:     {"Check for a tuned fused-MoE configuration for this GPU and expert count, and whether tokens are spread over the experts."},
	kernelname.Comm:        {"A communication kernel also waits for the slowest rank: compare the devices before looking at the link."},
	kernelname.Elementwise: {"Fuse it into its neighbours: torch.compile, or the engine's fused kernels."},
	kernelname.Memory:      {"Find who copies or changes layouts (the NVTX range around the launch), and keep tensors in the layout their consumer wants."},
}

func kernelsPerDevice(in *Input, out *Output) *Table {
	k := &in.Trace.Kernels
	list := slices.Clone(in.kernelStats().onDevices)
	slices.SortFunc(list, func(a, b placeTotals) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(b.count, a.count), cmp.Compare(k.Names[a.name].Name, k.Names[b.name].Name), cmp.Compare(a.device, b.device))
	})
	var all int64
	type sums struct{ count, total int64 }
	devices := map[int32]sums{}
	for _, e := range list {
		s := devices[e.device]
		devices[e.device] = sums{s.count + e.count, s.total + e.total}
		all += e.total
	}
	for _, d := range slices.Sorted(maps.Keys(devices)) {
		l := Labels("device", strconv.Itoa(int(d)))
		out.source.Rows = devices[d].count
		out.Int("kernel.total_time", l, devices[d].total)
		out.Int("kernel.count", l, devices[d].count)
	}
	t := out.Table("kernels_per_device")
	for _, e := range list {
		p50, p90 := report.Null, report.Null
		if in.Options.Percentiles {
			p50, p90 = report.F(e.summary.P50), report.F(e.summary.P90)
		}
		t.Row(report.S(k.Names[e.name].Name), report.I(int64(e.device)), report.I(e.count), report.I(e.total),
			report.F(e.summary.Mean), report.I(int64(e.summary.Min)), report.I(int64(e.summary.Max)), p50, p90, cell(stat.Ratio(e.total, all)))
	}
	return t
}

// namesOnDevices is, by kernel name, the one device it ran on, or -1 if there were several.
func namesOnDevices(k *trace.Kernels, lo, hi int) []int32 {
	const unseen = -2
	on := make([]int32, len(k.Names))
	for i := range on {
		on[i] = unseen
	}
	for i := lo; i < hi; i++ {
		switch at := &on[k.Name(i)]; *at {
		case unseen:
			*at = k.Device(i)
		case k.Device(i):
		default:
			*at = -1
		}
	}
	return on
}

// launchConfig is how the kernels of one name were launched.
type launchConfig struct {
	common      int32 // the most common configuration, the first launched where several are
	most        int64 // how often that was
	grid, block int64 // blocks, and threads of a block, summed over launches
}

// launchConfigs is by kernel name.
func launchConfigs(k *trace.Kernels, lo, hi int) []launchConfig {
	seen := newPairs() // name, configuration
	var counts []int64
	for i := lo; i < hi; i++ {
		n := seen.of(k.Name(i), k.Config(i))
		if int(n) == len(counts) {
			counts = append(counts, 0)
		}
		counts[n]++
	}
	list := make([]launchConfig, len(k.Names))
	for n, x := range seen.list {
		c, l := &k.Configs[x.b], &list[x.a]
		if counts[n] > l.most {
			l.most, l.common = counts[n], x.b
		}
		l.grid += counts[n] * volume(c.Grid)
		l.block += counts[n] * volume(c.Block)
	}
	return list
}

// sizeCol is a mean number of blocks or threads.
func sizeCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Float, Unit: report.Count}
}

// meanSize is the mean size of launches, null where the export does not have it: no launch is of size 0.
func meanSize(total, launches int64) report.Cell {
	if total == 0 {
		return report.Null
	}
	return report.F(float64(total) / float64(launches))
}

func dims(d [3]int32) string { return fmt.Sprintf("%d×%d×%d", d[0], d[1], d[2]) }

func countCsv(id, title, csv string) report.Column {
	c := countCol(id, title)
	c.CSV = []report.CSVCol{{Name: csv}}
	return c
}

// kernelDetails is profilemate's kernel_stats.csv: one row per launch, the longest ones where there are too many.
func kernelDetails(in *Input, out *Output, lo, hi int) {
	k := &in.Trace.Kernels
	t := out.Table("kernel_stats")
	rows := longest(lo, hi, k.Dur)
	for _, i := range rows {
		c := k.Configs[k.Config(i)]
		t.Row(report.S(k.Names[k.Name(i)].Name), report.I(k.Dur(i)), report.I(k.Start(i)),
			report.I(volume(c.Grid)), report.I(volume(c.Block)), report.I(int64(c.SharedStatic)+int64(c.SharedDynamic)), report.I(int64(c.Registers)))
	}
	t.attachDetails(lo, hi, rows, "duration", k.Dur)
}

func volume(d [3]int32) int64 { return int64(d[0]) * int64(d[1]) * int64(d[2]) }
