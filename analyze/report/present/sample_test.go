package present_test

import (
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// builder makes the reports of the tests.
type builder struct {
	r *report.Report
}

func ptr[T any](v T) *T { return &v }

func labels(pairs ...string) report.Labels {
	l := report.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	return l
}

func (b *builder) metric(id, unit string, value float64, pairs ...string) *report.Metric {
	b.r.Metrics = append(b.r.Metrics, report.Metric{ID: id, Labels: labels(pairs...), Value: &value, Unit: unit, Better: report.None, Assume: report.Noisy, Scale: report.Total, N: 1,
		Source: report.Source{Tables: []string{"CUPTI_ACTIVITY_KIND_KERNEL"}, Columns: []string{}, Rows: 1}, Lifecycle: report.Stable})
	return &b.r.Metrics[len(b.r.Metrics)-1]
}

func (b *builder) ns(id string, value float64, pairs ...string) *report.Metric {
	return b.metric(id, report.Nanoseconds, value, pairs...)
}

// sampleGroups are the groups of the sections that the tests make.
var sampleGroups = map[string]string{"gpu_time": report.GroupTime, "idle": report.GroupTime, "graphs": report.GroupTime, "kernels": report.GroupKernels,
	"comm": report.GroupMemory, "memcpy": report.GroupMemory, "phases": report.GroupRanges, "unit": report.GroupStep, "quality": report.GroupCapture}

func (b *builder) section(id, title string, status report.Status, reason string, tables ...report.Table) *report.Section {
	if tables == nil {
		tables = []report.Table{}
	}
	b.r.Sections = append(b.r.Sections, report.Section{ID: id, Title: title, Group: sampleGroups[id], Status: status, Reason: reason, Notes: []string{}, Tables: tables, Charts: []report.Chart{}})
	return &b.r.Sections[len(b.r.Sections)-1]
}

func empty(name string) *builder {
	return &builder{&report.Report{
		Schema: report.SchemaID, Tool: report.Tool{Name: "explain", Version: "0.1.0"},
		Trace:       report.Provenance{Name: name, Kind: "nsys-sqlite", Tables: []report.TableCount{}},
		Environment: report.Environment{GPUs: []report.GPU{}, TraceSet: []string{}},
		Window:      report.Window{Mode: "empty"},
		Unit:        report.Unit{Groups: []report.UnitGroup{}},
		Evidence:    []report.EvidenceFile{}, Metrics: []report.Metric{}, Sections: []report.Section{}, Findings: []report.Finding{}, Warnings: []report.Warning{},
	}}
}

func ref(id string, pairs ...string) report.MetricRef {
	return report.MetricRef{ID: id, Labels: labels(pairs...)}
}

type kernel struct {
	name, short, category  string
	count, total, min, max int64
	p50, p90, p99          float64
}

const flash = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<(int)128, (int)64, (int)128, (int)4, (bool)0, (bool)0, cutlass::bfloat16_t, Flash_kernel_traits<(int)128, (int)64, (int)128, (int)4, cutlass::bfloat16_t>>, (bool)1, (bool)0>(flash::Flash_fwd_params)"

var kernels = []kernel{
	{flash, "flash_fwd_splitkv_kernel<128, 64, 128, 4, bf16>", "attention", 7680, 312417280, 35104, 61023, 40447, 44128, 52800},
	{"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "gemm", 15360, 284112896, 14208, 28096, 18303, 19904, 22016},
	{"void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(T1::Params)", "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2", "gemm", 7680, 96714752, 10208, 20544, 12447, 13152, 15008},
	{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "comm", 7680, 88211456, 8096, 91360, 10143, 14336, 61088},
	{"void vllm::rms_norm_kernel<c10::BFloat16>(T1 *, const T1 *, const T1 *, float, int, int)", "rms_norm_kernel<bf16>", "norm", 15480, 31455360, 1664, 3456, 2015, 2240, 2720},
	{"void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, (bool)1>(T1 *, const T1 *, int)", "act_and_mul_kernel<bf16, silu>", "activation", 7680, 17203200, 1920, 3104, 2240, 2431, 2784},
	{"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(const T1 *, const T1 *, T2 *, T2 *, const long *, long, int, int, int, int, const float *, const float *)", "reshape_and_cache_flash_kernel<bf16, bf16>", "kv_cache", 7680, 14991360, 1696, 2880, 1951, 2112, 2368},
}

func kernelTable() report.Table {
	t := report.Table{ID: "kernels", Title: "Kernels across devices", File: "kernels.csv", Columns: []report.Column{
		{ID: "kernel_name", Title: "Kernel", Kind: report.Name}, {ID: "short", Title: "Short name", Kind: report.Name, Wide: true}, {ID: "category", Title: "Category", Kind: report.Text},
		{ID: "device_id", Title: "GPU", Kind: report.Int, Wide: true},
		{ID: "count", Title: "Calls", Kind: report.Int, Unit: report.Count, CSV: []report.CSVCol{{Name: "call_count"}}},
		{ID: "total", Title: "Total", Kind: report.Int, Unit: report.Nanoseconds, CSV: []report.CSVCol{{Name: "total_time_ns"}, {Name: "total_time_ms", Exp10: -6}}},
		{ID: "share", Title: "Share", Kind: report.Float, Unit: report.Ratio, CSV: []report.CSVCol{{Name: "pct_total_kernel_time", Exp10: 2}}},
		{ID: "mean", Title: "Mean", Kind: report.Float, Unit: report.Nanoseconds},
		{ID: "min", Title: "Min", Kind: report.Int, Unit: report.Nanoseconds, Wide: true}, {ID: "max", Title: "Max", Kind: report.Int, Unit: report.Nanoseconds, Wide: true},
		{ID: "p50", Title: "p50", Kind: report.Float, Unit: report.Nanoseconds}, {ID: "p90", Title: "p90", Kind: report.Float, Unit: report.Nanoseconds}, {ID: "p99", Title: "p99", Kind: report.Float, Unit: report.Nanoseconds},
		{ID: "grid", Title: "Grid", Kind: report.Text, Wide: true}, {ID: "block", Title: "Block", Kind: report.Text, Wide: true},
	}, TotalRows: 48, Others: true}
	for _, k := range kernels {
		t.Rows = append(t.Rows, []report.Cell{report.S(k.name), report.S(k.short), report.S(k.category), report.Null, report.I(k.count), report.I(k.total), report.F(float64(k.total) / 902310912),
			report.F(float64(k.total) / float64(k.count)), report.I(k.min), report.I(k.max), report.F(k.p50), report.F(k.p90), report.F(k.p99), report.S("16×8×4"), report.S("128×1×1")})
	}
	t.Rows = append(t.Rows, []report.Cell{report.S("(others)"), report.Null, report.Null, report.Null, report.I(21904), report.I(57204608), report.F(57204608.0 / 902310912),
		report.Null, report.Null, report.Null, report.Null, report.Null, report.Null, report.Null, report.Null})
	return t
}

func (b *builder) device(id string, compute, comm, copied, sync, host, launch, dependency, unknown float64) {
	idle := sync + host + launch + dependency + unknown
	window := compute + comm + copied + idle
	b.ns("gpu.window", window, "device", id)
	b.ns("gpu.busy_time", window-idle, "device", id)
	b.ns("gpu.idle_time", idle, "device", id)
	b.metric("gpu.idle_ratio", report.Ratio, idle/window, "device", id)
	b.ns("gpu.compute_time", compute, "device", id)
	b.ns("gpu.comm_time", comm+3120444, "device", id)
	b.ns("gpu.exposed_comm_time", comm, "device", id)
	b.ns("gpu.copy_time", copied+2400, "device", id)
	b.ns("gpu.exposed_copy_time", copied, "device", id)
	for i, v := range []float64{sync, host, launch, dependency, unknown} {
		b.ns("gpu.idle_cause_time", v, "device", id, "cause", []string{"sync", "host", "launch", "dependency", "unknown"}[i])
	}
}

// serve is the report of a vLLM server with two GPUs, as sections make it.
func serve() *builder {
	b := empty("vllm_serve.sqlite")
	r := b.r
	r.Trace.Bytes, r.Trace.ExporterVersion, r.Trace.SchemaVersion = 6815744, ptr("2025.3.1.90"), ptr("3.19.2")
	r.Environment.GPUs = []report.GPU{{Device: 0, Name: ptr("NVIDIA H100 80GB HBM3")}, {Device: 1, Name: ptr("NVIDIA H100 80GB HBM3")}}
	r.Environment.GraphTrace, r.Environment.Driver, r.Environment.CUDA = ptr("node"), ptr("570.124.06"), ptr("12.8")
	r.Window = report.Window{Start: 1200345678, End: 1752347902, Length: 552002224, Mode: "capture", Why: "whole capture: first start to last end of GPU work"}
	r.Unit = report.Unit{Kind: "nvtx", Name: "execute_context_#(#)_generation_#(#)", Why: "vLLM step markers on both workers",
		Groups: []report.UnitGroup{
			{Main: true, Phase: "decode", Batch: ptr(int64(8)), Signature: "a1", Kernels: 742, Count: 112},
			{Phase: "prefill", Batch: ptr(int64(1)), Tokens: ptr(int64(512)), Signature: "b2", Kernels: 806, Count: 8},
		}, Trimmed: report.UnitTrim{Rule: "first and last unit, and units slower than twice the median at the start", Cut: 2, Warmup: 1}}

	b.device("0", 401220144, 41260032, 1204224, 11893248, 71220912, 18092111, 7001553, 110000)
	b.device("1", 402105344, 38101248, 1198080, 11001233, 72441008, 18155311, 8950000, 50000)
	b.ns("kernel.total_time", 902310912)
	b.metric("kernel.count", report.Count, 91144)
	b.metric("kernel.rate", report.PerSecond, 165115.2)
	b.metric("kernel.share", report.Ratio, 312417280.0/902310912, "kernel", flash)
	b.ns("kernel.total_time", 312417280, "kernel", flash)
	b.metric("kernel.count", report.Count, 7680, "kernel", flash)
	b.metric("launch.count", report.Count, 14233)
	b.metric("launch.rate", report.PerSecond, 25784.3)
	b.ns("launch.api_time", 88210457)
	b.ns("launch.api_time", 61207311, "api", "cudaGraphLaunch")
	b.ns("launch.api_time", 27003146, "api", "cudaLaunchKernel")
	b.ns("sync.blocked_time", 212044178)
	b.ns("sync.total_time", 212044178)
	b.metric("sync.count", report.Count, 372)
	b.metric("sync.share", report.Ratio, 0.2187)
	b.ns("sync.total_time", 201100000, "api", "cudaEventSynchronize")
	b.ns("sync.total_time", 10944178, "api", "cudaStreamSynchronize")
	b.ns("memcpy.time", 1733120, "direction", "DtoH")
	b.metric("memcpy.bytes", report.Bytes, 18350080, "direction", "DtoH")
	b.metric("memcpy.throughput", report.BytesPerSec, 18350080/1733120e-9, "direction", "DtoH")
	b.ns("memcpy.time", 669184, "direction", "HtoD")
	b.metric("memcpy.bytes", report.Bytes, 5242880, "direction", "HtoD")
	b.metric("memcpy.throughput", report.BytesPerSec, 5242880/669184e-9, "direction", "HtoD")
	b.metric("graph.coverage", report.Ratio, 0.8127)
	b.metric("graph.launches", report.Count, 224)
	b.metric("graph.kernels", report.Count, 81088)
	b.metric("graph.unique", report.Count, 3)
	b.metric("nvtx.coverage", report.Ratio, 0.9871)
	b.ns("phase.gpu_time", 771230912, "phase", "decode")
	b.ns("phase.gpu_time", 119440000, "phase", "prefill")
	b.ns("phase.gpu_time", 11640000, "phase", "unmapped")
	b.ns("phase.wall_time", 640112000, "phase", "decode").N = 224
	b.ns("phase.wall_time", 98003000, "phase", "prefill").N = 16
	b.ns("component.gpu_time", 312417280, "component", "attention").N = 7680
	b.ns("component.gpu_time", 398030848, "component", "ffn").N = 30720
	step := func(m *report.Metric, mean, sd float64) {
		m.Summary = &report.Summary{N: 112, Min: *m.Value * 0.97, P50: *m.Value, P90: *m.Value * 1.04, P99: *m.Value * 1.11, Max: *m.Value * 1.2, Mean: mean, Stddev: sd}
	}
	step(b.ns("unit.time", 4211904), 4233012, 61004)
	step(b.ns("unit.time", 4211904, "phase", "decode"), 4233012, 61004)
	step(b.ns("unit.time", 9871232, "phase", "prefill"), 9902113, 210443)
	step(b.metric("unit.kernels", report.Count, 742), 742, 0)

	s := b.section("gpu_time", "GPU time", report.OK, "", report.Table{ID: "gpu_time", Title: "Time by class", File: "gpu_time.csv", TotalRows: 2, Columns: []report.Column{
		{ID: "device_id", Title: "GPU", Kind: report.Int}, {ID: "window", Title: "Window", Kind: report.Int, Unit: report.Nanoseconds}, {ID: "compute", Title: "Compute", Kind: report.Int, Unit: report.Nanoseconds},
		{ID: "exposed_comm", Title: "Exposed comm.", Kind: report.Int, Unit: report.Nanoseconds}, {ID: "exposed_copy", Title: "Exposed copy", Kind: report.Int, Unit: report.Nanoseconds},
		{ID: "idle", Title: "Idle", Kind: report.Int, Unit: report.Nanoseconds}, {ID: "idle_ratio", Title: "Idle", Kind: report.Float, Unit: report.Ratio},
	}, Rows: [][]report.Cell{
		{report.I(0), report.I(552002224), report.I(401220144), report.I(41260032), report.I(1204224), report.I(108317824), report.F(0.19623)},
		{report.I(1), report.I(552002224), report.I(402105344), report.I(38101248), report.I(1198080), report.I(110597552), report.F(0.20036)},
	}})
	s.Derivation = "Per device, the union of kernels, copies and memsets over the common window. Each nanosecond belongs to one class."
	s.Notes = append(s.Notes, "Busy time counts copies as work; `gpu.kernel_idle_ratio` keeps the older definition.", "Where graphs are traced as a whole, use --cuda-graph-trace=node for detail.")
	s.Charts = append(s.Charts, report.Chart{ID: "gpu_time", Title: "Time by class", Kind: "stacked", Unit: report.Nanoseconds, Series: []report.Series{{Name: "GPU 0", Labels: []string{"compute"}, Values: []float64{401220144}}}})

	b.section("kernels", "Top kernels", report.OK, "", kernelTable(), report.Table{ID: "kernels_per_device", Title: "Kernels per device", File: "kernels_per_device.csv", TotalRows: 2, Columns: []report.Column{
		{ID: "kernel_name", Title: "Kernel", Kind: report.Name}, {ID: "device_id", Title: "GPU", Kind: report.Int}, {ID: "total", Title: "Total", Kind: report.Int, Unit: report.Nanoseconds},
	}, Rows: [][]report.Cell{{report.S(flash), report.I(1), report.I(156300000)}, {report.S(flash), report.I(0), report.I(156117280)}}}).Derivation = "Kernel rows that start in the window, grouped by full name."
	b.section("graphs", "CUDA graphs", report.Partial, "two processes were captured with different --cuda-graph-trace modes").Coverage = ptr(0.93)
	gaps := report.Table{ID: "gpu_idle_gaps", Title: "Longest idle gaps", File: "gpu_idle_gaps.csv", TotalRows: 40, Columns: []report.Column{
		{ID: "device_id", Title: "GPU", Kind: report.Int}, {ID: "start", Title: "Start", Kind: report.Moment, Unit: report.Nanoseconds}, {ID: "gap", Title: "Gap", Kind: report.Int, Unit: report.Nanoseconds},
		{ID: "cause", Title: "Main cause", Kind: report.Text}, {ID: "before", Title: "Kernel before", Kind: report.Name}, {ID: "steady", Title: "Steady", Kind: report.Bool},
	}, Rows: [][]report.Cell{}}
	for i := range 40 {
		gaps.Rows = append(gaps.Rows, []report.Cell{report.I(int64(i % 2)), report.I(1200345678 + int64(i)*13000777), report.I(2400000 - int64(i)*31007), report.S("host"), report.S(kernels[i%len(kernels)].name), report.B(i > 3)})
	}
	b.section("idle", "Idle gaps", report.OK, "", gaps)
	b.section("phases", "Phases", report.OK, "", report.Table{ID: "phases", Title: "Phases", File: "phases.csv", TotalRows: 3, Columns: []report.Column{
		{ID: "phase", Title: "Phase", Kind: report.Name}, {ID: "ranges", Title: "Ranges", Kind: report.Int, Unit: report.Count}, {ID: "gpu", Title: "GPU time", Kind: report.Int, Unit: report.Nanoseconds}, {ID: "wall", Title: "Wall time", Kind: report.Int, Unit: report.Nanoseconds},
	}, Rows: [][]report.Cell{
		{report.S("decode"), report.I(224), report.I(771230912), report.I(640112000)},
		{report.S("prefill"), report.I(16), report.I(119440000), report.I(98003000)},
		{report.S("unmapped"), report.I(4), report.I(11640000), report.I(30122)},
	}})
	b.section("comm", "Communication", report.NotApplicable, "no collective in the window")
	b.section("memcpy", "Copies", report.Unavailable, "the capture has no table CUPTI_ACTIVITY_KIND_MEMCPY")
	b.section("quality", "Capture quality", report.Error, "explain failed here, please report it: index out of range")

	r.Findings = append(r.Findings,
		report.Finding{ID: "gpu_idle", Worth: &report.Worth{Time: 90_596_000, Of: 552_000_000, Units: 112}, Severity: report.High, Title: "The GPU waits for the host to launch work", Doc: "gpu_time",
			Evidence: []report.MetricRef{ref("gpu.idle_cause_time", "cause", "host", "device", "1"), ref("gpu.idle_cause_time", "cause", "launch", "device", "1"), ref("gpu.window", "device", "1")},
			Advice:   []string{"Run decode steps as CUDA graphs (vLLM: drop --enforce-eager; PyTorch: `torch.compile(mode=\"reduce-overhead\")`), so that one call launches a whole step.", "Check CPU frequency, NUMA binding and the Python work per step."}},
		report.Finding{ID: "large_kernel", Severity: report.Medium, Title: "One kernel takes a large share of the kernel time", Doc: "kernels",
			Evidence: []report.MetricRef{ref("kernel.share", "kernel", flash), ref("kernel.total_time", "kernel", flash), ref("kernel.count", "kernel", flash)},
			Advice:   []string{"Start there: a small gain in it is worth more than removing any other kernel."}},
		report.Finding{ID: "sync", Severity: report.Low, Title: "The host blocks on the GPU", Doc: "sync", Evidence: []report.MetricRef{ref("sync.total_time")}, Advice: []string{}},
		report.Finding{ID: "nvtx", Severity: report.Low, Title: "NVTX ranges are present", Doc: "nvtx", Evidence: []report.MetricRef{}, Advice: []string{"Use the phase totals."}})
	r.Warnings = append(r.Warnings,
		report.Warning{Code: "diagnostics", Section: "quality", Text: "The capture dropped 12 events of CUDA: counts can be too low. Capture for a shorter time, or with --cuda-flush-interval."},
		report.Warning{Code: "mixed", Text: "Two nsys versions took part in this capture."})
	return b
}

// eight is a report that has too much of everything.
func eight() *builder {
	b := serve()
	for i := 2; i < 8; i++ {
		b.device(strconv.Itoa(i), 400000000+float64(i)*1000000, 41260032, 1204224, 11893248, 71220912-float64(i)*1000000, 18092111, 8221697, 110000)
		b.r.Environment.GPUs = append(b.r.Environment.GPUs, report.GPU{Device: i, Name: ptr("NVIDIA H100 80GB HBM3")})
	}
	long := ""
	for range 40 {
		long += "a very long sentence that never ends "
	}
	for i := range b.r.Warnings {
		b.r.Warnings[i].Text = long
	}
	for i := range b.r.Findings {
		b.r.Findings[i].Advice = append([]string{long}, b.r.Findings[i].Advice...)
	}
	return b
}

func valid(t *testing.T, b *builder) *report.Report {
	t.Helper()
	b.r.Fill()
	if err := b.r.Validate(); err != nil {
		t.Fatal(err)
	}
	return b.r
}
