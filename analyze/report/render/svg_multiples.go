package render

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// multiplesHeight is the height of a row, in pixels.
const multiplesHeight = 40

// multiples draws a small histogram for each series, one per row, all on one axis; labels are the starts of the bins.
// The height of a column is relative to the largest one of all rows.
func (p *page) multiples(c doc.Chart) {
	at, most := xs(c.Series[0]), 0.0
	for _, s := range c.Series {
		most = max(most, slices.Max(s.Values))
	}
	n := float64(len(at))
	x := axis{low: at[0], high: at[0] + stripLength(c.Series[0])}
	p.put("<div class=\"bars\">\n")
	for k, s := range c.Series {
		p.put("<div class=\"bar\"><span class=\"barlabel\">" + p.barName(s.Name) + "</span><svg width=\"100%\" height=\"" +
			num(multiplesHeight) + "\" role=\"img\" aria-label=\"" + text(Visible(s.Name)+": "+s.Note) +
			"\"><rect width=\"100%\" height=\"100%\" class=\"track\"/>")
		for i, v := range s.Values {
			if v > 0 {
				h := v / most * multiplesHeight
				p.put("<rect" + mark(k, i) + " x=\"" + percent(float64(i), n) + "\" width=\"" + percent(1, n) + "\" y=\"" +
					short(multiplesHeight-h) + "\" height=\"" + short(h) + "\" class=\"" + colour(0) + "\">" +
					tip("from "+p.xText(c, s.Labels[i])+": "+unit.Format(v, c.Unit)) + "</rect>")
			}
		}
		p.closeBar(s.Note)
	}
	p.put("<div class=\"bar\" aria-hidden=\"true\"><span></span>")
	p.xTicks(x, c.XUnit)
	p.put("<span></span></div>\n</div>\n")
	if x.low > 0 {
		p.put("<p class=\"muted\">" + text("The axis starts at "+unit.Format(x.low, c.XUnit)+", not at zero.") + "</p>\n")
	}
}
