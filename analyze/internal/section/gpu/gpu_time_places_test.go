package gpu_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Ten steps of 1 ms, each 400 µs of work and 600 of waiting in poll, inside of a range whose names differ in their numbers
// alone: one place, 600 of 1000. The last step has no end.
func TestIdleNamesThePlace(t *testing.T) {
	const us = sectiontest.Us
	b := sectiontest.Steps(11, func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+1, tracetest.Kernel{Start: at + 1, End: at + 400*us})
		th.Range("load batch "+strconv.FormatInt(at, 10), at+400*us, at+1000*us)
		th.OSRT("poll", at+400*us, at+990*us)
	})
	l := sectiontest.Look(t, b, analyze.Options{Unit: "kernel:gemm"})
	sectiontest.Metric(t, l.Report, 600*sectiontest.Us, "unit.idle_range_time", "range", "load batch #")
	f := sectiontest.FindingOf(l.Report, "gpu_idle")
	if f == nil || f.Place != "load batch #" || f.Title != "GPU idle 60.0 %: the main thread sits in `poll` inside `load batch #`, 600 µs of each step" {
		t.Errorf("%+v", f)
	}
	for _, word := range []string{"graph", "vLLM", "SGLang"} {
		if strings.Contains(strings.Join(f.Advice, " "), word) {
			t.Errorf("advice %q on %s, of a thread that waits in poll", f.Advice, word)
		}
	}
}

// Steps of 1 ms: 400 µs of work, 500 in poll inside of a range, 60 in a call inside of another, and 40 in a third,
// which is not named: 4 % of the step.
func TestIdleNamesOtherPlaces(t *testing.T) {
	const us = sectiontest.Us
	f := sectiontest.FindingOfSteps(t, "gpu_idle", func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+1, tracetest.Kernel{Start: at + 1, End: at + 400*us})
		th.Range("load", at+400*us, at+900*us)
		th.OSRT("poll", at+400*us, at+900*us)
		th.Range("sampler", at+900*us, at+960*us)
		th.Call("cuModuleLoadData", at+900*us, at+960*us)
		th.Range("log", at+960*us, at+1000*us)
	})
	const want = "GPU idle 60.0 %: the main thread sits in `poll` inside `load`, 500 µs of each step; " +
		"also in `cuModuleLoadData` and `sampler`"
	if f == nil || f.Title != want || f.Place != "load" {
		t.Errorf("%+v", f)
	}
}

// Steps of a kernel for whose 100 µs the thread waits, a time in `forward`, another kernel, and poll for 500 µs.
// Without the wait a step is 105 µs shorter, which another finding says. Of 200 µs in `forward` at least 95 are left
// for this one, of 510 in all: less than 30 %. Of 400 they are 295 of 710.
func TestIdleOfOtherFindingsIsNoPlace(t *testing.T) {
	const us = sectiontest.Us
	for in, want := range map[int64]string{
		200: "in the other 62.6 %, the main thread sits in `poll`; also in `forward`",
		400: "in the other 70.0 %, the main thread sits in `poll` inside `forward`, at least 295 µs of each step",
	} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		for i := range int64(20) {
			at := (1000 + (615+in)*i) * us
			th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 105*us})
			th.StreamSynchronize(at+5*us, at+110*us, 0, 7)
			at += (110 + in) * us
			th.Range("forward", at-in*us, at)
			th.OSRT("poll", at-in*us, at)
			th.Launch("norm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 105*us})
			th.OSRT("poll", at+5*us, at+505*us)
		}
		f := sectiontest.FindingOf(sectiontest.Analyse(t, b, analyze.Options{}).Report, "gpu_idle")
		if f == nil || !strings.HasSuffix(f.Title, want) {
			t.Errorf("%+v, want %s", f, want)
		}
	}
}

