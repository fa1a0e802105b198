package merge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

const unitSection = "unit"

// unitsFold merges what captures state about steps. Numbers of a step come from its slowest device, in a run as in a
// capture: each kind of step takes those of the capture in which its median is longest.
type unitsFold struct {
	lead    int     // capture whose main kind is the slowest
	longest float64 // its median, ns; 0: none yet
	best    map[string]*bestUnit
	order   []*bestUnit
	carried []*metricFold   // of single GPUs
	tables  []report.Table  // of the lead
	metrics []report.Metric // of the lead: those without a phase
}

// bestUnit is a kind of step, in the capture in which it is slowest.
type bestUnit struct {
	group   report.UnitGroup
	id      string // in the run
	at      int    // in the order of the run
	capture int
	p50     float64
	row     []report.Cell
	time    float64 // over all captures: units times their mean, ns, for shares
	metrics []report.Metric
}

func kindKey(g *report.UnitGroup) string {
	return fmt.Sprintf("%s\x00%d\x00%d\x00%s", g.Phase, report.ValueOr(g.Batch, -1), report.ValueOr(g.Tokens, -1),
		g.Signature)
}

func (u *unitsFold) add(at int, r *report.Report, steps map[string]Step, rules *Rules) {
	var whole []report.Metric
	ofKind := map[string][]report.Metric{} // by the id of the kind
	for _, m := range r.Metrics {
		device, single := m.Labels["device"]
		switch {
		case rules.of(&m).How != report.HowStep:
		case single:
			of := deviceKey{capture: at}
			if _, err := fmt.Sscanf(device, "%d", &of.device); err == nil {
				u.carried = append(u.carried, &metricFold{m: m, of: of})
			}
		case m.Labels["phase"] == "":
			whole = append(whole, m)
		default:
			ofKind[m.Group] = append(ofKind[m.Group], m)
		}
	}
	x := report.NewIndex(r)
	for _, g := range r.Unit.Groups {
		key := kindKey(&g)
		b := u.best[key]
		if b == nil {
			b = &bestUnit{group: g, at: len(u.order), capture: -1}
			b.group.Count = 0
			u.best[key], u.order = b, append(u.order, b)
		}
		b.group.Count += g.Count
		step := steps[g.ID]
		b.time += float64(g.Count) * step.Mean
		if b.capture < 0 || step.P50 > b.p50 {
			b.capture, b.p50 = at, step.P50
			b.group.Device, b.group.Kernels = g.Device, g.Kernels
			b.row, b.metrics = nil, ofKind[g.ID]
			if kind := lists.Find(x.Groups(), func(o *report.Group) bool { return o.ID == g.ID }); kind != nil {
				b.row = kind.Row
			}
		}
		if g.Main && (u.longest == 0 || step.P50 > u.longest) {
			u.lead, u.longest, u.metrics, u.tables = at, step.P50, whole, nil
			isUnit := func(s *report.Section) bool { return s.ID == unitSection }
			if s := lists.Find(r.Sections, isUnit); s != nil {
				u.tables = s.Tables
			}
		}
	}
}

// unit returns the unit of the run, and gives kinds their ids in it.
func (f *fold) unit() report.Unit {
	u := &f.units
	if u.longest == 0 {
		return report.Unit{Kind: "none", Why: "no capture of the run has a unit of work", Groups: []report.UnitGroup{}}
	}
	lead := f.captures[u.lead]
	out := report.Unit{Kind: lead.unit.Kind, Name: lead.unit.Name, Why: lead.unit.Why, Coverage: lead.unit.Coverage,
		Anchors: lead.unit.Anchors, Groups: []report.UnitGroup{}}
	out.Trimmed.Rule = lead.unit.Trimmed.Rule
	taken := map[string]bool{}
	for _, b := range u.order {
		g := b.group
		b.id = unlike(taken, g.ID) // that of the first capture
		g.ID, g.Main = b.id, false
		if g.Device != nil {
			at := f.devices.number(deviceKey{b.capture, *g.Device})
			g.Device = &at
		}
		out.Groups = append(out.Groups, g)
	}
	if main := slices.IndexFunc(lead.unit.Groups, func(g report.UnitGroup) bool { return g.Main }); main >= 0 {
		out.Groups[u.best[kindKey(&lead.unit.Groups[main])].at].Main = true
	}
	out.Series = f.series()
	least := 1.0
	for _, c := range f.captures {
		out.Trimmed.Cut += c.unit.Trimmed.Cut
		out.Trimmed.Warmup += c.unit.Trimmed.Warmup
		out.Trimmed.Other += c.unit.Trimmed.Other
		if c.unit.Coverage != nil {
			least = min(least, *c.unit.Coverage)
		}
	}
	if out.Coverage != nil {
		out.Coverage = &least
	}
	return out
}

