package cpu_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

const us = sectiontest.Us

// late is one gap, from 100 to 1000 µs. The call that ends it runs from 990 to 995, and a blocking one ran to 140: 850 µs are
// the host's. Of these cudaMalloc takes 150-200, the call within it nothing; the profiler 200-230, of 190-230; read
// 230-300, of 220-300, and futex 350-400, while ioctl was within cudaMalloc; from 500 to 620 the thread is on no CPU. 850 - 50
// - 30 - 120 - 120 = 530 are left.
func late() *tracetest.Builder {
	b := tracetest.New()
	p := b.Process(1, "server")
	th := p.Thread(1, "")
	th.Launch("gemm", 0, us, tracetest.Kernel{Start: 0, End: 100 * us})
	th.StreamSynchronize(90*us, 140*us, 0, 7)
	th.Call("cudaMalloc_v3020", 150*us, 200*us)
	th.Call("cuMemAlloc_v2", 160*us, 190*us)
	b.Overhead(tracetest.Overhead{Thread: th, Name: "CUPTI buffer flush", Start: 190 * us, End: 230 * us})
	th.OSRT("ioctl", 160*us, 170*us)
	b.OSRT(tracetest.OSRT{Thread: th, Name: "read", Start: 220 * us, End: 300 * us, Stack: []tracetest.Frame{
		{Function: "__read", Module: "/lib/libc.so.6"}, {Function: "load", Module: "/srv/app.so"}, {Function: "main", Module: "/srv/app"}}})
	th.OSRT("futex", 350*us, 400*us)
	th.Ran(3, 0, 500*us)
	th.Ran(4, 620*us, 1200*us)
	other := b.Process(2, "/usr/bin/stress").Thread(9, "")
	other.Ran(3, 510*us, 600*us)
	th.Range("schedule", 300*us, 700*us)
	th.Range("Waiting for GIL", 640*us, 700*us)
	main := tracetest.Frame{Function: "main", Module: "/srv/app"}
	schedule := tracetest.Frame{Function: "Scheduler.schedule", Module: "/srv/app"}
	for at, stack := range map[int64][]tracetest.Frame{
		120: {main}, // in the blocking call
		160: {{Function: "malloc", Module: "/lib/libc.so.6"}, main},
		310: {schedule, schedule, main}, // which calls itself
		320: {{Function: "hash", Module: "/srv/app"}, schedule, main},
		650: {{Function: "0x7f001234", Module: "/lib/libpython3.so"}, main},
		995: {main}, // after the launching call began
	} {
		b.Sample(tracetest.Sample{Thread: th, At: at * us, CPU: 3, Stack: stack})
	}
	b.Sample(tracetest.Sample{Thread: other, At: 520 * us, CPU: 3, Stack: []tracetest.Frame{main}})
	th.Launch("gemm", 990*us, 995*us, tracetest.Kernel{Start: 1000 * us, End: 1100 * us})
	return b
}

