package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Two GPUs at 3.60 an hour cost 0.002 a second. Twelve decode steps of 8 requests, the kept ones 20 ms long, are 400 tokens
// per second: a million take 2,500 s and cost 5. The server states 1,000 per second: 1,000 s cost 2.
func TestCost(t *testing.T) {
	const ms = 1_000_000
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	for i := range int64(12) {
		at := i * 20 * ms
		th.Range("execute_context_0(0)_generation_8(8)", at, at+2*ms)
		for device := range int64(2) {
			th.Launch("gemm", at+1000, at+2000, tracetest.Kernel{Place: tracetest.Place{Device: device}, Start: at + ms, End: at + 19*ms})
		}
	}
	dump := filepath.Join(t.TempDir(), "metrics.prom")
	if err := os.WriteFile(dump, []byte("# TYPE sglang:gen_throughput gauge\nsglang:gen_throughput 1000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := sectiontest.Analyse(t, b, analyze.Options{GPUPrice: 3.6, Evidence: []analyze.Evidence{{Path: dump}}}).Report
	sectiontest.Metric(t, r, 3.6, "cost.gpu_hour")
	sectiontest.Metric(t, r, 2, "cost.per_million_tokens", "source", "server")
	steps := r.Find("unit.time", map[string]string{"phase": "decode", "batch": "8"})
	if steps == nil || steps.Summary == nil {
		t.Fatal("no time of decode steps")
	}
	m := r.Find("cost.per_million_tokens", map[string]string{"source": "decode"})
	want := 0.002 * steps.Summary.Mean / 1e9 / 8 * 1e6
	if m == nil || m.Value == nil || *m.Value < want*0.999999 || *m.Value > want*1.000001 {
		t.Fatalf("decode %+v, want %v", m, want)
	}
	if want < 4.9 || want > 5.1 {
		t.Errorf("a million tokens cost %v: the steps should last 20 ms", want)
	}
}

// Nobody asked: no section. Nothing about tokens, or about GPUs: the cost is unknown, and the report says so.
func TestCostUnknown(t *testing.T) {
	b := tracetest.New()
	b.Process(1, "p").Thread(1, "").Launch("gemm", 0, 10, tracetest.Kernel{Start: 10, End: 20})
	r := sectiontest.Analyse(t, b, analyze.Options{GPUPrice: 2}).Report
	sectiontest.WantStatus(t, r, "cost", report.NotApplicable, "how many tokens were generated")
	r = sectiontest.Analyse(t, b, analyze.Options{}).Report
	if m := r.Find("cost.gpu_hour", nil); m != nil {
		t.Errorf("cost without a price: %+v", m)
	}
	dump := filepath.Join(t.TempDir(), "metrics.prom")
	if err := os.WriteFile(dump, []byte("# TYPE sglang:gen_throughput gauge\nsglang:gen_throughput 1000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	res, err := analyze.Run(t.Context(), "", analyze.Options{GPUPrice: 2, Evidence: []analyze.Evidence{{Path: dump}}})
	if err != nil {
		t.Fatal(err)
	}
	m := res.Report.Find("cost.per_million_tokens", map[string]string{"source": "server"})
	if m == nil || m.Value != nil {
		t.Errorf("%+v, want it unknown: nobody says how many GPUs", m)
	}
}
