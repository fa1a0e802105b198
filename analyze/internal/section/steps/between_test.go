package steps_test

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Six steps of 200 µs. In the marker, which ends at 60, a gemm of 50 and a softmax of 10 are launched, the softmax with a
// grid of its own at every step; after it a sampling kernel of 20, at 110-130.
func TestUnitBetweenMarkers(t *testing.T) {
	b := tracetest.New()
	b.GPU(tracetest.GPU{})
	th := b.Process(100, "python").Thread(100, "python")
	for i := range int64(6) {
		t := func(us int64) int64 { return (1000 + 200*i + us) * unitUS }
		th.Range("execute_context_0(0)_generation_8(8)", t(-31), t(60))
		th.Launch("gemm", t(-26), t(-24), tracetest.Kernel{Start: t(0), End: t(50), Grid: [3]int64{4, 2}, Block: [3]int64{32, 1, 1}, StaticShared: 1000, DynamicShared: 24})
		th.Launch("softmax", t(-20), t(-18), tracetest.Kernel{Start: t(50), End: t(60), Grid: [3]int64{1 + i}})
		th.Launch("sample", t(100), t(102), tracetest.Kernel{Start: t(110), End: t(130)})
	}
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	if r.Unit.Kind != "nvtx" {
		t.Fatalf("unit %+v", r.Unit)
	}
	sectiontest.Metric(t, r, 2, "unit.kernels")
	sectiontest.Metric(t, r, 1, "unit.between_kernels")
	sectiontest.Metric(t, r, 20_000, "unit.between_time")
	sectiontest.Metric(t, r, 80_000, "unit.gpu_busy") // 50 + 10 + 20
	sectiontest.Metric(t, r, 20_000, "kernel.exclusive_time_per_unit", "kernel", "sample")
	table := report.NewIndex(r).Table("unit", "unit_kernels")
	type row struct {
		name, geometry string
		between        float64
	}
	var got []row
	for i := range table.Len() {
		between, _ := table.Num(i, "between")
		got = append(got, row{table.Str(i, "kernel_name"), table.Str(i, "geometry"), between})
	}
	want := []row{{"gemm", "grid 4×2, block 32, shared 1024 B", 0}, {"sample", "", 1}, {"softmax", "", 0}}
	if !slices.Equal(got, want) {
		t.Errorf("kernels %+v, want %+v", got, want)
	}
	sectiontest.NoMetric(t, sectiontest.Analyse(t, unitSteps(), analyze.Options{}).Report, "unit.between_kernels")
}
