package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// TestSyncTiny: cudaStreamSynchronize 366-440 and 815-1030 µs in a window of 1000. Of the first, the GPU works until
// 400; of the second, until 1020.
func TestSyncTiny(t *testing.T) {
	r := sectiontest.Analyse(t, tracetest.Tiny(), analyze.Options{}).Report
	for _, l := range [][]string{nil, {"pid", "100"}, {"api", "cudaStreamSynchronize"}} {
		sectiontest.Metric(t, r, 2, "sync.count", l...)
		sectiontest.Metric(t, r, 289*sectiontest.Us, "sync.total_time", l...) // 74 + 215
	}
	for _, l := range [][]string{nil, {"pid", "100"}} {
		sectiontest.Metric(t, r, 289*sectiontest.Us, "sync.blocked_time", l...)
		sectiontest.Metric(t, r, 0.289, "sync.share", l...)
		sectiontest.Metric(t, r, 239.0/289, "sync.gpu_busy_ratio", l...) // 34 + 205
	}
	sectiontest.Metric(t, r, 2, "sync.record_count")
	sectiontest.Metric(t, r, 289*sectiontest.Us, "sync.record_time")
	f := sectiontest.FindingOf(r, "sync")
	if f == nil || f.Severity != report.Medium || f.Place != "cudaStreamSynchronize" {
		t.Errorf("sync: %+v, want it medium: 50 of 1000 µs idle", f)
	}
	row := sectiontest.FindTable(t, r, "sync", "sync").Rows[0]
	for i, want := range []report.Cell{report.S("cudaStreamSynchronize"), report.I(2), report.I(289 * sectiontest.Us), report.F(144.5 * sectiontest.Us), report.F(144.5 * sectiontest.Us), report.F((74 + 0.9*141) * sectiontest.Us),
		report.I(74 * sectiontest.Us), report.I(215 * sectiontest.Us), report.F(0.289), report.F(239.0 / 289)} {
		if !row[i].Equal(want) {
			t.Errorf("column %d of the table: %v, want %v", i, row[i], want)
		}
	}
}

// A thread that is blocked through all of the window and calls nothing in it is blocked for all of it, once, however many
// calls overlap; two threads are blocked for twice the window.
func TestBlockedTimeIsOfTheWindow(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	p := b.Process(1, "p")
	th := p.Thread(1, "")
	th.Launch("gemm", 0, 1*us, tracetest.Kernel{Start: 1 * us, End: 1000 * us})
	th.Call("cudaStreamSynchronize_v3020", 100*us, 900*us)
	p.Thread(2, "").Call("cudaDeviceSynchronize_v3020", 50*us, 350*us)
	p.Thread(2, "").Call("cudaEventSynchronize_v3020", 60*us, 310*us)
	from, to := 199*time.Microsecond, 399*time.Microsecond // 200 to 400: 200 of the first thread, 150 of the second
	w := analyze.WindowOptions{From: &from, To: &to}
	r := sectiontest.Analyse(t, b, analyze.Options{Window: w}).Report
	sectiontest.Metric(t, r, 350*us, "sync.blocked_time")
	sectiontest.Metric(t, r, 350*us, "sync.blocked_time", "pid", "1")
	sectiontest.Metric(t, r, 0, "sync.total_time") // no call starts in the window
}

