package render

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
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
	strokeRoom = longAxis / 1000 // in which small marks are one stroke
)

type timeline struct {
	p *page
	*doc.Timeline
	least float64 // the smallest length of marks that are drawn individually
}

// drawTimeline draws lanes below each other, with their axis on top. Positions are percentages, so that it can be read
// at any width and the script can widen it.
func drawTimeline(p *page, d *doc.Timeline) {
	marks := slices.Concat(lists.Map(d.Lanes, func(l doc.Lane) []doc.Mark { return l.Marks })...)
	lengths := lists.Map(marks, func(m doc.Mark) float64 { return m.Length })
	if !(d.Length > 0) || len(lengths) == 0 {
		return
	}
	t := timeline{p, d, leastMark * d.Length}
	if len(lengths) > mostMarks {
		slices.Sort(lengths)
		t.least = max(t.least, lengths[len(lengths)-1-mostMarks])
	}
	height := axisRow
	var words []string
	for _, l := range d.Lanes {
		height += laneHeight(&l)
		if len(l.Joins) == 0 {
			words = append(words, Visible(l.Title)+", "+strconv.Itoa(len(l.Marks)))
		}
	}
	p.put("<figure class=\"step\" id=\"" + p.unique("step-"+anchor(d.ID)) + "\"><figcaption>" + text(d.Title) +
		"</figcaption>\n<div class=\"wide\"><svg width=\"100%\" height=\"" + num(height) + "\" data-length=\"" + float(d.Length) +
		"\" role=\"img\" aria-label=\"" + text(d.Title+": lanes with their marks: "+strings.Join(words, "; ")+
		"; from 0 to "+unit.Format(d.Length, d.Unit)) + "\">")
	t.axis(height)
	top := axisRow
	for i := range d.Lanes {
		t.lane(&d.Lanes[i], top)
		top += laneHeight(&d.Lanes[i])
	}
	p.put("</svg></div>\n")
	t.labelList()
	used := lists.Set(marks, func(m doc.Mark) string { return m.Colour })
	maps.DeleteFunc(used, func(name string, _ bool) bool { return fixed[name] == "" })
	p.legend(slices.Sorted(maps.Keys(used)), partColour)
	if len(d.Note) > 0 {
		p.around("<p class=\"muted\">", d.Note, "</p>\n")
	}
	p.put("</figure>\n")
}

// labelled are the marks of a lane with a label; those beyond the bound have none.
func labelled(l *doc.Lane) []doc.Mark {
	list := lists.Filter(l.Marks, func(m doc.Mark) bool { return m.Label != "" })
	return list[:min(len(list), maxLabels)]
}

func laneHeight(l *doc.Lane) int {
	if len(l.Joins) > 0 {
		return joinRow
	}
	return laneHead + max(l.Rows, 1)*laneRow + 4 + labelRow*len(labelled(l))
}

func (t timeline) at(v float64) markup { return percent(v, t.Length) }

func (t timeline) axis(height int) {
	ticks := axis{low: 0, high: t.Length}.ticks()
	texts := tickTexts(t.Unit, ticks)
	for i, v := range ticks {
		class := markup("tick")
		if v == 0 {
			texts[i] = "0"
		}
		if i%2 == 1 {
			class = "tick roomy"
		}
		t.p.put(rule(t.at(v), "grid", num(height), "y1", num(axisRow-4)) +
			shape("text", text(texts[i]), "class", class, "x", t.at(v), "y", "11",
				"text-anchor", anchorAt(v/t.Length)))
	}
}

func (t timeline) lane(l *doc.Lane, top int) {
	if len(l.Joins) > 0 {
		t.p.put("<g class=\"join\">")
		for _, j := range l.Joins {
			t.p.put(shape("line", "", "x1", t.at(j.From), "y1", num(top), "x2", t.at(j.To), "y2", num(top+joinRow)))
		}
		t.p.put("</g>")
		return
	}
	t.p.put(shape("text", text(shortName(l.Title)), "class", "lane", "x", "0", "y", num(top+12)))
	for _, m := range l.Marks {
		if m.Length >= t.least {
			t.mark(&m, top+laneHead+m.Row*laneRow)
		}
	}
	height := max(l.Rows, 1) * laneRow
	small := lists.Filter(l.Marks, func(m doc.Mark) bool { return m.Length < t.least })
	for _, same := range lists.Groups(small, func(m doc.Mark) markup { return markColour(m.Colour) }) {
		var s strokes
		for _, m := range same {
			s.add(&m, t.Length)
		}
		t.p.put(shape("svg", shape("path", "", "class", markColour(same[0].Colour), "d", s.end()),
			"y", num(top+laneHead), "width", "100%", "height", num(height), "viewBox", "0 0 10000 "+num(height),
			"preserveAspectRatio", "none"))
	}
	t.labels(l, top+laneHead+height)
}

