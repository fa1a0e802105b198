package engine_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// The example accepts 60 of 100 and 30 of 50 tokens, two a draft: 90 of 150, and 1 + 90 ÷ 75 tokens a step. By position
// (0.7 × 100 + 0.8 × 50) ÷ 150 and (0.5 × 100 + 0.4 × 50) ÷ 150.
func TestSpeculative(t *testing.T) {
	r := analyseLog(t, exampleLog)
	sectiontest.Metric(t, r, 0.6, "serve.spec_acceptance_rate")
	sectiontest.Metric(t, r, 2.2, "serve.spec_acceptance_length")
	sectiontest.Metric(t, r, 90, "serve.spec_accepted_tokens")
	sectiontest.Metric(t, r, 150, "serve.spec_drafted_tokens")
	sectiontest.Metric(t, r, 110.0/150, "serve.spec_position_rate", "position", "0")
	sectiontest.Metric(t, r, 70.0/150, "serve.spec_position_rate", "position", "1")
	if m := r.Find("serve.spec_acceptance_length", nil); m.N != 2 || m.Summary.N != 2 || m.Summary.Mean != *m.Value {
		t.Errorf("%+v", m)
	}
	if hasFinding(r, "spec_low_acceptance") {
		t.Errorf("findings %v", r.Findings)
	}
}

// Older forms state the same in other words.
func TestSpeculativeOlderForms(t *testing.T) {
	r := logOf(t, "INFO 03-01 10:00:00 [metrics.py:86] SpecDecoding metrics: Draft acceptance rate: 20.0%, Mean acceptance length: 1.20, Accepted: 20 tokens, Drafted: 100 tokens, Per-position acceptance rate: 0.200")
	sectiontest.Metric(t, r, 0.2, "serve.spec_acceptance_rate")
	sectiontest.Metric(t, r, 1.2, "serve.spec_acceptance_length")
	if !hasFinding(r, "spec_low_acceptance") {
		t.Errorf("findings %v", r.Findings)
	}
	r = logOf(t, "INFO 03-01 10:00:00 metrics.py:477] Speculative metrics: Draft acceptance rate: 0.500, System efficiency: 0.400, Number of speculative tokens: 5, Number of accepted tokens: 50, Number of draft tokens: 100, Number of emitted tokens: 60.")
	sectiontest.Metric(t, r, 0.5, "serve.spec_acceptance_rate")
	sectiontest.Metric(t, r, 100, "serve.spec_drafted_tokens")
	if r.Find("serve.spec_acceptance_length", report.Labels{}) != nil {
		t.Error("a length that no line states")
	}
}
