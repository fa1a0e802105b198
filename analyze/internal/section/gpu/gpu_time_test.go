package gpu_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Kernel names whose meaning is beyond doubt.
const (
	allReduceKernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
	allGatherKernel = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
	addKernel       = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, std::array<char *, (unsigned long)3>>(int, T2, T3)"
)

func between(from, to time.Duration) analyze.WindowOptions {
	return analyze.WindowOptions{From: &from, To: &to}
}

// causes checks the idle causes of a device: sync, host, launch, dependency, unknown.
func causes(l sectiontest.Looker, device string, want ...float64) {
	l.Helper()
	for i, cause := range []string{"sync", "host", "launch", "dependency", "unknown"} {
		sectiontest.Metric(l, l.Report, want[i], "gpu.idle_cause_time", "device", device, "cause", cause)
	}
}

// The numbers are worked out in tracetest.Tiny's documentation.
func TestGPUTimeOfTiny(t *testing.T) {
	for _, b := range []*tracetest.Builder{tracetest.Tiny(), tracetest.Oldest(), tracetest.Tiny(tracetest.Shuffle(1))} {
		l := sectiontest.Look(t, b, analyze.Options{})
		for id, want := range map[string]float64{
			"gpu.window": 1000 * sectiontest.Us, "gpu.busy_time": 775 * sectiontest.Us, "gpu.idle_time": 225 * sectiontest.Us, "gpu.idle_ratio": 0.225,
			"gpu.compute_time": 685 * sectiontest.Us, "gpu.comm_time": 70 * sectiontest.Us, "gpu.exposed_comm_time": 50 * sectiontest.Us,
			"gpu.copy_time": 60 * sectiontest.Us, "gpu.exposed_copy_time": 40 * sectiontest.Us,
		} {
			sectiontest.Metric(t, l.Report, want, id, "device", "0")
		}
		kernels, window := 735.0, 1000.0 // alone, kernels leave 265 of 1000 idle
		sectiontest.Metric(t, l.Report, 1-kernels/window, "gpu.kernel_idle_ratio", "device", "0")
		causes(l, "0", 50*sectiontest.Us, 40*sectiontest.Us, 45*sectiontest.Us, 40*sectiontest.Us, 50*sectiontest.Us)
		l.Finding("gpu_idle", report.High)       // 22.5 %
		l.Finding("exposed_comm", report.Medium) // 5 %
		l.Row(l.Table("gpu_time", "gpu_time"), 0, "device_id", "0", "window", "1000000", "busy", "775000", "compute", "685000",
			"exposed_comm", "50000", "exposed_copy", "40000", "idle", "225000", "idle_ratio", "0.225",
			"sync", "50000", "host", "40000", "launch", "45000", "dependency", "40000", "unknown", "50000")
		l.Row(l.Table("gpu_time", "idle_causes"), 0, "idle", "225000", "sync", "50000", "host", "40000", "launch", "45000", "dependency", "40000", "unknown", "50000")
	}
}

// Both devices share one window, 100 to 140 µs, although device 1's own work is from 102 to 137.
func TestGPUTimeOfTwoDevices(t *testing.T) {
	l := sectiontest.Look(t, tracetest.TwoProcs(), analyze.Options{})
	sectiontest.Metric(t, l.Report, 40*sectiontest.Us, "gpu.window", "device", "0")
	sectiontest.Metric(t, l.Report, 40*sectiontest.Us, "gpu.window", "device", "1")
	sectiontest.Metric(t, l.Report, 40*sectiontest.Us, "gpu.busy_time", "device", "0")
	sectiontest.Metric(t, l.Report, 20*sectiontest.Us, "gpu.busy_time", "device", "1")
	causes(l, "0", 0, 0, 0, 0, 0)
	// Gaps of device 1: 100-102 launch 2; three of 107-112 and so on: the call starts 3 into the gap, host 3, launch 2;
	// 137-140 with nothing after it: unknown 3.
	causes(l, "1", 0, 9*sectiontest.Us, 8*sectiontest.Us, 0, 3*sectiontest.Us)
}