// A window of one gap of 5305 µs, of which the thread waits for 300, which another finding has, and then sits in poll.
// That one gap is most of the idle time is said of the rest, too.
func TestOneGapIsToldBesideOtherFindings(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("gemm", 0, 5*us, tracetest.Kernel{Start: 5 * us, End: 105 * us})
	th.StreamSynchronize(10*us, 405*us, 0, 7)
	th.OSRT("poll", 405*us, 5405*us)
	th.Launch("norm", 5405*us, 5410*us, tracetest.Kernel{Start: 5410 * us, End: 5510 * us})
	f := sectiontest.FindingOf(sectiontest.Analyse(t, b, analyze.Options{}).Report, "gpu_idle")
	const want = "GPU idle 96.4 %: 5.4 % in other findings; in the other 90.9 %, the main thread sits in `poll`"
	if f == nil || f.Title != want || !strings.HasPrefix(f.Advice[0], "One gap is most of that idle time") {
		t.Errorf("%+v", f)
	}
}

// Forty steps of 1 ms that each idle for 45 µs behind launched work, and for 55 after a wait; once the thread reads for
// 20 ms after it. The finding on waits has that gap, so that it is not most of what is left: of 45 µs in each step.
func TestOneGapOfAnotherFindingIsNotOfTheRest(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	at := int64(1000 * us)
	for i := range int64(40) {
		th.Range("execute_context_0(0)_generation_8(8)", at-60*us, at-10*us)
		th.Launch("gemm", at-50*us, at-45*us, tracetest.Kernel{Start: at, End: at + 600*us})
		th.Launch("norm", at-40*us, at-35*us, tracetest.Kernel{Start: at + 600*us, End: at + 900*us})
		th.StreamSynchronize(at-30*us, at+905*us, 0, 7)
		at += 1000 * us
		if i == 20 {
			at += 20_000 * us
		}
	}
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	f := sectiontest.FindingOf(r, "gpu_idle")
	if f == nil || !strings.Contains(f.Title, "37.5 % in other findings; 3.0 % behind launched work") ||
		strings.HasPrefix(f.Advice[0], "One gap is most") {
		t.Errorf("%+v", f)
	}
}

// Ten steps of 500 µs, each 100 kernels of 4 µs that are queued long before they run, with 1 µs between them: 99 + 1 gaps
// and 20 % of the step is idle behind launched work. Where one gap is 100 µs it is not short, and what it waits for not known.
func TestShortGapsAreTold(t *testing.T) {
	for _, c := range []struct {
		kernels, gap int64
		want         string
	}{
		{100, 1, "GPU idle 20.0 %: 20.0 % behind launched work, most of it in short gaps before queued kernels, 1 µs on average, launched inside `forward`"},
		{1, 100, "GPU idle 20.0 %: 20.0 % behind launched work, and what it waits for is not resolved, launched inside `forward`"},
	} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		th.Range("forward", 0, 2000)
		for i := range 11 * c.kernels {
			start := sectiontest.Us * (10 + 5*i*c.gap)
			th.Launch("k"+strconv.Itoa(int(i%c.kernels)), i, i+1, tracetest.Kernel{Start: start, End: start + 4*c.gap*sectiontest.Us})
		}
		l := sectiontest.Look(t, b, analyze.Options{Unit: "kernel:^k0$"})
		if f := sectiontest.FindingOf(l.Report, "gpu_idle"); f == nil || f.Title != c.want || len(f.Advice) == 0 {
			t.Errorf("%+v, want %q", f, c.want)
		}
	}
}

// Eleven steps of 1 ms, of which a thread launches each kernel a while after the one before has ended. Twenty gaps of 30 µs
// are a thread that launches too slowly; five are not, nor are twenty of which one is more than a third of the time. In the
// last case twelve gaps of 10 µs are in the first 180 µs, and the last kernel lasts to the end of the step.
func TestSlowLaunchesAreTold(t *testing.T) {
	const us, unexplained = sectiontest.Us, "the main thread does not launch, and no reason was recorded"
	same := func(n int, work, gap int64) (list [][2]int64) {
		for range n {
			list = append(list, [2]int64{work, gap})
		}
		return list
	}
	for name, c := range map[string]struct {
		kernels [][2]int64 // µs of work, and of the host after it
		want    string
	}{
		"many": {same(20, 20, 30), "the main thread launches more slowly than the GPU works, in 20 gaps of each step"},
		"few":  {same(5, 80, 120), unexplained},
		"one":  {append(same(19, 20, 10), [2]int64{20, 410}), unexplained},
		"early": {append(same(12, 5, 10), [2]int64{820, 0}),
			"the main thread launches more slowly than the GPU works, in 12 gaps of each step, most of it in its first fifth: the queue is empty when a step begins"},
	} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		at := int64(0)
		for range 11 {
			for i, k := range c.kernels {
				th.Launch("k"+strconv.Itoa(i), at, at+1, tracetest.Kernel{Start: at + 1, End: at + k[0]*us})
				at += (k[0] + k[1]) * us
			}
		}
		f := sectiontest.FindingOf(sectiontest.Look(t, b, analyze.Options{Unit: "kernel:^k0$"}).Report, "gpu_idle")
		if f == nil || f.Title[strings.Index(f.Title, ": ")+2:] != c.want {
			t.Errorf("%s: %+v, want %q", name, f, c.want)
		}
	}
}

