package loadfile

import (
	"math"
	"strings"
	"testing"
)

// Results as the generators write them, by hand: three requests, of which one failed where the format can say so.
var generatedFiles = map[string]string{
	"vllm bench serve": `{"date": "20260101-000000", "backend": "openai-chat", "model_id": "/srv/models/Qwen3-8B", "num_prompts": 3,
		"request_rate": "inf", "max_concurrency": 2, "duration": 2.0, "completed": 2, "failed": 1, "total_input_tokens": 20,
		"total_output_tokens": 6, "request_throughput": 1.0, "output_lens": [3, 3, 0], "ttfts": [0.1, 0.3, 0.0],
		"itls": [[0.02, 0.04], [0.01, 0.03], []], "errors": ["", "", "503"], "generated_texts": ["secret NaN", "", ""],
		"mean_ttft_ms": 200.0, "median_ttft_ms": 200.0, "std_ttft_ms": NaN}`,
	"bench_serving": `{"backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "max_concurrency": null, "duration": 9.0,
		"completed": 9, "median_e2e_latency_ms": 1.0, "median_ttft_ms": 1.0}
		{"backend": "sglang", "dataset_name": "random", "request_rate": 4.0, "max_concurrency": null, "duration": 2.0, "completed": 2,
		"total_input_tokens": 20, "total_output_tokens": 6, "median_e2e_latency_ms": 250.0, "median_ttft_ms": 200.0,
		"median_tpot_ms": 25.0, "median_itl_ms": 25.0, "p99_itl_ms": 40.0}`,
	"aiperf": `{"request_throughput": {"unit": "requests/sec", "avg": 1.0}, "request_latency": {"unit": "ms", "avg": 250, "p50": 250, "p90": 332,
		"p99": 339, "min": 160, "max": 340, "std": 90}, "time_to_first_token": {"unit": "ms", "avg": 200, "p50": 200, "p90": 280, "p99": 298,
		"min": 100, "max": 300, "std": 100}, "inter_token_latency": {"unit": "ms", "avg": 25, "p50": 25}, "output_sequence_length": {"unit":
		"tokens", "avg": 3}, "input_sequence_length": {"unit": "tokens", "avg": 10}, "request_count": {"unit": "requests", "avg": 2},
		"error_request_count": {"unit": "requests", "avg": 1}, "benchmark_duration": {"unit": "sec", "avg": 2.0}, "was_cancelled": false}`,
	"guidellm": `{"metadata": {"version": 1, "guidellm_version": "0.4.0"}, "benchmarks": [{"duration": 2.0, "metrics": {
		"request_totals": {"successful": 2, "errored": 1, "incomplete": 0, "total": 3},
		"time_to_first_token_ms": {"successful": {"mean": 200, "median": 200, "std_dev": 100, "min": 100, "max": 300, "count": 2,
			"total_sum": 400, "percentiles": {"p90": 280, "p99": 298}}},
		"request_latency": {"successful": {"mean": 0.25, "median": 0.25, "std_dev": 0.09, "min": 0.16, "max": 0.34, "count": 2,
			"percentiles": {"p90": 0.332, "p99": 0.339}}},
		"prompt_token_count": {"successful": {"count": 2, "total_sum": 20, "percentiles": {}}},
		"output_token_count": {"successful": {"count": 2, "total_sum": 6, "percentiles": {}}}}}]}`,
}