// series returns the units of all captures, each on the clock of its session.
func (f *fold) series() *report.UnitSeries {
	var points []report.UnitPoint
	for at, c := range f.captures {
		for _, p := range c.units {
			if p.Group >= 0 {
				p.Group = int64(f.units.best[kindKey(&c.unit.Groups[p.Group])].at)
			}
			p.Device = f.devices.number(deviceKey{at, p.Device})
			points = append(points, p)
		}
	}
	lists.Sort(points, func(a, b report.UnitPoint) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Process, b.Process))
	})
	if len(points) == 0 {
		return nil
	}
	return report.NewUnitSeries(points)
}

// unitMetrics returns the metrics of steps: those without labels of a kind come from the slowest capture.
func (f *fold) unitMetrics() []report.Metric {
	u := &f.units
	if u.longest == 0 {
		return nil
	}
	have := map[string]bool{}
	var list []report.Metric
	put := func(capture int, m report.Metric) {
		if key := report.MetricKey(m.ID, m.Labels); !have[key] {
			have[key] = true
			m.Group = f.groupIn(capture, m.Group)
			list = append(list, m)
		}
	}
	for _, m := range u.metrics {
		put(u.lead, m)
	}
	for _, b := range u.order {
		for _, m := range b.metrics {
			put(b.capture, m)
		}
	}
	for _, c := range u.carried {
		if n := f.devices.number(c.of); n < maxDevices {
			m := c.m
			m.Labels = onDevice(m.Labels, n)
			put(c.of.capture, m)
		}
	}
	return list
}

// groupIn returns the id in the run of a capture's kind.
func (f *fold) groupIn(capture int, id string) string {
	groups := f.captures[capture].unit.Groups
	if g := lists.Find(groups, func(g *report.UnitGroup) bool { return g.ID == id }); g != nil {
		return f.units.best[kindKey(g)].id
	}
	return ""
}

// unitTables returns the tables of the slowest capture, with the kinds of all captures.
func (f *fold) unitTables() (out []report.Table) {
	for _, t := range f.units.tables {
		if t.ID == "unit_groups" {
			t.Rows, t.Others = f.kindRows(&t), false
			t.TotalRows = int64(len(t.Rows))
		}
		if t.ID != "units" { // the series has them
			out = append(out, t)
		}
	}
	return out
}

func (f *fold) kindRows(t *report.Table) [][]report.Cell {
	all := lists.Sum(f.units.order, func(b *bestUnit) float64 { return b.time })
	rows := [][]report.Cell{}
	for _, b := range f.units.order {
		if len(b.row) != len(t.Columns) {
			continue
		}
		row := slices.Clone(b.row)
		for i, c := range t.Columns {
			d, ok := row[i].Int()
			switch {
			case c.ID == "units":
				row[i] = report.I(b.group.Count)
			case c.ID == "device_id" && ok:
				row[i] = report.I(f.devices.number(deviceKey{b.capture, d}))
			case c.ID == "share" && all > 0:
				row[i] = report.F(b.time / all)
			}
		}
		rows = append(rows, row)
	}
	return rows
}
