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
	// Values of things in sequence: their height shows more than a shade
	if c.Unit != report.Ratio && c.XUnit == "" {
		p.lines(c)
		return
	}
	p.put("<div class=\"bars\">\n")
	marked := false
	for k, s := range c.Series {
		if s.Style == "marks" {
			marked = true
			p.marks(c, k)
			continue
		}
		n := float64(len(s.Values))
		lo, hi := math.Inf(1), math.Inf(-1)
		p.put("<div class=\"bar\"><span class=\"barlabel\">" + p.barName(s.Name) + "</span>")
		var b builder
		for i, v := range s.Values {
			lo, hi = min(lo, v), max(hi, v)
			h := 0.0
			if bottom := min(least, 0); most > bottom { // also if all are equal
				h = (v - bottom) / (most - bottom)
			}
			b.put("V" + short(40-40*h) + "H" + float(math.Round(float64(i+1)/n*svgScale*100)/100))
		}
		p.put("<svg width=\"100%\" height=\"40\" viewBox=\"0 0 1000 40\" preserveAspectRatio=\"none\" " +
			"role=\"img\" aria-label=\"" +
			text(Visible(s.Name)+": from "+unit.Format(lo, c.Unit)+" to "+unit.Format(hi, c.Unit)) +
			"\"><rect width=\"1000\" height=\"40\" class=\"track\"/><path class=\"" + colour(0) + "\" data-s=\"" + num(k) +
			"\" d=\"M0 40" + b.markup() + "V40z\"/></svg>")
		p.put("<span class=\"barvalue\">" + text(unit.Format(lo, c.Unit)+" – "+unit.Format(hi, c.Unit)) +
			"</span></div>\n")
	}
	p.put("</div>\n")
	if s := c.Series[0]; c.XUnit != "" && len(s.Values) > 1 {
		whole, n := stripLength(s), len(s.Values)
		words := "Left to right: " + unit.Format(whole, c.XUnit) + " in " + strconv.Itoa(n) + " slices of " +
			unit.Format(whole/float64(n), c.XUnit) + "; the numbers beside a strip are its lowest and its highest slice."
		if marked {
			words += " The boxes below a strip are its longest gaps, at their places; the number is the share of the longest."
		}
		p.put("<p class=\"muted\">" + text(words) + "</p>\n")
	}
}

// marks draws ranges of the strip above: their starts, and the share of the strip that each takes.
func (p *page) marks(c doc.Chart, series int) {
	s, whole := c.Series[series], stripLength(c.Series[0])
	var words []string
	var b builder
	for i, v := range s.Values {
		at, err := strconv.ParseFloat(s.Labels[i], 64)
		if err != nil || whole <= 0 {
			continue
		}
		word := unit.Format(v, c.Unit) + " from " + p.xText(c, s.Labels[i])
		words = append(words, word)
		b.put("<rect" + mark(series, i) + " x=\"" + percent(at, whole) + "\" width=\"" + percent(v, 1) +
			"\" height=\"10\" class=\"mark thin\">" + tip(word) + "</rect>")
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

// stripLength is the length of a strip of equal steps, computed from their starts.
func stripLength(s doc.Series) float64 {
	at := xs(s)
	n := len(at)
	if n < 2 {
		return 0
	}
	return (at[n-1] - at[0]) * float64(n) / float64(n-1)
}

// heatCap is the quantile of the values at which shades are darkest: otherwise one outlier would make all others pale.
const heatCap = 0.99

// heat draws a grid of shades, one row per series. Values from the 99th percentile on are darkest.
func (p *page) heat(c doc.Chart) {
	var values []float64
	columns := 0
	for _, s := range c.Series {
		columns = max(columns, len(s.Values))
		for _, v := range s.Values {
			if v > 0 {
				values = append(values, v)
			}
		}
	}
	slices.Sort(values)
	most, dark := 0.0, 0.0
	if n := len(values); n > 0 {
		most, dark = values[n-1], values[int(heatCap*float64(n-1))]
	}
	const cell = 14
	height := num(cell * len(c.Series))
	p.put("<div class=\"plot\"><svg class=\"yaxis\" width=\"72\" height=\"" + height + "\" aria-hidden=\"true\">")
	step := max(1, len(c.Series)/20)
	for i, s := range c.Series {
		if i%step == 0 {
			p.put("<text x=\"68\" y=\"" + num(i*cell+11) + "\" text-anchor=\"end\">" +
				text(wording.Shorten(Visible(s.Name), 10)) + "</text>")
		}
	}
	p.put("</svg><svg class=\"area\" width=\"100%\" height=\"" + height + "\" viewBox=\"0 0 1000 " + height +
		"\" preserveAspectRatio=\"none\" " +
		"role=\"img\" aria-label=\"" +
		text(c.Title+": "+strconv.Itoa(len(c.Series))+" rows of "+strconv.Itoa(columns)+", up to "+unit.Format(most,
			c.Unit)) + "\"><rect width=\"1000\" height=\"" + height + "\" class=\"track\"/><g class=\"c0\" data-heat=\"" +
		num(columns) + "\">")
	w := svgScale / float64(max(columns, 1))
	for i, s := range c.Series {
		for k, v := range s.Values {
			if v > 0 {
				p.put("<rect x=\"" + short(float64(k)*w) + "\" y=\"" + num(i*cell) + "\" width=\"" + short(w) +
					"\" height=\"" + num(cell-1) + "\" fill-opacity=\"" + float(math.Round(min(v/dark, 1)*100)/100) + "\"/>")
			}
		}
	}
	p.put("</g></svg>")
	if at := xs(c.Series[0]); c.XUnit != "" && len(at) > 1 {
		x := axis{low: at[0], high: at[0] + stripLength(c.Series[0])}
		p.xTicks(x, c.XUnit)
	}
	words := "A stronger shade is more, in proportion, and the strongest " + unit.Format(dark, c.Unit)
	if most > dark {
		words += " (the 99th percentile) and above, up to " + unit.Format(most, c.Unit)
	}
	if c.XUnit == "" {
		words += ". Columns from left to right: " + rangeOf(p, c)
	}
	p.put("</div>\n<p class=\"muted\">" + text(words+".") + "</p>\n")
}

func rangeOf(p *page, c doc.Chart) string {
	l := c.Series[0].Labels
	if len(l) == 0 {
		return "none"
	}
	return p.xText(c, l[0]) + " to " + p.xText(c, l[len(l)-1])
}
