package kit

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// The columns that tables share. CSV names follow nsys-llm-explainer, whose files are read by existing scripts.
//
// A table is declared as data, one column a line: report.Column literals, or these constructors for the usual kinds.

func NameCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Name}
}

func TextCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Text}
}

func CountCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Count}
}

// IDCol is an integer that names something and is never added up: a device, a pid.
func IDCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Int}
}

// NsCol is a duration in whole nanoseconds, written to CSV under the given names, each with its scale: …_ns, …_us,
// …_ms.
func NsCol(id, title string, csv ...string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Nanoseconds, CSV: scaled(csv)}
}

// MeanCol is a duration that need not be whole.
func MeanCol(id, title string, csv ...string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Float, Unit: report.Nanoseconds, CSV: scaled(csv)}
}

func MomentCol(id, title string, csv ...string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Moment, Unit: report.Nanoseconds, CSV: scaled(csv)}
}

func BytesCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Bytes}
}

// RatioCol is a share; CSV files write it in percent under the given names.
func RatioCol(id, title string, csv ...string) report.Column {
	c := report.Column{ID: id, Title: title, Kind: report.Float, Unit: report.Ratio}
	for _, n := range csv {
		c.CSV = append(c.CSV, report.CSVCol{Name: n, Exp10: 2})
	}
	return c
}

func Wide(c report.Column) report.Column {
	c.Wide = true
	return c
}

func scaled(names []string) []report.CSVCol {
	var cols []report.CSVCol
	for _, n := range names {
		exp := 0
		switch {
		case strings.HasSuffix(n, "_us"):
			exp = -3
		case strings.HasSuffix(n, "_ms"):
			exp = -6
		case strings.HasSuffix(n, "_s"):
			exp = -9
		}
		cols = append(cols, report.CSVCol{Name: n, Exp10: exp})
	}
	return cols
}

func CountCSVCol(id, title, csv string) report.Column {
	c := CountCol(id, title)
	c.CSV = []report.CSVCol{{Name: csv}}
	return c
}

// Cell of a pointer: null if nil.
func Cell(v *float64) report.Cell { return report.Of(v, report.F, report.Null) }

func FloatCol(id, title, unit string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Float, Unit: unit}
}

// Higher is the larger of two numbers that may be unknown.
func Higher(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// Known is a number; -1 means unknown.
func Known(v int64) report.Cell {
	if v < 0 {
		return report.Null
	}
	return report.I(v)
}

// PID fills the column pid with a process's printed pid, which two processes on different machines can share.
func PID(procs []trace.Proc, proc int32) Field {
	if proc == trace.None {
		return Put("pid", report.Null)
	}
	return Int("pid", procs[proc].PID)
}

// Budget bounds how many names have metrics of their own, and the bytes of these names together.
type Budget struct{ Names, Bytes int }

// Take reports whether there is room for another name.
func (b *Budget) Take(name string) bool {
	b.Names, b.Bytes = b.Names-1, b.Bytes-len(name)
	return b.Names >= 0 && b.Bytes >= 0
}
