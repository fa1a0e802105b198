package compat_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

const ms = 1e6 // ns

// Prefill: 40 and 20 ms for 512 + 256 tokens. Decode: 8, 10, 12 ms for 3 × 4 tokens.
func TestForwardPass(t *testing.T) {
	r := folderReport(t, sessionFolder)
	sectiontest.WantStatus(t, r, "forward_pass", report.OK, "")
	sectiontest.Metric(t, r, 30*ms, "forward.time", "phase", "prefill")
	sectiontest.Metric(t, r, 10*ms, "forward.time", "phase", "decode")
	sectiontest.Metric(t, r, 12*ms, "forward.time") // of 8, 10, 12, 20, 40
	sectiontest.Metric(t, r, 60*ms, "forward.total_time", "phase", "prefill")
	sectiontest.Metric(t, r, 90*ms, "forward.total_time")
	sectiontest.Metric(t, r, 3, "forward.count", "phase", "decode")
	sectiontest.Metric(t, r, 768, "forward.tokens", "phase", "prefill")
	sectiontest.Metric(t, r, 780, "forward.tokens")
	sectiontest.Metric(t, r, 12800, "forward.token_rate", "phase", "prefill")
	sectiontest.Metric(t, r, 400, "forward.token_rate", "phase", "decode") // the mean of profilemate's column is 411
	nearly(t, r, 780/0.09, "forward.token_rate")
	nearly(t, r, 60.0/90, "forward.time_share", "phase", "prefill")
	wantFindings(t, r, true, "prefill_heavy")
	s := r.Find("forward.time", report.Labels{"phase": "decode"}).Summary
	if s.N != 3 || s.Min != 8*ms || s.Max != 12*ms || s.P90 != 11.6*ms {
		t.Errorf("summary of decode: %+v", s)
	}
	if warnsOf(r, "session_summary") {
		t.Error("summaries and tables agree, and a warning says that they do not")
	}
}

// The simple variant calls the column duration_ms.
func TestForwardPassSimple(t *testing.T) {
	r := filesReport(t, map[string]string{"anything.txt": "timestamp_sec,phase,batch_size,num_tokens,duration_ms,throughput_tokens_per_sec\r\n0.1,decode,2,2,4.000,500.0\r\n0.2,decode,2,2,6.000,333.3\r\n"})
	sectiontest.Metric(t, r, 5*ms, "forward.time", "phase", "decode")
	sectiontest.Metric(t, r, 400, "forward.token_rate")
	wantFindings(t, r, false, "prefill_heavy")
}

func TestForwardPassSummaryAlone(t *testing.T) {
	r := filesReport(t, map[string]string{"summary.json": `{"decode": {"count": 4, "mean_ms": 2.5, "min_ms": 1, "max_ms": 4, "p50_ms": 2, "p95_ms": 4, "p99_ms": 4}}`})
	sectiontest.WantStatus(t, r, "forward_pass", report.Partial, "")
	sectiontest.Metric(t, r, 2.5*ms, "forward.time", "phase", "decode")
	sectiontest.Metric(t, r, 4, "forward.count", "phase", "decode")
	sectiontest.Metric(t, r, 10*ms, "forward.total_time", "phase", "decode")
	sectiontest.Metric(t, r, 1, "forward.time_share", "phase", "decode")
}

// A table that was cut off says less than its summary.
func TestForwardPassDisagrees(t *testing.T) {
	r := filesReport(t, map[string]string{
		"forward_pass_timing.csv":   "timestamp_sec,phase,batch_size,num_tokens,forward_time_ms,throughput_tokens_per_sec\n0.1,decode,2,2,4.000,500.0\n0.2,dec",
		"forward_pass_summary.json": `{"decode": {"count": 4, "mean_ms": 2.5, "std_ms": 1, "min_ms": 1, "max_ms": 4, "p50_ms": 2, "p95_ms": 4, "p99_ms": 4}}`,
	})
	if !warnsOf(r, "session_summary") || !warnsOf(r, "session_cut") {
		t.Errorf("warnings: %v", r.Warnings)
	}
	sectiontest.Metric(t, r, 4*ms, "forward.time", "phase", "decode")
}
