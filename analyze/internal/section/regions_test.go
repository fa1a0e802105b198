package section_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Every region's time is the inclusive GPU time of the ranges of its name, unless it nests inside itself, and no region has
// more than the region around it where that encloses all of it.
func TestRegions(t *testing.T) {
	r := analyse(t, tracetest.Serving(), analyze.Options{}).Report
	wantStatus(t, r, "regions", report.OK, "")
	rows := findTable(t, r, "regions", "regions").Rows
	metric(t, r, float64(len(rows)), "region.count")
	for _, row := range rows {
		name, _ := row[0].Str()
		total, _ := row[5].Int()
		if m := r.Find("nvtx.gpu_time", report.Labels{"range": name}); m == nil || *m.Value != float64(total) {
			t.Errorf("%s: %d ns, nvtx.gpu_time %v", name, total, shownValue(m))
		}
		depth, _ := row[2].Int()
		if _, nested := row[1].Str(); nested != (depth > 0) {
			t.Errorf("%s: depth %d, inside another: %v", name, depth, nested)
		}
	}
	sums := map[string]int64{}
	for _, row := range findTable(t, r, "regions", "region_kernels").Rows {
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
	r := analyse(t, tracetest.Tiny(tracetest.WithoutTable("NVTX_EVENTS")), analyze.Options{}).Report
	wantStatus(t, r, "regions", report.Unavailable, "")
	noMetric(t, r, "region.count")
}
