package host

import (
	"cmp"
	"math"
	"runtime"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	units "github.com/nsys-llm/explain/analyze/report/unit"
)

var NVTX = kit.Section{
	ID: "nvtx", Group: report.GroupRanges, Title: "NVTX ranges",
	Derivation: "NVTX push/pop and start/end ranges, grouped by canonical name (sequence numbers, op ids, " +
		"addresses and counters become #). A kernel belongs to the ranges open on the launching thread around " +
		"the call that launched it: to the innermost (self) and to each of them once (inclusive). Wall time is a " +
		"union per thread and name.",
	Findings: []kit.FindingDef{
		{ID: "nvtx_present", Title: "NVTX ranges and phases"},
	},
	Metrics: []report.MetricDef{
		kit.Ratio("nvtx.coverage", report.Higher, report.RatioOf("", "kernel.total_time"),
			"share of kernel time launched inside some NVTX range, over all ranges; CUDA graphs traced as a whole "+
				"count as kernel time; per process of that process's kernel time").By("", "pid"),
		kit.TotalTime("nvtx.gpu_time", report.Lower, report.Sum,
			"kernel time launched inside ranges of this name, at any depth; a kernel counts once for each range on "+
				"the stack, and n counts these (kernel, range) pairs").By("range", "pid,range"),
		kit.TotalTime("nvtx.gpu_time_self", report.Lower, report.Sum, "kernel time for which a range of this name was "+
			"the innermost; sums to the attributed kernel time").By("range", "pid,range"),
		kit.TotalTime("nvtx.wall_time", report.Lower, report.Sum,
			"host time inside ranges of this name, nested and overlapping ranges of one thread counted once, threads "+
				"added up; the summary is over single ranges").Summarised().By("range", "pid,range"),
		kit.ExactCount("nvtx.count", report.None, report.Sum,
			"NVTX ranges that start in the window").By("", "range", "pid,range"),
	},
	Tables: []report.Table{
		{ID: "nvtx_ranges", Title: "NVTX ranges", File: "nvtx_ranges.csv", Columns: []report.Column{
			kit.NameCol("range_name", "Range").Merged(report.Key),
			kit.CountCol("count", "Count").Merged(report.Sum),
			kit.NsCol("gpu", "GPU time", "gpu_time_ns", "gpu_time_ms").Merged(report.Sum.First()),
			kit.NsCol("self", "Self GPU time", "gpu_time_self_ns", "gpu_time_self_ms").Merged(report.Sum),
			kit.RatioCol("self_share", "Self share", "pct_self_of_kernel_time").Merged(report.PartOf("self")),
			kit.CountCol("kernels", "Kernels", "kernel_count").Merged(report.Sum),
			kit.NsCol("wall", "Wall time", "total_time_ns", "total_time_ms").Merged(report.Sum),
			kit.Wide(kit.NsCol("sum", "Summed", "sum_time_ns", "sum_time_ms")).Merged(report.Sum),
			kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.RatioOf("sum", "count")),
			kit.Wide(kit.NsCol("min", "Min", "min_duration_us")).Merged(report.Min),
			kit.Wide(kit.MeanCol("p50", "p50", "p50_duration_us")).Merged(report.Same),
			kit.Wide(kit.NsCol("max", "Max", "max_duration_us")).Merged(report.Max),
		}},
		{ID: "nvtx_instances", Title: "Longest NVTX ranges", File: "nvtx_instances.csv", Merge: report.Leave, Columns: []report.Column{
			{ID: "range_name", Title: "Range", Kind: report.Name, CSV: []report.CSVCol{{Name: "range_name"},
				{Name: "name"}}},
			kit.MomentCol("start", "Start", "start_ns"),
			kit.MomentCol("end", "End", "end_ns"),
			kit.NsCol("duration", "Duration", "dur_ms", "duration_ms"),
			kit.IDCol("pid", "PID"),
			kit.IDCol("tid", "TID"),
			kit.Wide(kit.IDCol("thread_id", "Global TID")),
			{ID: "open", Title: "Still open", Kind: report.Bool},
		}},
	},
	Early: func(in *kit.Input) { totalsOfRanges(in) },
	Alone: func(in *kit.Input) { rangeSummaries(in) },
	Run:   nvtx,
}

