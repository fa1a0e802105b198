package section

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// The columns that tables share. CSV names follow nsys-llm-explainer, whose files other people's scripts read.
//
// A table is declared as data, one column a line: report.Column literals, or these constructors for the usual kinds.

func nameCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Name}
}

func textCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Text}
}

func countCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Count}
}

// idCol is an integer that names something and is never added up: a device, a pid.
func idCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Int}
}

// nsCol is a duration in whole nanoseconds, written to CSV under the given names, each with its scale: …_ns, …_us, …_ms.
func nsCol(id, title string, csv ...string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Nanoseconds, CSV: scaled(csv)}
}

// meanCol is a duration that need not be whole.
func meanCol(id, title string, csv ...string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Float, Unit: report.Nanoseconds, CSV: scaled(csv)}
}

func momentCol(id, title string, csv ...string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Moment, Unit: report.Nanoseconds, CSV: scaled(csv)}
}

func bytesCol(id, title string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Int, Unit: report.Bytes}
}

// ratioCol is a share; CSV files write it in percent under the given names.
func ratioCol(id, title string, csv ...string) report.Column {
	c := report.Column{ID: id, Title: title, Kind: report.Float, Unit: report.Ratio}
	for _, n := range csv {
		c.CSV = append(c.CSV, report.CSVCol{Name: n, Exp10: 2})
	}
	return c
}

func rateCol(id, title, unit string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Float, Unit: unit}
}

func wide(c report.Column) report.Column {
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