// TestSyncWindow: 100-900 µs has the start of both calls, the end of one.
func TestSyncWindow(t *testing.T) {
	to := 800 * time.Microsecond
	r := sectiontest.Analyse(t, tracetest.Tiny(), analyze.Options{Window: analyze.WindowOptions{To: &to}}).Report
	sectiontest.Metric(t, r, 289*sectiontest.Us, "sync.total_time") // calls count whole
	sectiontest.Metric(t, r, (74.0+85)*sectiontest.Us, "sync.blocked_time")
	sectiontest.Metric(t, r, (74.0+85)/800, "sync.share")              // within the window
	sectiontest.Metric(t, r, (34.0+85)/(74+85), "sync.gpu_busy_ratio") // within the window
	from := 400 * time.Microsecond                                     // 500-1100: the second only
	r = sectiontest.Analyse(t, tracetest.Tiny(), analyze.Options{Window: analyze.WindowOptions{From: &from}}).Report
	sectiontest.Metric(t, r, 1, "sync.count")
	sectiontest.Metric(t, r, 215*sectiontest.Us, "sync.total_time")
	sectiontest.Metric(t, r, 205.0/215, "sync.gpu_busy_ratio")
	from, to = 0, 50*time.Microsecond
	r = sectiontest.Analyse(t, tracetest.Tiny(), analyze.Options{Window: analyze.WindowOptions{From: &from, To: &to}}).Report
	sectiontest.Metric(t, r, 0, "sync.count")
	sectiontest.NoMetric(t, r, "sync.share")
	if s := sectiontest.SectionOf(t, r, "sync"); s.Status != report.NotApplicable || len(s.Tables) == 0 {
		t.Errorf("without a call in the window: %s with %d tables", s.Status, len(s.Tables))
	}
}

// TestSyncOwnWork: pid 200 waits 100-140 µs. Its own kernels ran for 20 of that, those of pid 100 all the time.
func TestSyncOwnWork(t *testing.T) {
	b := tracetest.TwoProcs()
	other := b.Process(300, "python").Thread(300, "")
	other.Launch("norm", 100*sectiontest.Us, 101*sectiontest.Us, tracetest.Kernel{Place: tracetest.Place{Device: 1, Stream: 9}, Start: 102 * sectiontest.Us, End: 107 * sectiontest.Us})
	other.DeviceSynchronize(102*sectiontest.Us, 112*sectiontest.Us, 1) // twice at once, on two threads
	other.Process().Thread(301, "").DeviceSynchronize(102*sectiontest.Us, 112*sectiontest.Us, 1)
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 20*sectiontest.Us, "sync.total_time", "pid", "300")
	sectiontest.Metric(t, r, 0.25, "sync.share", "pid", "300") // of one thread: 10 of 40
	sectiontest.Metric(t, r, 0.5, "sync.gpu_busy_ratio", "pid", "300")
	if rows := sectiontest.FindTable(t, r, "sync", "sync_threads").Rows; len(rows) != 2 || !rows[1][1].Equal(report.I(301)) {
		t.Errorf("threads: %v", rows)
	}
	if row := sectiontest.FindTable(t, r, "sync", "sync").Rows[0]; !row[8].Equal(report.F(0.25)) {
		t.Errorf("share of the window of two threads at once: %v, want 0.25", row[8])
	}
	// Without processes on the kernels, all work counts: device 0 is busy all the time.
	b = tracetest.TwoProcs(tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"))
	b.Process(300, "python").Thread(300, "").DeviceSynchronize(102*sectiontest.Us, 112*sectiontest.Us, 1)
	sectiontest.Metric(t, sectiontest.Analyse(t, b, analyze.Options{}).Report, 1, "sync.gpu_busy_ratio", "pid", "300")
}