// Bounds that keep report.json small; the tables' others rows hold the rest.
const (
	maxRangeMetrics    = 600 // names with GPU time
	maxRangeWalls      = 200 // names with wall time and count
	maxRangeNameBytes  = 60 << 10
	maxRangePidMetrics = 200 // (process, name) pairs
)

func nvtx(in *kit.Input, out *kit.Output) {
	r := &in.Trace.Ranges
	lo, hi := r.Starting(in.Host.Start, in.Host.End)
	mapped, whyNot := attributesKernels(in)
	totals := totalsOfRanges(in)
	names, list := totals.names, totals.list

	summaries := rangeSummaries(in)
	rangesTable(in, out, names, list, summaries, mapped)
	rangeInstances(in, out, lo, hi)
	switch {
	case !in.Trace.Tables.Has(trace.RoleNVTX):
		out.Status(report.Unavailable, in.Lack(trace.RoleNVTX))
		return
	case r.Len() == 0:
		out.Status(report.NotApplicable,
			"the table "+in.Trace.Tables.Name(trace.RoleNVTX)+" holds no ranges, only marks, names or domains")
		return
	case len(list) == 0:
		out.Status(report.NotApplicable, "no NVTX range starts in the window")
		return
	case !mapped:
		out.Status(report.Partial, "wall time only: "+whyNot)
	}

	evidence := kit.Refs("nvtx.count")
	out.From(trace.RoleNVTX, hi-lo, "start", "end", "eventType")
	out.Int("nvtx.count", nil, int64(hi-lo))
	if mapped && coverageMetrics(in, out) {
		evidence = append(evidence, kit.Ref("nvtx.coverage"))
	}
	rangeMetrics(in, out, &totals, summaries, mapped)

	if in.Options.Phased(&in.Trace.Ranges, lo, hi) {
		out.FindAs("nvtx_present", "NVTX ranges are there, and some map to phases", evidence,
			"The phases section says what each phase takes; --phase-map FILE names your own.")
	} else {
		out.FindAs("nvtx_present", "No NVTX range was recognised as a phase", evidence,
			"Name phases with --phase-map FILE, and the phases section says what each takes; the built-in patterns know the ranges of vLLM, SGLang and TensorRT-LLM.",
			"One kind of range makes a unit of work (--unit nvtx:REGEX) or a window (--window nvtx:REGEX).")
	}
	if open := in.OpenRanges(); open > 0 {
		out.Note(units.Format(float64(open), report.Count) +
			" ranges were still open when the capture stopped; they end with the last event.")
	}
	if mapped && list[0].gpu > in.NVTX.Total {
		out.Note("A name that nests inside itself counts a kernel once per level, as NVIDIA's nvtx_kern_sum does: its inclusive time can exceed the kernel time.")
	}
}

// attributesKernels says whether kernels can be attributed to ranges in this capture, and if not why.
func attributesKernels(in *kit.Input) (ok bool, reason string) {
	t := in.Trace
	switch kernels := t.Kernels.Len() > 0; {
	case !in.Options.RangeMap:
		return false, "the attribution of kernels to ranges is switched off (--no-nvtx-kernel-map)"
	case !kernels && t.Graphs.Len() == 0:
		return false, in.Lack(trace.RoleKernel)
	case !in.Trace.Tables.Has(trace.RoleAPI):
		return false, in.Lack(trace.RoleAPI) + ", so it is unknown which calls launched the kernels"
	case !t.Has.RangeThread || !t.Has.APIThread:
		return false, "the export does not say which thread a range or an API call belongs to (column globalTid)"
	case !t.Has.APICorrelation || kernels && !t.Has.KernelCorrelation:
		return false, "the export does not say which call launched a kernel (column correlationId)"
	case kernels && !t.Has.KernelPID:
		return false, "the export does not say which process a kernel belongs to (column globalPid)"
	}
	return in.NVTX != nil, "the capture has no ranges to attribute kernels to"
}

