package side

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// UnitRow is one unit of work.
type UnitRow struct{ Time, Busy, Idle, Compute, Launches, Kernels float64 }

// Of is what the metric shows of a unit; ok is false for metrics that the report does not list unit by unit.
func (u *UnitRow) Of(metric string) (v float64, ok bool) {
	switch metric {
	case "unit.time":
		return u.Time, true
	case "unit.gpu_busy":
		return u.Busy, true
	case "unit.gpu_idle":
		return u.Idle, true
	case "unit.compute_time":
		return u.Compute, true
	case "unit.launches":
		return u.Launches, true
	case "unit.kernels":
		return u.Kernels, true
	}
	return 0, false
}

// UnitsOf are the kept units of a kind on its slowest device in the order in which they ran, or a sample of them, as
// the report lists them.
func (c *Capture) UnitsOf(g *Group) []UnitRow {
	t := c.Table("unit", "units")
	if t.Len() == 0 {
		t = c.Table("iterations", "iteration_units")
	}
	n := t.Len()
	if t.Cut() {
		n--
	}
	alike := 0
	for i := range c.Kinds {
		if c.Kinds[i].Kind == g.Kind {
			alike++
		}
	}
	var list []UnitRow
	for i := range n {
		k := Kind{Phase: t.Str(i, "phase"), Batch: t.Whole(i, "batch"), Tokens: t.Whole(i, "tokens")}
		if s := t.Str(i, "state"); s != "kept" && s != "" || k != g.Kind || t.Whole(i, "device_id") != g.Device {
			continue
		}
		var u UnitRow
		u.Time, _ = t.Num(i, "duration")
		u.Busy, _ = t.Num(i, "busy")
		u.Idle, _ = t.Num(i, "idle")
		u.Compute, _ = t.Num(i, "compute")
		u.Launches, _ = t.Num(i, "launches")
		u.Kernels, _ = t.Num(i, "kernels")
		if alike > 1 && u.Kernels != float64(g.Kernels) {
			continue // of another kind, told apart by its signature, which the table does not have
		}
		list = append(list, u)
	}
	return list
}

// UnitsBehind are the units that a metric of the report is of; nil where it is of none, or of another device than the
// listed ones.
func (c *Capture) UnitsBehind(m *report.Metric) []UnitRow {
	id := c.GroupOf(m)
	if _, device := m.Labels["device"]; device || id == "" {
		return nil
	}
	at := slices.IndexFunc(c.Kinds, func(g Group) bool { return g.ID == id })
	if at < 0 {
		return nil
	}
	return c.UnitsOf(&c.Kinds[at])
}

// Stat is a statistic of a metric's summary, or its value where stat is empty; ok is false where it is not known.
func Stat(m *report.Metric, stat string) (v float64, ok bool) { return statOf(m, stat) }
