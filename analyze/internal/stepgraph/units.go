package stepgraph

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
)

// Units of work to be timed.
type Units struct {
	First []int32 // by unit: its first piece of work, or trace.None
	Next  []int32 // by unit: the first piece of the unit that follows and closes it, or trace.None
	Of    []workunit.Members
}

// UnitsOf are the units that were found on the graph's timeline.
func (g *Graph) UnitsOf(r *workunit.Result) *Units {
	none := slices.Repeat([]int32{trace.None}, len(r.Units))
	u := &Units{First: none, Next: slices.Clone(none), Of: r.Of}
	for i := range r.Units {
		if x := &r.Units[i]; x.First != trace.None {
			u.First[i] = g.Number(int(x.Index), int(x.First))
		}
	}
	for i := range len(r.Units) - 1 {
		a, b := &r.Units[i], &r.Units[i+1]
		if a.Index == b.Index && a.Proc == b.Proc && a.End == b.Start {
			u.Next[i] = u.First[i+1]
		}
	}
	return u
}

// mostUnits bounds how many units Stretch spans.
const mostUnits = 512

// Stretch is the time from the first to the last of some units of one device, or, if there are very many, in their
// middle: the time that is replayed for an estimate.
func Stretch(r *workunit.Result, list []int32) interval.Interval {
	if n := len(list); n > mostUnits {
		list = list[(n-mostUnits)/2:][:mostUnits]
	}
	if len(list) == 0 {
		return interval.Interval{}
	}
	// One piece of work past the end, so that the last unit has the start of the next.
	return interval.Interval{Start: r.Units[list[0]].Start, End: r.Units[list[len(list)-1]].End + 1}
}
