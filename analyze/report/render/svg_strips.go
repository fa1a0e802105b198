package render

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// stripHeight is the height of a strip, in pixels.
const stripHeight = 40

// strip draws a strip of a height for each series of values over time, and below it its marks.
func strip(f figure) {
	least, most := 0.0, 1.0
	strips := lists.Filter(f.Series, func(s doc.Series) bool { return s.Style != "marks" })
	if f.Unit != report.Ratio {
		values := append(everyValue(strips), 0)
		least, most = slices.Min(values), slices.Max(values)
	}
	f.p.put("<div class=\"bars\">\n")
	for k, s := range f.Series {
		if s.Style == "marks" {
			marks(f, k)
			continue
		}
		if len(s.Values) == 0 {
			continue
		}
		lo, hi := unit.Format(slices.Min(s.Values), f.Unit), unit.Format(slices.Max(s.Values), f.Unit)
		var b builder
		for i, v := range s.Values {
			h := 0.0
			if most > least { // else all are equal
				h = (v - least) / (most - least)
			}
			b.put("V" + short(svgScale-svgScale*h) + "H" + hundredth(float64(i+1)/float64(len(s.Values))*svgScale))
		}
		f.row(f.rowName(s.Name), stripHeight, Visible(s.Name)+": from "+lo+" to "+hi, lo+" – "+hi,
			stretched(shape("path", "", "class", colour(0), "data-s", num(k), "d", "M0 1000"+b.markup()+"V1000z")))
	}
	f.p.put("</div>\n")
	if s := f.Series[0]; f.XUnit != "" && len(s.Values) > 1 {
		whole, n := stripLength(s), len(s.Values)
		words := "Left to right: " + unit.Format(whole, f.XUnit) + " in " + strconv.Itoa(n) + " slices of " +
			unit.Format(whole/float64(n), f.XUnit) + "; the numbers beside a strip are its lowest and its highest slice."
		if len(strips) < len(f.Series) {
			words += " The boxes below a strip are its longest gaps, at their places; the number is the share of the longest."
		}
		f.muted(words)
	}
}

// hundredth formats a position in a stretched drawing.
func hundredth(v float64) markup { return float(math.Round(v*100) / 100) }

// marks are ranges of the strip above: their starts, and the share of the strip that each takes.
func marks(f figure, series int) {
	s, whole := f.Series[series], stripLength(f.Series[0])
	var words []string
	var shapes []markup
	for i, v := range s.Values {
		at, err := strconv.ParseFloat(s.Labels[i], 64)
		if err != nil || whole <= 0 {
			continue
		}
		word := unit.Format(v, f.Unit) + " from " + f.xText(s.Labels[i])
		words = append(words, word)
		shapes = append(shapes, shape("rect", tip(word), "data-m", mark(series, i), "x", percent(at, whole), "width", percent(v, 1),
			"height", "10", "class", "mark thin"))
	}
	most := ""
	if len(s.Values) > 0 {
		most = "up to " + unit.Format(slices.Max(s.Values), f.Unit)
	}
	f.row(f.rowName(s.Name), 10, Visible(s.Name)+": "+strings.Join(words, ", "), most, shapes...)
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
func heat(f figure) {
	columns := lists.Most(f.Series, func(s doc.Series) int { return len(s.Values) })
	values := slices.DeleteFunc(everyValue(f.Series), func(v float64) bool { return v <= 0 })
	slices.Sort(values)
	most, dark := 0.0, 0.0
	if n := len(values); n > 0 {
		most, dark = values[n-1], values[int(heatCap*float64(n-1))]
	}
	const cell = 14
	height, w := num(cell*len(f.Series)), svgScale/float64(max(columns, 1))
	var names, cells builder
	step := max(1, len(f.Series)/20)
	for i, s := range f.Series {
		if i%step == 0 {
			names.put(shape("text", text(wording.Shorten(Visible(s.Name), 10)), "x", "68", "y", num(i*cell+11), "text-anchor", "end"))
		}
		for k, v := range s.Values {
			if v > 0 {
				cells.put(shape("rect", "", "x", short(float64(k)*w), "y", num(i*cell), "width", short(w), "height", num(cell-1),
					"fill-opacity", hundredth(min(v/dark, 1))))
			}
		}
	}
	f.p.put("<div class=\"plot\">" +
		shape("svg", names.markup(), "class", "yaxis", "width", "72", "height", height, "aria-hidden", "true") +
		shape("svg", shape("rect", "", "width", "1000", "height", height, "class", "track")+
			shape("g", cells.markup(), "class", "c0", "data-heat", num(columns)),
			"class", "area", "width", "100%", "height", height, "viewBox", "0 0 1000 "+height, "preserveAspectRatio", "none",
			"role", "img", "aria-label", text(f.Title+": "+strconv.Itoa(len(f.Series))+" rows of "+strconv.Itoa(columns)+
				", up to "+unit.Format(most, f.Unit))))
	if at := xs(f.Series[0]); f.XUnit != "" && len(at) > 1 {
		f.xTicks(axis{low: at[0], high: at[0] + stripLength(f.Series[0])}, f.XUnit)
	}
	f.closePlot("")
	words := "A stronger shade is more, in proportion, and the strongest " + unit.Format(dark, f.Unit)
	if most > dark {
		words += " (the 99th percentile) and above, up to " + unit.Format(most, f.Unit)
	}
	if l := f.Series[0].Labels; f.XUnit == "" && len(l) > 0 {
		words += ". Columns from left to right: " + f.xText(l[0]) + " to " + f.xText(l[len(l)-1])
	}
	f.muted(words + ".")
}
