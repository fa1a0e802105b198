package render

import (
	"math"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// A chart is drawn so that it can be read at any width: horizontal positions are percentages, text keeps its size, and
// paths are stretched inside a viewBox of their own. Every chart has a table of its numbers.

// svgScale is the side of the square in which stretched paths are drawn.
const svgScale = 1000.0

// chart draws one chart with its legend and its numbers.
func (p *page) chart(c doc.Chart) {
	points := 0
	for _, s := range c.Series {
		points += len(s.Values)
	}
	if points == 0 {
		return
	}
	p.put("<figure class=\"chart\" id=\"" + p.unique("chart-"+anchor(c.ID)) + "\" data-kind=\"" + text(c.Kind) +
		"\"><figcaption>" + text(c.Title) + "</figcaption>\n")
	p.draw(c)
	p.numbers(c)
	p.put("</figure>\n")
}

func (p *page) draw(c doc.Chart) {
	switch c.Kind {
	case "bar":
		p.bars(c)
	case "stacked":
		p.stacked(c)
	case "histogram":
		p.histogram(c)
	case "strip":
		p.strip(c)
	case "line", "scatter":
		p.lines(c)
	case "heat":
		p.heat(c)
	case "flame":
		p.flame(c)
	case "deltas":
		p.deltas(c)
	case "dots":
		p.dots(c)
	case "forest":
		p.forest(c)
	case "trend":
		p.trend(c)
	case "multiples":
		p.multiples(c)
	}
}

// maxNumbers bounds the rows of the table of a chart's numbers.
const maxNumbers = 3000

// numbers writes the chart's values as a table: for readers who cannot see the chart, and for copying.
func (p *page) numbers(c doc.Chart) {
	axis := doc.Column{Title: axisTitle(c)}
	head, rows := []doc.Column{{Title: "Series"}, axis, {Title: "Value", Align: doc.Right}}, p.numbersBySeries
	if c.Kind == "flame" {
		head, rows = doc.Cols("Box", ">Depth", ">Start", ">Total", ">Self"), p.numbersOfFlame
		if len(c.Series[0].Values) == changeValues {
			head = doc.Cols("Box", ">Depth", ">Start", ">Width", ">Base", ">Head")
		}
	} else if sameLabels(c.Series) {
		head, rows = []doc.Column{axis}, p.numbersByLabel
		for _, s := range c.Series {
			head = append(head, doc.Column{Title: wording.Shorten(Visible(s.Name), p.limit), Align: doc.Right})
		}
	}
	p.put("<details class=\"numbers\"><summary>Numbers of this chart</summary>")
	p.openTable("Numbers: "+c.Title, "")
	p.tableHead(head)
	p.put("<tbody>\n")
	rows(c)
	p.put("</tbody></table></div></details>\n")
}

// numbersOfFlame writes a row for each box.
func (p *page) numbersOfFlame(c doc.Chart) {
	for _, s := range c.Series[:min(len(c.Series), maxNumbers)] {
		p.put("<tr><td>" + text(wording.Shorten(Visible(s.Name), p.limit)))
		for i, v := range s.Values {
			u := c.Unit
			if i == 0 {
				u = report.Count
			}
			p.value(u, v)
		}
		p.put("\n")
	}
}

func (p *page) numbersByLabel(c doc.Chart) {
	labels := c.Series[0].Labels
	for i, l := range labels[:min(len(labels), maxNumbers)] {
		p.put("<tr><td>" + text(p.xText(c, l)))
		for _, s := range c.Series {
			p.value(c.Unit, s.Values[i])
		}
		p.put("\n")
	}
}

func (p *page) numbersBySeries(c doc.Chart) {
	n := 0
	for _, s := range c.Series {
		for i, l := range s.Labels[:min(len(s.Labels), len(s.Values))] {
			if n++; n > maxNumbers {
				return
			}
			p.put("<tr><td>" + text(wording.Shorten(Visible(s.Name), p.limit)) + "<td>" + text(p.xText(c, l)))
			p.value(c.Unit, s.Values[i])
			p.put("\n")
		}
	}
}

func (p *page) value(u string, v float64) {
	if math.IsNaN(v) {
		p.put("<td>unknown")
		return
	}
	p.put("<td><data value=\"" + markup(strconv.FormatFloat(v, 'g', -1, 64)) + "\">" + text(unit.Format(v, u)) + "</data>")
}

func axisTitle(c doc.Chart) string {
	if c.XTitle != "" {
		return c.XTitle
	}
	if c.XUnit == report.Nanoseconds {
		return "Time"
	}
	return "Part"
}

func sameLabels(list []doc.Series) bool {
	for _, s := range list[1:] {
		if len(s.Labels) != len(list[0].Labels) {
			return false
		}
		for i, l := range s.Labels {
			if l != list[0].Labels[i] {
				return false
			}
		}
	}
	for _, s := range list {
		if len(s.Values) != len(s.Labels) {
			return false
		}
	}
	return true
}

// xText formats a label: with its unit if the chart's labels are numbers.
func (p *page) xText(c doc.Chart, label string) string {
	if c.XUnit != "" {
		if v, err := strconv.ParseFloat(label, 64); err == nil {
			return unit.Format(v, c.XUnit)
		}
	}
	return wording.Shorten(Visible(label), p.limit)
}

// mark states the series and the value that a shape shows, so that drawings can be checked against the numbers.
func mark(series, value int) markup { return " data-m=\"" + num(series) + "." + num(value) + "\"" }

// tip is the text shown when a pointer is over a shape.
func tip(s string) markup { return "<title>" + escape(s) + "</title>" }

// legend explains the colours if there are several names; of gives the colour of the i-th name, as in the drawing.
func (p *page) legend(names []string, of func(i int, name string) markup) {
	if len(names) > 1 {
		p.legendOf(names, of)
	}
}

// legendOf writes a legend for any number of names.
func (p *page) legendOf(names []string, of func(i int, name string) markup) {
	if len(names) == 0 {
		return
	}
	p.put("<ul class=\"legend\">")
	var colours []markup
	said := map[markup]markup{} // names of one colour share an entry: a launch call delays a step both on the path and as idle time
	for i, n := range names {
		colour, name := of(i, n), text(wording.Shorten(Visible(n), p.limit))
		if before, ok := said[colour]; ok {
			name = before + ", " + name
		} else {
			colours = append(colours, colour)
		}
		said[colour] = name
	}
	for _, colour := range colours {
		p.put("<li><svg class=\"key\" aria-hidden=\"true\" width=\"12\" height=\"12\"><rect width=\"12\" " +
			"height=\"12\" rx=\"2\" class=\"" + colour + "\"/></svg>" + said[colour] + "</li>")
	}
	p.put("</ul>\n")
}
