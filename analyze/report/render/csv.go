package render

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// CSV writes every column and row of a table except the "(others)" row, as RFC 4180 with line feeds, so that each
// column holds values of one kind. The header is written even if there are no rows.
//
// A column becomes one field named after its id, in base units, or the fields its CSV list asks for: the base value
// times 10^Exp10, exact for integers. Unknown is an empty field. Names that a spreadsheet would take for a formula get
// a leading apostrophe, and no field holds a control or invisible character (see [Visible]); report.json has the raw
// text.
func CSV(w io.Writer, t *report.Table) error {
	out := csv.NewWriter(w)
	record := make([]string, 0, len(t.Columns)+8)
	fields := lists.Map(t.Columns, func(c report.Column) []report.CSVCol {
		if len(c.CSV) == 0 {
			return []report.CSVCol{{Name: c.ID}}
		}
		return c.CSV
	})
	for _, f := range slices.Concat(fields...) {
		record = append(record, f.Name)
	}
	if len(record) == 0 {
		return nil
	}
	if err := out.Write(record); err != nil {
		return err
	}
	for _, row := range t.Rows[:t.Entries()] {
		record = record[:0]
		for i, c := range t.Columns {
			cell := lists.Nth(row, i, report.Null)
			for _, f := range fields[i] {
				record = append(record, csvValue(cell, c.Kind, f.Exp10))
			}
		}
		if len(record) == 1 && record[0] == "" { // encoding/csv writes an empty line, which readers skip
			out.Flush()
			if _, err := io.WriteString(w, "\"\"\n"); err != nil {
				return err
			}
			continue
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvValue(c report.Cell, k report.Kind, exp10 int) string {
	if v, ok := c.Int(); ok {
		return unit.Shift(strconv.FormatInt(v, 10), exp10)
	}
	if v, ok := c.Num(); ok {
		return unit.Shift(strconv.FormatFloat(v, 'f', -1, 64), exp10)
	}
	if v, ok := c.Bool(); ok {
		return strconv.FormatBool(v)
	}
	v, _ := c.Str()
	if k == report.Name {
		return CSVName(v)
	}
	return Visible(v)
}

// CSVName is a field for text out of a capture: behind an apostrophe if a spreadsheet might evaluate it, or a CI log
// might take its line for a command. The last four characters are the fullwidth forms of the first.
func CSVName(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if strings.HasPrefix(s, "::") || size > 0 && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + Visible(s)
	}
	return Visible(s)
}
