package steps

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// togetherShare is the share of the units of two GPUs, 0..1, that must overlap in pairs for them to run the same steps.
const togetherShare = 0.90

// tokenRate is tokens per second and GPU of a kind of unit, from its median time; nil if markers do not say how many
// tokens they compute. Units of several processes that share the GPU all count.
func tokenRate(in *kit.Input, sets []*unitSet, s *unitSet, p50 float64) *float64 {
	var tokens int64
	for _, u := range s.Units {
		decode, prompt, _, ok := in.Units.Tokens(&in.Trace.Ranges, &in.Units.Units[u])
		if !ok {
			return nil
		}
		tokens += decode + prompt
	}
	if tokens == 0 || p50 <= 0 {
		return nil
	}
	gpus := 1 + lists.Count(sets, func(o *unitSet) bool { // each has its own unit of a step
		return o.Group == s.Group && o.Device != s.Device && together(in.Units, s, o)
	})
	rate := float64(tokens) / float64(len(s.Units)) / (p50 / 1e9) / float64(gpus)
	if communicates(in.Units, s.Device) { // several processes are ranks, of GPUs that the capture does not tell apart
		return &rate
	}
	covered := interval.Of(lists.Map(s.Units, func(u int32) interval.Interval {
		return interval.Interval{Start: in.Units.Units[u].Start, End: in.Units.Units[u].End}
	}))
	atOnce := float64(s.Time) / float64(covered.Len()) // 1 if one process runs the units
	return new(rate * atOnce)
}

// communicates reports whether a GPU runs communication kernels.
func communicates(x *workunit.Result, device int32) bool {
	return slices.ContainsFunc(x.Timeline.Devices, func(d *timeline.Device) bool { return d.ID == device && d.Comm > 0 })
}

// together reports whether two GPUs run the same steps: they communicate, and their units overlap in pairs.
func together(x *workunit.Result, a, b *unitSet) bool {
	if len(a.Units) != len(b.Units) || !communicates(x, a.Device) || !communicates(x, b.Device) {
		return false
	}
	overlap := 0
	for i, u := range a.Units {
		if v := b.Units[i]; x.Units[u].Start < x.Units[v].End && x.Units[v].Start < x.Units[u].End {
			overlap++
		}
	}
	return float64(overlap) >= togetherShare*float64(len(a.Units))
}
