package export

import (
	"encoding/json"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// Kernel a moved 2 MB and 1 MB in 3 µs of a launch: 1,000 GB/s; b is one of experts with 10 GB in 0.1 s in all; of c the bandwidth is
// unknown. With 3 ms of another kernel of experts whose bandwidth is unknown they take 103 ms.
func TestNCUSummary(t *testing.T) {
	col := func(ids ...string) []report.Column {
		var list []report.Column
		for _, id := range ids {
			list = append(list, report.Column{ID: id})
		}
		return list
	}
	f, n, s := report.F, report.Null, report.S
	details := []report.Table{
		{ID: "kernel_bandwidth_metrics", Columns: col("kernel_name", "dram_read_bytes", "dram_write_bytes", "dram_throughput_pct", "sm_throughput_pct", "duration_ns", "bandwidth_gbps"), Rows: [][]report.Cell{
			{s("c"), n, n, f(0.25), n, f(500), n},
			{s("b"), f(4e9), f(1e9), f(0.5), f(0.1), f(5e7), f(1e11)},
			{s("a"), f(2e6), f(1e6), f(0.3), f(0.6), f(3000), f(1e12)},
		}},
		{ID: "roofline_data", Columns: col("kernel_name", "bottleneck"), Rows: [][]report.Cell{{s("a"), s("compute")}, {s("b"), s("memory")}, {s("d"), s("unknown")}}},
		{ID: "ncu_moe", Columns: col("kernel_name", "total", "dram_throughput"), Rows: [][]report.Cell{{s("b"), f(1e8), f(1e11)}, {s("c"), f(3e6), n}}},
	}
	b, err := NCUSummaryJSON(details)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		TotalKernels int `json:"total_kernels"`
		Top          []struct {
			Name      string   `json:"kernel_name"`
			Read      *float64 `json:"dram_read_bytes"`
			DRAM      *float64 `json:"dram_throughput_pct"`
			Bandwidth *float64 `json:"bandwidth_gbps"`
		} `json:"top_kernels_by_bandwidth"`
		Roofline map[string]int `json:"roofline_summary"`
		MoE      struct {
			Found     bool                    `json:"moe_kernels_found"`
			Kernels   int                     `json:"num_moe_kernels"`
			TotalMs   float64                 `json:"total_time_ms"`
			Bandwidth float64                 `json:"avg_bandwidth_gbps"`
			List      []struct{ Name string } `json:"kernels"`
		} `json:"moe_analysis"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.TotalKernels != 3 || len(got.Top) != 3 || got.Top[0].Name != "a" || *got.Top[0].Bandwidth != 1000 || *got.Top[0].Read != 2e6 || *got.Top[0].DRAM != 30 || got.Top[2].Bandwidth != nil {
		t.Errorf("kernels %+v", got.Top)
	}
	if got.Roofline["compute_bound"] != 1 || got.Roofline["memory_bound"] != 1 {
		t.Errorf("roofline %v", got.Roofline)
	}
	if m := got.MoE; !m.Found || m.Kernels != 2 || m.TotalMs != 103 || m.Bandwidth != 100 || len(m.List) != 2 {
		t.Errorf("experts %+v", m)
	}
	if b, err = NCUSummaryJSON(nil); err != nil || !json.Valid(b) {
		t.Errorf("without tables: %s, %v", b, err)
	}
}
