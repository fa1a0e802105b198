package host

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// name of a phase; the rest is "unmapped" unless the map has a phase of that name.
func (x *phaseSums) name(phase int32) string {
	if phase < x.rest {
		return x.in.Options.Phases[phase]
	}
	if slices.Contains(x.in.Options.Phases, "unmapped") {
		return "(unmapped)"
	}
	return "unmapped"
}

func (s *phaseSum) empty() bool {
	return s.ranges == 0 && s.wall == 0 && s.kernels == 0 && s.graphs == 0 && s.launches == 0
}

// rank orders by GPU time, then wall time, then the order of the map; the unmapped rest is last.
func (x *phaseSums) rank(list []phaseSum) {
	lists.Sort(list, func(a, b phaseSum) int {
		last := func(p int32) int {
			if p == x.rest {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(last(a.phase), last(b.phase)), cmp.Compare(b.gpu, a.gpu), cmp.Compare(b.wall, a.wall),
			cmp.Compare(a.phase, b.phase))
	})
}

// totals are the phases over all processes, empty if nothing maps to a phase.
func (x *phaseSums) totals() []phaseSum {
	if !x.any {
		return nil
	}
	all := make([]phaseSum, x.phases())
	for i := range x.sums {
		s := &x.sums[i]
		all[s.phase].add(s)
	}
	for p := range all {
		all[p].phase, all[p].proc = int32(p), trace.None
	}
	list := slices.DeleteFunc(all, func(s phaseSum) bool { return s.empty() })
	x.rank(list)
	return list
}

// unseen are a few phases of the map, or of the built-in patterns, that no range in the window maps to.
func (x *phaseSums) unseen() []string {
	const few = 10
	var names []string
	seen := make([]bool, len(x.in.Options.Phases))
	for i := range x.sums {
		if s := &x.sums[i]; s.phase < x.rest && !s.empty() {
			seen[s.phase] = true
		}
	}
	for p, n := range x.in.Options.Phases {
		if !seen[p] {
			if names = append(names, n); len(names) == few {
				return append(names, "…")
			}
		}
	}
	return names
}

func wallTotal(list []phaseSum) int64 {
	return lists.Sum(list, func(p phaseSum) int64 { return p.wall })
}

// attributedTo is the part of a phase's kernel time inside ranges: all of it, except in the unmapped rest.
func (x *phaseSums) attributedTo(s *phaseSum, list []phaseSum) int64 {
	if s.phase < x.rest {
		return s.gpu
	}
	left := x.attributed
	for i := range list {
		if list[i].phase < x.rest {
			left -= list[i].gpu
		}
	}
	return left
}

func (x *phaseSums) table(out *kit.Output, list []phaseSum, mapped bool) {
	t := out.Table("phases")
	wall := wallTotal(list)
	for i := range list {
		s := &list[i]
		row := []kit.Field{kit.Text("phase", x.name(s.phase)), kit.Int("ranges", s.ranges), kit.Put("launches", x.launches(s)),
			kit.Int("wall", s.wall), kit.Maybe("wall_share", stat.Ratio(s.wall, wall))}
		if mapped {
			row = append(append(row, t.Stats(x.durs.Of(int(s.phase)).Summary())...), kit.Int("gpu", s.gpu), kit.Int("kernels", s.kernels),
				kit.Maybe("gpu_share", stat.Ratio(s.gpu, x.total)),
				kit.Maybe("attributed_share", stat.Ratio(x.attributedTo(s, list), x.attributed)))
		}
		t.Partial(row...)
	}
	t.Cut(max(x.in.Options.Top, maxPhaseMetrics), "ranges", "launches", "wall", "wall_share", "gpu", "gpu_share",
		"attributed_share", "kernels").Add()
}

// launches are unknown if the capture has no API calls, or does not say on which thread they ran.
func (x *phaseSums) launches(s *phaseSum) report.Cell {
	if !x.knowsLaunches() {
		return report.Null
	}
	return report.I(s.launches)
}

func (x *phaseSums) knowsLaunches() bool {
	return x.in.Trace.Tables.Has(trace.RoleAPI) && x.in.Trace.Has.APIThread && x.in.Trace.Has.RangeThread
}

func (x *phaseSums) pidTable(out *kit.Output, mapped bool) {
	t := out.Table("phases_by_pid")
	phases := x.phases()
	for p := 0; x.any && p*phases < len(x.sums); p++ {
		own := slices.Clone(x.sums[p*phases : (p+1)*phases])
		x.rank(own)
		total := lists.Sum(own, func(p phaseSum) int64 { return p.gpu })
		for i := range own {
			s := &own[i]
			if s.empty() {
				continue
			}
			row := []kit.Field{kit.Text("phase", x.name(s.phase)), kit.Put("launches", x.launches(s)), kit.Int("wall", s.wall)}
			if p < len(x.in.Trace.Procs) {
				row = append(row, kit.PID(x.in.Trace.Procs, int32(p)))
			}
			if mapped {
				row = append(row, kit.Int("gpu", s.gpu), kit.Maybe("share", stat.Ratio(s.gpu, total)), kit.Int("kernels", s.kernels))
			}
			t.Partial(row...)
		}
	}
	t.Cut(max(2*x.in.Options.Top, maxPhaseMetrics), "launches", "wall", "gpu", "kernels").Add()
}

func (x *phaseSums) metrics(out *kit.Output, list []phaseSum, mapped bool) {
	wall := wallTotal(list)
	fromRanges := func(rows int64) {
		out.From(trace.RoleNVTX, int(rows), "start", "end", "text", "textId", "globalTid")
	}
	for n := range list[:min(len(list), maxPhaseMetrics)] {
		s := &list[n]
		l := kit.Labels("phase", x.name(s.phase))
		if mapped {
			fromAttribution(out, s.kernels+s.graphs)
			out.Int("phase.gpu_time", l, s.gpu)
			out.Metric("phase.gpu_share", l, stat.Ratio(s.gpu, x.total))
			out.Int("phase.kernel_count", l, s.kernels)
			if sum := x.durs.Of(int(s.phase)).Summary(); sum != nil {
				out.Float("phase.kernel_duration", l, sum.P50).Summary = sum
			}
		}
		fromRanges(s.ranges)
		out.Int("phase.wall_time", l, s.wall)
		out.Metric("phase.wall_share", l, stat.Ratio(s.wall, wall))
		if x.knowsLaunches() {
			out.From(trace.RoleAPI, int(s.launches), "start", "end", "nameId", "globalTid")
			out.Source.With(trace.RoleNVTX)
			out.Int("phase.launch_count", l, s.launches)
			if s.phase < x.rest {
				out.Metric("phase.launch_rate", l, stat.Ratio(s.launches, float64(s.wall)/1e9))
			}
		}
	}
	shown := 0
	for i := range x.sums {
		s := &x.sums[i]
		if s.empty() || int(s.proc) >= len(x.in.Trace.Procs) {
			continue
		}
		if shown++; shown > maxPhaseMetrics {
			return
		}
		l := kit.Labels("pid", kit.PIDText(x.in, s.proc), "phase", x.name(s.phase))
		if mapped {
			fromAttribution(out, s.kernels+s.graphs)
			out.Int("phase.gpu_time", l, s.gpu)
		}
		fromRanges(s.ranges)
		out.Int("phase.wall_time", l, s.wall)
	}
}

func (x *phaseSums) findings(out *kit.Output, list []phaseSum, mapped bool) {
	wall := wallTotal(list)
	share := func(part, whole int64) float64 { return float64(part) / float64(max(whole, 1)) }
	if top := list[0]; mapped && top.phase < x.rest && share(top.gpu, x.attributed) >= dominantPhase {
		name := x.name(top.phase)
		out.Find("dominant_phase",
			[]report.MetricRef{kit.Ref("phase.gpu_share", "phase", name), kit.Ref("phase.gpu_time", "phase", name)},
			phaseAdvice(name)...)
	}
	longest := 0
	for i := range list {
		if list[i].phase < x.rest && list[i].wall > list[longest].wall {
			longest = i
		}
	}
	if top := list[longest]; top.phase < x.rest && longest < maxPhaseMetrics &&
		share(top.wall, wall) >= dominantPhase {
		name := x.name(top.phase)
		out.Find("dominant_phase_wall",
			[]report.MetricRef{kit.Ref("phase.wall_share", "phase", name), kit.Ref("phase.wall_time", "phase", name)},
			"Compare its wall time with its GPU time: if the host takes longer, look for waits and launch cost in this phase (synchronisation and launches sections).")
	}
	for n, s := range list {
		durs := x.durs.Of(int(s.phase))
		if n >= maxPhaseMetrics || !mapped || !x.knowsLaunches() || s.phase == x.rest ||
			s.launches < stormMinLaunches || durs.Len() == 0 || s.wall == 0 {
			continue
		}
		if share(s.wall, wall) < stormMinShare || !isStorm(float64(s.launches)*1e9/float64(s.wall),
			durs.Percentile(0.5)) {
			continue
		}
		name := x.name(s.phase)
		out.Find("phase_launch_storm", []report.MetricRef{kit.Ref("phase.launch_rate", "phase", name),
			kit.Ref("phase.kernel_duration", "phase", name), kit.Ref("phase.launch_count", "phase", name)},
			"Run this phase as a CUDA graph"+kit.SetGraphs+", and check that its batch sizes are among the captured ones.",
			"Fuse its pointwise kernels: torch.compile, or the engine's fused norm, rope, activation and sampling kernels.")
	}
}

func phaseAdvice(name string) []string {
	switch name = strings.ToLower(name); {
	case strings.Contains(name, "decode"), strings.Contains(name, "generation"):
		return []string{
			"Decode pays per token: reduce launches per step (CUDA graphs, fusion), look at weight traffic (fp8 or int4 weights) and raise the batch size until the GPU is compute bound.",
			"Speculative decoding turns several steps into one where latency matters more than throughput.",
		}
	case strings.Contains(name, "prefill"), strings.Contains(name, "context"):
		return []string{
			"Prefill is bound by GEMM and attention throughput: check the attention back end, the dtype, and prefix caching for shared prompts.",
			"If decode latency suffers from it, limit the tokens per step (chunked prefill, --max-num-batched-tokens).",
		}
	}
	return []string{"Start with the kernels launched in this phase: narrow the report to it with --window nvtx:REGEX."}
}
