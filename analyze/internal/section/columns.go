package section

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// The columns that tables share. CSV names follow nsys-llm-explainer, whose files other people's scripts read.
//
// Whatever declares something here is not inlined and hands out a pointer: the sections call it over a thousand times between them, once
// each, and inlined that code takes 0.8 MB of the program.

//go:noinline
func nameCol(id, title string) *report.Column {
	return &report.Column{ID: id, Title: title, Kind: report.Name}
}

//go:noinline
func textCol(id, title string) *report.Column {
	return &report.Column{ID: id, Title: title, Kind: report.Text}
}

//go:noinline
func countCol(id, title string) *report.Column {
	return &report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Count}
}

// idCol is an integer that names something and is never added up: a device, a pid.
//
//go:noinline
func idCol(id, title string) *report.Column {
	return &report.Column{ID: id, Title: title, Kind: report.Int}
}

// nsCol is a duration in whole nanoseconds, written to CSV under the given names, each with its scale: …_ns, …_us, …_ms.
//
//go:noinline
func nsCol(id, title string, csv ...string) *report.Column {
	return &report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Nanoseconds, CSV: scaled(csv)}
}

// meanCol is a duration that need not be whole.
//
//go:noinline
func meanCol(id, title string, csv ...string) *report.Column {
	return &report.Column{ID: id, Title: title, Kind: report.Float, Unit: report.Nanoseconds, CSV: scaled(csv)}
}

//go:noinline
func momentCol(id, title string, csv ...string) *report.Column {
	return &report.Column{ID: id, Title: title, Kind: report.Moment, Unit: report.Nanoseconds, CSV: scaled(csv)}
}

//go:noinline
func bytesCol(id, title string) *report.Column {
	return &report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Bytes}
}

// ratioCol is a share; CSV files write it in percent under the given names.
//
//go:noinline
func ratioCol(id, title string, csv ...string) *report.Column {
	c := &report.Column{ID: id, Title: title, Kind: report.Float, Unit: report.Ratio}
	for _, n := range csv {
		c.CSV = append(c.CSV, report.CSVCol{Name: n, Exp10: 2})
	}
	return c
}

//go:noinline
func rateCol(id, title, unit string) *report.Column {
	return &report.Column{ID: id, Title: title, Kind: report.Float, Unit: unit}
}

//go:noinline
func wide(c *report.Column) *report.Column {
	c.Wide = true
	return c
}

func scaled(names []string) []report.CSVCol {
	var cols []report.CSVCol
	for _, n := range names {
		exp := 0
		switch {
		case hasSuffix(n, "_us"):
			exp = -3
		case hasSuffix(n, "_ms"):
			exp = -6
		case hasSuffix(n, "_s"):
			exp = -9
		}
		cols = append(cols, report.CSVCol{Name: n, Exp10: exp})
	}
	return cols
}

func hasSuffix(s, suffix string) bool {
	return len(s) >= len(suffix) && s[len(s)-len(suffix):] == suffix
}

// def declares a metric. Without labels it is the metric of the whole window.
//
//go:noinline
func def(id, unit string, better report.Direction, assume report.Noise, meaning string, labels ...string) *report.MetricDef {
	d := &report.MetricDef{ID: id, Unit: unit, Better: better, Assume: assume, Lifecycle: report.Stable, Labels: slices.Clone(labels), Meaning: meaning}
	if len(labels) == 0 {
		d.Labels = []string{""}
	}
	return d
}

// table declares a table: its columns, and its CSV file.
//
//go:noinline
func table(id, title, file string, columns ...*report.Column) *report.Table {
	return &report.Table{ID: id, Title: title, File: file, Columns: values(columns), Rows: [][]report.Cell{}}
}

// metrics are the metrics of a section.
//
//go:noinline
func metrics(defs ...*report.MetricDef) []report.MetricDef { return values(defs) }

// tables are the tables of a section.
//
//go:noinline
func tables(list ...*report.Table) []report.Table { return values(list) }

func values[T any](list []*T) []T {
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = *v
	}
	return out
}
