package render

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// A chart is drawn so that it can be read at any width: horizontal places are percentages, text keeps its size, and
// what needs a path is stretched inside a viewBox of its own. Every chart has its numbers beside it, as a table.

// svgScale is the side of the square that stretched paths are drawn in.
const svgScale = 1000.0

// palette is the number of colours in the style sheet, after Okabe and Ito, told apart by the colour-blind.
const palette = 8

// grey is the colour of what is nothing: idle time, others.
const grey = 6

func colour(i int) markup { return "c" + num(i%palette) }

// partColour is the colour of the i-th part of a whole.
func partColour(i int, name string) markup {
	switch name {
	case "idle", "others", "(others)", "unknown":
		return colour(grey)
	}
	if i >= grey {
		i++
	}
	return colour(i)
}

// chart draws one chart with its legend and its numbers.
func (p *page) chart(c doc.Chart) {
	points := 0
	for _, s := range c.Series {
		points += len(s.Values)
	}
	if points == 0 {
		return
	}
	view := struct {
		blockView
		ID               string
		Drawing, Numbers markup
	}{blockView: blockView{p, c}, ID: p.unique("chart-" + anchor(c.ID))}
	view.Drawing = p.capture(func() { p.draw(c) })
	view.Numbers = p.capture(func() { p.numbers(c) })
	p.execute("figure", view)
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
	case "waterfall":
		p.waterfall(c)
	case "treemap":
		p.treemap(c)
	}
}

// maxNumbers bounds the rows of the table of a chart's numbers.
const maxNumbers = 3000

// numberHead is the head of one column of a chart's numbers.
type numberHead struct {
	Title string
	Right bool
}

// numbers is what the chart shows, as a table: for whoever cannot see it, and for whoever wants to copy it.
func (p *page) numbers(c doc.Chart) {
	view := struct {
		blockView
		Head []numberHead
		Rows markup
	}{blockView: blockView{p, c}}
	if sameLabels(c.Series) {
		view.Head = []numberHead{{Title: Visible(axisTitle(c))}}
		for _, s := range c.Series {
			view.Head = append(view.Head, numberHead{Shorten(Visible(s.Name), p.limit), true})
		}
		view.Rows = p.capture(func() { p.numbersByLabel(c) })
	} else {
		view.Head = []numberHead{{Title: "Series"}, {Title: Visible(axisTitle(c))}, {"Value", true}}
		view.Rows = p.capture(func() { p.numbersBySeries(c) })
	}
	p.execute("numbers", view)
}

func (p *page) numbersByLabel(c doc.Chart) {
	labels := c.Series[0].Labels
	for i, l := range labels[:min(len(labels), maxNumbers)] {
		p.put("<tr><th scope=\"row\">" + text(p.xText(c, l)) + "</th>")
		for _, s := range c.Series {
			p.value(c.Unit, s.Values[i])
		}
		p.put("</tr>\n")
	}
}

func (p *page) numbersBySeries(c doc.Chart) {
	n := 0
	for _, s := range c.Series {
		for i, l := range s.Labels[:min(len(s.Labels), len(s.Values))] {
			if n++; n > maxNumbers {
				return
			}
			p.put("<tr><th scope=\"row\">" + text(Shorten(Visible(s.Name), p.limit)) + "</th><td>" +
				text(p.xText(c, l)) + "</td>")
			p.value(c.Unit, s.Values[i])
			p.put("</tr>\n")
		}
	}
}