// rangeNames are the distinct canonical names: trace.Ranges.Names has one entry per name and tag.
type rangeNames struct {
	texts []string
	of    []int32 // by index into trace.Ranges.Names: index into texts
}

func nameRanges(r *trace.Ranges) *rangeNames {
	var texts lists.Numbering[string]
	of := make([]int32, len(r.Names))
	for i := range r.Names {
		of[i] = texts.Of(r.Names[i].Text)
	}
	return &rangeNames{texts.Keys, of}
}

// rangeTotal is the totals of the ranges of one name, in one process or in all.
type rangeTotal struct {
	text, proc int32
	count      int64 // ranges that start in the window
	sum, wall  int64 // their durations added up, and their union per thread
	gpu, self  int64 // kernel time, inclusive and innermost
	pairs      int64 // kernels behind gpu, once per enclosing range
	kernels    int64 // kernels behind self
}

func (a *rangeTotal) add(b *rangeTotal) {
	a.count, a.sum, a.wall = a.count+b.count, a.sum+b.sum, a.wall+b.wall
	a.gpu, a.self, a.pairs, a.kernels = a.gpu+b.gpu, a.self+b.self, a.pairs+b.pairs, a.kernels+b.kernels
}

// rangeTotals are the ranges added up.
type rangeTotals struct {
	names *rangeNames
	parts []rangeTotal // by name and process, ordered by name as nameRanges numbers it, then process
	list  []rangeTotal // by name, most GPU time first
}

// totalsOfRanges adds up the ranges by name and process. GPU time is that of the window's kernels, even if the range
// around them started before the window.
func totalsOfRanges(in *kit.Input) rangeTotals {
	return kit.Once(in, "ranges", func() rangeTotals {
		t := rangeTotals{names: nameRanges(&in.Trace.Ranges)}
		t.parts = addRanges(in, t.names)
		t.list = byRangeName(t.parts)
		rankRanges(t.list, t.names)
		return t
	})
}

type threadRanges struct {
	text, thread int32 // thread is None if it is not known
	count, sum   int64
	wall         kit.Covered
}

// onThreads adds up the ranges that start in the window, by name and thread.
func onThreads(in *kit.Input, names *rangeNames) (list []threadRanges) {
	r := &in.Trace.Ranges
	lo, hi := r.Starting(in.Host.Start, in.Host.End)
	// threads are counted from 1, the unknown one is 0
	cells := kit.NewCombos(len(names.texts), len(in.Trace.Threads)+1)
	of := func(text, thread int32) *threadRanges {
		at := cells.Of(text, thread+1)
		if int(at) == len(list) {
			list = append(list, threadRanges{text: text, thread: thread, wall: kit.Covered{Reached: math.MinInt64}})
		}
		return &list[at]
	}
	if nested(in) {
		around := make([]int32, len(names.texts)) // by name: how many nodes
		in.Contexts.Descend(func(node int32) {
			text, x := names.of[in.Contexts.NameOf(node)], in.Contexts.Ranges(node)
			c := of(text, in.Contexts.ThreadOf(node))
			c.count += x.Count
			c.sum += x.Time
			if around[text] == 0 {
				c.wall.Ns += x.Time
			}
			around[text]++
		}, func(node int32) { around[names.of[in.Contexts.NameOf(node)]]-- })
		return list
	}
	for i := lo; i < hi; i++ {
		c := of(names.of[r.Name(i)], r.Thread(i))
		c.count++
		c.sum += r.Dur(i)
		c.wall.Add(r.Start(i), r.End(i))
	}
	return list
}

