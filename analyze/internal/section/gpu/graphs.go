package gpu

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Graphs = kit.Section{
	ID: "graphs", Group: report.GroupTime, Steady: true, Title: "CUDA graphs",
	Derivation: "GPU work that ran inside CUDA graphs: kernels that are a graph's node or were launched by a " +
		"graph launch call, and graphs traced as a whole. The rows of one launch share its " +
		"correlation id. Coverage is their time over the time of all kernels and whole graphs that start in the " +
		"window.",
	Findings: []kit.FindingDef{
		{ID: "graph_hidden", Title: "CUDA graphs were traced as a whole: their kernels are hidden"},
		{ID: "no_graphs", Title: "No CUDA graphs, and the GPU waits while single kernels are launched", General: true},
		{ID: "few_graphs", Title: "CUDA graphs run only a part of the kernels, and the GPU waits for the host", General: true},
	},
	Metrics: []report.MetricDef{
		kit.Ratio("graph.coverage", report.Higher, report.RatioOf("graph.time", "kernel.total_time").OrMore(), "share "+
			"of kernel time run inside CUDA graphs; a graph traced as a whole counts with its whole duration").Quoted(),
		kit.ExactCount("graph.launches", report.None, report.Sum, "graph launch calls").Quoted(),
		kit.NoisyCount("graph.created", report.Lower, report.Sum,
			"executable CUDA graphs made in the window; a warm server makes none"),
		kit.TotalTime("graph.time", report.None, report.Sum,
			"GPU time inside CUDA graphs: kernels of graphs, and graphs traced as a whole"),
		kit.ExactCount("graph.kernels", report.None, report.Sum,
			"kernels seen inside CUDA graphs; those of graphs traced as a whole are hidden and not counted"),
		kit.ExactLevel("graph.unique", report.None, report.Sum,
			"distinct CUDA graphs that ran, per process and device: executable graphs if they were traced as a whole, "+
				"else graphs by id, if the capture has it, and distinct sets of kernels per launch"),
		report.Define("graph.kernels_per_launch", report.Count, report.None, report.Exact, report.Event, report.Leave,
			"mean number of kernels of one graph launch; the summary is over launches").Summarised(),
	},
	Tables: []report.Table{
		{ID: "graphs", Title: "Graphs", File: "graphs.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("pid", "PID"),
			kit.IDCol("device_id", "GPU"),
			kit.IDCol("graph_id", "Graph"),
			kit.IDCol("graph_exec_id", "Exec"),
			kit.TextCol("signature", "Kernels' hash"),
			kit.CountCol("count", "Launches", "launch_count"),
			kit.NsCol("total", "Total", "total_time_ns", "total_time_ms"),
			kit.MeanCol("mean", "Mean", "avg_duration_us"),
			kit.MeanCol("p50", "p50", "p50_duration_us"),
			kit.NsCol("max", "Max", "max_duration_us"),
			kit.NsCol("kernel_time", "Kernel time", "kernel_time_ms"),
			kit.CountCol("kernels", "Kernels per launch"),
		}},
	},
	Run: graphs,
}

// Bounds from which graphs, or the lack of them, are a finding.
const (
	lowCoverage    = 0.70 // profilemate's, below which it advises more graphs
	graphHostShare = 0.10 // of the window idle for the host or a launch call, below which graphs would not help
)

// graphKey identifies executable graphs: by id if they were traced as a whole, by their kernels if not.
type graphKey struct {
	proc        int32
	device      int32
	graph, exec int64 // -1 unknown
	signature   uint64
	kernels     int32 // -1 hidden
}

type graphRun struct {
	key        graphKey
	start, end int64
	busy       int64 // kernel time; for a whole graph its duration
}

