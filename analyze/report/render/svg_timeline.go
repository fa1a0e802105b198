package render

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// Sizes and limits of a timeline. The shortest marks beyond mostMarks, and those too short to point at, are drawn as
// one path per colour, without labels.
const (
	laneRow    = 18
	laneHead   = 16
	joinRow    = 30
	labelRow   = 14
	mostMarks  = 110
	leastMark  = 0.0005 // of the axis
	namedMark  = 0.07   // of the axis: least length of a mark that shows its name
	edgedMark  = 0.005  // likewise, of a mark with an edge
	labelShare = 0.0075 // of the axis: width of a label's character, in a window wide enough for labels
	maxLabels  = 5
	axisRow    = 18
	markName   = 60 // characters of a name
	longAxis   = 10_000.0
)

// timeline draws lanes below each other, with their axis on top. Positions are percentages, so that it can be read at
// any width and the script can widen it.
func (p *page) timeline(t doc.Timeline) {
	marks := 0
	for i := range t.Lanes {
		marks += len(t.Lanes[i].Marks)
	}
	if !(t.Length > 0) || marks == 0 {
		return
	}
	least := leastShown(&t)
	height, tops := axisRow, make([]int, len(t.Lanes))
	for i := range t.Lanes {
		tops[i] = height
		height += laneHeight(&t.Lanes[i])
	}
	p.put("<figure class=\"step\" id=\"" + p.unique("step-"+anchor(t.ID)) + "\"><figcaption>" + text(t.Title) +
		"</figcaption>\n<div class=\"wide\"><svg width=\"100%\" height=\"" + num(height) + "\" data-length=\"" + float(t.Length) +
		"\" role=\"img\" aria-label=\"" + text(t.Title+": "+describeLanes(&t)) + "\">")
	p.timelineAxis(&t, height)
	for i := range t.Lanes {
		p.lane(&t, &t.Lanes[i], tops[i], least)
	}
	p.put("</svg></div>\n")
	p.labelList(&t)
	p.legend(t.Legend, partColour)
	if len(t.Note) > 0 {
		p.put("<p class=\"muted\">")
		p.spans(t.Note)
		p.put("</p>\n")
	}
	p.put("</figure>\n")
}

// leastShown is the smallest length of marks that are drawn individually.
func leastShown(t *doc.Timeline) float64 {
	var lengths []float64
	for i := range t.Lanes {
		for k := range t.Lanes[i].Marks {
			lengths = append(lengths, t.Lanes[i].Marks[k].Length)
		}
	}
	least := leastMark * t.Length
	if len(lengths) > mostMarks {
		slices.SortFunc(lengths, func(a, b float64) int { return cmp.Compare(b, a) })
		least = max(least, lengths[mostMarks])
	}
	return least
}

func laneHeight(l *doc.Lane) int {
	if len(l.Joins) > 0 {
		return joinRow
	}
	h := laneHead + max(l.Rows, 1)*laneRow + 4
	if slices.ContainsFunc(l.Marks, func(m doc.Mark) bool { return m.Label != "" }) {
		h += labelRow * labelLines(l)
	}
	return h
}

// labelLines is the number of labels of a lane; each has its own line.
func labelLines(l *doc.Lane) (n int) {
	for i := range l.Marks {
		if l.Marks[i].Label != "" {
			n++
		}
	}
	return min(n, maxLabels)
}

func describeLanes(t *doc.Timeline) string {
	words := make([]string, 0, len(t.Lanes))
	for i := range t.Lanes {
		if l := &t.Lanes[i]; len(l.Joins) == 0 {
			words = append(words, Visible(l.Title)+", "+strconv.Itoa(len(l.Marks)))
		}
	}
	return "lanes with their marks: " + strings.Join(words, "; ") + "; from 0 to " + unit.Format(t.Length, t.Unit)
}

func (p *page) timelineAxis(t *doc.Timeline, height int) {
	x := axis{low: 0, high: t.Length}
	ticks := x.ticks()
	texts := tickTexts(t.Unit, ticks)
	for i, v := range ticks {
		at := percent(v, t.Length)
		p.put("<line class=\"grid\" x1=\"" + at + "\" x2=\"" + at + "\" y1=\"" + num(axisRow-4) + "\" y2=\"" + num(height) +
			"\"/>")
		anchor, class := markup("middle"), markup(" class=\"tick\"")
		if v == 0 {
			texts[i] = "0"
		}
		switch share := v / t.Length; {
		case share < 0.03:
			anchor = "start"
		case share > 0.95:
			anchor = "end"
		}
		if i%2 == 1 {
			class = " class=\"tick roomy\""
		}
		p.put("<text" + class + " x=\"" + at + "\" y=\"11\" text-anchor=\"" + anchor + "\">" + text(texts[i]) + "</text>")
	}
}

