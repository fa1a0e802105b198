package steps_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// Tiny's latencies, in µs. From the end of a launch to a kernel that starts after it, on an idle stream: 5, 0, 5, 95, 5;
// half of them take more than 5. Between kernels that were launched long before: 0, 0, 30, 20, 50, 0; the median is 10.
//
//	gaps of cause dependency   455-460 launch 5 · 500-530 behind the softmax: 10 are typical, 20 unresolved · 1045-1050 launch 5
//	no compute  340- 365  host 20 and launch 5: starved 25
//	            400- 460  sync 40, host 10, launch 5: starved 55; dependency 5
//	            500- 530  dependency 30
//	            600- 630  the launch itself: starved 30
//	            700- 750  behind the softmax 10, then unknown 40, for nobody knows when the norm was launched
//	            800- 820  dependency 20: the gemm follows the norm on its stream; the copy beside it blocks nothing
//	            900- 950  nccl, which seems to be what the softmax waits for: blocking 50
//	           1000-1050  the copy and the memset that the host waits for: blocking 20; sync 10, host 10, launch 5; dependency 5
func TestWaitsOfTiny(t *testing.T) {
	l := sectiontest.Look(t, tracetest.Tiny(), analyze.Options{})
	for reason, us := range map[string]float64{"launch": 10, "kernel": 10, "unresolved": 20, "collective": 0, "copy": 0, "event": 0} {
		sectiontest.Metric(t, l.Report, us*sectiontest.Us, "gpu.dependency_time", "device", "0", "reason", reason)
	}
	for cause, us := range map[string]float64{"launch_starved": 135, "blocking_comm": 50, "blocking_copy": 20, "dependency": 70, "unknown": 40} {
		sectiontest.Metric(t, l.Report, us*sectiontest.Us, "gpu.no_compute_time", "device", "0", "cause", cause)
	}
	sectiontest.Metric(t, l.Report, 1, "path.inferred")
	sectiontest.Metric(t, l.Report, 0, "path.collectives")
	l.Status("critical_path", report.Partial) // two steps are no unit of work
	tab := l.Table("critical_path", "no_compute")
	l.Row(tab, 0, "device_id", "0", "time", "315000", "starved", "135000", "comm", "50000", "copy", "20000", "dependency", "70000", "unknown", "40000", "exposed", "20000")
	tab = l.Table("critical_path", "dependency_waits")
	l.Row(tab, 0, "reason", `"unresolved"`, "what", "null", "gaps", "1", "time", "20000", "share", "0.5")
	l.Row(tab, 1, "reason", `"kernel"`, "what", `"softmax"`, "gaps", "1", "time", "10000")
	l.Row(tab, 2, "reason", `"launch"`, "what", `"cudaLaunchKernel"`, "gaps", "2", "time", "10000")
	l.CsvHas(tab, "dependency_waits.csv", "device_id", "reason", "dependency_ns")
}

// steps is a host that launches two kernels a step and waits for them, with a period of 100 µs:
//
//	gemm   10-50 [0-5] · norm 50-70 [6-10] · cudaStreamSynchronize 12-80 · host code 80-100
//
// A step lasts from its gemm to the next. Back from there: 5 from the end of the launch, the launch 5, the host 20, the
// rest of the synchronization 10, norm 20, gemm 40. Of the 40 without compute the gemm was not launched yet for 35.
func steps(n int64) *tracetest.Builder {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	for k := range n {
		at := 100 * sectiontest.Us * k
		us := func(v int64) int64 { return at + v*sectiontest.Us }
		th.Launch("gemm", us(0), us(5), tracetest.Kernel{Start: us(10), End: us(50)})
		th.Launch("norm", us(6), us(10), tracetest.Kernel{Start: us(50), End: us(70)})
		th.StreamSynchronize(us(12), us(80), 0, 7)
	}
	return b
}

func TestPathOfASteadyStep(t *testing.T) {
	l := sectiontest.Look(t, steps(12), analyze.Options{Unit: "kernel:gemm"})
	l.Status("critical_path", report.OK)
	for part, us := range map[string]float64{"compute": 60, "communication": 0, "copy": 0, "latency": 5, "call": 15, "host": 20, "unknown": 0} {
		sectiontest.Metric(t, l.Report, us*sectiontest.Us, "unit.path_time", "part", part)
	}
	for cause, us := range map[string]float64{"launch_starved": 35, "blocking_comm": 0, "blocking_copy": 0, "dependency": 5, "unknown": 0} {
		sectiontest.Metric(t, l.Report, us*sectiontest.Us, "unit.no_compute_time", "cause", cause)
		sectiontest.Metric(t, l.Report, us*sectiontest.Us, "unit.no_compute_time", "cause", cause, "device", "0")
	}
	sectiontest.Metric(t, l.Report, 0, "unit.replay_error")
	sectiontest.Metric(t, l.Report, 0, "path.event_waits", "found", "recorded")
	tab := l.Table("critical_path", "critical_path")
	for i, want := range [][]string{{`"compute"`, `"gemm"`, "40000", "0.4"}, {`"compute"`, `"norm"`, "20000", "0.2"}, {`"host"`, `"(host code)"`, "20000", "0.2"},
		{`"call"`, `"cudaStreamSynchronize"`, "10000", "0.1"}, {`"latency"`, `"(from a launch to its start)"`, "5000", "0.05"}, {`"call"`, `"cudaLaunchKernel"`, "5000", "0.05"}} {
		l.Row(tab, i, "unit", `"median"`, "part", want[0], "name", want[1], "count", "1", "time", want[2], "share", want[3])
	}
	l.CsvHas(tab, "critical_path.csv", "unit", "part", "name", "path_ns")
}