// strokes are the small marks of a lane in one colour. Those of a row that begin in the same thousandth of the axis are
// one stroke, as long as their sum.
type strokes struct {
	path          builder
	row           int
	start, length float64 // of the stroke at hand, of [longAxis]
}

func (s *strokes) add(m *doc.Mark, axis float64) {
	start := m.Start / axis * longAxis
	if s.length == 0 || m.Row != s.row || math.Floor(start/strokeRoom) != math.Floor(s.start/strokeRoom) {
		s.end()
		s.row, s.start = m.Row, start
	}
	s.length += m.Length / axis * longAxis
}

// end draws the stroke at hand, and returns the path so far.
func (s *strokes) end() markup {
	if s.length > 0 {
		width := short(max(s.length, 0.1))
		s.path.put("M" + num(int(math.Round(s.start))) + " " + num(s.row*laneRow) + "h" + width + "v" + num(laneRow-2) + "h-" + width + "z")
	}
	s.length = 0
	return s.path.markup()
}

// mark draws an individual mark, with the text shown when a pointer is over it.
func (t timeline) mark(m *doc.Mark, y int) {
	class := markColour(m.Colour)
	name := wording.Shorten(Visible(m.Name), markName)
	words := unit.Format(m.Length, t.Unit) + " at " + unit.Format(m.Start, t.Unit) + ", " + unit.Percent(m.Length/t.Length)
	if m.Text != "" {
		words += "; " + Visible(m.Text)
	}
	if name != "" {
		words = name + ": " + words
	}
	if m.Length >= edgedMark*t.Length {
		class += " edge"
	}
	left, width := t.at(m.Start), t.at(m.Length) // the style sheet sets the height
	t.p.put(shape("rect", tip(words), "x", left, "y", num(y), "width", width, "class", class))
	if m.Length >= namedMark*t.Length && name != "" {
		t.p.put(shape("svg", shape("text", escape(wording.Shorten(name, 36)), "class", "in roomy", "x", "3", "y", "12"),
			"x", left, "y", num(y), "width", width, "height", num(laneRow-2)))
	}
}

// labels draws the labels below their lane, one per line, with a stroke up to their marks.
func (t timeline) labels(l *doc.Lane, y int) {
	toLeft := func(m doc.Mark) bool {
		return (m.Start+m.Length/2)/t.Length > labelShare*float64(len([]rune(m.Label)))
	}
	left := lists.Filter(labelled(l), toLeft)
	right := slices.DeleteFunc(labelled(l), toLeft)
	// In this order no stroke crosses a label to its left, and few cross one to its right.
	slices.Reverse(right)
	var texts builder
	for n, m := range append(right, left...) {
		at, anchor, away := t.at(m.Start+m.Length/2), markup("start"), markup("4")
		if n >= len(right) {
			anchor, away = "end", "-4"
		}
		line := num(y + 12 + n*labelRow)
		t.p.put(rule(at, "lead", line, "y1", num(y-2)))
		texts.put(shape("text", text(m.Label), "class", "label", "x", at, "dx", away, "y", line, "text-anchor", anchor))
	}
	t.p.put(texts.markup())
}

// labelList writes the labels as a list, for windows too narrow to draw them.
func (t timeline) labelList() {
	var b builder
	for i := range t.Lanes {
		for _, m := range labelled(&t.Lanes[i]) {
			b.put("<li>" + text(m.Label) + "</li>")
		}
	}
	if list := b.markup(); list != "" {
		t.p.put("<ul class=\"labels\">" + list + "</ul>\n")
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
	return fixedOr(name, "range")
}
