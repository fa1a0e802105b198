package engine_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// The example has seven lines of statistics: the second to the fourth have requests before and at their end. The first
// covers the time before load came, the fifth the time after it went, the sixth is idle and the last is a new beginning.
func TestServing(t *testing.T) {
	r := analyseLog(t, exampleLog)
	sectiontest.Metric(t, r, 3, "serve.steady_samples")
	sectiontest.Metric(t, r, 300, "serve.prompt_throughput")     // of 400, 200, 300
	sectiontest.Metric(t, r, 220, "serve.generation_throughput") // of 200, 220, 240
	sectiontest.Metric(t, r, 4, "serve.requests_running")
	sectiontest.Metric(t, r, 0, "serve.requests_waiting") // of 0, 2, 0
	sectiontest.Metric(t, r, 0.3, "serve.kv_cache_usage") // of 20 %, 30 %, 40 %
	sectiontest.Metric(t, r, 0.25, "serve.prefix_cache_hit_rate")
	sectiontest.Metric(t, r, 3, "serve.preemptions")
	sectiontest.NoMetric(t, r, "serve.external_cache_hit_rate")
	for _, id := range []string{"serve.prompt_throughput", "serve.generation_throughput", "serve.kv_cache_usage", "serve.requests_running", "serve.requests_waiting"} {
		m := r.Find(id, nil)
		if m.N != 7 || m.Summary == nil || m.Summary.N != 3 {
			t.Errorf("%s: n %d, summary %+v; want 7 lines, 3 of them steady", id, m.N, m.Summary)
		}
	}
	if m := r.Find("serve.generation_throughput", nil).Summary; m.Max != 240 || m.Min != 200 || m.Mean != 220 {
		t.Errorf("summary %+v", m)
	}
	if !hasFinding(r, "preemptions") {
		t.Error("no finding on preemptions")
	}
}

const stats = "INFO 03-01 10:00:10 [loggers.py:257] "

// Two engines log in turns: each has numbers of its own, and a line is steady by the line before of the same engine.
func TestServingOfTwoEngines(t *testing.T) {
	line := func(engine, gen, running string) string {
		return stats + "Engine 00" + engine + ": Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: " + gen + " tokens/s, Running: " + running + " reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%, External prefix cache hit rate: 50.0%"
	}
	r := logOf(t, line("0", "5.0", "1"), line("1", "1.0", "0"), line("0", "10.0", "1"), line("1", "2.0", "3"), line("0", "20.0", "1"), line("1", "40.0", "3"))
	sectiontest.Metric(t, r, 3, "serve.steady_samples") // the last two of engine 0, the last of engine 1
	sectiontest.Metric(t, r, 20, "serve.generation_throughput")
	sectiontest.Metric(t, r, 15, "serve.generation_throughput", "engine", "0")
	sectiontest.Metric(t, r, 40, "serve.generation_throughput", "engine", "1")
	sectiontest.Metric(t, r, 0.5, "serve.external_cache_hit_rate")
	if m := r.Find("serve.generation_throughput", report.Labels{"engine": "1"}); m.N != 3 || m.Summary.N != 1 {
		t.Errorf("engine 1: n %d, summary %+v", m.N, m.Summary)
	}
}

// Aggregated lines have no engine of their own.
func TestServingAggregated(t *testing.T) {
	r := logOf(t, stats+"2 Engines Aggregated: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%",
		stats+"2 Engines Aggregated: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 11.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%")
	sectiontest.Metric(t, r, 11, "serve.generation_throughput")
	sectiontest.NoMetric(t, r, "serve.generation_throughput", "engine", "2")
}

// One line cannot be steady: nothing says what came before it. Those with work count, and the section says so.
func TestServingWithoutSteadyLines(t *testing.T) {
	r := logOf(t, stats+"Avg prompt throughput: 6501.4 tokens/s, Avg generation throughput: 69.1 tokens/s, Running: 4 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 15.6%, CPU KV cache usage: 0.0%.",
		stats+"Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 0 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 0.0%, CPU KV cache usage: 0.0%.")
	if s := sectiontest.SectionOf(t, r, "serving"); s.Status != report.Partial {
		t.Errorf("status %s", s.Status)
	}
	sectiontest.Metric(t, r, 69.1, "serve.generation_throughput")
	sectiontest.Metric(t, r, 0.156, "serve.kv_cache_usage")
	if m := r.Find("serve.kv_cache_usage", nil); m.N != 2 || m.Summary.N != 1 {
		t.Errorf("n %d, summary %+v", m.N, m.Summary)
	}
}

