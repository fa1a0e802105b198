package cpu

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

// When it is a finding what the launching thread did.
const (
	lateWindow    = 0.05 // of the window that a device waits for the host, below which nothing is said
	lateHigh      = 0.20 // of the window that one cause takes, for a finding to be high
	lateShare     = 0.20 // of the host time of that device
	profilerShare = 0.10
	gilShare      = 0.10
	silentShare   = 0.50 // unknown
	frameShare    = 0.30 // of the samples, and …
	frameLow      = 0.20 // … the lower end of its interval
	frameMost     = 0.95 // of the samples: what is on every stack says nothing
)

var osTitles = map[string]string{
	groupDisk:    "The launching thread reads or writes files while the GPU waits",
	groupNetwork: "The launching thread waits for the network or for another process while the GPU waits",
	groupLock:    "The launching thread waits for a lock or for another thread while the GPU waits",
	groupSleep:   "The launching thread sleeps while the GPU waits",
	groupMemory:  "The launching thread maps or frees memory while the GPU waits",
	groupDevice:  "The launching thread is in the driver (ioctl) while the GPU waits",
	groupProcess: "The launching thread starts or waits for processes and threads while the GPU waits",
	groupOther:   "The launching thread is in calls of the operating system while the GPU waits",
}

var osAdvice = map[string]string{
	groupDisk:    "Move files out of the step: load ahead, keep tokenizers and caches in memory, log from another thread.",
	groupNetwork: "Receive and send from another thread, or poll without blocking: the step should find its input ready.",
	groupLock:    "See who holds the lock: a worker pool, a queue between threads, an allocator. Hand work over before the step needs it.",
	groupSleep:   "A loop that polls with a sleep delays every step by half of it: wait for the event itself.",
	groupMemory:  "Keep memory: allocate pools at start, use a caching or huge-page allocator, avoid freeing in the step.",
	groupDevice:  "Calls like this come from allocating, pinning and mapping device memory or from loading modules: do it before serving, and keep it.",
	groupProcess: "Start processes, threads and libraries before serving.",
	groupOther:   "The table of calls names them.",
}

func (x *late) findings(in *kit.Input, out *kit.Output) {
	if !in.RanKernels() {
		return
	}
	worst := 0
	for i := range in.Timeline.Devices {
		if in.Timeline.Devices[i].Cause[attrib.CauseHost] > in.Timeline.Devices[worst].Cause[attrib.CauseHost] {
			worst = i
		}
	}
	d := &in.Timeline.Devices[worst]
	host := d.Cause[attrib.CauseHost]
	if window := stat.Ratio(host, in.Span.Len()); window == nil || *window < lateWindow {
		return
	}
	causes := &x.devices[worst].causes
	share := func(cause int) float64 { return float64(causes[cause]) / float64(host) }
	ref := func(cause int) report.MetricRef {
		return kit.Ref("gpu.host_cause_time", "device", strconv.Itoa(int(d.ID)), "cause", attrib.HostCauseNames[cause])
	}
	severity := func(ns int64) report.Severity {
		if float64(ns) >= lateHigh*float64(in.Span.Len()) {
			return report.High
		}
		return report.Medium
	}
	if share(attrib.HostNotScheduled) >= lateShare {
		ns := causes[attrib.HostNotScheduled]
		out.Find("host_not_scheduled", severity(ns), "The launching thread has no CPU while the GPU waits for it",
			[]report.MetricRef{ref(attrib.HostNotScheduled), kit.Ref("host.thread_count"), kit.Ref("host.cpu_count")},
			"With fewer CPUs than threads that want to run, give the process more: the CPU limit of its container, taskset, other work on the machine. The table of who had the CPU instead names what the capture follows.",
			"A sleeping thread has no CPU either: capture calls of the operating system (--trace=cuda,nvtx,osrt) to see in what.",
		).Worth = in.Worth(d.ID, ns)
	}
	if share(attrib.HostOS) >= lateShare {
		x.osFinding(in, out, d, causes[attrib.HostOS], severity(causes[attrib.HostOS]), ref(attrib.HostOS))
	}
	if ns := causes[attrib.HostAPI]; share(attrib.HostAPI) >= lateShare {
		out.Find("host_calls", severity(ns), "Other CUDA calls keep the launching thread busy while the GPU waits",
			append([]report.MetricRef{ref(attrib.HostAPI)}, x.mostCall(attrib.HostAPI)...),
			"Calls that load modules, allocate, pin or query in the step belong before it: warm up, load eagerly (CUDA_MODULE_LOADING=EAGER), keep memory in a pool.",
		).Worth = in.Worth(d.ID, ns)
	}
	if ns := causes[attrib.HostProfiler]; share(attrib.HostProfiler) >= profilerShare {
		out.Find("host_profiler", report.Medium, "The profiler itself causes part of the wait for the host",
			[]report.MetricRef{ref(attrib.HostProfiler)},
			"This time is gone without the profiler: trace less (fewer kinds of events, CUDA graphs as a whole with --cuda-graph-trace=graph, no stacks), or a shorter time.",
		).Worth = in.Worth(d.ID, ns)
	}
	x.gilFinding(in, out, d, severity)
	x.frameFinding(out)
	if share(attrib.HostUnknown) >= silentShare { // worth nothing by itself
		out.Find("host_unknown", report.Low, "The capture does not say what the launching thread did while the GPU waited",
			[]report.MetricRef{ref(attrib.HostUnknown)},
			"Capture what the host does: explain capture --host, or nsys profile with --trace=cuda,nvtx,osrt --cpuctxsw=process-tree --sample=process-tree; for Python also --trace=…,python-gil --python-sampling=true.")
	}
}

