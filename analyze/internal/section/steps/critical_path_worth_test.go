package steps_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// paced is twelve steps of 1 ms. In each, in µs: the gemm is launched 0–4 and runs 7–607, the norm is launched 6–10 and runs
// 608–908, the host waits 20–912 and goes on 88 later.
func paced() *tracetest.Builder {
	const us = sectiontest.Us
	return sectiontest.Steps(12, func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+4*us, tracetest.Kernel{Start: at + 7*us, End: at + 607*us})
		th.Launch("norm", at+6*us, at+10*us, tracetest.Kernel{Start: at + 608*us, End: at + 908*us})
		th.StreamSynchronize(at+20*us, at+912*us, 0, 7)
	})
}

// A gemm of half its time gains 300 of 1000 µs, a norm 150. Without the wait the GPU never waits: 600 + 1 + 300 + 1, 98 are
// gained; with a free host, 96 (the launch still takes 3): it is the fourth, and always shown.
func TestWhatIfsOfAStep(t *testing.T) {
	l := sectiontest.Look(t, paced(), analyze.Options{Unit: "kernel:gemm"})
	tab := l.Table("critical_path", "what_ifs")
	l.Row(tab, 0, "change", `"--speedup kernel:gemm=2x"`, "time", "300000", "share", "0.3")
	l.Row(tab, 1, "change", `"--speedup kernel:norm=2x"`, "time", "150000", "share", "0.15")
	l.Row(tab, 2, "change", `"--no-sync *Synchronize"`, "time", "98000", "share", "0.098")
	l.Row(tab, 3, "change", `"--host-free"`, "time", "96000", "share", "0.096")
	if len(tab.Rows) != 4 {
		t.Errorf("%d rows", len(tab.Rows))
	}
}

// One of twelve steps idles 60 ms longer: the interval of what a free host gains reaches beyond the idle time of the mean
// step, which is all that there is to gain.
func TestAFreeHostGainsNoMoreThanTheIdleTime(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th, at := b.Process(1, "loop").Thread(1, ""), int64(1000*us)
	for i := range int64(12) {
		th.Launch("gemm", at, at+4*us, tracetest.Kernel{Start: at + 7*us, End: at + 607*us})
		th.StreamSynchronize(at+20*us, at+612*us, 0, 7)
		at += 1000 * us
		if i == 6 {
			at += 60_000 * us
		}
	}
	r := sectiontest.Analyse(t, b, analyze.Options{Unit: "kernel:gemm"}).Report
	idle := r.Find("unit.gpu_idle", nil).Summary.Mean
	l := sectiontest.Looker{TB: t, Report: r}
	tab := l.Table("critical_path", "what_ifs")
	for i := range tab.Rows {
		if ns, _ := tab.Num(i, "time"); tab.Str(i, "change") == "--host-free" && (ns > idle+1 || ns < 0.9*idle) {
			t.Errorf("%v of %v idle", ns, idle)
		} else if tab.Str(i, "change") == "--host-free" {
			return
		}
	}
	t.Error("no free host")
}

// Of 40 of 64 kernels it is not known what launched them: no change is replayed, and a note says why.
func TestWhatIfsOfWorkWithoutCalls(t *testing.T) {
	b := paced()
	for i := range int64(40) {
		at := 1000*sectiontest.Us + i*300*sectiontest.Us
		b.Kernel(tracetest.Kernel{Place: tracetest.Place{Stream: 9, Correlation: 90_000 + i}, Name: "lost", Start: at, End: at + 10*sectiontest.Us})
	}
	r := sectiontest.Analyse(t, b, analyze.Options{Unit: "kernel:gemm"}).Report
	for i := range r.Sections {
		if s := &r.Sections[i]; s.ID == "critical_path" {
			for _, tab := range s.Tables {
				if tab.ID == "what_ifs" {
					t.Errorf("%d what-ifs of a graph that does not resolve", len(tab.Rows))
				}
			}
			if notes := strings.Join(s.Notes, " "); !strings.Contains(notes, "of the work without a launching call") {
				t.Errorf("notes: %s", notes)
			}
		}
	}
}

// Ten steps of 1 ms: main launches two kernels at 0 and 10 and waits, the autograd thread launches one at 300. Both are in
// the step that is shown, main first; the thread that makes calls and launches nothing is not.
func TestEveryLaunchingThreadIsShown(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	p := b.Process(1, "train")
	main, autograd, other := p.Thread(1, "main"), p.Thread(2, "pt_autograd_0"), p.Thread(3, "other")
	for i := range int64(10) {
		at := 1000*us + i*1000*us
		main.Launch("gemm", at, at+4*us, tracetest.Kernel{Start: at + 10*us, End: at + 110*us})
		main.Launch("norm", at+10*us, at+14*us, tracetest.Kernel{Start: at + 111*us, End: at + 200*us})
		autograd.Launch("softmax", at+300*us, at+305*us, tracetest.Kernel{Start: at + 310*us, End: at + 900*us})
		other.Call("cudaEventQuery_v3020", at+500*us, at+501*us)
		main.StreamSynchronize(at+400*us, at+910*us, 0, 7)
	}
	r := sectiontest.Analyse(t, b, analyze.Options{Unit: "kernel:gemm"}).Report
	s := r.Unit.Steps.List[0].Shown[0]
	if s.Thread != "main" || len(s.Others) != 1 || s.Others[0].Thread != "pt_autograd_0" {
		t.Fatalf("%s and %+v", s.Thread, s.Others)
	}
	// A step starts with its gemm, 10 µs behind its launch.
	calls := s.Others[0].Events()
	if len(calls) != 1 || calls[0].Start != 290*us || calls[0].Duration != 5*us {
		t.Errorf("calls %+v", calls)
	}
}

// Between two steps the thread sleeps for 50 µs in a data loader: that is time outside of the graph. How many waits were for
// Python's lock is not known.
func TestTimeOutsideIsPrinted(t *testing.T) {
	const us = sectiontest.Us
	b := sectiontest.Steps(12, func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+4*us, tracetest.Kernel{Start: at + 7*us, End: at + 607*us})
		th.StreamSynchronize(at+20*us, at+612*us, 0, 7)
		th.OSRT("poll", at+700*us, at+750*us)
	})
	l := sectiontest.Look(t, b, analyze.Options{Unit: "kernel:gemm"})
	sectiontest.Metric(t, l.Report, 11*50*us, "path.outside_time")
	for _, found := range []string{"recorded", "inferred", "work", "process"} {
		sectiontest.Metric(t, l.Report, 0, "path.thread_waits", "found", found)
	}
	sectiontest.NoMetric(t, l.Report, "path.lock_waits") // nobody knows
}