func TestWhyTheHostWasLate(t *testing.T) {
	l := sectiontest.Look(t, late(), analyze.Options{})
	l.Status("host_idle", report.OK)
	sectiontest.Metric(t, l.Report, 850*us, "gpu.idle_cause_time", "device", "0", "cause", "host")
	for cause, want := range map[string]float64{"api": 50, "profiler": 30, "os_call": 120, "not_scheduled": 120,
		"running": 530, "unknown": 0} {
		sectiontest.Metric(t, l.Report, want*us, "gpu.host_cause_time", "device", "0", "cause", cause)
	}
	sectiontest.Metric(t, l.Report, 50*us, "host.call_time", "cause", "api", "call", "cudaMalloc")
	sectiontest.Metric(t, l.Report, 30*us, "host.call_time", "cause", "profiler", "call", "[profiler]")
	sectiontest.Metric(t, l.Report, 70*us, "host.call_time", "cause", "os_call", "call", "read")
	sectiontest.Metric(t, l.Report, 50*us, "host.call_time", "cause", "os_call", "call", "futex")
	sectiontest.NoMetric(t, l.Report, "host.call_time", "cause", "os_call", "call", "ioctl")
	for group, want := range map[string]float64{"disk": 70, "lock": 50, "device": 0, "network": 0, "sleep": 0, "memory": 0,
		"process": 0, "other": 0} {
		sectiontest.Metric(t, l.Report, want*us, "host.os_time", "group", group)
	}
	sectiontest.Metric(t, l.Report, 340*us, "host.range_time", "range", "schedule")
	sectiontest.Metric(t, l.Report, 60*us, "host.gil_time")
	sectiontest.Metric(t, l.Report, 4, "host.sample_count") // at 160, 310, 320 and 650
	sectiontest.Metric(t, l.Report, 1, "host.frame_ratio", "frame", "main")
	sectiontest.Metric(t, l.Report, 0.5, "host.frame_ratio", "frame", "Scheduler.schedule")
	sectiontest.Metric(t, l.Report, 0.25, "host.frame_ratio", "frame", "[unresolved in libpython3.so]")
	sectiontest.Metric(t, l.Report, 2, "host.thread_count")
	sectiontest.Metric(t, l.Report, 2, "host.cpu_count") // 3 and 4

	calls := l.Table("host_idle", "host_calls")
	l.Row(calls, 0, "call", `"read"`, "group", `"disk"`, "count", "1", "time", "70000", "stack", `"__read ← load ← main"`, "stack_time", "70000")
	ranges := l.Table("host_idle", "host_ranges")
	l.Row(ranges, 0, "range_name", `"(no range)"`, "time", "450000") // 850 - 400
	if got := l.Sum(ranges, "time"); got != 850*us {
		t.Errorf("ranges sum to %v", got)
	}
	frames := l.Table("host_idle", "host_frames")
	// Wilson's interval of 2 of 4 is 0.5 ± 0.35 (0.1500 to 0.8500).
	for i := range frames.Rows {
		if l.Cell(frames, i, "frame") == `"Scheduler.schedule"` {
			l.Row(frames, i, "samples", "2", "self", "1", "module", `"app"`)
			low, _ := frames.Rows[i][5].Num()
			if math.Abs(low-0.15) > 1e-3 {
				t.Errorf("interval from %v", low)
			}
		}
	}
	// Of 120 µs on no CPU another process had CPU 3 for 90.
	instead := l.Table("host_idle", "host_instead")
	l.Row(instead, 0, "process", `"stress"`, "pid", "2", "tid", "9", "time", "90000", "share", "0.75")
	l.Row(instead, 1, "time", "30000", "pid", "null")
	sumsClose(t, l.Report)
}

// gapWith is one gap of 1000 µs, all of it the host's, between two kernels of 100 µs.
func gapWith(say func(b *tracetest.Builder, th *tracetest.Thread)) *tracetest.Builder {
	b := tracetest.New()
	th := b.Process(1, "server").Thread(1, "")
	th.Launch("gemm", 0, us, tracetest.Kernel{Start: 0, End: 100 * us})
	th.Launch("gemm", 1100*us, 1101*us, tracetest.Kernel{Start: 1100 * us, End: 1200 * us})
	say(b, th)
	return b
}

