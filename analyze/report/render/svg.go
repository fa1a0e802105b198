package render

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
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// A chart is drawn so that it can be read at any width: horizontal positions are percentages, text keeps its size, and
// paths are stretched inside a viewBox of their own. Every chart has a table of its numbers.

// svgScale is the side of the square in which stretched paths are drawn.
const svgScale = 1000.0

// drawings draw each kind of chart.
var drawings = map[string]func(figure){
	"bar": bars, "stacked": stacked, "histogram": histogram, "strip": strip, "line": lines, "scatter": lines,
	"heat": heat, "flame": flame, "dots": dots, "forest": forest, "trend": trend,
}

// figure is a chart that is being drawn on a page.
type figure struct {
	p *page
	doc.Chart
}

// chart draws one chart with its legend and its numbers.
func chart(p *page, c doc.Chart) {
	f := figure{p, c}
	p.put("<figure class=\"chart\" id=\"" + p.unique("chart-"+anchor(c.ID)) + "\" data-kind=\"" + text(c.Kind) +
		"\"><figcaption>" + text(c.Title) + "</figcaption>\n")
	if draw := drawings[c.Kind]; draw != nil {
		draw(f)
	}
	f.muted(c.Note)
	numbers(f)
	p.put("</figure>\n")
}

// maxNumbers bounds the rows of the table of a chart's numbers.
const maxNumbers = 3000

// numbers writes the chart's values as a table: for readers who cannot see the chart, and for copying.
func numbers(f figure) {
	axis := doc.Column{Title: cmp.Or(f.XTitle, map[string]string{report.Nanoseconds: "Time"}[f.XUnit], "Part")}
	head := []doc.Column{{Title: "Series"}, axis, {Title: "Value", Right: true}}
	var rows [][]markup
	switch {
	case f.Kind == "flame": // a row for each box
		head = doc.Cols("Box", ">Depth", ">Start", ">Total", ">Self")
		if len(f.Series[0].Values) == changeValues {
			head = doc.Cols("Box", ">Depth", ">Start", ">Width", ">Base", ">Head")
		}
		for _, s := range f.Series[:min(len(f.Series), maxNumbers)] {
			row := []markup{text(shortName(s.Name))}
			for i, v := range s.Values {
				u := f.Unit
				if i == 0 { // its depth
					u = report.Count
				}
				row = append(row, number(u, v))
			}
			rows = append(rows, row)
		}
	case sameLabels(f.Series): // a row for each label
		head = []doc.Column{axis}
		for _, l := range f.Series[0].Labels[:min(len(f.Series[0].Labels), maxNumbers)] {
			rows = append(rows, []markup{text(f.xText(l))})
		}
		for _, s := range f.Series {
			head = append(head, doc.Column{Title: shortName(s.Name), Right: true})
			for i := range rows {
				rows[i] = append(rows[i], number(f.Unit, s.Values[i]))
			}
		}
	default:
		for _, s := range f.Series {
			for i, l := range s.Labels[:min(len(s.Labels), len(s.Values), maxNumbers-len(rows))] {
				rows = append(rows, []markup{text(shortName(s.Name)) + "<td>" + text(f.xText(l)) + number(f.Unit, s.Values[i])})
			}
		}
	}
	f.p.put("<details class=\"numbers\"><summary>Numbers of this chart</summary>")
	f.p.openTable("Numbers: "+f.Title, "")
	f.p.tableHead(head)
	f.p.put("<tbody>\n")
	for _, row := range rows {
		f.p.put("<tr><td>")
		for _, cell := range row {
			f.p.put(cell)
		}
		f.p.put("\n")
	}
	f.p.put("</tbody></table></div></details>\n")
}

// number is a cell with a value that a script can read.
func number(u string, v float64) markup {
	if math.IsNaN(v) {
		return "<td>unknown"
	}
	return "<td><data value=\"" + markup(strconv.FormatFloat(v, 'g', -1, 64)) + "\">" + text(unit.Format(v, u)) + "</data>"
}

func sameLabels(list []doc.Series) bool {
	return !slices.ContainsFunc(list, func(s doc.Series) bool {
		return len(s.Values) != len(s.Labels) || !slices.Equal(s.Labels, list[0].Labels)
	})
}

