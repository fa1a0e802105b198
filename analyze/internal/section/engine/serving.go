package engine

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Serving = kit.Section{
	ID: "serving", Title: "Serving", Evidence: []file.Kind{file.ServerLog},
	Derivation: "The lines of statistics that the server logs every few seconds. Medians and percentiles are " +
		"over the steady ones; n counts all that state the number. " +
		serverlog.SteadyRule,
	Findings: []kit.FindingDef{
		{ID: "preemptions", Title: "Requests were preempted: their work was thrown away and done again"},
		{ID: "kv_cache_full", Title: "Requests wait while the KV cache is full"},
		{ID: "queue_with_room", Title: "Requests wait although the KV cache has room"},
	},
	Metrics: []report.MetricDef{
		perLine("serve.prompt_throughput", report.PerSecond, report.Higher,
			"prompt tokens per second of one engine, as it logs them"),
		perLine("serve.generation_throughput", report.PerSecond, report.Higher,
			"generated tokens per second of one engine, as it logs them"),
		perLine("serve.kv_cache_usage", report.Ratio, report.None, "share of the KV cache that is in use"),
		perLine("serve.requests_running", report.Count, report.None, "requests that run"),
		perLine("serve.requests_waiting", report.Count, report.Lower, "requests that wait to run"),
		kit.NoisyCount("serve.steady_samples", report.None, report.Leave, "lines of statistics that are steady"),
		kit.Ratio("serve.prefix_cache_hit_rate", report.Higher, report.Leave,
			"share of prompt tokens found in the prefix cache: vLLM's last line, which looks back over many requests; "+
				"for SGLang, all cached tokens of prefill batches over all their tokens"),
		kit.Ratio("serve.external_cache_hit_rate", report.Higher, report.Leave,
			"the same for a KV cache outside the engine"),
		kit.NoisyCount("serve.preemptions", report.Lower, report.Leave,
			"requests that lost their place in the KV cache and were computed again; only if the log says so"),
	},
	Tables: []report.Table{
		{ID: "serving_throughput", Title: "Throughput", File: "serving_throughput.csv", Merge: report.Leave,
			Columns: statisticColumns(kit.TextCol("statistic", "Tokens per second"), report.PerSecond)},
		{ID: "serving_requests", Title: "Requests", File: "serving_requests.csv", Merge: report.Leave,
			Columns: statisticColumns(kit.TextCol("statistic", "Requests"), report.Count)},
		{ID: "serving_cache", Title: "KV cache", File: "serving_cache.csv", Merge: report.Leave,
			Columns: statisticColumns(kit.TextCol("statistic", "Share"), report.Ratio)},
		{ID: "serving_samples", Title: "Lines of statistics", File: "serving.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("timestamp", "Logged"),
			kit.MomentCol("time", "Time", "time_s"),
			kit.Wide(kit.IDCol("engine", "Engine")),
			kit.Wide(kit.CountCol("line_number", "Line")),
			kit.TextCol("state", "State"),
			kit.FloatCol("prompt", "Prompt tokens", report.PerSecond),
			kit.FloatCol("generation", "Generated tokens", report.PerSecond),
			kit.FloatCol("running", "Running", report.Count),
			kit.FloatCol("waiting", "Waiting", report.Count),
			kit.FloatCol("usage", "KV cache", report.Ratio),
			kit.FloatCol("prefix_hits", "Prefix hits", report.Ratio),
		}},
	},
	Run: serving,
}

// perLine declares the statistics that every line states.
func perLine(id, unit string, better report.Direction, meaning string) report.MetricDef {
	return report.Define(id, unit, better, report.Noisy, report.Level, report.Leave,
		meaning+" (median; the summary is over steady lines, n over all)").Summarised().By("", "engine")
}

// Bounds from which a log gives a finding.
const (
	kvFull      = 0.90 // of the KV cache, p90
	queuePerRun = 0.5  // requests that wait for each that runs, medians
	kvRoom      = 0.70 // usage, p90, below which it is not the KV cache that requests wait for
	fewSteady   = 5    // lines below which their spread says little
	maxEngines  = 16   // with metrics of their own
	maxShown    = 200  // lines or requests that the report itself lists; the CSV file has more
	maxLogRows  = 200_000
)

// servingRun is the state of the section.
type servingRun struct {
	out     *kit.Output
	log     *serverlog.Data
	list    []serverlog.Sample
	steady  func(s *serverlog.Sample) bool
	engines []int32 // in the order of their numbers; more than one

	usage, running, waiting *report.Summary // of steady lines; nil if none states it
}

