package kit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Output collects the results of one section.
type Output struct {
	In       *Input
	Source   Source // of the metrics emitted from here on, until it is set again
	of       *Section
	defs     map[string]*report.MetricDef
	section  report.Section
	metrics  []*report.Metric
	findings []*Finding
	warnings []report.Warning
	attached []report.Table
}

// Source is what metrics stand on: tables, their columns and how many rows were used.
type Source struct {
	report.Source
	tables trace.Tables // of the capture
}

func newOutput(s *Section, in *Input) *Output {
	o := &Output{In: in, of: s, defs: map[string]*report.MetricDef{}, section: report.Section{
		ID: s.ID, Title: s.Title, Group: s.Group, Status: report.OK, Derivation: s.Derivation,
		Notes: []string{}, Tables: []report.Table{}, Charts: []report.Chart{},
	}}
	o.Source.tables = in.Trace.Tables
	for i := range s.Metrics {
		o.defs[s.Metrics[i].ID] = &s.Metrics[i]
	}
	return o
}

// Status sets the section's status and why it is not ok.
func (o *Output) Status(s report.Status, reason string) {
	o.section.Status, o.section.Reason = s, reason
}

// Coverage states the share of the data the section could use.
func (o *Output) Coverage(ratio *float64) { o.section.Coverage = ratio }

// Note adds a limitation or a definition that the reader needs, once.
func (o *Output) Note(text string) {
	if !slices.Contains(o.section.Notes, text) {
		o.section.Notes = append(o.section.Notes, text)
	}
}

// Warn adds a limit of trust in the numbers.
func (o *Output) Warn(code, text string) {
	o.warnings = append(o.warnings, report.Warning{Code: code, Section: o.section.ID, Text: text})
}

// From sets the source of all metrics emitted from here on, until it is set again: the table with that role in this
// capture, its columns and how many rows were used. Set it directly before the metrics it belongs to.
func (o *Output) From(role trace.Role, rows int, columns ...string) {
	o.Source.Source = report.Source{Tables: []string{o.Source.tables.Name(role)}, Columns: columns, Rows: int64(rows)}
}

// FromEvidence sets the source of the metrics emitted from here on: all files of a kind, the fields (columns, patterns
// of lines, families of metrics) and how many records were used.
func (o *Output) FromEvidence(kind file.Kind, records int, fields ...string) {
	o.Source.Source = report.Source{Tables: []string{string(kind)}, Columns: fields, Rows: int64(records)}
}

// FromWork sets the source to the tables of GPU work.
func (o *Output) FromWork(rows int, columns ...string) {
	o.FromAny(rows, workRoles, columns...)
}

var workRoles = []trace.Role{trace.RoleKernel, trace.RoleMemcpy, trace.RoleMemset, trace.RoleGraph}

// FromAny sets the source to those of some tables that the capture has.
func (o *Output) FromAny(rows int, roles []trace.Role, columns ...string) {
	o.Source.Source = report.Source{Tables: []string{}, Columns: columns, Rows: int64(rows)}
	for _, r := range roles {
		o.Source.With(r)
	}
}

// WithWork adds the tables of GPU work.
func (s *Source) WithWork(columns ...string) {
	s.Columns = slices.Concat(s.Columns, columns)
	for _, r := range workRoles {
		s.With(r)
	}
}

// With adds a table, if the capture has it.
func (s *Source) With(role trace.Role, columns ...string) {
	if s.tables.Has(role) {
		s.Tables = append(slices.Clone(s.Tables), s.tables.Name(role))
		s.Columns = append(append([]string{}, s.Columns...), columns...)
	}
}

// Metrics are the metrics emitted so far.
func (o *Output) Metrics() []*report.Metric { return o.metrics }

// Metric emits a metric; nil is unknown. The caller may complete the result (N, Summary, Histogram, Coverage). Devices
// beyond the first MaxDeviceMetrics only have metrics that sum to the whole, and those that a finding quotes.
func (o *Output) Metric(id string, labels report.Labels, value *float64) *report.Metric {
	def := o.defs[id]
	if def == nil {
		broken("section %s emits undeclared metric %s", o.section.ID, id)
	}
	if labels == nil {
		labels = report.Labels{}
	}
	m := &report.Metric{ID: id, Labels: labels, Value: value, Unit: def.Unit, Better: def.Better, Assume: def.Assume,
		Scale: def.Scale,
		N:     o.Source.Rows, Source: o.Source.Source, Lifecycle: cmp.Or(def.Lifecycle, report.Stable)}
	if !o.In.left.has(m) {
		o.metrics = append(o.metrics, m)
	}
	return m
}

// Int emits an integer metric.
func (o *Output) Int(id string, labels report.Labels, value int64) *report.Metric {
	return o.Float(id, labels, float64(value))
}

// Float emits a metric that is known.
func (o *Output) Float(id string, labels report.Labels, value float64) *report.Metric {
	return o.Metric(id, labels, &value)
}

// Calls emits the time that API calls took, with its summary, and their number.
func (o *Output) Calls(time, count string, labels report.Labels, s *Sums, columns ...string) {
	o.From(trace.RoleAPI, int(s.Count), columns...)
	o.Int(time, labels, s.Total).Summary = s.Summary
	o.Int(count, labels, s.Count)
}

// Known emits a metric if its value is known: where nothing states it, it is left out.
func (o *Output) Known(id string, labels report.Labels, value *float64) {
	if value != nil {
		o.Metric(id, labels, value)
	}
}

