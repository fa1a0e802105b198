package render

import (
	"maps"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Number of values per box of a flame: a plain box is as wide as its total; a box of a change has both sides.
const (
	flameValues  = 4 // depth, start, total, self
	changeValues = 5 // depth, start, width, base, head
)

// flame draws an icicle chart: a box hangs below the box that contains it.
func flame(f figure) {
	const row = 20
	depth, whole, change := 0.0, 0.0, false
	used := map[string]bool{} // categories
	for _, s := range f.Series {
		if n := len(s.Values); n == flameValues || n == changeValues {
			depth, whole = max(depth, s.Values[0]), max(whole, s.Values[1]+s.Values[2])
			change = change || n == changeValues
		}
		if _, ok := fixed[s.Category]; ok {
			used[s.Category] = true
		}
	}
	class := markup("flame")
	if change {
		class += " change"
	}
	f.p.put("<svg class=\"" + class + "\" width=\"100%\" height=\"" + num((int(depth)+1)*row) + "\" role=\"img\" aria-label=\"" +
		text(f.Title) + "\">")
	for i, s := range f.Series {
		if n := len(s.Values); n != flameValues && n != changeValues || s.Values[2] <= 0 {
			continue
		}
		start, total, name := s.Values[1], s.Values[2], Visible(s.Name)
		colour, words := flameColour(s), ""
		if len(s.Values) == changeValues {
			base, head := s.Values[3], s.Values[4]
			colour = changeColour((head - base) / whole)
			words = unit.Delta(head-base, f.Unit) + ", " + unit.Format(base, f.Unit) + " → " + unit.Format(head, f.Unit)
		} else {
			words = unit.Format(total, f.Unit) + ", of its own " + unit.Format(s.Values[3], f.Unit)
		}
		box := shape("rect", tip(name+": "+words), "data-m", mark(i, 2), "width", "100%", "height", "100%", "class", colour+" box")
		if label := fitting(name, total/whole); label != "" {
			class := markup("")
			if float64(len([]rune(label))) > phoneRoom*total/whole && total < whole/4 {
				class = "roomy"
			}
			box += shape("text", text(label), "class", class, "x", "4", "y", "14")
		}
		f.p.put(shape("svg", box, "x", percent(start, whole), "y", num(int(s.Values[0])*row), "width", percent(total, whole),
			"height", num(row-1)))
	}
	f.p.put("</svg>\n")
	if change {
		f.p.legend(changeLegend[:], func(i int, _ string) markup { return changeClasses[i] })
		return
	}
	f.p.legend(slices.Sorted(maps.Keys(used)), partColour)
}

// phoneRoom is how many characters fit into a drawing on a phone.
const phoneRoom = 42

// fitting returns as much of a name as fits into a box with this share of a drawing in a wide window; empty if that is
// next to nothing. A narrower window cuts it off.
func fitting(name string, share float64) string {
	const room, least = 150, 4 // characters
	n := int(share * room)
	if n < least {
		return ""
	}
	if r := []rune(name); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return name
}

// flameColour is the colour of a box: ranges all have the same colour, whatever their names, and a kernel has that of
// its category.
func flameColour(s doc.Series) markup {
	if s.Category == "" {
		return "range"
	}
	return fixedOr(s.Category, "k-unknown")
}

// A change is red for an increase and green for a decrease, in three steps by its share of the whole.
var (
	changeSteps   = [3]float64{0.0005, 0.005, 0.02}
	changeClasses = [7]markup{"less3", "less2", "less1", "even", "more1", "more2", "more3"}
	changeLegend  = [7]string{"less by 2 % of the step", "0.5 %", "0.05 %", "no change", "more by 0.05 %", "0.5 %", "2 %"}
)

func changeColour(share float64) markup {
	step := lists.Count(changeSteps[:], func(least float64) bool { return math.Abs(share) >= least })
	if share < 0 {
		step = -step
	}
	return changeClasses[3+step]
}
