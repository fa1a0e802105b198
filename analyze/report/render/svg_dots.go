package render

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// dotsEdge is the share of the axis that is left free at each end.
const dotsEdge = 0.01

// dotsHeight is the height of a row of dots, in pixels.
const dotsHeight = 56

// dots draws a row for each series, and in it a dot for each value, placed from left to right. From top to bottom dots
// follow their order, so that a drift shows as a slope. A line marks the median.
func (p *page) dots(c doc.Chart) {
	var all []float64
	for _, s := range c.Series {
		all = append(all, s.Values...)
	}
	x := newAxis(false, all)
	edge := (x.high - x.low) * dotsEdge // so that no dot is cut off
	x.low, x.high = x.low-edge, x.high+edge
	p.put("<div class=\"bars\">\n")
	for k, s := range c.Series {
		if len(s.Values) == 0 {
			continue
		}
		sorted := slices.Sorted(slices.Values(s.Values))
		n := len(sorted)
		median := (sorted[(n-1)/2] + sorted[n/2]) / 2
		words := unit.Int(int64(n)) + " from " + unit.Format(sorted[0], c.Unit) + " to " + unit.Format(sorted[n-1], c.Unit) +
			", median " + unit.Format(median, c.Unit)
		p.put("<div class=\"bar\"><span class=\"barlabel\">" + p.barName(s.Name) + "</span><svg width=\"100%\" height=\"" +
			num(dotsHeight) + "\" role=\"img\" aria-label=\"" + text(Visible(s.Name)+": "+words) +
			"\"><rect width=\"100%\" height=\"100%\" rx=\"2\" class=\"track\"/>")
		at := percent(x.at(median), 1)
		p.put("<line x1=\"" + at + "\" x2=\"" + at + "\" y2=\"100%\" class=\"median\"/>")
		for i, v := range s.Values {
			y := 6 + (dotsHeight-12)*(float64(i)+0.5)/float64(n)
			p.put("<circle" + mark(k, i) + " cx=\"" + percent(x.at(v), 1) + "\" cy=\"" + short(math.Round(y*10)/10) +
				"\" r=\"3.5\" class=\"" + sideColour(k, s.Style) + " over\">" + tip(s.Labels[i]+": "+unit.Format(v, c.Unit)) +
				"</circle>")
		}
		p.closeBar(unit.Format(median, c.Unit))
	}
	p.put("<div class=\"bar\" aria-hidden=\"true\"><span></span>")
	p.xTicks(x, c.Unit)
	words := "A dot is one unit; from top to bottom in the order in which they ran. The line is the median, which stands beside it."
	if x.low > 0 {
		words += " The axis starts at " + unit.Format(x.low, c.Unit) + ", not at zero."
	}
	p.put("<span></span></div>\n</div>\n<p class=\"muted\">" + text(words) + "</p>\n")
}

// sideColour is the colour of a side of a comparison; other rows take the next of the palette.
func sideColour(i int, side string) markup {
	switch side {
	case "base":
		return "side-base"
	case "head":
		return "side-head"
	}
	return colour(i)
}
