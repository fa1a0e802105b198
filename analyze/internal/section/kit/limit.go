package kit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// How many devices and processes have metrics of their own. No machine has more GPUs, and a capture of thousands of
// short processes would make a report that no browser can load.
const (
	MaxDeviceMetrics = 64
	MaxProcMetrics   = 100
)

// How many devices, and how many streams or processes, are listed one by one. A table holds the others in one row.
const (
	MaxDevices = 1024
	MaxShown   = 10_000
)

// sayGrouped warns where the capture has more devices, streams or processes than are shown.
func sayGrouped(r *report.Report) {
	most := map[string]int64{"devices": MaxDevices, "streams": MaxShown, "processes": MaxShown}
	var many []string
	for i := range r.Sections {
		for k := range r.Sections[i].Tables {
			t := &r.Sections[i].Tables[k]
			if n, ok := most[t.ID]; ok && t.TotalRows > n {
				many = append(many, fmt.Sprintf("%d %s, more than %d", t.TotalRows, t.ID, n))
			}
		}
	}
	if len(many) > 0 {
		r.Warnings = append(r.Warnings, report.Warning{Code: "grouped", Section: "overview",
			Text: "The capture has " + strings.Join(many, ", and ") + ". The tables of the report group the others in their last row; the CSV files have all."})
	}
}

// sumsToWhole reports whether a metric is kept for every device and process, because these sum to the whole.
func sumsToWhole(id string) bool { return id == "kernel.total_time" || id == "kernel.count" }

// leftOut are devices and processes without metrics of their own, by label and its value. Such metrics are never held:
// thousands of devices have hundreds of thousands.
type leftOut map[string]map[string]bool

// has reports whether a metric belongs to one of them.
func (x leftOut) has(m *report.Metric) bool {
	for label, left := range x {
		if left[m.Labels[label]] && !sumsToWhole(m.ID) {
			return true
		}
	}
	return false
}

// newLeftOut chooses them as limitMetrics does.
func newLeftOut(in *Input) leftOut {
	x := leftOut{}
	if in.Timeline == nil {
		return x
	}
	if list := in.Timeline.Devices; len(list) > MaxDeviceMetrics {
		x["device"] = lists.Set(list[MaxDeviceMetrics:], func(d *timeline.Device) string {
			return strconv.Itoa(int(d.ID))
		})
	}
	procs := in.Trace.Procs
	if len(procs) <= MaxProcMetrics {
		return x
	}
	active := map[int32]bool{} // by process
	ran, calls := in.KernelStats(), in.CallStats()
	for _, at := range ran.Places {
		active[at.A] = true
	}
	for _, c := range calls.Cells {
		active[in.Trace.ProcOf(c.B)] = true
	}
	delete(active, trace.None)
	order := slices.Sorted(maps.Keys(active))
	lists.Sort(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(ran.Procs[b].Total, ran.Procs[a].Total),
			cmp.Compare(calls.Procs[b].Count, calls.Procs[a].Count))
	})
	left := map[string]bool{}
	for i := len(order) - 1; i >= 0; i-- { // of two with one number the first counts
		if pid := strconv.FormatInt(procs[order[i]].PID, 10); i >= MaxProcMetrics {
			left[pid] = true
		} else {
			delete(left, pid)
		}
	}
	x["pid"] = left
	return x
}

// runEach runs sections, several at a time, and returns their outputs in the order of the list. If a finding quotes a
// device or process that is left out, the sections that emit the number run again and keep it.
func runEach(in *Input, list []*Section) []*Output {
	in.left = newLeftOut(in)
	outs := make([]*Output, len(list))
	order := lists.Indexes[int](len(list))
	lists.Lead(order, func(i int) bool { return list[i].Gaps == nil })
	lists.Lead(order, func(i int) bool { return list[i].Long })
	tasks := early(in, list)
	for _, i := range order {
		tasks = append(tasks, func() { outs[i] = list[i].run(in) })
	}
	parallel.Do(tasks...)
	quoted := map[string]bool{}
	var kept []report.Labels
	for _, out := range outs {
		for _, f := range out.findings {
			for _, ref := range f.Evidence {
				for label, left := range in.left {
					if left[ref.Labels[label]] {
						quoted[ref.ID], kept = true, append(kept, ref.Labels)
					}
				}
			}
		}
	}
	for _, l := range kept {
		for label, left := range in.left {
			delete(left, l[label])
		}
	}
	parallel.Each(len(list), func(i int) {
		if slices.ContainsFunc(list[i].Metrics, func(d report.MetricDef) bool { return quoted[d.ID] }) {
			outs[i] = list[i].run(in)
		}
	})
	return outs
}

// limitMetrics leaves out metrics of single devices and processes beyond the limits. It keeps the devices with the
// lowest numbers, the processes with most kernel time, then most launches, and the subjects of findings.
func limitMetrics(r *report.Report, left leftOut) {
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
		of := NewTally[string, [2]float64]()
		for i := range r.Metrics {
			if v, ok := r.Metrics[i].Labels[limit.label]; ok {
				limit.value(&r.Metrics[i], of.At(v))
			}
		}
		all := len(of.Keys)
		for v := range left[limit.label] {
			if !of.Has(v) {
				all++
			}
		}
		if all <= limit.n {
			continue
		}
		order := lists.Indexes[int32](len(of.Keys))
		lists.Sort(order, func(a, b int32) int {
			x, y := of.Values[a], of.Values[b]
			return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]))
		})
		if limit.label == "device" && len(order) > MaxDevices {
			groupMetrics(r, limit.label, of.Keys, order[MaxDevices:])
		}
		keep := make(map[string]bool, limit.n)
		for _, k := range order[:min(limit.n, len(order))] {
			keep[of.Keys[k]] = true
		}
		cited := func(evidence []report.MetricRef) {
			for _, ref := range evidence {
				keep[ref.Labels[limit.label]] = true
			}
		}
		for i := range r.Findings {
			cited(r.Findings[i].Evidence)
		}
		for i := range r.Remarks {
			cited(r.Remarks[i].Evidence)
		}
		r.Metrics = slices.DeleteFunc(r.Metrics, func(m report.Metric) bool {
			v, ok := m.Labels[limit.label]
			return ok && !keep[v] && !sumsToWhole(m.ID)
		})
		r.Warnings = append(r.Warnings, report.Warning{Code: "limited_metrics", Section: "overview",
			Text: fmt.Sprintf("The capture has %d different values of %s. Only the %d %s have metrics of their own; metrics without this label count all of them.",
				all, limit.label, limit.n, limit.kept)})
	}
}

// groupMetrics makes one metric of those that sum to the whole, of some values of a label.
func groupMetrics(r *report.Report, label string, values []string, others []int32) {
	other := lists.Set(others, func(k int32) string { return values[k] })
	sums := map[string]*report.Metric{}
	r.Metrics = slices.DeleteFunc(r.Metrics, func(m report.Metric) bool {
		if !other[m.Labels[label]] || len(m.Labels) != 1 || m.Value == nil || !sumsToWhole(m.ID) {
			return false
		}
		if s := sums[m.ID]; s != nil {
			s.Value, s.N = new(*s.Value+*m.Value), s.N+m.N
			return true
		}
		m.Labels, m.Summary, m.Histogram = Labels(label, "(others)"), nil, nil
		sums[m.ID] = &m
		return true
	})
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		r.Metrics = append(r.Metrics, *sums[id])
	}
}