// Find emits a finding under its declared title. Evidence must be metrics that some section emits, first the subject of
// the title. The caller sets the worth of the finding, if known.
func (o *Output) Find(id string, evidence []report.MetricRef, advice ...string) *Finding {
	return o.FindAs(id, "", evidence, advice...)
}

// FindAs emits a finding under a title of its own, which may hold numbers.
func (o *Output) FindAs(id, title string, evidence []report.MetricRef, advice ...string) *Finding {
	def := lists.Find(o.of.Findings, func(d *FindingDef) bool { return d.ID == id })
	if def == nil {
		broken("section %s makes undeclared finding %s", o.section.ID, id)
	}
	for i := range evidence {
		if evidence[i].Labels == nil {
			evidence[i].Labels = report.Labels{}
		}
	}
	f := &Finding{Finding: &report.Finding{ID: id, Title: cmp.Or(title, def.Title), Evidence: evidence,
		Advice: append([]string{}, advice...), Doc: o.section.ID}, def: def} // a copy: [Outputs.Into] changes it
	o.findings = append(o.findings, f)
	return f
}

// Ref points at a metric; labels come as key, value pairs.
func Ref(id string, pairs ...string) report.MetricRef {
	return report.MetricRef{ID: id, Labels: Labels(pairs...)}
}

// Refs are metrics without labels.
func Refs(ids ...string) []report.MetricRef {
	return lists.Map(ids, func(id string) report.MetricRef { return Ref(id) })
}

// Labels makes labels of key, value pairs.
func Labels(pairs ...string) report.Labels {
	l := report.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	return l
}

// Chart adds a drawing, unless it has no lines to draw.
func (o *Output) Chart(c report.Chart) {
	if c.Kind != "line" || len(c.Series) > 0 {
		o.section.Charts = append(o.section.Charts, c)
	}
}

// Lines is a drawing of those lines over time that have points.
func Lines(id, title, unit, since string, lines ...report.Series) report.Chart {
	lines = slices.DeleteFunc(lines, func(s report.Series) bool { return len(s.Values) < 2 })
	return report.Chart{ID: id, Title: title, Kind: "line", Unit: unit, XUnit: report.Nanoseconds, XTitle: since, Series: lines}
}

// Table starts one of the tables that the section declares.
func (o *Output) Table(id string) *Table {
	declared := lists.Find(o.of.Tables, func(t *report.Table) bool { return t.ID == id })
	if declared == nil {
		broken("section %s has no table %s", o.section.ID, id)
	}
	t := &Table{Table: *declared, out: o}
	t.Rows = [][]report.Cell{}
	return t
}

// files are the tables that are CSV files only: those attached, and the declared tables that the section did not fill,
// so that scripts find them empty rather than missing.
func (o *Output) files() []report.Table {
	if o.In.Options.NoDetails {
		return nil
	}
	list := slices.Clone(o.attached)
	written := lists.Set(slices.Concat(o.section.Tables, list), func(t report.Table) string { return t.File })
	for _, t := range o.of.Tables {
		if t.File != "" && !written[t.File] {
			t.Rows = [][]report.Cell{}
			list = append(list, t)
		}
	}
	return list
}

// Table builds a table row by row.
type Table struct {
	report.Table
	out   *Output
	whole [][]report.Cell // every row, if the report has only some
}

// Cut keeps the first n rows, all if n is negative, and sums those left out in an "others" row.
func (t *Table) Cut(n int, sum ...string) *Table {
	t.TotalRows = int64(len(t.Rows))
	if n < 0 || len(t.Rows) <= n {
		return t
	}
	if t.File != "" {
		t.whole = t.Rows
	}
	left := t.Rows[n:]
	t.Rows = t.Rows[:n:n]
	t.AddOthers(left, sum...)
	return t
}

// AddOthers ends a table that lacks rows with one for those left out: integer and float columns named in sum are added
// up, text columns say "(others)" once, everything else is unknown.
func (t *Table) AddOthers(left [][]report.Cell, sum ...string) {
	row := make([]report.Cell, len(t.Columns))
	named := false
	for j, c := range t.Columns {
		switch c.Kind {
		case report.Name, report.Text:
			if !named {
				row[j], named = report.S("(others)"), true
			}
		case report.Int, report.Float:
			if slices.Contains(sum, c.ID) {
				for _, r := range left {
					row[j] = row[j].Plus(r[j])
				}
			}
		}
	}
	t.Rows, t.Others = append(t.Rows, row), true
}

// Add puts the table into the report.
func (t *Table) Add() {
	t.TotalRows = cmp.Or(t.TotalRows, int64(len(t.Rows)))
	t.out.section.Tables = append(t.out.section.Tables, t.Table)
	if t.whole != nil {
		all := *t
		all.Rows, all.Others = t.whole, false
		all.Attach()
	}
}

// Attach writes the table as a CSV file only, if such are wanted: for details too long for the report. Those of many
// kernels take most of the memory.
func (t *Table) Attach() {
	t.TotalRows = cmp.Or(t.TotalRows, int64(len(t.Rows)))
	if !t.out.In.Options.NoDetails {
		t.out.attached = append(t.out.attached, t.Table)
	}
}

// And are the labels and more of them, as key, value pairs.
func And(l report.Labels, pairs ...string) report.Labels {
	labels := Labels(pairs...)
	maps.Copy(labels, l)
	return labels
}

// Summary emits the median of a sample, which it sorts, with its summary.
func (o *Output) Summary(id string, l report.Labels, sample []int64) *report.Metric {
	s := stat.Summarize(sample)
	m := o.Float(id, l, s.P50)
	m.N, m.Summary = s.N, s
	return m
}
