package engine

import (
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/prom"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Counters = kit.Section{
	ID: "counters", Title: "Counters of the server", Evidence: []file.Kind{file.Prometheus},
	Derivation: "Counters and gauges of the server's metrics, over all engines and models. Counters are since " +
		"the server started, or of two dumps the difference; a gauge is the value at the moment of the later dump alone. " +
		"If the server's log states a number too, the log's is used.",
	Findings: []kit.FindingDef{
		{ID: "requests_cut_off", Title: "Some requests were aborted or failed"},
	},
	Metrics: []report.MetricDef{
		kit.NoisyCount("serve.tokens", report.None, report.Leave,
			"tokens by kind: prompt, generation, cached").By("kind"),
		kit.NoisyCount("serve.requests_ended", report.None, report.Leave,
			"requests that ended, by the reason: stop, length, abort, error").By("", "reason"),
		kit.NoisyCount("serve.preemptions", report.Lower, report.Leave,
			"requests that lost their place in the KV cache and were computed again; only if the log says so"),
		kit.Ratio("serve.prefix_cache_hit_rate", report.Higher, report.Leave,
			"share of prompt tokens found in the prefix cache"),
		kit.Ratio("serve.kv_cache_usage", report.None, report.Leave,
			"share of the KV cache that is in use").Summarised(),
		kit.NoisyLevel("serve.requests_running", report.None, report.Leave, "requests that run").Summarised(),
		kit.NoisyLevel("serve.requests_waiting", report.Lower, report.Leave, "requests that wait to run").Summarised(),
		kit.ExactLevel("serve.kv_cache_tokens", report.Higher, report.Leave, "tokens that the KV cache holds"),
		kit.Ratio("serve.spec_acceptance_rate", report.Higher, report.Leave,
			"share of drafted tokens that was accepted"),
	},
	Tables: []report.Table{
		{ID: "server_counters", Title: "Counters", File: "server_counters.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("counter", "Counter"),
			kit.FloatCol("value", "Value", report.Count),
		}},
		{ID: "server_gauges", Title: "At the time of the dump", File: "server_gauges.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("gauge", "Gauge"),
			kit.FloatCol("value", "Value", ""),
		}},
	},
	Run: serverCounters,
}

func serverCounters(in *kit.Input, out *kit.Output) {
	d := in.Evidence.Prom
	if d.Engine == "" || len(d.Counters)+len(d.Gauges) == 0 {
		out.Status(report.NotApplicable, "the dump has no metrics of vLLM, SGLang or TensorRT-LLM")
		return
	}
	out.FromEvidence(file.Prometheus, d.Series, "counters", "gauges")
	since := "since the server started"
	if d.Delta {
		since = "between the two dumps"
	}
	out.Note("Counters count what happened " + since + ".")
	alone := in.Evidence.Log == nil // the log's samples tell more than one moment does
	t := out.Table("server_counters")
	counter := func(name, of string) (float64, bool) {
		v, ok := d.Counters[of]
		if ok {
			t.Row(kit.Text("counter", name), kit.Float("value", v))
		}
		return v, ok
	}
	for _, c := range []struct{ kind, of string }{
		{"prompt", prom.PromptTokens}, {"generation", prom.GenerationTokens}, {"cached", prom.CachedTokens},
	} {
		if v, ok := counter(c.kind+" tokens", c.of); ok {
			out.Float("serve.tokens", kit.Labels("kind", c.kind), v)
		}
	}
	requestsEnded(out, d, t)
	if v, ok := counter("preemptions", prom.Preemptions); ok && alone {
		out.Float("serve.preemptions", nil, v)
	}
	queries, ok1 := counter("prefix cache, tokens asked for", prom.PrefixQueries)
	hits, ok2 := counter("prefix cache, tokens found", prom.PrefixHits)
	if prompt, cached := d.Counters[prom.PromptTokens], d.Counters[prom.CachedTokens]; !ok1 && d.Engine == "SGLang" &&
		cached > 0 {
		queries, hits, ok1, ok2 = prompt, cached, true, true
	}
	if rate := stat.Ratio(hits, queries); ok1 && ok2 && rate != nil && alone {
		out.Metric("serve.prefix_cache_hit_rate", nil, rate)
	} else if v, ok := d.Gauges[prom.HitRate]; ok && alone && !ok1 {
		out.Float("serve.prefix_cache_hit_rate", nil, v)
	}
	drafted, ok1 := counter("drafted tokens", prom.SpecDrafted)
	accepted, ok2 := counter("accepted tokens", prom.SpecAccepted)
	if rate := stat.Ratio(accepted, drafted); ok1 && ok2 && rate != nil && alone {
		out.Metric("serve.spec_acceptance_rate", nil, rate)
	}
	t.Add()
	g := out.Table("server_gauges")
	for _, c := range []struct{ name, of, id string }{
		{"requests running", prom.Running, "serve.requests_running"}, {"requests waiting", prom.Waiting,
			"serve.requests_waiting"}, {"KV cache in use", prom.Usage, "serve.kv_cache_usage"},
		{"KV cache, tokens", prom.KVTokens, "serve.kv_cache_tokens"}, {"prefix cache hit rate", prom.HitRate, ""},
		{"generated tokens per second", prom.GenerationRate, ""}, {"acceptance length", prom.AcceptLength, ""},
	} {
		v, ok := d.Gauges[c.of]
		if !ok {
			continue
		}
		g.Row(kit.Text("gauge", c.name), kit.Float("value", v))
		if c.id != "" && alone {
			out.Float(c.id, nil, v).N = 1
		}
	}
	g.Add()
}

// requestsEnded counts requests by the reason why they ended.
func requestsEnded(o *kit.Output, d *prom.Data, t *kit.Table) {
	if len(d.Finished) == 0 {
		if v, ok := d.Counters[prom.Requests]; ok {
			o.Float("serve.requests_ended", nil, v).N = int64(v)
			t.Row(kit.Text("counter", "requests"), kit.Float("value", v))
		}
		return
	}
	all := lists.Total(slices.Collect(maps.Values(d.Finished)))
	o.Float("serve.requests_ended", nil, all).N = int64(all)
	for _, r := range slices.Sorted(maps.Keys(d.Finished)) {
		o.Float("serve.requests_ended", kit.Labels("reason", r), d.Finished[r]).N = int64(d.Finished[r])
		t.Row(kit.Text("counter", "requests ended: "+r), kit.Float("value", d.Finished[r]))
	}
	if n := d.Finished["abort"] + d.Finished["error"]; all > 0 && n >= abortShare*all {
		reason := "abort"
		if d.Finished["error"] > d.Finished["abort"] {
			reason = "error"
		}
		o.Find("requests_cut_off",
			[]report.MetricRef{kit.Ref("serve.requests_ended", "reason", reason), kit.Ref("serve.requests_ended")},
			"Aborted requests were cancelled by their clients, often for a timeout: look at the latencies. The histograms include them with the time until then.")
	}
}

// abortShare of the requests, 0..1, that were aborted or failed, from which it is a finding.
const abortShare = 0.01
