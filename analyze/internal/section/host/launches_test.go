package host_test

import (
	"fmt"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// TestLaunchesTiny holds the launches section to the figures of tracetest.Tiny, 1000 µs long.
func TestLaunchesTiny(t *testing.T) {
	r := sectiontest.Analyse(t, tracetest.Tiny(), analyze.Options{}).Report
	for _, l := range [][]string{nil, {"pid", "100"}, {"api", "cudaLaunchKernel"}} {
		sectiontest.Metric(t, r, 12, "launch.count", l...)
		sectiontest.Metric(t, r, 95*sectiontest.Us, "launch.api_time", l...)
		sectiontest.Metric(t, r, 12_000, "launch.rate", l...) // 12 in 1 ms
	}
	sectiontest.Metric(t, r, 0, "launch.errors")
	// Kernels in µs: 10 35 40 40 40 50 50 70 70 70 80 100 100; the seventh of thirteen is the median.
	for _, l := range [][]string{nil, {"pid", "100"}} {
		sectiontest.Metric(t, r, 13_000, "kernel.rate", l...)
		sectiontest.Metric(t, r, 50*sectiontest.Us, "kernel.duration", l...)
		sectiontest.Metric(t, r, 0, "kernel.tiny_count", l...)
	}
	sectiontest.Metric(t, r, 0, "kernel.under_ratio", "under", "5us")
	sectiontest.Metric(t, r, 0, "kernel.under_ratio", "under", "10us") // strictly shorter: the one of 10 µs is not
	sectiontest.Metric(t, r, 1.0/13, "kernel.under_ratio", "under", "20us")
	// From the call's return to the kernel's start, in µs: 0 0 5 5 5 37 45 65 95 95 155 185. One kernel has no call.
	for _, l := range [][]string{nil, {"pid", "100"}} {
		sectiontest.Metric(t, r, 41*sectiontest.Us, "launch.queue_time", l...)
	}
	if m := r.Find("launch.queue_time", report.Labels{}); m.Coverage == nil || *m.Coverage != 12.0/13 || m.Summary.Mean != 692.0/12*sectiontest.Us {
		t.Errorf("launch.queue_time: %+v, want coverage 12/13 and mean 692/12 µs", m)
	}
	// 12 launches of 95 µs, 2 copies of 10, 1 memset of 5, 2 synchronisations of 289.
	sectiontest.Metric(t, r, 17, "api.count")
	sectiontest.Metric(t, r, 399*sectiontest.Us, "api.time")
	sectiontest.Metric(t, r, 2, "api.count", "api", "cudaMemcpyAsync")
	sectiontest.Metric(t, r, 289*sectiontest.Us, "api.time", "api", "cudaStreamSynchronize")
	if sectiontest.FindingOf(r, "launch_storm") != nil {
		t.Error("12 launches are a storm")
	}
}

// TestLaunchesWindow narrows the window: calls count by their start.
func TestLaunchesWindow(t *testing.T) {
	to := 350 * time.Microsecond // 100 to 450: the call at 450 is not in, nor are those before 100
	r := sectiontest.Analyse(t, tracetest.Tiny(), analyze.Options{Window: analyze.WindowOptions{To: &to}}).Report
	sectiontest.Metric(t, r, 3, "launch.count") // at 100, 110, 360
	sectiontest.Metric(t, r, 15*sectiontest.Us, "launch.api_time")
	sectiontest.Metric(t, r, 4, "kernel.count") // at 100, 200, 300, 365
}

// TestLaunchStormOfOneProcess has a process that launches 200 kernels of 1 µs in 2 ms, and one whose 300 kernels of
// 50 µs hide that in the median over both.
func TestLaunchStormOfOneProcess(t *testing.T) {
	b := tracetest.New()
	storm, calm := b.Process(100, "storm").Thread(100, ""), b.Process(200, "calm").Thread(200, "")
	for i := range int64(200) {
		storm.Launch("tiny", i*10*sectiontest.Us, i*10*sectiontest.Us+3*sectiontest.Us, tracetest.Kernel{Start: i*10*sectiontest.Us + 4*sectiontest.Us, End: i*10*sectiontest.Us + 5*sectiontest.Us})
	}
	for i := range int64(300) {
		calm.Launch("big", i*6*sectiontest.Us, i*6*sectiontest.Us+2*sectiontest.Us, tracetest.Kernel{Place: tracetest.Place{Device: 1, Stream: 8 + i%50}, Start: i*6*sectiontest.Us + 4*sectiontest.Us, End: i*6*sectiontest.Us + 54*sectiontest.Us})
	}
	// The window is from 4 µs to the last kernel's end: 200 tiny ones end at 1995 µs.
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 200/1991e-6, "launch.rate", "pid", "100")
	sectiontest.Metric(t, r, 1*sectiontest.Us, "kernel.duration", "pid", "100")
	sectiontest.Metric(t, r, 50*sectiontest.Us, "kernel.duration")
	sectiontest.Metric(t, r, 200, "kernel.tiny_count")
	sectiontest.Metric(t, r, 0.4, "kernel.under_ratio", "under", "5us")
	f := sectiontest.FindingOf(r, "launch_storm")
	if f == nil || f.Evidence[0].Labels["pid"] != "100" {
		t.Fatalf("launch_storm: %+v, want it for pid 100", f)
	}
	tiny := sectiontest.FindTable(t, r, "launches", "tiny_kernels")
	if n, _ := tiny.Rows[0][1].Int(); len(tiny.Rows) != 1 || n != 200 {
		t.Errorf("tiny kernels: %v, want one row of 200", tiny.Rows)
	}
}

