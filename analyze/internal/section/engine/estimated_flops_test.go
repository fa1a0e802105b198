package engine_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
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
