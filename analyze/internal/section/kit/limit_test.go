package kit_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Hundreds of devices or processes have no metrics of their own beyond a limit: totals stay, the report stays small.
func TestMetricsOfManyDevicesAndProcesses(t *testing.T) {
	b := tracetest.New()
	const n = 300
	for i := range int64(n) {
		th := b.Process(1000+i, "p").Thread(1000+i, "")
		th.Launch("k", 10*i, 10*i+5, tracetest.Kernel{Place: tracetest.Place{Device: i}, Start: 10_000 + 10*i, End: 10_000 + 11*i + 10})
	}
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	devices, busiest, own := 0, 0, map[string]bool{}
	var sum float64
	for i := range r.Metrics {
		m := &r.Metrics[i]
		switch {
		case m.ID == "gpu.window":
			devices++
		case m.ID == "launch.rate" && m.Labels["pid"] != "":
			own[m.Labels["pid"]] = true
		case m.ID == "kernel.total_time" && len(m.Labels) == 1 && m.Labels["device"] != "":
			sum += *m.Value
		}
	}
	for i := n - 90; i < n; i++ {
		if own[strconv.Itoa(1000+i)] {
			busiest++
		}
	}
	if devices < 64 || devices > 70 || len(own) < 100 || len(own) > 105 || busiest != 90 {
		t.Errorf("metrics of %d devices and %d processes, %d of the busiest 90", devices, len(own), busiest)
	}
	sectiontest.Metric(t, r, sum, "kernel.total_time")
	sectiontest.Metric(t, r, n, "launch.count")
	var out bytes.Buffer
	if err := report.Write(&out, r); err != nil || out.Len() > 2_000_000 {
		t.Errorf("report of %d bytes, error %v", out.Len(), err)
	}
}
