package render

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// labelsOf are the labels of all series, each once, in the order in which they first appear.
func labelsOf(list []doc.Series) (labels []string) {
	for _, s := range list {
		for _, l := range s.Labels[:min(len(s.Labels), len(s.Values))] {
			lists.Place[int32](&labels, l)
		}
	}
	return labels
}

// bars draws a bar for each label of each series. A series may lack labels.
func bars(f figure) {
	most := largest(everyValue(f.Series))
	f.p.put("<div class=\"bars\">\n")
	for _, l := range labelsOf(f.Series) {
		for k, s := range f.Series {
			label, name := f.rowName(l), shortName(l)
			if k > 0 {
				label = ""
			}
			class := partColour(0, l)
			if len(f.Series) > 1 {
				name += ", " + shortName(s.Name)
				class = colour(k)
			}
			i := slices.Index(s.Labels, l)
			if i < 0 || i >= len(s.Values) {
				f.row(label, barHeight, name+": unknown", "unknown")
				continue
			}
			value := unit.Format(s.Values[i], f.Unit)
			f.row(label, barHeight, name+": "+value, value,
				shape("rect", tip(name+": "+value), "data-m", mark(k, i), "width", percent(max(s.Values[i], 0), most),
					"height", num(barHeight), "rx", "2", "class", class))
		}
	}
	f.p.put("</div>\n")
	names := lists.Map(f.Series, func(s doc.Series) string { return s.Name })
	f.p.legend(names, func(i int, _ string) markup { return colour(i) })
}

// stacked draws a bar of parts for each series. A single bar has the names of its parts in it; its legend only lists
// those for which there is no room.
func stacked(f figure) {
	alone := len(f.Series) == 1
	most := lists.Most(f.Series, func(s doc.Series) float64 { return sum(s.Values) })
	parts := labelsOf(f.Series)
	var small []string // those that a legend names
	colourOf := func(_ int, name string) markup { return partColour(slices.Index(parts, name), name) }
	open := markup("<div class=\"bars\">\n")
	if alone {
		open = "<div class=\"bars alone\">\n"
	}
	f.p.put(open)
	for k, s := range f.Series {
		whole, at := sum(s.Values), 0.0
		var words []string
		var shapes []markup
		for i, v := range s.Values {
			name, value := Visible(s.Labels[i]), unit.Format(v, f.Unit)
			if words = append(words, name+" "+value); v <= 0 {
				continue
			}
			shapes = append(shapes, shape("rect", tip(name+": "+value+", "+unit.Percent(v/whole)), "data-m", mark(k, i),
				"x", percent(at, most), "width", percent(v, most), "height", num(barHeight),
				"class", colourOf(i, s.Labels[i])))
			if alone {
				inside := inBar(name, value, at/most, v/most)
				if shapes = append(shapes, inside); inside == "" {
					small = append(small, s.Labels[i])
				}
			}
			at += v
		}
		f.row(f.rowName(s.Name), barHeight, Visible(s.Name)+": "+strings.Join(words, ", "), unit.Format(whole, f.Unit),
			shapes...)
	}
	f.p.put("</div>\n")
	if !alone {
		small = parts
	}
	f.p.legendOf(small, colourOf)
}

// inBar is the name of a part in its bar, with its value if that fits too in a window of common width; nothing if the
// name does not fit.
func inBar(name, value string, at, share float64) markup {
	for _, words := range []string{name + " " + value, name} {
		if float64(len([]rune(words))) <= inBarRoom*share {
			return shape("svg", shape("text", text(words), "class", "in", "x", "6", "y", "18"),
				"x", percent(at, 1), "width", percent(share, 1), "height", "100%")
		}
	}
	return ""
}

// inBarRoom is how many characters fit into a bar in a window of common width.
const inBarRoom = 135

// largest is the largest value of a list that is above zero; else zero.
func largest(values []float64) float64 {
	return lists.Most(values, func(v float64) float64 { return v })
}

// sum adds up the positive values of a list.
func sum(values []float64) float64 {
	return lists.Sum(values, func(v float64) float64 { return max(v, 0) })
}
