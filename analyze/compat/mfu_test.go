package compat_test

import (
	"context"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// d 1024, d_ff 2816, 24 layers, 512 prompt and 64 generated tokens, 50 ms and 640 ms on an A100 (312 Tflop/s, 2.039 TB/s).
// Worked out by hand:
//
//	projections  24 × 8 × 1024²              =  201,326,592 a token
//	feed-forward 24 × 6 × 1024 × 2816        =  415,236,096 a token
//	attention    prefill 24 × 2 × 1024 × 512 × 513 = 12,910,067,712; decode 64 × 24 × 4 × 1024 × 544 = 3,422,552,064
//	weights      2 bytes × 24 × (4 × 1024² + 3 × 1024 × 2816) = 616,562,688; keys and values 2 × 24 × 2 × 1024 = 98,304 a token
func TestMFU(t *testing.T) {
	r := folderReport(t, perfoptFolder)
	sectiontest.WantStatus(t, r, "mfu", report.OK, "")
	sectiontest.Metric(t, r, 50*ms, "stage.time", "stage", "prefill")
	sectiontest.Metric(t, r, 640*ms, "stage.time", "stage", "decode")
	sectiontest.Metric(t, r, 0.5*ms, "stage.time", "stage", "projector")
	sectiontest.Metric(t, r, 64, "stage.tokens")
	sectiontest.Metric(t, r, 100, "stage.token_rate")
	sectiontest.Metric(t, r, 512, "mfu.prompt_tokens") // solved from what llm-perf-opt states
	sectiontest.Metric(t, r, 544, "mfu.context_tokens")
	const prefill, decode = 512*(201_326_592.0+415_236_096) + 12_910_067_712, 64*(201_326_592.0+415_236_096) + 3_422_552_064
	sectiontest.Metric(t, r, prefill, "mfu.flops", "stage", "prefill")
	sectiontest.Metric(t, r, decode, "mfu.flops", "stage", "decode")
	sectiontest.Metric(t, r, prefill+decode, "mfu.flops", "stage", "model")
	nearly(t, r, prefill/0.05, "mfu.flop_rate", "stage", "prefill")
	nearly(t, r, prefill/0.05/312e12, "mfu.utilization", "stage", "prefill")
	nearly(t, r, decode/0.64/312e12, "mfu.utilization", "stage", "decode")
	nearly(t, r, (prefill+decode)/0.69/312e12, "mfu.utilization", "stage", "model") // vision runs inside prefill
	sectiontest.Metric(t, r, 616_562_688+512*98_304, "mfu.bytes", "stage", "prefill")
	sectiontest.Metric(t, r, 64*(616_562_688+545*98_304), "mfu.bytes", "stage", "decode")
	nearly(t, r, 64*(616_562_688+545*98_304)/0.64/2.039e12, "mfu.bandwidth_utilization", "stage", "decode")
	sectiontest.Metric(t, r, 312e12, "mfu.peak_flops")
	sectiontest.Metric(t, r, 2.039e12, "mfu.peak_bandwidth")
	if m := r.Find("mfu.stated", report.Labels{"stage": "decode"}); m == nil || *m.Value >= *r.Find("mfu.utilization", report.Labels{"stage": "decode"}).Value {
		t.Error("llm-perf-opt states no less than there is")
	}
	wantFindings(t, r, true, "decode_dominates", "decode_latency_bound")
	wantFindings(t, r, false, "prefill_dominates", "decode_memory_bound")
	if e := &r.Environment; e.Model == nil || *e.Model != "deepseek_ocr" || *e.DType != "bfloat16" || len(e.GPUs) != 1 || *e.GPUs[0].Name != "NVIDIA A100-SXM4-80GB" || *e.CUDA != "12.4" {
		t.Errorf("environment: %+v", e)
	}
	// Each stage's terms are shown and add up.
	sums := map[string]float64{}
	for _, row := range sectiontest.FindTable(t, r, "mfu", "mfu_terms").Rows {
		stage, _ := row[0].Str()
		n, _ := row[3].Num()
		sums[stage] += n
	}
	if sums["prefill"] != prefill || sums["decode"] != decode {
		t.Errorf("terms add up to %v", sums)
	}
}

const (
	a100   = `{"gpu": "NVIDIA A100-SXM4-80GB", "cuda": "12.4", "torch": "2.6.0+cu124", "transformers": "4.46.3"}`
	bf16   = "model:\n  name: m\n  dtype: bf16\ninfer:\n  max_new_tokens: 64\n  context_len_mode: fixed\n  context_len_fixed: 100\n"
	fewDim = `{"d_model": 1000, "d_ff": 2000, "n_layers": 10}`
)

func metricsJSON(dims string) string {
	return `{"aggregates": {"prefill_ms": {"mean": 2.0, "std": 0}, "decode_ms": {"mean": 2.1, "std": 0}, "tokens": {"mean": 10, "std": 0}}, "model_dims": ` + dims + `, "peak_tflops": 312, "mfu_per_stage": {"prefill": 0.0, "decode": 0.0, "vision": 0.0}, "mfu_model_level": 0.0}`
}

// Without a prompt's length prefill is unknown, and decode stands on the configured context: 10 layers × (8e6 + 12e6 + 4e3 × 100).
func TestMFUFixedContext(t *testing.T) {
	r := filesReport(t, map[string]string{"m.json": metricsJSON(fewDim), "env.json": a100, "c.yaml": bf16})
	unknownMetric(t, r, "mfu.prompt_tokens")
	unknownMetric(t, r, "mfu.flops", "stage", "prefill")
	unknownMetric(t, r, "mfu.flops", "stage", "model")
	sectiontest.Metric(t, r, 10*10*(8e6+12e6+4e5), "mfu.flops", "stage", "decode")
	sectiontest.Metric(t, r, 100, "mfu.context_tokens")
	wantFindings(t, r, false, "decode_dominates", "prefill_dominates")
}

// A device that the table does not know by its whole name has no utilisation.
func TestMFUUnknownDevice(t *testing.T) {
	r := filesReport(t, map[string]string{"m.json": metricsJSON(fewDim), "env.json": `{"gpu": "NVIDIA H1000 Imaginary", "cuda": "12.4", "torch": "2.6.0"}`, "c.yaml": bf16})
	sectiontest.WantStatus(t, r, "mfu", report.Partial, "")
	unknownMetric(t, r, "mfu.utilization", "stage", "decode")
	unknownMetric(t, r, "mfu.peak_flops")
	if !warnsOf(r, "unknown_device") {
		t.Error("no warning")
	}
}

// Ten tokens of decode in 0.1 ms would move 1.8 GB: more than the memory can, so that decode is bound by it.
func TestMFUMemoryBound(t *testing.T) {
	m := `{"aggregates": {"prefill_ms": {"mean": 20.0, "std": 0}, "decode_ms": {"mean": 1.2, "std": 0}, "tokens": {"mean": 10, "std": 0}}, "model_dims": ` + fewDim + `, "peak_tflops": 312}`
	r := filesReport(t, map[string]string{"m.json": m, "env.json": a100, "c.yaml": bf16})
	wantFindings(t, r, true, "decode_memory_bound", "prefill_dominates")
	wantFindings(t, r, false, "decode_latency_bound")
}

// stakeholder_summary.md has timings where metrics.json is gone.
func TestMFUOfSummary(t *testing.T) {
	page := "\n\n\n# Stakeholder Summary\n\n- Generated: 2025-11-07T04:01:13Z\n\n## Environment\n\n|Key|Value|\n| :---: | :---: |\n|Device||\n|Peak TFLOPs (est.)|209.50|\n\n## Aggregates\n\n|Metric|Mean|Std|\n| :---: | :---: | :---: |\n|Prefill ms|98.336|64.006|\n|Decode ms|707.379|12.346|\n|Tokens|64.0|0.0|\n|Tokens/s|90.501|1.490|\n\n## Per-Stage Timings (ms)\n\n|Stage|Mean (ms)|Std (ms)|\n| :---: | :---: | :---: |\n|prefill|98.336|64.006|\n|decode|707.379|12.346|\n|sam|28.801|40.846|\n\n## MFU\n\n|Scope|MFU|\n| :---: | :---: |\n|Model-level|0.002620|\n|Decode|0.000211|\n"
	r := filesReport(t, map[string]string{"stakeholder_summary.md": page})
	sectiontest.WantStatus(t, r, "mfu", report.Partial, "")
	nearly(t, r, 98.336*ms, "stage.time", "stage", "prefill")
	nearly(t, r, 28.801*ms, "stage.time", "stage", "sam")
	sectiontest.Metric(t, r, 90.501, "stage.token_rate")
	sectiontest.Metric(t, r, 0.000211, "mfu.stated", "stage", "decode")
	unknownMetric(t, r, "mfu.flops", "stage", "decode")
}

// The session ran on an A100 and the trace beside it on two H100: 312 and 989.4 Tflop/s in bf16. Of a GPU that nobody
// knows the peak is not known, and a trace of the same GPU has no peak of its own.
func TestPeakOfAnotherGPU(t *testing.T) {
	for name, want := range map[string]*float64{"NVIDIA H100 80GB HBM3": new(989.4e12), "A GPU": nil, "NVIDIA A100-SXM4-80GB": nil} {
		b := tracetest.New()
		b.GPU(tracetest.GPU{Name: name, Compute: [2]int64{9, 0}})
		b.Process(1, "p").Thread(1, "").Launch("gemm", 0, 1, tracetest.Kernel{Start: 1, End: 1000})
		res, err := analyze.Run(context.Background(), b.WriteTB(t), analyze.Options{Evidence: []analyze.Evidence{{Path: perfoptFolder}}})
		if err != nil {
			t.Fatal(err)
		}
		sectiontest.Metric(t, res.Report, 312e12, "mfu.peak_flops")
		m := res.Report.Find("mfu.peak_flops", report.Labels{"device": "0"})
		if (m != nil && m.Value != nil) != (want != nil) || want != nil && *m.Value != *want {
			t.Errorf("%q: %+v", name, m)
		}
	}
}
