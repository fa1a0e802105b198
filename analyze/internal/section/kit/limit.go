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

// leftOut are devices and processes with work or launches, by label: those first in order, which have metrics of their
// own, and those left out. Metrics of the latter are never held: thousands of devices have hundreds of thousands.
type leftOut map[string]chosen

type chosen struct{ first, left map[string]bool } // by value of the label

// has reports whether a metric belongs to one of them.
func (x leftOut) has(m *report.Metric) bool {
	for label, of := range x {
		if of.left[m.Labels[label]] && !sumsToWhole(m.ID) {
			return true
		}
	}
	return false
}

// newLeftOut chooses the devices with the lowest numbers, and the processes with most kernel time, then most launches.
func newLeftOut(in *Input) leftOut {
	x := leftOut{}
	if in.Timeline == nil {
		return x
	}
	if list := in.Timeline.Devices; len(list) > MaxDeviceMetrics {
		id := func(d *timeline.Device) string { return strconv.Itoa(int(d.ID)) }
		x["device"] = chosen{lists.Set(list[:MaxDeviceMetrics], id), lists.Set(list[MaxDeviceMetrics:], id)}
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
	pid := func(p int32) string { return PIDText(in, p) }
	n := min(len(order), MaxProcMetrics)
	of := chosen{lists.Set(order[:n], pid), lists.Set(order[n:], pid)}
	maps.DeleteFunc(of.left, func(pid string, _ bool) bool { return of.first[pid] }) // two with one number
	x["pid"] = of
	return x
}

// PIDText is the label of a process: its pid, and its full identity if another process of the capture has the same pid
// (two machines or virtual machines in one capture).
func PIDText(in *Input, p int32) string {
	if p == trace.None {
		return "unknown"
	}
	own := in.Trace.Procs[p]
	sharing := Once(in, "processes of a pid", func() map[int64]int {
		count := map[int64]int{}
		for _, other := range in.Trace.Procs {
			count[other.PID]++
		}
		return count
	})
	if sharing[own.PID] > 1 {
		return strconv.FormatInt(own.PID, 10) + "@" + strconv.FormatInt(own.Global>>48, 16)
	}
	return strconv.FormatInt(own.PID, 10)
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
				for label, of := range in.left {
					if of.left[ref.Labels[label]] {
						quoted[ref.ID], kept = true, append(kept, ref.Labels)
					}
				}
			}
		}
	}
	for _, l := range kept {
		for label, of := range in.left {
			delete(of.left, l[label])
		}
	}
	parallel.Each(len(list), func(i int) {
		if slices.ContainsFunc(list[i].Metrics, func(d report.MetricDef) bool { return quoted[d.ID] }) {
			outs[i] = list[i].run(in)
		}
	})
	return outs
}

// limitMetrics leaves out metrics of single devices and processes beyond the limits. It keeps those first in order,
// others as far as there is room, and the subjects of findings.
func limitMetrics(r *report.Report, chosen leftOut) {
	for _, limit := range []struct {
		label, kept string
		n           int
	}{{"device", "with the lowest numbers", MaxDeviceMetrics}, {"pid", "with most kernel time", MaxProcMetrics}} {
		var seen lists.Numbering[string]
		for i := range r.Metrics {
			if v, ok := r.Metrics[i].Labels[limit.label]; ok {
				seen.Of(v)
			}
		}
		of, values, all := chosen[limit.label], seen.Keys, len(seen.Keys)
		for v := range of.left {
			if !seen.Has(v) {
				all++
			}
		}
		if all <= limit.n {
			continue
		}
		lists.Lead(values, func(v string) bool { return of.first[v] })
		if limit.label == "device" && len(values) > MaxDevices {
			groupMetrics(r, limit.label, values[MaxDevices:])
		}
		keep := lists.Set(values[:min(limit.n, len(values))], func(v string) string { return v })
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
func groupMetrics(r *report.Report, label string, values []string) {
	sums := map[string]*report.Metric{}
	other := lists.Set(values, func(v string) string { return v })
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
