package engine_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// trtStep is a line of TensorRT-LLM's iteration log: times in ms, the device's of the step before.
func trtStep(iter, context, scheduled, host, device string) string {
	return "[TRT-LLM] [I] [_torch][RANK 0] iter = " + iter + ", global_rank = 0, rank = 0, num_scheduled_requests = " + scheduled + ", kv_cache_util = 0.5, host_step_time = " + host + "ms, prev_device_step_time = " + device + "ms, timestamp = 2026-08-17 03:22:44, states = {'num_ctx_requests': " + context + ", 'num_ctx_tokens': 100, 'num_generation_tokens': 4}"
}

// Host and device: prefill 20 and 30 ms; decode 5 and 4, 7 and 4, 6 and 8. The last step's time of the device is not
// known, so that its 99 ms on the host are in no number. Two of four take longer on the host.
func TestDeviceSteps(t *testing.T) {
	r := logOf(t, trtStep("1", "1", "1", "20", "None"), trtStep("2", "0", "4", "5", "30"), trtStep("3", "0", "4", "7", "4"),
		trtStep("4", "0", "4", "6", "4"), trtStep("5", "0", "4", "99", "8"))
	decode := report.Labels{"type": "decode"}
	for _, c := range []struct {
		id     string
		labels report.Labels
		want   float64
		n      int64
	}{
		{"serve.step_host_time", nil, 6.5e6, 4}, // 5 6 7 20
		{"serve.step_device_time", nil, 6e6, 4}, // 4 4 8 30
		{"serve.step_host_time", decode, 6e6, 3},
		{"serve.step_device_time", decode, 4e6, 3},
		{"serve.step_device_time", report.Labels{"type": "prefill"}, 30e6, 1},
		{"serve.host_bound_steps", nil, 0.5, 4},
		{"serve.iterations", nil, 5, 5},
		{"serve.iteration_time", decode, 6.5e6, 4}, // 5 6 7 99
	} {
		m := r.Find(c.id, c.labels)
		if m == nil || m.Value == nil || *m.Value != c.want || m.N != c.n {
			t.Errorf("%s%v = %+v, want %v of %d", c.id, c.labels, m, c.want, c.n)
		}
	}
	s := sectiontest.SectionOf(t, r, "device_steps")
	if v, _ := cellOf(t, s, "device_steps", "decode", "host_bound").Num(); v < 0.66 || v > 0.67 {
		t.Errorf("decode, host longer: %v, want 2 of 3", v)
	}
	if !hasFinding(r, "host_bound_steps") {
		t.Error("no finding, though half of the steps wait for the host")
	}
}

func TestDeviceStepsOfAnotherEngine(t *testing.T) {
	r := analyseLog(t, exampleLog)
	if s := sectiontest.SectionOf(t, r, "device_steps"); s.Status != report.NotApplicable {
		t.Errorf("status %s", s.Status)
	}
}
