package engine_test

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// The example's first request is alone when it is answered, and the engine generated for it: it ends. The two after it are
// open together: which of them a response is of, nobody can say.
func TestRequests(t *testing.T) {
	res, err := analyze.Run(t.Context(), exampleLog, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := res.Report
	sectiontest.Metric(t, r, 3, "serve.requests")
	sectiontest.Metric(t, r, 3, "serve.requests_added")
	sectiontest.Metric(t, r, 3, "serve.requests_matched")
	sectiontest.Metric(t, r, 1, "serve.requests_finished")
	sectiontest.NoMetric(t, r, "serve.requests_aborted")
	sectiontest.Metric(t, r, 0, "serve.request_time")
	sectiontest.Metric(t, r, 0, "serve.request_queue_time") // 0, 0 and 1 s
	sectiontest.Metric(t, r, 5, "serve.responses")
	sectiontest.Metric(t, r, 3, "serve.responses", "status", "200")
	sectiontest.Metric(t, r, 1, "serve.responses", "status", "500")
	if !hasFinding(r, "failed_responses") {
		t.Error("no finding on the responses 400 and 500")
	}
	list := attached(t, res, "requests.csv")
	if len(list.Rows) != 3 {
		t.Fatalf("%d rows", len(list.Rows))
	}
	for i, want := range []struct {
		id, received, completed string
		queue                   int64
	}{{"cmpl-0a1b2c3d4e5f6071-0", "03-01 10:00:00", "03-01 10:00:00", 0}, {"cmpl-1111111111111111-0", "03-01 10:00:02", "", 0}, {"request 3", "03-01 10:00:02", "", 1e9}} {
		id, _ := list.Rows[i][0].Str()
		received, _ := list.Rows[i][1].Str()
		completed, _ := list.Rows[i][3].Str()
		queue, ok := list.Rows[i][4].Int()
		if id != want.id || received != want.received || completed != want.completed || !ok || queue != want.queue {
			t.Errorf("row %d: %v", i, list.Rows[i])
		}
	}
}

// vLLM V0 says which request finished.
func TestRequestsOfV0(t *testing.T) {
	r := logOf(t,
		"INFO 10-14 05:40:00 logger.py:37] Received request chatcmpl-aa: prompt: 'x', params: SamplingParams(n=1), prompt_token_ids: [1], lora_request: None.",
		"INFO 10-14 05:40:00 engine.py:290] Added request chatcmpl-aa.",
		"INFO 10-14 05:40:01 logger.py:37] Received request chatcmpl-bb: prompt: 'x', params: SamplingParams(n=1), prompt_token_ids: [1], lora_request: None.",
		"INFO 10-14 05:40:02 engine.py:290] Added request chatcmpl-bb.",
		"INFO 10-14 05:40:07 async_llm_engine.py:176] Finished request chatcmpl-aa.",
		"INFO 10-14 05:40:08 async_llm_engine.py:188] Aborted request chatcmpl-bb.")
	sectiontest.Metric(t, r, 2, "serve.requests_matched")
	sectiontest.Metric(t, r, 2, "serve.requests_finished")
	sectiontest.Metric(t, r, 1, "serve.requests_aborted")
	sectiontest.Metric(t, r, 7e9, "serve.request_time")
	sectiontest.Metric(t, r, 0.5e9, "serve.request_queue_time")
}

// facts/vllm-logs.md: 513 of 513 are matched once the random suffix is off.
func TestRequestsOfTheRealLog(t *testing.T) {
	r := sharedLog(t, "vllm_0.15.0_server.log")
	sectiontest.Metric(t, r, 513, "serve.requests")
	sectiontest.Metric(t, r, 513, "serve.requests_added")
	sectiontest.Metric(t, r, 513, "serve.requests_matched")
	sectiontest.Metric(t, r, 513, "serve.responses", "status", "200")
}

func TestRequestsNotThere(t *testing.T) {
	r := logOf(t, "INFO 03-01 10:00:10 [core.py:348] nothing of that kind")
	sectiontest.WantStatus(t, r, "requests", report.NotApplicable, "--enable-log-requests")
	sectiontest.WantStatus(t, r, "serving", report.NotApplicable, "no lines of statistics")
	sectiontest.WantStatus(t, r, "iterations", report.NotApplicable, "--enable-logging-iteration-details")
	sectiontest.WantStatus(t, r, "engine_start", report.NotApplicable, "start of the server")
	sectiontest.WantStatus(t, r, "graph_stats", report.NotApplicable, "--cudagraph-metrics")
	sectiontest.WantStatus(t, r, "speculative", report.NotApplicable, "speculative")
	sectiontest.WantStatus(t, r, "estimated_flops", report.NotApplicable, "--enable-mfu-metrics")
	sectiontest.WantStatus(t, r, "expert_load", report.NotApplicable, "balance")
	sectiontest.WantStatus(t, r, "errors", report.OK, "")
	sectiontest.Metric(t, r, 0, "serve.errors")
}

// Three requests of text-generation-inference: 100, 200 and 600 ms in all, of which 10, 20 and 60 in the queue; 5, 8 and
// 20 ms for each token.
func TestTimedRequests(t *testing.T) {
	line := func(total, queue, work, token string) string {
		return `2026-03-01T10:00:00.1Z  INFO generate{parameters=GenerateParameters { stop: [] } total_time="` + total + `" validation_time="1ms" queue_time="` + queue + `" inference_time="` + work + `" time_per_token="` + token + `" seed="None"}: text_generation_router::server: router/src/server.rs:299: Success`
	}
	r := logOf(t, line("100ms", "10ms", "89ms", "5ms"), line("200ms", "20ms", "179ms", "8ms"), line("600ms", "60ms", "539ms", "20ms"))
	for id, want := range map[string]float64{"serve.requests_finished": 3, "serve.request_time": 200e6,
		"serve.request_queue_time": 20e6, "serve.request_token_time": 8e6} {
		if m := r.Find(id, nil); m == nil || m.Value == nil || *m.Value != want {
			t.Errorf("%s is %+v, want %v", id, m, want)
		}
	}
	if m := r.Find("serve.request_time", nil); m.Summary == nil || m.Summary.Mean != 300e6 {
		t.Errorf("%+v", m.Summary)
	}
}

// LMDeploy's lines are lines of statistics like vLLM's: the last one alone follows one with work, so that it is the steady one.
func TestServingOfLMDeploy(t *testing.T) {
	line := func(second, in, out, running, waiting, kv string) string {
		return "[2026-03-01 10:00:" + second + " DP0] Avg thr (in/out): " + in + " / " + out + " tokens/s, API server (completed/routed/waiting): 0 / 4 / 1, Engine (running/waiting): " + running + " / " + waiting + ", KV cache: " + kv + "%, "
	}
	r := logOf(t, line("10", "9.0", "1.0", "0", "0", "1.0"), line("20", "400.0", "100.0", "4", "0", "20.0"),
		line("30", "600.0", "300.0", "8", "2", "40.0"))
	for id, want := range map[string]float64{"serve.prompt_throughput": 600, "serve.generation_throughput": 300,
		"serve.requests_running": 8, "serve.requests_waiting": 3, "serve.kv_cache_usage": 0.4} {
		m := r.Find(id, nil)
		if m == nil {
			m = r.Find(id, report.Labels{"engine": "0"})
		}
		if m == nil || m.Summary == nil || m.Summary.Max != want {
			t.Errorf("%s is %+v, want at most %v", id, m, want)
		}
	}
}

// Notes and reasons name no flag of another engine.
func TestNotesAreOfTheEngine(t *testing.T) {
	answered := `INFO:     127.0.0.1:40000 - "POST /v1/completions HTTP/1.1" 200 OK`
	for _, x := range []struct{ stats, note, reason string }{
		{"[2026-03-01 10:00:01] Decode batch, #running-req: 1, #token: 40, token usage: 0.10, cuda graph: True, gen throughput (token/s): 20.00, #queue-req: 0",
			"The log does not name requests.",
			"the log has no CUDA graph statistics"},
		{"INFO 03-01 10:00:01 [loggers.py:118] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 20.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%",
			"The log does not name requests (vLLM: --enable-log-requests does).",
			"the log has no CUDA graph statistics (vLLM: --cudagraph-metrics writes them)"},
	} {
		r := logOf(t, x.stats, answered)
		if notes := sectiontest.SectionOf(t, r, "requests").Notes; !slices.Equal(notes, []string{x.note}) {
			t.Errorf("%q, want %q", notes, x.note)
		}
		if reason := sectiontest.SectionOf(t, r, "graph_stats").Reason; reason != x.reason {
			t.Errorf("%q, want %q", reason, x.reason)
		}
	}
}
