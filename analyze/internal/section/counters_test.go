package section_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
)

// The example's engines have 6,000 and 4,000 prompt tokens, 3 and 2 requests, and a quarter and a half of their caches in use.
func TestCounters(t *testing.T) {
	r := analyseLog(t, exampleDump)
	metric(t, r, 10000, "serve.tokens", "kind", "prompt")
	metric(t, r, 2000, "serve.tokens", "kind", "generation")
	metric(t, r, 100, "serve.requests_ended")
	metric(t, r, 10, "serve.requests_ended", "reason", "abort")
	metric(t, r, 4, "serve.preemptions")
	metric(t, r, 0.25, "serve.prefix_cache_hit_rate")
	metric(t, r, 0.5, "serve.kv_cache_usage")
	metric(t, r, 5, "serve.requests_running")
	metric(t, r, 1, "serve.requests_waiting")
	metric(t, r, 65536, "serve.kv_cache_tokens")
	metric(t, r, 0.25, "serve.spec_acceptance_rate")
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
	metric(t, res.Report, 0.3, "serve.kv_cache_usage")
	metric(t, res.Report, 10000, "serve.tokens", "kind", "prompt")
	metric(t, res.Report, 100, "serve.requests_ended")
}

func TestCountersNotThere(t *testing.T) {
	r := dumpsOf(t, "# TYPE other counter\nother 1\n")
	wantStatus(t, r, "counters", report.NotApplicable, "no metrics of vLLM or SGLang")
	wantStatus(t, r, "latency", report.NotApplicable, "no metrics of vLLM or SGLang")
}
