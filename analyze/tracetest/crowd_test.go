package tracetest_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// A crowded capture has as many rows as were asked for, each call and switch of a thread that launches, and the idle
// time of the one it was made of, of which every cause but unknown now has a part. It is the same each time.
func TestCrowd(t *testing.T) {
	src := tracetest.Serving().WriteTB(t)
	var runs [2][]byte
	dst := filepath.Join(t.TempDir(), "crowded.sqlite")
	for i := range runs {
		if err := tracetest.Rewrite(src, dst, tracetest.Crowd(20_000, 4_000, 4_000)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(dst)
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = data
	}
	if !bytes.Equal(runs[0], runs[1]) {
		t.Error("two runs differ")
	}
	var reports [2]*report.Report
	for i, path := range []string{src, dst} {
		res, err := analyze.Run(context.Background(), path, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		reports[i] = res.Report
	}
	rows := map[string]int64{}
	for _, table := range reports[1].Trace.Tables {
		rows[table.Name] = table.Rows
	}
	for name, want := range map[string]float64{"OSRT_API": 20_000, "SCHED_EVENTS": 4_000, "SAMPLING_CALLCHAINS": 4_000} {
		if got := float64(rows[name]); math.Abs(got-want) > want/100 {
			t.Errorf("%s has %v rows, asked for %v", name, got, want)
		}
	}
	for _, m := range reports[0].Metrics {
		if m.ID != "gpu.idle_cause_time" || m.Labels["cause"] != "host" {
			continue
		}
		device, sum := m.Labels["device"], 0.0
		for cause, some := range map[string]bool{
			"api": true, "profiler": true, "os_call": true, "not_scheduled": true, "running": true, "unknown": false,
		} {
			part := *reports[1].Find("gpu.host_cause_time", report.Labels{"device": device, "cause": cause}).Value
			if sum += part; (part > 0) != some {
				t.Errorf("GPU %s: %s is %v ns", device, cause, part)
			}
		}
		if sum != *m.Value {
			t.Errorf("GPU %s: the causes sum to %v ns, its host time was %v", device, sum, *m.Value)
		}
	}
}
