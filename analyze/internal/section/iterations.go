package section

import (
	"math"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var iterationsSection = Section{
	ID: "iterations", Title: "Engine iterations", Rank: 310, Evidence: []file.Kind{file.ServerLog},
	Derivation: "The iteration details that vLLM logs with --enable-logging-iteration-details, one line per step " +
		"of the engine: requests and tokens in prefill (context) and decode (generation), and the time that the " +
		"step took on the host's clock. Statistics are over all lines. Without a trace, iterations are also the " +
		"units of work of the report. " +
		serverlog.UnitRule,
	Metrics: []report.MetricDef{
		{
			ID: "serve.iterations", Unit: report.Count, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Labels: []string{"", "type"},
			Meaning: "iterations of the engine",
		},
		{
			ID: "serve.iteration_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Event, Stats: true, Labels: []string{"", "type"},
			Meaning: "time of an iteration (median; the summary is over all iterations, those of the first steps " +
				"included)",
		},
		{
			ID: "serve.iteration_time_max", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale:   report.Total,
			Meaning: "time of the longest iteration",
		},
		{
			ID: "serve.iteration_time_share", Unit: report.Ratio, Better: report.None, Assume: report.Noisy,
			Scale: report.Level, Labels: []string{"type"},
			Meaning: "share of the time of all iterations",
		},
		{
			ID: "serve.context_tokens", Unit: report.Count, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Labels: []string{"", "type"},
			Meaning: "prompt tokens that iterations worked on",
		},
		{
			ID: "serve.generation_tokens", Unit: report.Count, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Labels: []string{"", "type"},
			Meaning: "tokens that iterations generated",
		},
		{
			ID: "serve.iteration_tokens", Unit: report.Count, Better: report.None, Assume: report.Noisy,
			Scale: report.Event, Stats: true,
			Meaning: "tokens of an iteration, of prefill and decode together (median; the summary is over " +
				"iterations that are not idle)",
		},
		{
			ID: "unit.count", Unit: report.Count, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Labels: logUnitLabels,
			Meaning: "units of work that the numbers are made from: complete, steady and of one kind",
		},
		{
			ID: "unit.time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.PerUnit, Stats: true, Labels: logUnitLabels,
			Meaning: "time of an iteration of one kind (median; the summary is over the kept ones)",
		},
	},
	Tables: []report.Table{
		{ID: "iteration_types", Title: "Iterations by type", File: "iteration_types.csv", Columns: []report.Column{
			textCol("type", "Type"),
			countCol("iterations", "Iterations"),
			ratioCol("share", "Share", "pct_of_iterations"),
			nsCol("total", "Total", "total_ms"),
			ratioCol("time_share", "Share of time", "pct_of_time"),
			meanCol("mean", "Mean", "mean_ms"),
			meanCol("p50", "Median", "median_ms"),
			meanCol("p90", "p90", "p90_ms"),
			meanCol("p99", "p99", "p99_ms"),
			nsCol("min", "Min", "min_ms"),
			nsCol("max", "Max", "max_ms"),
			wide(meanCol("std", "Std. dev. (n-1)", "std_ms")),
			countCol("context_tokens", "Context tokens"),
			countCol("generation_tokens", "Generated tokens"),
			floatCol("mean_context_tokens", "Context per iteration", report.Count),
			floatCol("mean_generation_tokens", "Generated per iteration", report.Count),
			wide(countCol("context_requests", "Context requests")),
			wide(countCol("generation_requests", "Generation requests")),
			wide(countCol("max_context_tokens", "Most context tokens")),
			wide(countCol("max_generation_tokens", "Most generated tokens")),
		}},
		{ID: "iteration_groups", Title: "Kinds of iteration", File: "iteration_groups.csv", Columns: []report.Column{
			textCol("phase", "Phase"),
			idCol("batch", "Batch"),
			idCol("tokens", "Tokens"),
			countCol("units", "Units"),
			meanCol("p50", "p50", "p50_ms"),
			meanCol("mean", "Mean", "mean_ms"),
			meanCol("p90", "p90", "p90_ms"),
			wide(meanCol("min", "Min", "min_ms")),
			wide(meanCol("max", "Max", "max_ms")),
			ratioCol("share", "Share of unit time", "pct_of_unit_time"),
		}},
		{ID: "iteration_units", Title: "Iterations as units of work", File: "iteration_units.csv", Columns: []report.Column{
			textCol("phase", "Phase"),
			idCol("batch", "Batch"),
			idCol("tokens", "Tokens"),
			countCol("line_number", "Line"),
			nsCol("duration", "Time", "duration_ns", "duration_ms"),
		}},
		{ID: "iteration_list", Title: "Iterations", File: "iterations.csv", Columns: []report.Column{
			countCol("iteration", "Iteration"),
			textCol("timestamp", "Logged"),
			countCol("context_requests", "Context requests"),
			countCol("context_tokens", "Context tokens"),
			countCol("generation_requests", "Generation requests"),
			countCol("generation_tokens", "Generated tokens"),
			nsCol("elapsed", "Time", "elapsed_time_ms"),
			countCol("line_number", "Line"),
			textCol("type", "Type"),
		}},
	},
	Run: iterations,
}

var logUnitLabels = []string{"", "phase", "phase,batch", "phase,tokens"}

// When iterations are a finding.
const (
	mixedShare = 0.25 // of the time of all iterations
	mixedSlow  = 3.0  // mean of mixed over mean of decode
	stall      = 10.0 // longest over p99, from which one iteration stands out
)

// typeSum is what the iterations of one type add up to.
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
	s.maxContextTokens, s.maxTokens = max(s.maxContextTokens, int64(it.ContextTokens)), max(s.maxTokens, int64(it.Tokens))
}