func graphs(in *kit.Input, out *kit.Output) {
	k, g := &in.Trace.Kernels, &in.Trace.Graphs
	lo, hi := k.Starting(in.Span.Start, in.Span.End)
	glo, ghi := g.Starting(in.Span.Start, in.Span.End)
	hasAPI := in.Trace.Tables.Has(trace.RoleAPI)
	launches := in.CallStats().InWindow(func(n *trace.APIName) bool { return n.GraphLaunch })

	nodes, inGraphs, nodeTime := nodeRuns(in, lo, hi)
	whole := wholeRuns(in, glo, ghi)
	wholeTime := kit.Total(glo, ghi, g.Dur)
	all := in.KernelStats().All.Total + wholeTime

	if hasAPI {
		out.From(trace.RoleAPI, int(launches), "start", "nameId")
		out.Int("graph.launches", nil, launches)
	}
	if in.Trace.Tables.Has(trace.RoleGraphMade) {
		from, _ := slices.BinarySearch(in.Trace.GraphsMade, in.Span.Start)
		to, _ := slices.BinarySearch(in.Trace.GraphsMade, in.Span.End)
		out.From(trace.RoleGraphMade, to-from, "start", "graphExecId")
		out.Int("graph.created", nil, int64(to-from))
	}
	lost := launches > 0 && inGraphs == 0 && len(whole) == 0
	known := in.Trace.Has.KernelGraphNode || in.Trace.Has.KernelCorrelation && hasAPI
	if !lost && known || len(whole) > 0 {
		out.From(trace.RoleKernel, hi-lo+ghi-glo, "start", "end", "graphNodeId", "correlationId")
		out.Source.With(trace.RoleGraph, "start", "end", "graphExecId")
		out.Metric("graph.coverage", nil, stat.Ratio(nodeTime+wholeTime, all))
		out.Source.Rows = int64(inGraphs + len(whole))
		out.Int("graph.time", nil, nodeTime+wholeTime)
		if len(whole) == 0 || inGraphs > 0 {
			out.Int("graph.kernels", nil, int64(inGraphs))
		}
	}
	runs := append(nodes, whole...)
	unique := graphTable(in, out, runs)
	if len(runs) > 0 {
		out.Source.Rows = int64(len(runs))
		out.Int("graph.unique", nil, int64(unique))
	}
	if len(nodes) > 0 {
		counts := lists.Map(nodes, func(g graphRun) int64 { return int64(g.key.kernels) })
		out.From(trace.RoleKernel, inGraphs, "graphNodeId", "correlationId")
		s := stat.Summarize(counts)
		out.Float("graph.kernels_per_launch", nil, s.Mean).Summary = s
	}

	switch {
	case len(runs) == 0 && !hasAPI && hi == lo:
		out.Status(report.Unavailable, in.Lack(trace.RoleKernel))
	case lost:
		out.Status(report.Partial, "the window has graph launches but no GPU work of a graph: graph tracing was off or the rows are lost, and coverage is unknown")
	case len(runs) == 0 && inGraphs > 0:
		out.Status(report.Partial, "this export lacks the correlation ids of kernels: which of them one launch ran is unknown")
	case len(runs) == 0 && !known && hi > lo:
		out.Status(report.Unavailable,
			"this export lacks the columns that identify a graph's kernels: graphNodeId, or correlation ids and API calls")
	case len(runs) == 0:
		out.Status(report.NotApplicable, "no CUDA graph runs in the window")
	case len(whole) > 0:
		out.Status(report.Partial, "CUDA graphs were traced as a whole (--cuda-graph-trace=graph): the kernels inside them are hidden")
	}
	if slices.ContainsFunc(nodes, func(r graphRun) bool { return r.key.graph < 0 }) {
		out.Note("Graphs were traced by node (--cuda-graph-trace=node): a graph has no id here, launches with the same kernels are taken for the same graph.")
	}
	graphFindings(in, out, float64(nodeTime+wholeTime), float64(wholeTime), float64(all), launches, lost)
}

// nodeRuns gathers the kernels that ran inside graphs by launch, and counts them. A launch on several devices is one run
// on each; a kernel whose launch is unknown is part of no run.
func nodeRuns(in *kit.Input, lo, hi int) (runs []graphRun, kernels int, total int64) {
	type launch struct {
		proc, device int32
		corr         int64
	}
	k, api := &in.Trace.Kernels, &in.Trace.API
	names := make([]uint64, len(k.Names)) // 0: not hashed yet
	var index lists.Numbering[launch]
	for i := lo; i < hi; i++ {
		call := in.Calls.Kernel[i]
		if !k.InGraph(i) && (call == trace.None || !api.Names[api.Name(int(call))].GraphLaunch) {
			continue
		}
		kernels++
		total += k.Dur(i)
		if k.Corr(i) < 0 {
			continue
		}
		r := int(index.Of(launch{k.Proc(i), k.Device(i), k.Corr(i)}))
		if r == len(runs) {
			runs = append(runs, graphRun{key: graphKey{proc: k.Proc(i), device: k.Device(i), graph: k.Graph(i), exec: -1},
				start: k.Start(i)})
		}
		n := k.Name(i)
		if names[n] == 0 {
			h := fnv.New64a()
			h.Write([]byte(k.Names[n].Name))
			names[n] = h.Sum64()
		}
		run := &runs[r]
		run.key.kernels++
		// order of concurrent nodes varies: add, do not chain
		run.key.signature += mix(names[n] ^ uint64(k.Configs[k.Config(i)].Grid[0]))
		run.end = max(run.end, k.End(i))
		run.busy += k.Dur(i)
	}
	return runs, kernels, total
}