func serving(in *kit.Input, out *kit.Output) {
	log := in.Evidence.Log
	r := &servingRun{out: out, log: log, list: log.Samples}
	out.FromEvidence(file.ServerLog, len(r.list), "Avg prompt throughput", "Prefill batch", "Decode batch")
	if len(r.list) == 0 {
		out.Status(report.NotApplicable,
			"the log has no lines of statistics (vLLM: --disable-log-stats switches them off)")
		r.preemptions()
		return
	}
	r.choose()
	engines := lists.Set(r.list, func(s serverlog.Sample) int32 { return s.Engine })
	if len(engines) > 1 {
		r.engines = slices.Sorted(maps.Keys(engines))
		out.Note("The log has lines of " + strconv.Itoa(len(engines)) +
			" engines; each line, and each number without the label engine, describes one of them.")
	}
	r.throughput()
	r.cache()
	r.preemptions()
	r.samples()
	r.charts()
	r.findings()
}

// choose decides which lines count: the steady ones, or if there are none, those with work.
func (r *servingRun) choose() {
	n := lists.Count(r.list, func(s serverlog.Sample) bool { return s.Steady })
	r.out.Int("serve.steady_samples", nil, int64(n))
	r.steady = steady
	switch {
	case n == 0:
		r.steady = func(s *serverlog.Sample) bool {
			return s.Prompt > 0 || s.Generation > 0 || s.Running > 0 || s.Waiting > 0
		}
		r.out.Status(report.Partial, "no line of statistics is steady: numbers are over the lines with any work, start-up included")
	case n < fewSteady:
		r.out.Warn("few_steady", "Few lines of statistics are steady ("+strconv.Itoa(n)+"): too few to judge variation. Log a longer time under load.")
	}
}

// emit emits a statistic, for all engines and, if there are several, for each; a table lists that of all. It returns
// the summary of all.
func (r *servingRun) emit(t *kit.Table, name, id string, of func(s *serverlog.Sample) float64) *report.Summary {
	all := sampled(r.list, of, r.steady)
	all.emit(r.out, id, nil)
	all.row(t, name)
	for _, e := range r.engines[:min(len(r.engines), maxEngines)] {
		if e < 0 {
			continue
		}
		one := sampled(r.list, func(s *serverlog.Sample) float64 {
			if s.Engine != e {
				return math.NaN()
			}
			return of(s)
		}, r.steady)
		one.emit(r.out, id, kit.Labels("engine", strconv.Itoa(int(e))))
	}
	return all.steady
}

// decoding leaves out SGLang's lines of prefill batches: they state the running requests before the batch joins them.
func decoding(of func(s *serverlog.Sample) float64) func(s *serverlog.Sample) float64 {
	return func(s *serverlog.Sample) float64 {
		if s.Prefilling {
			return math.NaN()
		}
		return of(s)
	}
}

func (r *servingRun) throughput() {
	t := r.out.Table("serving_throughput")
	r.emit(t, "prompt", "serve.prompt_throughput", func(s *serverlog.Sample) float64 { return s.Prompt })
	r.emit(t, "generation", "serve.generation_throughput", func(s *serverlog.Sample) float64 { return s.Generation })
	t.Add()
	t = r.out.Table("serving_requests")
	r.running = r.emit(t, "running", "serve.requests_running", decoding(func(s *serverlog.Sample) float64 { return s.Running }))
	r.waiting = r.emit(t, "waiting", "serve.requests_waiting", func(s *serverlog.Sample) float64 { return s.Waiting })
	t.Add()
}

func (r *servingRun) cache() {
	t := r.out.Table("serving_cache")
	r.usage = r.emit(t, "KV cache in use", "serve.kv_cache_usage", decoding(func(s *serverlog.Sample) float64 { return s.Usage }))
	for _, c := range []struct {
		name, id string
		of       func(s *serverlog.Sample) float64
	}{
		{"KV cache in host memory", "", func(s *serverlog.Sample) float64 { return s.CPUUsage }},
		{"prefix cache hits", "serve.prefix_cache_hit_rate", func(s *serverlog.Sample) float64 { return s.PrefixHits }},
		{"external cache hits", "serve.external_cache_hit_rate",
			func(s *serverlog.Sample) float64 { return s.ExternalHits }},
		{"media cache hits", "", func(s *serverlog.Sample) float64 { return s.MediaHits }},
	} {
		all := sampled(r.list, c.of, r.steady)
		all.row(t, c.name)
		switch {
		case all.all > 0 && c.id != "":
			r.out.Float(c.id, nil, all.last).N = all.all
		case c.id == "serve.prefix_cache_hit_rate":
			r.cachedTokens()
		}
	}
	t.Add()
}

