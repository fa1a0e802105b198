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

// unitPoint is one unit of the main kind, from the table of units. Times are ns.
type unitPoint struct {
	number int // position among the units of its device, from 1
	device int64
	start  int64
	time   float64
	parts  [4]float64 // by unitParts
	cause  string     // what makes it slow
	excess float64    // of the cause over its median
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
// longer than its median, and a sentence says why the slowest one is. It is nil if the report's table lacks some units.
func unitDots(v *View) []doc.Block {
	points := unitPoints(v)
	if len(points) < 3 {
		return nil
	}
	mid := order.Median(lists.Map(points, func(p unitPoint) float64 { return p.time }))
	for k, part := range unitParts {
		median := order.Median(lists.Map(points, func(p unitPoint) float64 { return p.parts[k] }))
		for i := range points {
			p := &points[i]
			if d := p.parts[k] - median; d > p.excess && p.time > mid*(1+slowUnit) {
				p.cause, p.excess = part.name, d
			}
		}
	}
	chart := doc.Chart{ID: "unit_dots", Title: "Time of each unit on GPU " + strconv.FormatInt(points[0].device, 10) +
		", by what makes the slow ones slow", Kind: "line", Unit: report.Nanoseconds,
		XTitle: "Step (run order, warm-up excluded)",
		Series: []doc.Series{{Name: "median", Style: "limit", Labels: []string{"1", strconv.Itoa(len(points))}, Values: []float64{mid, mid}}}}
	alike := lists.Groups(points, func(p unitPoint) string { return p.cause })
	lists.Sort(alike, func(a, b []unitPoint) int { return len(b) - len(a) })
	for _, same := range alike {
		s := doc.Series{Name: same[0].cause, Style: "points"}
		for _, p := range same {
			s.Add(strconv.Itoa(p.number), p.time)
		}
		chart.Series = append(chart.Series, s)
	}
	slowest := slices.MaxFunc(points, func(a, b unitPoint) int { return cmp.Compare(a.time, b.time) })
	if slowest.cause == usual {
		return []doc.Block{chart}
	}
	return []doc.Block{chart, doc.P("Slowest: step " + strconv.Itoa(slowest.number) + " with " +
		unit.Format(slowest.time, report.Nanoseconds) + ", " + unit.Delta(slowest.time-mid, report.Nanoseconds) + " over the median; " +
		unit.Delta(slowest.excess, report.Nanoseconds) + " of that is " + slowest.cause + ".")}
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
		device, batch := t.Whole(i, "device_id"), t.Whole(i, "batch")
		if device != report.ValueOr(g.Device, -1) || t.Str(i, "phase") != g.Phase || !strings.HasPrefix(t.Str(i, "state"), "kept") ||
			g.Batch != nil && batch != *g.Batch {
			continue
		}
		p := unitPoint{device: device, start: t.Whole(i, "start"), cause: usual}
		p.time, _ = t.Num(i, "duration")
		for k, part := range unitParts {
			p.parts[k], _ = t.Num(i, part.column)
		}
		list = append(list, p)
	}
	lists.Sort(list, func(a, b unitPoint) int { return cmp.Compare(a.start, b.start) })
	for i := range list {
		list[i].number = i + 1
	}
	return list
}
