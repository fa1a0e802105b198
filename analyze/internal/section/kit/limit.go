package kit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// How many devices and processes have metrics of their own. No machine has more GPUs, and a capture of thousands of
// short processes would make a report that nobody can load.
const (
	MaxDeviceMetrics = 64
	MaxProcMetrics   = 100
)

// limitMetrics leaves out metrics of single devices and processes beyond the limits: kept are the devices with the
// lowest numbers, the processes with most kernel time, then most launches, and what a finding is about.
func limitMetrics(r *report.Report) {
	for _, limit := range []struct {
		label, kept string
		n           int
		value       func(m *report.Metric, of *[2]float64)
	}{
		{"device", "with the lowest numbers", MaxDeviceMetrics, func(*report.Metric, *[2]float64) {}},
		{"pid", "with most kernel time", MaxProcMetrics, func(m *report.Metric, of *[2]float64) {
			switch {
			case len(m.Labels) != 1 || m.Value == nil:
			case m.ID == "kernel.total_time":
				of[0] = *m.Value
			case m.ID == "launch.count":
				of[1] = *m.Value
			}
		}},
	} {
		of := NewNumbering[string]()
		var values [][2]float64
		for i := range r.Metrics {
			if v, ok := r.Metrics[i].Labels[limit.label]; ok {
				k := of.Of(v)
				if int(k) == len(values) {
					values = append(values, [2]float64{})
				}
				limit.value(&r.Metrics[i], &values[k])
			}
		}
		if len(of.Keys) <= limit.n {
			continue
		}
		order := make([]int32, len(of.Keys))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(values[b][0], values[a][0]), cmp.Compare(values[b][1], values[a][1]))
		})
		keep := make(map[string]bool, limit.n)
		for _, k := range order[:limit.n] {
			keep[of.Keys[k]] = true
		}
		for i := range r.Findings {
			for _, ref := range r.Findings[i].Evidence {
				keep[ref.Labels[limit.label]] = true
			}
		}
		r.Metrics = slices.DeleteFunc(r.Metrics, func(m report.Metric) bool {
			v, ok := m.Labels[limit.label]
			return ok && !keep[v] && m.ID != "kernel.total_time" && m.ID != "kernel.count" // these sum to the whole
		})
		r.Warnings = append(r.Warnings, report.Warning{Code: "limited_metrics", Section: "overview",
			Text: fmt.Sprintf("The capture has %d different values of %s. Metrics of their own have the %d %s; metrics without this label count all of them.",
				len(of.Keys), limit.label, limit.n, limit.kept)})
	}
}
