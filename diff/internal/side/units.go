package side

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// UnitRow is one unit of work.
type UnitRow struct {
	Time, Busy, Idle, Compute, Launches, Kernels float64
	Step                                         int64 // of report.UnitPoint
}

// unitNumbers are the metrics that reports list by unit, with their columns in the tables of units.
var unitNumbers = []struct {
	metric, column string
	of             func(u *UnitRow) *float64
}{
	{"unit.time", "duration", func(u *UnitRow) *float64 { return &u.Time }},
	{"unit.gpu_busy", "busy", func(u *UnitRow) *float64 { return &u.Busy }},
	{"unit.gpu_idle", "idle", func(u *UnitRow) *float64 { return &u.Idle }},
	{"unit.compute_time", "compute", func(u *UnitRow) *float64 { return &u.Compute }},
	{"unit.launches", "launches", func(u *UnitRow) *float64 { return &u.Launches }},
	{"unit.kernels", "kernels", func(u *UnitRow) *float64 { return &u.Kernels }},
}

// UnitValues returns a metric of each unit; nil if reports do not list it by unit.
func UnitValues(units []UnitRow, metric string) (list []float64) {
	for _, n := range unitNumbers {
		if n.metric != metric {
			continue
		}
		for i := range units {
			list = append(list, *n.of(&units[i]))
		}
	}
	return list
}

// unit is a kept unit of a capture.
type unit struct {
	UnitRow
	at     int // index of its kind in the capture
	device int64
	start  int64 // ns
}

// Limits on the units read, so that a bootstrap over them takes a fraction of a second.
const (
	maxUnitsOfKind = 300 // on a device, spread over the capture
	maxUnits       = 2000
	minUnitsOfKind = 20
)

// readUnits reads the units of these kinds from the series, or from a table if the report has no series.
func readUnits(x *report.Index, kinds []Group) []unit {
	u := &x.Report.Unit
	list, ok := seriesUnits(u, kinds)
	if !ok {
		t := x.Table("unit", "units")
		if t.Len() == 0 {
			t = x.Table("iterations", "iteration_units")
		}
		return tableUnits(t, kinds)
	}
	type key struct {
		at     int
		device int64
	}
	counts, seen := map[key]int{}, map[key]int{}
	for i := range list {
		counts[key{list[i].at, list[i].device}]++
	}
	most := max(minUnitsOfKind, min(maxUnitsOfKind, maxUnits/max(1, len(counts))))
	stepped := len(u.Series.Step) > 0
	list = slices.DeleteFunc(list, func(u unit) bool {
		k := key{u.at, u.device}
		n, i := counts[k], seen[k]
		seen[k]++
		if stepped {
			return !lists.Sampled(u.Step, n, most)
		}
		return n > most && i*most/n == (i+1)*most/n
	})
	lists.Sort(list, func(a, b unit) int { return cmp.Compare(a.start, b.start) })
	return list
}

// seriesUnits returns the kept units of the series; ok is false if there is no series, or one without kernels.
func seriesUnits(u *report.Unit, of []Group) (list []unit, ok bool) {
	points := Points(u)
	if points == nil || len(u.Series.Kernels) == 0 {
		return nil, false
	}
	kinds := lists.Map(u.Groups, func(g report.UnitGroup) int {
		return slices.IndexFunc(of, func(k Group) bool { return k.ID == g.ID })
	})
	for i := range points {
		p := &points[i]
		if p.State != 0 || p.Group < 0 || p.Group >= int64(len(kinds)) || kinds[p.Group] < 0 {
			continue
		}
		list = append(list, unit{at: kinds[p.Group], device: p.Device, start: p.Start, UnitRow: UnitRow{
			Time: float64(p.Duration), Busy: float64(p.Busy), Idle: float64(p.Duration - p.Busy),
			Compute: float64(p.Compute), Launches: float64(p.Launches), Kernels: float64(p.Kernels), Step: p.Step,
		}})
	}
	return list, true
}

