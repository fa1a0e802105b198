package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// A model of 8,030 million weights on an H100 (989.4 TFLOP/s in bf16, 3.35 TB/s): 12 steps of 8 requests, 20 ms each.
// Twelve steps start 20 ms apart; the first eleven end where the next begins.
func TestModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(`{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
		"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"torch_dtype":"bfloat16"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	const ms = 1_000_000
	b := tracetest.New()
	b.GPU(tracetest.GPU{Name: "NVIDIA H100 80GB HBM3"})
	th := b.Process(1, "p").Thread(1, "")
	for i := range int64(12) {
		at := i * 20 * ms
		th.Range("execute_context_0(0)_generation_8(8)", at, at+2*ms)
		th.Launch("gemm", at+1000, at+2000, tracetest.Kernel{Start: at + ms, End: at + 19*ms})
	}
	r := sectiontest.Analyse(t, b, analyze.Options{Evidence: []analyze.Evidence{{Path: path}}}).Report
	const all, active = 6_979_321_856 + 2*525_336_576.0, 6_979_321_856 + 525_336_576.0
	sectiontest.Metric(t, r, all, "model.parameters")
	sectiontest.Metric(t, r, active, "model.active_parameters")
	sectiontest.Metric(t, r, 2*active, "model.flops_per_token")
	sectiontest.Metric(t, r, 2*32*32*256, "model.flops_per_context")
	sectiontest.Metric(t, r, 131072, "model.kv_bytes_per_token")
	sectiontest.Metric(t, r, 2*all, "model.weight_bytes")
	mean := r.Find("unit.time", map[string]string{"phase": "decode", "batch": "8"})
	if mean == nil || mean.Summary == nil {
		t.Fatalf("no unit.time of decode 8: %+v", r.Unit)
	}
	near := func(id string, want float64) {
		t.Helper()
		m := r.Find(id, map[string]string{"phase": "decode", "batch": "8"})
		if m == nil || m.Value == nil || *m.Value < want*0.9999 || *m.Value > want*1.0001 {
			t.Errorf("%s: %+v, want %v", id, m, want)
		}
	}
	seconds := mean.Summary.Mean / 1e9
	near("model.flops_utilization", 8*2*active/(seconds*989.4e12))
	near("model.bandwidth_utilization", 2*all/(seconds*3.35e12))
}
