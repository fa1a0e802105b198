package engine

import (
	"math"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Iterations = kit.Section{
	ID: "iterations", Title: "Engine iterations", Evidence: []file.Kind{file.ServerLog},
	Derivation: "The iteration details that vLLM logs with --enable-logging-iteration-details, or TensorRT-LLM with print_iter_log, one " +
		"line per step of the engine: requests and tokens in prefill (context) and decode (generation), and the time that the " +
		"step took on the host's clock. Statistics are over all lines. Without a trace, iterations are also the " +
		"units of work of the report. " +
		serverlog.UnitRule,
	Findings: []kit.FindingDef{
		{ID: "prefill_slows_decode", Title: "Iterations that mix prefill into decode are much slower than decode alone: running requests wait for new ones"},
		{ID: "iteration_stall", Title: "A few iterations take many times longer than all others"},
	},
	Metrics: []report.MetricDef{
		kit.NoisyCount("serve.iterations", report.None, report.Leave, "iterations of the engine").By("", "type"),
		kit.EventTime("serve.iteration_time", report.Lower, report.Leave, "time of an iteration (median; the summary "+
			"is over all iterations, those of the first steps included)").Summarised().By("", "type"),
		kit.TotalTime("serve.iteration_time_max", report.Lower, report.Leave, "time of the longest iteration"),
		kit.Ratio("serve.iteration_time_share", report.None, report.Leave,
			"share of the time of all iterations").By("type"),
		kit.NoisyCount("serve.context_tokens", report.None, report.Leave,
			"prompt tokens that iterations worked on").By("", "type"),
		kit.NoisyCount("serve.generation_tokens", report.None, report.Leave,
			"tokens that iterations generated").By("", "type"),
		report.Define("serve.iteration_tokens", report.Count, report.None, report.Noisy, report.Event, report.Leave,
			"tokens of an iteration, of prefill and decode together (median; the summary is over iterations that are "+
				"not idle)").Summarised(),
		kit.NoisyCount("unit.count", report.None, report.OfStep,
			"units of work that the numbers are made from: complete, steady and of one kind").By(logUnitLabels...),
		kit.UnitTime("unit.time", report.Lower, report.OfStep, "time of an iteration of one kind (median; the summary "+
			"is over the kept ones)").Summarised().By(logUnitLabels...),
	},
	Tables: []report.Table{
		{ID: "iteration_types", Title: "Iterations by type", File: "iteration_types.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("type", "Type"),
			kit.CountCol("iterations", "Iterations"),
			kit.RatioCol("share", "Share", "pct_of_iterations"),
			kit.NsCol("total", "Total", "total_ms"),
			kit.RatioCol("time_share", "Share of time", "pct_of_time"),
			kit.MeanCol("mean", "Mean", "mean_ms"),
			kit.MeanCol("p50", "Median", "median_ms"),
			kit.MeanCol("p90", "p90", "p90_ms"),
			kit.MeanCol("p99", "p99", "p99_ms"),
			kit.NsCol("min", "Min", "min_ms"),
			kit.NsCol("max", "Max", "max_ms"),
			kit.Wide(kit.MeanCol("std", "Std. dev. (n-1)", "std_ms")),
			kit.CountCol("context_tokens", "Context tokens"),
			kit.CountCol("generation_tokens", "Generated tokens"),
			kit.FloatCol("mean_context_tokens", "Context per iteration", report.Count),
			kit.FloatCol("mean_generation_tokens", "Generated per iteration", report.Count),
			kit.Wide(kit.CountCol("context_requests", "Context requests")),
			kit.Wide(kit.CountCol("generation_requests", "Generation requests")),
			kit.Wide(kit.CountCol("max_context_tokens", "Most context tokens")),
			kit.Wide(kit.CountCol("max_generation_tokens", "Most generated tokens")),
		}},
		{ID: "iteration_groups", Title: "Kinds of iteration", File: "iteration_groups.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("phase", "Phase"),
			kit.IDCol("batch", "Batch"),
			kit.IDCol("tokens", "Tokens"),
			kit.CountCol("units", "Units"),
			kit.MeanCol("p50", "p50", "p50_ms"),
			kit.MeanCol("mean", "Mean", "mean_ms"),
			kit.MeanCol("p90", "p90", "p90_ms"),
			kit.Wide(kit.MeanCol("min", "Min", "min_ms")),
			kit.Wide(kit.MeanCol("max", "Max", "max_ms")),
			kit.RatioCol("share", "Share of unit time", "pct_of_unit_time"),
		}},
		{ID: "iteration_units", Title: "Iterations as units of work", File: "iteration_units.csv", Merge: report.Leave,
			Columns: []report.Column{
				kit.TextCol("phase", "Phase"),
				kit.IDCol("batch", "Batch"),
				kit.IDCol("tokens", "Tokens"),
				kit.CountCol("line_number", "Line"),
				kit.NsCol("duration", "Time", "duration_ns", "duration_ms"),
			}},
		{ID: "iteration_list", Title: "Iterations", File: "iterations.csv", Merge: report.Leave, Columns: []report.Column{
			kit.CountCol("iteration", "Iteration"),
			kit.TextCol("timestamp", "Logged"),
			kit.CountCol("context_requests", "Context requests"),
			kit.CountCol("context_tokens", "Context tokens"),
			kit.CountCol("generation_requests", "Generation requests"),
			kit.CountCol("generation_tokens", "Generated tokens"),
			kit.NsCol("elapsed", "Time", "elapsed_time_ms"),
			kit.CountCol("line_number", "Line"),
			kit.TextCol("type", "Type"),
		}},
	},
	Run: iterations,
}