// SGLang states throughput with each logged batch. The first decode line covers the time before the load, so it is left
// out, as is the one after a prefill that found the server empty.
func TestServingSGLang(t *testing.T) {
	const at = "[2026-08-01 23:43:4"
	r := logOf(t,
		at+"0] Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, full token usage: 0.00, swa token usage: 0.50, #running-req: 0, #queue-req: 0, cuda graph: True, input throughput (token/s): 1.81",
		at+"1] The server is fired up and ready to roll!",
		at+"2] Prefill batch, #new-seq: 1, #new-token: 100, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, cuda graph: True, input throughput (token/s): 50.00",
		at+"3] Decode batch, #running-req: 1, #token: 40, token usage: 0.10, accept len: 2.00, accept rate: 0.50, cuda graph: True, gen throughput (token/s): 0.10, #queue-req: 0",
		at+"4] Prefill batch, #new-seq: 1, #new-token: 50, #cached-token: 50, token usage: 0.10, #running-req: 1, #queue-req: 3, cuda graph: True, input throughput (token/s): 80.00",
		at+"5] Decode batch, #running-req: 2, #full token: 80, full token usage: 0.20, #swa token: 80, swa token usage: 0.30, accept len: 3.00, accept rate: 0.70, cuda graph: True, gen throughput (token/s): 20.00, #queue-req: 1",
		at+"6] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.6000 -> 0.9000",
		at+"7] Prefill batch. #new-seq: 1, #new-token: 50, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0",
		at+"8] Decode batch. #running-req: 1, #token: 40, token usage: 0.90, gen throughput (token/s): 1.00, #queue-req: 0",
	)
	sectiontest.Metric(t, r, 20, "serve.generation_throughput")
	sectiontest.Metric(t, r, 80, "serve.prompt_throughput")
	sectiontest.Metric(t, r, 2, "serve.requests_running")
	sectiontest.Metric(t, r, 0.3, "serve.kv_cache_usage")        // the fuller pool
	sectiontest.Metric(t, r, 0.2, "serve.prefix_cache_hit_rate") // 50 of 100 + 100 + 50: the batch before the server was ready is left out
	sectiontest.Metric(t, r, 2, "serve.preemptions")             // retracted
	sectiontest.Metric(t, r, 3, "serve.spec_acceptance_length")  // of the steady line
	sectiontest.Metric(t, r, 0.7, "serve.spec_acceptance_rate")  // …
	sectiontest.Metric(t, r, 2, "serve.steady_samples")          // a prefill and a decode batch
	if m := r.Find("serve.generation_throughput", nil); m.N != 3 {
		t.Errorf("n %d, want the decode batches", m.N)
	}
}

// Logs of two engines: vLLM states a hit rate, and SGLang's tokens give none beside it.
func TestServingHitRateOnce(t *testing.T) {
	r := logOf(t, stats+"Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, "+
		"Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 40.0%",
		"[2026-08-01 23:43:42] Prefill batch, #new-seq: 1, #new-token: 50, #cached-token: 50, token usage: 0.00, "+
			"#running-req: 0, #queue-req: 0")
	sectiontest.Metric(t, r, 0.4, "serve.prefix_cache_hit_rate")
}

func TestServingFindings(t *testing.T) {
	line := func(running, waiting, usage string) string {
		return stats + "Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: " + running + " reqs, Waiting: " + waiting + " reqs, GPU KV cache usage: " + usage + "%, Prefix cache hit rate: 0.0%"
	}
	full := logOf(t, line("8", "10", "99.0"), line("8", "10", "99.0"), line("8", "10", "99.0"))
	if !hasFinding(full, "kv_cache_full") || hasFinding(full, "queue_with_room") {
		t.Errorf("a full cache and a queue: %v", full.Findings)
	}
	room := logOf(t, line("8", "10", "9.0"), line("8", "10", "9.0"), line("8", "10", "9.0"))
	if hasFinding(room, "kv_cache_full") || !hasFinding(room, "queue_with_room") {
		t.Errorf("an empty cache and a queue: %v", room.Findings)
	}
	calm := logOf(t, line("8", "0", "99.0"), line("8", "0", "99.0"), line("8", "1", "99.0"))
	if len(calm.Findings) > 0 {
		t.Errorf("no queue: %v", calm.Findings)
	}
}

// facts/vllm-logs.md: twelve lines of statistics, nine of them steady.
func TestServingOfTheRealLog(t *testing.T) {
	r := sharedLog(t, "vllm_0.15.0_server.log")
	for _, id := range []string{"serve.prompt_throughput", "serve.generation_throughput", "serve.kv_cache_usage", "serve.requests_running", "serve.requests_waiting"} {
		if m := r.Find(id, nil); m == nil || m.N != 12 || m.Summary.N != 9 {
			t.Errorf("%s: %+v", id, m)
		}
	}
	sectiontest.Metric(t, r, 7356.1, "serve.generation_throughput")
	sectiontest.Metric(t, r, 25520.4, "serve.prompt_throughput")
	sectiontest.Metric(t, r, 0.067, "serve.kv_cache_usage")
	sectiontest.Metric(t, r, 0.022, "serve.prefix_cache_hit_rate")
	sectiontest.Metric(t, r, 128, "serve.requests_running")
}
