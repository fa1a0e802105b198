package engine_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
)

// The example logs 0.5, 0.9 and 0.7, and a step without tokens that says nothing.
func TestExpertBalance(t *testing.T) {
	r := analyseLog(t, exampleLog)
	sectiontest.Metric(t, r, 0.7, "serve.expert_balance")
	if m := r.Find("serve.expert_balance", nil); m.N != 3 || m.Summary.Min != 0.5 {
		t.Errorf("%+v", m)
	}
	r = logOf(t, "INFO 03-01 10:00:44 [eplb_state.py:390] EPLB step: avg_tokens=5.00, max_tokens=20, balancedness=0.2500")
	if !hasFinding(r, "experts_uneven") {
		t.Errorf("findings %v", r.Findings)
	}
}