// mostCall points at the call of a cause with most time.
func (x *late) mostCall(cause int) []report.MetricRef {
	for i, c := range x.calls {
		if c.cause == cause && i < maxNames {
			return []report.MetricRef{kit.Ref("host.call_time", "call", c.name, "cause", attrib.HostCauseNames[cause])}
		}
	}
	return nil
}

func (x *late) osFinding(in *kit.Input, out *kit.Output, d *attrib.Device, ns int64, severity report.Severity,
	ref report.MetricRef) {
	times := map[string]int64{}
	for _, c := range x.calls {
		if c.cause == attrib.HostOS {
			times[groupOf(c.name)] += c.time
		}
	}
	most := groupOther
	for _, g := range osGroups {
		if times[g] > times[most] {
			most = g
		}
	}
	out.Find("host_os_calls", severity, osTitles[most],
		append([]report.MetricRef{ref, kit.Ref("host.os_time", "group", most)}, x.mostCall(attrib.HostOS)...),
		osAdvice[most],
		"Stacks of the calls (--osrt-backtrace-threshold) name who makes them.",
	).Worth = in.Worth(d.ID, ns)
}

func (x *late) gilFinding(in *kit.Input, out *kit.Output, d *attrib.Device, severity func(ns int64) report.Severity) {
	for _, m := range out.Metrics() {
		if m.ID == "host.gil_time" && m.Value != nil && *m.Value >= gilShare*float64(x.total) {
			ns := int64(*m.Value)
			out.Find("host_gil", severity(ns), "The launching thread waits for Python's global interpreter lock",
				[]report.MetricRef{kit.Ref("host.gil_time")},
				"Other threads of the process run Python: move them to a process of their own (tokenizing, HTTP, logging), or let them release the lock.",
			).Worth = in.Worth(d.ID, ns)
		}
	}
}

// frameFinding names the function that most samples are in, of those that are not on nearly every stack: one in Python
// where its stacks were sampled.
func (x *late) frameFinding(out *kit.Output) {
	frames, samples, ratio, count := x.python, x.pythonSamples, "host.python_ratio", "host.python_sample_count"
	best := mostIn(frames, samples)
	if best < 0 {
		frames, samples, ratio, count = x.frames, x.stacked, "host.frame_ratio", "host.sample_count"
		best = mostIn(frames, samples)
	}
	if best < 0 {
		return
	}
	out.Find("host_frame", report.Low, "One function takes a large part of the time that the GPU waits for the host",
		[]report.MetricRef{kit.Ref(ratio, "frame", frames[best].name), kit.Ref(count)},
		"The share is an estimate from samples: the table of functions has its interval. Look at what the function does in every step.")
}

// mostIn is the place of the function that a finding names, or -1. Of functions that are in as many samples the one
// that is innermost most often comes first.
func mostIn(frames []lateFrame, samples int64) int {
	best := -1
	for i, f := range frames[:min(len(frames), maxNames)] {
		low, _ := stat.Wilson(f.within, samples)
		share := float64(f.within) / float64(samples)
		if share >= frameShare && low >= frameLow && share <= frameMost && f.named() &&
			(best < 0 || f.within > frames[best].within) {
			best = i
		}
	}
	return best
}

// interpreter are functions that say that Python runs, and not what.
var interpreter = []string{"_PyEval", "PyEval", "_PyFunction", "_PyObject", "PyObject_", "_Py", "Py_", "[unresolved", "__libc", "_start",
	"start_thread", "main", "clone"}

func (f *lateFrame) named() bool { return !hasAnyPrefix(f.name, interpreter) }

func hasAnyPrefix(s string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(s, p) })
}
