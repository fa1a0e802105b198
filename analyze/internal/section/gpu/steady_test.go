package gpu_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// loaded is a program that copies its weights for 10 ms from pageable memory and then runs ten steps of 1 ms: a kernel
// of 600 µs, one of 100 µs from 700 on, and 200 µs of nothing at the end, as the launching call comes late. The first step starts at 12 ms.
func loaded() *tracetest.Builder {
	const ms, us = 1_000_000, sectiontest.Us
	b := tracetest.New()
	p := b.Process(1, "server")
	th := p.Thread(1, "")
	b.Memcpy(tracetest.Memcpy{Place: tracetest.Place{Process: p, Correlation: th.Call("cudaMemcpyAsync_v3020", 0, 10*ms)},
		Start: 0, End: 10 * ms, Bytes: 1 << 30, Kind: tracetest.HtoD, Src: tracetest.Pageable, Dst: tracetest.DeviceMemory})
	for i := range int64(10) {
		at := 12*ms + i*ms
		th.Launch("gemm", at-10*us, at-5*us, tracetest.Kernel{Start: at, End: at + 600*us})
		th.Launch("norm", at+100*us, at+105*us, tracetest.Kernel{Start: at + 700*us, End: at + 800*us})
	}
	return b
}

// The window is 21.8 ms, 10 of them the copy of the weights. Units start every ms at gemm: of ten the last has no end, so
// that the steady part is the nine from 12 to 21 ms. In each the GPU works for 700 of 1000 µs: 2.7 of 9 ms are idle.
// Replayed with a free host a step takes 900, for 100 lie between the kernels, however early they were launched: 0.9 of 9
// ms can be won. Without the gemm the host launches as it did, but for the 5
// that the call took and the 105 that half of the launches come after the one before.
func TestFindingsAreOfTheSteadyPart(t *testing.T) {
	const ms = 1_000_000
	r := sectiontest.Analyse(t, loaded(), analyze.Options{}).Report
	sectiontest.Metric(t, r, 21.8*ms, "gpu.window", "device", "0") // the whole, to the ns
	sectiontest.Metric(t, r, 10*ms, "gpu.exposed_copy_time", "device", "0")
	sectiontest.Metric(t, r, 9*ms, "steady.window")
	sectiontest.Metric(t, r, 12*ms, "steady.before_time")
	sectiontest.Metric(t, r, 0.8*ms, "steady.after_time")
	sectiontest.Metric(t, r, 10*ms, "steady.load_copy_time")
	sectiontest.Metric(t, r, 1<<30, "steady.load_copy_bytes")
	sectiontest.Metric(t, r, 0.3*ms, "unit.gpu_idle")
	sectiontest.Metric(t, r, 0.6*ms, "kernel.exclusive_time_per_unit", "kernel", "gemm")
	for _, load := range []string{"transfer_bound", "async_pageable", "sync_copy"} {
		if f := sectiontest.FindingOf(r, load); f != nil {
			t.Errorf("finding %s is about the load: %+v", load, f)
		}
	}
	want := report.Worth{Time: 0.9 * ms, Of: 9 * ms, Units: 9, Replayed: true}
	if f := sectiontest.FindingOf(r, "gpu_idle"); f == nil || f.Worth == nil || *f.Worth != want {
		t.Errorf("%+v, want it worth %+v", f, want)
	}
	want.Time = 9 * 110 * sectiontest.Us
	if f := sectiontest.FindingOf(r, "dominant_kernel"); f == nil || f.Worth == nil || *f.Worth != want {
		t.Errorf("%+v, want it worth %+v", f, want)
	}
}

// What is quoted of the steady part is what --steady says of it, to the last digit, and in the same unit. The names are
// those of every such metric.
func TestSteadyIsWhatTheFlagSays(t *testing.T) {
	twins := []string{
		"steady.gpu.window", "steady.gpu.idle_ratio", "steady.gpu.idle_time", "steady.gpu.idle_cause_time",
		"steady.gpu.compute_time", "steady.gpu.exposed_comm_time", "steady.gpu.exposed_copy_time",
		"steady.kernel.window_share", "steady.kernel.share", "steady.kernel.total_time", "steady.kernel.count", "steady.kernel.unnamed_time",
		"steady.memcpy.rule_time", "steady.memcpy.rule_count", "steady.memcpy.tiny_count", "steady.memcpy.count",
		"steady.sync.blocked_time", "steady.sync.count", "steady.sync.gpu_busy_ratio", "steady.wait.time",
		"steady.wait.count", "steady.launch.rate", "steady.launch.api_time", "steady.launch.count",
		"steady.launch.errors", "steady.graph.coverage", "steady.graph.launches", "steady.comm.wait_time",
		"steady.idle.longest_gap", "steady.idle.long_gap_count", "steady.idle.low_use_ratio",
		"steady.stream.copy_hidden_ratio", "steady.gpu.host_cause_time", "steady.host.call_time", "steady.host.os_time",
		"steady.host.gil_time", "steady.host.sample_count", "steady.host.frame_ratio", "steady.host.python_sample_count",
		"steady.host.python_ratio", "steady.host.thread_count",
		"steady.host.cpu_count",
	}
	defs := map[string]report.MetricDef{}
	for _, m := range analyze.Metrics() {
		defs[m.ID] = m
	}
	for _, id := range twins {
		twin, of := defs[id], defs[strings.TrimPrefix(id, "steady.")]
		if twin.ID == "" || twin.Unit != of.Unit || twin.Scale != of.Scale || twin.Better != of.Better {
			t.Errorf("%s is %+v, and the metric it is of %+v", id, twin, of)
		}
	}
	compared := 0
	for name, b := range map[string]*tracetest.Builder{"loaded": loaded(), "serving": nil} {
		path := "../../../../testdata/serving.sqlite"
		if b != nil {
			path = b.WriteTB(t)
		}
		whole := sectiontest.AnalyseFile(t, path, analyze.Options{}).Report
		steady := sectiontest.AnalyseFile(t, path, analyze.Options{Window: analyze.WindowOptions{Steady: true}}).Report
		for i := range whole.Metrics {
			m := &whole.Metrics[i]
			if !strings.HasPrefix(m.ID, "steady.") || strings.Count(m.ID, ".") < 2 {
				continue
			}
			compared++
			if s := steady.Find(strings.TrimPrefix(m.ID, "steady."), m.Labels); s == nil || *s.Value != *m.Value {
				t.Errorf("%s: %s{%s} = %v; --steady says %+v", name, m.ID, m.Labels, *m.Value, s)
			}
		}
	}
	if compared < 8 {
		t.Errorf("compared %d metrics", compared)
	}
}
