package prom

import (
	"strings"
	"testing"
)

// trtllmDump is a dump of trtllm-serve after five requests. Names get a prefix.
func trtllmDump(prefix string) string {
	const labels = `engine_type="pytorch",model_name="a/b"`
	var b strings.Builder
	for _, line := range []string{
		`request_success_total{finished_reason="stop",L} 3`, `request_success_total{finished_reason="length",L} 1`,
		`request_success_total{finished_reason="cancelled",L} 1`,
		`time_to_first_token_seconds_bucket{L,le="0.1"} 2`, `time_to_first_token_seconds_bucket{L,le="0.25"} 4`,
		`time_to_first_token_seconds_bucket{L,le="+Inf"} 4`, `time_to_first_token_seconds_count{L} 4`,
		`time_to_first_token_seconds_sum{L} 0.6`,
		`time_per_output_token_seconds_bucket{L,le="0.01"} 4`, `time_per_output_token_seconds_bucket{L,le="+Inf"} 4`,
		`time_per_output_token_seconds_count{L} 4`, `time_per_output_token_seconds_sum{L} 0.032`,
		`e2e_request_latency_seconds_bucket{L,le="0.5"} 4`, `e2e_request_latency_seconds_bucket{L,le="+Inf"} 4`,
		`e2e_request_latency_seconds_count{L} 4`, `e2e_request_latency_seconds_sum{L} 1.2`,
		`request_queue_time_seconds_bucket{L,le="0.3"} 4`, `request_queue_time_seconds_bucket{L,le="+Inf"} 4`,
		`request_queue_time_seconds_count{L} 4`, `request_queue_time_seconds_sum{L} 0.02`,
		`kv_cache_hit_rate{L} 0.25`, `kv_cache_utilization{L} 0.5`,
	} {
		b.WriteString(prefix + strings.Replace(line, "L", labels, 1) + "\n")
	}
	return b.String()
}

// TensorRT-LLM writes its metrics with a prefix, which older Dynamo ended with a colon; up to 1.1 it wrote none.
// A cancelled request counts as aborted. Times per output token are means of requests, not times between tokens.
func TestTensorRTLLM(t *testing.T) {
	for _, prefix := range []string{"trtllm_", "trtllm:", ""} {
		text := trtllmDump(prefix)
		if !Is("x", []byte(text)) {
			t.Errorf("%q is not recognised", prefix)
		}
		d := readAll(t, text)
		if d.Engine != "TensorRT-LLM" || d.Model != "a/b" || codes(d) != "" || d.Series != 22 {
			t.Errorf("%q: %q, model %q, %d series, %v", prefix, d.Engine, d.Model, d.Series, d.Warnings())
		}
		for of, mean := range map[string]float64{TTFT: 0.15, TPOT: 0.008, E2E: 0.3, Queue: 0.005} {
			h := d.Hists[of]
			if h == nil {
				t.Errorf("%q: no %s", prefix, of)
			} else if got := h.Sum / h.Count; h.Count != 4 || got != mean {
				t.Errorf("%q: %s of %v requests is %v, want %v", prefix, of, h.Count, got, mean)
			}
		}
		if d.Hists[ITL] != nil || d.Gauges[HitRate] != 0.25 || d.Gauges[Usage] != 0.5 {
			t.Errorf("%q: %v", prefix, d.Gauges)
		}
		if f := d.Finished; f["stop"] != 3 || f["length"] != 1 || f["abort"] != 1 || len(f) != 3 {
			t.Errorf("%q: %v", prefix, f)
		}
		twice := readAll(t, text+strings.NewReplacer(`"stop",`, `"stop",`, "} 3\n", "} 5\n").Replace(text))
		if !twice.Delta || twice.Finished["stop"] != 2 {
			t.Errorf("%q: two dumps in one file: %v", prefix, twice.Finished)
		}
	}
	d := readAll(t, strings.ReplaceAll(trtllmDump(""), "a/b", "undefined"))
	if d.Model != "" {
		t.Errorf("model %q", d.Model)
	}
	// Without the label of the engine's kind, such names may be anybody's.
	if d := readAll(t, "request_success_total{finished_reason=\"stop\"} 3\n"); d.Engine != "" {
		t.Errorf("%+v", d)
	}
}

// Triton adds up the time of its requests; the power of its GPUs is read. Beside an engine's dump it needs no warning.
func TestTriton(t *testing.T) {
	dump := func(watts, joules string) string {
		return "# TYPE nv_inference_request_success counter\n" +
			`nv_inference_request_success{model="ensemble",version="1"} 40
nv_inference_request_duration_us{model="ensemble",version="1"} 9000
nv_gpu_power_usage{gpu_uuid="GPU-1"} ` + watts + `
nv_gpu_power_usage{gpu_uuid="GPU-2"} 100
nv_energy_consumption{gpu_uuid="GPU-1"} ` + joules + "\n"
	}
	d := readAll(t, dump("300", "5000"), dump("500", "5600"))
	if p := d.Power; p.GPUs != 2 || p.Watts == nil || *p.Watts != 500 || p.Joules == nil || *p.Joules != 600 {
		t.Errorf("%+v", p)
	}
	if codes(d) != "prometheus_triton" || d.Engine != "" {
		t.Errorf("%q, %v", d.Engine, d.Warnings())
	}
	if d := readAll(t, dump("300", "5000")+scrape("1", 10)); codes(d) != "" || d.Engine != "vLLM" {
		t.Errorf("%q, %v", d.Engine, d.Warnings())
	}
}