// sampleDeviation is the standard deviation of a sample, which divides by n-1, as vLLM's users know it from pandas.
func sampleDeviation(s *report.Summary) float64 {
	if s.N < 2 {
		return math.NaN()
	}
	return s.Stddev * math.Sqrt(float64(s.N)/float64(s.N-1))
}

func iterations(in *Input, out *Output) {
	log := in.Evidence.Log
	list := &log.Iterations
	n := list.Len()
	out.FromEvidence(file.ServerLog, n, "Iteration(N)")
	if n == 0 {
		out.Status(report.NotApplicable, "the log has no iteration details (vLLM: --enable-logging-iteration-details writes them)")
		return
	}
	var all typeSum
	var byType [serverlog.Types]typeSum
	var count [serverlog.Types]int
	for i := range n {
		count[list.At(i).Type()]++
	}
	all.times = make([]int64, 0, n) // a log of 2 GB has ten million: what grows by doubling would take several times as much
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
			out.iterationType(t, name, Labels("type", name), s, &all)
			out.Metric("serve.iteration_time_share", Labels("type", name), stat.Ratio(s.total, all.total)).N = int64(len(s.times))
			mean[k] = float64(s.total) / float64(len(s.times))
			s.times = nil
		}
	}
	times := out.iterationType(t, "all", nil, &all, &all)
	all.times = nil
	out.Float("serve.iteration_time_max", nil, times.Max).N = int64(n)
	t.Add()
	if len(tokens) > 0 {
		out.summary("serve.iteration_tokens", nil, tokens)
	}
	out.iterationCharts(list)
	out.iterationList(list)
	out.iterationUnits(in, log)
	if share := stat.Ratio(byType[serverlog.Mixed].total, all.total); share != nil && *share >= mixedShare && mean[serverlog.Decode] > 0 && mean[serverlog.Mixed] >= mixedSlow*mean[serverlog.Decode] {
		out.Find("prefill_slows_decode", report.Medium, "Iterations that mix prefill into decode are much slower than decode alone: running requests wait for new ones",
			[]report.MetricRef{Ref("serve.iteration_time", "type", "mixed"), Ref("serve.iteration_time", "type", "decode"), Ref("serve.iteration_time_share", "type", "mixed")},
			"A smaller --max-num-batched-tokens makes these iterations shorter and the time to the first token longer; prefill on GPUs of its own takes them away.")
	}
	if times.N >= 100 && times.Max >= stall*times.P99 {
		out.Find("iteration_stall", report.Low, "A few iterations take many times longer than all others",
			[]report.MetricRef{Ref("serve.iteration_time_max"), Ref("serve.iteration_time"), Ref("serve.iterations")},
			"Find them in iterations.csv by their time: compilation during serving (JIT, a batch size without a CUDA graph), garbage collection or another process on the machine are usual causes.")
	}
}

// iterationType emits what is said of one type, or of all, and returns what its times add up to.
func (o *Output) iterationType(t *Table, name string, l report.Labels, s, all *typeSum) *report.Summary {
	n := int64(len(s.times))
	m := stat.Summarize(s.times)
	o.Int("serve.iterations", l, n).N = n
	x := o.Float("serve.iteration_time", l, m.P50)
	x.N, x.Summary = n, m
	o.Int("serve.context_tokens", l, s.contextTokens).N = n
	o.Int("serve.generation_tokens", l, s.tokens).N = n
	t.Row(report.S(name), report.I(n), cell(stat.Ratio(n, int64(len(all.times)))), report.I(s.total), cell(stat.Ratio(s.total, all.total)), report.F(m.Mean), report.F(m.P50), report.F(m.P90), report.F(m.P99),
		report.I(int64(m.Min)), report.I(int64(m.Max)), number(sampleDeviation(m)), report.I(s.contextTokens), report.I(s.tokens),
		report.F(float64(s.contextTokens)/float64(n)), report.F(float64(s.tokens)/float64(n)), report.I(s.contextReqs), report.I(s.generationReqs), report.I(s.maxContextTokens), report.I(s.maxTokens))
	return m
}

