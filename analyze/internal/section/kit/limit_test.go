package kit_test

import (
	"bytes"
	"maps"
	"slices"
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
		th.Launch("k", 10*i, 10*i+5, tracetest.Kernel{Place: tracetest.Place{Device: i}, Start: 10_000 + 10*i, End: 100_000_000 + 10_000_000*i})
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
	// The last devices compute for longest: a finding quotes one, and its number stays.
	quoted := 0
	for _, f := range r.Findings {
		for _, ref := range f.Evidence {
			if d, err := strconv.Atoi(ref.Labels["device"]); err == nil && d >= 64 {
				quoted++
			}
			if !slices.ContainsFunc(r.Metrics, func(m report.Metric) bool { return m.ID == ref.ID && maps.Equal(m.Labels, ref.Labels) }) {
				t.Errorf("finding %s quotes %s %v, which the report lacks", f.ID, ref.ID, ref.Labels)
			}
		}
	}
	if quoted == 0 {
		t.Error("no finding is about a device beyond the limit")
	}
	var out bytes.Buffer
	if err := report.Write(&out, r); err != nil || out.Len() > 2_000_000 {
		t.Errorf("report of %d bytes, error %v", out.Len(), err)
	}
}
