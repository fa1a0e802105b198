package cpu

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// HostIdle is the section on why the host was late.
var HostIdle = kit.Section{
	ID: "host_idle", Group: report.GroupLate, Title: "Why the host was late", Steady: true, Work: true,
	Derivation: "Idle time with cause host, by what the thread that launched the next work did: each nanosecond goes " +
		"to the first that applies: another CUDA call, the profiler's own work, an operating system call, on " +
		"no CPU, running. Functions are an estimate from samples of the CPUs in that time.",
	Findings: []kit.FindingDef{
		{ID: "host_profiler", Title: "The profiler itself causes part of the wait for the host"},
		{ID: "host_gil", Title: "The launching thread waits for Python's global interpreter lock"},
		{ID: "host_frame", Title: "One function takes a large part of the time that the GPU waits for the host"},
	},
	Metrics: []report.MetricDef{
		kit.TotalTime("gpu.host_cause_time", report.Lower, report.Device,
			"idle time of cause host by what the launching thread did: api (another CUDA call), profiler, os_call, "+
				"not_scheduled (on no CPU), running, unknown (no switches of the scheduler); they sum to "+
				"gpu.idle_cause_time of cause host").By("device,cause").Quoted(),
		kit.TotalTime("host.call_time", report.Lower, report.Leave,
			"idle time of cause host inside calls of this name, over all devices; the calls of a cause sum to its "+
				"gpu.host_cause_time, but for those beyond the 30 with most").By("call,cause").Quoted(),
		kit.TotalTime("host.os_time", report.Lower, report.Leave,
			"idle time of cause host inside calls of the operating system, by what they work with: disk, network, "+
				"lock, sleep, memory, device, process, other; over all devices").By("group").Quoted(),
		kit.TotalTime("host.range_time", report.Lower, report.Leave, "idle time of cause host by the innermost NVTX "+
			"range open on the launching thread, over all devices").By("range"),
		kit.TotalTime("host.gil_time", report.Lower, report.Leave,
			"idle time of cause host in which the launching thread waited for Python's global interpreter lock, over "+
				"all devices; only in captures that trace the lock").Quoted(),
		kit.NoisyCount("host.sample_count", report.None, report.Leave, "samples of launching threads that fall into "+
			"idle time of cause host: what host.frame_ratio is estimated from").Quoted(),
		kit.Ratio("host.frame_ratio", report.Lower, report.Leave,
			"share of these samples whose call stack holds the function: an estimate").By("frame").Quoted(),
		kit.NoisyCount("host.python_sample_count", report.None, report.Leave,
			"samples of the launching threads' Python stacks that fall into idle time of cause host: what "+
				"host.python_ratio is estimated from; only in captures with --python-sampling").Quoted(),
		kit.Ratio("host.python_ratio", report.Lower, report.Leave,
			"share of these samples whose Python stack holds the function: an estimate").By("frame").Quoted(),
		kit.NoisyLevel("host.thread_count", report.None, report.Leave,
			"threads that ran on a CPU in the window, among those that the capture follows").Quoted(),
		kit.NoisyLevel("host.cpu_count", report.None, report.Leave, "CPUs that these threads ran on").Quoted(),
	},
	Tables: []report.Table{
		{ID: "host_causes", Title: "Host time by what the launching thread did", File: "host_causes.csv", Merge: report.Leave,
			Columns: []report.Column{
				kit.IDCol("device_id", "GPU"),
				kit.TextCol("cause", "The thread was"),
				kit.NsCol("time", "Time", "time_ns", "time_ms"),
				kit.RatioCol("share", "Of host time", "pct_of_host"),
				kit.RatioCol("window", "Of window", "pct_of_window"),
			}},
		{ID: "host_calls", Title: "Calls it was in", File: "host_calls.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("call", "Call"),
			kit.TextCol("cause", "Kind"),
			kit.TextCol("group", "Group"),
			kit.CountCol("count", "Calls"),
			kit.NsCol("time", "Time", "time_ns", "time_ms"),
			kit.RatioCol("share", "Of host time", "pct_of_host"),
			kit.Wide(kit.NameCol("stack", "Most time called by")),
			kit.Wide(kit.NsCol("stack_time", "From there", "stack_time_ns")),
		}},
		{ID: "host_ranges", Title: "NVTX ranges it was in", File: "host_ranges.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("range_name", "Range"),
			kit.NsCol("time", "Time", "time_ns", "time_ms"),
			kit.RatioCol("share", "Of host time", "pct_of_host"),
		}},
		{ID: "host_frames", Title: "Functions it ran, sampled", File: "host_frames.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("frame", "Function"),
			kit.Wide(kit.NameCol("module", "Module")),
			kit.CountCol("samples", "Samples within"),
			kit.CountCol("self", "In itself"),
			kit.RatioCol("share", "Share", "pct_of_samples"),
			kit.RatioCol("low", "95 % from", "pct_low"),
			kit.RatioCol("high", "to", "pct_high"),
		}},
		{ID: "host_python", Title: "Python functions it was in, sampled", File: "host_python.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("frame", "Function"),
			kit.IDCol("line", "Mostly at line"),
			kit.CountCol("samples", "Samples within"),
			kit.CountCol("self", "In itself"),
			kit.RatioCol("share", "Share", "pct_of_samples"),
			kit.RatioCol("low", "95 % from", "pct_low"),
			kit.RatioCol("high", "to", "pct_high"),
		}},
		{ID: "host_instead", Title: "Who had the CPU instead", File: "host_instead.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("process", "Process"),
			kit.IDCol("pid", "PID"),
			kit.IDCol("tid", "TID"),
			kit.NsCol("time", "Time", "time_ns", "time_ms"),
			kit.RatioCol("share", "Of time on no CPU", "pct_of_not_scheduled"),
		}},
	},
	Gaps: func(in *kit.Input) []*timeline.Visitor { return lateLooks(in).visitors() },
	Run:  hostIdle,
}

