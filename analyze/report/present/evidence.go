package present

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// EvidenceOnly reports whether the report has no trace behind it.
func (v *View) EvidenceOnly() bool {
	return v.Trace.Kind != "" && !strings.HasPrefix(v.Trace.Kind, "nsys-") && v.Trace.Source == ""
}

// evidenceFiles lists the files that were read besides the trace, and how much of each was understood.
func evidenceFiles(v *View) doc.Table {
	t := doc.Table{ID: "evidence", Columns: doc.Cols("Evidence", "Kind", "Version", ">Size", ">Records", ">Understood",
		">Nothing to take", ">Unknown form")}
	const most = 20
	for i, e := range v.Evidence {
		if i == most {
			t.Row(unit.Int(len(v.Evidence)-most)+" more", nil, nil, nil, nil, nil, nil, nil)
			break
		}
		kind, version := e.Kind, doc.Spans()
		if e.Format != "" {
			kind += ", " + e.Format
		}
		if e.Version != nil {
			version = doc.Spans(v.names.word(*e.Version))
		}
		t.Row(doc.Name(e.Name), kind, version, unit.Format(float64(e.Bytes), report.Bytes), unit.Int(e.Records),
			unit.Int(e.Understood), unit.Int(e.Known), unit.Int(e.Unknown))
	}
	return t
}

// keyEvidence lists the metrics without labels that are key numbers in every report that has them. If a metric is a
// distribution, its median is shown.
var keyEvidence = []struct{ id, label string }{
	{"serve.generation_throughput", "Generation tokens per second"},
	{"serve.prompt_throughput", "Prompt tokens per second"},
	{"serve.ttft", "Time to first token"},
	{"serve.tpot", "Time per output token"},
	{"serve.e2e", "Request latency"},
	{"serve.request_time", "Request time"}, // these three are of text-generation-inference
	{"serve.request_queue_time", "Request in the queue"},
	{"serve.request_token_time", "Request time per token"},
	{"serve.iteration_time", "Engine iteration"},
	{"serve.kv_cache_usage", "KV cache usage"},
	{"serve.model_flops", "Estimated FLOP per second, one GPU"},
	{"serve.model_flops_ratio", "Estimated FLOP per second, of peak"},
	{"serve.model_bandwidth", "Estimated bytes per second, one GPU"},
	{"serve.model_bandwidth_ratio", "Estimated bytes per second, of peak"},
	{"serve.requests_running", "Requests running"},
	{"serve.requests_waiting", "Requests waiting"},
	{"serve.ready_time", "Server ready after"},
	{"serve.model_load_time", "Model load"},
	{"serve.weight_bytes", "Model, one GPU"},
	{"serve.kv_cache_bytes", "KV cache, one GPU"},
	{"serve.kv_cache_tokens", "KV cache, tokens"},
	{"serve.max_concurrency", "Full-length requests at once"},
	{"ncu.dram_ratio", "DRAM throughput, of peak"},
	{"ncu.sm_ratio", "SM throughput, of peak"},
	{"moe.coverage", "MoE experts used"},
	{"forward.time", "Forward pass"},
	{"forward.token_rate", "Tokens per second of forward time"},
	{"batch.token_utilization", "Batch filled, tokens"},
	{"kv.usage", "KV cache blocks in use"},
	{"preemption.rate", "Preemptions per request"},
}

// latencies are the metrics of which any says how long requests took.
var latencies = []string{"serve.ttft", "serve.tpot", "serve.e2e", "serve.request_time"}

func evidenceFacts(v *View) []fact {
	var list []fact
	for _, k := range keyEvidence {
		if strings.HasPrefix(k.id, "serve.request_") && v.All("serve.request_token_time") == nil {
			continue // logged in whole seconds: not the time of a request
		}
		if start[k.id] && v.Metric("serve.generation_throughput") != nil {
			continue // the server's running state matters more than its start
		}
		m := v.Metric(k.id)
		if m == nil {
			continue
		}
		value, detail := m.Value, doc.Spans(wording.Count(m.N, "sample"))
		if s := m.Summary; s != nil {
			value = &s.P50
			detail = doc.Spans("median; p90 " + unit.Format(s.P90, m.Unit) + ", p99 " + unit.Format(s.P99, m.Unit) +
				", max " + unit.Format(s.Max, m.Unit) + "; n = " + unit.Int(s.N))
		}
		if value != nil {
			list = append(list, fact{label: k.label, value: unit.Format(*value, m.Unit), detail: detail,
				now: slices.ContainsFunc(serverNow, func(n struct{ id, text string }) bool { return n.id == k.id })})
		}
	}
	if v.EvidenceOnly() && v.Metric("serve.generation_throughput") != nil &&
		!slices.ContainsFunc(latencies, func(id string) bool { return v.All(id) != nil }) {
		detail := doc.Spans("none in the log: give --prometheus FILE or use explain load")
		list = append(list, fact{label: "Latencies", value: "unknown", detail: detail})
	}
	if s := v.Environment.EngineSettings; s != nil && v.Metric("serve.generation_throughput") == nil {
		list = append(list, fact{label: "Settings", value: "stated", detail: doc.Spans(doc.Name(*s))})
	}
	return list
}

// start lists the numbers about a server's start; they are key numbers only if a log has no statistics.
var start = map[string]bool{"serve.ready_time": true, "serve.model_load_time": true, "serve.weight_bytes": true, "serve.kv_cache_bytes": true,
	"serve.kv_cache_tokens": true, "serve.max_concurrency": true}
