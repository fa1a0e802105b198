package engine_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// The example's engines have 6,000 and 4,000 prompt tokens, 3 and 2 requests, and a quarter and a half of their caches in use.
func TestCounters(t *testing.T) {
	r := analyseLog(t, exampleDump)
	sectiontest.Metric(t, r, 10000, "serve.tokens", "kind", "prompt")
	sectiontest.Metric(t, r, 2000, "serve.tokens", "kind", "generation")
	sectiontest.Metric(t, r, 100, "serve.requests_ended")
	sectiontest.Metric(t, r, 10, "serve.requests_ended", "reason", "abort")
	sectiontest.Metric(t, r, 4, "serve.preemptions")
	sectiontest.Metric(t, r, 0.25, "serve.prefix_cache_hit_rate")
	sectiontest.Metric(t, r, 0.5, "serve.kv_cache_usage")
	sectiontest.Metric(t, r, 5, "serve.requests_running")
	sectiontest.Metric(t, r, 1, "serve.requests_waiting")
	sectiontest.Metric(t, r, 65536, "serve.kv_cache_tokens")
	sectiontest.Metric(t, r, 0.25, "serve.spec_acceptance_rate")
	if !hasFinding(r, "requests_cut_off") {
		t.Errorf("findings %v", r.Findings)
	}
	if m := r.Find("serve.kv_cache_usage", nil); m.N != 1 {
		t.Errorf("n %d of one moment", m.N)
	}
}

// A log beside the dump has many moments: what both say is the log's.
func TestCountersBesideALog(t *testing.T) {
	res, err := analyze.Run(t.Context(), exampleLog, analyze.Options{Evidence: []analyze.Evidence{{Path: exampleDump, Kind: analyze.EvidencePrometheus}}})
	if err != nil {
		t.Fatal(err)
	}
	sectiontest.Metric(t, res.Report, 0.3, "serve.kv_cache_usage")
	sectiontest.Metric(t, res.Report, 10000, "serve.tokens", "kind", "prompt")
	sectiontest.Metric(t, res.Report, 100, "serve.requests_ended")
}

func TestCountersNotThere(t *testing.T) {
	r := dumpsOf(t, "# TYPE other counter\nother 1\n")
	sectiontest.WantStatus(t, r, "counters", report.NotApplicable, "no metrics of vLLM, SGLang or TensorRT-LLM")
	sectiontest.WantStatus(t, r, "latency", report.NotApplicable, "no metrics of vLLM, SGLang or TensorRT-LLM")
}