// Stream 21 reduces what stream 7 computed, and stream 7 waits for it, by events. The all-reduce blocks while the next
// gemm waits; a copy that ends before it is exposed and blocks nothing. In µs:
//
//	gemm 0-40 · all-reduce 42-90 on stream 21, after event 1 · copy 42-60 on stream 13, after event 1 · gemm 92-120, after event 2
//
// The second gemm was launched at 30. 40-42 and 90-92 are latencies of events. The copy took a launch of its own.
// 5,000 starts are 4,999 whole steps. 4,096 of them are looked at kernel by kernel and along their paths, and the report
// says so; times of units are of all.
func TestVeryManySteps(t *testing.T) {
	l := sectiontest.Look(t, steps(5000), analyze.Options{Unit: "kernel:gemm"})
	sectiontest.Metric(t, l.Report, 60*sectiontest.Us, "unit.path_time", "part", "compute")
	if n := l.Report.Find("unit.path_time", report.Labels{"part": "compute"}).N; n != 4096 {
		t.Errorf("the paths of %d units were walked", n)
	}
	if notes := l.Section("critical_path").Notes; !slices.Contains(notes, "Critical paths are of 4096 of 4999 units, evenly spread.") {
		t.Errorf("notes %q", notes)
	}
	if notes := l.Section("unit_positions").Notes; !slices.ContainsFunc(notes, func(n string) bool {
		return strings.HasPrefix(n, "Means and medians are over 4096 units on GPU 0 of the 4999, evenly spread;")
	}) {
		t.Errorf("notes %q", notes)
	}
	time := l.Report.Find("unit.time", nil)
	if s := l.Report.Unit.Steps.List[0]; s.Units != 4096 || time.Summary.N != 4999 || *time.Value != float64(s.Time)/4096 {
		t.Errorf("positions of %d units of %d ns, unit.time of %d units", s.Units, s.Time, time.Summary.N)
	}
}

func TestBlockingIsWhatIsWaitedFor(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		opts := []tracetest.Option{tracetest.Schema("3.25.0")}
		if !recorded {
			opts = append(opts, tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_CUDA_EVENT"))
		}
		b := tracetest.New(opts...)
		th := b.Process(1, "p").Thread(1, "")
		us := func(v int64) int64 { return v * sectiontest.Us }
		th.Launch("gemm", us(-10), us(-6), tracetest.Kernel{Start: us(0), End: us(40)})
		th.EventRecord(us(1), us(2), 0, 7, 1)
		th.StreamWaitEvent(us(3), us(4), 0, 21, 1)
		th.StreamWaitEvent(us(5), us(6), 0, 13, 1)
		th.Memcpy(us(7), us(8), tracetest.Memcpy{Place: tracetest.Place{Stream: 13}, Start: us(42), End: us(60), Bytes: 1 << 20, Kind: tracetest.HtoD, Src: tracetest.Pinned, Dst: tracetest.DeviceMemory})
		th.Launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", us(9), us(12), tracetest.Kernel{Place: tracetest.Place{Stream: 21}, Start: us(42), End: us(90)})
		th.EventRecord(us(13), us(14), 0, 21, 2)
		th.StreamWaitEvent(us(15), us(16), 0, 7, 2)
		th.Launch("gemm", us(26), us(30), tracetest.Kernel{Start: us(92), End: us(120)})
		l := sectiontest.Look(t, b, analyze.Options{})
		found := map[string]float64{"recorded": 3, "by_order": 0, "unrecorded": 0, "contradicted": 0}
		if !recorded {
			found = map[string]float64{"recorded": 0, "by_order": 3, "unrecorded": 0, "contradicted": 0}
		}
		for how, n := range found {
			sectiontest.Metric(t, l.Report, n, "path.event_waits", "found", how)
		}
		for cause, us := range map[string]float64{"launch_starved": 0, "blocking_comm": 48, "blocking_copy": 0, "dependency": 4, "unknown": 0} {
			sectiontest.Metric(t, l.Report, us*sectiontest.Us, "gpu.no_compute_time", "device", "0", "cause", cause)
		}
		sectiontest.Metric(t, l.Report, 4*sectiontest.Us, "gpu.dependency_time", "device", "0", "reason", "event")
		sectiontest.Metric(t, l.Report, 0, "gpu.dependency_time", "device", "0", "reason", "unresolved")
		sectiontest.Metric(t, l.Report, 0, "path.inferred")
	}
}

