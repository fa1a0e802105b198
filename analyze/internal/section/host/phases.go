package host

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Phases = kit.Section{
	ID: "phases", Group: report.GroupRanges, Title: "Phases",
	Derivation: "Range names map to phases by --phase-map, or by built-in patterns for vLLM, SGLang, " +
		"TensorRT-LLM and LLM@… markers. A kernel belongs to the phase of the nearest range outward, from the " +
		"innermost one around its launch call, that maps to a phase; host time to that of the nearest mapping " +
		"range open on the thread. Time of no phase is in the row unmapped.",
	Findings: []kit.FindingDef{
		{ID: "dominant_phase", Title: "One phase dominates the attributed GPU kernel time"},
		{ID: "dominant_phase_wall", Title: "One NVTX phase dominates the host time"},
		{ID: "phase_launch_storm", Title: "Storm of tiny kernels inside one phase"},
	},
	Metrics: []report.MetricDef{
		kit.TotalTime("phase.gpu_time", report.Lower, report.Sum, "kernel time launched inside the phase, CUDA graphs "+
			"traced as a whole included; sums over phases to all kernel time").By("phase", "pid,phase"),
		kit.Ratio("phase.gpu_share", report.None, report.Leave, "share of all kernel time in the window").By("phase"),
		kit.TotalTime("phase.wall_time", report.Lower, report.Sum,
			"host time inside the phase, each moment of a thread counted for the nearest phase only, threads added "+
				"up; unmapped is the time inside ranges without a phase").By("phase", "pid,phase"),
		kit.Ratio("phase.wall_share", report.None, report.Leave,
			"share of the host time inside any NVTX range").By("phase"),
		kit.ExactCount("phase.kernel_count", report.None, report.Sum, "kernels launched inside the phase").By("phase"),
		kit.EventTime("phase.kernel_duration", report.None, report.Leave,
			"median duration of a kernel of the phase; the summary is over kernels").Summarised().By("phase"),
		kit.ExactCount("phase.launch_count", report.Lower, report.Sum, "launch API calls inside the phase").By("phase"),
		kit.Rate("phase.launch_rate", report.None, report.Leave,
			"launch API calls per second of the phase's wall time").By("phase"),
	},
	Tables: []report.Table{
		{ID: "phases", Title: "Phases", File: "phases.csv", Columns: []report.Column{
			kit.NameCol("phase", "Phase").Merged(report.Key),
			kit.CountCol("ranges", "Ranges", "nvtx_count").Merged(report.Sum),
			kit.NsCol("gpu", "GPU time", "total_kernel_time_ns", "total_kernel_time_ms").Merged(report.Sum.First()),
			kit.RatioCol("gpu_share", "Share", "pct_total_kernel_time").Merged(report.Leave),
			kit.Wide(kit.RatioCol("attributed_share", "Share of attributed", "pct_of_attributed_kernel_time")).Merged(report.Leave),
			kit.CountCol("kernels", "Kernels", "kernel_count").Merged(report.Sum),
			kit.MeanCol("p50", "p50 kernel", "p50_kernel_us").Merged(report.Same),
			kit.CountCol("launches", "Launches", "launch_count").Merged(report.Sum),
			kit.NsCol("wall", "Wall time", "total_time_ns", "total_time_ms").Merged(report.Sum),
			kit.RatioCol("wall_share", "Share of wall", "pct_of_nvtx_total").Merged(report.Leave),
		}},
		{ID: "phases_by_pid", Title: "Phases per process", File: "phases_by_pid.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("pid", "PID"),
			kit.NameCol("phase", "Phase"),
			kit.NsCol("gpu", "GPU time", "total_kernel_time_ns", "total_kernel_time_ms"),
			kit.RatioCol("share", "Share of the process", "pct_of_pid_kernel_time"),
			kit.CountCol("kernels", "Kernels", "kernel_count"),
			kit.CountCol("launches", "Launches", "launch_count"),
			kit.NsCol("wall", "Wall time", "total_time_ns", "total_time_ms"),
		}},
	},
	Run: phases,
}

// Thresholds of the findings: nsys-llm-explainer's share of the top phase, and the launches that make a launch storm.
const (
	dominantPhase    = 0.70
	stormMinLaunches = 100
	stormMinShare    = 0.05 // of wall time, below which a phase is not worth a finding
	maxPhaseMetrics  = 100
)

