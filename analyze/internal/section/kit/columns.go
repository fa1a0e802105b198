package kit

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// The columns that tables share. CSV names follow nsys-llm-explainer, whose files are read by existing scripts.
//
// A table is declared as data, one column a line: report.Column literals, or these constructors for the usual kinds.
// Names of CSV columns may follow; without them it is the id.
var (
	NameCol  = column(report.Name, "")
	TextCol  = column(report.Text, "")
	CountCol = column(report.Int, report.Count)
	BytesCol = column(report.Int, report.Bytes)

	// IDCol is an integer that names something and is never added up: a device, a pid.
	IDCol = column(report.Int, "")

	// NsCol is a duration in whole nanoseconds, MeanCol one that need not be whole. CSV names say their scale: …_ns,
	// …_us, …_ms.
	NsCol     = column(report.Int, report.Nanoseconds)
	MeanCol   = column(report.Float, report.Nanoseconds)
	MomentCol = column(report.Moment, report.Nanoseconds)

	// RatioCol is a share; CSV files write it in percent.
	RatioCol = column(report.Float, report.Ratio)
)

func column(kind report.Kind, unit string) func(id, title string, csv ...string) report.Column {
	return func(id, title string, csv ...string) report.Column {
		return report.Column{ID: id, Title: title, Kind: kind, Unit: unit, CSV: lists.Map(csv, func(n string) report.CSVCol {
			return report.CSVCol{Name: n, Exp10: exponent(unit, n)}
		})}
	}
}

// exponent is the power of ten by which a CSV column differs from the table's.
func exponent(unit, name string) int {
	switch {
	case unit == report.Ratio:
		return 2
	case unit != report.Nanoseconds:
		return 0
	case strings.HasSuffix(name, "_us"):
		return -3
	case strings.HasSuffix(name, "_ms"):
		return -6
	case strings.HasSuffix(name, "_s"):
		return -9
	}
	return 0
}

func Wide(c report.Column) report.Column {
	c.Wide = true
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

// Stated is a number; 0 means unknown.
func Stated(v int64) report.Cell { return report.Of(report.Stated(v), report.I, report.Null) }

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
