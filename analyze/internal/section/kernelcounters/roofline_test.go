package kernelcounters_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// Kernels of testdata/evidence/ncu under the roofs of an H100: 2 · 2619 MHz · 640 bytes = 3.35232 TB/s, fp32 132 · 128 · 2 · 1.98 GHz = 66.9 TFLOP/s,
// half precision 989.4 TFLOP/s by the data sheet.
//
//	fused_moe  16 GFLOP in 40 µs, 100 MB: 400 TFLOP/s at 160 per byte; 160 · 3.35232 = 536.37 TFLOP/s are attainable, by memory
//	nvjet      16.002 GFLOP in 20 µs, 12 MB: 800.1 TFLOP/s at 1333.5; 989.4 are attainable, by arithmetic
//	rms_norm   1 + 2 + 2·3 MFLOP in 5 µs, 12 MB: 1.8 TFLOP/s at 0.75; 2.514 are attainable, by memory
//	topk       fused multiply-adds were not counted, moe_align nothing: unknown
func TestRooflineOfTheServer(t *testing.T) {
	l, res := lookNCU(t, ncuEvidence)
	const norm = "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(T1 *, T1 *, const T1 *, float, int, int)"
	const gemm = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"
	for kernel, want := range map[string][3]float64{
		"fused_moe_kernel": {16e9, 4e14, 4e14 / (160 * 3.35232e12)},
		gemm:               {16.002e9, 8.001e14, 8.001e14 / 989.4e12},
		norm:               {9e6, 1.8e12, 1.8e12 / (0.75 * 3.35232e12)},
	} {
		for i, id := range []string{"ncu.flop", "ncu.flop_rate", "ncu.roofline_ratio"} {
			if m := l.Find(id, labels("kernel", kernel)); m == nil || math.Abs(*m.Value-want[i]) > 1e-9*want[i] {
				t.Errorf("%s of %s = %+v, want %v", id, kernel, m, want[i])
			}
		}
	}
	tab := l.Table("roofline", "roofline")
	if len(tab.Rows) != 4 {
		t.Errorf("%d kernels have operations, want 4", len(tab.Rows))
	}
	l.Row(tab, 0, "kernel_name", `"fused_moe_kernel"`, "precision", `"tensor_fp16"`, "intensity", "160", "roof", `"memory"`)
	l.Row(tab, 1, "roof", `"compute"`, "intensity", "1333.5")
	l.Row(tab, 3, "precision", `"fp32"`, "intensity", "0.75")
	sectiontest.Metric(t, l.Report, 3.35232e12, "ncu.peak_dram_throughput", "device", "0")
	sectiontest.Metric(t, l.Report, 989.4e12, "ncu.peak_flop_rate", "device", "0", "precision", "tensor_fp16")
	if m := l.Find("ncu.peak_flop_rate", labels("device", "0", "precision", "fp32")); m == nil || math.Abs(*m.Value-132*128*2*1.98e9) > 1 {
		t.Errorf("fp32 peak %+v", m)
	}
	// 80 of 90 µs are in kernels with operations.
	if c := l.Section("roofline").Coverage; c == nil || math.Abs(*c-80.0/90) > 1e-12 {
		t.Errorf("coverage %v", c)
	}
	chart := l.Section("roofline").Charts[0]
	points := 0
	for _, s := range chart.Series {
		switch {
		case s.Style == "points":
			points++
		case s.Name == "roof: tensor_fp16": // 989.4e12 / 3.35232e12 operations a byte is where the roof becomes flat
			if ridge, err := strconv.ParseFloat(s.Labels[1], 64); err != nil || math.Abs(ridge-989.4/3.35232) > 1e-9 || s.Values[1] != 989.4e12 || s.Values[2] != 989.4e12 {
				t.Errorf("roof %+v", s)
			}
		}
		if s.Name == "fused_moe_kernel" && (s.Labels[0] != "160" || s.Values[0] != 4e14) {
			t.Errorf("point %+v", s)
		}
	}
	if chart.Kind != "scatter" || points != 4 {
		t.Errorf("chart %+v", chart)
	}
	l.Row(detail(t, res, "roofline_data"), 1, "kernel_name", `"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"`, "sm_utilization", "0.9", "memory_utilization", "0.18", "bottleneck", `"compute"`, "bandwidth_gbps", "600000000000")
}

// Without counters there are no points; without a name there are no peaks.
func TestRooflineWithoutCounters(t *testing.T) {
	l, _ := lookNCU(t, ncuPage("a|10|20|86"))
	l.Status("roofline", report.Partial)
	sectiontest.NoMetric(t, l.Report, "ncu.flop", "kernel", "a")
	for i := range l.Metrics {
		if l.Metrics[i].ID == "ncu.peak_dram_throughput" {
			t.Error("a device that nobody named has peaks")
		}
	}
}