const maxNames = 30 // metrics by name

func hostIdle(in *kit.Input, out *kit.Output) {
	x := newLate(in)
	t := out.Table("host_causes")
	for i, d := range in.Timeline.Devices {
		if d.Cause[timeline.CauseHost] == 0 {
			continue
		}
		kit.FromThreads(out, d.GapCount)
		for c, ns := range x.devices[i].causes {
			name := timeline.HostCauseNames[c]
			out.Int("gpu.host_cause_time", kit.Labels("device", strconv.Itoa(int(d.ID)), "cause", name), ns)
			if ns > 0 {
				t.Row(kit.Int("device_id", int64(d.ID)), kit.Text("cause", name), kit.Int("time", ns),
					kit.Maybe("share", stat.Ratio(ns, d.Cause[timeline.CauseHost])),
					kit.Maybe("window", stat.Ratio(ns, in.Span.Len())))
			}
		}
	}
	if x.total == 0 {
		out.Status(report.NotApplicable, "no device waited for the host's code in the window")
		return
	}
	t.Cut(int(timeline.HostCauses)*kit.MaxDevices, "time").Add()
	var why []string
	if lacks := x.lacks(in); len(lacks) > 0 {
		why = append(why, "the capture lacks "+strings.Join(lacks, "; "))
	}
	if n := len(x.devices); n > kit.MaxDevices {
		why = append(why, fmt.Sprintf("what threads did is looked up for %d of %d devices, and is unknown for the others", kit.MaxDevices, n))
	}
	if len(why) > 0 {
		out.Status(report.Partial, strings.Join(why, "; "))
	}
	x.callTable(in, out)
	x.rangeTable(in, out)
	x.frameTable(in, out)
	x.pythonTable(in, out)
	x.insteadTable(in, out)
	x.findings(in, out)
	out.Note("Calls that overlap on a thread count for the one that started first. A thread is on a CPU from the switch that brings it on to the one that takes it off.")
}

// lacks names the missing data that would tell more, and the flag of nsys that records it.
func (x *late) lacks(in *kit.Input) (list []string) {
	for _, l := range []struct {
		role trace.Role
		text string
	}{
		{trace.RoleOS, "calls of the operating system (--trace=…,osrt)"},
		{trace.RoleSched, "the scheduler's switches (--cpuctxsw=process-tree)"},
		{trace.RoleSampleStack, "CPU samples with call stacks (--sample=process-tree)"},
	} {
		if !in.Trace.Tables.Has(l.role) {
			list = append(list, l.text)
		}
	}
	return list
}

func (x *late) callTable(in *kit.Input, out *kit.Output) {
	t := out.Table("host_calls")
	byGroup := map[string]int64{}
	for i, c := range x.calls {
		name, group := c.name, ""
		if c.cause == timeline.HostOS {
			group = kit.OSGroup(name)
			byGroup[group] += c.time
		}
		if i < maxNames {
			kit.FromThreads(out, int(c.count))
			out.Int("host.call_time", kit.Labels("call", name, "cause", timeline.HostCauseNames[c.cause]), c.time)
		}
		stack, most := x.mostStack(c)
		t.Row(kit.Text("call", name), kit.Text("cause", timeline.HostCauseNames[c.cause]), kit.Put("group", report.OrNull(group)),
			kit.Int("count", c.count), kit.Int("time", c.time), kit.Maybe("share", stat.Ratio(c.time, x.total)),
			kit.Put("stack", report.OrNull(stack)), kit.Put("stack_time", kit.Known(most)))
	}
	t.Cut(in.Options.Top, "count", "time").Add()
	if in.Trace.Tables.Has(trace.RoleOS) {
		out.From(trace.RoleOS, in.Trace.OS.Len(), "start", "end", "nameId", "globalTid")
		for _, g := range kit.OSGroups {
			out.Int("host.os_time", kit.Labels("group", g), byGroup[g])
		}
	}
}

