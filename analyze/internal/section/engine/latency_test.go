package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// exampleDump is the synthetic dump whose numbers are worked out here.
const exampleDump = "../../../../testdata/evidence/metrics.prom"

// dumpsOf runs the analyzer on dumps of these texts.
func dumpsOf(tb testing.TB, texts ...string) *report.Report {
	tb.Helper()
	var opt analyze.Options
	for i, text := range texts {
		path := filepath.Join(tb.TempDir(), string(rune('a'+i))+".prom")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
		opt.Evidence = append(opt.Evidence, analyze.Evidence{Path: path})
	}
	res, err := analyze.Run(tb.Context(), "", opt)
	if err != nil {
		tb.Fatal(err)
	}
	return res.Report
}

// Both engines of the example together have 40 first tokens up to 100 ms, 40 up to 200 and 20 up to 500: the 50th is a quarter
// into the second bucket, the 90th half into the third, the 99th at 19/20 of it. 13 s over 100 requests are the mean.
func TestLatency(t *testing.T) {
	r := analyseLog(t, exampleDump)
	near := func(id string, want float64, pairs ...string) {
		t.Helper()
		l := report.Labels{}
		for i := 0; i < len(pairs); i += 2 {
			l[pairs[i]] = pairs[i+1]
		}
		if m := r.Find(id, l); m == nil || m.Value == nil || *m.Value < want*(1-1e-12) || *m.Value > want*(1+1e-12) {
			t.Errorf("%s %v: %+v, want %v", id, l, m, want)
		}
	}
	near("serve.ttft", 125e6)
	near("serve.ttft", 350e6, "quantile", "p90")
	near("serve.ttft", 485e6, "quantile", "p99")
	m := r.Find("serve.ttft", nil)
	if s := m.Summary; m.N != 100 || s == nil || s.Mean != 130e6 || s.Min != 0 || s.Max != 500e6 {
		t.Errorf("serve.ttft: %+v, %+v", m, m.Summary)
	}
	near("serve.tpot", 9.5e6) // the 950th of 1000 up to 10 ms
	near("serve.itl", 9.5e6)
	near("serve.queue_time", 100e6)
	near("serve.inference_time", 1.5e9)
	near("serve.prefill_time", 150e6)
	near("serve.decode_time", 1e9)
	near("serve.request_prompt_tokens", 100)
	near("serve.request_generation_tokens", 20)
	near("serve.e2e", 1e9)
	// Five requests took longer than the last edge: of the 99th nothing is known but that, and there is no whole summary.
	if m := r.Find("serve.e2e", report.Labels{"quantile": "p99"}); m == nil || m.Value != nil {
		t.Errorf("serve.e2e p99: %+v, want null", m)
	}
	if m := r.Find("serve.e2e", nil); m.Summary != nil || m.N != 100 {
		t.Errorf("serve.e2e: %+v", m)
	}
	if v, _ := cellOf(t, sectiontest.SectionOf(t, r, "latency"), "latency", "whole request", "above").Num(); v != 2.5e9 {
		t.Errorf("above %v", v)
	}
	if !hasFinding(r, "queue_before_first_token") {
		t.Errorf("findings %v", r.Findings)
	}
	if e := r.Environment; e.Model == nil || *e.Model != "example/tiny-moe-8b" {
		t.Errorf("model %v", e.Model)
	}
}

// dump is a small dump: count first tokens, all of them between 100 and 200 ms, of a process started at a time.
func dump(started, count string) string {
	return "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds " + started + `
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.1"} 0
vllm:time_to_first_token_seconds_bucket{le="0.2"} ` + count + `
vllm:time_to_first_token_seconds_bucket{le="+Inf"} ` + count + `
vllm:time_to_first_token_seconds_sum ` + count + `
vllm:time_to_first_token_seconds_count ` + count + `
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total ` + count + "0\n"
}