func TestLaunchErrors(t *testing.T) {
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "")
	th.Launch("gemm", 0, 5*sectiontest.Us, tracetest.Kernel{Start: 10 * sectiontest.Us, End: 20 * sectiontest.Us})
	for i := range int64(3) {
		b.API(tracetest.API{Thread: th, Name: "cudaLaunchKernel_v7000", Start: (10 + i) * sectiontest.Us, End: (11 + i) * sectiontest.Us, Correlation: 50 + i, Return: 701})
	}
	b.API(tracetest.API{Thread: th, Name: "cudaEventQuery_v3020", Start: 14 * sectiontest.Us, End: 15 * sectiontest.Us, Correlation: 60, Return: 600}) // not ready: no error
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 3, "launch.errors")
	sectiontest.Metric(t, r, 4, "launch.count")
	if f := sectiontest.FindingOf(r, "launch_errors"); f == nil || f.Severity != report.High {
		t.Errorf("launch_errors: %+v", f)
	}
	if rows := sectiontest.FindTable(t, r, "launches", "launch_errors").Rows; len(rows) != 1 || !rows[0][1].Equal(report.I(701)) || !rows[0][2].Equal(report.I(3)) {
		t.Errorf("failed launches: %v, want 3 of error 701", rows)
	}
}

func TestSlowLaunches(t *testing.T) {
	for _, c := range []struct {
		cost int64
		want report.Severity
	}{{6, ""}, {12, report.High}, {25, report.High}} {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "")
		for i := range int64(100) {
			at := i * 100 * sectiontest.Us
			th.Launch("gemm", at, at+c.cost*sectiontest.Us, tracetest.Kernel{Start: at + 30*sectiontest.Us, End: at + 90*sectiontest.Us})
		}
		got := report.Severity("")
		if f := sectiontest.FindingOf(sectiontest.Analyse(t, b, analyze.Options{}).Report, "slow_launches"); f != nil {
			got = f.Severity
		}
		if got != c.want {
			t.Errorf("calls of %d µs: slow_launches is %q, want %q", c.cost, got, c.want)
		}
	}
}

