package export

import (
	"cmp"
	"encoding/json"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Rows that profilemate lists.
const (
	ncuTop     = 20
	ncuExpertN = 10
)

// NCUSummaryJSON is profilemate's ncu_summary.json, made of the tables that the section on Nsight Compute writes as
// files. Values that were not measured are null.
func NCUSummaryJSON(details []report.Table) ([]byte, error) {
	find := func(id string) *report.Table {
		named := func(t *report.Table) bool { return t.ID == id }
		return cmp.Or(lists.Find(details, named), &report.Table{})
	}
	t, roofline := find("kernel_bandwidth_metrics"), find("roofline_data")
	rows := lists.Indexes[int](len(t.Rows))
	lists.Falling(rows, func(i int) float64 {
		if rate, ok := t.Num(i, "bandwidth_gbps"); ok {
			return rate
		}
		return -1
	})
	top := []object{}
	for _, i := range rows[:min(ncuTop, len(rows))] {
		top = append(top, bandwidthRow(t, i))
	}
	bound := func(by string) int {
		return lists.Count(lists.Indexes[int](len(roofline.Rows)), func(i int) bool { return roofline.Str(i, "bottleneck") == by })
	}
	return report.JSON(object{
		{"total_kernels", len(t.Rows)},
		{"top_kernels_by_bandwidth", top},
		{"roofline_summary", object{{"compute_bound", bound("compute")}, {"memory_bound", bound("memory")}}},
		{"moe_analysis", experts(find("ncu_moe"), t)},
	}, "  ")
}

// experts sums over all launches of the kernels of experts; the bandwidth is bytes over time, where profilemate averaged
// the ratios.
func experts(moe, bandwidth *report.Table) object {
	at := map[string]int{}
	for i := range bandwidth.Rows {
		at[bandwidth.Str(i, "kernel_name")] = i
	}
	list := []object{}
	var ns, timed, bytes float64
	for i := range moe.Rows {
		if row, ok := at[moe.Str(i, "kernel_name")]; ok && len(list) < ncuExpertN {
			list = append(list, bandwidthRow(bandwidth, row))
		}
		t, ok := moe.Num(i, "total")
		ns += t
		if rate, known := moe.Num(i, "dram_throughput"); ok && known {
			timed += t
			bytes += rate * t
		}
	}
	var total, rate *json.Number
	if ns > 0 {
		total = shifted(report.F(ns), -6)
	}
	if timed > 0 {
		rate = shifted(report.F(bytes/timed), -9)
	}
	return object{{"moe_kernels_found", len(moe.Rows) > 0}, {"num_moe_kernels", len(moe.Rows)}, {"total_time_ms", total},
		{"avg_bandwidth_gbps", rate}, {"kernels", list}}
}

// bandwidthRow is a kernel with the means of its launches.
func bandwidthRow(t *report.Table, i int) object {
	row := object{{"kernel_name", t.Str(i, "kernel_name")}}
	for _, c := range []report.CSVCol{{Name: "dram_read_bytes"}, {Name: "dram_write_bytes"}, {Name: "dram_throughput_pct", Exp10: 2},
		{Name: "sm_throughput_pct", Exp10: 2}, {Name: "duration_ns"}, {Name: "bandwidth_gbps", Exp10: -9}} {
		row = append(row, field{c.Name, shifted(t.Cell(i, c.Name), c.Exp10)})
	}
	return row
}