// nested reports whether all ranges are of the window and nest, so that the nodes of the contexts describe all of them.
func nested(in *kit.Input) bool {
	lo, hi := in.Trace.Ranges.Starting(in.Host.Start, in.Host.End)
	return hi-lo == in.Trace.Ranges.Len() && in.Contexts.Whole()
}

func addRanges(in *kit.Input, names *rangeNames) []rangeTotal {
	procs := kit.NewTally[kit.Pair, rangeTotal]() // name, process
	for _, x := range onThreads(in, names) {
		procs.At(kit.Pair{A: x.text, B: in.Trace.ProcOf(x.thread)}).add(&rangeTotal{count: x.count, sum: x.sum, wall: x.wall.Ns})
	}
	if in.NVTX != nil {
		for _, x := range in.NVTX.Ranges {
			procs.At(kit.Pair{A: names.of[x.Name], B: x.Proc}).add(&rangeTotal{gpu: x.Inclusive, self: x.Self, pairs: x.Pairs,
				kernels: x.SelfCount})
		}
	}
	list := make([]rangeTotal, len(procs.Keys))
	for i, k := range procs.Keys {
		list[i] = *procs.Values[i]
		list[i].text, list[i].proc = k.A, k.B
	}
	lists.Sort(list, func(a, b rangeTotal) int {
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.proc, b.proc))
	})
	return list
}

// rangeSummaries describe the durations of the ranges of each name, as nameRanges numbers it; nil if there are none.
// The names are divided: one processor goes through the ranges for each part.
func rangeSummaries(in *kit.Input) []*report.Summary {
	return kit.Once(in, "range summaries", func() []*report.Summary { return describeRanges(in) })
}

func describeRanges(in *kit.Input) []*report.Summary {
	r, totals := &in.Trace.Ranges, totalsOfRanges(in)
	lo, hi := r.Starting(in.Host.Start, in.Host.End)
	counts, all := make([]int32, len(totals.names.texts)), 0
	for i := range totals.parts {
		counts[totals.parts[i].text] += int32(totals.parts[i].count)
		all += int(totals.parts[i].count)
	}
	shares := max(1, min(runtime.GOMAXPROCS(0), all/leastShare), min(all/mostShare, mostShares))
	share, done := make([]int, len(counts)), 0 // by name
	for n, c := range counts {
		share[n] = min(done*shares/max(1, all), shares-1)
		done += int(c)
	}
	summaries := make([]*report.Summary, len(counts))
	parallel.Each(shares, func(k int) {
		own, of := make([]int32, len(counts)), slices.Clone(totals.names.of)
		for n, c := range counts {
			if share[n] == k {
				own[n] = c
			}
		}
		for i, n := range of {
			if share[n] != k {
				of[i] = -1
			}
		}
		g := kit.GatherCounted(in.Trace.Memory(), own, lo, hi, func(i int) int32 { return of[r.Name(i)] }, r.Dur)
		defer g.Free()
		for n, c := range own {
			if c > 0 {
				summaries[n] = g.Of(n).SummaryOnce()
			}
		}
	})
	return summaries
}

// Shares of the ranges. A processor goes through all ranges for each share, and holds the durations of one share.
const (
	leastShare = 1 << 16 // ranges that justify a processor of their own
	mostShare  = 1 << 20 // ranges of a share, unless that makes too many
	mostShares = 8
)

// orLast is a dense index with a place for the unknown after all others.
func orLast(i int32, n int) int {
	if i == trace.None {
		return n
	}
	return int(i)
}

// byRangeName adds up the processes of each name; parts are ordered by name.
func byRangeName(parts []rangeTotal) []rangeTotal {
	var list []rangeTotal
	for i := range parts {
		if n := len(list); n > 0 && list[n-1].text == parts[i].text {
			list[n-1].add(&parts[i])
		} else {
			list = append(list, parts[i])
			list[n].proc = trace.None
		}
	}
	return list
}

