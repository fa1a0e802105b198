package render

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// axis maps values to positions between 0 and 1.
type axis struct {
	low, high float64
	log       bool
}

// newAxis spans the values. A linear axis starts at zero if that costs less than half of its length.
func newAxis(log bool, values []float64) axis {
	a := axis{math.Inf(1), math.Inf(-1), log}
	for _, v := range values {
		if log && v <= 0 {
			continue
		}
		a.low, a.high = min(a.low, v), max(a.high, v)
	}
	switch {
	case math.IsInf(a.low, 1):
		a.low, a.high = 0, 1
		if log {
			a.low = 0.1
		}
	case log:
		a.low, a.high = a.low/1.3, a.high*1.3
	case a.low > 0 && a.low < a.high/2, a.low == a.high && a.low > 0:
		a.low = 0
	}
	if a.low == a.high {
		a.high = a.low + 1
	}
	if !log && a.low > 0 { // values that differ by little should look alike
		mid := (a.low + a.high) / 2
		a.low, a.high = min(a.low, mid*(1-axisShare)), max(a.high, mid*(1+axisShare))
	}
	return a
}

// axisShare is how far an axis that does not start at zero extends, at least, to both sides of its middle, as a share
// of it: smaller differences are within most noise floors, and should not fill the height of a drawing.
const axisShare = 0.05

func (a axis) at(v float64) float64 {
	if a.log {
		if v <= 0 {
			return 0
		}
		return math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return (v - a.low) / (a.high - a.low)
}

// mostTicks bounds the ticks of an axis whose numbers are so large that a step is nothing to them, or endless. Others
// have at most six.
const mostTicks = 7

// ticks returns a few round values inside the axis.
func (a axis) ticks() []float64 {
	var list []float64
	if a.log {
		first, last := math.Ceil(math.Log10(a.low)), math.Floor(math.Log10(a.high))
		step := math.Max(1, math.Ceil((last-first)/5))
		for e := first; e <= last && len(list) < mostTicks; e += step {
			list = append(list, math.Pow(10, e))
		}
		if len(list) > 1 {
			return list
		}
		return []float64{a.low * 1.3, a.high / 1.3}
	}
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (a.high-a.low)/(step*m) <= 5 {
			step *= m
			break
		}
	}
	for v := math.Ceil(a.low/step) * step; v <= a.high+step*1e-9 && len(list) < mostTicks; v += step {
		list = append(list, v)
	}
	return list
}

// tickTexts formats values of one axis so that different values have different texts.
func tickTexts(u string, values []float64) []string {
	s := unit.Common(u, values...)
	differ := func(format func(float64) string) bool { return len(lists.Set(values, format)) == len(values) }
	format := func(v float64) string { return unit.Format(v, u) }
	if !differ(format) {
		format = func(v float64) string { return unit.Join(s.Format(v), s.Symbol) }
		for s.Decimals < 9 && !differ(format) {
			s.Decimals++
		}
	}
	return lists.Map(values, format)
}

// notZero says that an axis does not start at zero; empty if it does.
func (a axis) notZero(u string) string {
	if a.low <= 0 {
		return ""
	}
	return "The axis starts at " + unit.Format(a.low, u) + ", not at zero."
}

// between is an axis whose ends are given, with a share of its length left free at each.
func between(low, high, free float64) axis {
	if low == high {
		high++
	}
	room := (high - low) * free
	return axis{low: low - room, high: high + room}
}

// edge is the share of an axis that is left free at each end, so that no dot is cut off.
const edge = 0.01

const plotHeight = 180

// stretched is a drawing in a square of [svgScale] that is stretched to its area.
func stretched(inside markup) markup {
	return shape("svg", inside, "width", "100%", "height", "100%", "viewBox", "0 0 1000 1000", "preserveAspectRatio", "none")
}

