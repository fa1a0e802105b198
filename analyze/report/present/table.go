package present

import (
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Unknown stands in a cell whose value is not known.
const Unknown = "–"

// layout says how much of a table to show.
type layout struct {
	rows  int  // entries to show at most; the others row comes on top
	wide  bool // show columns that are detail
	files string
}

// tableDoc lays a table out: one unit per column, in the header, and the others row apart.
func (v *View) tableDoc(t *report.Table, l layout) doc.Table {
	show := v.columns(t, l)
	n := min(Entries(t), l.rows)
	rows := t.Rows[:n:n]
	if t.Others && len(t.Rows) > 0 {
		rows = append(rows, t.Rows[len(t.Rows)-1])
	}
	scale := scales(t, show, rows)
	out := doc.Table{ID: t.ID}
	for _, i := range show {
		c := t.Columns[i]
		column := doc.Column{Title: scale[i].Header(title(c)), Wide: c.Wide}
		if c.Kind == report.Int || c.Kind == report.Float || c.Kind == report.Moment {
			column.Align = doc.Right
		}
		out.Columns = append(out.Columns, column)
	}
	ids := v.anchors[t.ID]
	for i, row := range t.Rows[:n] {
		if id := ids[i]; id != "" {
			out.RowIDs = append(out.RowIDs, make([]string, i-len(out.RowIDs))...)
			out.RowIDs = append(out.RowIDs, id)
		}
		var cells []doc.Cell
		for _, i := range show {
			cells = append(cells, v.cell(t.Columns[i], at(row, i), scale[i]))
		}
		out.Rows = append(out.Rows, cells)
	}
	if t.Others && len(t.Rows) > 0 {
		out.Foot = append(out.Foot, v.others(t, show, scale))
	}
	return out
}

// moreRows says where the rows are that the layout leaves out.
func moreRows(t *report.Table, l layout) (doc.Block, bool) {
	n := Entries(t)
	if n <= l.rows {
		return nil, false
	}
	spans := doc.Spans(doc.Text("Rows " + unit.Int(int64(l.rows+1)) + " to " + unit.Int(int64(n)) + " are "))
	if t.File == "" {
		spans = append(spans, doc.Text("in report.json"))
	} else {
		spans = append(spans, doc.Text("in "), doc.Code(l.files+t.File))
	}
	if t.Others {
		spans = append(spans, doc.Text("; the others row sums what comes after them"))
	}
	return doc.P(append(spans, doc.Text("."))...), true
}

// others is the last row: its label with the number of rows it stands for, blank where a column does not add up.
func (v *View) others(t *report.Table, show []int, scale []unit.Scale) []doc.Cell {
	row := t.Rows[len(t.Rows)-1]
	var cells []doc.Cell
	for _, i := range show {
		c := at(row, i)
		s, isText := c.Str()
		switch {
		case c.IsNull():
			cells = append(cells, nil)
		case isText && strings.Trim(s, "()") == "others":
			cells = append(cells, doc.Cell{doc.Text("others (" + unit.Int(t.TotalRows-int64(Entries(t))) + ")")})
		case isText:
			cells = append(cells, doc.Cell{doc.Text(s)})
		default:
			cells = append(cells, v.cell(t.Columns[i], c, scale[i]))
		}
	}
	return cells
}

// columns chooses the columns to show. The display name of a kernel takes the place of its full name.
func (v *View) columns(t *report.Table, l layout) []int {
	var show []int
	full := column(t, "kernel_name")
	for i, c := range t.Columns {
		if c.Wide && !l.wide || c.ID == "short" && full >= 0 {
			continue
		}
		show = append(show, i)
	}
	return show
}

// scales chooses the unit of each column. Columns whose values belong together share one: sums with sums, and per-call
// values (means, extremes, percentiles) with each other.
func scales(t *report.Table, show []int, rows [][]report.Cell) []unit.Scale {
	group := func(c report.Column) string {
		if c.Kind == report.Float || c.ID == "min" || c.ID == "max" || strings.HasPrefix(c.ID, "min_") ||
			strings.HasPrefix(c.ID, "max_") {
			return c.Unit + "/call"
		}
		return c.Unit
	}
	values := map[string][]float64{}
	for _, i := range show {
		c := t.Columns[i]
		for _, row := range rows {
			if x, ok := at(row, i).Num(); ok {
				values[group(c)] = append(values[group(c)], x)
			}
		}
	}
	list := make([]unit.Scale, len(t.Columns))
	for _, i := range show {
		c := t.Columns[i]
		switch {
		case c.Kind == report.Moment:
			list[i] = unit.Moments()
		case len(values[group(c)]) == 0: // nothing is known: no unit to write it in
		case c.Kind == report.Int || c.Kind == report.Float:
			list[i] = unit.Common(c.Unit, values[group(c)]...)
		}
	}
	return list
}

func title(c report.Column) string {
	if c.Title != "" {
		return c.Title
	}
	return c.ID
}

func (v *View) cell(c report.Column, x report.Cell, s unit.Scale) doc.Cell {
	if x.IsNull() {
		return doc.Cell{doc.Text(Unknown)}
	}
	if b, ok := x.Bool(); ok {
		if b {
			return doc.Cell{doc.Text("yes")}
		}
		return doc.Cell{doc.Text("no")}
	}
	if text, ok := x.Str(); ok {
		if c.Kind == report.Name {
			return doc.Cell{v.name(text)}
		}
		return doc.Cell(Prose(text))
	}
	if n, ok := x.Int(); ok && c.Unit == "" && c.Kind != report.Moment {
		return doc.Cell{doc.Text(strconv.FormatInt(n, 10))} // a number that names something: no separators
	}
	if n, ok := x.Int(); ok && c.Unit == report.Count {
		return doc.Cell{doc.Text(unit.Int(n))}
	}
	n, _ := x.Num()
	if c.Unit == "" && c.Kind == report.Float {
		return doc.Cell{doc.Text(unit.Format(n, report.Count))}
	}
	return doc.Cell{doc.Text(s.Format(n))}
}