// TestWaits: what does not block, or blocks outside the four families, is no blocking call.
func TestWaits(t *testing.T) {
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "")
	th.Launch("gemm", 0, 5*sectiontest.Us, tracetest.Kernel{Start: 10 * sectiontest.Us, End: 1010 * sectiontest.Us})
	at := int64(20 * sectiontest.Us)
	for _, c := range []struct {
		name string
		dur  int64
	}{{"cudaEventQuery_v3020", 2}, {"cudaEventQuery_v3020", 4}, {"cudaStreamQuery_ptsz_v7000", 1}, {"cudaStreamWaitEvent_v3020", 3}, {"cudaThreadSynchronize_v3020", 200},
		{"cudaFree_v3020", 60}, {"cudaMallocAsync_v11020", 7}, {"cuCtxSynchronize", 10}} {
		th.Call(c.name, at, at+c.dur*sectiontest.Us)
		at += 210 * sectiontest.Us / 2
	}
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 1, "sync.count")
	sectiontest.Metric(t, r, 10*sectiontest.Us, "sync.total_time", "api", "cuCtxSynchronize")
	sectiontest.Metric(t, r, 2, "wait.count", "api", "cudaEventQuery")
	sectiontest.Metric(t, r, 6*sectiontest.Us, "wait.time", "api", "cudaEventQuery")
	sectiontest.Metric(t, r, 1*sectiontest.Us, "wait.time", "api", "cudaStreamQuery")
	sectiontest.Metric(t, r, 3*sectiontest.Us, "wait.time", "api", "cudaStreamWaitEvent")
	sectiontest.Metric(t, r, 200*sectiontest.Us, "wait.time", "api", "cudaThreadSynchronize")
	sectiontest.Metric(t, r, 60*sectiontest.Us, "wait.time", "api", "cudaFree")
	sectiontest.NoMetric(t, r, "wait.time", "api", "cudaMallocAsync")
	if f := sectiontest.FindingOf(r, "sync_old"); f == nil || f.Severity != sectiontest.Remark {
		t.Errorf("sync_old: %+v, want a remark: it is worth nothing", f)
	}
	if f := sectiontest.FindingOf(r, "allocations"); f == nil || len(f.Evidence) != 1 { // 60 of 1000 µs
		t.Errorf("allocations: %+v", f)
	}
}

// Steps of 1000 µs: the GPU works for 600, and the thread waits for that, allocates for 300 and launches again. The
// allocation is the finding, and leaves the wait before it the other 100. Calls of a thread that launches nothing, and those behind work of the
// GPU, cost nothing.
func TestAllocationsAreWorthTheIdleTimeInThem(t *testing.T) {
	const us = sectiontest.Us
	for name, c := range map[string]struct {
		from, to int64 // of the allocation in a step
		other    bool  // on another thread
		read     bool  // the wait is for 4 bytes
		want     int64 // µs of a step; 0: no finding
	}{
		"after the wait":    {from: 620, to: 920, want: 300},
		"after a read-back": {from: 620, to: 920, read: true, want: 300},
		"behind the kernel": {from: 100, to: 500},
		"on another thread": {from: 620, to: 920, other: true},
	} {
		b := tracetest.New()
		p := b.Process(1, "p")
		th, loader := p.Thread(1, ""), p.Thread(2, "")
		for i := range int64(20) {
			at := (1000 + 1000*i) * us
			th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 600*us})
			if c.read {
				th.Memcpy(at+6*us, at+9*us, tracetest.Memcpy{Start: at + 600*us, End: at + 602*us, Bytes: 4,
					Kind: tracetest.DtoH, Src: tracetest.DeviceMemory, Dst: tracetest.Pageable})
			}
			if c.from < 600 {
				th.Call("cudaMalloc_v3020", at+c.from*us, at+c.to*us)
			}
			th.StreamSynchronize(at+510*us, at+605*us, 0, 7)
			if on := th; c.from >= 600 {
				if c.other {
					on = loader
				}
				on.Call("cudaMalloc_v3020", at+c.from*us, at+c.to*us)
			}
		}
		r := sectiontest.Analyse(t, b, analyze.Options{}).Report
		f := sectiontest.FindingOf(r, "allocations")
		switch {
		case c.want == 0 && f != nil && f.Severity != sectiontest.Remark:
			t.Errorf("%s: %s %+v", name, f.Title, f.Worth)
		case c.want > 0 && (f == nil || f.Worth == nil || f.Worth.Time/f.Worth.Units != c.want*us || f.Place != "cudaMalloc"):
			t.Errorf("%s: %+v", name, f)
		}
		if s := sectiontest.FindingOf(r, "sync"); s != nil && s.Severity != sectiontest.Remark && c.want > 0 && s.Worth.Time/s.Worth.Units > 100*us {
			t.Errorf("%s: %s is worth %d too", name, s.Title, s.Worth.Time/s.Worth.Units)
		}
	}
}

