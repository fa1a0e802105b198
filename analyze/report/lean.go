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
	mu      sync.Mutex
	texts   map[string]string
	labels  map[string]Labels
	sources map[string]*Source
}

// comparedTables are the tables that a comparison reads, by their ids.
var comparedTables = []string{
	"unit_groups", "unit_kernels", "units", "kernels", "iteration_groups", "iteration_units", "serving_samples",
}

// Compared keeps of a report what a comparison reads. The report itself is changed.
func (l *Lean) Compared(r *Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.texts == nil {
		l.texts, l.labels, l.sources = map[string]string{}, map[string]Labels{}, map[string]*Source{}
	}
	l.metrics(r.Metrics)
	r.Metrics = slices.Clip(r.Metrics)
	for i := range r.Sections {
		l.section(&r.Sections[i])
	}
	for i := range r.Unit.Cuts {
		c := &r.Unit.Cuts[i]
		l.metrics(c.Metrics)
		l.section(&c.Section)
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

func (l *Lean) metrics(list []Metric) {
	for i := range list {
		m := &list[i]
		m.Histogram = nil
		l.text(&m.ID)
		l.text(&m.Unit)
		l.text(&m.Group)
		for _, s := range []*string{(*string)(&m.Better), (*string)(&m.Assume), (*string)(&m.Scale), (*string)(&m.Lifecycle)} {
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
			own := m.Source
			l.sources[key] = &own
		}
	}
}

func (l *Lean) section(s *Section) {
	s.Charts, s.Notes, s.Derivation = []Chart{}, []string{}, ""
	s.Tables = slices.DeleteFunc(s.Tables, func(t Table) bool { return !slices.Contains(comparedTables, t.ID) })
	for i := range s.Tables {
		t := &s.Tables[i]
		for j := range t.Columns {
			c := &t.Columns[j]
			c.CSV = nil
			for _, text := range []*string{&c.ID, &c.Title, (*string)(&c.Kind), &c.Unit} {
				l.text(text)
			}
		}
		for _, row := range t.Rows {
			for j := range row {
				if row[j].kind == 's' {
					l.text(&row[j].s)
				}
			}
		}
	}
}
