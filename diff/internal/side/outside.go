package side

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Outside is the time of the analysed window outside units of work, ns: before the first unit, the mean gap between
// units, and after the last one.
type Outside struct{ Before, Between, After float64 }

// OutsideUnits looks at one device; ok is false if the report does not list every unit, or none ran there.
func OutsideUnits(r *report.Report, device int64) (o Outside, ok bool) {
	w := r.Window
	units := slices.DeleteFunc(everyUnit(&r.Unit), func(u report.UnitPoint) bool {
		return u.Device != device || report.UnitStates[u.State] == "outside" || u.Start < w.Start || u.Start > w.End
	})
	if len(units) == 0 {
		return o, false
	}
	lists.Sort(units, func(a, b report.UnitPoint) int { return cmp.Compare(a.Start, b.Start) })
	end := units[0].Start
	o.Before = float64(end - w.Start)
	for _, u := range units {
		o.Between += float64(max(0, u.Start-end))
		end = max(end, u.Start+u.Duration)
	}
	o.Between /= float64(max(1, len(units)-1))
	o.After = float64(max(0, w.End-end))
	return o, true
}

// Unkept is the most that work outside the compared units can change a share of the GPUs' work in whole captures: it
// may hold all of it on one side and nothing on the other.
func Unkept(base, head *Side) (share float64) {
	for _, s := range []*Side{base, head} {
		share += Average(lists.Map(s.Captures, unkept))
	}
	return share
}

// unkept is the share of its GPUs' busy time that a capture spent outside kept units: in units that are cut or warm up,
// and between units. It is 0 if the report does not list every unit.
func unkept(c *Capture) float64 {
	units := everyUnit(&c.Report.Unit)
	if units == nil {
		return 0
	}
	are := func(u report.UnitPoint) bool { return report.UnitStates[u.State] == Kept }
	kept := lists.Sum(lists.Filter(units, are), func(u report.UnitPoint) float64 { return float64(u.Busy) })
	all := lists.Sum(c.Metrics("gpu.busy_time"), func(m *report.Metric) float64 { return comparison.Value(m.Value) })
	return max(0, 1-kept/max(all, kept, 1))
}

// TimePerSequence is the time of a phase's units, of these kinds, divided by their sequences, ns: a step of batch 32
// holds 32. Decode steps add a token to each sequence, so theirs is the time per output token. ok is false if the phase
// has no units, or if markers do not give each unit's batch size.
func TimePerSequence(kinds []Group, phase string) (t float64, ok bool) {
	var time, sequences float64
	for i := range kinds {
		g := &kinds[i]
		if g.Kind.Phase != phase {
			continue
		}
		if g.Kind.Batch <= 0 {
			return 0, false
		}
		time += g.Time()
		sequences += float64(g.Count * g.Kind.Batch)
	}
	if sequences == 0 {
		return 0, false
	}
	return time / sequences, true
}

// Clock returns the frequency of the device's compute clock while it worked, in Hz; false if unknown.
func Clock(x *report.Index, device int64) (float64, bool) {
	for _, m := range x.Metrics("gpu.clock") {
		if m.Labels["clock"] == "gpc" && m.Labels["device"] == strconv.FormatInt(device, 10) && m.Value != nil {
			return *m.Value, true
		}
	}
	return 0, false
}