// iterationCharts draw the iterations over their number: of each stretch of them the longest, so that no stall is lost.
func (o *Output) iterationCharts(list *serverlog.Iterations) {
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
	o.lineChart("iteration_time", "Time of iterations", report.Nanoseconds, "", "iteration", s)
	bars := report.Chart{ID: "iteration_types", Title: "Time by type of iteration", Kind: "stacked", Unit: report.Nanoseconds, Series: []report.Series{{Name: "all iterations", Labels: []string{}, Values: []float64{}}}}
	var total [serverlog.Types]float64
	for i := range n {
		it := list.At(i)
		total[it.Type()] += float64(it.Elapsed())
	}
	for k, v := range total {
		if v > 0 {
			bars.Series[0].Labels = append(bars.Series[0].Labels, serverlog.TypeNames[k])
			bars.Series[0].Values = append(bars.Series[0].Values, v)
		}
	}
	o.Chart(bars)
}

// iterationList attaches iterations.csv.
func (o *Output) iterationList(list *serverlog.Iterations) {
	t := o.Table("iteration_list")
	n := list.Len()
	for i := range min(n, maxLogRows) {
		it := list.At(i)
		t.Row(report.I(int64(it.Index)), report.S(serverlog.ClockText(list.Clock(i), list.Year)), report.I(int64(it.Context)), report.I(int64(it.ContextTokens)), report.I(int64(it.Generation)), report.I(int64(it.Tokens)),
			report.I(it.Elapsed().Nanoseconds()), report.I(int64(it.Line)), report.S(serverlog.TypeNames[it.Type()]))
	}
	t.t.TotalRows = int64(n)
	if n > maxLogRows {
		t.others()
		o.Note("iterations.csv lists the first " + strconv.Itoa(maxLogRows) + " iterations; statistics are over all of them.")
	}
	t.Attach()
}

const (
	maxLogGroups     = 100 // rows of the table of kinds
	maxUnitRowsOfLog = 300 // units that the report lists for a comparison: two thirds of the first kind, the rest of the others
)

// iterationUnits makes iterations the units of work where there is no trace, whose units say more.
func (o *Output) iterationUnits(in *Input, log *serverlog.Data) {
	groups, _ := log.Units()
	if !in.NoTrace || len(groups) == 0 {
		return
	}
	o.FromEvidence(file.ServerLog, log.Iterations.Len(), "Iteration(N)")
	var all int64
	for i := range groups {
		all += groups[i].Total
	}
	t := o.Table("iteration_groups")
	phases := map[serverlog.Type]bool{}
	ids := LogGroupIDs(groups)
	for i := range groups {
		g := &groups[i]
		times := make([]int64, len(g.Kept))
		for k, u := range g.Kept {
			times[k] = log.Iterations.At(int(u)).Elapsed().Nanoseconds()
		}
		m := stat.Summarize(times)
		t.Row(report.S(serverlog.TypeNames[g.Type]), known(g.Batch), known(g.Tokens), report.I(m.N), report.F(m.P50), report.F(m.Mean), report.F(m.P90), report.F(m.Min), report.F(m.Max), cell(stat.Ratio(g.Total, all)))
		emit := func(l report.Labels) {
			n := o.Int("unit.count", l, m.N)
			n.N, n.Group = m.N, ids[i]
			x := o.Float("unit.time", l, m.P50)
			x.N, x.Summary, x.Group = m.N, m, ids[i]
		}
		if i == 0 {
			emit(nil)
		}
		phase := serverlog.TypeNames[g.Type]
		if !phases[g.Type] {
			phases[g.Type] = true
			emit(Labels("phase", phase))
		}
		switch {
		case i >= maxGroupMetrics:
		case g.Batch >= 0:
			emit(Labels("phase", phase, "batch", strconv.FormatInt(g.Batch, 10)))
		case g.Tokens >= 0:
			emit(Labels("phase", phase, "tokens", strconv.FormatInt(g.Tokens, 10)))
		}
	}
	t.Cut(maxLogGroups, "units", "share").Add()
	o.unitSample(log, groups)
}

// unitSample lists units from all over the log, evenly spaced within each kind.
func (o *Output) unitSample(log *serverlog.Data, groups []serverlog.UnitGroup) {
	t := o.Table("iteration_units")
	left := maxUnitRowsOfLog
	for i := range groups {
		g := &groups[i]
		most := max(1, left/(min(len(groups), maxGroupMetrics)-i+1))
		if i == 0 {
			most = left * 2 / 3
		}
		n := min(len(g.Kept), most, left)
		for k := range n {
			it := log.Iterations.At(int(g.Kept[k*len(g.Kept)/n]))
			t.Row(report.S(serverlog.TypeNames[g.Type]), known(g.Batch), known(g.Tokens), report.I(int64(it.Line)), report.I(it.Elapsed().Nanoseconds()))
		}
		if left -= n; left == 0 || i+1 == maxGroupMetrics {
			break
		}
	}
	t.t.TotalRows = int64(t.Len())
	t.Add()
}