// plot draws the vertical axis of a plot and opens its area; the caller draws inside and closes it. role is img, or
// group if it contains links, because an image hides them from screen readers.
func (f figure) plot(y axis, height int, role markup, describe string) {
	var left, grid builder
	ticks := y.ticks()
	texts := tickTexts(f.Unit, ticks)
	for i, v := range ticks {
		at := (1 - y.at(v)) * float64(height)
		left.put(shape("text", text(texts[i]), "x", "68", "y", short(min(max(at+4, 10), float64(height)-1)), "text-anchor", "end") +
			shape("line", "", "data-tick", float(v), "y1", short(at), "y2", short(at)))
		grid.put(shape("line", "", "x1", "0", "x2", "100%", "y1", short(at), "y2", short(at), "class", "grid"))
	}
	f.p.put("<div class=\"plot\">" +
		shape("svg", left.markup(), "class", "yaxis", "width", "72", "height", num(height), "aria-hidden", "true") +
		"<svg class=\"area\" width=\"100%\" height=\"" + num(height) + "\" role=\"" + role + "\" aria-label=\"" +
		text(describe) + "\">" + grid.markup())
}

// xTicks writes the ticks of a horizontal axis below the drawing.
func (f figure) xTicks(x axis, u string) {
	ticks := x.ticks()
	f.xTexts(lists.Map(ticks, x.at), tickTexts(u, ticks), anchorAt)
}

// xTexts writes texts below the drawing at places from 0 to 1, aligned by what align says of their place.
func (f figure) xTexts(at []float64, texts []string, align func(at float64) markup) {
	f.p.put("<svg class=\"xaxis\" width=\"100%\" height=\"18\" aria-hidden=\"true\">")
	for i, t := range texts {
		f.p.put(shape("text", text(t), "x", percent(at[i], 1), "y", "13", "text-anchor", align(at[i])))
	}
	f.p.put("</svg>")
}

// anchorAt is the alignment of a text below an axis, such that it is not cut off at the ends.
func anchorAt(place float64) markup {
	switch {
	case place < 0.05:
		return "start"
	case place > 0.95:
		return "end"
	}
	return "middle"
}

// closePlot ends a plot below its horizontal axis, whose title it writes.
func (f figure) closePlot(title string) {
	f.p.put("</div>\n")
	if title != "" {
		f.p.put("<p class=\"muted axis\">" + text(title) + "</p>\n")
	}
}

// xs returns the labels of a series as numbers or, if they are not numbers, their indexes.
func xs(s doc.Series) []float64 {
	list := make([]float64, len(s.Values))
	for i := range list {
		list[i] = float64(i + 1)
		if v, err := strconv.ParseFloat(lists.Nth(s.Labels, i, ""), 64); err == nil {
			list[i] = v
		}
	}
	return list
}

// path is a line through values at their positions.
func path(series int, class markup, at, values []float64, x, y axis) markup {
	var b builder
	for i, v := range values {
		if i > 0 {
			b.put(" ")
		}
		b.put(short(x.at(at[i])*svgScale) + "," + short((1-y.at(v))*svgScale))
	}
	return stretched(shape("polyline", "", "data-s", num(series), "points", b.markup(), "class", "path "+class,
		"vector-effect", "non-scaling-stroke"))
}

