package gpu_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// halfOf is a capture of steps of 1 ms on a GPU, half of which a kernel takes.
func halfOf(kernel string, gpu tracetest.GPU) *tracetest.Builder {
	const us = sectiontest.Us
	b := sectiontest.Steps(12, func(th *tracetest.Thread, at int64) {
		th.Launch(kernel, at/100, at/100+1, tracetest.Kernel{Start: at, End: at + 500*us})
		th.Launch("softmax", at/100+2, at/100+3, tracetest.Kernel{Start: at + 500*us, End: at + 1000*us})
	})
	b.GPU(gpu)
	return b
}

// Half of the step is products in FP32 on a GPU of compute capability 8.0. In TF32, or on an older GPU, nothing is
// said.
func TestFP32MathIsFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		major int64
		want  report.Severity
	}{
		{"ampere_sgemm_128x64_tn", 8, report.High},
		{"cutlass_80_tensorop_s1688gemm_128x128", 8, ""},
		{"maxwell_sgemm_128x64_tn", 6, ""},
	} {
		b := halfOf(c.name, tracetest.GPU{Name: "A GPU", Compute: [2]int64{c.major, 0}})
		sectiontest.Look(t, b, analyze.Options{}).Finding("fp32_math", c.want)
	}
}

// Half of a step of 1 ms is FP32: what BF16 saves at most follows from the rates that NVIDIA states for the GPU, and TF32 is
// advised only if it is faster. On a GPU whose rates are not known the whole half may go, and the advice says so.
func TestFP32MathIsWorthWhatTheGPUAllows(t *testing.T) {
	for _, c := range []struct {
		gpu  string
		most int64 // ns of the step
		says string
		not  string
	}{
		{"NVIDIA A100-SXM4-80GB", 468_750, "16 times the rate of FP32; check accuracy. If FP32 must stay, TF32 " +
			"(torch.set_float32_matmul_precision(\"high\")) runs at up to 8 times its rate", ""},
		{"NVIDIA GeForce RTX 3090", 250_000, "2 times the rate of FP32; check accuracy. TF32 gains nothing here", "set_float32"},
		{"NVIDIA GeForce RTX 3070 Ti Laptop GPU", 250_000, "TF32 gains nothing here", "set_float32"},
		{"Tesla T4", 437_693, "Compute in FP16", "TF32"},
		{"A GPU", 500_000, "how much faster", ""},
	} {
		b := halfOf("ampere_sgemm_128x64_tn", tracetest.GPU{Name: c.gpu, Compute: [2]int64{8, 0}})
		f := sectiontest.FindingOf(sectiontest.Look(t, b, analyze.Options{}).Report, "fp32_math")
		if f == nil || f.Worth == nil {
			t.Errorf("%s: %+v", c.gpu, f)
			continue
		}
		if got := f.Worth.Share() * 1e6; got < 0.99*float64(c.most) || got > 1.01*float64(c.most) {
			t.Errorf("%s: worth %.0f ns of a step, want %d", c.gpu, got, c.most)
		}
		if advice := strings.Join(f.Advice, " "); !strings.Contains(advice, c.says) || c.not != "" && strings.Contains(advice, c.not) {
			t.Errorf("%s: advice %q, want %q and not %q", c.gpu, advice, c.says, c.not)
		}
	}
}

// Half of the step is products in FP64: told on a GPU of compute capability 7.5, which has little of it, not on 8.0.
func TestFP64MathIsFound(t *testing.T) {
	for _, c := range []struct {
		name    string
		compute [2]int64
		want    report.Severity
	}{
		{"volta_dgemm_64x64_nn", [2]int64{7, 5}, report.High},
		{"volta_dgemm_64x64_nn", [2]int64{8, 0}, ""},
		{"volta_sgemm_64x64_nn", [2]int64{7, 5}, ""},
	} {
		b := halfOf(c.name, tracetest.GPU{Name: "A GPU", Compute: c.compute})
		sectiontest.Look(t, b, analyze.Options{}).Finding("fp64_math", c.want)
	}
}