func TestFindingsNameTheReason(t *testing.T) {
	for want, say := range map[string]func(b *tracetest.Builder, th *tracetest.Thread){
		"the main thread is on no CPU": func(_ *tracetest.Builder, th *tracetest.Thread) {
			th.Ran(0, 0, 100*us)
			th.Ran(0, 900*us, 1200*us)
		},
		"the main thread sits in `pthread_cond_wait`": func(_ *tracetest.Builder, th *tracetest.Thread) {
			th.Ran(0, 0, 1200*us)
			th.OSRT("pthread_cond_wait", 200*us, 900*us)
		},
		"the main thread sits in `pthread_cond_wait` inside `fetch batch`, 850 µs": func(_ *tracetest.Builder, th *tracetest.Thread) {
			th.Ran(0, 0, 1200*us)
			th.OSRT("pthread_cond_wait", 200*us, 900*us)
			th.Range("fetch batch", 150*us, 1000*us)
		},
		"the main thread is in `cuModuleLoadData`": func(_ *tracetest.Builder, th *tracetest.Thread) {
			th.Ran(0, 0, 1200*us)
			th.Call("cuModuleLoadData", 200*us, 900*us)
		},
		"the main thread runs code between launches": func(_ *tracetest.Builder, th *tracetest.Thread) { th.Ran(0, 0, 1200*us) },
		"the main thread runs code between launches; no range holds 30 % of that": func(_ *tracetest.Builder,
			th *tracetest.Thread) {
			th.Ran(0, 0, 1200*us)
			th.Range("short", 200*us, 210*us)
		},
		"the main thread does not launch, and no reason was recorded": func(*tracetest.Builder, *tracetest.Thread) {},
	} {
		l := sectiontest.Look(t, gapWith(say), analyze.Options{})
		l.Finding("gpu_idle", report.High)
		if f := sectiontest.FindingOf(l.Report, "gpu_idle"); f == nil || f.Title[strings.Index(f.Title, ": ")+2:] != want {
			t.Errorf("%+v, want %q", f, want)
		}
		for _, other := range []string{"host_profiler", "host_gil", "host_frame"} {
			l.Finding(other, "")
		}
		sumsClose(t, l.Report)
	}
	for id, x := range map[string]struct {
		want report.Severity
		say  func(b *tracetest.Builder, th *tracetest.Thread)
	}{
		"host_profiler": {report.Medium, func(b *tracetest.Builder, th *tracetest.Thread) {
			th.Ran(0, 0, 1200*us)
			b.Overhead(tracetest.Overhead{Thread: th, Name: "flush", Start: 200 * us, End: 300 * us})
		}},
		"host_frame": {sectiontest.Remark, func(b *tracetest.Builder, th *tracetest.Thread) {
			th.Ran(0, 0, 1200*us)
			for i := range int64(40) { // 30 of 40: from 60 to 86 %
				stack := []tracetest.Frame{{Function: "_PyEval_EvalFrameDefault", Module: "python"}}
				if i < 30 {
					stack = []tracetest.Frame{{Function: "tokenize", Module: "app"}, stack[0]}
				}
				b.Sample(tracetest.Sample{Thread: th, At: 200*us + i, Stack: stack})
			}
		}},
	} {
		l := sectiontest.Look(t, gapWith(x.say), analyze.Options{})
		l.Finding(id, x.want)
		sumsClose(t, l.Report)
	}
}

// Of 40 samples of Python in the gap 30 are in the scheduler, 20 of them in its tokenizer, which is innermost there; the
// rest only in the loop, which is on every stack. Samples outside of the gap, of another thread and in another domain do
// not count.
func TestPythonStacks(t *testing.T) {
	loop := tracetest.PythonFrame{Function: "run", File: "/opt/serve/engine/core.py", Line: 90}
	schedule := tracetest.PythonFrame{Function: "Scheduler.schedule", File: "/opt/serve/sched/scheduler.py", Line: 300}
	tokenize := tracetest.PythonFrame{Function: "tokenize", File: "/opt/serve/sched/tok.py", Line: 7}
	l := sectiontest.Look(t, gapWith(func(b *tracetest.Builder, th *tracetest.Thread) {
		for i := range int64(40) {
			stack := []tracetest.PythonFrame{loop}
			if i < 30 {
				at := schedule
				at.Line += i % 3 / 2 // 300, 300, 301, …
				stack = []tracetest.PythonFrame{at, loop}
			}
			if i < 20 {
				stack = append([]tracetest.PythonFrame{tokenize}, stack...)
			}
			b.PythonSample(tracetest.PythonSample{Thread: th, At: 200*us + i, Stack: stack})
		}
		one := []tracetest.PythonFrame{tokenize}
		b.PythonSample(tracetest.PythonSample{Thread: th, At: 50 * us, Stack: one})   // the GPU works
		b.PythonSample(tracetest.PythonSample{Thread: th, At: 1150 * us, Stack: one}) // likewise
		b.PythonSample(tracetest.PythonSample{Thread: th.Process().Thread(77, ""), At: 300 * us, Stack: one})
		b.PythonSample(tracetest.PythonSample{Thread: th, At: 300 * us, Stack: one,
			Set: tracetest.Row{"domainId": tracetest.Int(3)}})
	}), analyze.Options{})
	sectiontest.Metric(t, l.Report, 40, "host.python_sample_count")
	for frame, want := range map[string]float64{
		"Scheduler.schedule (sched/scheduler.py)": 0.75, "tokenize (sched/tok.py)": 0.5, "run (engine/core.py)": 1,
	} {
		sectiontest.Metric(t, l.Report, want, "host.python_ratio", "frame", frame)
	}
	python := l.Table("host_idle", "host_python")
	l.Row(python, 0, "frame", `"tokenize (sched/tok.py)"`, "line", "7", "samples", "20", "self", "20", "share", "0.5")
	l.Row(python, 1, "frame", `"run (engine/core.py)"`, "line", "90", "samples", "40", "self", "10", "share", "1")
	l.Row(python, 2, "frame", `"Scheduler.schedule (sched/scheduler.py)"`, "line", "300", "samples", "30", "self", "10",
		"share", "0.75")
	l.Finding("host_frame", sectiontest.Remark)
	for _, f := range l.Report.Remarks {
		if f.ID == "host_frame" && f.Evidence[0].Labels["frame"] != "Scheduler.schedule (sched/scheduler.py)" {
			t.Errorf("the finding names %v", f.Evidence[0].Labels)
		}
	}
}