// The device waits for the host for more than half of the window: one finding says so, no advice twice, and where one gap
// is most of it the window is to blame first.
func TestIdleSaysItOnce(t *testing.T) {
	for gaps, first := range map[int64]string{8: "Batch more work per step", 1: "One gap is most of that idle time"} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		for i := range gaps + 1 {
			at := 1000 * sectiontest.Us * i / (gaps + 1)
			th.Launch("gemm", at, at+1, tracetest.Kernel{Start: at + 1, End: at + 400*sectiontest.Us/(gaps+1)})
		}
		l := sectiontest.Look(t, b, analyze.Options{})
		l.Finding("gpu_idle", report.High)
		said := map[string]bool{}
		for _, f := range l.Report.Findings {
			for _, a := range f.Advice {
				if said[a] {
					t.Errorf("said twice: %s", a)
				}
				said[a] = true
			}
			if f.ID == "gpu_idle" && (!strings.HasPrefix(f.Title, "GPU idle ") || !strings.HasPrefix(f.Advice[0], first)) {
				t.Errorf("%d gaps: %s: %q", gaps, f.Title, f.Advice)
			}
		}
	}
}

func TestImbalanceIsFound(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("gemm", 0, 1, tracetest.Kernel{Start: 0, End: 1000 * sectiontest.Us})
	th.Launch("gemm", 2, 3, tracetest.Kernel{Place: tracetest.Place{Device: 1}, Start: 0, End: 800 * sectiontest.Us})
	sectiontest.Look(t, b, analyze.Options{}).Finding("device_imbalance", report.High)
}

// Graphs traced as a whole are work: 9100 of 9920 busy, of which kernels are 100, between 10000 and 19010.
func TestWholeGraphsAreCompute(t *testing.T) {
	l := sectiontest.Look(t, tracetest.GraphHidden(), analyze.Options{})
	sectiontest.Metric(t, l.Report, 9100*sectiontest.Us, "gpu.busy_time", "device", "0")
	sectiontest.Metric(t, l.Report, 9100*sectiontest.Us, "gpu.compute_time", "device", "0")
	kernels, own := 100.0, 9010.0
	sectiontest.Metric(t, l.Report, 1-kernels/own, "gpu.kernel_idle_ratio", "device", "0")
	causes(l, "0", 0, 0, 0, 820*sectiontest.Us, 0)
	l.Finding("gpu_idle", report.Medium) // 820 of 9920: launched work that waits
}

// Each ns has one class: compute hides communication, and both hide copies.
func TestClassesExcludeEachOther(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	on := func(stream int64) tracetest.Place { return tracetest.Place{Stream: stream} }
	th.Launch("gemm", 0, 1, tracetest.Kernel{Start: 0, End: 100})
	th.Launch(allReduceKernel, 2, 3, tracetest.Kernel{Place: on(21), Start: 80, End: 120})
	th.Memcpy(4, 5, tracetest.Memcpy{Place: on(13), Start: 20, End: 40, Bytes: 1, Kind: tracetest.HtoD, Dst: tracetest.DeviceMemory})
	th.Memcpy(6, 7, tracetest.Memcpy{Place: on(13), Start: 90, End: 130, Bytes: 1, Kind: tracetest.HtoD, Dst: tracetest.DeviceMemory})
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 100, "gpu.compute_time", "device", "0")
	sectiontest.Metric(t, l.Report, 40, "gpu.comm_time", "device", "0")
	sectiontest.Metric(t, l.Report, 20, "gpu.exposed_comm_time", "device", "0") // 100-120
	sectiontest.Metric(t, l.Report, 60, "gpu.copy_time", "device", "0")         // 20-40 and 90-130
	sectiontest.Metric(t, l.Report, 10, "gpu.exposed_copy_time", "device", "0") // 120-130
	sectiontest.Metric(t, l.Report, 0, "gpu.idle_time", "device", "0")
}

// From 340 to 500 µs of Tiny: gaps 340-365 and 400-460, kernels 365-400 and 460-500.
func TestGPUTimeOfANarrowWindow(t *testing.T) {
	l := sectiontest.Look(t, tracetest.Tiny(), analyze.Options{Window: between(240*time.Microsecond, 400*time.Microsecond)})
	sectiontest.Metric(t, l.Report, 160*sectiontest.Us, "gpu.window", "device", "0")
	sectiontest.Metric(t, l.Report, 75*sectiontest.Us, "gpu.busy_time", "device", "0")
	causes(l, "0", 40*sectiontest.Us, 30*sectiontest.Us, 10*sectiontest.Us, 5*sectiontest.Us, 0)
}

// A device without work in the window is idle all the time; it does not vanish. Device 1 starts 2 µs after device 0, and
// the call that launches its first kernel takes those 2 µs: the cause is the same in the first of them and in all.
func TestADeviceWithoutWorkInTheWindowIsIdle(t *testing.T) {
	l := sectiontest.Look(t, tracetest.TwoProcs(), analyze.Options{Window: between(0, time.Microsecond)})
	sectiontest.Metric(t, l.Report, 1*sectiontest.Us, "gpu.busy_time", "device", "0")
	sectiontest.Metric(t, l.Report, 1*sectiontest.Us, "gpu.idle_time", "device", "1")
	causes(l, "1", 0, 0, 1*sectiontest.Us, 0, 0)
	if m := l.Find("gpu.kernel_idle_ratio", report.Labels{"device": "1"}); m == nil || m.Value != nil {
		t.Errorf("gpu.kernel_idle_ratio of a device without kernels = %v, want null", m)
	}
}

