package section

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// Output collects what one section says.
type Output struct {
	in       *Input
	defs     map[string]*report.MetricDef
	section  report.Section
	metrics  []*report.Metric
	findings []report.Finding
	warnings []report.Warning
	attached []report.Table
	declared []report.Table
	source   report.Source
}

func newOutput(s *Section, in *Input) *Output {
	o := &Output{in: in, defs: map[string]*report.MetricDef{}, section: report.Section{
		ID: s.ID, Title: s.Title, Status: report.OK, Derivation: s.Derivation,
		Notes: []string{}, Tables: []report.Table{}, Charts: []report.Chart{},
	}}
	o.declared = s.Tables
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

// Note adds a limitation or a definition that the reader needs.
func (o *Output) Note(text string) { o.section.Notes = append(o.section.Notes, text) }

// Warn says what limits trust in the numbers.
func (o *Output) Warn(code, text string) {
	o.warnings = append(o.warnings, report.Warning{Code: code, Section: o.section.ID, Text: text})
}

// From sets the source of the metrics emitted from here on: the table that plays the role in this capture, its columns
// and how many rows were used.
func (o *Output) From(role trace.Role, rows int, columns ...string) {
	o.source = report.Source{Tables: []string{o.in.table(role)}, Columns: columns, Rows: int64(rows)}
}

// FromEvidence sets the source of the metrics emitted from here on: all files of a kind, the fields (columns, patterns of
// lines, families of metrics) and how many records were used.
func (o *Output) FromEvidence(kind file.Kind, records int, fields ...string) {
	o.source = report.Source{Tables: []string{string(kind)}, Columns: fields, Rows: int64(records)}
}

// With adds a table to the current source.
func (o *Output) With(role trace.Role, columns ...string) {
	tables := append([]string{}, o.source.Tables...)
	o.source.Tables = append(tables, o.in.table(role))
	o.source.Columns = append(append([]string{}, o.source.Columns...), columns...)
}

// Metric emits a metric; nil is unknown. The result may be completed by the caller (N, Summary, Histogram, Coverage).
func (o *Output) Metric(id string, labels report.Labels, value *float64) *report.Metric {
	def := o.defs[id]
	if def == nil {
		panic("section " + o.section.ID + " emits undeclared metric " + id)
	}
	if labels == nil {
		labels = report.Labels{}
	}
	m := &report.Metric{ID: id, Labels: labels, Value: value, Unit: def.Unit, Better: def.Better, Assume: def.Assume, Scale: def.Scale,
		N: o.source.Rows, Source: o.source, Lifecycle: cmp.Or(def.Lifecycle, report.Stable)}
	o.metrics = append(o.metrics, m)
	return m
}

// Int emits an integer metric.
func (o *Output) Int(id string, labels report.Labels, value int64) *report.Metric {
	v := float64(value)
	return o.Metric(id, labels, &v)
}

// Float emits a metric that is known.
func (o *Output) Float(id string, labels report.Labels, value float64) *report.Metric {
	return o.Metric(id, labels, &value)
}

// Find emits a finding. Evidence must be metrics that some section emits.
func (o *Output) Find(id string, severity report.Severity, title string, evidence []report.MetricRef, advice ...string) {
	for i := range evidence {
		if evidence[i].Labels == nil {
			evidence[i].Labels = report.Labels{}
		}
	}
	o.findings = append(o.findings, report.Finding{ID: id, Severity: severity, Title: title, Evidence: evidence, Advice: advice, Doc: o.section.ID})
}

// Ref points at a metric; labels come as key, value pairs.
func Ref(id string, pairs ...string) report.MetricRef {
	return report.MetricRef{ID: id, Labels: Labels(pairs...)}
}

// Labels makes labels of key, value pairs.
func Labels(pairs ...string) report.Labels {
	l := report.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	return l
}

// Chart adds a drawing.
func (o *Output) Chart(c report.Chart) { o.section.Charts = append(o.section.Charts, c) }

// Table starts one of the tables that the section declares.
func (o *Output) Table(id string) *Table {
	for i := range o.declared {
		if o.declared[i].ID == id {
			t := o.declared[i]
			t.Rows = [][]report.Cell{}
			return &Table{out: o, t: t}
		}
	}
	panic("section " + o.section.ID + " has no table " + id)
}

// headers are the declared tables that the section did not fill, empty: scripts that read the CSV files find them empty
// rather than missing.
func (o *Output) headers() []report.Table {
	written := map[string]bool{}
	for _, t := range append(o.section.Tables, o.attached...) {
		written[t.File] = true
	}
	var list []report.Table
	for _, t := range o.declared {
		if t.File != "" && !written[t.File] {
			t.Rows = [][]report.Cell{}
			list = append(list, t)
		}
	}
	return list
}

// Table builds a table row by row.
type Table struct {
	out *Output
	t   report.Table
}

// Row adds a row. It keeps a copy.
func (t *Table) Row(cells ...report.Cell) { t.t.Rows = append(t.t.Rows, slices.Clone(cells)) }

// Len is the number of rows so far.
func (t *Table) Len() int { return len(t.t.Rows) }

// Cut keeps the first n rows (n < 0: all), and sums those left out in an "others" row: integer and float columns named
// in sum are added up, text columns say "(others)" once, everything else is unknown.
func (t *Table) Cut(n int, sum ...string) *Table {
	t.t.TotalRows = int64(len(t.t.Rows))
	if n < 0 || len(t.t.Rows) <= n {
		return t
	}
	row := make([]report.Cell, len(t.t.Columns))
	named := false
	for j, c := range t.t.Columns {
		switch c.Kind {
		case report.Name, report.Text:
			if !named {
				row[j], named = report.S("(others)"), true
			}
		case report.Int, report.Float:
			if slices.Contains(sum, c.ID) {
				row[j] = addUp(t.t.Rows[n:], j)
			}
		}
	}
	t.t.Rows = append(t.t.Rows[:n:n], row)
	t.t.Others = true
	return t
}

func addUp(rows [][]report.Cell, column int) report.Cell {
	var ints int64
	var floats float64
	isFloat := false
	for _, r := range rows {
		c := r[column]
		if v, ok := c.Int(); ok {
			ints += v
		} else if v, ok := c.Num(); ok {
			floats += v
			isFloat = true
		}
	}
	if isFloat {
		return report.F(floats + float64(ints))
	}
	return report.I(ints)
}

// Add puts the table into the report.
func (t *Table) Add() {
	if t.t.TotalRows == 0 {
		t.t.TotalRows = int64(len(t.t.Rows))
	}
	t.out.section.Tables = append(t.out.section.Tables, t.t)
}

// Attach writes the table as a CSV file only: for details too long for the report.
func (t *Table) Attach() {
	if t.t.TotalRows == 0 {
		t.t.TotalRows = int64(len(t.t.Rows))
	}
	t.out.attached = append(t.out.attached, t.t)
}

// cell of a pointer: null where nil.
func cell(v *float64) report.Cell {
	if v == nil {
		return report.Null
	}
	return report.F(*v)
}