// An export without the payloads says how to get them, and a capture of Python without samples what records them.
func TestPythonStacksAreMissing(t *testing.T) {
	l := sectiontest.Look(t, gapWith(func(b *tracetest.Builder, th *tracetest.Thread) {
		b.PythonSample(tracetest.PythonSample{Thread: th, At: 200 * us, Set: tracetest.Row{"binaryData": tracetest.Null()}})
	}), analyze.Options{})
	sectiontest.NoMetric(t, l.Report, "host.python_sample_count")
	noted(t, l, "The stacks of 1 samples of Python are not in this export")
	b := tracetest.New()
	th := b.Process(1, "python3").Thread(1, "")
	th.Launch("gemm", 0, us, tracetest.Kernel{Start: 0, End: 100 * us})
	th.Launch("gemm", 1100*us, 1101*us, tracetest.Kernel{Start: 1100 * us, End: 1200 * us})
	l = sectiontest.Look(t, b, analyze.Options{})
	noted(t, l, "nsys profile --python-sampling=true")
}

func noted(t *testing.T, l sectiontest.Looker, text string) {
	t.Helper()
	if notes := l.Section("host_idle").Notes; !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, text) }) {
		t.Errorf("no note with %q in %q", text, notes)
	}
}

// Who holds Python's lock is no range of the program: what runs within it keeps its own.
func TestHoldingTheLockIsNoRange(t *testing.T) {
	l := sectiontest.Look(t, gapWith(func(_ *tracetest.Builder, th *tracetest.Thread) {
		th.Range("step", 50*us, 1200*us)
		th.Range("Holding GIL", 60*us, 1190*us)
		th.Range("Waiting for GIL", 400*us, 500*us)
	}), analyze.Options{})
	sectiontest.Metric(t, l.Report, 900*us, "host.range_time", "range", "step")
	sectiontest.Metric(t, l.Report, 100*us, "host.gil_time")
	sectiontest.NoMetric(t, l.Report, "host.range_time", "range", "Holding GIL")
	sectiontest.Metric(t, l.Report, 2, "nvtx.count")
}

// What the capture lacks is said with the flag that records it.
func TestWhatIsMissingIsNamed(t *testing.T) {
	l := sectiontest.Look(t, gapWith(func(*tracetest.Builder, *tracetest.Thread) {}), analyze.Options{})
	l.Status("host_idle", report.Partial)
	want := "the capture lacks calls of the operating system (--trace=…,osrt); the scheduler's switches (--cpuctxsw=process-tree); CPU samples with call stacks (--sample=process-tree)"
	if got := l.Section("host_idle").Reason; got != want {
		t.Errorf("reason %q", got)
	}
	sectiontest.NoMetric(t, l.Report, "host.os_time", "group", "disk")
	sectiontest.NoMetric(t, l.Report, "host.gil_time")
	sectiontest.NoMetric(t, l.Report, "host.thread_count")
}

