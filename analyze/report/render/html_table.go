package render

import (
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

func (p *page) table(t doc.Table) {
	id, label := markup(""), "Table"
	if t.ID != "" {
		id = p.unique("table-" + anchor(t.ID))
		label = "Table: " + strings.ReplaceAll(t.ID, "_", " ")
	}
	p.put("<div class=\"table\"" + attr("id", id) + "><div class=\"tools\">")
	if dest, ok := safeDest(t.File); ok {
		p.put("<a href=\"" + escape(dest) + "\">CSV</a>")
	}
	p.put("</div>\n")
	p.openTable(label, primaryClass(t.Columns))
	p.put("\n")
	if len(t.Caption) > 0 {
		p.around("<caption>", t.Caption, "</caption>\n")
	}
	if slices.ContainsFunc(t.Columns, func(c doc.Column) bool { return c.Title != "" }) {
		p.tableHead(t.Columns)
		p.put("\n")
	}
	left := make([]markup, len(t.Columns))
	for k := range t.Columns {
		left[k] = "<td class=\"l\">"
		if !slices.ContainsFunc(t.Rows, func(row []doc.Cell) bool { return k < len(row) && long(row[k]) }) {
			left[k] = "<td class=\"l s\">" // it does not need the room that names have
		}
	}
	p.put("<tbody>\n")
	for i, row := range t.Rows {
		p.row(t.Columns, left, row, lists.Nth(t.RowIDs, i, ""), i)
	}
	p.put("</tbody>\n")
	if len(t.Foot) > 0 {
		p.put("<tfoot>\n")
		for _, row := range t.Foot {
			p.row(t.Columns, left, row, "", -1)
		}
		p.put("</tfoot>\n")
	}
	p.put("</table></div></div>\n")
}

// openTable opens a table that scrolls if the window is too narrow for it.
func (p *page) openTable(label string, class markup) {
	p.put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" + text(label) + "\"><table" +
		attr("class", class) + ">")
}

func (p *page) tableHead(columns []doc.Column) {
	p.put("<thead><tr>")
	for _, c := range columns {
		switch {
		case c.Title == "":
			p.put("<td></td>")
		case c.Right:
			p.put("<th scope=\"col\" class=\"r\">" + text(c.Title) + "</th>")
		default:
			p.put("<th scope=\"col\">" + text(c.Title) + "</th>")
		}
	}
	p.put("</tr></thead>")
}

// primaryClass tells the style sheet how many columns of a table are visible at first: those before the columns marked
// as detail, if these come last. Empty: all columns.
func primaryClass(columns []doc.Column) markup {
	n := len(columns)
	for n > 0 && columns[n-1].Wide {
		n--
	}
	sides := markup("")
	if len(columns) > 3 && strings.HasPrefix(columns[1].Title, "Base") && strings.HasPrefix(columns[2].Title, "Head") {
		sides = "sides" // on a phone both are hidden in favour of their change
	}
	if n == len(columns) || n == 0 || n > maxPrimary {
		return sides
	}
	class := "p" + num(n)
	if sides != "" {
		class += " " + sides
	}
	if n > 3 && !columns[0].Right && !columns[1].Right {
		class += " t2" // on a phone its second text column makes room for numbers
	}
	return class
}

// maxPrimary is the largest number of primary columns for which the style sheet has a rule.
const maxPrimary = 9

// long reports whether a cell has more than one short word.
func long(cell doc.Cell) bool {
	n := lists.Sum(cell, func(s doc.Span) int { return len(s.Text) })
	return n > 12
}

// row writes a row. left has the opening tags of text cells; i is its index among the entries, -1 in the foot.
func (p *page) row(columns []doc.Column, left []markup, row []doc.Cell, id string, i int) {
	p.put("<tr" + attr("id", anchor(id)) + ">")
	for k, c := range columns {
		if c.Right { // most are numbers: the others have a class
			p.put("<td>")
		} else {
			p.put(left[k])
		}
		p.spans(lists.Nth(row, k, nil))
		if i >= 0 && i < len(c.Bars) && c.Bars[i] != 0 {
			p.put(cellBar(c.Bars[i], c.Bars))
		}
	}
	p.put("\n") // the next row or cell ends this one
}

// cellBar is a thin bar below a number, -1 to 1: from the left, or to both sides of the middle if the column has
// negative values.
func cellBar(v float64, column []float64) markup {
	at, way := markup(""), markup("")
	if slices.ContainsFunc(column, func(b float64) bool { return b < 0 }) {
		from := 0.5 + min(v, 0)/2
		at, way = percent(from, 1), "bad"
		if v < 0 {
			way = "good"
		}
		v = math.Abs(v) / 2
	}
	return shape("svg", shape("rect", "", "x", at, "width", percent(v, 1), "class", way), "class", "cb", "aria-hidden", "true")
}