// mix scatters the bits of a hash, so that sums of hashes differ if their terms do.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func wholeRuns(in *kit.Input, lo, hi int) []graphRun {
	g := &in.Trace.Graphs
	runs := make([]graphRun, 0, hi-lo)
	for i := lo; i < hi; i++ {
		runs = append(runs, graphRun{key: graphKey{proc: g.Proc(i), device: g.Device(i), graph: g.Graph(i),
			exec: g.Exec(i), kernels: -1},
			start: g.Start(i), end: g.End(i), busy: g.Dur(i)})
	}
	return runs
}

// graphTable shows each executable graph, and returns how many there are.
func graphTable(in *kit.Input, out *kit.Output, runs []graphRun) int {
	var index lists.Numbering[graphKey]
	keys := lists.Map(runs, func(g graphRun) int32 { return index.Of(g.key) })
	n := len(index.Keys)
	spans := kit.Gather(nil, n, 0, len(runs), func(i int) int32 { return keys[i] },
		func(i int) int64 { return runs[i].end - runs[i].start }).Sort()
	busy := make([]int64, n)
	for i, k := range keys {
		busy[k] += runs[i].busy
	}
	t := out.Table("graphs")
	for _, e := range spans.Rank(cmp.Compare) {
		k := &index.Keys[e.Key]
		row := append(t.Stats(e.Summary),
			kit.PID(in.Trace.Procs, k.proc), kit.Put("device_id", kit.Known(int64(k.device))), kit.Put("graph_id", kit.Known(k.graph)),
			kit.Put("graph_exec_id", kit.Known(k.exec)), kit.Int("count", e.Count), kit.Int("total", e.Total))
		if k.kernels >= 0 {
			row = append(row, kit.Text("signature", fmt.Sprintf("%016x", k.signature)),
				kit.Int("kernel_time", busy[e.Key]), kit.Int("kernels", int64(k.kernels)))
		}
		t.Partial(row...)
	}
	t.Cut(in.Options.Top, "count", "total", "kernel_time").Add()
	return n
}

func graphFindings(in *kit.Input, out *kit.Output, inside, whole, all float64, launches int64, lost bool) {
	if all == 0 || lost {
		return
	}
	evidence := kit.Refs("graph.coverage", "graph.time")
	hasAPI := in.Trace.Tables.Has(trace.RoleAPI)
	if hasAPI {
		evidence = append(evidence, kit.Ref("graph.launches"))
	}
	if whole > 0 {
		out.Find("graph_hidden", evidence,
			"Kernel tables, categories and shares describe only what ran outside graphs. Capture again with `nsys profile --cuda-graph-trace=node`; it costs more per launch, so take times from this capture and kernels from that one.",
			"Do not compare kernels of this capture with one traced by node: only busy time, graph time and host metrics compare.")
	}
	step := in.Step()
	launching := step.Cause[timeline.CauseLaunch] + step.Host[timeline.HostRunning] + step.Host[timeline.HostUnknown]
	if !hasAPI || step.Share(launching) < graphHostShare || 2*launching < step.Idle { // it waits for something else
		return
	}
	idle := append(stepRefs(step, "unit.idle_cause_time", "gpu.idle_cause_time", "cause", "launch"),
		stepRefs(step, "unit.idle_cause_time", "gpu.idle_cause_time", "cause", "host")...)
	claims := step.IdleClaims(launching, timeline.CauseLaunch, timeline.CauseHost)
	switch {
	case inside == 0 && launches == 0:
		if in.Trace.Has.KernelGraphNode || in.Trace.Has.KernelCorrelation {
			out.Find("no_graphs", append(idle, kit.Ref("graph.launches")),
				"Decode steps are the usual place for CUDA graphs"+kit.SetGraphs+"; in PyTorch torch.compile(mode=\"reduce-overhead\").",
				"If graphs were meant to be on, look in the server's log for why capture was skipped: unsupported attention back end, batch sizes above the captured ones, LoRA or speculative decoding settings.",
			).Costs(step.Worth(launching), claims...)
		}
	case inside < lowCoverage*all && float64(step.Graphed) < lowCoverage*float64(step.Compute):
		out.Find("few_graphs", append(idle, evidence...),
			"Prefill usually runs outside graphs. If decode does too, its batch sizes are not among the captured ones: widen them (vLLM: --cudagraph-capture-sizes; SGLang: --cuda-graph-max-bs), or use piecewise graphs.",
		).Costs(step.Worth(launching), claims...)
	}
}
