package pairing

import (
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Limits for windows of one run whose units grow or shrink along it, as with a cache that fills.
const (
	leastRamp = 0.05 // change of the median between the windows
	rampUnits = 8    // a window
	sameRuns  = 0.05 // relative difference in kernels a unit up to which the windows do the same
	bentRamp  = 2    // the most that the run between the windows is steeper than in the steeper one
	// mostlyApart is the least distance of the middles of the windows, as a share of that at which the windows only touch.
	mostlyApart = 0.9
)

// ramp says that two windows of one run, which lie apart in it and have as many kernels a unit, differ by no more than the
// run changed from the one to the other, at the rate at which it changes in them. It is empty if they do not.
func ramp(b, h *side.View) string {
	if !OneSession(b.C, h.C) || min(len(b.Units), len(h.Units)) < rampUnits ||
		b.Kernels != nil && h.Kernels != nil && math.Abs(h.Kernels.Mean-b.Kernels.Mean) > sameRuns*max(b.Kernels.Mean, h.Kernels.Mean) {
		return ""
	}
	middle := func(v *side.View) float64 {
		return float64(v.C.Report.Window.Start) + float64(v.C.Report.Window.Length)/2
	}
	gap, away := math.Log(h.Time.P50/b.Time.P50), middle(h)-middle(b)
	if apart := float64(b.C.Report.Window.Length)/2 + float64(h.C.Report.Window.Length)/2; math.Abs(away) < mostlyApart*apart {
		return "" // they cover the same time: what differs there did not change along the run
	}
	rate := bentRamp * max(rateOf(b)*math.Copysign(1, gap*away), rateOf(h)*math.Copysign(1, gap*away))
	if math.Abs(gap) <= math.Log1p(leastRamp) || math.Abs(gap) > rate*math.Abs(away) {
		return ""
	}
	return fmt.Sprintf("base and head are windows of one run, in which steps change all along: that explains %s from the one to the other",
		unit.Change(math.Expm1(gap)))
}

// rateOf is the change of ln of the median time of a unit between the halves of a window, per ns.
func rateOf(v *side.View) float64 {
	median := func(of []side.UnitRow) float64 {
		times := lists.Map(of, func(u side.UnitRow) float64 { return u.Time })
		slices.Sort(times)
		return times[len(times)/2]
	}
	n := len(v.Units)
	return math.Log(median(v.Units[n/2:])/median(v.Units[:n/2])) / (float64(v.C.Report.Window.Length) / 2)
}
