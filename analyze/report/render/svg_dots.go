package render

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Heights of rows, in pixels.
const (
	dotsHeight      = 56
	multiplesHeight = 40
)

// dots draws a row for each series, and in it a dot for each value, placed from left to right. From top to bottom dots
// follow their order, so that a drift shows as a slope. A line marks the median.
func dots(f figure) {
	x := newAxis(false, everyValue(f))
	x = between(x.low, x.high, edge)
	f.openRows("")
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
	f.axisRow(x, f.Unit)
	f.closeRows()
	f.muted("A dot is one unit; from top to bottom in the order in which they ran. The line is the median, which "+
		"stands beside it.", x.notZero(f.Unit))
}

// multiples draws a small histogram for each series, one per row, all on one axis; labels are the starts of the bins.
// The height of a column is relative to the largest one of all rows.
func multiples(f figure) {
	longest := slices.MaxFunc(f.Series, func(a, b doc.Series) int { return len(a.Values) - len(b.Values) })
	at, most := xs(longest), largest(everyValue(f))
	n := float64(len(at))
	x := axis{low: at[0], high: at[0] + stripLength(longest)}
	f.openRows("")
	for k, s := range f.Series {
		var shapes []markup
		for i, v := range s.Values {
			if v <= 0 {
				continue
			}
			h := v / most * multiplesHeight
			shapes = append(shapes, shape("rect", tip("from "+f.xText(s.Labels[i])+": "+unit.Format(v, f.Unit)),
				"data-m", mark(k, i), "x", percent(float64(i), n), "width", percent(1, n),
				"y", short(multiplesHeight-h), "height", short(h), "class", colour(0)))
		}
		f.row(f.rowName(s.Name), multiplesHeight, Visible(s.Name)+": "+s.Note, s.Note, shapes...)
	}
	f.axisRow(x, f.XUnit)
	f.closeRows()
	f.muted(x.notZero(f.XUnit))
}
