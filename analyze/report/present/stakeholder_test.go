package present_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/compat/export"
	"github.com/nsys-llm/explain/analyze/report"
)

// measured is a report of llm-perf-opt's artifacts alone, as the sections make it.
func measured() *builder {
	b := empty("metrics.json")
	b.r.Trace.Kind = "llm-perf-opt"
	b.r.Environment.Model, b.r.Environment.DType, b.r.Environment.MaxNumSeqs = ptr("deepseek_ocr"), ptr("bfloat16"), ptr(int64(8))
	num := func(id, unit string) report.Column {
		return report.Column{ID: id, Title: id, Kind: report.Float, Unit: unit}
	}
	text := func(id string) report.Column { return report.Column{ID: id, Title: id, Kind: report.Text} }
	name := func(id string) report.Column { return report.Column{ID: id, Title: id, Kind: report.Name} }
	count := report.Column{ID: "calls", Title: "calls", Kind: report.Int}
	stages := report.Table{ID: "stages", Title: "Stages", TotalRows: 3, Columns: []report.Column{text("stage"), num("mean", report.Nanoseconds), num("std", report.Nanoseconds)}, Rows: [][]report.Cell{
		{report.S("prefill"), report.F(50e6), report.F(5e6)}, {report.S("decode"), report.F(640e6), report.F(16e6)}, {report.S("sam"), report.F(12e6), report.Null},
	}}
	tokens := report.Table{ID: "run_tokens", Title: "Tokens", TotalRows: 1, Columns: []report.Column{text("quantity"), num("mean", ""), num("std", "")}, Rows: [][]report.Cell{{report.S("Tokens"), report.F(64), report.F(0)}}}
	b.section("mfu", "Stages", report.OK, "", stages, tokens)
	operators := report.Table{ID: "operators", Title: "Operators", TotalRows: 1, Columns: []report.Column{name("operator"), num("total", report.Nanoseconds), num("cuda", report.Nanoseconds), count, num("mean", report.Nanoseconds)},
		Rows: [][]report.Cell{{report.S("aten::mm"), report.F(120.5e6), report.F(80.25e6), report.I(240), report.F(120.5e6 / 240)}}}
	kernels := report.Table{ID: "stated_kernels", Title: "Kernels", TotalRows: 1, Columns: []report.Column{name("kernel"), num("total", report.Nanoseconds), count, num("mean", report.Nanoseconds)},
		Rows: [][]report.Cell{{report.S("gemm | odd"), report.F(60e6), report.I(240), report.F(250e3)}}}
	b.section("operators", "Operators", report.OK, "", operators, kernels)
	b.ns("stage.time", 50e6, "stage", "prefill")
	b.ns("stage.time", 640e6, "stage", "decode")
	b.metric("mfu.peak_flops", report.PerSecond, 312e12)
	b.metric("mfu.utilization", report.Ratio, 0.0210634718, "stage", "prefill")
	b.metric("mfu.stated", report.Ratio, 0.0111510, "stage", "prefill")
	return b
}

func TestStakeholderOfArtifacts(t *testing.T) {
	golden(t, "measured_stakeholder.md", markdown(t, export.StakeholderMD(valid(t, measured()))))
}

// A trace of another GPU beside the session has its own peak; one of the same GPU has none of its own.
func TestStakeholderSaysWhosePeakItIs(t *testing.T) {
	b := measured()
	b.r.Environment.GPUs = []report.GPU{{Device: 0, Name: ptr("NVIDIA H100 80GB HBM3")}}
	if page := string(markdown(t, export.StakeholderMD(valid(t, b)))); !strings.Contains(page, "| Peak TFLOPs   | 312.00 ") {
		t.Errorf("one GPU:\n%s", page)
	}
	b.metric("mfu.peak_flops", report.PerSecond, 989.4e12, "device", "0")
	page := string(markdown(t, export.StakeholderMD(valid(t, b))))
	for _, want := range []string{"| Peak TFLOPs of device 0 ", "| 989.40 ", "| Peak TFLOPs of the GPU of the session | 312.00 "} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}

// A profiler session alone fills timings and takeaways too.
func TestStakeholderOfSession(t *testing.T) {
	b := empty("forward_pass_timing.csv")
	b.r.Trace.Kind = "profiler-session"
	m := b.ns("forward.time", 30e6, "phase", "prefill")
	m.Summary = &report.Summary{N: 2, Min: 20e6, P50: 30e6, P90: 38e6, P99: 39.8e6, Max: 40e6, Mean: 30e6, Stddev: 10e6}
	b.ns("forward.total_time", 60e6, "phase", "prefill")
	b.ns("forward.total_time", 20e6, "phase", "decode")
	page := string(markdown(t, export.StakeholderMD(valid(t, b))))
	for _, want := range []string{"| prefill | 30 ms | 10 ms |", "**Prefill dominates.** Forward time: prefill 60 ms, decode 20 ms."} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}

// A kernel ran 3 times on GPU 0 and once on GPU 10, and the report lists only the first of these rows: the whole table
// names both GPUs, and without it the page says that there are more.
func TestDevicesOfAKernelWithFewCalls(t *testing.T) {
	name := report.Column{ID: "kernel_name", Title: "Kernel", Kind: report.Name}
	device := report.Column{ID: "device_id", Title: "GPU", Kind: report.Int}
	count := report.Column{ID: "count", Title: "Calls", Kind: report.Int, Unit: report.Count}
	whole := report.Table{ID: "kernels_per_device", Title: "Kernels per device", TotalRows: 2, Columns: []report.Column{name, device, count},
		Rows: [][]report.Cell{{report.S("gemm"), report.I(10), report.I(1)}, {report.S("gemm"), report.I(0), report.I(3)}}}
	cut := whole
	cut.Rows, cut.Others = [][]report.Cell{whole.Rows[1], {report.S("(others)"), report.Null, report.I(1)}}, true
	b := empty("a.sqlite")
	b.section("kernels", "Top kernels", report.OK, "", report.Table{ID: "kernels", Title: "Kernels", TotalRows: 1,
		Columns: []report.Column{name, count}, Rows: [][]report.Cell{{report.S("gemm"), report.I(4)}}}, cut)
	r := valid(t, b)
	for page, want := range map[string]string{
		string(markdown(t, export.KernelsMD(r, whole))):     "|     4 |       – | 0, 10  |\n",
		string(markdown(t, export.StakeholderMD(r, whole))): "|     4 |       – | 0, 10  |\n",
		string(markdown(t, export.KernelsMD(r))):            "|     4 |       – | 0, …   |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}
