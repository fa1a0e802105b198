package gpu_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// kinds is kernels one after another, µs long, by name.
func kinds(lengths map[string]int64, order ...string) *tracetest.Builder {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	at := int64(0)
	for _, name := range order {
		th.Launch(name, at, at+1, tracetest.Kernel{Start: at, End: at + lengths[name]*sectiontest.Us})
		at += lengths[name] * sectiontest.Us
	}
	return b
}

// Tiny's kernels: gemm 325 µs in 5, softmax 260 in 4, norm 100 in 3, nccl's all-reduce 70 in 1; 755 in all.
func TestCategoriesOfTiny(t *testing.T) {
	l := sectiontest.Look(t, tracetest.Tiny(), analyze.Options{})
	for category, want := range map[string][2]float64{"gemm": {325 * sectiontest.Us, 5}, "softmax": {260 * sectiontest.Us, 4}, "norm": {100 * sectiontest.Us, 3}, "comm": {70 * sectiontest.Us, 1}} {
		sectiontest.Metric(t, l.Report, want[0], "kernel.total_time", "category", category)
		sectiontest.Metric(t, l.Report, want[1], "kernel.count", "category", category)
	}
	sectiontest.Metric(t, l.Report, 70*sectiontest.Us, "kernel.total_time", "library", "nccl")
	sectiontest.Metric(t, l.Report, 1, "kernel.count", "library", "nccl")
	tab := l.Table("categories", "categories")
	l.Row(tab, 0, "category", `"gemm"`, "count", "5", "total", "325000", "mean", "65000", "names", "1", "top_kernel", `"gemm"`)
	for _, id := range []string{"categories", "libraries"} {
		if got := l.Sum(l.Table("categories", id), "total"); got != 755*sectiontest.Us {
			t.Errorf("%s sum to %v, kernel time is 755 µs", id, got)
		}
	}
	l.CsvHas(tab, "categories.csv", "category", "call_count", "total_time_ns", "total_time_ms")
	if c := l.Section("categories").Coverage; c == nil || *c != 1 {
		t.Errorf("coverage = %v: every name of Tiny says what it is", c)
	}
	l.Finding("pointwise_kernels", "")
}

// Of 100 µs, 50 are of a gemm and 50 of pointwise kernels: of these, add has 14 or 16 µs, 28 or 32 %, each of the
// others less.
func TestPointwiseKernelsAreNamed(t *testing.T) {
	pointwise := func(op string) string { return strings.Replace(addKernel, "_add", op, 1) }
	order := []string{"gemm", addKernel, pointwise("_mul"), pointwise("_sub"), pointwise("_neg"), pointwise("_abs")}
	for add, want := range map[int64]string{
		14: "Pointwise and copy kernels take 50.0 % of the window",
		16: "Pointwise and copy kernels take 50.0 % of the window: the largest is " +
			"`vectorized_elementwise<CUDAFunctor_add<float>>`",
	} {
		lengths := map[string]int64{"gemm": 50, addKernel: add, order[2]: 10, order[3]: 10, order[4]: 8,
			order[5]: 22 - add}
		r := sectiontest.Analyse(t, kinds(lengths, order...), analyze.Options{}).Report
		f := sectiontest.FindingOf(r, "pointwise_kernels")
		if f == nil || f.Title != want || (f.Place != "") != (add == 16) {
			t.Errorf("%d: %+v", add, f)
		}
	}
}

// An unknown name is other, and lowers the coverage: 60 of 100 µs are told. Pointwise kernels have 30.
func TestUnknownNamesAreOther(t *testing.T) {
	b := kinds(map[string]int64{"gemm": 30, addKernel: 30, "zyx(int)": 40}, "gemm", addKernel, "zyx(int)")
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 40*sectiontest.Us, "kernel.total_time", "category", "other")
	sectiontest.Metric(t, l.Report, 30*sectiontest.Us, "kernel.total_time", "category", "elementwise")
	sectiontest.Metric(t, l.Report, 30*sectiontest.Us, "kernel.total_time", "library", "aten")
	if c := l.Section("categories").Coverage; c == nil || *c != 0.6 {
		t.Errorf("coverage = %v, want 0.6", c)
	}
	l.Finding("pointwise_kernels", report.High)
	sectiontest.Metric(t, l.Report, 40*sectiontest.Us, "kernel.unnamed_time")
	l.Finding("unnamed_kernels", sectiontest.Remark)
}

