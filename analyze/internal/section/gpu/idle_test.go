package gpu_test

import (
	"math"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Tiny's gaps, in µs: 340-365, 400-460, 500-530, 600-630, 700-750, 1020-1050. Their median is 30. Of the window's 30
// chunks of 33.3 µs from 100 on, those at 333, 400, 433, 500, 600, 700, 733 and 1033 are busy for less than half.
func TestIdleGapsOfTiny(t *testing.T) {
	l := sectiontest.Look(t, tracetest.Tiny(), analyze.Options{})
	sectiontest.Metric(t, l.Report, 6, "idle.gap_count", "device", "0")
	sectiontest.Metric(t, l.Report, 30*sectiontest.Us, "idle.gap_time", "device", "0")
	sectiontest.Metric(t, l.Report, 60*sectiontest.Us, "idle.longest_gap", "device", "0")
	sectiontest.Metric(t, l.Report, 0, "idle.long_gap_count", "device", "0")
	low, chunks := 8.0, 30.0
	sectiontest.Metric(t, l.Report, low/chunks, "idle.low_use_ratio", "device", "0")
	if s := l.Find("idle.gap_time", report.Labels{"device": "0"}).Summary; s.N != 6 || s.Min != 25*sectiontest.Us || s.Max != 60*sectiontest.Us || s.Mean != 37.5*sectiontest.Us {
		t.Errorf("summary of gaps: %+v", *s)
	}
	tab := l.Table("idle", "idle_gaps")
	// cudaStreamSynchronize ran 366-440, 40 of the gap's 60; at 430, its middle, "step 1" is open on the thread.
	l.Row(tab, 0, "device_id", "0", "start", "400000", "end", "460000", "gap", "60000", "main_cause", `"sync"`, "previous", `"gemm"`, "next", `"softmax"`,
		"api_call", `"cudaStreamSynchronize"`, "pid", "100", "tid", "100", "sync", "40000", "host", "10000", "launch", "5000", "dependency", "5000", "unknown", "0")
	if name := l.Cell(tab, 0, "nvtx_range"); name != `"step 1"` && name != `"step #"` {
		t.Errorf("range of the longest gap: %s", name)
	}
	l.Row(tab, 1, "start", "700000", "gap", "50000", "main_cause", `"unknown"`, "api_call", "null", "nvtx_range", "null", "pid", "null", "unknown", "50000")
	// Three gaps of 30 stand in order of time. 600-630 is the launch call itself; 1020-1050 follows the memset.
	l.Row(tab, 2, "start", "500000", "main_cause", `"dependency"`, "dependency", "30000")
	l.Row(tab, 3, "start", "600000", "main_cause", `"launch"`, "api_call", `"cudaLaunchKernel"`)
	l.Row(tab, 4, "start", "1020000", "previous", `"[CUDA memset]"`, "main_cause", `"sync"`, "sync", "10000", "host", "10000")
	// 340-365: host code for 20, called nothing.
	l.Row(tab, 5, "start", "340000", "main_cause", `"host"`, "api_call", "null", "next", `"gemm"`)
	l.CsvHas(tab, "gpu_idle_gaps.csv", "device_id", "gap_start_ns", "gap_end_ns", "gap_ms")
	l.Finding("gpu_gaps", "")
	l.Finding("gpu_low_use", sectiontest.Remark) // a quarter of it; but finding gpu_idle says so
}

// 14 % of the window is idle, all in one place: too little for gpu_idle.
func TestLowUse(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("gemm", 0, 1, tracetest.Kernel{Start: 0, End: 850 * sectiontest.Us})
	th.Launch("gemm", 2, 3, tracetest.Kernel{Start: 990 * sectiontest.Us, End: 1000 * sectiontest.Us})
	l := sectiontest.Look(t, b, analyze.Options{})
	l.Finding("gpu_idle", report.High) // 140 of 1000
	l.Finding("gpu_low_use", sectiontest.Remark)
}

// 60 gaps of 1 to 60 µs, in mixed order: the 50 longest are rows, 1 to 10 are the others.
func TestOnlyTheLongestGapsAreRows(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	at := int64(0)
	for i := range int64(61) {
		th.Launch("gemm", at, at+1, tracetest.Kernel{Start: at, End: at + 10*sectiontest.Us})
		at += 10*sectiontest.Us + (37*i%60+1)*sectiontest.Us
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	tab := l.Table("idle", "idle_gaps")
	if len(tab.Rows) != 51 || tab.TotalRows != 60 || !tab.Others {
		t.Fatalf("rows %d, total %d, others %v", len(tab.Rows), tab.TotalRows, tab.Others)
	}
	l.Row(tab, 0, "gap", "60000")
	l.Row(tab, 49, "gap", "11000")
	l.Row(tab, 50, "main_cause", `"(others)"`, "gap", "55000", "device_id", "null") // 1 + … + 10
	if got := l.Sum(tab, "gap"); got != 1830*sectiontest.Us {
		t.Errorf("gaps sum to %v", got)
	}
	sectiontest.Metric(t, l.Report, 60, "idle.gap_count", "device", "0")
}

// One gap of 600 ms between two kernels; a minute later nothing more on device 0, which is no gap of nsys' rule: it has
// no work after it.
func longGap() (*tracetest.Builder, *tracetest.Thread) {
	const ms = 1000 * sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("gemm", 0, sectiontest.Us, tracetest.Kernel{Start: 0, End: 10 * ms})
	th.Launch("gemm", 605*ms, 605*ms+sectiontest.Us, tracetest.Kernel{Start: 610 * ms, End: 620 * ms})
	th.Launch("gemm", 606*ms, 606*ms+sectiontest.Us, tracetest.Kernel{Place: tracetest.Place{Device: 1}, Start: 610 * ms, End: 1620 * ms})
	return b, th
}

func TestLongGapsAreFound(t *testing.T) {
	b, th := longGap()
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 1, "idle.long_gap_count", "device", "0")
	sectiontest.Metric(t, l.Report, 0, "idle.long_gap_count", "device", "1") // before its first work
	l.Finding("gpu_gaps", sectiontest.Remark)

	// The profiler was busy from 200 to 300 ms: what is left of the gap is 190 and 310 ms.
	b.Overhead(tracetest.Overhead{Thread: th, Name: "CUPTI buffer flush", Start: 200_000 * sectiontest.Us, End: 300_000 * sectiontest.Us})
	l = sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 0, "idle.long_gap_count", "device", "0")
	l.Finding("gpu_gaps", "")
}

