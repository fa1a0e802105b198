package kit

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// Field is one cell of a row and the id of its column.
type Field struct {
	Column string
	Cell   report.Cell
}

// Put fills a column with any cell.
func Put(column string, c report.Cell) Field { return Field{column, c} }

// Int fills a column with a whole number.
func Int(column string, v int64) Field { return Field{column, report.I(v)} }

// Float fills a column with a number.
func Float(column string, v float64) Field { return Field{column, report.F(v)} }

// Text fills a column with a text or a name.
func Text(column, v string) Field { return Field{column, report.S(v)} }

// Maybe fills a column with a number; nil is unknown.
func Maybe(column string, v *float64) Field { return Field{column, Cell(v)} }

// Row adds a row. It fills every column of the table once, by id and in any order: a column that is missing, unknown or
// given twice fails the section.
func (t *Table) Row(fields ...Field) {
	if len(fields) != len(t.Columns) {
		broken("a row of table %s fills %d of %d columns", t.ID, len(fields), len(t.Columns))
	}
	t.Partial(fields...)
}

// Partial is Row for a row with some columns unknown: these are null.
func (t *Table) Partial(fields ...Field) {
	row := make([]report.Cell, len(t.Columns))
	filled := make([]bool, len(t.Columns))
	for i, f := range fields {
		if i >= len(t.Columns) || t.Columns[i].ID != f.Column { // fields mostly come in the order of the columns
			i = slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.ID == f.Column })
		}
		if i < 0 || filled[i] {
			broken("a row of table %s fills column %s, which is not there or filled already", t.ID, f.Column)
		}
		row[i], filled[i] = f.Cell, true
	}
	t.Rows = append(t.Rows, row)
}

// Stats fills the columns of the table that are called by a statistic: mean, stddev, min, p50, p90, p99 and max; nil is
// unknown.
func (t *Table) Stats(s *report.Summary) []Field {
	var list []Field
	for _, c := range t.Columns {
		of, ok := report.Statistics[c.ID]
		switch {
		case !ok:
		case s == nil:
			list = append(list, Put(c.ID, report.Null))
		case c.Kind == report.Int:
			list = append(list, Int(c.ID, int64(of(s))))
		default:
			list = append(list, Float(c.ID, of(s)))
		}
	}
	return list
}
