package render

import (
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// openBar starts the drawing of one row. The label has a line of its own, so that long labels have room on narrow
// screens.
func (p *page) openBar(label markup, describe string) {
	p.put("<div class=\"bar\"><span class=\"barlabel\">" + label +
		"</span><svg width=\"100%\" height=\"16\" role=\"img\" aria-label=\"" + text(describe) + "\">")
	p.put("<rect width=\"100%\" height=\"16\" rx=\"2\" class=\"track\"/>")
}

func (p *page) closeBar(value string) {
	p.put("</svg><span class=\"barvalue\">" + text(value) + "</span></div>\n")
}

// barName is the label of a bar. A label may be a name from the capture, and is shown literally.
func (p *page) barName(label string) markup {
	return "<span title=\"" + text(label) + "\">" + text(wording.Shorten(Visible(label), p.limit)) + "</span>"
}

// barRow is one label of a bar chart with the index of its value in every series, -1 if a series has none.
type barRow struct {
	label string
	at    []int
}

// barRows returns the labels of all series, each once, in the order in which they first appear. A series may lack
// labels; if it repeats a label, its n-th value belongs to the n-th row of that label.
func barRows(list []doc.Series) []barRow {
	type key struct {
		label string
		nth   int
	}
	var rows []barRow
	index := map[key]int{}
	for k, s := range list {
		nth := map[string]int{}
		for i, l := range s.Labels[:min(len(s.Labels), len(s.Values))] {
			id := key{l, nth[l]}
			nth[l]++
			r, ok := index[id]
			if !ok {
				r = len(rows)
				index[id] = r
				rows = append(rows, barRow{l, slices.Repeat([]int{-1}, len(list))})
			}
			rows[r].at[k] = i
		}
	}
	return rows
}

func (p *page) bars(c doc.Chart) {
	most := 0.0
	names := make([]string, len(c.Series))
	for k, s := range c.Series {
		names[k] = s.Name
		for _, v := range s.Values {
			most = max(most, v)
		}
	}
	p.put("<div class=\"bars\">\n")
	for _, r := range barRows(c.Series) {
		for k, s := range c.Series {
			label := p.barName(r.label)
			if k > 0 {
				label = ""
			}
			name := wording.Shorten(Visible(r.label), p.limit)
			if len(c.Series) > 1 {
				name += ", " + wording.Shorten(Visible(s.Name), p.limit)
			}
			i := r.at[k]
			if i < 0 {
				p.openBar(label, name+": unknown")
				p.closeBar("unknown")
				continue
			}
			class := seriesColour(k, "")
			if len(c.Series) == 1 {
				class = partColour(0, r.label)
			}
			value := unit.Format(s.Values[i], c.Unit)
			p.openBar(label, name+": "+value)
			p.put("<rect" + mark(k, i) + " width=\"" + percent(max(s.Values[i], 0), most) +
				"\" height=\"16\" rx=\"2\" class=\"" + class + "\">" + tip(name+": "+value) + "</rect>")
			p.closeBar(value)
		}
	}
	p.put("</div>\n")
	p.legend(names, seriesColour)
}

// stacked draws a bar of parts for each series. A single bar has the names of its parts in it; its legend only lists
// those for which there is no room.
func (p *page) stacked(c doc.Chart) {
	alone := len(c.Series) == 1
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
	class := markup("bars")
	if alone {
		class += " alone"
	}
	p.put("<div class=\"" + class + "\">\n")
	var small []string
	for k, s := range c.Series {
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
			p.put("<rect" + mark(k, i) + " x=\"" + percent(at, most) + "\" width=\"" + percent(v, most) +
				"\" height=\"16\" class=\"" + partColour(index[s.Labels[i]], s.Labels[i]) + "\">" +
				tip(Visible(s.Labels[i])+": "+unit.Format(v, c.Unit)+", "+unit.Percent(v/sum)) + "</rect>")
			if alone && !p.inBar(Visible(s.Labels[i]), unit.Format(v, c.Unit), at/most, v/most) {
				small = append(small, s.Labels[i])
			}
			at += v
		}
		p.closeBar(unit.Format(sum, c.Unit))
	}
	p.put("</div>\n")
	if alone {
		parts = small
	}
	p.legendOf(parts, func(_ int, name string) markup { return partColour(index[name], name) })
}