func TestLatencyOfTwoDumps(t *testing.T) {
	code := func(r *report.Report) string {
		var list []string
		for _, w := range r.Warnings {
			list = append(list, w.Code)
		}
		return strings.Join(list, " ")
	}
	for name, c := range map[string]struct {
		texts    []string
		n        int64
		tokens   float64
		warnings string
	}{
		"one after the other": {[]string{dump("1", "10"), dump("1", "30")}, 20, 200, ""},
		"the later one first": {[]string{dump("1", "30"), dump("1", "10")}, 20, 200, "prometheus_order"},
		"started again":       {[]string{dump("1", "30"), dump("2", "40")}, 40, 400, "prometheus_reset"},
		"one file":            {[]string{dump("1", "10") + dump("1", "30")}, 20, 200, ""},
		"three":               {[]string{dump("1", "10"), dump("1", "20"), dump("1", "50")}, 40, 400, "prometheus_dumps"},
		"nothing happened":    {[]string{dump("1", "10"), dump("1", "10")}, 0, 0, ""},
	} {
		r := dumpsOf(t, c.texts...)
		m := r.Find("serve.ttft", nil)
		if m == nil || m.N != c.n || code(r) != c.warnings {
			t.Errorf("%s: %+v, warnings %q", name, m, code(r))
		}
		sectiontest.Metric(t, r, c.tokens, "serve.tokens", "kind", "prompt")
		if c.n == 0 {
			sectiontest.WantStatus(t, r, "latency", report.NotApplicable, "no request was served")
			if m.Value != nil {
				t.Errorf("%s: %v for no observation", name, *m.Value)
			}
		}
	}
}

func TestLatencyOfSGLang(t *testing.T) {
	r := dumpsOf(t, `# TYPE sglang:time_to_first_token_seconds histogram
sglang:time_to_first_token_seconds_bucket{le="0.1",model_name="x/y"} 10
sglang:time_to_first_token_seconds_bucket{le="+Inf",model_name="x/y"} 10
sglang:time_to_first_token_seconds_sum{model_name="x/y"} 0.5
sglang:time_to_first_token_seconds_count{model_name="x/y"} 10
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="x/y"} 100
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{model_name="x/y"} 25
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="x/y"} 7
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="x/y"} 0.28
`)
	sectiontest.Metric(t, r, 50e6, "serve.ttft")
	sectiontest.Metric(t, r, 7, "serve.requests_running")
	sectiontest.Metric(t, r, 0.28, "serve.kv_cache_usage")
	sectiontest.Metric(t, r, 0.25, "serve.prefix_cache_hit_rate")
	if f := r.Evidence[0].Format; f != "SGLang" {
		t.Errorf("format %q", f)
	}
}

// A server that served nothing has no latencies, which is not the same as 0.
func TestLatencyOfTheRealDump(t *testing.T) {
	r := sharedLog(t, "vllm_metrics.prom")
	sectiontest.WantStatus(t, r, "latency", report.NotApplicable, "no request was served")
	if m := r.Find("serve.ttft", nil); m == nil || m.Value != nil || m.N != 0 {
		t.Errorf("%+v", m)
	}
	if e := r.Environment; e.Model == nil || *e.Model != "Qwen/Qwen1.5-0.5B-Chat" {
		t.Errorf("model %v", e.Model)
	}
	if f := r.Evidence[0]; f.Records != 379 || f.Unknown != 0 {
		t.Errorf("evidence %+v", f)
	}
}

// Of four prompts' tokens, two requests computed up to 100 and two 100 to 300: the median is at the edge, the mean 120.
func TestComputedTokensOfRequests(t *testing.T) {
	const name = "vllm:request_prefill_kv_computed_tokens"
	r := dumpsOf(t, "# TYPE "+name+" histogram\n"+name+`_bucket{engine="0",le="100.0"} 2`+"\n"+name+`_bucket{engine="0",le="300.0"} 4`+"\n"+
		name+`_bucket{engine="0",le="+Inf"} 4`+"\n"+name+`_count{engine="0"} 4`+"\n"+name+`_sum{engine="0"} 480`+"\n")
	if m := r.Find("serve.request_computed_tokens", nil); m == nil || m.Value == nil || *m.Value != 100 || m.N != 4 || m.Summary.Mean != 120 {
		t.Errorf("%+v", m)
	}
}
