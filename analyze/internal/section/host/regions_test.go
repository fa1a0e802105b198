package host_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Every region's time is the inclusive GPU time of the ranges of its name, unless it nests inside itself, and no region has
// more than the region around it where that encloses all of it.
func TestRegions(t *testing.T) {
	r := sectiontest.ReportOf(t, "../../../../testdata/serving.sqlite")
	sectiontest.WantStatus(t, r, "regions", report.OK, "")
	rows := sectiontest.FindTable(t, r, "regions", "regions").Rows
	sectiontest.Metric(t, r, float64(len(rows)), "region.count")
	for _, row := range rows {
		name, _ := row[0].Str()
		total, _ := row[5].Int()
		if m := r.Find("nvtx.gpu_time", report.Labels{"range": name}); m == nil || *m.Value != float64(total) {
			t.Errorf("%s: %d ns, nvtx.gpu_time %v", name, total, sectiontest.ShownValue(m))
		}
		depth, _ := row[2].Int()
		if _, nested := row[1].Str(); nested != (depth > 0) {
			t.Errorf("%s: depth %d, inside another: %v", name, depth, nested)
		}
	}
	sums := map[string]int64{}
	for _, row := range sectiontest.FindTable(t, r, "regions", "region_kernels").Rows {
		name, _ := row[0].Str()
		ns, _ := row[2].Int()
		sums[name] += ns
	}
	if len(sums) == 0 {
		t.Error("no kernels")
	}
	for _, row := range rows {
		name, _ := row[0].Str()
		if total, _ := row[5].Int(); sums[name] > total {
			t.Errorf("%s: kernels of %d ns in %d ns", name, sums[name], total)
		}
	}
}

// The tiny trace has ranges worked out by hand; a capture without ranges has no regions.
func TestRegionsWithoutRanges(t *testing.T) {
	r := sectiontest.Analyse(t, tracetest.Tiny(tracetest.WithoutTable("NVTX_EVENTS")), analyze.Options{}).Report
	sectiontest.WantStatus(t, r, "regions", report.Unavailable, "")
	sectiontest.NoMetric(t, r, "region.count")
}

// A step launches a kernel of 20 ns itself, one of 30 inside attn and one of 50 inside mlp: the step is 100 wide and 20 of
// it its own; inside it mlp comes first, then attn, then the kernel of its own; below each range stand the kernels that it launches.
func TestFlame(t *testing.T) {
	b := tracetest.New()
	th := b.Process(5, "p").Thread(5, "")
	th.Range("step", 0, 100)
	th.Launch("copy", 1, 2, tracetest.Kernel{Start: 200, End: 220})
	th.Range("attn", 10, 40)
	th.Launch("flash", 11, 12, tracetest.Kernel{Start: 220, End: 250})
	th.Range("mlp", 50, 90)
	th.Launch("gemm", 51, 52, tracetest.Kernel{Start: 250, End: 300})
	l := sectiontest.Look(t, b, analyze.Options{})
	var got []report.Series
	for _, s := range l.Sections {
		if s.ID == "regions" {
			got = s.Charts[0].Series
		}
	}
	want := map[string][4]float64{"step": {0, 0, 100, 20}, "mlp": {1, 0, 50, 50}, "attn": {1, 50, 30, 30},
		"gemm": {2, 0, 50, 50}, "flash": {2, 50, 30, 30}, "copy": {1, 80, 20, 20}}
	if len(got) != len(want) {
		t.Fatalf("boxes %+v", got)
	}
	for _, s := range got {
		if kernel := s.Name == "gemm" || s.Name == "flash" || s.Name == "copy"; kernel != (s.Category != "") {
			t.Errorf("%s has the category %q", s.Name, s.Category)
		}
		if [4]float64(s.Values) != want[s.Name] {
			t.Errorf("%s: %v, want %v", s.Name, s.Values, want[s.Name])
		}
	}
}
