package section

import (
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var servingSection = Section{
	ID: "serving", Title: "Serving", Rank: 300, Evidence: []file.Kind{file.ServerLog},
	Derivation: "The lines of statistics that the server logs every few seconds. Medians and percentiles are " +
		"over the steady ones; n counts all that state the number. " +
		serverlog.SteadyRule,
	Metrics: []report.MetricDef{
		{
			ID: "serve.prompt_throughput", Unit: report.PerSecond, Better: report.Higher, Assume: report.Noisy,
			Scale: report.Level, Stats: true, Labels: []string{"", "engine"},
			Meaning: "prompt tokens per second of one engine, as it logs them (median; the summary is over " +
				"steady lines, n over all)",
		},
		{
			ID: "serve.generation_throughput", Unit: report.PerSecond, Better: report.Higher, Assume: report.Noisy,
			Scale: report.Level, Stats: true, Labels: []string{"", "engine"},
			Meaning: "generated tokens per second of one engine, as it logs them (median; the summary is over " +
				"steady lines, n over all)",
		},
		{
			ID: "serve.kv_cache_usage", Unit: report.Ratio, Better: report.None, Assume: report.Noisy,
			Scale: report.Level, Stats: true, Labels: []string{"", "engine"},
			Meaning: "share of the KV cache that is in use (median; the summary is over steady lines, n over all)",
		},
		{
			ID: "serve.requests_running", Unit: report.Count, Better: report.None, Assume: report.Noisy,
			Scale: report.Level, Stats: true, Labels: []string{"", "engine"},
			Meaning: "requests that run (median; the summary is over steady lines, n over all)",
		},
		{
			ID: "serve.requests_waiting", Unit: report.Count, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Level, Stats: true, Labels: []string{"", "engine"},
			Meaning: "requests that wait to run (median; the summary is over steady lines, n over all)",
		},
		{
			ID: "serve.steady_samples", Unit: report.Count, Better: report.None, Assume: report.Noisy,
			Scale:   report.Total,
			Meaning: "lines of statistics that are steady",
		},
		{
			ID: "serve.prefix_cache_hit_rate", Unit: report.Ratio, Better: report.Higher, Assume: report.Noisy,
			Scale: report.Level,
			Meaning: "share of prompt tokens found in the prefix cache: vLLM's last line, which looks back over " +
				"many requests; of SGLang's prefill batches all cached tokens over all tokens",
		},
		{
			ID: "serve.external_cache_hit_rate", Unit: report.Ratio, Better: report.Higher, Assume: report.Noisy,
			Scale:   report.Level,
			Meaning: "the same of a KV cache outside of the engine",
		},
		{
			ID: "serve.preemptions", Unit: report.Count, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total,
			Meaning: "requests that lost their place in the KV cache and were computed again; only where the log " +
				"says so",
		},
	},
	Tables: []report.Table{
		{ID: "serving_throughput", Title: "Throughput", File: "serving_throughput.csv", Columns: statisticColumns(textCol("statistic", "Tokens per second"), report.PerSecond)},
		{ID: "serving_requests", Title: "Requests", File: "serving_requests.csv", Columns: statisticColumns(textCol("statistic", "Requests"), report.Count)},
		{ID: "serving_cache", Title: "KV cache", File: "serving_cache.csv", Columns: statisticColumns(textCol("statistic", "Share"), report.Ratio)},
		{ID: "serving_samples", Title: "Lines of statistics", File: "serving.csv", Columns: []report.Column{
			textCol("timestamp", "Logged"),
			momentCol("time", "Time", "time_s"),
			wide(idCol("engine", "Engine")),
			wide(countCol("line_number", "Line")),
			textCol("state", "State"),
			rateCol("prompt", "Prompt tokens", report.PerSecond),
			rateCol("generation", "Generated tokens", report.PerSecond),
			floatCol("running", "Running", report.Count),
			floatCol("waiting", "Waiting", report.Count),
			floatCol("usage", "KV cache", report.Ratio),
			floatCol("prefix_hits", "Prefix hits", report.Ratio),
		}},
	},
	Run: serving,
}

func floatCol(id, title, unit string) report.Column {
	return report.Column{ID: id, Title: title, Kind: report.Float, Unit: unit}
}

// When what the log says is a finding.
const (
	kvFull       = 0.90 // of the KV cache, p90
	queuePerRun  = 0.5  // requests that wait for each that runs, medians
	kvRoom       = 0.70 // usage, p90, below which it is not the KV cache that requests wait for
	fewSteady    = 5    // lines below which their spread says little
	maxEngines   = 16   // with metrics of their own
	maxSampleLen = 200  // lines that the report itself lists; serving.csv has more
	maxLogRows   = 200_000
)

// servingRun is what the section works with.
type servingRun struct {
	out     *Output
	log     *serverlog.Data
	list    []serverlog.Sample
	steady  func(i int) bool
	engines []int32 // in the order of their numbers; more than one
}

func serving(in *Input, out *Output) {
	log := in.Evidence.Log
	r := &servingRun{out: out, log: log, list: log.Samples}
	out.FromEvidence(file.ServerLog, len(r.list), "Avg prompt throughput", "Prefill batch", "Decode batch")
	if len(r.list) == 0 {
		out.Status(report.NotApplicable, "the log has no lines of statistics (vLLM: --disable-log-stats switches them off)")
		r.preemptions()
		return
	}
	r.choose()
	engines := map[int32]bool{}
	for i := range r.list {
		engines[r.list[i].Engine] = true
	}
	if len(engines) > 1 {
		for e := range engines {
			r.engines = append(r.engines, e)
		}
		slices.Sort(r.engines)
		out.Note("The log has lines of " + strconv.Itoa(len(engines)) + " engines; each line is of one of them, and so is each number without the label engine.")
	}
	r.throughput()
	r.cache()
	r.preemptions()
	r.samples()
	r.charts()
	r.findings()
}

// choose decides which lines count: the steady ones, or those with work where there are none.
func (r *servingRun) choose() {
	n := 0
	for i := range r.list {
		if r.list[i].Steady {
			n++
		}
	}
	r.out.Int("serve.steady_samples", nil, int64(n))
	r.steady = func(i int) bool { return r.list[i].Steady }
	switch {
	case n == 0:
		r.steady = func(i int) bool {
			s := &r.list[i]
			return s.Prompt > 0 || s.Generation > 0 || s.Running > 0 || s.Waiting > 0
		}
		r.out.Status(report.Partial, "no line of statistics is steady: numbers are over the lines with any work, start-up included")
	case n < fewSteady:
		r.out.Warn("few_steady", "Few lines of statistics are steady ("+strconv.Itoa(n)+"): their spread says little. Log a longer time under load.")
	}
}

// emit collects a statistic, emits it, and of several engines each one's.
func (r *servingRun) emit(id string, of func(s *serverlog.Sample) float64) (all steadySample, sum *report.Summary) {
	value := func(i int) float64 { return of(&r.list[i]) }
	all = sampled(len(r.list), value, r.steady)
	sum = r.out.sampled(id, nil, all)
	for _, e := range r.engines[:min(len(r.engines), maxEngines)] {
		if e < 0 {
			continue
		}
		r.out.sampled(id, Labels("engine", strconv.Itoa(int(e))), sampled(len(r.list), func(i int) float64 {
			if r.list[i].Engine != e {
				return math.NaN()
			}
			return value(i)
		}, r.steady))
	}
	return all, sum
}

// decoding leaves out SGLang's lines of prefill batches, which state what runs before the batch joins it.
func decoding(of func(s *serverlog.Sample) float64) func(s *serverlog.Sample) float64 {
	return func(s *serverlog.Sample) float64 {
		if s.Prefilling {
			return math.NaN()
		}
		return of(s)
	}
}

func (r *servingRun) throughput() {
	add := func(t *Table, name, id string, of func(s *serverlog.Sample) float64) {
		if all, sum := r.emit(id, of); all.all > 0 {
			t.summaryRow(name, all.all, sum)
		}
	}
	t := r.out.Table("serving_throughput")
	add(t, "prompt", "serve.prompt_throughput", func(s *serverlog.Sample) float64 { return s.Prompt })
	add(t, "generation", "serve.generation_throughput", func(s *serverlog.Sample) float64 { return s.Generation })
	t.Add()
	t = r.out.Table("serving_requests")
	add(t, "running", "serve.requests_running", decoding(func(s *serverlog.Sample) float64 { return s.Running }))
	add(t, "waiting", "serve.requests_waiting", func(s *serverlog.Sample) float64 { return s.Waiting })
	t.Add()
}

func (r *servingRun) cache() {
	t := r.out.Table("serving_cache")
	if all, sum := r.emit("serve.kv_cache_usage", decoding(func(s *serverlog.Sample) float64 { return s.Usage })); all.all > 0 {
		t.summaryRow("KV cache in use", all.all, sum)
	}
	for _, c := range []struct {
		name, id string
		of       func(s *serverlog.Sample) float64
	}{
		{"KV cache in host memory", "", func(s *serverlog.Sample) float64 { return s.CPUUsage }},
		{"prefix cache hits", "serve.prefix_cache_hit_rate", func(s *serverlog.Sample) float64 { return s.PrefixHits }},
		{"external cache hits", "serve.external_cache_hit_rate", func(s *serverlog.Sample) float64 { return s.ExternalHits }},
		{"media cache hits", "", func(s *serverlog.Sample) float64 { return s.MediaHits }},
	} {
		all := sampled(len(r.list), func(i int) float64 { return c.of(&r.list[i]) }, r.steady)
		if all.all == 0 {
			continue
		}
		t.summaryRow(c.name, all.all, stat.Summarize(slices.Clone(all.steady)))
		if c.id == "" {
			continue
		}
		last := math.NaN()
		for i := range r.list {
			if v := c.of(&r.list[i]); !math.IsNaN(v) {
				last = v
			}
		}
		r.out.Metric(c.id, nil, notNaN(last)).N = all.all
	}
	r.cachedTokens()
	t.Add()
}

// cachedTokens is SGLang's hit rate: over the tokens of all prefill batches after the server was ready.
func (r *servingRun) cachedTokens() {
	var cached, all float64
	var n int64
	for i := range r.list {
		s := &r.list[i]
		if !s.Prefilling || !s.Ready() || math.IsNaN(s.CachedTokens) || math.IsNaN(s.NewTokens) || !math.IsNaN(s.PrefixHits) {
			continue
		}
		n++
		cached += s.CachedTokens
		all += s.CachedTokens + s.NewTokens
	}
	if n > 0 && all > 0 {
		r.out.Float("serve.prefix_cache_hit_rate", nil, cached/all).N = n
	}
}

func (r *servingRun) preemptions() {
	if r.log.HasPreemptions {
		r.out.Int("serve.preemptions", nil, r.log.Preemptions)
	}
}

// times of the lines in ns after the first that states one; -1 unknown.
func (r *servingRun) times() []int64 {
	list := make([]int64, len(r.list))
	first := serverlog.NoClock
	for i := range r.list {
		c := r.list[i].Clock
		if first == serverlog.NoClock {
			first = c
		}
		list[i] = -1
		if c != serverlog.NoClock {
			list[i] = (c - first) * 1e9
		}
	}
	return list
}

func (r *servingRun) samples() {
	times := r.times()
	row := func(t *Table, i int) {
		s := &r.list[i]
		state, engine, time := "steady", report.Null, report.Null
		if !s.Steady {
			state = "left out"
		}
		if s.Engine >= 0 {
			engine = report.I(int64(s.Engine))
		}
		if times[i] >= 0 {
			time = report.I(times[i])
		}
		t.Row(report.S(serverlog.ClockText(s.Clock, r.log.Year)), time, engine, report.I(s.Line), report.S(state), number(s.Prompt), number(s.Generation), number(s.Running), number(s.Waiting), number(s.Usage), number(s.PrefixHits))
	}
	t := r.out.Table("serving_samples")
	for i := range min(len(r.list), maxLogRows) {
		row(t, i)
	}
	t.t.TotalRows = int64(len(r.list))
	if len(r.list) > maxLogRows {
		t.others()
	}
	if len(r.list) <= maxSampleLen {
		t.Add()
		return
	}
	t.Attach()
	short := r.out.Table("serving_samples")
	short.t.File = ""
	for k := range maxSampleLen {
		row(short, k*len(r.list)/maxSampleLen)
	}
	short.t.TotalRows = int64(len(r.list))
	short.others()
	short.Add()
	r.out.Note("The table lists " + strconv.Itoa(maxSampleLen) + " lines, evenly spaced; serving.csv has more.")
}

// others ends a table that does not list everything, where nothing in it adds up.
func (t *Table) others() {
	row := make([]report.Cell, len(t.t.Columns))
	for j, c := range t.t.Columns {
		if c.Kind == report.Name || c.Kind == report.Text {
			row[j] = report.S("(others)")
			break
		}
	}
	t.t.Rows, t.t.Others = append(t.t.Rows, row), true
}

func (r *servingRun) charts() {
	times := r.times()
	line := func(name string, of func(s *serverlog.Sample) float64) report.Series {
		return lineOf(name, len(r.list), func(i int) int64 { return times[i] }, func(i int) float64 { return of(&r.list[i]) })
	}
	const title = "time since the first line of statistics"
	r.out.lineChart("serving_throughput", "Tokens per second", report.PerSecond, report.Nanoseconds, title,
		line("prompt", func(s *serverlog.Sample) float64 { return s.Prompt }), line("generation", func(s *serverlog.Sample) float64 { return s.Generation }))
	r.out.lineChart("serving_requests", "Requests", report.Count, report.Nanoseconds, title,
		line("running", func(s *serverlog.Sample) float64 { return s.Running }), line("waiting", func(s *serverlog.Sample) float64 { return s.Waiting }))
	r.out.lineChart("serving_cache", "KV cache in use", report.Ratio, report.Nanoseconds, title, line("KV cache", func(s *serverlog.Sample) float64 { return s.Usage }))
}

func (r *servingRun) findings() {
	find := map[string]*report.Summary{}
	for _, m := range r.out.metrics {
		if len(m.Labels) == 0 {
			find[m.ID] = m.Summary
		}
	}
	usage, running, waiting := find["serve.kv_cache_usage"], find["serve.requests_running"], find["serve.requests_waiting"]
	if r.log.HasPreemptions && r.log.Preemptions > 0 {
		evidence := []report.MetricRef{Ref("serve.preemptions")}
		if usage != nil {
			evidence = append(evidence, Ref("serve.kv_cache_usage"))
		}
		r.out.Find("preemptions", report.Medium, "Requests were preempted: their work was thrown away and done again", evidence,
			"Give the KV cache more memory (vLLM: --gpu-memory-utilization, SGLang: --mem-fraction-static), let fewer requests run at once (--max-num-seqs; SGLang: --max-running-requests), or spread the model over more GPUs.")
	}
	if usage == nil || running == nil || waiting == nil {
		return
	}
	switch queue := waiting.P50 > 0 && waiting.P50 >= queuePerRun*running.P50; {
	case queue && usage.P90 >= kvFull:
		r.out.Find("kv_cache_full", report.High, "Requests wait while the KV cache is full",
			[]report.MetricRef{Ref("serve.kv_cache_usage"), Ref("serve.requests_waiting"), Ref("serve.requests_running")},
			"The KV cache limits how many requests run: give it more memory, use a smaller type for it (--kv-cache-dtype fp8), lower --max-model-len if requests are shorter, or add replicas.")
	case queue && usage.P90 < kvRoom:
		r.out.Find("queue_with_room", report.Medium, "Requests wait although the KV cache has room",
			[]report.MetricRef{Ref("serve.requests_waiting"), Ref("serve.requests_running"), Ref("serve.kv_cache_usage")},
			"Something else limits how many requests run: --max-num-seqs (SGLang: --max-running-requests), or prefill that cannot keep up with what arrives (--max-num-batched-tokens; SGLang: --chunked-prefill-size).")
	}
}