// TestLaunchesWithoutColumns drops what ties kernels to processes and calls: the totals stay, the rest is absent.
func TestLaunchesWithoutColumns(t *testing.T) {
	r := sectiontest.Analyse(t, tracetest.Tiny(tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"), tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_RUNTIME", "returnValue")), analyze.Options{}).Report
	sectiontest.Metric(t, r, 12, "launch.count")
	sectiontest.NoMetric(t, r, "launch.count", "pid", "100")
	sectiontest.NoMetric(t, r, "launch.queue_time")
	sectiontest.NoMetric(t, r, "launch.errors")
	r = sectiontest.Analyse(t, tracetest.Tiny(tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid")), analyze.Options{}).Report
	sectiontest.Metric(t, r, 12, "launch.count", "pid", "100")
	sectiontest.NoMetric(t, r, "launch.queue_time")
	sectiontest.Metric(t, r, 50*sectiontest.Us, "kernel.duration")
	sectiontest.NoMetric(t, r, "kernel.tiny_count", "pid", "100") // unknown, not zero
	r = sectiontest.Analyse(t, tracetest.Tiny(tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_RUNTIME")), analyze.Options{}).Report
	if s := sectiontest.SectionOf(t, r, "launches"); s.Status != report.Unavailable {
		t.Errorf("without API calls: %s", s.Status)
	}
	sectiontest.NoMetric(t, r, "launch.count")
}

// TestAPIOracle holds all API calls against NVIDIA's cuda_api_sum. Ours are summed over the versions of a name, and
// their standard deviation is the population's.
func TestAPIOracle(t *testing.T) {
	sectiontest.EachOracle(t, "cuda_api_sum", func(t *testing.T, r *report.Report, rows []sectiontest.OracleRow) {
		type sum struct {
			count, total float64
			rows         int
		}
		sums := map[string]sum{}
		for _, row := range rows {
			s := sums[stripAPI(row.Text("Name"))]
			sums[stripAPI(row.Text("Name"))] = sum{s.count + row.Num("Num Calls"), s.total + row.Num("Total Time (ns)"), s.rows + 1}
		}
		for name, s := range sums {
			sectiontest.Metric(t, r, s.count, "api.count", "api", name)
			sectiontest.Metric(t, r, s.total, "api.time", "api", name)
		}
		for _, row := range rows {
			name := stripAPI(row.Text("Name"))
			if m := r.Find("api.time", report.Labels{"api": name}); m != nil && sums[name].rows == 1 {
				row.Summary(t, name, m.Summary, " (ns)", 1, 0.051)
			}
		}
	})
}

// TestLaunchQueueOracle holds the waits between launch call and kernel against NVIDIA's cuda_kern_exec_sum, which has a
// row per kernel name where ours are per API.
func TestLaunchQueueOracle(t *testing.T) {
	sectiontest.EachOracle(t, "cuda_kern_exec_sum", func(t *testing.T, r *report.Report, rows []sectiontest.OracleRow) {
		type sum struct{ kernels, api, queued, wait, low, high float64 }
		sums := map[string]*sum{}
		for _, row := range rows {
			key := fmt.Sprint(row.Num("PID"), row.Num("DevId"), stripAPI(row.Text("API Name")))
			s := sums[key]
			if s == nil {
				s = &sum{low: math.Inf(1)}
				sums[key] = s
			}
			s.kernels += row.Num("Count")
			s.api += row.Num("Count") * row.Num("AAvg (ns)")
			if n := row.Num("QCount"); n > 0 {
				s.queued += n
				s.wait += n * row.Num("QAvg (ns)")
				s.low, s.high = min(s.low, row.Num("QMin (ns)")), max(s.high, row.Num("QMax (ns)"))
			}
		}
		table := sectiontest.FindTable(t, r, "launches", "launch_queue")
		for _, row := range table.Rows {
			num := func(i int) float64 { v, _ := row[i].Num(); return v }
			name, _ := row[2].Str()
			key := fmt.Sprint(num(0), num(1), name)
			s := sums[key]
			if s == nil {
				t.Errorf("%s: not in NVIDIA's", key)
				continue
			}
			delete(sums, key)
			if num(3) != s.kernels || num(5) != s.queued || !sectiontest.Near(num(4), s.api/s.kernels, 0.06) {
				t.Errorf("%s: %v kernels, calls of %v, %v queued; NVIDIA's %v %v %v", key, num(3), num(4), num(5), s.kernels, s.api/s.kernels, s.queued)
			}
			if s.queued > 0 && (!sectiontest.Near(num(6), s.wait/s.queued, 0.06) || num(9) != s.low || num(10) != s.high) {
				t.Errorf("%s: waits %v from %v to %v, NVIDIA's %v %v %v", key, num(6), num(9), num(10), s.wait/s.queued, s.low, s.high)
			}
		}
		for key := range sums {
			t.Errorf("%s: only in NVIDIA's", key)
		}
	})
}

var apiSuffix = regexp.MustCompile(`(_v\d+|_ptsz|_ptds)+$`)

// stripAPI removes the version suffix, of which NVIDIA's summaries keep what is longer than five characters.
func stripAPI(name string) string { return apiSuffix.ReplaceAllString(name, "") }

// Steps of 1000 µs: a product of 700, and 60 kernels of 1 µs, one every 5 µs, whose calls of 4 take longer than
// they. Without them a step takes 300 µs less. With a product of 40 they are most of the compute, and stay: in a
// graph they are not launched for 4 µs each.
func TestLaunchStormIsWorthItsKernels(t *testing.T) {
	const us = sectiontest.Us
	for long, want := range map[int64][2]float64{700: {0.28, 0.31}, 40: {0.23, 0.241}} {
		b := sectiontest.Steps(20, func(th *tracetest.Thread, at int64) {
			th.Launch("gemm", at, at+2*us, tracetest.Kernel{Start: at + 3*us, End: at + (3+long)*us})
			th.Range("sampler", at+703*us-4*us, at+1003*us-4*us)
			for i := range int64(60) {
				from := at + (703+5*i)*us
				th.Launch("zyx", from-4*us, from, tracetest.Kernel{Start: from, End: from + us})
			}
		})
		r := sectiontest.Analyse(t, b, analyze.Options{Unit: "kernel:gemm"}).Report
		f := sectiontest.FindingOf(r, "launch_storm")
		if f == nil || f.Worth == nil || !f.Worth.Replayed || f.Worth.Share() < want[0] || f.Worth.Share() > want[1] ||
			f.Title != "Launch storm: very many launches of very short kernels, most of them `zyx`, launched inside `sampler`" {
			t.Errorf("%d: %+v %+v", long, f, f.Worth)
		}
	}
}

// Steps of 1000 µs: a product of 700, and 60 pairs of kernels of 1 µs, of which the second has no launch call: so
// nothing is replayed. The kernels take 120 µs, the gaps before queued ones 59 × 2 + 1, shared among 121, and a
// launch 1.
func TestLaunchStormIsWorthItsGaps(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	for i := range int64(20) {
		at := i * 1000 * us
		th.Launch("gemm", at, at+2*us, tracetest.Kernel{Start: at + 3*us, End: at + 703*us})
		for k := range int64(60) {
			call, from := at+(4+4*k)*us, at+(703+5*k)*us
			th.Launch("zyx", call, call+us, tracetest.Kernel{Start: from, End: from + us})
			b.Kernel(tracetest.Kernel{Place: tracetest.Place{Process: th.Process()}, Name: "zyx", Start: from + 2*us, End: from + 3*us})
		}
	}
	f := sectiontest.FindingOf(sectiontest.Analyse(t, b, analyze.Options{Unit: "kernel:gemm"}).Report, "launch_storm")
	if f == nil || f.Worth == nil || f.Worth.Replayed || f.Worth.Share() < 0.237 || f.Worth.Share() > 0.241 {
		t.Errorf("%+v %+v", f, f.Worth)
	}
}
