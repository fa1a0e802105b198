package gpu_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Tiny's range "attention" holds a gemm of 100 µs and a softmax of 100, its range "mlp" a norm of 40. By name gemm has
// 325, softmax (no component) 260, norm 100 and nccl 70. So together: attention 200, ffn 40, gemm 325-100, other
// 260-100, norm 100-40, communication 70: 755.
func TestComponentsOfTiny(t *testing.T) {
	l := sectiontest.Look(t, tracetest.Tiny(), analyze.Options{})
	for _, c := range []struct {
		name                  string
		both, count, nvtx, by float64
	}{
		{"attention", 200, 2, 200, 0}, {"ffn", 40, 1, 40, 0}, {"gemm", 225, 4, 0, 325},
		{"other", 160, 3, 0, 260}, {"norm", 60, 2, 0, 100}, {"communication", 70, 1, 0, 70},
	} {
		sectiontest.Metric(t, l.Report, c.both*sectiontest.Us, "component.gpu_time", "component", c.name)
		sectiontest.Metric(t, l.Report, c.count, "component.kernel_count", "component", c.name)
		if c.nvtx > 0 {
			sectiontest.Metric(t, l.Report, c.nvtx*sectiontest.Us, "component.gpu_time", "component", c.name, "by", "nvtx")
		} else {
			sectiontest.NoMetric(t, l.Report, "component.gpu_time", "component", c.name, "by", "nvtx")
		}
		if c.by > 0 {
			sectiontest.Metric(t, l.Report, c.by*sectiontest.Us, "component.gpu_time", "component", c.name, "by", "name")
		} else {
			sectiontest.NoMetric(t, l.Report, "component.gpu_time", "component", c.name, "by", "name")
		}
	}
	covered, total := 240.0, 755.0
	if c := l.Section("components").Coverage; c == nil || *c != covered/total {
		t.Errorf("coverage = %v, want 240 of 755", c)
	}
	tab := l.Table("components", "components")
	for _, column := range []string{"total", "by_nvtx", "by_name"} {
		if got := l.Sum(tab, column); got != 755*sectiontest.Us {
			t.Errorf("%s sums to %v", column, got)
		}
	}
	l.Row(tab, 0, "component", `"gemm"`, "count", "4", "total", "225000", "by_nvtx", "0", "by_name", "325000")
	l.Row(tab, len(tab.Rows)-1, "component", `"(in no component range)"`, "total", "null", "by_nvtx", "515000")
	l.CsvHas(tab, "components.csv", "component", "total_time_ns", "total_time_ms", "kernel_count")
}

// The nearest range outward that names a component counts: "linear" names none, "mlp" around it does, "attention"
// around both is too far.
func TestTheNearestNamingRangeCounts(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Range("attention", 0, 100)
	th.Range("mlp", 10, 50)
	th.Range("linear", 20, 40)
	th.Launch("gemm", 25, 26, tracetest.Kernel{Start: 200, End: 210})
	th.Launch("gemm", 60, 61, tracetest.Kernel{Start: 210, End: 240})
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 10, "component.gpu_time", "component", "ffn")
	sectiontest.Metric(t, l.Report, 30, "component.gpu_time", "component", "attention")
	sectiontest.NoMetric(t, l.Report, "component.gpu_time", "component", "gemm")
	sectiontest.Metric(t, l.Report, 40, "component.gpu_time", "component", "gemm", "by", "name")
}

// Without ranges, or with the mapping switched off, names alone decide.
func TestComponentsByNameAlone(t *testing.T) {
	for _, l := range []sectiontest.Looker{
		sectiontest.Look(t, tracetest.Tiny(tracetest.WithoutTable("NVTX_EVENTS")), analyze.Options{}),
		sectiontest.Look(t, tracetest.Tiny(), analyze.Options{NoRangeMap: true}),
	} {
		sectiontest.Metric(t, l.Report, 325*sectiontest.Us, "component.gpu_time", "component", "gemm")
		sectiontest.NoMetric(t, l.Report, "component.gpu_time", "component", "attention")
		l.Row(l.Table("components", "components"), 0, "by_nvtx", "null")
		if c := l.Section("components").Coverage; c != nil {
			t.Errorf("coverage = %v, want none", *c)
		}
	}
}

func TestComponentsWithHiddenGraphs(t *testing.T) {
	l := sectiontest.Look(t, tracetest.GraphHidden(), analyze.Options{})
	l.Status("components", report.Partial)
	tab := l.Table("components", "components")
	l.Row(tab, len(tab.Rows)-1, "component", `"(inside CUDA graphs)"`, "total", "9000000")
}

func TestComponentsSumToKernels(t *testing.T) {
	for trace := range oracle(t, "cuda_gpu_kern_sum") {
		r := sectiontest.ReportOf(t, realTrace(trace))
		if got, want := sumBy(r, "component.gpu_time", "component"), *r.Find("kernel.total_time", nil).Value; got != want {
			t.Errorf("%s: components sum to %v, want %v", trace, got, want)
		}
		if got, want := sumBy(r, "component.kernel_count", "component"), *r.Find("kernel.count", nil).Value; got != want {
			t.Errorf("%s: component counts sum to %v, want %v", trace, got, want)
		}
	}
}

// Of 100 ns of kernels attention takes 61: more than profilemate's 60 %. With 60 it says nothing.
func TestAttentionDominates(t *testing.T) {
	for attention, want := range map[int64]bool{61: true, 60: false} {
		b := tracetest.New()
		th := b.Process(5, "p").Thread(5, "")
		th.Launch("flash_fwd_kernel", 0, 1, tracetest.Kernel{Start: 10, End: 10 + attention})
		th.Launch("rms_norm_kernel", 2, 3, tracetest.Kernel{Start: 100, End: 200 - attention})
		l := sectiontest.Look(t, b, analyze.Options{})
		found := sectiontest.FindingOf(l.Report, "attention_dominates") != nil
		if found != want {
			t.Errorf("attention %d of 100: finding %v, want %v", attention, found, want)
		}
	}
}
