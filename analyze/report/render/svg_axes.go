package render

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// axis maps values to positions between 0 and 1.
type axis struct {
	low, high float64
	log       bool
}

// newAxis spans the values. A linear axis starts at zero if that costs less than half of its length.
func newAxis(log bool, values []float64) axis {
	a := axis{math.Inf(1), math.Inf(-1), log}
	for _, v := range values {
		if log && v <= 0 {
			continue
		}
		a.low, a.high = min(a.low, v), max(a.high, v)
	}
	switch {
	case math.IsInf(a.low, 1):
		a.low, a.high = 0, 1
		if log {
			a.low = 0.1
		}
	case log:
		a.low, a.high = a.low/1.3, a.high*1.3
	case a.low > 0 && a.low < a.high/2, a.low == a.high && a.low > 0:
		a.low = 0
	}
	if a.low == a.high {
		a.high = a.low + 1
	}
	if !log && a.low > 0 { // values that differ by little should look alike
		mid := (a.low + a.high) / 2
		a.low, a.high = min(a.low, mid*(1-axisShare)), max(a.high, mid*(1+axisShare))
	}
	return a
}

// axisShare is how far an axis that does not start at zero extends, at least, to both sides of its middle, as a share
// of it: smaller differences are within most noise floors, and should not fill the height of a drawing.
const axisShare = 0.05

func (a axis) at(v float64) float64 {
	if a.log {
		if v <= 0 {
			return 0
		}
		return math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return (v - a.low) / (a.high - a.low)
}

// ticks returns a few round values inside the axis.
func (a axis) ticks() []float64 {
	var list []float64
	if a.log {
		first, last := math.Ceil(math.Log10(a.low)), math.Floor(math.Log10(a.high))
		step := math.Max(1, math.Ceil((last-first)/5))
		for e := first; e <= last; e += step {
			list = append(list, math.Pow(10, e))
		}
		if len(list) > 1 {
			return list
		}
		return []float64{a.low * 1.3, a.high / 1.3}
	}
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (a.high-a.low)/(step*m) <= 5 {
			step *= m
			break
		}
	}
	for v := math.Ceil(a.low/step) * step; v <= a.high+step*1e-9; v += step {
		list = append(list, v)
	}
	return list
}

// tickTexts formats values of one axis so that different values have different texts.
func tickTexts(u string, values []float64) []string {
	list := make([]string, len(values))
	seen := map[string]bool{}
	for i, v := range values {
		list[i] = unit.Format(v, u)
		seen[list[i]] = true
	}
	if len(seen) == len(values) {
		return list
	}
	s := unit.Common(u, values...)
	for ; s.Decimals < 9; s.Decimals++ {
		clear(seen)
		for _, v := range values {
			seen[s.Format(v)] = true
		}
		if len(seen) == len(values) {
			break
		}
	}
	for i, v := range values {
		list[i] = unit.Join(s.Format(v), s.Symbol)
	}
	return list
}

const plotHeight = 180

// Room for a limit's name, in pixels.
const (
	limitRow   = 13
	limitWidth = 120
)

// frame opens a plot of standard height.
func (p *page) frame(y axis, yUnit, describe string) { p.plot(y, yUnit, plotHeight, "img", describe) }

// stretched draws in a square of [svgScale] that is stretched to its area.
func (p *page) stretched(draw func()) {
	p.put("<svg width=\"100%\" height=\"100%\" viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\">")
	draw()
	p.put("</svg>")
}

// plot draws the vertical axis of a plot and opens its area; the caller draws inside and closes it. role is img, or
// group if it contains links, because an image hides them from screen readers.
func (p *page) plot(y axis, yUnit string, height int, role markup, describe string) {
	p.put("<div class=\"plot\"><svg class=\"yaxis\" width=\"72\" height=\"" + num(height) + "\" aria-hidden=\"true\">")
	var grid builder
	ticks := y.ticks()
	texts := tickTexts(yUnit, ticks)
	for i, v := range ticks {
		at := (1 - y.at(v)) * float64(height)
		p.put("<text x=\"68\" y=\"" + short(min(max(at+4, 10), float64(height)-1)) + "\" text-anchor=\"end\">" +
			text(texts[i]) + "</text><line data-tick=\"" + float(v) + "\" y1=\"" + short(at) + "\" y2=\"" + short(at) + "\"/>")
		grid.put("<line x1=\"0\" x2=\"100%\" y1=\"" + short(at) + "\" y2=\"" + short(at) + "\" class=\"grid\"/>")
	}
	p.put("</svg><svg class=\"area\" width=\"100%\" height=\"" + num(height) + "\" role=\"" + role + "\" aria-label=\"" +
		text(describe) + "\">" + grid.markup())
}