func TestNeverIdle(t *testing.T) {
	l := sectiontest.Look(t, kinds(map[string]int64{"gemm": 10}, "gemm", "gemm"), analyze.Options{})
	l.Status("idle", report.NotApplicable)
	sectiontest.Metric(t, l.Report, 0, "idle.gap_count", "device", "0")
	sectiontest.Metric(t, l.Report, 0, "idle.low_use_ratio", "device", "0")
	sectiontest.NoMetric(t, l.Report, "idle.gap_time", "device", "0")
}

// Ranges that start together, and one that has ended: the shorter open one is what the thread is in.
func TestTheRangeOfAGap(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("gemm", 0, 1, tracetest.Kernel{Start: 0, End: 100})
	th.Range("inner", 90, 160)
	th.Range("outer", 90, 300)
	th.Range("over", 110, 130)
	th.Launch("gemm", 190, 195, tracetest.Kernel{Start: 200, End: 300}) // the gap's middle is 150
	l := sectiontest.Look(t, b, analyze.Options{})
	l.Row(l.Table("idle", "idle_gaps"), 0, "nvtx_range", `"inner"`, "main_cause", `"host"`)
}

// The strip's buckets are busy as much as the device is.
func TestUtilisationStrip(t *testing.T) {
	for _, b := range []*tracetest.Builder{tracetest.Tiny(), tracetest.TwoProcs(), newRandomTrace(3, 0).builder} {
		l := sectiontest.Look(t, b, analyze.Options{})
		charts := l.Section("idle").Charts
		if len(charts) != 1 || charts[0].Kind != "strip" {
			t.Fatalf("charts: %v", charts)
		}
		for _, s := range charts[0].Series {
			if s.Style == "marks" {
				continue
			}
			device := s.Name[len("GPU "):]
			var mean float64
			for _, v := range s.Values {
				if v < 0 || v > 1 {
					t.Errorf("busy share %v", v)
				}
				mean += v / float64(len(s.Values))
			}
			idle := *l.Find("gpu.idle_ratio", report.Labels{"device": device}).Value
			if math.Abs(1-idle-mean) > 0.01 { // buckets differ in length by 1 ns
				t.Errorf("%s: strip says %v busy, the device is %v", s.Name, mean, 1-idle)
			}
		}
	}
}

// The strip marks the longest gaps of each device: of a window of 300 ns, 90 from 110 on and 10 from 100 on.
func TestTheStripMarksTheLongestGaps(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("gemm", 0, 1, tracetest.Kernel{Start: 1000, End: 1100})
	th.Launch("gemm", 2, 3, tracetest.Kernel{Start: 1110, End: 1120})
	th.Launch("gemm", 4, 5, tracetest.Kernel{Start: 1210, End: 1300})
	l := sectiontest.Look(t, b, analyze.Options{})
	series := l.Section("idle").Charts[0].Series
	if len(series) != 2 {
		t.Fatalf("series: %v", series)
	}
	s := series[1]
	if s.Style != "marks" || !slices.Equal(s.Labels, []string{"120", "100"}) || !slices.Equal(s.Values, []float64{0.3, 10.0 / 300}) {
		t.Errorf("marks: %+v", s)
	}
}