// shortName makes a name visible, and shortens it to what the page shows of names.
func shortName(name string) string { return wording.Shorten(Visible(name), longestName) }

// xText formats a label: with its unit if the chart's labels are numbers.
func (f figure) xText(label string) string {
	if f.XUnit != "" {
		if v, err := strconv.ParseFloat(label, 64); err == nil {
			return unit.Format(v, f.XUnit)
		}
	}
	return shortName(label)
}

// shape is an element of a drawing: its attributes by name and value, of which empty ones are left out, and its
// content.
func shape(name, inside markup, attributes ...markup) markup {
	var b builder
	b.put("<" + name)
	for i := 0; i < len(attributes); i += 2 {
		b.put(attr(attributes[i], attributes[i+1]))
	}
	if inside == "" {
		return b.markup() + "/>"
	}
	return b.markup() + ">" + inside + "</" + name + ">"
}

// rule is a vertical line through a row.
func rule(at, class, height markup, attributes ...markup) markup {
	return shape("line", "", append(attributes, "x1", at, "x2", at, "y2", height, "class", class)...)
}

// mark names the series and the value that a shape shows, so that drawings can be checked against the numbers.
func mark(series, value int) markup { return num(series) + "." + num(value) }

// tip is the text shown when a pointer is over a shape.
func tip(s string) markup { return "<title>" + escape(s) + "</title>" }

// muted writes sentences about a drawing below it; nothing if all are empty.
func (f figure) muted(sentences ...string) {
	if words := strings.TrimSpace(strings.Join(sentences, " ")); words != "" {
		f.p.put("<p class=\"muted\">" + text(words) + "</p>\n")
	}
}

// barHeight is the height of a bar, in pixels.
const barHeight = 16

// row draws one row. The label has a line of its own, so that long labels have room on narrow screens.
func (f figure) row(label markup, height int, describe, value string, shapes ...markup) {
	f.p.put("<div class=\"bar\"><span class=\"barlabel\">" + label + "</span><svg width=\"100%\" height=\"" +
		num(height) + "\" role=\"img\" aria-label=\"" + text(describe) + "\">" +
		"<rect width=\"100%\" height=\"100%\" rx=\"2\" class=\"track\"/>")
	for _, s := range shapes {
		f.p.put(s)
	}
	f.p.put("</svg><span class=\"barvalue\">" + text(value) + "</span></div>\n")
}

// rowName is the label of a row. It may be a name from the capture, and is shown literally.
func (f figure) rowName(label string) markup {
	return "<span title=\"" + text(label) + "\">" + text(shortName(label)) + "</span>"
}

// legend explains the colours if there are several names; of gives the colour of the i-th name, as in the drawing.
func (p *page) legend(names []string, of func(i int, name string) markup) {
	if len(names) > 1 {
		p.legendOf(names, of)
	}
}

// legendOf writes a legend for any number of names. Names of one colour share an entry: a launch call delays a step
// both on the path and as idle time.
func (p *page) legendOf(names []string, of func(i int, name string) markup) {
	if len(names) == 0 {
		return
	}
	var colours []markup
	said := map[markup]markup{}
	for i, n := range names {
		colour, name := of(i, n), text(shortName(n))
		if before, ok := said[colour]; ok {
			name = before + ", " + name
		} else {
			colours = append(colours, colour)
		}
		said[colour] = name
	}
	p.put("<ul class=\"legend\">")
	for _, colour := range colours {
		p.put("<li><svg class=\"key\" aria-hidden=\"true\" width=\"12\" height=\"12\"><rect width=\"12\" " +
			"height=\"12\" rx=\"2\" class=\"" + colour + "\"/></svg>" + said[colour] + "</li>")
	}
	p.put("</ul>\n")
}

// byStyle finds the series of a chart whose styles say what each is.
func byStyle(f figure) map[string]doc.Series {
	of := map[string]doc.Series{}
	for _, s := range f.Series {
		of[s.Style] = s
	}
	return of
}

// everyValue is every known value of a chart's series.
func everyValue(list []doc.Series) []float64 {
	all := slices.Concat(lists.Map(list, func(s doc.Series) []float64 { return s.Values })...)
	return slices.DeleteFunc(all, math.IsNaN)
}
