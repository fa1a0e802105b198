package present

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Unknown is shown in a cell whose value is unknown.
const Unknown = "–"

// layout shows the sections of a report: how much of each table, and what links to its rows.
type layout struct {
	v       *View
	rows    int               // entries of a table to show at most; the "(others)" row is extra
	wide    bool              // also show columns of detail: on the page
	links   map[string]string // from a metric that a finding cites to its place on the page
	anchors map[string]bool   // ids of linked rows
}

// tableFiles is the folder of the CSV files, as pages link to it. fullRows is how many rows report.md shows of kernels,
// and three times what it shows of each other table; "(others)" rows are extra.
const (
	tableFiles = "tables/"
	fullRows   = 30
)

func rowID(table string, row int) string { return "row-" + table + "-" + strconv.Itoa(row) }

// tableDoc lays out a table: one unit per column, in the header, with the "(others)" row in the foot. On the page,
// columns without any value are left out, and primary columns come first.
func (l layout) tableDoc(t *report.Table) doc.Table {
	show := l.columns(t)
	n := min(t.Entries(), l.rows)
	rows := t.Rows[:n:n]
	if t.Others && len(t.Rows) > 0 {
		rows = append(rows, t.Rows[len(t.Rows)-1])
	}
	first := len(show) // as many are not detail
	if l.wide {
		show, first = primaryFirst(t, known(rows, show))
	}
	scale := scales(t, show, rows, l)
	out := doc.Table{ID: t.ID}
	if l.wide && t.File != "" {
		out.File = tableFiles + t.File
	}
	for k, i := range show {
		c := t.Columns[i]
		head := cmp.Or(c.Title, c.ID)
		if l.fromStart(t, c) {
			head += " in the window"
		}
		column := doc.Column{Title: scale[i].Header(head), Wide: c.Wide,
			Right: c.Kind == report.Int || c.Kind == report.Float || c.Kind == report.Moment}
		if l.wide {
			column.Wide, column.Bars = k >= first, bars(c, i, t.Rows[:n])
		}
		out.Columns = append(out.Columns, column)
	}
	for i, row := range t.Rows[:n] {
		id := rowID(t.ID, i)
		if !l.anchors[id] {
			id = ""
		}
		out.RowIDs = append(out.RowIDs, id)
		var cells []doc.Cell
		for _, i := range show {
			c, x := t.Columns[i], at(row, i)
			if ns, ok := x.Int(); ok && l.fromStart(t, c) {
				x = report.I(ns - l.v.Window.Start)
			}
			cells = append(cells, cell(l.v, c, x, scale[i]))
		}
		out.Rows = append(out.Rows, cells)
	}
	if t.Others && len(t.Rows) > 0 {
		out.Foot = append(out.Foot, l.others(t, show, scale))
	}
	return out
}

// fromStart reports whether the page shows a column's times relative to the start of the window, as its charts do and
// --from counts, instead of on the capture's clock.
func (l layout) fromStart(t *report.Table, c report.Column) bool {
	return l.wide && c.Kind == report.Moment && (t.ID == "units" || t.ID == "idle_gaps" || t.ID == "activity")
}

// known leaves out columns that are null in every row; a table without rows keeps all.
func known(rows [][]report.Cell, show []int) []int {
	if len(rows) == 0 {
		return show
	}
	return slices.DeleteFunc(show, func(i int) bool {
		return !slices.ContainsFunc(rows, func(row []report.Cell) bool { return !at(row, i).IsNull() })
	})
}

// maxPrimary bounds the columns of a table that are visible at once.
const maxPrimary = 7

// primary lists the columns to show first in tables with more than [maxPrimary] columns, if these are not already
// first.
var primary = map[string][]string{
	"devices":         {"device_id", "name", "kernels", "kernel_time", "busy", "busy_ratio", "memory_bytes"},
	"gpu_time":        {"device_id", "compute", "exposed_comm", "exposed_copy", "idle", "sync", "host"},
	"idle_gaps":       {"device_id", "gap", "main_cause", "start", "previous", "next", "api_call"},
	"iteration_types": {"type", "iterations", "time_share", "total", "mean", "p50", "p90"},
	"moe_layers":      {"layer", "experts", "coverage", "dead", "peak_to_mean", "load_balance", "imbalance"},
	"processes":       {"pid", "process_name", "kernel_time", "share", "kernels", "busy", "launches"},
	"roofline":        {"kernel_name", "precision", "flop_rate", "intensity", "roof", "ratio", "attainable"},
	"streams":         {"device_id", "pid", "stream_id", "kernels", "kernel_time", "busy", "share"},
	"unit_groups":     {"phase", "batch", "units", "kernels", "p50", "p90", "share"},
	"units":           {"device_id", "phase", "state", "start", "duration", "busy", "idle"},
}

// primaryFirst puts the primary columns of a table first, and returns how many they are; the others are detail.
func primaryFirst(t *report.Table, show []int) (order []int, n int) {
	order = lists.Filter(lists.Map(primary[t.ID], t.Column), func(i int) bool { return slices.Contains(show, i) })
	if len(order) == 0 {
		order = lists.Filter(show, func(i int) bool { return !t.Columns[i].Wide })
		order = order[:min(len(order), maxPrimary)]
	}
	detail := lists.Filter(show, func(i int) bool { return !slices.Contains(order, i) })
	return slices.Concat(order, detail), len(order)
}