// A gap that a blocking call fills has no host time, and one without an API row neither.
func TestNoHostTime(t *testing.T) {
	b := tracetest.New()
	b.Kernel(tracetest.Kernel{Name: "gemm", Start: 0, End: 100})
	b.Kernel(tracetest.Kernel{Name: "gemm", Start: 200, End: 300})
	l := sectiontest.Look(t, b, analyze.Options{})
	l.Status("host_idle", report.NotApplicable)
}

// Steps of 1000 µs with a kernel of 600; the host calls read for 100 and runs for 300, as a switch says. Every unit has the same.
func TestHostTimeOfUnits(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "server").Thread(1, "")
	th.Ran(0, 0, 20_000*us)
	for i := range int64(12) {
		at := i * 1000 * us
		th.Launch("gemm", at, at, tracetest.Kernel{Start: at, End: at + 600*us})
		th.OSRT("read", at+700*us, at+800*us)
	}
	l := sectiontest.Look(t, b, analyze.Options{Unit: "kernel:gemm"})
	for cause, want := range map[string]float64{"os_call": 100, "running": 300} {
		sectiontest.Metric(t, l.Report, want*us, "unit.host_cause_time", "cause", cause)
		sectiontest.Metric(t, l.Report, want*us, "unit.host_cause_time", "cause", cause, "device", "0")
	}
	sectiontest.Metric(t, l.Report, 100*us, "unit.host_call_time", "call", "read", "cause", "os_call")
	sectiontest.NoMetric(t, l.Report, "unit.host_cause_time", "cause", "api") // which no unit has
	sumsClose(t, l.Report)
}

// Each ns belongs to the first cause that applies: a slow program that asks for every ns agrees, whatever overlaps.
func TestEveryNanosecondHasOneCause(t *testing.T) {
	names := [...]string{"api", "profiler", "os_call", "not_scheduled", "running", "unknown"}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 21))
		b := tracetest.New()
		p := b.Process(1, "p")
		const length = 3000
		threads := 1 + r.IntN(2)
		var did [2][5][length]bool // sync, api, profiler, os_call, not scheduled
		var switched [2]bool
		var list []*tracetest.Thread
		for th := range threads {
			x := p.Thread(int64(10+th), "")
			list = append(list, x)
			mark := func(layer int, most, longest int, add func(from, to int64)) {
				for range r.IntN(most) {
					from := r.IntN(length - longest)
					to := from + r.IntN(longest)
					add(int64(from), int64(to))
					for at := from; at < to; at++ {
						did[th][layer][at] = true
					}
				}
			}
			mark(0, 4, 200, func(from, to int64) { x.StreamSynchronize(from, to, 0, 7) })
			mark(1, 8, 150, func(from, to int64) { x.Call("cudaFuncGetAttributes", from, to) })
			mark(2, 4, 100, func(from, to int64) {
				b.Overhead(tracetest.Overhead{Thread: x, Name: "flush", Start: from, End: to})
			})
			mark(3, 12, 250, func(from, to int64) { x.OSRT("read", from, to) })
			if switched[th] = r.IntN(2) == 0; switched[th] {
				on := r.IntN(2) == 0
				at := 0
				for at < length {
					next := min(length, at+1+r.IntN(700))
					for k := at; k < next; k++ {
						did[th][4][k] = !on
					}
					on = !on
					at = next
					b.Switch(tracetest.Switch{Thread: x, At: int64(at), CPU: int64(r.IntN(3)), In: on})
				}
			}
		}
		want := map[string]int64{}
		at, first := int64(0), true
		for at < length-200 {
			th := r.IntN(threads)
			end := at + 1 + r.Int64N(60)
			if first {
				list[th].Launch("gemm", at, at, tracetest.Kernel{Start: at, End: end})
				at, first = end, false
				continue
			}
			start := at + r.Int64N(300)
			start = min(start, length-1)
			call := max(0, start-r.Int64N(40))
			list[th].Launch("gemm", call, call, tracetest.Kernel{Start: start, End: start + 5})
			for ns := at; ns < call; ns++ {
				d := &did[th]
				switch {
				case d[0][ns]:
				case d[1][ns]:
					want["api"]++
				case d[2][ns]:
					want["profiler"]++
				case d[3][ns]:
					want["os_call"]++
				case d[4][ns]:
					want["not_scheduled"]++
				case switched[th]:
					want["running"]++
				default:
					want["unknown"]++
				}
			}
			at = start + 5
		}
		l := sectiontest.Look(t, b, analyze.Options{})
		sumsClose(t, l.Report)
		for _, name := range names {
			m := l.Report.Find("gpu.host_cause_time", report.Labels{"device": "0", "cause": name})
			var got int64
			if m != nil {
				got = int64(*m.Value)
			}
			if got != want[name] {
				t.Errorf("seed %d: %s = %d ns, asked for every ns %d", seed, name, got, want[name])
			}
		}
		if t.Failed() {
			t.Fatal("seed " + strconv.FormatUint(seed, 10))
		}
	}
}

