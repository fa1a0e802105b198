package engine_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// statsAt is a line of vLLM's statistics at second s, with what follows the throughputs.
func statsAt(s, rest string) string {
	return "INFO 2026-03-01 10:00:" + s + " [loggers.py:257] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, " + rest
}

// Debug lines batch 512, 1024 and 1536 of 2048 tokens: median 0.5. Of the steady lines, the second and third, 6 wait for
// 4 and 2 for 4: 1.5 and 0.5, median 1; deferred are 2 and 4.
func TestSchedulerOfDebugLines(t *testing.T) {
	const at = "DEBUG 2026-03-01 10:00:05 [scheduler.py:1] scheduled_new_reqs=0, max_num_batched_tokens=2048, num_batched_tokens="
	r := logOf(t, statsAt("00", "Running: 4 reqs, Waiting: 40 reqs, Deferred: 9 reqs, GPU KV cache usage: 1.0%"),
		at+"512", at+"1536", at+"1024",
		statsAt("10", "Running: 4 reqs, Waiting: 6 reqs, Deferred: 2 reqs, GPU KV cache usage: 1.0%, MM cache hit rate: 25.0%"),
		statsAt("20", "Running: 4 reqs, Waiting: 2 reqs, Deferred: 4 reqs, GPU KV cache usage: 1.0%, MM cache hit rate: 75.0%"),
		"INFO 2026-03-01 10:00:21 [metrics.py:9] KV Transfer metrics: Num successful transfers=4, Avg xfer time (ms)=2.5, Avg MB per transfer=3.0")
	sectiontest.Metric(t, r, 0.5, "serve.batch_utilization")
	sectiontest.Metric(t, r, 1, "serve.queue_pressure")
	sectiontest.Metric(t, r, 3, "serve.requests_deferred")
	sectiontest.Metric(t, r, 0.5, "serve.media_cache_hit_rate")
	sectiontest.Metric(t, r, 4, "serve.kv_transfers")
	sectiontest.Metric(t, r, 12<<20, "serve.kv_transfer_bytes")
	sectiontest.Metric(t, r, 2.5e6, "serve.kv_transfer_time")
	if m := r.Find("serve.batch_utilization", nil); m.N != 3 || m.Summary.Max != 0.75 {
		t.Errorf("%+v", m)
	}
	s := sectiontest.SectionOf(t, r, "scheduler")
	if v, _ := cellOf(t, s, "scheduler", "waiting per running request", "max").Num(); v != 1.5 {
		t.Errorf("max of the queue %v", v)
	}
	if r.Find("serve.preemption_rate", nil) != nil {
		t.Error("a preemption rate without iterations")
	}
}

// The server batches 1000 tokens at most; iterations have 500 + 0, 100 + 10 and 0 + 20, one is idle: median 0.11. Three
// preemptions in four iterations.
func TestSchedulerOfIterations(t *testing.T) {
	const at = "INFO 2026-03-01 10:00:0"
	step := func(i, context, contextTokens, generation, tokens string) string {
		return at + i + " [loggers.py:9] Iteration(" + i + "): " + context + " context requests, " + contextTokens + " context tokens, " + generation + " generation requests, " + tokens + " generation tokens, iteration elapsed time: 5.00 ms"
	}
	r := logOf(t, at+"0 [scheduler.py:226] Chunked prefill is enabled with max_num_batched_tokens=1000.",
		step("1", "1", "500", "0", "0"), step("2", "1", "100", "10", "10"), step("3", "0", "0", "20", "20"), step("4", "0", "0", "0", "0"),
		statsAt("10", "Running: 4 reqs, Waiting: 6 reqs, Preemptions: 3, GPU KV cache usage: 1.0%"))
	sectiontest.Metric(t, r, 0.11, "serve.batch_utilization")
	sectiontest.Metric(t, r, 0.75, "serve.preemption_rate")
}

// Steady decode batches use 20 and 40 % of the window's pool; the prefill batch between them counts for none.
func TestSchedulerOfPools(t *testing.T) {
	decode := func(s, usage string) string {
		return "[2026-03-01 10:00:" + s + "] Decode batch, #running-req: 2, full token usage: 0.10, swa token usage: " + usage + ", mamba usage: 0.50, cuda graph: True, gen throughput (token/s): 10.0, #queue-req: 1"
	}
	r := logOf(t, decode("00", "0.90"), decode("10", "0.20"),
		"[2026-03-01 10:00:15] Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, full token usage: 0.80, swa token usage: 0.80, #running-req: 2, #queue-req: 9, cuda graph: True, input throughput (token/s): 1.0",
		decode("20", "0.40"))
	for pool, want := range map[string]float64{"full": 0.1, "swa": 0.3, "mamba": 0.5} {
		m := r.Find("serve.pool_usage", report.Labels{"pool": pool})
		if m == nil || *m.Value < want-1e-12 || *m.Value > want+1e-12 {
			t.Errorf("%s: %+v, want %v", pool, m, want)
		}
	}
	sectiontest.Metric(t, r, 0.5, "serve.queue_pressure")
}

func TestSchedulerSaysNothingOfNothing(t *testing.T) {
	r := logOf(t, "INFO 2026-03-01 10:00:00 [api_server.py:1] vLLM API server version 0.15.0")
	if s := sectiontest.SectionOf(t, r, "scheduler"); s.Status != report.NotApplicable || s.Reason == "" {
		t.Errorf("status %s: %s", s.Status, s.Reason)
	}
}
