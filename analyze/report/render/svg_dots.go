package render

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/unit"
)

// dotsHeight is the height of a row, in pixels.
const dotsHeight = 56

// dots draws a row for each series, and in it a dot for each value, placed from left to right. From top to bottom dots
// follow their order, so that a drift shows as a slope. A line marks the median.
func dots(f figure) {
	x := newAxis(false, everyValue(f.Series))
	x = between(x.low, x.high, edge)
	f.p.put("<div class=\"bars\">\n")
	for k, s := range f.Series {
		if len(s.Values) == 0 {
			continue
		}
		sorted := slices.Sorted(slices.Values(s.Values))
		n := len(sorted)
		median := (sorted[(n-1)/2] + sorted[n/2]) / 2
		shapes := []markup{rule(percent(x.at(median), 1), "median", "100%")}
		for i, v := range s.Values {
			shapes = append(shapes, shape("circle", tip(s.Labels[i]+": "+unit.Format(v, f.Unit)), "data-m", mark(k, i),
				"cx", percent(x.at(v), 1), "cy", short(6+(dotsHeight-12)*(float64(i)+0.5)/float64(n)), "r", "3.5",
				"class", cmp.Or(sides[s.Style], colour(k))+" over"))
		}
		f.row(f.rowName(s.Name), dotsHeight, Visible(s.Name)+": "+unit.Int(n)+" from "+unit.Format(sorted[0], f.Unit)+
			" to "+unit.Format(sorted[n-1], f.Unit)+", median "+unit.Format(median, f.Unit),
			unit.Format(median, f.Unit), shapes...)
	}
	f.p.put("<div class=\"bar\" aria-hidden=\"true\"><span></span>")
	f.xTicks(x, f.Unit)
	f.p.put("<span></span></div>\n</div>\n")
	f.muted("A dot is one unit; from top to bottom in the order in which they ran. The line is the median, which "+
		"stands beside it.", x.notZero(f.Unit))
}