func phases(in *kit.Input, out *kit.Output) {
	x := newPhaseSums(in)
	list := x.totals()
	mapped, whyNot := attributesKernels(in)
	x.table(out, list, mapped)
	x.pidTable(out, mapped)
	switch r := &in.Trace.Ranges; {
	case !in.Trace.Tables.Has(trace.RoleNVTX):
		out.Status(report.Unavailable, in.Lack(trace.RoleNVTX))
		return
	case !x.any:
		out.Status(report.NotApplicable,
			"no NVTX range in the window maps to a phase by the "+in.Options.PhasesFrom+": name phases with --phase-map FILE, {\"prefill\": [\"substring\", \"re:regex\"], …}")
		if r.Len() == 0 {
			out.Status(report.NotApplicable, "the table "+in.Trace.Tables.Name(trace.RoleNVTX)+" holds no ranges")
		}
		return
	case !mapped:
		out.Status(report.Partial, "wall time only: "+whyNot)
	}
	out.Note("Phases are from the " + in.Options.PhasesFrom + ".")
	if missing := x.unseen(); len(missing) > 0 {
		out.Note("No range in the window maps to: " + strings.Join(missing, ", ") + ".")
	}
	sentElsewhere(in, out)
	x.metrics(out, list, mapped)
	x.findings(out, list, mapped)
}

