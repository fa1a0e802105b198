package gpu

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Bounds from which launches of a kernel show the cost of communication beside them.
const (
	besideShare  = 0.50 // of a launch with communication beside it
	besideLeast  = 5    // launches with it, and as many without
	besideSpread = 1.25 // p90 over p10 of those without: else their work differs
)

// commSlows compares launches of the same kernel and the same geometry in the judged time, those with communication
// beside them and those without.
func commSlows(in *kit.Input, out *kit.Output) {
	s := in.Step()
	if s.Device == nil {
		return
	}
	var comm interval.Set
	d, k := s.Device, &in.Trace.Kernels
	for i := range d.Len() {
		if d.Class(i) == timeline.Comm {
			comm.Add(d.Start(i), d.End(i))
		}
	}
	if len(comm) == 0 {
		return
	}
	groups := kit.NewCombos(len(k.Names), len(k.Configs))
	var alone, beside [][]int64
	for i := range d.Len() {
		start, end := d.Start(i), d.End(i)
		if d.Class(i) != timeline.Compute || d.Kind(i) != timeline.KernelWork || end <= start || s.Spans.Within(start, end) < end-start {
			continue
		}
		g := int(groups.Of(k.Name(d.Row(i)), k.Config(d.Row(i))))
		if g == len(alone) {
			alone, beside = append(alone, nil), append(beside, nil)
		}
		switch ns := comm.Within(start, end); {
		case ns == 0:
			alone[g] = append(alone[g], end-start)
		case float64(ns) >= besideShare*float64(end-start):
			beside[g] = append(beside[g], end-start)
		}
	}
	var more, without float64
	var claims []kit.Claim
	for g := range alone {
		slices.Sort(alone[g])
		if len(beside[g]) < besideLeast || len(alone[g]) < besideLeast ||
			stat.Percentile(alone[g], 0.9) > besideSpread*stat.Percentile(alone[g], 0.1) {
			continue
		}
		usual := stat.Percentile(alone[g], 0.5) * float64(len(beside[g]))
		excess := float64(kit.Sum(beside[g])) - usual
		more, without = more+excess, without+usual
		if excess > 0 {
			claims = append(claims, s.KernelClaim(groups.Keys[g].A, int64(excess)))
		}
	}
	if more <= 0 {
		return
	}
	ref := kit.Ref("comm.slowdown_time")
	if s.Units > 0 {
		ref = kit.Ref("unit.comm_slowdown")
		out.Float(ref.ID, nil, more/float64(s.Units)).N = s.Units
	} else {
		out.Float(ref.ID, nil, more)
	}
	out.FindAs("comm_slows", "Kernels beside communication take "+unit.Percent(more/without)+" longer than without it: "+s.Each(int64(more)),
		[]report.MetricRef{ref},
		"Communication takes SMs and memory bandwidth from them: give it fewer SMs (NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS), or let copy engines or NVLS move the data.",
		"Overlap still pays while this is less than the communication that it hides.",
	).Costs(s.Worth(int64(more)), claims...)
}
