package engine_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// The example estimates 100, 200 and 300 TFLOP/s in its three steady lines.
func TestEstimatedFlops(t *testing.T) {
	r := analyseLog(t, exampleLog)
	sectiontest.Metric(t, r, 200e12, "serve.model_flops")
	sectiontest.Metric(t, r, 1500e9, "serve.model_bandwidth")
	sectiontest.Metric(t, r, 550, "serve.model_prefill_tokens")
	sectiontest.Metric(t, r, 11, "serve.model_decode_tokens")
	sectiontest.Metric(t, r, 4e12, "serve.model_part_flop", "part", "attn.qkv_proj")
	sectiontest.Metric(t, r, 6e12, "serve.model_part_flop", "part", "ffn.down")
	sectiontest.Metric(t, r, 3e9, "serve.model_part_bytes", "part", "ffn.down") // 2 read, 1 written
	sectiontest.Metric(t, r, 1e9, "serve.model_part_bytes", "part", "attn.qkv_weight")
	if v, _ := cellOf(t, sectiontest.SectionOf(t, r, "estimated_flops"), "estimated_parts", "ffn.down", "intensity").Num(); v != 2000 {
		t.Errorf("intensity %v", v)
	}
	if m := r.Find("serve.model_flops", nil); m.N != 3 {
		t.Errorf("n %d", m.N)
	}
}

// Some versions log the estimate on a line of its own, behind that of statistics.
func TestEstimatedOnItsOwnLine(t *testing.T) {
	const at = "INFO 03-01 10:00:10 [loggers.py:257] Engine 000: "
	const line = at + "Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%"
	r := logOf(t, line, at+"MFU: 245.3 TF/s/GPU 892.1 GB/s/GPU", line, at+"MFU: 250.0 TF/s/GPU 900.0 GB/s/GPU")
	sectiontest.Metric(t, r, 250e12, "serve.model_flops")
	sectiontest.Metric(t, r, 900e9, "serve.model_bandwidth")
	sectiontest.Metric(t, r, 9, "serve.generation_throughput")
	if m := r.Find("serve.model_flops", nil); m.N != 2 {
		t.Errorf("n %d", m.N)
	}
}

// The excerpt of a real log: 405.0, 521.0 and 521.2 TFLOP/s in its steady lines.
func TestEstimatedOfTheRealLog(t *testing.T) {
	r := sharedLog(t, "excerpt_vllm_pr30738_mfu.log")
	sectiontest.Metric(t, r, 521e12, "serve.model_flops")
	sectiontest.Metric(t, r, 344.9e9, "serve.model_bandwidth")
}

// A trace names an H100: 989.4 TFLOP/s of dense bf16 and 3350 GB/s, 295 FLOP per byte. 494.7 TFLOP/s are half of its peak,
// 670 GB/s a fifth, and 738 FLOP per byte are above the balance.
func TestEstimatedRatesOfAKnownDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	const line = "INFO 03-01 10:00:10 [loggers.py:257] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%, MFU: 494.7 TF/s/GPU 670.0 GB/s/GPU\n"
	const start = "INFO 03-01 10:00:00 [core.py:93] Initializing a V1 LLM engine (v0.15.0) with config: model='m', dtype=torch.bfloat16, max_seq_len=1\n"
	if err := os.WriteFile(path, []byte(start+line+line), 0o600); err != nil {
		t.Fatal(err)
	}
	l := sectiontest.Look(t, tracetest.Tiny(), analyze.Options{Evidence: []analyze.Evidence{{Path: path}}})
	sectiontest.Metric(t, l.Report, 0.5, "serve.model_flops_ratio")
	sectiontest.Metric(t, l.Report, 0.2, "serve.model_bandwidth_ratio")
	s := sectiontest.SectionOf(t, l.Report, "estimated_flops")
	if v, _ := cellOf(t, s, "estimated_rates", "median", "intensity").Num(); math.Abs(v-738.36) > 0.01 {
		t.Errorf("intensity %v", v)
	}
	if v, _ := cellOf(t, s, "estimated_rates", "median", "tflops").Num(); v != 494.7 {
		t.Errorf("TFLOP/s %v", v)
	}
	if side, _ := cellOf(t, s, "estimated_rates", "median", "side").Str(); side != "compute" {
		t.Errorf("bound by %q", side)
	}
}

// 1,200 TFLOP/s are more than an H100 has: the log is of another device.
func TestEstimatedAboveThePeak(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	const line = "INFO 03-01 10:00:10 [loggers.py:257] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%, MFU: 1200.0 TF/s/GPU 670.0 GB/s/GPU\n"
	const start = "INFO 03-01 10:00:00 [core.py:93] Initializing a V1 LLM engine (v0.15.0) with config: model='m', dtype=torch.bfloat16, max_seq_len=1\n"
	if err := os.WriteFile(path, []byte(start+line+line), 0o600); err != nil {
		t.Fatal(err)
	}
	r := sectiontest.Look(t, tracetest.Tiny(), analyze.Options{Evidence: []analyze.Evidence{{Path: path}}}).Report
	sectiontest.Metric(t, r, 1200e12, "serve.model_flops")
	for _, id := range []string{"serve.model_flops_ratio", "serve.model_bandwidth_ratio"} {
		if m := r.Find(id, nil); m == nil || m.Value != nil {
			t.Errorf("%s is %v", id, sectiontest.ShownValue(m))
		}
	}
	if sectiontest.Warning(r, "estimate_above_peak") == "" {
		t.Error("no warning")
	}
}