var logUnitLabels = []string{"", "phase", "phase,batch", "phase,tokens"}

// Bounds from which iterations are a finding.
const (
	mixedShare = 0.25 // of the time of all iterations
	mixedSlow  = 3.0  // mean of mixed over mean of decode
	stall      = 10.0 // longest over p99, from which one iteration stands out
)

// typeSum is the sums over the iterations of one type.
type typeSum struct {
	times                       []int64
	total                       int64
	contextReqs, generationReqs int64
	contextTokens, tokens       int64
	maxContextTokens, maxTokens int64
}

func (s *typeSum) add(it *serverlog.Iteration) {
	ns := it.Elapsed().Nanoseconds()
	s.times = append(s.times, ns)
	s.total += ns
	s.contextReqs += int64(it.Context)
	s.generationReqs += int64(it.Generation)
	s.contextTokens += int64(it.ContextTokens)
	s.tokens += int64(it.Tokens)
	s.maxContextTokens, s.maxTokens = max(s.maxContextTokens, int64(it.ContextTokens)),
		max(s.maxTokens, int64(it.Tokens))
}

// sampleDeviation is the standard deviation of a sample, which divides by n-1, as vLLM's users know it from pandas.
func sampleDeviation(s *report.Summary) float64 {
	if s.N < 2 {
		return math.NaN()
	}
	return s.Stddev * math.Sqrt(float64(s.N)/float64(s.N-1))
}