func (x *late) rangeTable(in *kit.Input, out *kit.Output) {
	if !in.Trace.Tables.Has(trace.RoleNVTX) || len(x.ranges) == 0 {
		return
	}
	out.From(trace.RoleNVTX, in.Trace.Ranges.Len(), "start", "end", "text", "textId", "globalTid")
	t := out.Table("host_ranges")
	traced := slices.ContainsFunc(in.Trace.Ranges.Names, func(n trace.RangeName) bool { return trace.WaitsForGIL(n.Text) })
	for i, name := range kit.ByTime(x.ranges) {
		time := x.ranges[name]
		if trace.WaitsForGIL(name) {
			x.gil += time
		}
		if name == "" {
			name = "(no range)"
		} else if i < maxNames {
			out.Int("host.range_time", kit.Labels("range", name), time)
		}
		t.Row(kit.Text("range_name", name), kit.Int("time", time), kit.Maybe("share", stat.Ratio(time, x.total)))
	}
	t.Cut(in.Options.Top, "time").Add()
	if traced {
		out.Int("host.gil_time", nil, x.gil)
	}
}

func (x *late) frameTable(in *kit.Input, out *kit.Output) {
	if !in.Trace.Tables.Has(trace.RoleSample) {
		return
	}
	out.From(trace.RoleSample, in.Trace.Samples.Len(), "id", "start", "globalTid")
	out.Int("host.sample_count", nil, x.samples)
	if x.stacked == 0 {
		return
	}
	out.Source.With(trace.RoleSampleStack, "id", "symbol", "module", "stackDepth")
	framesTable(out, "host_frames", "host.frame_ratio", x.frames, x.stacked)
	out.Note("Functions are sampled: the share is that of the " + strconv.FormatInt(x.stacked, 10) +
		" samples in this time with the function on their stack, and has a 95 % interval. A thread on no CPU is not sampled.")
}

// framesTable shows functions by the samples that they are in, with the interval of their share.
func framesTable(out *kit.Output, table, ratio string, frames []lateFrame, samples int64) {
	t := out.Table(table)
	for i, f := range frames {
		low, high := stat.Wilson(f.within, samples)
		share := stat.Ratio(f.within, samples)
		if i < maxNames {
			out.Metric(ratio, kit.Labels("frame", f.name), share).N = samples
		}
		where := kit.Put("module", report.OrNull(f.module))
		if table == "host_python" {
			where = kit.Int("line", f.line)
		}
		t.Row(kit.Text("frame", f.name), where, kit.Int("samples", f.within), kit.Int("self", f.self), kit.Maybe("share", share),
			kit.Float("low", low), kit.Float("high", high))
	}
	t.Cut(out.In.Options.Top, "self").Add()
}

func (x *late) pythonTable(in *kit.Input, out *kit.Output) {
	if n := in.Trace.PythonUnread; n > 0 {
		out.Note("The stacks of " + strconv.FormatInt(n, 10) + " samples of Python are not in this export, or in a form " +
			"that explain does not know: nsys export writes them with --include-blobs=true, if its help lists that option.")
	}
	if len(in.Trace.Python) == 0 {
		if x.runsPython(in) && in.Trace.PythonUnread == 0 {
			out.Note("This capture has no Python stacks of threads: nsys profile --python-sampling=true records them, " +
				"--trace=…,python-gil its waits for Python's lock.")
		}
		return
	}
	out.From(trace.RoleNVTX, len(in.Trace.Python), "start", "globalTid", "domainId", "binaryData")
	out.Int("host.python_sample_count", nil, x.pythonSamples)
	if x.pythonSamples == 0 {
		return
	}
	framesTable(out, "host_python", "host.python_ratio", x.python, x.pythonSamples)
	out.Note("Python is sampled whether the thread runs or waits: the share is that of the " +
		strconv.FormatInt(x.pythonSamples, 10) + " samples in this time with the function on their stack.")
}

// runsPython reports whether a thread with CUDA calls is of a program called python, or was sampled in the interpreter.
func (x *late) runsPython(in *kit.Input) bool {
	for th := range in.Trace.Threads {
		if in.Threads.Calls(int32(th)) && strings.HasPrefix(x.processes[in.Trace.Threads[th].Global>>24], "python") {
			return true
		}
	}
	return slices.ContainsFunc(x.frames, func(f lateFrame) bool { return strings.HasPrefix(f.name, "_PyEval") })
}