// lines draws line and scatter charts. A scatter's lines are limits: they are drawn alike and named where they end. Its
// points are numbered, because there may be more of them than colours.
func lines(f figure) {
	log := f.Kind == "scatter"
	allX := slices.Concat(lists.Map(f.Series, xs)...)
	names, classes := lineNames(f, log)
	x, y := newAxis(log, allX), newAxis(log, everyValue(f.Series))
	if !log {
		x = between(slices.Min(allX), slices.Max(allX), edge)
		room := (y.high - y.low) * 2 * edge
		if y.high += room; y.low > 0 {
			y.low -= room
		}
	} else if len(names) < len(f.Series) {
		y.high *= 2 // room for the names of limits
	}
	f.plot(y, plotHeight, "img",
		f.Title+": "+strconv.Itoa(len(allX))+" points of "+strconv.Itoa(len(f.Series))+" series; the numbers follow")
	nth := 0
	var limits []float64 // heights at which limits are named
	for n, s := range f.Series {
		at := xs(s)
		if isLimit(log, s) {
			f.p.put(path(n, "limit", at, s.Values, x, y))
			if last := len(at) - 1; last >= 0 {
				level := y.at(s.Values[last])
				f.p.put(limitName(s.Name, x.at(at[last]), level, limits))
				limits = append(limits, level)
			}
			continue
		}
		k := nth
		nth++
		if !log && s.Style != "points" && len(at) > 1 {
			f.p.put(path(n, "s"+num(k%palette), at, s.Values, x, y))
			continue
		}
		radius, more := markup("4"), ""
		if s.Share > 0 {
			radius = short(3 + 15*math.Sqrt(min(s.Share, 1)))
		}
		if s.Note != "" {
			more = "; " + strings.TrimPrefix(s.Note, ", ")
		}
		for i, v := range s.Values {
			label := f.xText(lists.Nth(s.Labels, i, ""))
			left, top := percent(x.at(at[i]), 1), percent(1-y.at(v), 1)
			words := wording.Shorten(Visible(s.Name), 200) + ": " + label + ", " + unit.Format(v, f.Unit) + more
			f.p.put(shape("circle", tip(words), "data-m", mark(n, i), "cx", left, "cy", top, "r", radius, "class", classes[k]))
			if log {
				f.p.put(shape("text", num(k+1), "x", left, "y", top, "dx", "7", "dy", "12"))
			}
		}
	}
	f.p.put("</svg>")
	f.xTicks(x, f.XUnit)
	f.closePlot(f.XTitle)
	of := func(i int, _ string) markup { return classes[i] }
	if log {
		f.p.legendOf(names, of)
		return
	}
	f.muted(y.notZero(f.Unit))
	f.p.legend(names, of)
}

// lineNames are the names and the colours of the series that are no limits.
func lineNames(f figure, log bool) (names []string, classes []markup) {
	for _, s := range f.Series {
		name, class := s.Name, colour(len(names))
		switch own, ok := fixed[s.Category]; {
		case isLimit(log, s):
			continue
		case !log:
			class = fixedOr(s.Name, class)
		case ok:
			class, name = own+" box", strconv.Itoa(len(names)+1)+" "+name
			if !slices.Contains(classes, class) {
				name = "limited by " + s.Category + ": " + name
			}
		default: // kernels, regardless of their names
			name = strconv.Itoa(len(names)+1) + " " + name
		}
		names, classes = append(names, name), append(classes, class)
	}
	return names, classes
}

// isLimit reports whether a line is a limit, not data.
func isLimit(log bool, s doc.Series) bool { return s.Style == "limit" || log && s.Style == "line" }

// Room for a limit's name, in pixels.
const (
	limitRow   = 13
	limitWidth = 120
)

// limitName is the name of a limit where it ends, beside the names of others of similar height.
func limitName(name string, at, level float64, others []float64) markup {
	beside := lists.Count(others, func(other float64) bool { return math.Abs(level-other)*plotHeight < limitRow })
	return shape("text", text(wording.Shorten(Visible(name), 24)), "class", "limit", "x", percent(at, 1),
		"dx", num(-limitWidth*beside), "y", percent(1-level, 1), "dy", "-4", "text-anchor", "end")
}

// histogram draws columns of equal width, one per bin, regardless of the bins' widths.
func histogram(f figure) {
	s := f.Series[0]
	values := s.Values[:min(len(s.Values), len(s.Labels))]
	y, bins := newAxis(false, []float64{0, largest(values)}), float64(len(values))
	f.plot(y, plotHeight, "img", f.Title+": "+strconv.Itoa(len(values))+" bins; the numbers follow")
	step := max(1, (len(values)+5)/6)
	starts := xs(s)
	var edges, at []float64
	for i, v := range values {
		if i%step == 0 {
			edges, at = append(edges, starts[i]), append(at, float64(i)/bins)
		}
		if v > 0 {
			words := Visible(s.Name) + ", from " + f.xText(s.Labels[i]) + ": " + unit.Format(v, f.Unit)
			f.p.put(shape("rect", tip(words), "data-m", mark(0, i), "x", percent(float64(i), bins), "y", percent(1-y.at(v), 1),
				"width", percent(0.94, bins), "height", percent(y.at(v), 1), "class", colour(0)+" over"))
		}
	}
	f.p.put("</svg>")
	f.xTexts(at, tickTexts(f.XUnit, edges), func(float64) markup { return "" })
	f.closePlot(f.XTitle)
}
