package render

import (
	"math"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// trendHeight is the height of a trend, in pixels.
const trendHeight = 240

// trend draws nights from left to right, by series with these styles: points are dots, each in its tone, with its text
// and a link to its report; level is a step line, with the noise on both sides shaded; change and border are vertical
// lines at their nights with text beside them. All series except the last two have a value for every night.
func trend(f figure) {
	of := byStyle(f)
	points, level := of["points"], of["level"]
	if len(points.Values) == 0 {
		return
	}
	n := float64(len(points.Values))
	y := newAxis(false, everyValue(f.Series))
	room := (y.high - y.low) * edge * 4 // so that no dot is cut off, and marks have room for their text
	y.low, y.high = max(y.low-room, 0), y.high+3*room
	x := func(i int) float64 { return (float64(i) + 0.5) / n }
	f.plot(y, trendHeight, "group", f.Title+": "+unit.Int(int64(n))+" nights; the numbers follow")
	words := "A dot is a night; the line is the level, the shaded part its noise."
	paths := shape("path", "", "data-level", "level", "class", "path level", "vector-effect", "non-scaling-stroke",
		"d", steps(level.Values, 1, y, true))
	if f.Noise > 0 {
		words = "A dot is a night; the line is the level, shaded: two standard deviations of the noise to both sides."
		paths = shape("path", "", "class", "band", "d", steps(level.Values, math.Exp(2*f.Noise), y, true)+
			steps(level.Values, math.Exp(-2*f.Noise), y, false)+"z") + paths
	}
	f.p.put(stretched(paths))
	for _, style := range []string{"border", "change"} {
		s := of[style]
		for k, at := range xs(s) {
			left, anchor, away := (at-1)/n, markup("start"), markup("6")
			if left > 0.6 {
				anchor, away = "end", "-6"
			}
			row := num(12 + 15*(k%3))
			if style == "border" {
				row = num(trendHeight - 6 - 15*(k%3))
			}
			words := text(shortName(lists.Nth(s.Words, k, "")))
			f.p.put(rule(percent(left, 1), markup(style), "100%") + shape("text", words, "class", markup(style),
				"x", percent(left, 1), "dx", away, "y", row, "text-anchor", anchor))
		}
	}
	for i, v := range points.Values {
		class := markup("night")
		if tone := toneClasses[lists.Nth(points.Tones, i, doc.Plain)]; tone != "" {
			class += " " + tone
		}
		dot := shape("circle", tip(Visible(lists.Nth(points.Words, i, ""))), "data-m", mark(0, i), "cx", percent(x(i), 1),
			"cy", short((1-y.at(v))*trendHeight), "r", "4", "class", class)
		// keyboard users find the link in the table of nights
		if dest, ok := safeDest(lists.Nth(points.Links, i, "")); ok {
			dot = shape("a", dot, "href", escape(dest), "tabindex", "-1", "aria-hidden", "true")
		}
		f.p.put(dot)
	}
	f.p.put("</svg><svg class=\"xaxis\" width=\"100%\" height=\"18\" aria-hidden=\"true\">")
	every := max(1, (len(points.Labels)+6)/7)
	for i := 0; i < len(points.Labels); i += every {
		class := markup("")
		if i/every%3 != 0 { // a phone only has room for every third date
			class = "roomy"
		}
		f.p.put(shape("text", text(points.Labels[i]), "class", class, "x", percent(x(i), 1), "y", "13", "text-anchor", anchorAt(x(i))))
	}
	f.p.put("</svg>")
	f.closePlot("")
	f.muted(words, y.notZero(f.Unit))
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
		b.put(move + hundredth(float64(from)/float64(n)*svgScale) + " " + at + "H" + hundredth(float64(to)/float64(n)*svgScale))
	}
	return b.markup()
}
