package gpu_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Twelve steps of two equal products; beside the second an all-reduce runs on another stream, and it takes 130 µs for the
// 100 of the first: 30 of 230 µs. Where it takes 100 µs too nothing is said.
func TestCommunicationBesideCompute(t *testing.T) {
	on := func(stream int64) tracetest.Place { return tracetest.Place{Stream: stream} }
	for long, want := range map[int64]report.Severity{130: report.High, 100: ""} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		for i := range int64(12) {
			at, call := 10+i*(100+long)*sectiontest.Us, 100*i
			half, end := at+100*sectiontest.Us, at+(100+long)*sectiontest.Us
			th.Launch("gemm", call, call+1, tracetest.Kernel{Place: on(7), Start: at, End: half})
			th.Launch("gemm", call+2, call+3, tracetest.Kernel{Place: on(7), Start: half, End: end})
			th.Launch(allReduceKernel, call+4, call+5, tracetest.Kernel{Place: on(8), Start: half, End: end})
		}
		l := sectiontest.Look(t, b, analyze.Options{Unit: "kernel:nccl"})
		l.Finding("comm_slows", want)
		if want != "" {
			sectiontest.Metric(t, l.Report, 30*sectiontest.Us, "unit.comm_slowdown")
			whole := sectiontest.Look(t, b, analyze.Options{Unit: "none"}).Report // where nothing repeats: of the whole capture
			sectiontest.Metric(t, whole, 12*30*sectiontest.Us, "comm.slowdown_time")
		}
	}
}