func iterations(in *kit.Input, out *kit.Output) {
	log := in.Evidence.Log
	list := &log.Iterations
	n := list.Len()
	out.FromEvidence(file.ServerLog, n, "Iteration(N)")
	if n == 0 {
		out.Status(report.NotApplicable,
			"the log has no iteration details (vLLM: --enable-logging-iteration-details writes them; TensorRT-LLM: print_iter_log)")
		return
	}
	var all typeSum
	var byType [serverlog.Types]typeSum
	var count [serverlog.Types]int
	for i := range n {
		count[list.At(i).Type()]++
	}
	// a log of 2 GB has ten million iterations: a slice that grows by doubling would take several times the memory
	all.times = make([]int64, 0, n)
	for k, c := range count {
		byType[k].times = make([]int64, 0, c)
	}
	tokens := make([]int64, 0, n-count[serverlog.Idle])
	for i := range n {
		it := list.At(i)
		all.add(it)
		byType[it.Type()].add(it)
		if it.Type() != serverlog.Idle {
			tokens = append(tokens, int64(it.ContextTokens)+int64(it.Tokens))
		}
	}
	t := out.Table("iteration_types")
	mean := [serverlog.Types]float64{}
	for k := range byType {
		if s := &byType[k]; len(s.times) > 0 {
			name := serverlog.TypeNames[k]
			iterationType(out, t, name, kit.Labels("type", name), s, &all)
			out.Metric("serve.iteration_time_share", kit.Labels("type", name),
				stat.Ratio(s.total, all.total)).N = int64(len(s.times))
			mean[k] = float64(s.total) / float64(len(s.times))
			s.times = nil
		}
	}
	times := iterationType(out, t, "all", nil, &all, &all)
	all.times = nil
	out.Float("serve.iteration_time_max", nil, times.Max).N = int64(n)
	t.Add()
	if len(tokens) > 0 {
		out.Summary("serve.iteration_tokens", nil, tokens)
	}
	iterationCharts(out, list, &byType)
	iterationList(out, log)
	iterationUnits(out, in, log)
	if share := stat.Ratio(byType[serverlog.Mixed].total, all.total); share != nil && *share >= mixedShare &&
		mean[serverlog.Decode] > 0 && mean[serverlog.Mixed] >= mixedSlow*mean[serverlog.Decode] {
		out.Find("prefill_slows_decode",
			[]report.MetricRef{kit.Ref("serve.iteration_time", "type", "mixed"),
				kit.Ref("serve.iteration_time", "type", "decode"), kit.Ref("serve.iteration_time_share", "type",
					"mixed")},
			"A smaller --max-num-batched-tokens makes these iterations shorter and the time to the first token longer; prefill on GPUs of its own takes them away.").
			Costs(kit.WorthOf(report.OfRun, *share*(1-mean[serverlog.Decode]/mean[serverlog.Mixed]), 1))
	}
	if times.N >= 100 && times.Max >= stall*times.P99 {
		out.Find("iteration_stall", kit.Refs("serve.iteration_time_max", "serve.iteration_time", "serve.iterations"),
			"Find them in iterations.csv by their time: compilation during serving (JIT, a batch size without a CUDA graph), garbage collection or another process on the machine are usual causes.")
	}
}

// iterationType emits the metrics of one type, or of all, and returns its sums.
func iterationType(o *kit.Output, t *kit.Table, name string, l report.Labels, s, all *typeSum) *report.Summary {
	n := int64(len(s.times))
	o.Int("serve.iterations", l, n).N = n
	m := o.Summary("serve.iteration_time", l, s.times).Summary
	o.Int("serve.context_tokens", l, s.contextTokens).N = n
	o.Int("serve.generation_tokens", l, s.tokens).N = n
	t.Row(append(t.Stats(m),
		kit.Text("type", name), kit.Int("iterations", n),
		kit.Maybe("share", stat.Ratio(n, int64(len(all.times)))), kit.Int("total", s.total),
		kit.Maybe("time_share", stat.Ratio(s.total, all.total)), kit.Maybe("std", notNaN(sampleDeviation(m))),
		kit.Int("context_tokens", s.contextTokens), kit.Int("generation_tokens", s.tokens),
		kit.Float("mean_context_tokens", float64(s.contextTokens)/float64(n)),
		kit.Float("mean_generation_tokens", float64(s.tokens)/float64(n)),
		kit.Int("context_requests", s.contextReqs), kit.Int("generation_requests", s.generationReqs),
		kit.Int("max_context_tokens", s.maxContextTokens), kit.Int("max_generation_tokens", s.maxTokens))...)
	return m
}

// iterationCharts draw the iterations by number: for each interval its longest one, so that every stall is visible.
func iterationCharts(o *kit.Output, list *serverlog.Iterations, byType *[serverlog.Types]typeSum) {
	n := list.Len()
	points := min(n, maxChartPoints)
	s := report.Series{Name: "longest of each stretch", Labels: []string{}, Values: []float64{}}
	for k := range points {
		lo, hi := k*n/points, (k+1)*n/points
		longest := 0.0
		for i := lo; i < hi; i++ {
			longest = max(longest, float64(list.At(i).Elapsed()))
		}
		s.Labels = append(s.Labels, strconv.Itoa(lo+1))
		s.Values = append(s.Values, longest)
	}
	c := kit.Lines("iteration_time", "Time of iterations", report.Nanoseconds, "iteration", s)
	c.XUnit = "" // counted
	o.Chart(c)
	bars := report.Series{Name: "all iterations", Labels: []string{}, Values: []float64{}}
	for k := range byType {
		if v := byType[k].total; v > 0 {
			bars.Labels, bars.Values = append(bars.Labels, serverlog.TypeNames[k]), append(bars.Values, float64(v))
		}
	}
	o.Chart(report.Chart{ID: "iteration_types", Title: "Time by type of iteration", Kind: "stacked",
		Unit: report.Nanoseconds, Series: []report.Series{bars}})
}

