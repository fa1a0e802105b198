package kit

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/stat"
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

// Detail files are CSV files with a row per event. If there are too many, they hold the longest events.

// LongestFirst returns the events lo <= i < hi, or the longest DetailRows, the longest first; if two are equal, the
// earlier first.
func (o *Options) LongestFirst(lo, hi int, dur func(i int) int64) []int {
	rows := o.Longest(lo, hi, dur)
	slices.SortFunc(rows, func(a, b int) int { return cmp.Or(cmp.Compare(dur(b), dur(a)), a-b) })
	return rows
}

// Longest returns the events lo <= i < hi in order: all of them, or the longest DetailRows; if some are equal, the
// earlier. It looks at each event once, and keeps at most twice as many.
func (o *Options) Longest(lo, hi int, dur func(i int) int64) []int {
	n := min(o.DetailRows, hi-lo)
	best := make([]int, 0, min(2*n, hi-lo))
	bar := int64(-1) // the length that an event has to exceed
	var lengths []int64
	cut := func() {
		if len(best) <= n {
			return
		}
		lengths = lengths[:0]
		for _, i := range best {
			lengths = append(lengths, dur(i))
		}
		stat.Sort(lengths)
		bar = lengths[len(lengths)-n]
		longer, _ := slices.BinarySearch(lengths, bar+1)
		equal := n - (len(lengths) - longer) // of those as long as the bar
		best = slices.DeleteFunc(best, func(i int) bool {
			d := dur(i)
			if d == bar {
				equal--
			}
			return d < bar || d == bar && equal < 0
		})
	}
	for i := lo; i < hi; i++ {
		if dur(i) <= bar {
			continue
		}
		if best = append(best, i); len(best) == 2*n {
			cut()
		}
	}
	cut()
	return best
}

// AttachDetails ends a detail file about n events, of which some rows were written.
func (t *Table) AttachDetails(n int) {
	t.TotalRows = int64(n)
	t.Attach()
}

// Total is the sum of the durations of the events lo <= i < hi.
func Total(lo, hi int, dur func(i int) int64) int64 {
	var sum int64
	for i := lo; i < hi; i++ {
		sum += dur(i)
	}
	return sum
}
