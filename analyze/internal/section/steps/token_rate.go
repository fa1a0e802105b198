package steps

import (
	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
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
	covered := interval.Of(lists.Map(s.Units, func(u int32) interval.Interval {
		return interval.Interval{Start: in.Units.Units[u].Start, End: in.Units.Units[u].End}
	}))
	atOnce := float64(s.Time) / float64(covered.Len()) // 1 if one process runs the units
	return new(float64(tokens) / float64(len(s.Units)) / (p50 / 1e9) / float64(gpus) * atOnce)
}

// together reports whether two GPUs run the same steps: they communicate, and their units overlap in pairs.
func together(x *workunit.Result, a, b *unitSet) bool {
	if len(a.Units) != len(b.Units) {
		return false
	}
	for _, d := range x.Timeline.Devices {
		if (d.ID == a.Device || d.ID == b.Device) && d.Comm == 0 {
			return false
		}
	}
	overlap := 0
	for i, u := range a.Units {
		if v := b.Units[i]; x.Units[u].Start < x.Units[v].End && x.Units[v].Start < x.Units[u].End {
			overlap++
		}
	}
	return float64(overlap) >= togetherShare*float64(len(a.Units))
}