func rankRanges(list []rangeTotal, names *rangeNames) {
	lists.Sort(list, func(a, b rangeTotal) int {
		return cmp.Or(cmp.Compare(b.gpu, a.gpu), cmp.Compare(b.wall, a.wall), cmp.Compare(b.count, a.count),
			cmp.Compare(names.texts[a.text], names.texts[b.text]), cmp.Compare(a.proc, b.proc))
	})
}

// procCoverage is the kernel time of one process, and the part of it inside any range.
type procCoverage struct {
	total, attributed int64
	kernels           int64
}

func (c *procCoverage) ratio() *float64 { return stat.Ratio(c.attributed, c.total) }

// coverageOf is that of the work of a process, or of the work whose process is unknown. It needs in.NVTX.
func coverageOf(in *kit.Input, proc int32) *procCoverage {
	list := kit.Once(in, "coverage", func() []procCoverage {
		list := make([]procCoverage, len(in.Trace.Procs)+1)
		add := func(w *trace.Work, calls []int32) {
			lo, hi := w.Starting(in.Span.Start, in.Span.End)
			for i := lo; i < hi; i++ {
				c := &list[orLast(w.Proc(i), len(in.Trace.Procs))]
				c.kernels++
				c.total += w.Dur(i)
				if in.Contexts.Of(calls[i]) != trace.None {
					c.attributed += w.Dur(i)
				}
			}
		}
		add(&in.Trace.Kernels.Work, in.Calls.Kernel)
		add(&in.Trace.Graphs.Work, in.Calls.Graph)
		return list
	})
	return &list[orLast(proc, len(in.Trace.Procs))]
}

// fromAttribution sets the source of metrics computed from attributed kernels.
func fromAttribution(out *kit.Output, rows int64) {
	out.From(trace.RoleKernel, int(rows), "start", "end", "correlationId", "globalPid")
	out.Source.With(trace.RoleGraph)
	out.Source.With(trace.RoleAPI, "globalTid")
	out.Source.With(trace.RoleNVTX)
}

// coverageMetrics emits coverage and warns if it is low; false if there is no kernel time to cover.
func coverageMetrics(in *kit.Input, out *kit.Output) bool {
	x := in.NVTX
	fromAttribution(out, x.TotalCount)
	ratio := stat.Ratio(x.Attributed, x.Total)
	out.Metric("nvtx.coverage", nil, ratio)
	out.Coverage(ratio)
	worst, lowest, known := trace.None, 0.0, 0
	for i := range in.Trace.Procs {
		p := int32(i)
		c := coverageOf(in, p).ratio()
		if c == nil {
			continue
		}
		if known++; known <= kit.MaxProcMetrics {
			out.Source.Rows = coverageOf(in, p).kernels
			out.Metric("nvtx.coverage", kit.Labels("pid", kit.PIDText(in, p)), c)
		}
		if worst == trace.None || *c < lowest {
			worst, lowest = p, *c
		}
	}
	if ratio == nil {
		return false
	}
	warnBelow := in.Options.CoverageWarn
	percent := func(v float64) string { return units.Format(v, report.Ratio) }
	if *ratio < warnBelow {
		out.Warn("nvtx_coverage", "NVTX ranges cover "+percent(*ratio)+" of the kernel time, below the threshold of "+percent(warnBelow)+
			": read GPU time by range and by phase with care. Kernels launched outside any range, and kernels whose launch call is not in the capture, are not attributed.")
	}
	if known > 1 && lowest < warnBelow {
		out.Warn("nvtx_coverage_pid", "NVTX coverage is low for at least one process: pid "+kit.PIDText(in, worst)+
			" has "+percent(lowest)+", below the threshold of "+percent(warnBelow)+".")
	}
	return true
}