// The second wait is for an event that was recorded after work that still ran when the waiting gemm started: the times
// contradict it, and it holds nothing.
func TestContradictedWait(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("gemm", 0, 10, tracetest.Kernel{Start: 100, End: 1000})
	th.EventRecord(11, 12, 0, 7, 1)
	th.StreamWaitEvent(13, 14, 0, 21, 1)
	th.Launch("norm", 15, 20, tracetest.Kernel{Place: tracetest.Place{Stream: 21}, Start: 500, End: 600})
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 1, "path.event_waits", "found", "contradicted")
	sectiontest.Metric(t, l.Report, 0, "path.event_waits", "found", "recorded")
}

// Two ranks; rank 1's host is late, so that its all-reduce joins at 80 while rank 0's runs from 50. The path through
// rank 0's collective goes on through rank 1's host.
//
//	rank 0  gemm 10-50 [0-5], all-reduce 50-100, gemm 100-120
//	rank 1  gemm 10-30 [0-5], host 5-70, all-reduce [70-75] 80-100, gemm 100-120
func TestPathGoesThroughTheLateRank(t *testing.T) {
	b := tracetest.New()
	us := func(v int64) int64 { return v * sectiontest.Us }
	const name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
	for rank := range int64(2) {
		th := b.Process(1+rank, "p").Thread(1+rank, "")
		place := tracetest.Place{Device: rank}
		launch := []int64{6, 70}[rank]
		th.Launch("gemm", us(0), us(5), tracetest.Kernel{Place: place, Start: us(10), End: us(50 - 20*rank)})
		th.Launch(name, us(launch), us(launch+5), tracetest.Kernel{Place: place, Start: us(50 + 30*rank), End: us(100)})
		th.Launch("gemm", us(launch+6), us(launch+10), tracetest.Kernel{Place: place, Start: us(100), End: us(120)})
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 1, "path.collectives")
	// Of rank 0's 50 µs in the all-reduce, 20 are the collective, 5 rank 1's launch latency, 25 its host.
	for cause, us := range map[string]float64{"launch_starved": 25, "blocking_comm": 20, "blocking_copy": 0, "dependency": 5, "unknown": 0} {
		sectiontest.Metric(t, l.Report, us*sectiontest.Us, "gpu.no_compute_time", "device", "0", "cause", cause)
	}
	for cause, us := range map[string]float64{"launch_starved": 45, "blocking_comm": 20, "blocking_copy": 0, "dependency": 5, "unknown": 0} {
		sectiontest.Metric(t, l.Report, us*sectiontest.Us, "gpu.no_compute_time", "device", "1", "cause", cause)
	}
}

// Reasons sum to idle time of cause dependency, causes to the time without compute, of devices and of units, and parts of
// paths to units, to the ns.
func TestSumsOfWaitsClose(t *testing.T) {
	paths := append(append(longtest.Captures(t), longtest.Ranks(t)...), tracetest.Tiny().WriteTB(t), "../../../../testdata/serving.sqlite", tracetest.ServingGraphMode().WriteTB(t), steps(20).WriteTB(t))
	for i, path := range paths {
		r := sectiontest.ReportOf(t, path)
		if i%2 == 1 && r.Unit.Kind != "none" { // of a narrowed window too
			opt := analyze.Options{}
			opt.Window.Steady = true
			r = sectiontest.AnalyseFile(t, path, opt).Report
		}
		value := func(id string, pairs ...string) float64 {
			l := report.Labels{}
			for i := 0; i+1 < len(pairs); i += 2 {
				l[pairs[i]] = pairs[i+1]
			}
			if m := r.Find(id, l); m != nil && m.Value != nil {
				return *m.Value
			}
			return 0
		}
		sum := func(id, label, device string) (total float64) {
			for i := range r.Metrics {
				if m := &r.Metrics[i]; m.ID == id && m.Labels["device"] == device && m.Labels[label] != "" && m.Value != nil {
					total += *m.Value
				}
			}
			return total
		}
		for _, g := range r.Environment.GPUs {
			device := strconv.Itoa(g.Device)
			if got, want := sum("gpu.dependency_time", "reason", device), value("gpu.idle_cause_time", "cause", timeline.CauseNames[timeline.CauseDependency], "device", device); got != want {
				t.Errorf("%s, device %s: reasons sum to %.0f of %.0f", filepath.Base(path), device, got, want)
			}
			if got, want := sum("gpu.no_compute_time", "cause", device), value("gpu.window", "device", device)-value("gpu.compute_time", "device", device); got != want {
				t.Errorf("%s, device %s: causes sum to %.0f of %.0f", filepath.Base(path), device, got, want)
			}
		}
		unit, compute := r.Find("unit.time", report.Labels{}), r.Find("unit.compute_time", report.Labels{})
		if unit == nil {
			continue
		}
		total := func(id string) (total float64) {
			for i := range r.Metrics {
				if m := &r.Metrics[i]; m.ID == id && len(m.Labels) == 1 && m.Summary != nil {
					total += m.Summary.Mean * float64(m.Summary.N)
				}
			}
			return total
		}
		n := float64(unit.Summary.N)
		if got, want := total("unit.no_compute_time"), (unit.Summary.Mean-compute.Summary.Mean)*n; math.Abs(got-want) > 0.5 {
			t.Errorf("%s: causes of units sum to %.0f of %.0f", filepath.Base(path), got, want)
		}
		if path := r.Find("unit.path_time", report.Labels{"part": "host"}); path != nil && path.Summary.N == unit.Summary.N {
			if got, want := total("unit.path_time"), unit.Summary.Mean*n; math.Abs(got-want) > 0.5 {
				t.Errorf("paths of units sum to %.0f of %.0f", got, want)
			}
		}
	}
}

