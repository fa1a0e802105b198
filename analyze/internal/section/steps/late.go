package steps

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// lateCalls are the calls of launching threads while one device waited for them, by unit. As a visitor of the device it
// asks for the times from the start of the window to the start and the end of each unit.
type lateCalls struct {
	timeline.Visitor
	in    *kit.Input
	calls lists.Numbering[kit.LateCall]
	time  *parts // by number of the call and unit

	units  []int32         // of the device, by start
	spans  interval.Cursor // theirs
	pieces []timeline.HostPiece
}

func newLateCalls(in *kit.Input, device int) *lateCalls {
	x := &lateCalls{in: in, time: newParts(0)}
	for i := range in.Units.Units {
		if u := &in.Units.Units[i]; int(u.Index) == device {
			x.units = append(x.units, int32(i))
			x.Moments = append(x.Moments, u.Start, u.End)
		}
	}
	slices.Sort(x.Moments)
	x.Moments = slices.Compact(x.Moments)
	x.Times = spill.Make[timeline.Times](in.Trace.Memory(), len(x.Moments))[:0]
	x.Gap, x.Host = x.gap, true
	x.Piece = func(p *timeline.HostPiece) { x.pieces = append(x.pieces, *p) } // in no order, until the gap is complete
	lists.Sort(x.units, func(a, b int32) int {
		return cmp.Compare(in.Units.Units[a].Start, in.Units.Units[b].Start)
	})
	x.spans = cursorOf(in, x.units)
	return x
}

// gap attributes the calls in a gap to the units that contain them.
func (x *lateCalls) gap(g *timeline.Gap) {
	x.spans.Advance(g.Start, g.End)
	for i := range x.pieces {
		p := &x.pieces[i]
		if c, ok := kit.LateCallOf(x.in.Trace, p); ok {
			name := x.calls.Of(c)
			lists.At(&x.time.last, name)
			x.spans.Each(p.Start, p.End, func(i int, start, end int64) { x.time.add(name, x.units[i], end-start) })
		}
	}
	x.pieces = x.pieces[:0]
}

// hosts emits why the host was late in the units of a set, by each cause that some unit of the capture has.
func (costs unitCosts) hosts(out *kit.Output, l report.Labels, s *unitSet) {
	if !slices.ContainsFunc(s.Units, func(u int32) bool { return costs[u].Cause[timeline.CauseHost] > 0 }) {
		return
	}
	for cause, name := range timeline.HostCauseNames {
		if slices.ContainsFunc(costs, func(c unitCost) bool { return c.Host[cause] > 0 }) {
			values := costs.of(s, func(c *unitCost) int64 { return c.Host[cause] })
			s.summary(out, "unit.host_cause_time", kit.And(l, "cause", name), values)
		}
	}
}

// Bounds of the calls that the report names.
const (
	maxLate   = 16    // calls of a kind of unit
	leastLate = 0.001 // of the unit's time
)

// emit emits the calls of a set of units of this mean time, those with most time.
func (x *lateCalls) emit(out *kit.Output, l report.Labels, s *unitSet, mean float64) {
	place := unitPlaces(x.in, s)
	type call struct {
		cause int
		name  string
	}
	var numbers lists.Numbering[call]
	names := lists.Map(x.calls.Keys, func(c kit.LateCall) int32 {
		return numbers.Of(call{c.Cause, c.Name(x.in.Trace)})
	})
	values := make([][]int64, len(numbers.Keys))
	totals := make([]int64, len(numbers.Keys))
	x.time.each(func(p *part) {
		if place[p.unit] == 0 {
			return
		}
		n := names[p.name]
		if values[n] == nil {
			values[n] = make([]int64, len(s.Units))
		}
		values[n][place[p.unit]-1] += p.ns
		totals[n] += p.ns
	})
	least := max(1, leastLate*mean*float64(len(s.Units)))
	order := lists.Where(len(totals), func(n int) bool { return float64(totals[n]) >= least })
	lists.Sort(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]), strings.Compare(numbers.Keys[a].name, numbers.Keys[b].name),
			cmp.Compare(numbers.Keys[a].cause, numbers.Keys[b].cause))
	})
	for _, n := range order[:min(len(order), maxLate)] {
		c := &numbers.Keys[n]
		labels := kit.And(l, "call", c.name, "cause", timeline.HostCauseNames[c.cause])
		s.summary(out, "unit.host_call_time", labels, values[n])
	}
}