// Beyond 1,024 devices nobody looks up what the thread did. Device i works from 10 i + 6 µs on, which a call from 10 i to 10 i + 5
// launches: of the 10 i - 6 µs before, the i - 1 calls in between took 5 each.
func TestDevicesBeyondThoseThatAreLookedUp(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	for i := range int64(1026) {
		th.Launch("k", 10*i*us, (10*i+5)*us, tracetest.Kernel{Place: tracetest.Place{Device: i}, Start: (10*i + 6) * us, End: (10*i + 2000) * us})
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.WantStatus(t, l.Report, "host_idle", report.Partial, "what threads did is looked up for 1024 of 1026 devices, and is unknown for the others")
	sectiontest.Metric(t, l.Report, 5*1022*1023/2*us, "host.call_time", "cause", "api", "call", "cudaLaunchKernel")
	causes := l.Table("host_idle", "host_causes")
	for row, want := range map[int][3]string{ // device 1 has one row, those up to 1023 two
		2043: {"1023", "api", "5110000"}, 2044: {"1023", "unknown", "5114000"}, 2045: {"1024", "unknown", "10234000"}, 2046: {"1025", "unknown", "10244000"}} {
		l.Row(causes, row, "device_id", want[0], "cause", strconv.Quote(want[1]), "time", want[2])
	}
}

// Forty decode steps of 1 ms, of which the GPU waits for the host for 399 µs, and four prefills, each followed by 6 ms
// in which the thread waits for Python's lock: more than half of that time, and nothing of the judged decode steps. The
// last wait is in no gap, and the next step's marker opens 1 µs before the end of the others.
func TestWaitsForTheLockInOtherStepsAreNotOfTheJudgedOnes(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	at := int64(1000 * us)
	for i := range 44 {
		if i%11 == 10 {
			th.Range("execute_context_1(512)_generation_0(0)", at-2*us, at)
			th.Launch("gemm", at-us, at, tracetest.Kernel{Start: at, End: at + 1000*us})
			th.Range("Waiting for GIL", at+1000*us, at+7000*us)
			at += 7001 * us
			continue
		}
		th.Range("execute_context_0(0)_generation_8(8)", at-2*us, at)
		th.Launch("gemm", at-us, at, tracetest.Kernel{Start: at, End: at + 600*us})
		at += 1000 * us
	}
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 3*5_999*us, "host.gil_time")
	if f := sectiontest.FindingOf(r, "host_gil"); f != nil {
		t.Errorf("%+v", f)
	}
}

// Decode steps of 1 ms read a value back and then wait for Python's lock for 290 of the 388 µs in which the GPU idles. The
// finding on read-backs has that time; that it is the lock is told all the same, as a remark.
func TestTheLockAfterAReadBack(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	at := int64(1000 * us)
	for range 44 {
		th.Range("execute_context_0(0)_generation_8(8)", at-20*us, at)
		th.Launch("gemm", at-15*us, at-10*us, tracetest.Kernel{Start: at, End: at + 600*us})
		th.Memcpy(at-8*us, at+605*us, tracetest.Memcpy{Start: at + 600*us, End: at + 602*us, Bytes: 32, Kind: tracetest.DtoH,
			Src: tracetest.DeviceMemory, Dst: tracetest.Pageable})
		th.Range("Waiting for GIL", at+610*us, at+900*us)
		at += 1000 * us
	}
	sectiontest.Look(t, b, analyze.Options{}).Finding("host_gil", "remark")
}