// Steps of 1000 µs: the GPU works for 600, and the thread allocates for 300 in a range, which is the place.
func TestAllocationsNameTheirRange(t *testing.T) {
	const us = sectiontest.Us
	f := sectiontest.FindingOfSteps(t, "allocations", func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 600*us})
		th.Range("grow 3", at+610*us, at+930*us)
		th.Call("cudaMalloc_v3020", at+620*us, at+920*us)
	})
	const want = "The host allocates or frees memory in `cudaMalloc` inside `grow #`, and the GPU idles meanwhile: 300 µs of each step"
	if f == nil || f.Title != want || f.Place != "grow #" {
		t.Errorf("%+v", f)
	}
}

// Steps of 1000 µs: the GPU works for 600, and the thread waits for that to 605, is in a range for 300 µs, and
// launches again at 1000. The finding on the wait names the range, else the call of the operating system.
// Where poll takes 10 ms of one step alone, it says so: 10.405 of 19 × 405 µs + 10 ms; 10 ms are 526.3 µs of each of
// 19.
func TestSyncNamesWhatFollows(t *testing.T) {
	const us = sectiontest.Us
	for _, want := range []string{"300 µs of each step inside `sampler`", "300 µs of each step in `poll`",
		"526.3 µs per step on average in `poll`; one gap of 10.4 ms is 58.8 % of the idle time of all 19 steps"} {
		one := strings.Contains(want, "one gap")
		f := sectiontest.FindingOfSteps(t, "sync", func(th *tracetest.Thread, at int64) {
			last := at == 11_000*us // before the gap
			if one && at > 11_000*us {
				at += 10_000 * us
			}
			th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 600*us})
			th.StreamSynchronize(at+10*us, at+605*us, 0, 7)
			switch {
			case one && last:
				th.OSRT("poll", at+700*us, at+10_700*us)
			case one:
			case strings.Contains(want, "poll"):
				th.OSRT("poll", at+620*us, at+920*us)
			default:
				th.Range("sampler", at+620*us, at+920*us)
			}
		})
		want = "No work is queued ahead: after each wait in `cudaStreamSynchronize` the GPU idles (idle: host), " + want
		place := map[bool]string{true: "poll", false: "sampler"}[strings.Contains(want, "poll")]
		if f == nil || f.Title != want || f.Place != place { // the wait itself holds 5 of 405 µs
			t.Errorf("%+v, want %s at %s", f, want, place)
		}
	}
}

// Steps of 1000 µs of a thread that launches gemm, for 5 to 200, allocates from 50 to 350, and launches norm at 400.
// The GPU idles for 150 µs of the allocation, but without it each step is 300 µs shorter.
func TestAllocationsAreWorthWhatStepsGain(t *testing.T) {
	const us = sectiontest.Us
	f := sectiontest.FindingOfSteps(t, "allocations", func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 200*us})
		th.Call("cudaMalloc_v3020", at+50*us, at+350*us)
		th.Launch("norm", at+400*us, at+405*us, tracetest.Kernel{Start: at + 405*us, End: at + 500*us})
	})
	if f == nil || f.Worth == nil || f.Worth.Time/f.Worth.Units != 300*us || !f.Worth.Replayed {
		t.Errorf("%+v, want 300 µs a step", f)
	}
}

