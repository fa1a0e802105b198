package difftest

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Kind is a kind of unit of a report made by hand. All units of it take the same time, and so do all of their kernels.
type Kind struct {
	Phase     string
	Batch     int64 // 0: not known
	Units     int64
	Time      float64 // of a unit, ns
	Signature string
	Kernels   map[string]float64 // runs of each kernel in a unit, of equal time
}

// Kinds is a report of these kinds of unit, the first of which is the main one.
func Kinds(kinds ...Kind) *report.Report {
	r := Side(Metric("kernel.count", report.Count, 1000))[0]
	columns := func(ids ...string) []report.Column {
		return lists.Map(ids, func(id string) report.Column { return report.Column{ID: id} })
	}
	groups := report.Table{ID: "unit_groups", Columns: columns("phase", "batch", "tokens", "units", "kernels", "device_id",
		"mean", "share", "signature")}
	units := report.Table{ID: "units", Columns: columns("phase", "batch", "tokens", "device_id", "state", "duration", "kernels")}
	all := lists.Sum(kinds, func(k Kind) float64 { return float64(k.Units) * k.Time })
	for i, k := range kinds {
		batch, size := report.Null, (*int64)(nil)
		if k.Batch > 0 {
			batch, size = report.I(k.Batch), &k.Batch
		}
		var runs float64
		for _, n := range k.Kernels {
			runs += n
		}
		id := strconv.Itoa(i)
		groups.Rows = append(groups.Rows, []report.Cell{report.S(k.Phase), batch, report.Null, report.I(k.Units),
			report.I(int64(runs)),
			report.I(0), report.F(k.Time), report.F(float64(k.Units) * k.Time / all), report.S(k.Signature)})
		for range k.Units {
			units.Rows = append(units.Rows, []report.Cell{report.S(k.Phase), batch, report.Null, report.I(0), report.S("kept"),
				report.F(k.Time), report.I(int64(runs))})
		}
		r.Unit.Groups = append(r.Unit.Groups,
			report.UnitGroup{ID: id, Main: i == 0, Phase: k.Phase, Batch: size, Signature: k.Signature, Count: k.Units})
		labels := []string{"phase", k.Phase}
		if k.Batch > 0 {
			labels = append(labels, "batch", strconv.FormatInt(k.Batch, 10))
		}
		if i == 0 {
			labels = nil
		}
		add := func(metric string, v float64, more ...string) {
			m := Metric(metric, report.Nanoseconds, v, append(append([]string{}, labels...), more...)...)
			m.Group, m.N = id, k.Units
			m.Summary = &report.Summary{N: k.Units, Min: v, P50: v, P90: v, P99: v, Max: v, Mean: v}
			r.Metrics = append(r.Metrics, m)
		}
		for _, metric := range []string{"unit.time", "unit.gpu_busy", "unit.compute_time"} {
			add(metric, k.Time)
		}
		for _, metric := range []string{"unit.gpu_idle", "unit.exposed_comm_time", "unit.exposed_copy_time"} {
			add(metric, 0)
		}
		add("unit.kernels", runs)
		for name, n := range k.Kernels {
			add("kernel.time_per_unit", k.Time*n/runs, "kernel", name)
			add("kernel.exclusive_time_per_unit", k.Time*n/runs, "kernel", name)
			add("kernel.count_per_unit", n, "kernel", name)
		}
	}
	r.Sections = []report.Section{{ID: "unit", Tables: []report.Table{groups, units}}}
	return r
}
