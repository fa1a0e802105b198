package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Steps 20 to 29 begin 10 ms apart. On the GPU a step begins 1 ms after its marker with a kernel of 2 ms, and ends after a
// second one of 1 ms that begins 4 + (N-20)/10 ms after the first. So step 23 takes 4.3 + 1 = 5.3 ms there, and 10 ms to the
// next one. The log has steps 18 to 27, and 26 twice: 20 to 25 and 27 are joined. Its times of the device are 5 ms.
func TestStepsOfLogAndTrace(t *testing.T) {
	const ms = 1_000_000
	b := tracetest.New()
	th := b.Process(5, "python").Thread(5, "")
	for n := range int64(10) {
		at, late := n*10*ms, n*ms/10
		th.Range(fmt.Sprintf("[Executor] _forward_step %d: 0 ctx reqs, 0 ctx tokens, 4 gen reqs", 20+n), at, at+5*ms)
		th.Launch("gemm", at+1000, at+2000, tracetest.Kernel{Start: at + 1*ms, End: at + 3*ms})
		th.Launch("attention", at+3000, at+4000, tracetest.Kernel{Start: at + 5*ms + late, End: at + 6*ms + late})
	}
	var log strings.Builder
	for _, n := range []int{18, 19, 20, 21, 22, 23, 24, 25, 26, 26, 27} {
		log.WriteString(trtStep(fmt.Sprint(n), "0", "4", fmt.Sprint(n), "5") + "\n")
	}
	path := filepath.Join(t.TempDir(), "server.log")
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	l := sectiontest.Look(t, b, analyze.Options{Evidence: []analyze.Evidence{{Path: path}}})
	if l.Unit.Kind != "nvtx" {
		t.Fatalf("unit %+v", l.Unit)
	}
	table := l.Table("device_steps", "joined_steps")
	if len(table.Rows) != 7 {
		t.Fatalf("%d rows, want steps 20 to 25 and 27", len(table.Rows))
	}
	l.Row(table, 3, "step", "23", "type", `"decode"`, "requests", "4", "host", "23000000", "device", "5000000",
		"gpu", "5300000", "unit", "10000000")
	// The line after 25 is of 26 and states the device's time of 25; that of 27 is not known: no line comes after it.
	l.Row(table, 6, "step", "27", "device", "null", "gpu", "5700000")
	sectiontest.Metric(t, l.Report, 7, "serve.joined_steps")
	sectiontest.Metric(t, l.Report, 5.3e6, "serve.joined_gpu_time") // 5.0 5.1 5.2 5.3 5.4 5.5 5.7
	sectiontest.Metric(t, l.Report, 10e6, "serve.joined_unit_time")
	if m := l.Report.Find("serve.joined_steps", report.Labels{}); m.N < 9 {
		t.Errorf("of %d steps of the trace, want all but what an end cuts", m.N)
	}
}

// A log of another time shares no number with the trace.
func TestStepsOfAnotherRun(t *testing.T) {
	b := tracetest.New()
	th := b.Process(5, "python").Thread(5, "")
	for n := range int64(10) {
		at := n * 1_000_000
		th.Range(fmt.Sprintf("[Executor] _forward_step %d: 0 ctx reqs, 0 ctx tokens, 4 gen reqs", 20+n), at, at+500_000)
		th.Launch("gemm", at+1000, at+2000, tracetest.Kernel{Start: at + 10_000, End: at + 300_000})
	}
	path := filepath.Join(t.TempDir(), "server.log")
	if err := os.WriteFile(path, []byte(trtStep("100", "0", "4", "3", "2")+"\n"+trtStep("101", "0", "4", "3", "2")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := sectiontest.Analyse(t, b, analyze.Options{Evidence: []analyze.Evidence{{Path: path}}}).Report
	sectiontest.Metric(t, r, 0, "serve.joined_steps")
	sectiontest.NoMetric(t, r, "serve.joined_gpu_time")
}
