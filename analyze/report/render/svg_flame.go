package render

import (
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// flame draws an icicle chart: a box hangs below the box that contains it.
func (p *page) flame(c doc.Chart) {
	const row = 20
	depth, whole := 0.0, 0.0
	for _, s := range c.Series {
		if len(s.Values) == 4 {
			depth, whole = max(depth, s.Values[0]), max(whole, s.Values[1]+s.Values[2])
		}
	}
	height := num((int(depth) + 1) * row)
	p.put("<svg class=\"flame\" width=\"100%\" height=\"" + height + "\" role=\"img\" aria-label=\"" + text(c.Title) +
		"\">")
	for i, s := range c.Series {
		if len(s.Values) != 4 || s.Values[2] <= 0 {
			continue
		}
		d, start, total, self := s.Values[0], s.Values[1], s.Values[2], s.Values[3]
		name := Visible(s.Name)
		width := percent(total, whole)
		p.put("<svg x=\"" + percent(start, whole) + "\" y=\"" + num(int(d)*row) + "\" width=\"" + width +
			"\" height=\"" + num(row-1) + "\"><rect" + mark(i, 2) + " width=\"100%\" height=\"100%\" class=\"" +
			flameColour(s) + " box\">" + tip(name+": "+unit.Format(total, c.Unit)+", of its own "+unit.Format(self, c.Unit)) +
			"</rect>")
		if total > whole/40 {
			p.put("<text x=\"4\" y=\"14\">" + text(Shorten(name, 40)) + "</text>")
		}
		p.put("</svg>")
	}
	p.put("</svg>\n")
}

// flameColour is the colour of a box: a range of the capture has no colour of its own, whatever it is called, and a
// kernel has that of its category.
func flameColour(s doc.Series) markup {
	switch class, ok := fixed[s.Category]; {
	case ok:
		return class
	case s.Category != "":
		return "k-unknown"
	}
	return "range"
}