// Twenty kernels of a step that take 1, 2, … 20 µs: the report lists the fifteen rows with most time and sums the
// others, the file holds each of them.
func TestFileOfThePathHoldsEveryRow(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	for k := range int64(12) {
		at := 400 * sectiontest.Us * k
		start := at + 50*sectiontest.Us
		for i := range int64(20) {
			end := start + (i+1)*sectiontest.Us
			th.Launch(fmt.Sprintf("k%02d", i+1), at+2*i*sectiontest.Us, at+(2*i+1)*sectiontest.Us, tracetest.Kernel{Start: start, End: end})
			start = end
		}
		th.StreamSynchronize(at+41*sectiontest.Us, at+300*sectiontest.Us, 0, 7)
	}
	res := sectiontest.Analyse(t, b, analyze.Options{Unit: "kernel:k01"})
	tab := sectiontest.Looker{TB: t, Report: res.Report}.Table("critical_path", "critical_path")
	// A unit's rows: 20 kernels, the host, the latency of the launch, the launch and the synchronisation. Two units.
	if len(tab.Rows) != 2*16 || tab.TotalRows != 2*24 {
		t.Errorf("%d rows of %d, want 32 of 48", len(tab.Rows), tab.TotalRows)
	}
	at := slices.IndexFunc(res.Details, func(d report.Table) bool { return d.File == "critical_path.csv" })
	if at < 0 {
		t.Fatal("no file critical_path.csv of its own")
	}
	name, spent := column(t, tab, "name"), column(t, tab, "time")
	var sum int64
	for i, row := range res.Details[at].Rows {
		if s, _ := row[name].Str(); s == "(others)" {
			t.Errorf("row %d of the file is of the others", i)
		}
		ns, _ := row[spent].Int()
		sum += ns
	}
	// A step is 400 µs, and its path closes.
	if n := len(res.Details[at].Rows); n != 2*24 || sum != 2*400*sectiontest.Us {
		t.Errorf("the file has %d rows of %d ns in all, want 48 of 800,000", n, sum)
	}
}

// Ten steps of two threads: main launches one kernel of 100 µs and sleeps until the output thread, which waits for the GPU,
// wakes it. Between two launches of main lies one wait: nine, recorded as calls of the operating system or inferred. The
// output thread's first call follows from whoever began that thread, which counts as recorded; of the nine others it is
// inferred that main's launch, whose work they wait for, led to them.
func TestWaitsOfThreads(t *testing.T) {
	for _, found := range []string{"recorded", "inferred"} {
		b := tracetest.New()
		p := b.Process(1, "server")
		main, output := p.Thread(1, "main"), p.Thread(2, "output")
		for i := range int64(10) {
			at := 1_000_000 + i*150_000
			main.Launch("gemm", at, at+5_000, tracetest.Kernel{Start: at + 8_000, End: at + 108_000})
			output.StreamSynchronize(at+10_000, at+112_000, 0, 7)
			if found == "recorded" {
				main.OSRT("pthread_cond_wait", at+10_000, at+120_000)
			}
		}
		l := sectiontest.Look(t, b, analyze.Options{})
		for _, f := range []string{"recorded", "inferred"} {
			want := map[string]float64{"recorded": 1, "inferred": 9}[f]
			if f == found {
				want += 9
			}
			sectiontest.Metric(t, l.Report, want, "path.thread_waits", "found", f)
		}
	}
}