func (x *late) insteadTable(in *kit.Input, out *kit.Output) {
	if !in.Trace.Tables.Has(trace.RoleSched) {
		return
	}
	out.From(trace.RoleSched, in.Trace.Sched.Len(), "start", "cpu", "isSchedIn", "globalTid")
	out.Int("host.thread_count", nil, x.threads)
	out.Int("host.cpu_count", nil, x.cpus)
	off := lists.Sum(x.devices, func(d *deviceLate) int64 { return d.causes[timeline.HostNotScheduled] })
	if off == 0 || len(x.instead) == 0 {
		return
	}
	t := out.Table("host_instead")
	rest := off
	for _, global := range kit.ByTime(x.instead) {
		time := x.instead[global]
		rest -= time
		t.Row(kit.Put("process", report.OrNull(x.processes[global>>24])), kit.Int("pid", global>>24&0xffffff),
			kit.Int("tid", global&0xffffff), kit.Int("time", time), kit.Maybe("share", stat.Ratio(time, off)))
	}
	t.Partial(kit.Text("process", "(no thread that the capture follows)"), kit.Int("time", rest),
		kit.Maybe("share", stat.Ratio(rest, off)))
	lists.Sort(t.Rows, func(a, b []report.Cell) int {
		x, _ := a[3].Int()
		y, _ := b[3].Int()
		return cmp.Compare(y, x)
	})
	t.Cut(in.Options.Top, "time").Add()
}

// Bounds from which the findings name the work of the launching thread.
const (
	gilShare   = 0.10 // of the host time
	frameShare = 0.30 // of the samples, and …
	frameLow   = 0.20 // … the lower end of its interval
	frameMost  = 0.95 // of the samples: functions on nearly every stack explain nothing
)

func (x *late) findings(in *kit.Input, out *kit.Output) {
	if !in.Trace.RanKernels() {
		return
	}
	s := in.Step()
	if ns := s.Host[timeline.HostProfiler]; ns > 0 && s.Device != nil {
		out.Find("host_profiler",
			[]report.MetricRef{kit.Ref("gpu.host_cause_time", "device", strconv.Itoa(int(s.Device.ID)), "cause", "profiler")},
			"This time disappears without the profiler: trace less (fewer kinds of events, CUDA graphs as a whole with "+
				"--cuda-graph-trace=graph, no stacks), or a shorter time.",
		).OfIdle(s, ns, timeline.CauseHost)
	}
	x.gilFinding(out, s)
	x.frameFinding(out)
}

func (x *late) gilFinding(out *kit.Output, s *kit.Step) {
	gil, of := x.gil, x.total
	if s.Units > 0 { // what other steps wait for is not theirs
		gil, of = 0, s.Cause[timeline.CauseHost]
		for name, ns := range s.Everywhere.Ranges {
			if trace.WaitsForGIL(name) {
				gil += ns
			}
		}
	}
	if gil > 0 && float64(gil) >= gilShare*float64(of) {
		out.Find("host_gil", kit.Refs("host.gil_time"),
			"Other threads of the process run Python: move them to a process of their own (tokenizing, HTTP, logging), or let them release the lock.",
		).OfIdle(s, int64(float64(s.Cause[timeline.CauseHost])*float64(gil)/float64(of)), timeline.CauseHost)
	}
}

// frameFinding names the function that most samples are in, except functions on nearly every stack; a Python function
// if Python stacks were sampled.
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
	out.Find("host_frame", []report.MetricRef{kit.Ref(ratio, "frame", frames[best].name), kit.Ref(count)},
		"The share is an estimate from samples: the table of functions has its interval. Look at what the function does in every step.")
}

// mostIn is the index of the function that a finding names, or -1. Among functions with equally many samples the one
// that is innermost most often comes first.
func mostIn(frames []lateFrame, samples int64) int {
	best := -1
	for i, f := range frames[:min(len(frames), maxNames)] {
		low, _ := stat.Wilson(f.within, samples)
		share := float64(f.within) / float64(samples)
		if share >= frameShare && low >= frameLow && share <= frameMost && !slices.ContainsFunc(interpreter, f.begins) &&
			(best < 0 || f.within > frames[best].within) {
			best = i
		}
	}
	return best
}

// interpreter are functions of the Python interpreter, which do not tell what Python runs.
var interpreter = []string{"_PyEval", "PyEval", "_PyFunction", "_PyObject", "PyObject_", "_Py", "Py_", "[unresolved", "__libc", "_start",
	"start_thread", "main", "clone"}

func (f *lateFrame) begins(with string) bool { return strings.HasPrefix(f.name, with) }
