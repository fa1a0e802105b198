package render

import (
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
)

func (p *page) table(t doc.Table) {
	if len(t.Columns) == 0 {
		return
	}
	view := struct {
		blockView
		ID           string
		Label, Class string
		HasHead      bool
		File         string
		Rows, Foot   markup
	}{blockView: blockView{p, t}, Label: "Table", Class: primaryClass(t.Columns)}
	if t.ID != "" {
		view.ID = p.unique("table-" + anchor(t.ID))
		view.Label = "Table: " + strings.ReplaceAll(t.ID, "_", " ")
	}
	if dest, ok := safeDest(t.File); ok && t.File != "" {
		view.File = dest
	}
	for _, c := range t.Columns {
		view.HasHead = view.HasHead || c.Title != ""
	}
	left := make([]markup, len(t.Columns))
	for k := range t.Columns {
		left[k] = "<td class=\"l\">"
		if !slices.ContainsFunc(t.Rows, func(row []doc.Cell) bool { return k < len(row) && long(row[k]) }) {
			left[k] = "<td class=\"l s\">" // it does not need the room that names have
		}
	}
	view.Rows = p.capture(func() {
		for i, row := range t.Rows {
			id := ""
			if i < len(t.RowIDs) {
				id = anchor(t.RowIDs[i])
			}
			p.row(t.Columns, left, row, id, i)
		}
	})
	view.Foot = p.capture(func() {
		for _, row := range t.Foot {
			p.row(t.Columns, left, row, "", -1)
		}
	})
	p.execute("table", view)
}

// primaryClass tells the style sheet how many columns of a table are visible at first: those before the columns marked
// as detail, if these come last. Empty: all columns.
func primaryClass(columns []doc.Column) string {
	n := len(columns)
	for n > 0 && columns[n-1].Wide {
		n--
	}
	sides := markup("")
	if len(columns) > 3 && strings.HasPrefix(columns[1].Title, "Base") && strings.HasPrefix(columns[2].Title, "Head") {
		sides = "sides" // on a phone both are hidden in favour of their change
	}
	if n == len(columns) || n == 0 || n > maxPrimary {
		return string(sides)
	}
	class := "p" + num(n)
	if sides != "" {
		class += " " + sides
	}
	if n > 3 && columns[0].Align == doc.Left && columns[1].Align == doc.Left {
		class += " t2" // on a phone its second text column makes room for numbers
	}
	return string(class)
}

// maxPrimary is the largest number of primary columns for which the style sheet has a rule.
const maxPrimary = 9

// long reports whether a cell has more than one short word.
func long(cell doc.Cell) bool {
	n := 0
	for _, s := range cell {
		n += len(s.Text)
	}
	return n > 12
}

// row writes a row. left has the opening tags of text cells; i is its index among the entries, -1 in the foot.
func (p *page) row(columns []doc.Column, left []markup, row []doc.Cell, id string, i int) {
	p.put("<tr")
	if id != "" {
		p.put(" id=\"" + escape(id) + "\"")
	}
	p.put(">")
	for k, c := range columns {
		if c.Align == doc.Right { // most are numbers: the others have a class
			p.put("<td>")
		} else {
			p.put(left[k])
		}
		if k < len(row) {
			p.spans(row[k])
		}
		if i >= 0 && i < len(c.Bars) && c.Bars[i] != 0 {
			p.cellBar(c.Bars[i], c.Bars, k >= len(row) || len(row[k]) == 0)
		}
	}
	p.put("\n") // the next row or cell ends this one
}

// cellBar draws a bar: from the left, or to both sides of the middle if the column has negative values. It is thin
// below a number, and as high as a line if it is alone.
func (p *page) cellBar(v float64, column []float64, alone bool) {
	class := markup("cb")
	if alone {
		class += " wide"
	}
	from, way := 0.0, markup("")
	v = math.Max(-1, math.Min(v, 1))
	if slices.ContainsFunc(column, func(b float64) bool { return b < 0 }) || alone {
		from, v, way = 0.5, v/2, " class=\"bad\""
		if v < 0 {
			from, v, way = 0.5+v, -v, " class=\"good\""
		}
	}
	at := markup("")
	if from > 0 {
		at = " x=\"" + percent(from, 1) + "\""
	}
	p.put("<svg class=\"" + class + "\" aria-hidden=\"true\"><rect" + at + " width=\"" + percent(v, 1) + "\"" + way +
		"/></svg>") // the style sheet sets the height
}