// cachedTokens is the hit rate of a log without one, SGLang's: over the tokens of all prefill batches after the server
// was ready.
func (r *servingRun) cachedTokens() {
	var cached, all float64
	var n int64
	for i := range r.list {
		s := &r.list[i]
		if !s.Prefilling || !s.Ready() || math.IsNaN(s.CachedTokens) || math.IsNaN(s.NewTokens) {
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
	row := func(t *kit.Table, i int) {
		s := &r.list[i]
		t.Row(
			kit.Text("timestamp", serverlog.ClockText(s.Clock, r.log.Year)), kit.Put("time", kit.Known(times[i])),
			kit.Put("engine", kit.Known(int64(s.Engine))), kit.Int("line_number", s.Line),
			kit.Text("state", map[bool]string{true: "steady", false: "left out"}[s.Steady]),
			kit.Maybe("prompt", notNaN(s.Prompt)), kit.Maybe("generation", notNaN(s.Generation)),
			kit.Maybe("running", notNaN(s.Running)), kit.Maybe("waiting", notNaN(s.Waiting)),
			kit.Maybe("usage", notNaN(s.Usage)), kit.Maybe("prefix_hits", notNaN(s.PrefixHits)))
	}
	addSpaced(r.out, "serving_samples", len(r.list), int64(len(r.list)), "lines", row)
}

// attachFirst writes the CSV file of a table of n rows, of which it holds the first maxLogRows.
func attachFirst(o *kit.Output, t *kit.Table, n int, what string) {
	t.TotalRows = int64(n)
	if n > maxLogRows {
		t.AddOthers(nil)
		o.Note(t.File + " lists the first " + strconv.Itoa(maxLogRows) + " " + what + ".")
	}
	t.Attach()
}

// addSpaced adds a table of n rows, of total that there are: the first maxLogRows to its CSV file, and at most
// maxShown, evenly spaced, to the report.
func addSpaced(o *kit.Output, id string, n int, total int64, what string, row func(t *kit.Table, i int)) {
	whole := o.Table(id)
	for i := range min(n, maxLogRows) {
		row(whole, i)
	}
	whole.TotalRows = total
	if n > maxLogRows {
		whole.AddOthers(nil)
	}
	if n <= maxShown {
		whole.Add()
		return
	}
	whole.Attach()
	short := o.Table(id)
	for k := range maxShown {
		row(short, k*n/maxShown)
	}
	short.File, short.TotalRows = "", total
	short.AddOthers(nil)
	short.Add()
	o.Note("The table lists " + strconv.Itoa(maxShown) + " " + what + ", evenly spaced; " + whole.File + " has more.")
}

func (r *servingRun) charts() {
	times := r.times()
	line := func(name string, of func(s *serverlog.Sample) float64) report.Series {
		return lineOf(name, len(r.list), func(i int) int64 { return times[i] },
			func(i int) float64 { return of(&r.list[i]) })
	}
	const title = "time since the first line of statistics"
	r.out.Chart(kit.Lines("serving_throughput", "Tokens per second", report.PerSecond, title,
		line("prompt", func(s *serverlog.Sample) float64 { return s.Prompt }),
		line("generation", func(s *serverlog.Sample) float64 { return s.Generation })))
	r.out.Chart(kit.Lines("serving_requests", "Requests", report.Count, title,
		line("running", func(s *serverlog.Sample) float64 { return s.Running }),
		line("waiting", func(s *serverlog.Sample) float64 { return s.Waiting })))
	r.out.Chart(kit.Lines("serving_cache", "KV cache in use", report.Ratio, title,
		line("KV cache", func(s *serverlog.Sample) float64 { return s.Usage })))
}

// share is the share of the run's samples, 0..1, for which a condition holds.
func (r *servingRun) share(is func(s serverlog.Sample) bool) *report.Worth {
	return kit.WorthOf(report.OfRun, float64(lists.Count(r.list, is)), float64(len(r.list)))
}

func (r *servingRun) findings() {
	usage, running, waiting := r.usage, r.running, r.waiting
	if r.log.HasPreemptions && r.log.Preemptions > 0 {
		evidence := kit.Refs("serve.preemptions")
		if usage != nil {
			evidence = append(evidence, kit.Ref("serve.kv_cache_usage"))
		}
		r.out.Find("preemptions", evidence,
			"Give the KV cache more memory"+kit.SetKVMemory+", let fewer requests run at once (vLLM: --max-num-seqs; SGLang: --max-running-requests), or spread the model over more GPUs.")
	}
	if usage == nil || running == nil || waiting == nil {
		return
	}
	switch queue := waiting.P50 > 0 && waiting.P50 >= queuePerRun*running.P50; {
	case queue && usage.P90 >= kvFull:
		r.out.Find("kv_cache_full",
			kit.Refs("serve.kv_cache_usage", "serve.requests_waiting", "serve.requests_running"),
			"The KV cache limits how many requests run: give it more memory, use a smaller type for it (--kv-cache-dtype fp8), lower the limit on the length of a request"+kit.SetRequestLength+" if requests are shorter, or add replicas.").
			Costs(r.share(func(s serverlog.Sample) bool { return s.Waiting > 0 && s.Usage >= kvFull }))
	case queue && usage.P90 < kvRoom:
		r.out.Find("queue_with_room",
			kit.Refs("serve.requests_waiting", "serve.requests_running", "serve.kv_cache_usage"),
			"Something else limits how many requests run: the setting for it (vLLM: --max-num-seqs; SGLang: --max-running-requests), or prefill that cannot keep up with what arrives (vLLM: --max-num-batched-tokens; SGLang: --chunked-prefill-size).").
			Costs(r.share(func(s serverlog.Sample) bool { return s.Waiting > 0 && s.Usage < kvRoom }))
	}
}