// xTicks writes the ticks of a horizontal axis below the drawing.
func (p *page) xTicks(x axis, u string) {
	p.put("<svg class=\"xaxis\" width=\"100%\" height=\"18\" aria-hidden=\"true\">")
	ticks := x.ticks()
	for i, t := range tickTexts(u, ticks) {
		at := x.at(ticks[i])
		p.put("<text x=\"" + percent(at, 1) + "\" y=\"13\" text-anchor=\"" + anchorAt(at) + "\">" + text(t) + "</text>")
	}
	p.put("</svg>")
}

func (p *page) closeFrame(c doc.Chart, x axis) {
	p.put("</svg>")
	p.xTicks(x, c.XUnit)
	p.put("</div>\n")
	if c.XTitle != "" {
		p.put("<p class=\"muted axis\">" + text(c.XTitle) + "</p>\n")
	}
}

// anchorAt is the alignment of a text below an axis, such that it is not cut off at the ends.
func anchorAt(place float64) markup {
	switch {
	case place < 0.05:
		return "start"
	case place > 0.95:
		return "end"
	}
	return "middle"
}

// xs returns the labels of a series as numbers or, if they are not numbers, their indexes.
func xs(s doc.Series) []float64 {
	list := make([]float64, len(s.Values))
	for i := range list {
		list[i] = float64(i + 1)
		if i < len(s.Labels) {
			if v, err := strconv.ParseFloat(s.Labels[i], 64); err == nil {
				list[i] = v
			}
		}
	}
	return list
}

// lines draws line and scatter charts. A scatter's lines are limits: they are drawn alike and named where they end. Its
// points are numbered, because there may be more of them than colours.
func (p *page) lines(c doc.Chart) {
	log := c.Kind == "scatter"
	var allX, allY []float64
	var names []string
	var classes []markup
	limits := 0
	for _, s := range c.Series {
		allX, allY = append(allX, xs(s)...), append(allY, s.Values...)
		if isLimit(log, s) {
			limits++
			continue
		}
		if !log {
			names, classes = append(names, s.Name), append(classes, ownColour(len(names), s.Name))
			continue
		}
		name, class := strconv.Itoa(len(names)+1)+" "+s.Name, colour(len(names)) // kernels, regardless of their names
		if own, ok := fixed[s.Category]; ok {
			if class = own + " box"; !slices.Contains(classes, class) {
				name = "limited by " + s.Category + ": " + name
			}
		}
		names, classes = append(names, name), append(classes, class)
	}
	x, y := newAxis(log, allX), newAxis(log, allY)
	if !log {
		x = axis{low: allX[0], high: allX[0]}
		for _, v := range allX {
			x.low, x.high = min(x.low, v), max(x.high, v)
		}
		if x.low == x.high {
			x.high++
		}
		room := (x.high - x.low) * dotsEdge // so that no dot is cut off
		x.low, x.high = x.low-room, x.high+room
		room = (y.high - y.low) * 2 * dotsEdge
		if y.high += room; y.low > 0 {
			y.low -= room
		}
	} else if limits > 0 {
		y.high *= 2 // room for the names of limits
	}
	p.frame(y, c.Unit,
		c.Title+": "+strconv.Itoa(len(allY))+" points of "+strconv.Itoa(len(c.Series))+" series; the numbers follow")
	nth := 0
	var labelled []float64 // heights at which limits are named
	for n, s := range c.Series {
		at := xs(s)
		if isLimit(log, s) {
			p.path(n, "limit", at, s.Values, x, y)
			if last := len(at) - 1; last >= 0 {
				level, beside := y.at(s.Values[last]), 0
				for _, other := range labelled {
					if math.Abs(level-other)*plotHeight < limitRow {
						beside++ // two limits of similar height: their names are side by side
					}
				}
				labelled = append(labelled, level)
				p.put("<text class=\"limit\" x=\"" + percent(x.at(at[last]), 1) + "\" dx=\"" + num(-limitWidth*beside) +
					"\" y=\"" + percent(1-level, 1) + "\" dy=\"-4\" text-anchor=\"end\">" +
					text(wording.Shorten(Visible(s.Name), 24)) + "</text>")
			}
			continue
		}
		k := nth
		nth++
		style := s.Style
		if style == "" {
			style = map[bool]string{true: "points", false: "line"}[log]
		}
		if style == "line" && len(at) > 1 {
			p.path(n, "s"+num(k%palette), at, s.Values, x, y)
			continue
		}
		for i, v := range s.Values {
			label := ""
			if i < len(s.Labels) {
				label = p.xText(c, s.Labels[i])
			}
			radius, more := markup("4"), ""
			if s.Share > 0 {
				radius = short(3 + 15*math.Sqrt(min(s.Share, 1)))
			}
			if s.Note != "" {
				more = "; " + strings.TrimPrefix(s.Note, ", ")
			}
			p.put("<circle" + mark(n, i) + " cx=\"" + percent(x.at(at[i]), 1) + "\" cy=\"" + percent(1-y.at(v), 1) +
				"\" r=\"" + radius + "\" class=\"" + classes[k] + "\">" +
				tip(wording.Shorten(Visible(s.Name), 200)+": "+label+", "+unit.Format(v, c.Unit)+more) + "</circle>")
			if log {
				p.put("<text x=\"" + percent(x.at(at[i]), 1) + "\" y=\"" + percent(1-y.at(v), 1) +
					"\" dx=\"7\" dy=\"12\">" + num(k+1) + "</text>")
			}
		}
	}
	p.closeFrame(c, x)
	if !log && y.low > 0 {
		p.put("<p class=\"muted\">" + text("The axis starts at "+unit.Format(y.low, c.Unit)+", not at zero.") + "</p>\n")
	}
	of := func(i int, _ string) markup { return classes[i] }
	if log {
		p.legendOf(names, of)
		return
	}
	p.legend(names, of)
}