// Steps of 1000 µs: 200 of work, then 300 of cudaFree inside of a range, and 500 in poll. The other finding on idle
// time names poll alone, and says that 30 % of the step are told.
func TestIdleBesideAllocations(t *testing.T) {
	const us = sectiontest.Us
	f := sectiontest.FindingOfSteps(t, "gpu_idle", func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at-5*us, at, tracetest.Kernel{Start: at, End: at + 200*us})
		th.Range("sample", at+200*us, at+500*us)
		th.Call("cudaFree_v3020", at+200*us, at+500*us)
		th.OSRT("poll", at+500*us, at+990*us)
	})
	const want = "GPU idle 80.0 %: 30.0 % in other findings; in the other 50.0 %, the main thread sits in `poll`; " +
		"no range covers it"
	if f == nil || f.Title != want || f.Place != "poll" {
		t.Errorf("%+v", f)
	}
}

// Steps of 1000 µs: 600 of work, for which the thread waits to 605, then 300 in poll: the place is poll.
func TestOldSyncNamesWhatFollows(t *testing.T) {
	const us = sectiontest.Us
	f := sectiontest.FindingOfSteps(t, "sync_old", func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 600*us})
		th.Call("cudaThreadSynchronize_v3020", at+10*us, at+605*us)
		th.OSRT("poll", at+620*us, at+920*us)
	})
	if f == nil || f.Place != "poll" ||
		!strings.HasSuffix(f.Title, "launches nothing ahead (idle: host), 300 µs of each step in `poll`") {
		t.Errorf("%+v", f)
	}
}

// There is no unit, so nothing is replayed: the GPU idles for 998 µs before the wait of 800, and for 49 after it, of
// 2050. A wait can only cost what comes after it.
func TestOldSyncCostsNoIdleTimeBeforeIt(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("a", 0, us, tracetest.Kernel{Start: us, End: 100 * us})
	th.Launch("b", 1097*us, 1098*us, tracetest.Kernel{Start: 1100 * us, End: 1900 * us})
	th.Call("cudaThreadSynchronize_v3020", 1110*us, 1910*us)
	th.Launch("c", 1948*us, 1949*us, tracetest.Kernel{Start: 1950 * us, End: 2051 * us})
	f := sectiontest.FindingOf(sectiontest.Analyse(t, b, analyze.Options{}).Report, "sync_old")
	if f == nil || f.Worth == nil || f.Worth.Time != 49*us || f.Worth.Of != 2050*us || f.Worth.Replayed {
		t.Errorf("%+v", f)
	}
}

// TestSyncIsTheIdle: three kernels of 1 ms, and after each the host waits 2 ms and launches the next, 100 µs later.
func TestSyncIsTheIdle(t *testing.T) {
	const ms = 1000 * sectiontest.Us
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "")
	th.Range("decode", 0, 10*ms)
	for i := range int64(3) {
		at := i * 3200 * sectiontest.Us
		th.Range("aten::item", at+50*sectiontest.Us, at+3100*sectiontest.Us)
		th.RangeByID("aten::copy_", at+60*sectiontest.Us, at+3090*sectiontest.Us)
		th.Launch("gemm", at, at+10*sectiontest.Us, tracetest.Kernel{Start: at + 100*sectiontest.Us, End: at + 1100*sectiontest.Us})
		th.StreamSynchronize(at+100*sectiontest.Us, at+3080*sectiontest.Us, 0, 7)
	}
	// Each gap is 1100 to 3300 µs: sync to 3080, host to 3200, launch to 3210, dependency to 3300.
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 2*1980*sectiontest.Us, "gpu.idle_cause_time", "cause", "sync", "device", "0")
	f := sectiontest.FindingOf(r, "sync")
	if f == nil || f.Severity != report.High {
		t.Fatalf("sync: %+v, want it high", f)
	}
	if f.Worth == nil || f.Worth.Time < 2*1980*sectiontest.Us {
		t.Errorf("worth %+v", f.Worth)
	}
	rows := sectiontest.FindTable(t, r, "sync", "sync_by_range").Rows
	if len(rows) != 1 {
		t.Fatalf("places: %v, want one", rows)
	}
	for i, want := range []report.Cell{report.S("aten::copy_"), report.S("aten::item < decode"), report.S("decode"), report.S("cudaStreamSynchronize"), report.I(3), report.I(3 * 2980 * sectiontest.Us)} {
		if !rows[0][i].Equal(want) {
			t.Errorf("column %d: %v, want %v", i, rows[0][i], want)
		}
	}
}