func (p *page) lane(t *doc.Timeline, l *doc.Lane, top int, least float64) {
	if len(l.Joins) > 0 {
		p.put("<g class=\"join\">")
		for _, j := range l.Joins {
			p.put("<line x1=\"" + percent(j.From, t.Length) + "\" y1=\"" + num(top) + "\" x2=\"" + percent(j.To, t.Length) +
				"\" y2=\"" + num(top+joinRow) + "\"/>")
		}
		p.put("</g>")
		return
	}
	p.put("<text class=\"lane\" x=\"0\" y=\"" + num(top+12) + "\">" + text(wording.Shorten(Visible(l.Title), p.limit)) + "</text>")
	small := map[markup]*builder{}
	var colours []markup
	for i := range l.Marks {
		m := &l.Marks[i]
		class := markColour(m.Colour)
		y := top + laneHead + m.Row*laneRow
		if m.Length < least {
			if small[class] == nil {
				small[class] = &builder{}
				colours = append(colours, class)
			}
			width := short(max(m.Length/t.Length*longAxis, 0.1)) // its own length: many of them would look like much
			small[class].put("M" + num(int(math.Round(m.Start/t.Length*longAxis))) + " " + num(y-top-laneHead) + "h" + width + "v" +
				num(laneRow-2) + "h-" + width + "z")
			continue
		}
		p.mark(t, m, y, class)
	}
	height := max(l.Rows, 1) * laneRow
	for _, class := range colours {
		p.put("<svg y=\"" + num(top+laneHead) + "\" width=\"100%\" height=\"" + num(height) + "\" viewBox=\"0 0 10000 " +
			num(height) + "\" preserveAspectRatio=\"none\"><path class=\"" + class + "\" d=\"" + small[class].markup() + "\"/></svg>")
	}
	p.labels(t, l, top+laneHead+height)
}

// mark draws an individual mark, with the text shown when a pointer is over it.
func (p *page) mark(t *doc.Timeline, m *doc.Mark, y int, class markup) {
	name := wording.Shorten(Visible(m.Name), markName)
	words := unit.Format(m.Length, t.Unit) + " at " + unit.Format(m.Start, t.Unit) + ", " + unit.Percent(m.Length/t.Length)
	if m.Text != "" {
		words += "; " + m.Text
	}
	if name != "" {
		words = name + ": " + words
	}
	if m.Length >= edgedMark*t.Length {
		class += " edge"
	}
	p.put("<rect x=\"" + percent(m.Start, t.Length) + "\" y=\"" + num(y) + "\" width=\"" + percent(m.Length, t.Length) +
		"\" class=\"" + class + "\">" + tip(words) + "</rect>") // the style sheet sets the height
	if m.Length >= namedMark*t.Length && name != "" {
		p.put("<svg x=\"" + percent(m.Start, t.Length) + "\" y=\"" + num(y) + "\" width=\"" + percent(m.Length, t.Length) +
			"\" height=\"" + num(laneRow-2) + "\"><text class=\"in roomy\" x=\"3\" y=\"12\">" + escape(wording.Shorten(name, 36)) +
			"</text></svg>")
	}
}

// labels draws the labels below their lane, one per line, with a stroke up to their marks.
func (p *page) labels(t *doc.Timeline, l *doc.Lane, y int) {
	var left, right []*doc.Mark // marks with a stroke to the left or right
	for i := range l.Marks {
		switch m := &l.Marks[i]; {
		case m.Label == "" || len(left)+len(right) == maxLabels:
		case (m.Start+m.Length/2)/t.Length > labelShare*float64(len([]rune(m.Label))):
			left = append(left, m)
		default:
			right = append(right, m)
		}
	}
	// In this order no stroke crosses a label to its left, and few cross one to its right.
	slices.Reverse(right)
	var texts builder
	for n, m := range append(right, left...) {
		at, anchor, away := percent(m.Start+m.Length/2, t.Length), markup("start"), markup("4")
		if n >= len(right) {
			anchor, away = "end", "-4"
		}
		line := num(y + 12 + n*labelRow)
		p.put("<line class=\"lead\" x1=\"" + at + "\" x2=\"" + at + "\" y1=\"" + num(y-2) + "\" y2=\"" + line + "\"/>")
		texts.put("<text class=\"label\" x=\"" + at + "\" dx=\"" + away + "\" y=\"" + line + "\" text-anchor=\"" + anchor +
			"\">" + text(m.Label) + "</text>")
	}
	p.put(texts.markup())
}

// labelList writes the labels as a list, for windows too narrow to draw them.
func (p *page) labelList(t *doc.Timeline) {
	var b builder
	for i := range t.Lanes {
		n := 0
		for k := range t.Lanes[i].Marks {
			if m := &t.Lanes[i].Marks[k]; m.Label != "" && n < maxLabels {
				b.put("<li>" + text(m.Label) + "</li>")
				n++
			}
		}
	}
	if list := b.markup(); list != "" {
		p.put("<ul class=\"labels\">" + list + "</ul>\n")
	}
}

// markColour is the colour of a mark: its fixed one, good or bad, or that of a range.
func markColour(name string) markup {
	switch name {
	case "good":
		return "good"
	case "bad":
		return "bad"
	}
	if class, ok := fixed[name]; ok {
		return class
	}
	return "range"
}
