package merge

import (
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

const unitSection = "unit"

// unitsFold merges what captures state about steps. Numbers of a step come from its slowest device, in a run as in a
// capture: each kind of step takes those of the capture in which its median is longest.
type unitsFold struct {
	lead    int     // capture whose main kind is the slowest
	longest float64 // its median, ns; 0: none yet
	best    map[string]*bestUnit
	order   []string
	carried []carriedMetric
	tables  []report.Table // of the lead
	metrics []report.Metric
}

// bestUnit is a kind of step, in the capture in which it is slowest.
type bestUnit struct {
	group   report.UnitGroup
	id      string // in the run
	capture int
	p50     float64
	row     []report.Cell
	time    float64 // over all captures: units times their mean, ns, for shares
	metrics []report.Metric
}

type carriedMetric struct {
	of deviceKey
	m  report.Metric
}

func kindKey(g *report.UnitGroup) string {
	number := func(v *int64) int64 {
		if v == nil {
			return -1
		}
		return *v
	}
	return fmt.Sprintf("%s\x00%d\x00%d\x00%s", g.Phase, number(g.Batch), number(g.Tokens), g.Signature)
}

func (u *unitsFold) add(at int, r *report.Report, steps map[string]Step, rules *Rules) {
	table := report.NewIndex(r).Table(unitSection, "unit_groups")
	ofStep := func(m *report.Metric) bool { return rules.of(m).How == report.HowStep }
	for i := range r.Unit.Groups {
		g := &r.Unit.Groups[i]
		key := kindKey(g)
		b := u.best[key]
		if b == nil {
			b = &bestUnit{group: *g, capture: -1}
			b.group.Count = 0
			u.best[key] = b
			u.order = append(u.order, key)
		}
		b.group.Count += g.Count
		step := steps[g.ID]
		b.time += float64(g.Count) * step.Mean
		if b.capture < 0 || step.P50 > b.p50 {
			b.capture, b.p50 = at, step.P50
			b.group.Device, b.group.Kernels = g.Device, g.Kernels
			b.row = kindRow(table, g)
			b.metrics = nil
			for k := range r.Metrics {
				m := &r.Metrics[k]
				if _, device := m.Labels["device"]; m.Group == g.ID && !device && ofStep(m) && m.Labels["phase"] != "" {
					b.metrics = append(b.metrics, *m)
				}
			}
		}
		if g.Main && (u.longest == 0 || step.P50 > u.longest) {
			u.lead, u.longest = at, step.P50
			u.takeLead(r, ofStep)
		}
	}
	for k := range r.Metrics {
		m := &r.Metrics[k]
		if device, ok := m.Labels["device"]; ok && ofStep(m) {
			var of deviceKey
			if _, err := fmt.Sscanf(device, "%d", &of.device); err == nil {
				of.capture = at
				u.carried = append(u.carried, carriedMetric{of, *m})
			}
		}
	}
}

// kindRow returns the row of a kind in a table of kinds; nil if it has none.
func kindRow(t *report.Table, g *report.UnitGroup) []report.Cell {
	if t == nil {
		return nil
	}
	want := map[string]report.Cell{"phase": report.S(g.Phase), "signature": report.S(g.Signature)}
	for id, v := range map[string]*int64{"batch": g.Batch, "tokens": g.Tokens} {
		if want[id] = report.Null; v != nil {
			want[id] = report.I(*v)
		}
	}
	for _, row := range t.Rows {
		same := true
		for i, c := range t.Columns {
			w, ok := want[c.ID]
			same = same && (!ok || w.Equal(row[i]))
		}
		if same {
			return row
		}
	}
	return nil
}

// takeLead takes the slowest capture's tables, and its metrics that have no phase.
func (u *unitsFold) takeLead(r *report.Report, ofStep func(m *report.Metric) bool) {
	u.metrics, u.tables = nil, nil
	for k := range r.Metrics {
		m := &r.Metrics[k]
		if _, device := m.Labels["device"]; !device && m.Labels["phase"] == "" && ofStep(m) {
			u.metrics = append(u.metrics, *m)
		}
	}
	for i := range r.Sections {
		if r.Sections[i].ID == unitSection {
			u.tables = slices.Clone(r.Sections[i].Tables)
		}
	}
}

// settle gives kinds their ids in the run: those of the first capture, with a number added if two share one.
func (u *unitsFold) settle() {
	taken := map[string]bool{}
	for _, key := range u.order {
		b := u.best[key]
		b.id = b.group.ID
		for n := 2; taken[b.id]; n++ {
			b.id = fmt.Sprintf("%s #%d", b.group.ID, n)
		}
		taken[b.id] = true
	}
}

// unit returns the unit of the run, and maps the kinds of each capture to the run's.
func (f *fold) unit() report.Unit {
	u := &f.units
	u.settle()
	if u.longest == 0 {
		return report.Unit{Kind: "none", Why: "no capture of the run has a unit of work", Groups: []report.UnitGroup{}}
	}
	lead := f.captures[u.lead]
	out := report.Unit{Kind: lead.unit.Kind, Name: lead.unit.Name, Why: lead.unit.Why, Coverage: lead.unit.Coverage,
		Anchors: lead.unit.Anchors, Groups: []report.UnitGroup{}}
	out.Trimmed.Rule = lead.unit.Trimmed.Rule
	main := mainKind(&lead.unit)
	place := map[string]int64{}
	for _, key := range u.order {
		b := u.best[key]
		g := b.group
		g.ID, g.Main = b.id, key == main
		if g.Device != nil {
			at := f.devices.number(deviceKey{b.capture, *g.Device})
			g.Device = &at
		}
		place[key] = int64(len(out.Groups))
		out.Groups = append(out.Groups, g)
	}
	out.Series = f.series(place)
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

func mainKind(u *report.Unit) string {
	for i := range u.Groups {
		if u.Groups[i].Main {
			return kindKey(&u.Groups[i])
		}
	}
	return ""
}

// series returns the units of all captures, each on the clock of its session.
func (f *fold) series(place map[string]int64) *report.UnitSeries {
	var points []report.UnitPoint
	for at, c := range f.captures {
		for _, p := range c.units {
			if p.Group >= 0 {
				p.Group = place[kindKey(&c.unit.Groups[p.Group])]
			}
			p.Device = f.devices.number(deviceKey{at, p.Device})
			points = append(points, p)
		}
	}
	slices.SortStableFunc(points, func(a, b report.UnitPoint) int {
		if a.Device != b.Device {
			return int(min(1, max(-1, a.Device-b.Device)))
		}
		return int(min(1, max(-1, a.Process-b.Process)))
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
	for _, key := range u.order {
		b := u.best[key]
		for _, m := range b.metrics {
			put(b.capture, m)
		}
	}
	for _, c := range u.carried {
		if n := f.devices.number(c.of); n < maxDevices {
			m := c.m
			m.Labels = m.Labels.Clone()
			m.Labels["device"] = fmt.Sprint(n)
			put(c.of.capture, m)
		}
	}
	return list
}

// groupIn returns the id in the run of a capture's kind.
func (f *fold) groupIn(capture int, id string) string {
	groups := f.captures[capture].unit.Groups
	for i := range groups {
		if groups[i].ID == id {
			return f.units.best[kindKey(&groups[i])].id
		}
	}
	return ""
}

// unitTables returns the tables of the slowest capture, with the kinds of all captures.
func (f *fold) unitTables() []report.Table {
	u := &f.units
	var out []report.Table
	for _, t := range u.tables {
		if t.ID == "unit_groups" {
			t.Rows, t.Others = f.kindRows(&t), false
			t.TotalRows = int64(len(t.Rows))
		}
		if t.ID == "units" {
			continue // the series has it
		}
		out = append(out, t)
	}
	return out
}

func (f *fold) kindRows(t *report.Table) [][]report.Cell {
	u := &f.units
	all := 0.0
	for _, b := range u.best {
		all += b.time
	}
	rows := [][]report.Cell{}
	for _, key := range u.order {
		b := u.best[key]
		if len(b.row) != len(t.Columns) {
			continue
		}
		row := slices.Clone(b.row)
		for i, c := range t.Columns {
			switch c.ID {
			case "units":
				row[i] = report.I(b.group.Count)
			case "device_id":
				if d, ok := row[i].Int(); ok {
					row[i] = report.I(f.devices.number(deviceKey{b.capture, d}))
				}
			case "share":
				if all > 0 {
					row[i] = report.F(b.time / all)
				}
			}
		}
		rows = append(rows, row)
	}
	return rows
}