// iterationList attaches iterations.csv.
func iterationList(o *kit.Output, log *serverlog.Data) {
	t := o.Table("iteration_list")
	list := &log.Iterations
	n := list.Len()
	for i := range min(n, maxLogRows) {
		it := list.At(i)
		t.Row(
			kit.Int("iteration", int64(it.Index)),
			kit.Text("timestamp", serverlog.ClockText(list.Clock(i), log.Year)),
			kit.Int("context_requests", int64(it.Context)), kit.Int("context_tokens", int64(it.ContextTokens)),
			kit.Int("generation_requests", int64(it.Generation)), kit.Int("generation_tokens", int64(it.Tokens)),
			kit.Int("elapsed", it.Elapsed().Nanoseconds()), kit.Int("line_number", int64(it.Line)),
			kit.Text("type", serverlog.TypeNames[it.Type()]))
	}
	attachFirst(o, t, n, "iterations; statistics are over all of them")
}

const (
	maxLogGroups = 100 // rows of the table of kinds
	// units that the report lists for a comparison: two thirds of the first kind, the rest of the others
	maxUnitRowsOfLog = 300
)

// iterationUnits makes iterations the units of work if there is no trace, whose units hold more.
func iterationUnits(o *kit.Output, in *kit.Input, log *serverlog.Data) {
	groups, _ := log.Units()
	if !in.NoTrace || len(groups) == 0 {
		return
	}
	o.FromEvidence(file.ServerLog, log.Iterations.Len(), "Iteration(N)")
	all := lists.Sum(groups, func(u serverlog.UnitGroup) int64 { return u.Total })
	t := o.Table("iteration_groups")
	phases := map[serverlog.Type]bool{}
	ids := kit.LogGroupIDs(groups)
	for i, g := range groups {
		times := lists.Map(g.Kept, func(u int32) int64 { return log.Iterations.At(int(u)).Elapsed().Nanoseconds() })
		m := stat.Summarize(times)
		phase := serverlog.TypeNames[g.Type]
		t.Row(append(t.Stats(m), kit.Text("phase", phase), kit.Put("batch", kit.Known(g.Batch)),
			kit.Put("tokens", kit.Known(g.Tokens)), kit.Int("units", m.N), kit.Maybe("share", stat.Ratio(g.Total, all)))...)
		emit := func(l report.Labels) {
			n := o.Int("unit.count", l, m.N)
			n.N, n.Group = m.N, ids[i]
			x := o.Float("unit.time", l, m.P50)
			x.N, x.Summary, x.Group = m.N, m, ids[i]
		}
		if i == 0 {
			emit(nil)
		}
		if !phases[g.Type] {
			phases[g.Type] = true
			emit(kit.Labels("phase", phase))
		}
		switch {
		case i >= kit.MaxGroupMetrics:
		case g.Batch >= 0:
			emit(kit.Labels("phase", phase, "batch", strconv.FormatInt(g.Batch, 10)))
		case g.Tokens >= 0:
			emit(kit.Labels("phase", phase, "tokens", strconv.FormatInt(g.Tokens, 10)))
		}
	}
	t.Cut(maxLogGroups, "units", "share").Add()
	unitSample(o, log, groups)
}

// unitSample lists units from all over the log, evenly spaced within each kind.
func unitSample(o *kit.Output, log *serverlog.Data, groups []serverlog.UnitGroup) {
	t := o.Table("iteration_units")
	left := maxUnitRowsOfLog
	for i, g := range groups {
		most := max(1, left/(min(len(groups), kit.MaxGroupMetrics)-i+1))
		if i == 0 {
			most = left * 2 / 3
		}
		n := min(len(g.Kept), most, left)
		for k := range n {
			it := log.Iterations.At(int(g.Kept[k*len(g.Kept)/n]))
			t.Row(
				kit.Text("phase", serverlog.TypeNames[g.Type]), kit.Put("batch", kit.Known(g.Batch)),
				kit.Put("tokens", kit.Known(g.Tokens)), kit.Int("line_number", int64(it.Line)),
				kit.Int("duration", it.Elapsed().Nanoseconds()))
		}
		if left -= n; left == 0 || i+1 == kit.MaxGroupMetrics {
			break
		}
	}
	t.TotalRows = int64(t.Len())
	t.Add()
}
