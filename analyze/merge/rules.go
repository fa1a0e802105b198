package merge

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// Rules are what the sections declare about merging: for each metric, and for the columns of each table.
type Rules struct {
	metrics map[string]report.Merge
	left    map[string][]string                // by section: metrics that a run does not have, in the order of their declaration
	pids    map[string]bool                    // sections with metrics of single processes, which a run does not have
	tables  map[string]map[string]report.Merge // by section and id, those that are merged: the rules of their columns
}

// NewRules are those of no section.
func NewRules() *Rules {
	return &Rules{metrics: map[string]report.Merge{}, left: map[string][]string{}, pids: map[string]bool{},
		tables: map[string]map[string]report.Merge{}}
}

// Add reads what a section declares.
func (r *Rules) Add(section string, metrics []report.MetricDef, tables []report.Table) {
	for _, d := range metrics {
		r.metrics[d.ID] = d.Merge
		if d.Merge.How == report.HowLeave {
			r.left[section] = append(r.left[section], d.ID)
		}
		ofProcess := func(keys string) bool { return slices.Contains(strings.Split(keys, ","), "pid") }
		r.pids[section] = r.pids[section] || slices.ContainsFunc(d.Labels, ofProcess)
	}
	for _, t := range tables {
		if t.Merge.How != report.HowLeave {
			columns := map[string]report.Merge{}
			for _, c := range t.Columns {
				columns[c.ID] = c.Merge
			}
			r.tables[section+"/"+t.ID] = columns
		}
	}
}

// of returns the merge rule of a metric with its labels. Metrics of a process are left out, because pids are local to a
// host. Metrics of a device stay with that GPU.
func (r *Rules) of(m *report.Metric) report.Merge {
	rule := r.metrics[m.ID]
	_, pid := m.Labels["pid"]
	_, device := m.Labels["device"]
	switch {
	case pid, rule.How == "":
		return report.Leave
	case rule.How == report.HowStep, rule.How == report.HowLeave:
		return rule
	case device:
		return report.Device
	case rule.How == report.HowDevice:
		return report.Leave
	}
	return rule
}

// eventLabels are the labels that identify the counted events of a family; an event's key joins their values with
// slashes.
var eventLabels = map[string][]string{"kernel": {"kernel"}, "api": {"api"}, "memcpy": {"direction", "kind"}}

// has reports whether the labels describe an event of the family with this key.
func has(family, key string, labels report.Labels) bool {
	names := eventLabels[family]
	values := strings.SplitN(key, "/", len(names))
	for i, name := range names {
		if v, ok := labels[name]; ok && (i >= len(values) || v != values[i]) {
			return false
		}
	}
	return true
}

// leftOf lists the metrics of a section that only the captures' own reports have; empty: none.
func (r *Rules) leftOf(section string) string {
	list := slices.Clone(r.left[section])
	if r.pids[section] {
		list = append(list, "what is of a single process")
	}
	if len(list) == 0 {
		return ""
	}
	return "In the captures' own reports alone: " + strings.Join(list, ", ") + "."
}

// Take gives a capture its report, without what a merged report does not need: charts, findings, other splits into
// units, and the metrics and tables that only single captures report.
func (r *Rules) Take(c *Capture, of *report.Report) {
	out := *of
	out.Unit.Cuts, out.Unit.Steps, out.Unit.Parts = nil, nil, nil
	out.Findings, out.Remarks = []report.Finding{}, []report.Remark{}
	out.Evidence = []report.EvidenceFile{}
	out.Metrics = slices.DeleteFunc(slices.Clone(of.Metrics), func(m report.Metric) bool {
		return r.of(&m).How == report.HowLeave
	})
	for i := range out.Metrics {
		m := &out.Metrics[i]
		m.Histogram = nil
		if m.Scale != report.PerUnit {
			m.Summary = nil
		}
	}
	out.Sections = slices.Clone(of.Sections)
	for i := range out.Sections {
		s := &out.Sections[i]
		s.Charts, s.Notes, s.Derivation = []report.Chart{}, []string{}, ""
		s.Tables = slices.DeleteFunc(slices.Clone(s.Tables), func(t report.Table) bool {
			return r.tables[s.ID+"/"+t.ID] == nil
		})
	}
	c.Report, c.rules = &out, r
}