func TestSyncWithoutTables(t *testing.T) {
	r := sectiontest.Analyse(t, tracetest.Tiny(tracetest.WithoutTable(sectiontest.RuntimeTable)), analyze.Options{}).Report
	if s := sectiontest.SectionOf(t, r, "sync"); s.Status != report.Partial {
		t.Errorf("with the driver's records alone: %s", s.Status)
	}
	sectiontest.Metric(t, r, 2, "sync.record_count")
	sectiontest.NoMetric(t, r, "sync.count")
	r = sectiontest.Analyse(t, tracetest.Tiny(tracetest.WithoutTable(sectiontest.RuntimeTable), tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")), analyze.Options{}).Report
	if s := sectiontest.SectionOf(t, r, "sync"); s.Status != report.Unavailable || s.Reason == "" {
		t.Errorf("without either: %s %q", s.Status, s.Reason)
	}
	r = sectiontest.Analyse(t, tracetest.Tiny(tracetest.WithoutColumn(sectiontest.RuntimeTable, "globalTid")), analyze.Options{}).Report
	sectiontest.Metric(t, r, 289*sectiontest.Us, "sync.total_time")
	sectiontest.NoMetric(t, r, "sync.total_time", "pid", "100")
	if m := r.Find("sync.share", report.Labels{}); m == nil || m.Value != nil {
		t.Errorf("sync.share without threads: %+v, want null", m)
	}
	sectiontest.Metric(t, r, 239.0/289, "sync.gpu_busy_ratio")
}

// TestSyncSkipsBadRows: a call that ends before it starts is in no sum.
func TestSyncSkipsBadRows(t *testing.T) {
	b := tracetest.Tiny()
	b.API(tracetest.API{Name: "cudaDeviceSynchronize_v3020", Start: 500 * sectiontest.Us, End: 400 * sectiontest.Us, Correlation: 77})
	b.API(tracetest.API{Name: "cudaDeviceSynchronize_v3020", Start: 500 * sectiontest.Us, End: 500 * sectiontest.Us, Correlation: 78})
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 3, "sync.count")
	sectiontest.Metric(t, r, 289*sectiontest.Us, "sync.total_time")
	sectiontest.Metric(t, r, 0, "sync.total_time", "api", "cudaDeviceSynchronize")
}

// TestSyncOracle holds the blocking calls against NVIDIA's cuda_api_sum.
func TestSyncOracle(t *testing.T) {
	family := map[string]bool{"cudaDeviceSynchronize": true, "cudaStreamSynchronize": true, "cudaEventSynchronize": true, "cuCtxSynchronize": true, "cuStreamSynchronize": true, "cuEventSynchronize": true}
	sectiontest.EachOracle(t, "cuda_api_sum", func(t *testing.T, r *report.Report, rows []sectiontest.OracleRow) {
		var count, total float64
		for _, row := range rows {
			name := row.Text("Name")
			if !family[name] {
				continue
			}
			count += row.Num("Num Calls")
			total += row.Num("Total Time (ns)")
			sectiontest.Metric(t, r, row.Num("Num Calls"), "sync.count", "api", name)
			sectiontest.Metric(t, r, row.Num("Total Time (ns)"), "sync.total_time", "api", name)
			if m := r.Find("sync.total_time", report.Labels{"api": name}); m != nil {
				row.Summary(t, name, m.Summary, " (ns)", 1, 0.051)
			}
		}
		sectiontest.Metric(t, r, count, "sync.count")
		sectiontest.Metric(t, r, total, "sync.total_time")
	})
}
