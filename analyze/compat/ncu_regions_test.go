package compat_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

func TestNCURegions(t *testing.T) {
	r := folderReport(t, perfoptFolder)
	sectiontest.WantStatus(t, r, "ncu_regions", report.OK, "")
	sectiontest.Metric(t, r, 300, "ncu_region.kernels", "region", "LLM@prefill")
	sectiontest.Metric(t, r, 10.25*ms, "ncu_region.time", "region", "LLM@prefill::attention")
	row := sectiontest.FindTable(t, r, "ncu_regions", "ncu_regions").Rows[1]
	if parent, _ := row[1].Str(); parent != "LLM@prefill" {
		t.Errorf("inside %q", parent)
	}
}

// Names that could be anything are numbered.
func TestNCURegionsNames(t *testing.T) {
	r := filesReport(t, map[string]string{"r.json": `{"scope": "aggregate", "regions": [{"name": "sk-AbC123dEf456", "total_ms": 1, "kernel_count": 2}]}`})
	sectiontest.Metric(t, r, 2, "ncu_region.kernels", "region", "region 1")
}
