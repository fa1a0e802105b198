package render

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// treemapHeight is in pixels; widths follow the window.
const treemapHeight = 320

// treemapRatio is the width over the height that areas are cut for; a page is wider or narrower than that, and the
// areas stay true whatever it is.
const treemapRatio = 2.5

// treemapWidth is what a page gives a treemap on a common screen, and letter the mean width of a letter of its
// labels, both in pixels: a label is shortened to what there is room for.
const (
	treemapWidth = 1050
	letter       = 7.8
)

// box is a part of an area, in shares of its width and height.
type box struct{ x, y, w, h float64 }

// leaf is one area of a treemap.
type leaf struct {
	label string
	value float64
	class markup
	of    string // series
	mark  markup
}

// treemap draws an area for each value, those of a series together and in one colour.
func (p *page) treemap(c doc.Chart) {
	var groups [][]leaf
	var names []string
	var sums []float64
	whole := 0.0
	for i, s := range c.Series {
		var list []leaf
		sum := 0.0
		for k := range min(len(s.Values), len(s.Labels)) {
			if v := s.Values[k]; v > 0 {
				list = append(list, leaf{s.Labels[k], v, partColour(i, s.Name), s.Name, mark(i, k)})
				sum += v
			}
		}
		names = append(names, s.Name)
		groups, sums = append(groups, list), append(sums, sum)
		whole += sum
	}
	if whole <= 0 {
		return
	}
	height := num(treemapHeight)
	p.put("<svg class=\"treemap\" width=\"100%\" height=\"" + height + "\" role=\"img\" aria-label=\"" +
		text(c.Title+": "+strconv.Itoa(len(names))+" groups; the numbers follow") + "\">")
	split(sums, box{0, 0, 1, 1}, func(i int, at box) {
		values := make([]float64, len(groups[i]))
		for k, l := range groups[i] {
			values[k] = l.value
		}
		split(values, at, func(k int, at box) { p.leaf(groups[i][k], at, whole, c.Unit) })
	})
	p.put("</svg>\n")
	p.legend(names, func(i int, name string) markup { return partColour(i, name) + " box" })
}

// split cuts an area for each value, in order: into halves of about equal weight across the longer side, and those
// again.
func split(values []float64, at box, draw func(i int, at box)) {
	var cut func(lo, hi int, at box)
	cut = func(lo, hi int, at box) {
		sum := 0.0
		for _, v := range values[lo:hi] {
			sum += v
		}
		if sum <= 0 {
			return
		}
		if hi-lo == 1 {
			draw(lo, at)
			return
		}
		mid, first := lo+1, values[lo]
		for mid < hi-1 && first+values[mid]/2 <= sum/2 {
			first += values[mid]
			mid++
		}
		a, b := at, at
		if at.w*treemapRatio >= at.h {
			a.w = at.w * first / sum
			b.x, b.w = at.x+a.w, at.w-a.w
		} else {
			a.h = at.h * first / sum
			b.y, b.h = at.y+a.h, at.h-a.h
		}
		cut(lo, mid, a)
		cut(mid, hi, b)
	}
	if len(values) > 0 {
		cut(0, len(values), at)
	}
}

// leaf draws one area, with its name where there is room for one.
func (p *page) leaf(l leaf, at box, whole float64, u string) {
	name := Visible(l.label)
	p.put("<svg x=\"" + percent(at.x, 1) + "\" y=\"" + percent(at.y, 1) + "\" width=\"" + percent(at.w, 1) +
		"\" height=\"" + percent(at.h, 1) + "\"><rect" + l.mark + " width=\"100%\" height=\"100%\" class=\"" +
		l.class + " box\">" + tip(name+" ("+Visible(l.of)+"): "+unit.Format(l.value, u)+", "+unit.Percent(l.value/whole)) +
		"</rect>")
	if high := at.h * treemapHeight; at.w > 0.06 && high > 17 {
		class := markup("")
		if at.w < 0.24 {
			class = " class=\"roomy\""
		}
		p.put("<text x=\"5\" y=\"15\"" + class + ">" + text(wording.Shorten(name, min(48, int(at.w*treemapWidth/letter)))) +
			"</text>")
		if high > 34 {
			p.put("<text x=\"5\" y=\"30\"" + class + ">" + text(unit.Percent(l.value/whole)) + "</text>")
		}
	}
	p.put("</svg>")
}