// sentElsewhere warns of units whose markers name their phase, and which the phase map counts in another phase.
func sentElsewhere(in *kit.Input, out *kit.Output) {
	type move struct{ from, to string }
	moved, all := map[move]int64{}, map[string]int64{}
	for _, u := range in.Units.Units {
		if u.Marker == trace.None || u.Group < 0 {
			continue
		}
		from := in.Units.Groups[u.Group].Phase
		all[from]++
		to := kit.PhaseOf(in.Trace.Ranges.Names[in.Trace.Ranges.Name(int(u.Marker))].Tag)
		if to >= 0 && in.Options.Phases[to] != from && slices.Contains(in.Options.Phases, from) {
			moved[move{from, in.Options.Phases[to]}]++
		}
	}
	moves := slices.SortedFunc(maps.Keys(moved), func(a, b move) int {
		return cmp.Or(cmp.Compare(moved[b], moved[a]), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	for _, m := range moves {
		out.Warn("phase_map", "The "+in.Options.PhasesFrom+" counts "+formatCount(moved[m])+
			" of "+formatCount(all[m.from])+" "+m.from+
			" steps as "+m.to+": their markers say "+m.from+". The first phase with a pattern that matches wins: put "+m.from+
			" first, or write narrower patterns.")
	}
}

// phaseSum is the sums of one phase, in one process or in all.
type phaseSum struct {
	phase, proc     int32 // phase indexes Options.Phases, whose end is the unmapped rest
	ranges, wall    int64
	gpu             int64
	kernels, graphs int64
	launches        int64
}

func (a *phaseSum) add(b *phaseSum) {
	a.ranges, a.wall, a.gpu = a.ranges+b.ranges, a.wall+b.wall, a.gpu+b.gpu
	a.kernels, a.graphs, a.launches = a.kernels+b.kernels, a.graphs+b.graphs, a.launches+b.launches
}

// phaseSums adds up a trace by process and phase.
type phaseSums struct {
	in      *kit.Input
	rest    int32             // the phase of what maps to none: the one after those of the options
	byName  []int32           // phase, by index into Ranges.Names
	nearest *timeline.Nearest // range name that maps to a phase
	any     bool              // something maps to a phase
	sums    []phaseSum
	durs    *kit.Groups // kernel durations by phase
	// Kernel time in the window, and the part of it that some range encloses, whatever its phase.
	total, attributed int64
}

func newPhaseSums(in *kit.Input) *phaseSums {
	x := &phaseSums{in: in, rest: int32(len(in.Options.Phases))}
	x.byName = lists.Map(in.Trace.Ranges.Names, func(n trace.RangeName) int32 {
		if p := int32(kit.PhaseOf(n.Tag)); p >= 0 {
			return min(p, x.rest)
		}
		return x.rest
	})
	inPhase := func(phase int32) bool { return phase != x.rest }
	if !slices.ContainsFunc(x.byName, inPhase) {
		return x
	}
	x.nearest = in.Contexts.Nearest(func(name int32) bool { return inPhase(x.byName[name]) })
	x.sums = make([]phaseSum, (len(in.Trace.Procs)+1)*x.phases())
	for i := range x.sums {
		x.sums[i].phase, x.sums[i].proc = int32(i%x.phases()), int32(i/x.phases())
	}
	x.addWall()
	x.addLaunches()
	x.addKernels()
	x.any = slices.ContainsFunc(x.sums, func(s phaseSum) bool {
		return inPhase(s.phase) && (s.ranges > 0 || s.gpu > 0 || s.kernels > 0)
	})
	return x
}

// phases is how many there are, the rest included.
func (x *phaseSums) phases() int { return int(x.rest) + 1 }

// at is the sum of a process and phase; trace.None stands for an unknown process.
func (x *phaseSums) at(proc, phase int32) *phaseSum {
	return &x.sums[orLast(proc, len(x.in.Trace.Procs))*x.phases()+int(phase)]
}

// around is the phase of the nearest range around the call that maps to one.
func (x *phaseSums) around(call int32) int32 {
	if name := x.nearest.Of(call); name != trace.None {
		return x.byName[name]
	}
	return x.rest
}

func (x *phaseSums) addKernels() {
	k, g, calls := &x.in.Trace.Kernels, &x.in.Trace.Graphs, x.in.Calls
	lo, hi := k.Starting(x.in.Span.Start, x.in.Span.End)
	memory := x.in.Trace.Memory()
	x.durs = kit.Gather(memory, x.phases(), lo, hi, func(i int) int32 {
		phase := x.around(calls.Kernel[i])
		s := x.at(k.Proc(i), phase)
		s.kernels++
		s.gpu += k.Dur(i)
		x.total += k.Dur(i)
		return phase
	}, k.Dur).Sort()
	lo, hi = g.Starting(x.in.Span.Start, x.in.Span.End)
	for i := lo; i < hi; i++ {
		s := x.at(g.Proc(i), x.around(calls.Graph[i]))
		s.graphs++
		s.gpu += g.Dur(i)
		x.total += g.Dur(i)
	}
	if x.in.NVTX != nil {
		x.attributed = x.in.NVTX.Attributed
	}
}

func (x *phaseSums) addLaunches() {
	api := &x.in.Trace.API
	lo, hi := api.Starting(x.in.Host.Start, x.in.Host.End)
	for i := lo; i < hi; i++ {
		if api.Names[api.Name(i)].Launch {
			x.at(x.in.Trace.ProcOf(api.Thread(i)), x.around(int32(i))).launches++
		}
	}
}

// addWall walks each thread's ranges by start. Ranges without a phase are transparent: their time belongs to the phase
// around them, or is unmapped if there is none.
func (x *phaseSums) addWall() {
	r := &x.in.Trace.Ranges
	lo, hi := r.Starting(x.in.Host.Start, x.in.Host.End)
	threads := make([]threadWall, len(x.in.Trace.Threads)+1) // the last for ranges that name none
	inOrder(r, lo, hi, func(i int) {
		threads[orLast(r.Thread(i), len(threads)-1)].add(x, x.in.Trace.ProcOf(r.Thread(i)), r.Start(i), r.End(i), x.byName[r.Name(i)])
	})
	for th := range threads {
		if w := &threads[th]; w.any {
			w.advance(x, w.inside.Reached)
			x.at(w.proc, x.rest).wall += w.inside.Ns - w.claimed
		}
	}
}

// threadWall is the host time of one thread: it moves through the thread's time with the open ranges that map to a
// phase, the nearest last.
type threadWall struct {
	proc    int32
	any     bool
	now     int64
	stack   []openPhase
	inside  kit.Covered // time inside some range
	claimed int64       // time inside one that maps to a phase
}

type openPhase struct {
	phase int32
	end   int64
}

func (w *threadWall) add(x *phaseSums, proc int32, start, end int64, phase int32) {
	if !w.any {
		*w = threadWall{proc: proc, any: true, now: start, inside: kit.Covered{Reached: start}}
	}
	w.inside.Add(start, end)
	x.at(proc, phase).ranges++
	if phase != x.rest {
		w.advance(x, start)
		w.stack = append(w.stack, openPhase{phase, end})
	}
}

// advance moves to the given time and attributes the time since to the nearest range open at each moment.
func (w *threadWall) advance(x *phaseSums, to int64) {
	for len(w.stack) > 0 && w.now < to {
		top := w.stack[len(w.stack)-1]
		if until := min(top.end, to); until > w.now {
			x.at(w.proc, top.phase).wall += until - w.now
			w.claimed += until - w.now
			w.now = until
		}
		if top.end <= w.now {
			w.stack = w.stack[:len(w.stack)-1]
		}
	}
	w.now = max(w.now, to)
}
