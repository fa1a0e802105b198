package gpu_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// A value stands for the 250 µs since the one before. SM active: 40, 80, 100 and 60 %, 70 on average. The first kernel runs
// from 0 to 400: (250 · 40 + 150 · 80) / 400 = 55 %; the second from 500 to 1000: 80 %. The device works for 250, 150, 250
// and 250 µs of the four at 1980, 1500, 1980 and 1000 MHz: 1465/900 GHz; it is at 1000 for more than a tenth.
func TestCounters(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("gemm", 0, 0, tracetest.Kernel{Start: 0, End: 400 * us})
	th.Launch("softmax", 450*us, 460*us, tracetest.Kernel{Start: 500 * us, End: 1000 * us})
	for name, values := range map[string][5]int64{
		"SM Active [Throughput %]":             {99, 40, 80, 100, 60},
		"DRAM Read Throughput [Throughput %]":  {99, 10, 20, 30, 40},
		"DRAM Write Throughput [Throughput %]": {99, 5, 5, 5, 5},
		"GPC Clock Frequency [MHz]":            {1, 1980e6, 1500e6, 1980e6, 1000e6},
		"Compute Warps in Flight [Avg]":        {1, 2, 3, 4, 5},
	} {
		for i, v := range values {
			b.Counter(tracetest.Counter{Name: name, At: int64(i) * 250 * us, Value: v})
		}
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	l.Status("gpu_counters", report.OK)
	sectiontest.Metric(t, l.Report, 0.70, "gpu.counter", "counter", "sm_active", "device", "0")
	sectiontest.Metric(t, l.Report, 0.25, "gpu.counter", "counter", "dram_read", "device", "0")
	sectiontest.Metric(t, l.Report, 0.05, "gpu.counter", "counter", "dram_write", "device", "0")
	sectiontest.Metric(t, l.Report, 0.55, "kernel.counter", "counter", "sm_active", "kernel", "gemm")
	sectiontest.Metric(t, l.Report, 0.80, "kernel.counter", "counter", "sm_active", "kernel", "softmax")
	sectiontest.Metric(t, l.Report, 0.35, "kernel.counter", "counter", "dram_read", "kernel", "softmax")
	clock := 1465e9 / 900
	sectiontest.Metric(t, l.Report, clock, "gpu.clock", "clock", "gpc", "device", "0")
	sectiontest.Metric(t, l.Report, 1000e6, "gpu.clock_low", "clock", "gpc", "device", "0")
	for _, m := range l.Metrics {
		if strings.Contains(m.Labels["counter"], "warps") {
			t.Errorf("%s is no share", m.Labels["counter"])
		}
	}
	l.Row(l.Table("gpu_counters", "kernel_counters"), 0, "kernel_name", `"softmax"`, "time", "500000", "tensor_active", "null")
	if w := sectiontest.Warning(l.Report, "throttled"); w != "" { // five samples say nothing
		t.Error(w)
	}
}

// Decode steps of 1000 µs under vLLM's markers. Each half of a step has a value: reads 30 and 10 %, writes 10 and 10.
func TestCountersOfUnits(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	const steps = 24
	for i := range int64(steps) {
		at := i * 1000 * us
		th.Range("execute_context_0(0)_generation_8(8)", at, at+900*us)
		th.Launch("gemm", at, at, tracetest.Kernel{Start: at, End: at + 800*us})
	}
	for i := range int64(2*steps + 1) {
		first := i%2 == 1 // the value of the half before
		read, clock := int64(10), int64(1000e6)
		if first {
			read, clock = 30, 1980e6
		}
		b.Counter(tracetest.Counter{Name: "DRAM Read Bandwidth [Throughput %]", At: i * 500 * us, Value: read})
		b.Counter(tracetest.Counter{Name: "DRAM Write Bandwidth [Throughput %]", At: i * 500 * us, Value: 10})
		b.Counter(tracetest.Counter{Name: "GPC Clock Frequency [MHz]", At: i * 500 * us, Value: clock})
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	for _, labels := range [][]string{nil, {"phase", "decode"}} {
		sectiontest.Metric(t, l.Report, 0.20, "gpu.counter_in_units", append([]string{"counter", "dram_read"}, labels...)...)
		sectiontest.Metric(t, l.Report, 0.30, "gpu.bandwidth_ratio", labels...)
	}
	if c := l.Environment.Clocks; c == nil || *c != "throttled" {
		t.Errorf("clocks of the environment: %v", c)
	}
	w := sectiontest.Warning(l.Report, "throttled")
	if !strings.Contains(w, "gpc clock of GPU 0 was at 1000 MHz") || !strings.Contains(w, "reached 1980 MHz") {
		t.Errorf("warning %q", w)
	}
}

func TestWithoutCounters(t *testing.T) {
	l := sectiontest.Look(t, tracetest.Tiny(), analyze.Options{})
	l.Status("gpu_counters", report.Unavailable)
	if got := l.Section("gpu_counters").Reason; !strings.Contains(got, "--gpu-metrics-devices") {
		t.Errorf("reason %q does not name the flag", got)
	}
}