// inBar writes the name of a part into its bar, with its value if that fits too in a window of common width; it returns
// false if the name does not fit.
func (p *page) inBar(name, value string, at, share float64) bool {
	for _, words := range []string{name + " " + value, name} {
		if float64(len([]rune(words))) <= inBarRoom*share {
			p.put("<svg x=\"" + percent(at, 1) + "\" width=\"" + percent(share, 1) + "\" height=\"100%\"><text class=\"in\" x=\"6\" y=\"18\">" +
				text(words) + "</text></svg>")
			return true
		}
	}
	return false
}

// inBarRoom is how many characters fit into a bar in a window of common width.
const inBarRoom = 135

// band shades a range of the axis behind a row.
func (p *page) band(b *doc.Band, from, whole float64) {
	if b == nil || whole <= 0 {
		return
	}
	low := max(b.Low, from)
	p.put("<rect x=\"" + percent(low-from, whole) + "\" width=\"" + percent(max(b.High-low, 0), whole) +
		"\" height=\"16\" class=\"band\"/>")
}

// arrow shows the direction of a change, for readers who cannot see its colour.
func arrow(v float64, isChange bool) string {
	switch {
	case !isChange || v == 0:
		return ""
	case v > 0:
		return "▲ "
	}
	return "▼ "
}

