package present

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// unitPoint is one unit of the main kind, from the table of units.
type unitPoint struct {
	row, number int // row in the table; position among the units of its device, from 1
	device      int64
	start, time int64
	parts       [4]int64 // by unitParts
}

// unitParts are the parts of a unit's time in the table: column, and name in the chart.
var unitParts = [4]struct{ column, name string }{
	{"compute", "compute"}, {"exposed_comm", "exposed communication"}, {"exposed_copy", "exposed copy"}, {"idle", "idle"},
}

// slowUnit is the excess over the median, as a share of it, from which a unit is coloured by its cause.
const slowUnit = 0.02

// usual labels units that take about as long as the median one.
const usual = "about the median"

// unitDots draws the units of the slowest device one after the other. A slow unit is coloured by the part that takes
// longer than its median, and the slowest one is linked to its row. It is nil if the report's table lacks some units.
func (l layout) unitDots() []doc.Block {
	points := unitPoints(l.v)
	if len(points) < 3 {
		return nil
	}
	median := func(of func(p unitPoint) float64) float64 { return order.Median(lists.Map(points, of)) }
	mid := median(func(p unitPoint) float64 { return float64(p.time) })
	var parts [4]float64
	for k := range parts {
		parts[k] = median(func(p unitPoint) float64 { return float64(p.parts[k]) })
	}
	causeOf := func(p unitPoint) (name string, excess float64) {
		name = usual
		if float64(p.time) > mid*(1+slowUnit) {
			for k, part := range unitParts {
				if d := float64(p.parts[k]) - parts[k]; d > excess {
					name, excess = part.name, d
				}
			}
		}
		return name, excess
	}
	named := func(p unitPoint) string {
		name, _ := causeOf(p)
		return name
	}
	alike := lists.Groups(points, named)
	lists.Sort(alike, func(a, b []unitPoint) int { return len(b) - len(a) })
	slowest := slices.MaxFunc(points, func(a, b unitPoint) int { return cmp.Compare(a.time, b.time) })
	cause, excess := causeOf(slowest)
	last := strconv.Itoa(points[len(points)-1].number)
	chart := doc.Chart{ID: "unit_dots", Title: "Time of each unit on GPU " + strconv.FormatInt(points[0].device, 10) +
		", by what makes the slow ones slow", Kind: "line", Unit: report.Nanoseconds,
		XTitle: "Step (run order, warm-up excluded)",
		Series: []doc.Series{{Name: "median", Style: "limit", Labels: []string{strconv.Itoa(points[0].number), last},
			Values: []float64{mid, mid}}}}
	for _, same := range alike {
		s := doc.Series{Name: named(same[0]), Style: "points"}
		for _, p := range same {
			s.Add(strconv.Itoa(p.number), float64(p.time))
		}
		chart.Series = append(chart.Series, s)
	}
	blocks := []doc.Block{chart}
	if cause == usual {
		return blocks
	}
	spans := doc.Spans("Slowest: step " + strconv.Itoa(slowest.number) + " with " +
		unit.Format(float64(slowest.time), report.Nanoseconds) + ", " + unit.Delta(float64(slowest.time)-mid, report.Nanoseconds) +
		" over the median; " + unit.Delta(excess, report.Nanoseconds) + " of that is " + cause + ".")
	if slowest.row < pageRows/3 {
		spans = doc.Spans(spans, " ", doc.Link("Its row", l.anchorOf("units", slowest.row)), ".")
	}
	if row, gap := gapIn(l.v, &slowest); row >= 0 && row < pageRows/3 {
		spans = doc.Spans(spans, " ", doc.Link("Its longest gap", l.anchorOf("idle_gaps", row)),
			" ("+unit.Format(float64(gap), report.Nanoseconds)+").")
	}
	return append(blocks, doc.P(spans))
}

// anchorOf gives a row of a table an id, and returns the link to it.
func (l layout) anchorOf(table string, row int) string {
	id := "row-" + table + "-" + strconv.Itoa(row)
	if l.anchors[table] == nil {
		l.anchors[table] = map[int]string{}
	}
	l.anchors[table][row] = id
	return "#" + id
}

// drawnUnits bounds the units that are drawn one by one.
const drawnUnits = 400

// unitPoints returns the kept units of the main kind on its slowest device; nil if the table of units lacks some.
func unitPoints(v *View) []unitPoint {
	t := v.Table("unit", "units")
	if len(v.Unit.Groups) == 0 || t == nil || t.Others || t.TotalRows != int64(len(t.Rows)) || len(t.Rows) > drawnUnits {
		return nil
	}
	g := v.mainGroup()
	var list []unitPoint
	for i := range t.Rows {
		device, ok := t.Int(i, "device_id")
		phase := t.Str(i, "phase")
		state := t.Str(i, "state")
		batch, batched := t.Int(i, "batch")
		if !ok || g.Device != nil && device != *g.Device || g.Device == nil && len(list) > 0 && device != list[0].device ||
			phase != g.Phase || !strings.HasPrefix(state, "kept") || g.Batch != nil && (!batched || batch != *g.Batch) {
			continue
		}
		p := unitPoint{row: i, number: len(list) + 1, device: device}
		p.start, _ = t.Int(i, "start")
		p.time, ok = t.Int(i, "duration")
		for k, part := range unitParts {
			p.parts[k], _ = t.Int(i, part.column)
		}
		if ok {
			list = append(list, p)
		}
	}
	lists.Sort(list, func(a, b unitPoint) int { return int(min(max(a.start-b.start, -1), 1)) })
	for i := range list {
		list[i].number = i + 1
	}
	return list
}

// gapIn returns the longest listed idle gap that begins inside a unit on its device, in ns, and its row; -1 if none is
// listed.
func gapIn(v *View, p *unitPoint) (row int, gap int64) {
	t := v.Table("idle", "idle_gaps")
	row = -1
	for i := range t.Entries() {
		device, _ := t.Int(i, "device_id")
		start, ok := t.Int(i, "start")
		length, known := t.Int(i, "gap")
		if ok && known && device == p.device && start >= p.start && start < p.start+p.time && length > gap {
			row, gap = i, length
		}
	}
	return row, gap
}