// Without the process or the correlation id nothing can be joined: idle time stays, its cause is unknown.
func TestCausesNeedTheJoin(t *testing.T) {
	for _, column := range []string{"globalPid", "correlationId"} {
		l := sectiontest.Look(t, tracetest.Tiny(tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", column)), analyze.Options{})
		sectiontest.Metric(t, l.Report, 225*sectiontest.Us, "gpu.idle_time", "device", "0")
		causes(l, "0", 0, 0, 0, 0, 225*sectiontest.Us) // every gap of Tiny ends with a kernel
	}
}

// Rows that end before they start and rows without length enter no class.
func TestUnsoundRowsAreNoWork(t *testing.T) {
	b := tracetest.New()
	p := b.Process(1, "p")
	for _, k := range []tracetest.Kernel{{Start: 0, End: 10}, {Start: 40, End: 30}, {Start: 20, End: 20}, {Start: 50, End: 60}} {
		k.Name, k.Process = "gemm", p
		b.Kernel(k)
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 60, "gpu.window", "device", "0")
	sectiontest.Metric(t, l.Report, 20, "gpu.busy_time", "device", "0")
	sectiontest.Metric(t, l.Report, 40, "gpu.idle_time", "device", "0")
	sectiontest.Metric(t, l.Report, 1, "idle.gap_count", "device", "0")
}

func TestNoGPUWorkIsUnavailable(t *testing.T) {
	b := tracetest.New()
	b.Process(1, "p").Thread(1, "").Range("x", 0, 10)
	l := sectiontest.Look(t, b, analyze.Options{})
	for _, id := range []string{"gpu_time", "kernels", "categories", "components", "comm", "streams", "idle"} {
		l.Status(id, report.Unavailable)
	}
}

// randomTrace is small enough that every ns of it can be looked at. All of its times are in [shift, shift+600).
type randomTrace struct {
	builder *tracetest.Builder
	work    []randomWork
}

type randomWork struct {
	owner, device, stream, start, end int64
	class                             int // 0 compute, 1 communication, 2 copy
}

func newRandomTrace(seed uint64, shift int64) *randomTrace {
	rng := rand.New(rand.NewPCG(seed, 7))
	t := &randomTrace{builder: tracetest.New()}
	var threads []*tracetest.Thread
	for p := range int64(2) {
		proc := t.builder.Process(100+p, "p")
		threads = append(threads, proc.Thread(100+p, ""), proc.Thread(200+p, ""))
	}
	for range 4 + rng.IntN(20) {
		owner := rng.IntN(len(threads))
		th := threads[owner]
		call := shift + rng.Int64N(500)
		w := randomWork{owner: int64(owner / 2), device: rng.Int64N(2), stream: 7 + rng.Int64N(3), start: rng.Int64N(560), class: rng.IntN(3)}
		w.end = w.start + rng.Int64N(40)
		place := tracetest.Place{Device: w.device, Stream: w.stream}
		start, end := shift+w.start, shift+w.end
		switch w.class {
		case 0:
			th.Launch("gemm", call, call+rng.Int64N(30), tracetest.Kernel{Place: place, Start: start, End: end})
		case 1:
			th.Launch(allReduceKernel, call, call+rng.Int64N(30), tracetest.Kernel{Place: place, Start: start, End: end})
		default:
			th.Memset(call, call+5, tracetest.Memset{Place: place, Start: start, End: end, Bytes: 1})
		}
		t.work = append(t.work, w)
		if rng.IntN(3) == 0 {
			at := shift + rng.Int64N(500)
			th.StreamSynchronize(at, at+rng.Int64N(60), w.device, w.stream)
		}
	}
	return t
}

// window is the span of the work, without the shift.
func (t *randomTrace) window() (from, to int64) {
	from, to = t.work[0].start, t.work[0].end
	for _, w := range t.work {
		from, to = min(from, w.start), max(to, w.end)
	}
	return from, to
}

// Classes sum to the window and causes to the idle time, every class is what counting each ns gives, and nothing
// depends on where the capture's clock starts.
func TestGPUTimeAgainstCounting(t *testing.T) {
	for seed := range uint64(25) {
		trace := newRandomTrace(seed, 0)
		l := sectiontest.Look(t, trace.builder, analyze.Options{})
		moved := sectiontest.Look(t, newRandomTrace(seed, -7_000_000_123).builder, analyze.Options{})
		from, to := trace.window()
		devices := map[int64]bool{}
		for _, w := range trace.work {
			devices[w.device] = true
		}
		for d := range devices {
			var ns [4]float64 // compute, exposed communication, exposed copy, idle
			for at := from; at < to; at++ {
				class := 3
				for _, w := range trace.work {
					if w.device == d && w.start <= at && at < w.end {
						class = min(class, w.class)
					}
				}
				ns[class]++
			}
			id := strconv.FormatInt(d, 10)
			for i, name := range []string{"gpu.compute_time", "gpu.exposed_comm_time", "gpu.exposed_copy_time", "gpu.idle_time"} {
				sectiontest.Metric(t, l.Report, ns[i], name, "device", id)
				sectiontest.Metric(t, moved.Report, ns[i], name, "device", id)
			}
			sectiontest.Metric(t, l.Report, ns[0]+ns[1]+ns[2]+ns[3], "gpu.window", "device", id)
			var causes float64
			for _, cause := range []string{"sync", "host", "launch", "dependency", "unknown"} {
				part := *l.Find("gpu.idle_cause_time", report.Labels{"device": id, "cause": cause}).Value
				causes += part
				sectiontest.Metric(t, moved.Report, part, "gpu.idle_cause_time", "device", id, "cause", cause)
				if part < 0 {
					t.Errorf("seed %d: cause %s is negative", seed, cause)
				}
			}
			if causes != ns[3] {
				t.Errorf("seed %d device %s: causes sum to %v, idle is %v", seed, id, causes, ns[3])
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A tenth of the step converts layouts.
func TestLayoutConversionsAreFound(t *testing.T) {
	for name, want := range map[string]report.Severity{"void cudnn::ops::nchwToNhwcKernel<float>": report.High, "softmax_nchw": ""} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		for i := range int64(12) {
			at := i * 1000 * sectiontest.Us
			th.Launch("conv", 100*i, 100*i+1, tracetest.Kernel{Start: at + 1, End: at + 850*sectiontest.Us})
			th.Launch(name, 100*i+2, 100*i+3, tracetest.Kernel{Start: at + 850*sectiontest.Us, End: at + 1000*sectiontest.Us})
		}
		sectiontest.Look(t, b, analyze.Options{}).Finding("layout_conversions", want)
	}
}

// Steps of 1 ms, of which memsets or copies within the GPU take 600 µs: no weight or cache is moved. The place is
// said.
func TestTransferBoundAdvisesOnItsCopies(t *testing.T) {
	const us = sectiontest.Us
	for word, copies := range map[string]func(th *tracetest.Thread, at int64){
		"each memset": func(th *tracetest.Thread, at int64) {
			th.Memset(at+10*us, at+15*us, tracetest.Memset{Start: at + 205*us, End: at + 805*us, Bytes: 1 << 20})
		},
		"A copy within the GPU": func(th *tracetest.Thread, at int64) {
			th.Memcpy(at+10*us, at+15*us, tracetest.Memcpy{Start: at + 205*us, End: at + 805*us, Bytes: 1 << 20,
				Kind: tracetest.DtoD})
		},
	} {
		f := sectiontest.FindingOfSteps(t, "transfer_bound", func(th *tracetest.Thread, at int64) {
			th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 205*us})
			th.Range("reset", at+8*us, at+20*us)
			copies(th, at)
		})
		if f == nil || !strings.Contains(f.Advice[0], word) || f.Place != "reset" {
			t.Errorf("%s: %+v", word, f)
		}
	}
}

// Copies hold 60 % of a window without units, and 30: those from pinned memory to the device are most of them.
func TestTransferBoundSaysWhichCopies(t *testing.T) {
	for copied, want := range map[int64]report.Severity{600: report.High, 300: ""} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		th.Memcpy(0, 1, tracetest.Memcpy{Start: 1, End: copied * sectiontest.Us, Bytes: 1 << 20, Kind: tracetest.HtoD,
			Src: tracetest.Pinned, Dst: tracetest.DeviceMemory})
		th.Launch("a", 2, 3, tracetest.Kernel{Start: copied * sectiontest.Us, End: 1000 * sectiontest.Us})
		l := sectiontest.Look(t, b, analyze.Options{})
		l.Finding("transfer_bound", want)
		if f := sectiontest.FindingOf(l.Report, "transfer_bound"); f != nil && !strings.HasSuffix(f.Title, ", most of it HtoD of pinned memory") {
			t.Errorf("%s", f.Title)
		}
	}
}