// deltas draws changes to both sides of a zero line. Optional second and third series, of styles low and high, are the
// ends of an interval around each change; NaN is unknown.
func (p *page) deltas(c doc.Chart) {
	s := c.Series[0]
	var low, high *doc.Series
	for i := range c.Series[1:] {
		switch e := &c.Series[1+i]; e.Style {
		case "low":
			low = e
		case "high":
			high = e
		}
	}
	least, most := 0.0, 0.0
	for _, e := range c.Series {
		for _, v := range e.Values {
			if !math.IsNaN(v) {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	if c.Band != nil {
		least, most = min(least, c.Band.Low), max(most, c.Band.High)
	}
	whole := most - least
	p.put("<div class=\"bars\">\n")
	for i, l := range s.Labels[:min(len(s.Labels), len(s.Values))] {
		v := s.Values[i]
		value := unit.Delta(v, c.Unit)
		describe := wording.Shorten(Visible(l), p.limit) + ": " + value
		sure := low != nil && high != nil && i < len(low.Values) && i < len(high.Values) &&
			!math.IsNaN(low.Values[i]) && !math.IsNaN(high.Values[i])
		if sure {
			describe += ", interval " + unit.Delta(low.Values[i], c.Unit) + " to " + unit.Delta(high.Values[i], c.Unit)
		}
		p.openBar(p.barName(l), describe)
		p.band(c.Band, least, whole)
		p.put("<rect" + mark(0, i) + " x=\"" + percent(min(v, 0)-least, whole) + "\" width=\"" +
			percent(math.Abs(v), whole) + "\" height=\"16\" class=\"" + deltaClass(s, i) + "\">" + tip(describe) + "</rect>")
		if sure {
			from, to := percent(low.Values[i]-least, whole), percent(high.Values[i]-least, whole)
			p.put("<line" + mark(1, i) + " x1=\"" + from + "\" x2=\"" + to + "\" y1=\"8\" y2=\"8\" class=\"whisker\"/>" +
				"<line x1=\"" + from + "\" x2=\"" + from + "\" y1=\"4\" y2=\"12\" class=\"whisker\"/>" +
				"<line x1=\"" + to + "\" x2=\"" + to + "\" y1=\"4\" y2=\"12\" class=\"whisker\"/>")
		}
		zero := percent(-least, whole)
		p.put("<line x1=\"" + zero + "\" x2=\"" + zero + "\" y2=\"16\" class=\"zero\"/>")
		p.closeBar(arrow(v, true) + value)
	}
	p.put("</div>\n")
	if c.Band != nil {
		p.put("<p class=\"muted\">" + text("Shaded: "+c.Band.Text+".") + "</p>\n")
	}
}

// deltaClass is the colour of a change: that of its tone, else that of its sign.
func deltaClass(s doc.Series, i int) markup {
	if i < len(s.Tones) {
		if class := toneClasses[s.Tones[i]]; class != "" {
			return class
		}
		return colour(grey)
	}
	if s.Values[i] < 0 {
		return "good"
	}
	return "bad"
}

// forestBend is the change up to which the axis of a forest plot is nearly linear; beyond, it is nearly logarithmic, so
// that a change of 2 % and one of 200 % are both visible.
const forestBend = 0.05

// forest draws changes as points on one axis of relative change, each with its interval, the noise floor around zero,
// and the limit of its rule. The series have the styles point, low, high, noise and limit; NaN is unknown.
func (p *page) forest(c doc.Chart) {
	of := map[string]*doc.Series{}
	most := 0.1
	for i := range c.Series {
		s := &c.Series[i]
		of[s.Style] = s
		for _, v := range s.Values {
			if !math.IsNaN(v) {
				most = max(most, math.Abs(v))
			}
		}
	}
	points := of["point"]
	if points == nil {
		return
	}
	end := math.Asinh(most * 1.05 / forestBend)
	place := func(v float64) markup { return percent((math.Asinh(v/forestBend)+end)/2, end) }
	value := func(style string, i int) (float64, bool) {
		s := of[style]
		if s == nil || i >= len(s.Values) || math.IsNaN(s.Values[i]) {
			return 0, false
		}
		return s.Values[i], true
	}
	p.put("<div class=\"bars forest\">\n")
	for i, l := range points.Labels {
		v, ok := value("point", i)
		words := wording.Shorten(Visible(l), p.limit) + ": unknown"
		if ok {
			words = wording.Shorten(Visible(l), p.limit) + ": " + unit.Change(v)
		}
		low, hasLow := value("low", i)
		high, hasHigh := value("high", i)
		noise, hasNoise := value("noise", i)
		limit, hasLimit := value("limit", i)
		if hasLow && hasHigh {
			words += ", interval " + unit.Change(low) + " to " + unit.Change(high)
		}
		if hasNoise {
			words += ", noise floor " + unit.Percent(noise)
		}
		if hasLimit {
			words += ", limit " + unit.Change(limit)
		}
		p.openBar(p.barName(l), words)
		if hasNoise {
			p.put("<svg x=\"" + place(-noise) + "\" width=\"" + percent(math.Asinh(noise/forestBend), end) +
				"\" height=\"16\"><rect width=\"100%\" height=\"100%\" class=\"band\"/></svg>")
		}
		p.put("<line x1=\"50%\" x2=\"50%\" y2=\"16\" class=\"zero\"/>")
		if hasLow && hasHigh {
			p.put("<line" + mark(1, i) + " x1=\"" + place(low) + "\" x2=\"" + place(high) +
				"\" y1=\"8\" y2=\"8\" class=\"whisker\"/>")
		}
		if hasLimit {
			p.put("<line" + mark(2, i) + " x1=\"" + place(limit) + "\" x2=\"" + place(limit) + "\" y2=\"16\" class=\"rule\"/>")
		}
		if ok {
			p.put("<circle" + mark(0, i) + " cx=\"" + place(v) + "\" cy=\"8\" r=\"5\" class=\"" + deltaClass(*points, i) +
				"\">" + tip(words) + "</circle>")
			p.closeBar(arrow(v, true) + unit.Change(v))
			continue
		}
		p.closeBar("unknown")
	}
	p.put("<div class=\"bar\" aria-hidden=\"true\"><span></span><svg width=\"100%\" height=\"16\">")
	for _, v := range []float64{-3, -1, -0.3, -0.1, -0.03, 0, 0.03, 0.1, 0.3, 1, 3, 10} {
		if math.Abs(v) > most {
			continue
		}
		class := markup("")
		if a := math.Abs(v); a == 0.03 || a == 0.3 || a == 3 {
			class = " class=\"roomy\""
		}
		p.put("<text x=\"" + place(v) + "\" y=\"12\" text-anchor=\"" + anchorAt((math.Asinh(v/forestBend)+end)/2/end) + "\"" +
			class + ">" +
			text(strings.Replace(unit.Change(v), ".0 %", " %", 1)) + "</text>")
	}
	p.put("</svg><span></span></div>\n</div>\n<p class=\"muted\">" +
		text("A point is the change that the rule was held to, the line its interval, the shaded part the noise floor, the "+
			"dashed mark the limit of the rule for this base. A rule fails if the point lies beyond both and the interval "+
			"beyond zero. The axis is even up to about 5 %, and bends beyond.") + "</p>\n")
}