// bars returns the values of a column of shares, to be drawn behind their numbers; nil for other columns.
func bars(c report.Column, i int, rows [][]report.Cell) []float64 {
	if c.Unit != report.Ratio || c.ID != "share" && !strings.HasSuffix(c.ID, "_share") {
		return nil
	}
	return lists.Map(rows, func(row []report.Cell) float64 {
		share, _ := at(row, i).Num()
		return min(max(share, 0), 1)
	})
}

// moreRows says where to find the rows that the layout leaves out, and how many there are if the report has not all of
// them and no row of others.
func (l layout) moreRows(t *report.Table) doc.Paragraph {
	n, of := t.Entries(), ""
	if !t.Others && t.TotalRows > int64(n) {
		of = " of " + unit.Int(t.TotalRows)
	}
	switch {
	case n <= l.rows && of == "":
		return doc.Paragraph{}
	case n <= l.rows:
		return doc.P("There are " + unit.Int(t.TotalRows) + " rows in all.")
	}
	spans := doc.Spans("Rows " + unit.Int(l.rows+1) + " to " + unit.Int(n) + of + " are in ")
	if t.File == "" {
		spans = append(spans, doc.Text("report.json"))
	} else {
		spans = append(spans, doc.Code(tableFiles+t.File))
	}
	if t.Others {
		spans = append(spans, doc.Text("; the row of others sums the rest"))
	}
	return doc.P(spans, ".")
}

// others is the last row: its label with the number of rows that it sums up; cells are blank if a column cannot be
// summed.
func (l layout) others(t *report.Table, show []int, scale []cellScale) []doc.Cell {
	row := t.Rows[len(t.Rows)-1]
	var cells []doc.Cell
	for _, i := range show {
		c := at(row, i)
		s, isText := c.Str()
		switch {
		case c.IsNull():
			cells = append(cells, nil)
		case isText && strings.Trim(s, "()") == "others":
			cells = append(cells, doc.Cell{doc.Text("others (" + unit.Int(t.TotalRows-int64(t.Entries())) + ")")})
		case isText:
			cells = append(cells, doc.Cell{doc.Text(s)})
		default:
			cells = append(cells, cell(l.v, t.Columns[i], c, scale[i]))
		}
	}
	return cells
}

// columns chooses the columns to show. The display name of a kernel replaces its full name.
func (l layout) columns(t *report.Table) []int {
	full := t.Column("kernel_name")
	return lists.Where(len(t.Columns), func(i int) bool {
		c := &t.Columns[i]
		return (l.wide || !c.Wide) && (c.ID != "short" || full < 0)
	})
}

// cellScale is the unit of a column, or states that every cell has its own.
type cellScale struct {
	unit.Scale
	each bool
}

// Header adds the unit to a title.
func (s cellScale) Header(title string) string {
	if s.each {
		return title
	}
	return s.Scale.Header(title)
}

// scales chooses the unit of each column. Columns whose values belong together share one: sums with sums, and per-call
// values (means, extremes, percentiles) with each other. Moments have their own unit and do not influence others.
// On the page, if a value would have fewer than two digits, every cell of such columns has its own unit.
func scales(t *report.Table, show []int, rows [][]report.Cell, l layout) []cellScale {
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
		if c.Kind == report.Moment {
			continue
		}
		for _, row := range rows {
			if x, ok := at(row, i).Num(); ok {
				values[group(c)] = append(values[group(c)], x)
			}
		}
	}
	list := make([]cellScale, len(t.Columns))
	for _, i := range show {
		c := t.Columns[i]
		switch {
		case c.Kind == report.Moment:
			list[i].Scale = unit.Moments()
		case len(values[group(c)]) == 0: // no value is known, so there is no unit
		case c.Kind == report.Int || c.Kind == report.Float:
			s := unit.Common(c.Unit, values[group(c)]...)
			list[i] = cellScale{s, l.wide && tooSmall(s, values[group(c)])}
		}
	}
	return list
}

// tooSmall reports whether a value has fewer than two digits in a scale with a unit that could be smaller.
func tooSmall(s unit.Scale, values []float64) bool {
	return s.Exp10 > 0 && slices.ContainsFunc(values, func(v float64) bool {
		return v != 0 && math.Abs(v) < 10*math.Pow10(s.Exp10-s.Decimals)
	})
}

func cell(v *View, c report.Column, x report.Cell, s cellScale) doc.Cell {
	if x.IsNull() {
		return doc.Spans(Unknown)
	}
	if b, ok := x.Bool(); ok {
		return doc.Spans(map[bool]string{true: "yes", false: "no"}[b])
	}
	if text, ok := x.Str(); ok {
		if c.Kind == report.Name {
			return doc.Spans(v.names.span(text))
		}
		return Prose(text)
	}
	n, _ := x.Num()
	i, whole := x.Int()
	switch {
	case whole && c.Unit == "" && c.Kind != report.Moment:
		return doc.Spans(strconv.FormatInt(i, 10)) // an identifier: no separators
	case whole && c.Unit == report.Count:
		return doc.Spans(unit.Int(i))
	case c.Unit == "" && c.Kind == report.Float:
		return doc.Spans(unit.Format(n, report.Count))
	case s.each:
		return doc.Spans(unit.Format(n, c.Unit))
	}
	return doc.Spans(s.Format(n))
}

// at returns a cell of a row, null if the row is too short.
func at(row []report.Cell, i int) report.Cell { return lists.Nth(row, i, report.Null) }