// Six of ten ms are idle behind work that was launched at once: in one wait of 5 ms and five short ones, or in six of 1 ms.
func TestOneWaitIsNamed(t *testing.T) {
	const ms = 1000 * sectiontest.Us
	for _, c := range []struct {
		waits []int64
		want  string
	}{
		{[]int64{200, 5000, 200, 200, 200, 200}, "GPU idle 60.0 %: 60.0 % behind launched work, most of it one wait of 5 ms before `k2`, and what that waits for is not resolved"},
		{[]int64{1000, 1000, 1000, 1000, 1000, 1000}, "GPU idle 60.0 %: 60.0 % behind launched work, and what it waits for is not resolved"},
	} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		at := int64(100)
		for i, wait := range append([]int64{0}, c.waits...) {
			at += wait * sectiontest.Us
			end := at + 4*ms/7
			if i == len(c.waits) {
				end = 100 + 10*ms
			}
			th.Launch("k"+strconv.Itoa(i), int64(2*i), int64(2*i+1), tracetest.Kernel{Start: at, End: end})
			at = end
		}
		f := sectiontest.FindingOf(sectiontest.Look(t, b, analyze.Options{}).Report, "gpu_idle")
		if f == nil || f.Title != c.want {
			t.Errorf("%+v, want %q", f, c.want)
		}
	}
}

// A tenth of the window is idle while its only other launch loads code for 100 µs.
func TestOneLaunchIsNamed(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("a", 0, 1, tracetest.Kernel{Start: 1, End: 400 * sectiontest.Us})
	th.Launch("b", 400*sectiontest.Us, 500*sectiontest.Us, tracetest.Kernel{Start: 500 * sectiontest.Us, End: 1000 * sectiontest.Us})
	f := sectiontest.FindingOf(sectiontest.Look(t, b, analyze.Options{}).Report, "gpu_idle")
	if f == nil || f.Title != "GPU idle 10.0 %: one call of `cudaLaunchKernel` takes 100 µs" || !strings.Contains(f.Advice[0], "loads its code") {
		t.Errorf("%+v", f)
	}
}

// Steps of 1 ms with 600 µs of waiting, of which a thread without CUDA calls is in its reader for 540: it is named. A range
// that is open all the time is not.
func TestAnotherThreadIsNamed(t *testing.T) {
	const ms = 1000 * sectiontest.Us
	for _, always := range []bool{false, true} {
		b := tracetest.New()
		p := b.Process(1, "p")
		th, reader := p.Thread(1, ""), p.Thread(2, "reader")
		for i := range int64(11) {
			at := i * ms
			th.Launch("gemm", at, at+1, tracetest.Kernel{Start: at + 1, End: at + 400*sectiontest.Us})
			if !always {
				reader.Range("[DataReader] Run", at+450*sectiontest.Us, at+990*sectiontest.Us)
			}
		}
		if always {
			reader.Range("[DataReader] Run", 0, 11*ms)
		}
		f := sectiontest.FindingOf(sectiontest.Look(t, b, analyze.Options{Unit: "kernel:gemm"}).Report, "gpu_idle")
		if f == nil || strings.Contains(f.Title, "; thread `reader` is in `[DataReader] Run` meanwhile, 90.0 % of that time") == always ||
			strings.Contains(f.Advice[0], "waits for its input") == always {
			t.Errorf("always %v: %+v", always, f)
		}
	}
}
