package render

import (
	"math"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// trendHeight is the height of a trend, in pixels.
const trendHeight = 240

// trend draws nights from left to right, by series with these styles: points are dots, each in its tone, with its text
// and a link to its report; level is a step line, with the noise on both sides shaded; change and border are vertical
// lines at their nights with text beside them. All series except the last two have a value for every night.
func (p *page) trend(c doc.Chart) {
	of := map[string]*doc.Series{}
	var all []float64
	for i := range c.Series {
		s := &c.Series[i]
		of[s.Style] = s
		all = append(all, s.Values...)
	}
	points, level := of["points"], of["level"]
	if points == nil || level == nil {
		return
	}
	n := float64(len(points.Values))
	y := newAxis(false, all)
	room := (y.high - y.low) * dotsEdge * 4 // so that no dot is cut off, and marks have room for their text
	y.low, y.high = max(y.low-room, 0), y.high+3*room
	x := func(i int) float64 { return (float64(i) + 0.5) / n }
	p.plot(y, c.Unit, trendHeight, "group", c.Title+": "+unit.Int(int64(n))+" nights; the numbers follow")
	p.stretched(func() {
		if c.Band != nil {
			p.put("<path class=\"band\" d=\"" + steps(level.Values, 1+c.Band.High, y, true) + steps(level.Values, 1+c.Band.Low, y, false) + "z\"/>")
		}
		p.put("<path data-level=\"\" class=\"path level\" vector-effect=\"non-scaling-stroke\" d=\"" + steps(level.Values, 1, y, true) + "\"/>")
	})
	for _, style := range []string{"border", "change"} {
		s := of[style]
		if s == nil {
			continue
		}
		for k, at := range xs(*s) {
			left, anchor, away := (at-1)/n, markup("start"), markup("6")
			if left > 0.6 {
				anchor, away = "end", "-6"
			}
			row := num(12 + 15*(k%3))
			if style == "border" {
				row = num(trendHeight - 6 - 15*(k%3))
			}
			p.put("<line class=\"" + markup(style) + "\" x1=\"" + percent(left, 1) + "\" x2=\"" + percent(left, 1) +
				"\" y2=\"100%\"/><text class=\"" + markup(style) + "\" x=\"" + percent(left, 1) + "\" dx=\"" + away + "\" y=\"" + row +
				"\" text-anchor=\"" + anchor + "\">" + text(wording.Shorten(Visible(s.Words[k]), p.limit)) + "</text>")
		}
	}
	for i, v := range points.Values {
		class := markup("night")
		if i < len(points.Tones) && toneClasses[points.Tones[i]] != "" {
			class += " " + toneClasses[points.Tones[i]]
		}
		dot := "<circle" + mark(0, i) + " cx=\"" + percent(x(i), 1) + "\" cy=\"" + short((1-y.at(v))*trendHeight) + "\" r=\"4\" class=\"" +
			class + "\">" + tip(points.Words[i]) + "</circle>"
		if dest, ok := safeDest(points.Links[i]); ok && dest != "" {
			dot = "<a href=\"" + escape(dest) + "\" tabindex=\"-1\" aria-hidden=\"true\">" + dot + "</a>" // keyboard users find the link in the table of nights
		}
		p.put(dot)
	}
	p.put("</svg><svg class=\"xaxis\" width=\"100%\" height=\"18\" aria-hidden=\"true\">")
	every := max(1, (len(points.Labels)+6)/7)
	for i := 0; i < len(points.Labels); i += every {
		var class markup
		if i/every%3 != 0 { // a phone only has room for every third date
			class = " class=\"roomy\""
		}
		p.put("<text" + class + " x=\"" + percent(x(i), 1) + "\" y=\"13\" text-anchor=\"" + anchorAt(x(i)) + "\">" + text(points.Labels[i]) + "</text>")
	}
	p.put("</svg></div>\n")
	words := "A dot is a night; the line is the level, the shaded part its noise."
	if c.Band != nil {
		words = "A dot is a night; the line is the level, shaded: " + c.Band.Text + "."
	}
	if y.low > 0 {
		words += " The axis starts at " + unit.Format(y.low, c.Unit) + ", not at zero."
	}
	p.put("<p class=\"muted\">" + text(words) + "</p>\n")
}

// steps is the path of a line that is constant over each night, at factor times its value, from left to right or back.
func steps(values []float64, factor float64, y axis, right bool) markup {
	var b builder
	n := len(values)
	for k := range n {
		i, from, to := k, k, k+1
		if !right {
			i, from, to = n-1-k, n-k, n-1-k
		}
		at := short((1 - y.at(values[i]*factor)) * svgScale)
		move := markup("L")
		if k == 0 && right {
			move = "M"
		}
		b.put(move + float(math.Round(float64(from)/float64(n)*svgScale*100)/100) + " " + at + "H" +
			float(math.Round(float64(to)/float64(n)*svgScale*100)/100))
	}
	return b.markup()
}
