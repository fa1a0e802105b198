package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

const (
	gutter    = 2  // columns between two table columns
	leastName = 16 // least width of a left-aligned column that must shrink
)

// table fits a table into the width: first it shortens text columns, then it leaves out wide columns, then the
// rightmost ones.
func (t terminal) table(tab doc.Table) []row {
	keep := lists.Indexes[int](len(tab.Columns))
	grid := t.grid(tab)
	width, ok := t.widths(tab, grid, keep)
	for !ok && len(keep) > 1 {
		at := len(keep) - 1
		for at > 0 && !tab.Columns[keep[at]].Wide {
			at--
		}
		at = cmp.Or(at, len(keep)-1) // without a wide column the rightmost
		keep = slices.Delete(keep, at, at+1)
		width, ok = t.widths(tab, grid, keep)
	}
	lines := t.wrap(tab.Caption, bold)
	for _, cells := range grid {
		var line row
		for i, c := range keep {
			if i > 0 {
				line = append(line, frag{text: "  "})
			}
			cell := shrink(cells[c], width[i])
			fill := frag{text: pad("", width[i]-cell.width(), false)}
			if tab.Columns[c].Right {
				line = append(append(line, fill), cell...)
			} else {
				line = append(append(line, cell...), fill)
			}
		}
		lines = append(lines, line)
	}
	if n := len(tab.Columns) - len(keep); n > 0 {
		var names []string
		for i, c := range tab.Columns {
			if !slices.Contains(keep, i) {
				names = append(names, cmp.Or(c.Title, "details"))
			}
		}
		columns := lists.Indexes[int](len(tab.Columns))
		needed := lists.Sum(columns, func(i int) int { return columnWidth(grid, i) + gutter }) - gutter
		note := doc.Text("(left out for lack of width: " + strings.Join(names, ", ") + "; COLUMNS=" + strconv.Itoa(needed) + " shows all)")
		lines = append(lines, t.wrap(doc.Spans(note), faint)...)
	}
	return lines
}

func columnWidth(grid [][]row, i int) int {
	return lists.Most(grid, func(cells []row) int { return cells[i].width() })
}

// grid returns the head (unless all titles are empty), the rows and the foot as rows of cells, one cell per column.
func (t terminal) grid(tab doc.Table) [][]row {
	var grid [][]row
	if slices.ContainsFunc(tab.Columns, func(c doc.Column) bool { return c.Title != "" }) {
		grid = append(grid, lists.Map(tab.Columns, func(c doc.Column) row {
			return row{{text: Visible(c.Title), style: faint}}
		}))
	}
	add := func(list [][]doc.Cell, base style) {
		for _, cells := range list {
			line := make([]row, len(tab.Columns))
			for i := range line {
				line[i] = t.frags(lists.Nth(cells, i, nil), base, longestText)
			}
			grid = append(grid, line)
		}
	}
	add(tab.Rows, "")
	add(tab.Foot, faint)
	for _, line := range grid { // before widths are measured: no line may start like a command of a CI log
		if first := line[0]; len(first) > 0 {
			first[0].text = logLine(first[0].text)
		}
	}
	return grid
}

// widths returns the width of each kept column, and whether they fit into the terminal.
func (t terminal) widths(tab doc.Table, grid [][]row, keep []int) ([]int, bool) {
	width := make([]int, len(keep))
	total := gutter * (len(keep) - 1)
	for i, c := range keep {
		width[i] = columnWidth(grid, c)
		total += width[i]
	}
	for total > t.width {
		widest := -1
		for i, c := range keep {
			text := !tab.Columns[c].Right && !tab.Columns[c].Whole && width[i] > leastName
			if text && (widest < 0 || width[i] > width[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		width[widest]--
		total--
	}
	if len(keep) == 1 {
		width[0] = min(width[0], t.width)
		return width, true
	}
	return width, total <= t.width
}

// shrink shortens the longest name of a cell in its middle or, if that is not enough, the cell at its end.
func shrink(cell row, width int) row {
	excess := cell.width() - width
	if excess <= 0 {
		return cell
	}
	longest := -1
	for i, f := range cell {
		if f.name && (longest < 0 || textWidth(f.text) > textWidth(cell[longest].text)) {
			longest = i
		}
	}
	if longest >= 0 && textWidth(cell[longest].text)-excess >= 8 {
		out := append(row(nil), cell...)
		out[longest].text = fit(out[longest].text, textWidth(out[longest].text)-excess)
		return out
	}
	if out := wholeClauses(cell, width); out != nil {
		return out
	}
	var out row
	left := width - 1 // for the …
	for _, f := range cell {
		whole := f.text
		f.text = prefixOf(whole, left)
		left -= textWidth(f.text)
		if f.text != whole {
			f.text += "…"
			return append(out, f)
		}
		out = append(out, f)
	}
	return out
}

// wholeClauses keeps as many clauses of a cell as fit; nil if not even the first one does. A clause ends at a comma or
// a semicolon that is followed by a space.
func wholeClauses(cell row, width int) row {
	used, end, at := 0, -1, 0 // of the last clause that fits: its fragment, and its length in that in bytes
	for i, f := range cell {
		for b, r := range f.text {
			if (r == ',' || r == ';') && !f.name && strings.HasPrefix(f.text[b+1:], " ") &&
				used+textWidth(", …") <= width {
				end, at = i, b
			}
			used += runeWidth(r)
		}
	}
	if end < 0 {
		return nil
	}
	last := cell[end]
	last.text = last.text[:at] + ", …"
	return append(append(row(nil), cell[:end]...), last)
}

// prefixOf returns the longest start of s that fits into width columns.
func prefixOf(s string, width int) string {
	for i, r := range s {
		if width -= runeWidth(r); width < 0 {
			return s[:i]
		}
	}
	return s
}