// TestReadGenerator: the same three requests in four formats are the same numbers, as far as each format holds them.
func TestReadGenerator(t *testing.T) {
	for tool, text := range generatedFiles {
		r, runs, err := ReadGenerator(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", tool, err)
			continue
		}
		want := Counts{Sent: 3, Succeeded: 2, Failed: 1}
		wantRuns := 1
		if tool == "bench_serving" {
			want, wantRuns = Counts{Sent: 2, Succeeded: 2}, 2
		}
		if r.Tool.Name != tool || runs != wantRuns || r.Counts != want || r.Window != 2e9 || *r.Rates.Requests != 1 || *r.Tokens.Output != 6 ||
			*r.Tokens.Input != 20 || *r.Rates.OutputTokens != 3 {
			t.Errorf("%s: %+v, %d runs", tool, r, runs)
		}
		ttft, e2e := r.Latency.TTFT.Summary, r.Latency.E2E.Summary
		if ttft.N != 2 || ttft.P50 != 200e6 || math.Abs(e2e.P50-250e6) > 1 {
			t.Errorf("%s: ttft %+v, e2e %+v", tool, ttft, e2e)
		}
		if tool != "bench_serving" && (ttft.Mean != 200e6 || ttft.Max != 300e6 || math.Abs(e2e.Min-160e6) > 1) {
			t.Errorf("%s: ttft %+v, e2e %+v", tool, ttft, e2e)
		}
		only := map[string]string{"bench_serving": OnlyMedian, "aiperf": OnlySummary, "guidellm": OnlySummary}[tool]
		if r.Latency.TTFT.Only != only {
			t.Errorf("%s: of the time to first token %q is known", tool, r.Latency.TTFT.Only)
		}
	}
	r, _, _ := ReadGenerator(strings.NewReader(generatedFiles["vllm bench serve"]))
	if w := r.Workload; *r.Model != "Qwen3-8B" || w.API != "chat" || w.Loop != "closed" || *w.Concurrency != 2 || w.Rate != nil || *w.Requests != 3 {
		t.Errorf("%+v of %s", w, *r.Model)
	}
	if d := r.Latency.TPOT.Summary; d.N != 2 || d.P50 != 25e6 { // (20+40)/2 and (10+30)/2 ms
		t.Errorf("time per output token %+v", d)
	}
	if d := r.Latency.ITL.Summary; d.N != 4 || d.Max != 40e6 || d.Min != 10e6 {
		t.Errorf("between tokens %+v", d)
	}
	r, _, _ = ReadGenerator(strings.NewReader(generatedFiles["bench_serving"]))
	if w := r.Workload; *w.Rate != 4 || w.Loop != "open" || w.Prompts != "synthetic" {
		t.Errorf("%+v", w)
	}
}

// The files of GenAI-Perf and AIPerf state the unit of each metric: it counts, and a time in another one is unknown.
func TestUnitsOfNVIDIA(t *testing.T) {
	r, _, err := ReadGenerator(strings.NewReader(`{"request_count": {"avg": 2}, "request_latency": {"avg": 250, "p50": 250},
		"time_to_first_token": {"unit": "ns", "avg": 200000, "p50": 200000, "p90": 280000, "p99": 298000, "min": 100000, "max": 300000,
		"std": 100000}, "inter_token_latency": {"unit": "fortnights", "p50": 25}, "benchmark_duration": {"unit": "ms", "avg": 2500}}`))
	if err != nil {
		t.Fatal(err)
	}
	if l := r.Latency; l.E2E.Summary.P50 != 250e6 || l.TTFT.Summary.P50 != 200e3 || l.TTFT.Summary.Max != 300e3 || l.TPOT != nil || r.Window != 2500e6 {
		t.Errorf("whole %+v, first %+v, between %+v, window %d", l.E2E.Summary, l.TTFT.Summary, l.TPOT, r.Window)
	}
}

func TestReadGeneratorRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "holds no result",
		`{}`:                               "holds no result",
		`[1]`:                              "is not the JSON of a load",
		`{"completed": 2, "duration": `:    "is not the JSON of a load",
		`{"completed": -2, "duration": 1}`: "do not add up",
		`{"completed": 1, "duration": 1, "max_concurrency": -1}`: "is negative",
	} {
		if _, _, err := ReadGenerator(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzReadGenerator: whatever a file holds, it is an error or a result that can be written.
func FuzzReadGenerator(f *testing.F) {
	for _, text := range generatedFiles {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, _, err := ReadGenerator(strings.NewReader(text))
		if err != nil {
			return
		}
		var b strings.Builder
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
	})
}