func (p *page) value(u string, v float64) {
	p.put("<td class=\"r\"><data value=\"" + markup(strconv.FormatFloat(v, 'g', -1, 64)) + "\">" +
		text(unit.Format(v, u)) + "</data></td>")
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

// xText is a label as text: a number in its unit where the chart's labels are numbers.
func (p *page) xText(c doc.Chart, label string) string {
	if c.XUnit != "" {
		if v, err := strconv.ParseFloat(label, 64); err == nil {
			return unit.Format(v, c.XUnit)
		}
	}
	return Shorten(Visible(label), p.limit)
}

// tip is what a pointer over a shape shows.
func tip(s string) markup { return "<title>" + escape(s) + "</title>" }

// legend says which colour is which; of gives the colour of the i-th name, as the drawing does.
func (p *page) legend(names []string, of func(i int, name string) markup) {
	if len(names) < 2 {
		return
	}
	p.put("<ul class=\"legend\">")
	for i, n := range names {
		p.put("<li><svg class=\"key\" aria-hidden=\"true\" width=\"12\" height=\"12\"><rect width=\"12\" height=\"12\" rx=\"2\" class=\"" +
			of(i, n) + "\"/></svg>" + text(Shorten(Visible(n), p.limit)) + "</li>")
	}
	p.put("</ul>\n")
}

// seriesColour is the colour of the i-th series, whatever it is called.
func seriesColour(i int, _ string) markup { return colour(i) }

// openBar starts the drawing of one row: its label on a line of its own, so that long ones have room on narrow screens.
func (p *page) openBar(label markup, describe string) {
	p.put("<div class=\"bar\"><span class=\"barlabel\">" + label +
		"</span><svg width=\"100%\" height=\"16\" role=\"img\" aria-label=\"" + text(describe) + "\">")
	p.put("<rect width=\"100%\" height=\"16\" rx=\"2\" class=\"track\"/>")
}

func (p *page) closeBar(value string) {
	p.put("</svg><span class=\"barvalue\">" + text(value) + "</span></div>\n")
}

// barName is the label of a bar; names of a capture come in as labels too, and are shown literally.
func (p *page) barName(label string) markup {
	return "<span title=\"" + text(label) + "\">" + text(Shorten(Visible(label), p.limit)) + "</span>"
}

func (p *page) bars(c doc.Chart) {
	most := 0.0
	for _, s := range c.Series {
		for _, v := range s.Values {
			most = max(most, v)
		}
	}
	names := make([]string, len(c.Series))
	for i, s := range c.Series {
		names[i] = s.Name
	}
	p.put("<div class=\"bars\">\n")
	for i, l := range c.Series[0].Labels {
		for k, s := range c.Series {
			if i >= len(s.Values) {
				continue
			}
			label := p.barName(l)
			if k > 0 {
				label = ""
			}
			value := unit.Format(s.Values[i], c.Unit)
			p.openBar(label, Shorten(Visible(l), p.limit)+": "+value)
			p.put("<rect width=\"" + percent(max(s.Values[i], 0), most) + "\" height=\"16\" rx=\"2\" class=\"" +
				colour(k) + "\">" + tip(Visible(l)+": "+value) + "</rect>")
			p.closeBar(value)
		}
	}
	p.put("</div>\n")
	p.legend(names, seriesColour)
}

func (p *page) stacked(c doc.Chart) {
	most := 0.0
	var parts []string
	index := map[string]int{}
	for _, s := range c.Series {
		sum := 0.0
		for i, v := range s.Values {
			sum += max(v, 0)
			if _, ok := index[s.Labels[i]]; !ok {
				index[s.Labels[i]] = len(parts)
				parts = append(parts, s.Labels[i])
			}
		}
		most = max(most, sum)
	}
	p.put("<div class=\"bars\">\n")
	for _, s := range c.Series {
		sum, at := 0.0, 0.0
		var words []string
		for i, v := range s.Values {
			sum += max(v, 0)
			words = append(words, Visible(s.Labels[i])+" "+unit.Format(v, c.Unit))
		}
		p.openBar(p.barName(s.Name), Visible(s.Name)+": "+strings.Join(words, ", "))
		for i, v := range s.Values {
			if v <= 0 {
				continue
			}
			p.put("<rect x=\"" + percent(at, most) + "\" width=\"" + percent(v, most) + "\" height=\"16\" class=\"" +
				partColour(index[s.Labels[i]], s.Labels[i]) + "\">" +
				tip(Visible(s.Labels[i])+": "+unit.Format(v, c.Unit)+", "+unit.Percent(v/sum)) + "</rect>")
			at += v
		}
		p.closeBar(unit.Format(sum, c.Unit))
	}
	p.put("</div>\n")
	p.legend(parts, partColour)
}

func (p *page) waterfall(c doc.Chart) {
	s := c.Series[0]
	n := len(s.Values)
	if n < 2 {
		return
	}
	low, high, at := math.Inf(1), math.Inf(-1), s.Values[0]
	for i, v := range s.Values {
		if i > 0 && i < n-1 {
			at += v
		} else {
			at = v
		}
		low, high = min(low, at), max(high, at)
	}
	// Changes are small beside what they change: the axis starts where they can be seen, and says so.
	from := 0.0
	if span := high - low; low > 0 && span < low/2 {
		from = low - span/2
		if span == 0 {
			from = 0
		}
	}
	whole := high - from
	p.put("<div class=\"bars\">\n")
	at = 0
	for i, v := range s.Values {
		a, b, class := at, at+v, markup("bad")
		value := unit.Delta(v, c.Unit)
		switch {
		case i == 0 || i == n-1:
			a, b, class = from, v, colour(0)
			at, value = v, unit.Format(v, c.Unit)
		default:
			at += v
			if v < 0 {
				class = "good"
			}
		}
		if a > b {
			a, b = b, a
		}
		p.openBar(p.barName(s.Labels[i]), Shorten(Visible(s.Labels[i]), p.limit)+": "+value)
		p.put("<rect x=\"" + percent(a-from, whole) + "\" width=\"" + percent(max(b-a, whole/500), whole) +
			"\" height=\"16\" rx=\"2\" class=\"" + class + "\">" + tip(Visible(s.Labels[i])+": "+value) + "</rect>")
		p.closeBar(value)
	}
	p.put("</div>\n")
	if from > 0 {
		p.put("<p class=\"muted\">The bars start at " + text(unit.Format(from, c.Unit)) + ", not at zero.</p>\n")
	}
}

func (p *page) strip(c doc.Chart) {
	most, least := math.Inf(-1), math.Inf(1)
	for _, s := range c.Series {
		for _, v := range s.Values {
			if s.Style == "marks" {
				break
			}
			most, least = max(most, v), min(least, v)
		}
	}
	if c.Unit == report.Ratio {
		most, least = 1, 0
	}
	// Values of one thing after another: their height tells more than a shade
	if c.Unit != report.Ratio && c.XUnit == "" {
		p.lines(c)
		return
	}
	p.put("<div class=\"bars\">\n")
	marked := false
	for _, s := range c.Series {
		if s.Style == "marks" {
			marked = true
			p.marks(c, s)
			continue
		}
		n := float64(len(s.Values))
		lo, hi := math.Inf(1), math.Inf(-1)
		p.put("<div class=\"bar\"><span class=\"barlabel\">" + p.barName(s.Name) + "</span>")
		var b builder
		for i, v := range s.Values {
			lo, hi = min(lo, v), max(hi, v)
			h := 0.0
			if most > least {
				h = (v - min(least, 0)) / (most - min(least, 0))
			}
			b.put("<rect x=\"" + short(float64(i)/n*svgScale) + "\" y=\"" + short(40-40*h) + "\" width=\"" +
				short(svgScale/n+0.3) + "\" height=\"" + short(40*h) + "\"/>")
		}
		p.put("<svg width=\"100%\" height=\"40\" viewBox=\"0 0 1000 40\" preserveAspectRatio=\"none\" " +
			"role=\"img\" aria-label=\"" +
			text(Visible(s.Name)+": from "+unit.Format(lo, c.Unit)+" to "+unit.Format(hi, c.Unit)) +
			"\"><rect width=\"1000\" height=\"40\" class=\"track\"/><g class=\"" + colour(0) + "\">" + b.markup() +
			"</g></svg>")
		p.put("<span class=\"barvalue\">" + text(unit.Format(lo, c.Unit)+" – "+unit.Format(hi, c.Unit)) +
			"</span></div>\n")
	}
	p.put("</div>\n")
	if l := c.Series[0].Labels; c.XUnit != "" && len(l) > 1 {
		words := "From " + p.xText(c, l[0]) + " to " + p.xText(c, l[len(l)-1]) + ", " + strconv.Itoa(len(l)) + " steps."
		if marked {
			words += " The boxes below a strip are its longest gaps, as shares of it."
		}
		p.put("<p class=\"muted\">" + text(words) + "</p>\n")
	}
}

// marks draws stretches of the strip above: where they start, and the share of the strip that each takes.
func (p *page) marks(c doc.Chart, s doc.Series) {
	whole := stripLength(c.Series[0])
	var words []string
	var b builder
	for i, v := range s.Values {
		at, err := strconv.ParseFloat(s.Labels[i], 64)
		if err != nil || whole <= 0 {
			continue
		}
		word := unit.Format(v, c.Unit) + " from " + p.xText(c, s.Labels[i])
		words = append(words, word)
		b.put("<rect x=\"" + percent(at, whole) + "\" width=\"" + percent(max(v, 0.003), 1) +
			"\" height=\"10\" class=\"mark\">" + tip(word) + "</rect>")
	}
	p.put("<div class=\"bar\"><span class=\"barlabel muted\">" + p.barName(s.Name) +
		"</span><svg width=\"100%\" height=\"10\" role=\"img\" aria-label=\"" +
		text(Visible(s.Name)+": "+strings.Join(words, ", ")) + "\">" + b.markup() + "</svg>")
	most := ""
	if len(s.Values) > 0 {
		most = "up to " + unit.Format(slices.Max(s.Values), c.Unit)
	}
	p.put("<span class=\"barvalue\">" + text(most) + "</span></div>\n")
}

// stripLength is the length of a strip of equal steps, from where they start.
func stripLength(s doc.Series) float64 {
	at := xs(s)
	n := len(at)
	if n < 2 {
		return 0
	}
	return (at[n-1] - at[0]) * float64(n) / float64(n-1)
}

// heat is a grid of shades, one row per series.
func (p *page) heat(c doc.Chart) {
	most, columns := 0.0, 0
	for _, s := range c.Series {
		columns = max(columns, len(s.Values))
		for _, v := range s.Values {
			most = max(most, v)
		}
	}
	const cell = 14
	height := num(cell * len(c.Series))
	p.put("<div class=\"plot\"><svg class=\"yaxis\" width=\"72\" height=\"" + height + "\" aria-hidden=\"true\">")
	step := max(1, len(c.Series)/20)
	for i, s := range c.Series {
		if i%step == 0 {
			p.put("<text x=\"68\" y=\"" + num(i*cell+11) + "\" text-anchor=\"end\">" +
				text(Shorten(Visible(s.Name), 10)) + "</text>")
		}
	}
	p.put("</svg><svg class=\"area\" width=\"100%\" height=\"" + height + "\" viewBox=\"0 0 1000 " + height +
		"\" preserveAspectRatio=\"none\" " +
		"role=\"img\" aria-label=\"" +
		text(c.Title+": "+strconv.Itoa(len(c.Series))+" rows of "+strconv.Itoa(columns)+", up to "+unit.Format(most,
			c.Unit)) + "\"><rect width=\"1000\" height=\"" + height + "\" class=\"track\"/><g class=\"c1\">")
	w := svgScale / float64(max(columns, 1))
	for i, s := range c.Series {
		for k, v := range s.Values {
			if v <= 0 || most == 0 {
				continue
			}
			p.put("<rect x=\"" + short(float64(k)*w) + "\" y=\"" + num(i*cell) + "\" width=\"" + short(w) +
				"\" height=\"" + num(cell-1) + "\" fill-opacity=\"" +
				float(math.Max(0.05, math.Round(v/most*100)/100)) + "\"/>")
		}
	}
	p.put("</g></svg></div>\n<p class=\"muted\">" +
		text("Darker is more; the darkest is "+unit.Format(most, c.Unit)+". Columns from left to right: "+rangeOf(p,
			c)+".") + "</p>\n")
}

func rangeOf(p *page, c doc.Chart) string {
	l := c.Series[0].Labels
	if len(l) == 0 {
		return "none"
	}
	return p.xText(c, l[0]) + " to " + p.xText(c, l[len(l)-1])
}

// flame draws an icicle chart: a box hangs below the box that contains it.
func (p *page) flame(c doc.Chart) {
	const row = 20
	depth, whole := 0.0, 0.0
	for _, s := range c.Series {
		if len(s.Values) == 4 {
			depth, whole = max(depth, s.Values[0]), max(whole, s.Values[1]+s.Values[2])
		}
	}
	height := num((int(depth) + 1) * row)
	p.put("<svg class=\"flame\" width=\"100%\" height=\"" + height + "\" role=\"img\" aria-label=\"" + text(c.Title) +
		"\">")
	for i, s := range c.Series {
		if len(s.Values) != 4 || s.Values[2] <= 0 {
			continue
		}
		d, start, total, self := s.Values[0], s.Values[1], s.Values[2], s.Values[3]
		name := Visible(s.Name)
		width := percent(total, whole)
		p.put("<svg x=\"" + percent(start, whole) + "\" y=\"" + num(int(d)*row) + "\" width=\"" + width +
			"\" height=\"" + num(row-1) + "\"><rect width=\"100%\" height=\"100%\" class=\"" + colour(i) + " box\">" +
			tip(name+": "+unit.Format(total, c.Unit)+", of its own "+unit.Format(self, c.Unit)) + "</rect>")
		if total > whole/40 {
			p.put("<text x=\"4\" y=\"14\">" + text(Shorten(name, 40)) + "</text>")
		}
		p.put("</svg>")
	}
	p.put("</svg>\n")
}