// isLimit reports whether a line is a limit, not data.
func isLimit(log bool, s doc.Series) bool { return s.Style == "limit" || log && s.Style == "line" }

// ownColour is the colour of a series that explain named: the fixed colour of its name, if it has one.
func ownColour(i int, name string) markup {
	if class, ok := fixed[name]; ok {
		return class
	}
	return colour(i)
}

// path draws a line through values at their positions.
func (p *page) path(series int, class markup, at, values []float64, x, y axis) {
	var b builder
	for i, v := range values {
		if i > 0 {
			b.put(" ")
		}
		b.put(short(x.at(at[i])*svgScale) + "," + short((1-y.at(v))*svgScale))
	}
	p.stretched(func() {
		p.put("<polyline data-s=\"" + num(series) + "\" points=\"" + b.markup() + "\" class=\"path " + class +
			"\" vector-effect=\"non-scaling-stroke\"/>")
	})
}

// histogram draws columns of equal width, one per bin, regardless of the bins' widths. Several series are drawn over
// each other, each as shares of its own sum.
func (p *page) histogram(c doc.Chart) {
	var names []string
	most, bins := 0.0, 0
	several := len(c.Series) > 1
	sums := make([]float64, len(c.Series))
	for k, s := range c.Series {
		names = append(names, s.Name)
		bins = max(bins, min(len(s.Values), len(s.Labels)))
		sums[k] = 1
		if several {
			sums[k] = 0
			for _, v := range s.Values {
				sums[k] += v
			}
		}
		for _, v := range s.Values {
			most = max(most, v/max(sums[k], 1))
		}
	}
	yUnit := c.Unit
	if several {
		yUnit = report.Ratio
	}
	y := newAxis(false, []float64{0, most})
	p.frame(y, yUnit, c.Title+": "+strconv.Itoa(bins)+" bins; the numbers follow")
	for k, s := range c.Series {
		for i := range min(len(s.Values), len(s.Labels)) {
			v := s.Values[i]
			if v <= 0 {
				continue
			}
			h := y.at(v / max(sums[k], 1))
			p.put("<rect" + mark(k, i) + " x=\"" + percent(float64(i), float64(bins)) + "\" y=\"" + percent(1-h, 1) +
				"\" width=\"" + percent(0.94, float64(bins)) + "\" height=\"" + percent(h, 1) + "\" class=\"" + colour(k) + " over\">" +
				tip(Visible(s.Name)+", from "+p.xText(c, s.Labels[i])+": "+unit.Format(v, c.Unit)) + "</rect>")
		}
	}
	p.put("</svg><svg class=\"xaxis\" width=\"100%\" height=\"18\" aria-hidden=\"true\">")
	step := max(1, (bins+5)/6)
	var edges []float64
	for i, v := range xs(c.Series[0])[:min(bins, len(c.Series[0].Labels))] {
		if i%step == 0 {
			edges = append(edges, v)
		}
	}
	for i, t := range tickTexts(c.XUnit, edges) {
		p.put("<text x=\"" + percent(float64(i*step), float64(bins)) + "\" y=\"13\">" + text(t) + "</text>")
	}
	p.put("</svg></div>\n")
	if c.XTitle != "" {
		p.put("<p class=\"muted axis\">" + text(c.XTitle) + "</p>\n")
	}
	p.legend(names, seriesColour)
}