// Points returns the units that a report lists, all or a sample; nil if it lists none.
func Points(u *report.Unit) []report.UnitPoint {
	if u.Series == nil {
		return nil
	}
	points, _ := u.Series.Decode() // validated
	return points
}

// everyUnit returns the units of a report that lists every one of them, else nil.
func everyUnit(u *report.Unit) []report.UnitPoint {
	if u.Series == nil || u.Series.Every != 1 {
		return nil
	}
	return Points(u)
}

// KindsByPlace returns the index in kinds of each unit that ran, in the order of the devices and of the units on each;
// -1 for units that none of them holds. It is nil if the report does not list every unit.
func KindsByPlace(u *report.Unit, kinds []Group) []int {
	points := everyUnit(u)
	if points == nil {
		return nil
	}
	list := slices.Repeat([]int{-1}, len(points))
	for i := range points {
		if g := points[i].Group; points[i].State == 0 && g >= 0 && g < int64(len(u.Groups)) {
			id := u.Groups[g].ID
			list[i] = slices.IndexFunc(kinds, func(k Group) bool { return k.ID == id })
		}
	}
	return list
}

// tableUnits returns the kept units that a table lists: all or a sample for a report without a series, the iterations
// for a log. It leaves out units of kinds that the table cannot distinguish.
func tableUnits(t *report.Table, kinds []Group) []unit {
	type key struct {
		Kind
		kernels int64 // distinguishes several kinds of one name; -1 if there is one
	}
	places := map[key]int{}
	for i := range kinds {
		g := &kinds[i]
		if _, ok := places[key{g.Kind, -1}]; ok {
			places[key{g.Kind, -1}] = -1
		} else {
			places[key{g.Kind, -1}] = i
		}
		places[key{g.Kind, g.Kernels}] = i
	}
	var list []unit
	for i := range t.Entries() {
		k := key{Kind{t.Str(i, "phase"), t.Whole(i, "batch"), t.Whole(i, "tokens")}, -1}
		at, ok := places[k]
		if at < 0 {
			k.kernels = t.Whole(i, "kernels")
			at, ok = places[k]
		}
		u := unit{at: at, device: t.Whole(i, "device_id"), start: t.Whole(i, "start")}
		if s := t.Str(i, "state"); !ok || s != Kept && s != "" {
			continue
		}
		for _, n := range unitNumbers {
			*n.of(&u.UnitRow), _ = t.Num(i, n.column)
		}
		if _, ok := t.Num(i, "duration"); ok {
			list = append(list, u)
		}
	}
	return list
}

// place returns the index of a kind of unit in a list, whatever its device.
func (g *Group) place(kinds []Group) int {
	return slices.IndexFunc(kinds, func(k Group) bool {
		return k.ID == g.ID && k.Kind == g.Kind && k.Signature == g.Signature
	})
}

// UnitsOf returns the kept units of a kind on its device in run order, or a sample of them.
func (c *Capture) UnitsOf(g *Group) []UnitRow { return unitsOn(c.units, g.place(c.Kinds), g.Device) }

// UnitsAt returns the kept units of the kind at an index on its device in run order, or a sample of them.
func (c *Capture) UnitsAt(at int) []UnitRow { return unitsOn(c.units, at, c.Kinds[at].Device) }

func unitsOn(units []unit, at int, device int64) []UnitRow {
	own := lists.Filter(units, func(u unit) bool { return u.at == at && u.device == device })
	return lists.Map(own, func(u unit) UnitRow { return u.UnitRow })
}

// UnitsBehind returns the units that a metric of the report describes; nil if it belongs to no unit, or to a single
// device.
func (c *Capture) UnitsBehind(m *report.Metric) []UnitRow {
	id := m.Group
	if _, device := m.Labels["device"]; device || id == "" {
		return nil
	}
	at := slices.IndexFunc(c.Kinds, func(g Group) bool { return g.ID == id })
	if at < 0 {
		return nil
	}
	return c.UnitsOf(&c.Kinds[at])
}
