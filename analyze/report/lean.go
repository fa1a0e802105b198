package report

import (
	"slices"
	"strings"
	"sync"
)

// Lean makes reports that are only compared small, many of which are held at a time: what no comparison reads goes, and
// texts and labels that reports have in common are held once. The zero value is ready; it is safe for concurrent use.
//
// Labels and sources of different metrics are shared after that: who changes one clones it first.
type Lean struct {
	// Reads says which metrics will be looked at; findings, which may cite others, and the units that pages show go
	// with those that will not. Nil: all are kept.
	Reads func(*Metric) bool

	mu      sync.Mutex
	texts   map[string]string
	labels  map[string]Labels
	sources map[string]*Source
}

// comparedTables are the tables that a comparison reads, by their ids.
var comparedTables = []string{
	"unit_groups", "unit_kernels", "units", "kernels", "iteration_groups", "iteration_units", "serving_samples", "ranks",
}

// Compared keeps of a report what a comparison reads. The report itself is changed.
func (l *Lean) Compared(r *Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.texts == nil {
		l.texts, l.labels, l.sources = map[string]string{}, map[string]Labels{}, map[string]*Source{}
	}
	r.Metrics = l.metrics(r.Metrics)
	if l.Reads != nil {
		r.Findings, r.Remarks = []Finding{}, []Remark{}
		r.Unit.Steps.hide()
	}
	listed := r.Unit.Series != nil && len(r.Unit.Series.Kernels) > 0
	for i := range r.Sections {
		l.section(&r.Sections[i], listed)
	}
	for i := range r.Unit.Cuts {
		c := &r.Unit.Cuts[i]
		c.Metrics = l.metrics(c.Metrics)
		l.section(&c.Section, c.Series != nil && len(c.Series.Kernels) > 0)
		if l.Reads != nil {
			c.Steps.hide()
		}
	}
}

// hide leaves out the units that stand for the steps on a page.
func (s *UnitSteps) hide() {
	if s == nil {
		return
	}
	for _, k := range s.List {
		k.Shown = nil
	}
}

func (l *Lean) text(s *string) {
	if t, ok := l.texts[*s]; ok {
		*s = t
		return
	}
	*s = strings.Clone(*s) // not a part of a larger text
	l.texts[*s] = *s
}

// metrics are those that are read, in a list that has room for no more.
func (l *Lean) metrics(list []Metric) []Metric {
	if l.Reads != nil {
		list = slices.DeleteFunc(list, func(m Metric) bool { return !l.Reads(&m) })
	}
	list = append(make([]Metric, 0, len(list)), list...)
	for i := range list {
		m := &list[i]
		m.Histogram = nil
		for _, s := range []*string{&m.ID, &m.Unit, &m.Group, (*string)(&m.Better), (*string)(&m.Assume),
			(*string)(&m.Scale), (*string)(&m.Lifecycle)} {
			l.text(s)
		}
		key := m.Labels.String()
		if same, ok := l.labels[key]; ok {
			m.Labels = same
		} else {
			l.labels[key] = m.Labels
		}
		key = strings.Join(m.Source.Tables, ",") + "\x00" + strings.Join(m.Source.Columns, ",") + "\x00" + m.Source.Query
		if same, ok := l.sources[key]; ok {
			m.Source.Tables, m.Source.Columns, m.Source.Query = same.Tables, same.Columns, same.Query
		} else {
			l.sources[key] = new(m.Source)
		}
	}
	return list
}

// section keeps the tables that are read. If the series lists the units, the table of them says nothing more.
func (l *Lean) section(s *Section, listed bool) {
	s.Charts, s.Notes, s.Derivation = []Chart{}, []string{}, ""
	s.Tables = slices.DeleteFunc(s.Tables, func(t Table) bool {
		return !slices.Contains(comparedTables, t.ID) || listed && t.ID == "units"
	})
	for i := range s.Tables {
		t := &s.Tables[i]
		for j := range t.Columns {
			c := &t.Columns[j]
			c.CSV = nil
			for _, text := range []*string{&c.ID, &c.Title, (*string)(&c.Kind), &c.Unit} {
				l.text(text)
			}
		}
		cells := make([]Cell, 0, len(t.Rows)*len(t.Columns)) // rows that were read have room for more
		for i, row := range t.Rows {
			from := len(cells)
			cells = append(cells, row...)
			t.Rows[i] = cells[from:len(cells):len(cells)]
			for j := range t.Rows[i] {
				if text, ok := t.Rows[i][j].Str(); ok {
					l.text(&text)
					t.Rows[i][j] = S(text)
				}
			}
		}
	}
}
