package render

import (
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// arrow shows the direction of a change, for readers who cannot see its colour.
func arrow(v float64) string {
	switch {
	case v > 0:
		return "▲ "
	case v < 0:
		return "▼ "
	}
	return ""
}

// valueOf is a value of a series of a chart; NaN if it has none.
func valueOf(s *doc.Series, i int) float64 {
	if s == nil || i >= len(s.Values) {
		return math.NaN()
	}
	return s.Values[i]
}

// deltas draws changes to both sides of a zero line. Optional second and third series, of styles low and high, are the
// ends of an interval around each change; NaN is unknown.
func deltas(f figure) {
	s, of := f.Series[0], byStyle(f)
	values := append(everyValue(f), 0)
	if f.Band != nil {
		values = append(values, f.Band.Low, f.Band.High)
	}
	least := slices.Min(values)
	whole := slices.Max(values) - least
	place := func(v float64) markup { return percent(v-least, whole) }
	f.openRows("")
	for i, l := range s.Labels[:min(len(s.Labels), len(s.Values))] {
		v, low, high := s.Values[i], valueOf(of["low"], i), valueOf(of["high"], i)
		value := unit.Delta(v, f.Unit)
		words, sure := shortName(l)+": "+value, !math.IsNaN(low+high)
		if sure {
			words += ", interval " + unit.Delta(low, f.Unit) + " to " + unit.Delta(high, f.Unit)
		}
		shapes := shape("rect", tip(words), "data-m", mark(0, i), "x", place(min(v, 0)),
			"width", percent(math.Abs(v), whole), "height", num(barHeight), "class", deltaClass(s, i))
		if f.Band != nil {
			shapes = shape("rect", "", "x", place(f.Band.Low), "width", percent(f.Band.High-f.Band.Low, whole),
				"height", num(barHeight), "class", "band") + shapes
		}
		if sure {
			shapes += whisker(i, place(low), place(high)) +
				rule(place(low), "whisker", "12", "y1", "4") + rule(place(high), "whisker", "12", "y1", "4")
		}
		f.row(f.rowName(l), barHeight, words, arrow(v)+value, shapes, rule(place(0), "zero", num(barHeight)))
	}
	f.closeRows()
	if f.Band != nil {
		f.muted("Shaded: " + f.Band.Text + ".")
	}
}

// whisker is the line of an interval.
func whisker(i int, low, high markup) markup {
	return shape("line", "", "data-m", mark(1, i), "x1", low, "x2", high, "y1", "8", "y2", "8", "class", "whisker")
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
func forest(f figure) {
	of, most := byStyle(f), max(0.1, lists.Most(everyValue(f), math.Abs))
	points := of["point"]
	if points == nil {
		return
	}
	end := math.Asinh(most * 1.05 / forestBend)
	share := func(v float64) float64 { return (math.Asinh(v/forestBend) + end) / 2 / end }
	place := func(v float64) markup { return percent(share(v), 1) }
	f.openRows(" forest")
	for i, l := range points.Labels {
		v, low, high := valueOf(points, i), valueOf(of["low"], i), valueOf(of["high"], i)
		noise, limit := valueOf(of["noise"], i), valueOf(of["limit"], i)
		value := "unknown"
		if !math.IsNaN(v) {
			value = unit.Change(v)
		}
		words, shapes := shortName(l)+": "+value, rule("50%", "zero", num(barHeight))
		if !math.IsNaN(low + high) {
			words += ", interval " + unit.Change(low) + " to " + unit.Change(high)
			shapes += whisker(i, place(low), place(high))
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
		if !math.IsNaN(v) {
			shapes += shape("circle", tip(words), "data-m", mark(0, i), "cx", place(v), "cy", "8", "r", "5",
				"class", deltaClass(*points, i))
		}
		f.row(f.rowName(l), barHeight, words, arrow(v)+value, shapes)
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
	f.p.put("</svg><span></span></div>\n")
	f.closeRows()
	f.muted("A point is the change that the rule was held to, the line its interval, the shaded part the noise floor, the " +
		"dashed mark the limit of the rule for this base. A rule fails if the point lies beyond both and the interval " +
		"beyond zero. The axis is even up to about 5 %, and bends beyond.")
}
