package present_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/compat/export"
	"github.com/nsys-llm/explain/analyze/report"
)

func regionSample() *builder {
	b := empty("ranges.sqlite")
	col := func(id string, k report.Kind) report.Column { return report.Column{ID: id, Title: id, Kind: k} }
	b.section("regions", "Regions", report.OK, "",
		report.Table{ID: "regions", Title: "Regions", TotalRows: 3, Columns: []report.Column{col("region", report.Name), col("parent", report.Name), col("depth", report.Int), col("pid", report.Int), col("device_id", report.Int),
			col("total", report.Int), col("share", report.Float), col("kernels", report.Int)}, Rows: [][]report.Cell{
			{report.S("decode"), report.Null, report.I(0), report.I(4711), report.I(1), report.I(12_345_678), report.F(0.5), report.I(20)},
			{report.S("decode::<b>|attention"), report.S("decode"), report.I(1), report.Null, report.Null, report.I(345_678), report.F(0.014), report.I(8)},
		}},
		report.Table{ID: "region_kernels", Title: "Kernels", TotalRows: 1, Columns: []report.Column{col("region", report.Name), col("kernel", report.Name), col("total", report.Int), col("share", report.Float), col("count", report.Int)}, Rows: [][]report.Cell{
			{report.S("decode"), report.S("gemm"), report.I(12_000_000), report.F(0.97), report.I(10)},
		}})
	b.ns("kernel.total_time", 24_691_356)
	return b
}

func TestRegions(t *testing.T) {
	r := valid(t, regionSample())
	if !export.HasRegions(r) || export.HasRegions(valid(t, empty("x"))) {
		t.Error("HasRegions")
	}
	golden(t, "regions.md", markdown(t, export.RegionsMD(r)))
	b, err := export.RegionsJSON(r)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "regions.json", b)
}

// The file has the keys of llm-perf-opt's own, and of its contract.
func TestRegionKeys(t *testing.T) {
	b, err := export.RegionsJSON(valid(t, regionSample()))
	if err != nil {
		t.Fatal(err)
	}
	var top map[string]json.RawMessage
	var regions []map[string]json.RawMessage
	if err := json.Unmarshal(b, &top); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(top["regions"], &regions); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"scope", "regions", "generated_at", "totals", "config_fingerprint", "selection"} {
		if top[key] == nil {
			t.Errorf("no key %s", key)
		}
	}
	keys := []string{"name", "parent", "depth", "process", "device", "total_ms", "kernel_count", "sections_path", "csv_path", "markdown_path", "json_path", "metrics", "kernels"}
	for key := range regions[0] {
		if !slices.Contains(keys, key) {
			t.Errorf("unexpected key %s", key)
		}
	}
	if len(regions[0]) != len(keys) {
		t.Errorf("%d keys, want %d", len(regions[0]), len(keys))
	}
}
