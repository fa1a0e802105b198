package render

import (
	"cmp"
	"math"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// forestBend is the change up to which the axis of a forest plot is nearly linear; beyond, it is nearly logarithmic, so
// that a change of 2 % and one of 200 % are both visible.
const forestBend = 0.05

// forest draws changes as points on one axis of relative change, each with its interval, the noise floor around zero,
// and the limit of its rule. The series have the styles point, low, high, noise and limit; NaN is unknown.
func forest(f figure) {
	of, most := byStyle(f), max(0.1, lists.Most(everyValue(f.Series), math.Abs))
	points, unknown := of["point"], math.NaN()
	if len(points.Values) == 0 {
		return
	}
	end := math.Asinh(most * 1.05 / forestBend)
	share := func(v float64) float64 { return (math.Asinh(v/forestBend) + end) / 2 / end }
	place := func(v float64) markup { return percent(share(v), 1) }
	f.p.put("<div class=\"bars forest\">\n")
	for i, v := range points.Values[:min(len(points.Values), len(points.Labels))] {
		label, value := points.Labels[i], unit.Change(v)
		low, high := lists.Nth(of["low"].Values, i, unknown), lists.Nth(of["high"].Values, i, unknown)
		noise, limit := lists.Nth(of["noise"].Values, i, unknown), lists.Nth(of["limit"].Values, i, unknown)
		class := cmp.Or(toneClasses[lists.Nth(points.Tones, i, doc.Plain)], colour(grey))
		words, shapes := shortName(label)+": "+value, rule("50%", "zero", num(barHeight))
		if !math.IsNaN(low + high) {
			words += ", interval " + unit.Change(low) + " to " + unit.Change(high)
			shapes += shape("line", "", "data-m", mark(1, i), "x1", place(low), "x2", place(high), "y1", "8", "y2", "8", "class", "whisker")
		}
		if !math.IsNaN(noise) {
			words += ", noise floor " + unit.Percent(noise)
			shapes = shape("rect", "", "x", place(-noise), "width", percent(math.Asinh(noise/forestBend), end),
				"height", num(barHeight), "class", "band") + shapes
		}
		if !math.IsNaN(limit) {
			words += ", limit " + unit.Change(limit)
			shapes += rule(place(limit), "rule", num(barHeight), "data-m", mark(2, i))
		}
		shapes += shape("circle", tip(words), "data-m", mark(0, i), "cx", place(v), "cy", "8", "r", "5", "class", class)
		f.row(f.rowName(label), barHeight, words, value, shapes)
	}
	f.p.put("<div class=\"bar\" aria-hidden=\"true\"><span></span><svg width=\"100%\" height=\"16\">")
	for _, v := range []float64{-3, -1, -0.3, -0.1, -0.03, 0, 0.03, 0.1, 0.3, 1, 3, 10} {
		class := markup("")
		if a := math.Abs(v); a > most {
			continue
		} else if a == 0.03 || a == 0.3 || a == 3 {
			class = "roomy"
		}
		f.p.put(shape("text", text(strings.Replace(unit.Change(v), ".0 %", " %", 1)), "x", place(v), "y", "12",
			"text-anchor", anchorAt(share(v)), "class", class))
	}
	f.p.put("</svg><span></span></div>\n</div>\n")
	f.muted("A point is the change that the rule was held to, the line its interval, the shaded part the noise floor, the " +
		"dashed mark the limit of the rule for this base. A rule fails if the point lies beyond both and the interval " +
		"beyond zero. The axis is even up to about 5 %, and bends beyond.")
}
