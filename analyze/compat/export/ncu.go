package export

import (
	"cmp"
	"encoding/json"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// ncuSummary is the shape of profilemate's ncu_summary.json. Values that were not measured are null.
type ncuSummary struct {
	TotalKernels int            `json:"total_kernels"`
	Top          []ncuBandwidth `json:"top_kernels_by_bandwidth"`
	Roofline     struct {
		Compute int `json:"compute_bound"`
		Memory  int `json:"memory_bound"`
	} `json:"roofline_summary"`
	MoE ncuExperts `json:"moe_analysis"`
}

type ncuBandwidth struct {
	KernelName string       `json:"kernel_name"`
	ReadBytes  *json.Number `json:"dram_read_bytes"`  // of a launch, on average
	WriteBytes *json.Number `json:"dram_write_bytes"` // of a launch, on average
	DRAM       *json.Number `json:"dram_throughput_pct"`
	SM         *json.Number `json:"sm_throughput_pct"`
	DurationNs *json.Number `json:"duration_ns"` // of a launch, on average
	Bandwidth  *json.Number `json:"bandwidth_gbps"`
}

// ncuExperts sums over all launches; the bandwidth is bytes over time, where profilemate averaged the ratios.
type ncuExperts struct {
	Found     bool           `json:"moe_kernels_found"`
	Kernels   int            `json:"num_moe_kernels"`
	TotalMs   *json.Number   `json:"total_time_ms"`
	Bandwidth *json.Number   `json:"avg_bandwidth_gbps"`
	List      []ncuBandwidth `json:"kernels"`
}

// Rows that profilemate lists.
const (
	ncuTop     = 20
	ncuExpertN = 10
)

// NCUSummaryJSON is profilemate's ncu_summary.json, made of the tables that the section on Nsight Compute writes as
// files.
func NCUSummaryJSON(details []report.Table) ([]byte, error) {
	find := func(id string) *report.Table {
		named := func(t *report.Table) bool { return t.ID == id }
		return cmp.Or(lists.Find(details, named), &report.Table{})
	}
	t := find("kernel_bandwidth_metrics")
	s := ncuSummary{TotalKernels: len(t.Rows), Top: []ncuBandwidth{}, MoE: ncuExperts{List: []ncuBandwidth{}}}
	order, at := lists.Indexes[int](len(t.Rows)), map[string]int{}
	for i := range order {
		at[t.Str(i, "kernel_name")] = i
	}
	bandwidth := func(i int) float64 {
		v, ok := t.Num(i, "bandwidth_gbps")
		if !ok {
			return -1
		}
		return v
	}
	lists.Sort(order, func(a, b int) int { return cmp.Compare(bandwidth(b), bandwidth(a)) })
	for _, i := range order[:min(ncuTop, len(order))] {
		s.Top = append(s.Top, bandwidthRow(t, i))
	}
	r := find("roofline_data")
	for i := range r.Rows {
		switch r.Str(i, "bottleneck") {
		case "compute":
			s.Roofline.Compute++
		case "memory":
			s.Roofline.Memory++
		}
	}
	s.experts(find("ncu_moe"), t, at)
	return report.JSON(s, "  ")
}

func (s *ncuSummary) experts(moe, bandwidth *report.Table, at map[string]int) {
	s.MoE.Found, s.MoE.Kernels = len(moe.Rows) > 0, len(moe.Rows)
	var ns, timed, bytes float64
	for i := range moe.Rows {
		if row, ok := at[moe.Str(i, "kernel_name")]; ok && len(s.MoE.List) < ncuExpertN {
			s.MoE.List = append(s.MoE.List, bandwidthRow(bandwidth, row))
		}
		t, ok := moe.Num(i, "total")
		ns += t
		if rate, known := moe.Num(i, "dram_throughput"); ok && known {
			timed += t
			bytes += rate * t
		}
	}
	if ns > 0 {
		s.MoE.TotalMs = shifted(report.F(ns), -6)
	}
	if timed > 0 {
		s.MoE.Bandwidth = shifted(report.F(bytes/timed), -9)
	}
}

func bandwidthRow(t *report.Table, i int) ncuBandwidth {
	name := t.Str(i, "kernel_name")
	get := func(id string, exp int) *json.Number { return shifted(t.Cell(i, id), exp) }
	return ncuBandwidth{name, get("dram_read_bytes", 0), get("dram_write_bytes", 0), get("dram_throughput_pct", 2),
		get("sm_throughput_pct", 2), get("duration_ns", 0), get("bandwidth_gbps", -9)}
}
