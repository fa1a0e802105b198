package merge

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// Declared is what one section of a capture's report declares.
type Declared struct {
	Section string
	Metrics []report.MetricDef
	Tables  []report.Table
}

// Rules are what the sections declare of merging: of each metric, and of the columns of each table.
type Rules struct {
	metrics map[string]report.Merge
	left    map[string][]string // by section: metrics that a run has none of, in the order of their declaration
	pids    map[string]bool     // sections with metrics of single processes, which a run has none of
	tables  map[string]*tableRule
}

// NewRules reads what sections declare.
func NewRules(sections []Declared) *Rules {
	r := &Rules{metrics: map[string]report.Merge{}, left: map[string][]string{}, pids: map[string]bool{}, tables: map[string]*tableRule{}}
	for _, s := range sections {
		for i := range s.Metrics {
			d := &s.Metrics[i]
			r.metrics[d.ID] = d.Merge
			if d.Merge.How == report.HowLeave {
				r.left[s.Section] = append(r.left[s.Section], d.ID)
			}
			ofProcess := func(keys string) bool { return slices.Contains(strings.Split(keys, ","), "pid") }
			r.pids[s.Section] = r.pids[s.Section] || slices.ContainsFunc(d.Labels, ofProcess)
		}
		for i := range s.Tables {
			if t := &s.Tables[i]; t.Merge.How != report.HowLeave {
				r.tables[s.Section+"/"+t.ID] = newTableRule(t)
			}
		}
	}
	return r
}

// of is the rule of a metric with its labels. Numbers of a process are left: pids are of a host. One of a device is
// that GPU's in the run too.
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

// eventLabels are the labels of metrics that tell apart the counted events of a family; keys have their values, with a
// slash between.
var eventLabels = map[string][]string{"kernel": {"kernel"}, "api": {"api"}, "memcpy": {"direction", "kind"}}

// has reports whether an event of the family with this key is one of those that labels are of.
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

// eventsOf says which counted events the summary of a metric is made of; ok is false if it has none. A metric
// without labels counts the events that it is seen with labels of.
func (f *fold) eventsOf(m *report.Metric, rule *report.Merge) (keep func(key string) bool, ok bool) {
	if rule.Events == "" || rule.Sets != nil && !slices.Contains(rule.Sets, m.Labels.Keys()) {
		return nil, false
	}
	if len(m.Labels) > 0 || rule.How == report.HowMedian {
		return func(key string) bool { return has(rule.Events, key, m.Labels) }, true
	}
	if f.sampled {
		return func(string) bool { return true }, true
	}
	seen := f.seen[m.ID]
	return func(key string) bool {
		return slices.ContainsFunc(seen, func(l report.Labels) bool { return has(rule.Events, key, l) })
	}, true
}

// tableRule says how rows of a table are merged: those with equal keys become one.
type tableRule struct {
	columns map[string]report.Merge
	keys    []string // columns
	sums    []string
	device  string // column of the GPU that a row is of; empty: rows are of all GPUs
	lead    string // most of this column first; empty: by the keys
}

func newTableRule(t *report.Table) *tableRule {
	r := &tableRule{columns: map[string]report.Merge{}}
	for _, c := range t.Columns {
		r.columns[c.ID] = c.Merge
		switch c.Merge.How {
		case report.HowKey:
			r.keys = append(r.keys, c.ID)
		case report.HowSum:
			r.sums = append(r.sums, c.ID)
		case report.HowDevice:
			r.keys, r.device = append(r.keys, c.ID), c.ID
		}
		if c.Merge.Lead {
			r.lead = c.ID
		}
	}
	return r
}

// leftOf says which metrics of a section stay with the captures; empty: none.
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