// Of 12 kernels whose names say nothing, of 1 to 12 µs, the ten longest are rows, most time first, and the others (1 and
// 2 µs) one; with a product of 1000 µs they are 78 of 1078 µs, and nobody need look.
func TestUnnamedKernelsAreNamed(t *testing.T) {
	lengths, order := map[string]int64{"gemm": 1000}, []string{"gemm"}
	for i := range int64(12) {
		name := "zyx" + string(rune('a'+i)) + "(int)"
		lengths[name] = i + 1
		order = append(order, name)
	}
	l := sectiontest.Look(t, kinds(lengths, order...), analyze.Options{})
	sectiontest.Metric(t, l.Report, 78*sectiontest.Us, "kernel.unnamed_time")
	tab := l.Table("categories", "unnamed_kernels")
	if len(tab.Rows) != 11 || tab.TotalRows != 12 {
		t.Fatalf("%d rows of %d, want 11 of 12", len(tab.Rows), tab.TotalRows)
	}
	l.Row(tab, 0, "kernel_name", `"zyxl(int)"`, "category", `"other"`, "count", "1", "total", "12000")
	l.Row(tab, 9, "kernel_name", `"zyxc(int)"`, "total", "3000")
	l.Row(tab, 10, "kernel_name", `"(others)"`, "count", "2", "total", "3000")
	l.Finding("unnamed_kernels", "")
}

// Steps of 1000 µs are products but for a kernel that no rule knows, launched in a range: of 160 µs or of 90. From a
// tenth of the step on it is a finding.
func TestUnnamedKernelsHaveAPlace(t *testing.T) {
	for long, want := range map[int64]string{
		90:  "",
		160: "Kernels that no rule knows take 16.0 % of the step: most of it `zyx`, launched inside `sample #`",
	} {
		const us = sectiontest.Us
		b := sectiontest.Steps(20, func(th *tracetest.Thread, at int64) {
			th.Launch("gemm_a", at, at+us, tracetest.Kernel{Start: at + 2*us, End: at + 502*us})
			th.Launch("gemm_b", at+2*us, at+3*us, tracetest.Kernel{Start: at + 502*us, End: at + (1002-long)*us})
			th.Range("sample 7", at+4*us, at+8*us)
			th.Launch("zyx(int)", at+5*us, at+6*us, tracetest.Kernel{Start: at + (1002-long)*us, End: at + 1002*us})
		})
		r := sectiontest.Analyse(t, b, analyze.Options{Unit: "kernel:gemm_a"}).Report
		f, title := sectiontest.FindingOf(r, "unnamed_kernels"), ""
		if f != nil {
			title = f.Title
		}
		if title != want || long == 160 && (f.Place != "zyx" || f.Worth.Share() < 0.15 || f.Worth.Share() > 0.16) {
			t.Errorf("%d: %+v", long, f)
		}
	}
}

// What graphs hide is a row of its own: 9000 µs of 9100.
func TestHiddenGraphsAreARow(t *testing.T) {
	l := sectiontest.Look(t, tracetest.GraphHidden(), analyze.Options{})
	l.Status("categories", report.Partial)
	for _, c := range []struct{ table, column string }{{"categories", "category"}, {"libraries", "library"}} {
		tab := l.Table("categories", c.table)
		last := len(tab.Rows) - 1
		l.Row(tab, last, c.column, `"(inside CUDA graphs)"`, "total", "9000000", "count", "null")
		if got := l.Sum(tab, "total"); got != 9100*sectiontest.Us {
			t.Errorf("%s sum to %v", c.table, got)
		}
	}
	l.Finding("pointwise_kernels", "") // all kernels are, but they are 100 of 9100
}

// On real traces categories and libraries each sum to the kernel time, and so do counts.
func TestCategoriesSumToKernels(t *testing.T) {
	for trace := range oracle(t, "cuda_gpu_kern_sum") {
		r := sectiontest.ReportOf(t, realTrace(trace))
		for _, id := range []string{"kernel.total_time", "kernel.count"} {
			for _, label := range []string{"category", "library"} {
				if got, want := sumBy(r, id, label), *r.Find(id, nil).Value; got != want {
					t.Errorf("%s: %s by %s sums to %v, want %v", trace, id, label, got, want)
				}
			}
		}
	}
}

// sumBy adds up a metric over its values of exactly these labels.
func sumBy(r *report.Report, id string, labels ...string) (sum float64) {
	for _, m := range r.Metrics {
		ok := m.ID == id && len(m.Labels) == len(labels) && m.Value != nil
		for _, l := range labels {
			_, has := m.Labels[l]
			ok = ok && has
		}
		if ok {
			sum += *m.Value
		}
	}
	return sum
}

// A kernel of which only the word score says that it is attention is most of the step: no category is told, and its time is
// counted as hinted. One called flash_fwd is told.
func TestWeakNamesCarryNoFinding(t *testing.T) {
	for name, want := range map[string]report.Severity{"score_a": "", "flash_fwd_a": report.High} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		for i := range int64(12) {
			at := i * 1000 * sectiontest.Us
			for k := range int64(5) { // five names, so that no kernel is told for itself
				start := at + k*200*sectiontest.Us
				th.Launch(name+strings.Repeat("b", int(k)), 100*i+2*k, 100*i+2*k+1, tracetest.Kernel{Start: start + 1, End: start + 200*sectiontest.Us})
			}
		}
		l := sectiontest.Look(t, b, analyze.Options{})
		l.Finding("dominant_category", want)
		hinted := 0.0
		if want == "" {
			hinted = 12 * 5 * (200*sectiontest.Us - 1)
		}
		sectiontest.Metric(t, l.Report, hinted, "kernel.hinted_time")
	}
}
