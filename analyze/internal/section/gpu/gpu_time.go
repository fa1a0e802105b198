package gpu

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

var Time = kit.Section{
	ID: "gpu_time", Group: report.GroupTime, Title: "GPU time", Steady: true, Work: true,
	Derivation: "Per device, the union of kernels, CUDA graph traces, copies and memsets over the window common " +
		"to all devices. Each nanosecond belongs to one class, in this order: compute, exposed communication, " +
		"exposed copy or memset, idle. Each idle gap is split by the API call that launched the work after it.",
	Findings: []kit.FindingDef{
		{ID: "gpu_idle", Title: "The GPU is idle", General: true},
		{ID: "transfer_bound", Inside: true, General: true, Title: "The GPU is bound by copies, not by kernels"},
		{ID: "exposed_comm", Title: "Communication is not hidden behind compute"},
		{ID: "device_imbalance", Title: "Compute load is imbalanced across GPUs"},
		{ID: "work_waits", Title: "Work is launched and does not start"},
	},
	Gaps: func(in *kit.Input) []*timeline.Visitor { return in.StepVisitors() },
	Metrics: []report.MetricDef{
		kit.UnitTime("unit.idle_range_time", report.Lower, report.OfStep,
			"idle time of a unit of the main kind for which the launching thread was late inside this range, mean; of "+
				"the ranges that the finding on idle time names").By("range"),
		kit.TotalTime("gpu.window", report.None, report.Device,
			"length of the analysed window, common to all devices").By("device").Quoted(),
		kit.TotalTime("gpu.busy_time", report.None, report.Device,
			"union of all GPU work on the device: kernels, CUDA graph traces, copies and memsets").By("device"),
		kit.TotalTime("gpu.idle_time", report.Lower, report.Device, "window minus busy time").By("device").Quoted(),
		kit.Ratio("gpu.idle_ratio", report.Lower, report.Device, "idle time over window").By("device").Quoted(),
		kit.Ratio("gpu.kernel_idle_ratio", report.Lower, report.Device,
			"share of the time between the device's first and last kernel in which no kernel ran, as "+
				"nsys-llm-explainer defines idle: copies and CUDA graph traces do not count as work").By("device"),
		kit.TotalTime("gpu.compute_time", report.None, report.Device, "time in which a kernel that is not "+
			"communication, or a CUDA graph traced as a whole, ran").By("device").Quoted(),
		kit.TotalTime("gpu.comm_time", report.None, report.Device,
			"time in which a communication kernel ran").By("device"),
		kit.TotalTime("gpu.exposed_comm_time", report.Lower, report.Device,
			"time in which a communication kernel ran and no compute kernel").By("device").Quoted(),
		kit.TotalTime("gpu.copy_time", report.None, report.Device, "time in which a copy or memset ran").By("device"),
		kit.TotalTime("gpu.exposed_copy_time", report.Lower, report.Device,
			"time in which a copy or memset ran and no kernel").By("device").Quoted(),
		kit.TotalTime("gpu.idle_cause_time", report.Lower, report.Device, "idle time by cause: sync (a blocking call "+
			"on the launching thread), host (that thread did something else), launch (the launching call itself), "+
			"dependency (launched, waiting for an event, a stream or the device), unknown (no API row, or nothing "+
			"after the gap); causes sum to gpu.idle_time").By("device,cause").Quoted(),
	},
	Tables: []report.Table{
		{ID: "gpu_time", Title: "Time by class", File: "gpu_time.csv", Columns: []report.Column{
			kit.IDCol("device_id", "GPU").Merged(report.Device),
			kit.NsCol("window", "Window", "window_ms").Merged(report.Same),
			kit.NsCol("busy", "Busy", "busy_ms").Merged(report.Same),
			kit.NsCol("compute", "Compute", "compute_ms").Merged(report.Same),
			kit.NsCol("exposed_comm", "Exposed comm.", "exposed_comm_ms").Merged(report.Same),
			kit.NsCol("exposed_copy", "Exposed copy", "exposed_copy_ms").Merged(report.Same),
			kit.NsCol("idle", "Idle", "idle_ms").Merged(report.Same),
			kit.RatioCol("idle_ratio", "Idle", "idle_pct_of_window").Merged(report.Same),
			kit.NsCol("sync", "Idle: sync", "idle_sync_ms").Merged(report.Same),
			kit.NsCol("host", "Idle: host", "idle_host_ms").Merged(report.Same),
			kit.NsCol("launch", "Idle: launch", "idle_launch_ms").Merged(report.Same),
			kit.NsCol("dependency", "Idle: dependency", "idle_dependency_ms").Merged(report.Same),
			kit.NsCol("unknown", "Idle: unknown", "idle_unknown_ms").Merged(report.Same),
		}},
		{ID: "idle_causes", Title: "Idle by cause", File: "idle_causes.csv", Columns: []report.Column{
			kit.IDCol("device_id", "GPU").Merged(report.Device),
			kit.NsCol("idle", "Idle", "idle_ms").Merged(report.Same),
			kit.NsCol("sync", "Sync", "sync_ms").Merged(report.Same),
			kit.NsCol("host", "Host", "host_ms").Merged(report.Same),
			kit.NsCol("launch", "Launch", "launch_ms").Merged(report.Same),
			kit.NsCol("dependency", "Dependency", "dependency_ms").Merged(report.Same),
			kit.NsCol("unknown", "Unknown", "unknown_ms").Merged(report.Same),
		}},
	},
	Run: gpuTime,
}

func gpuTime(in *kit.Input, out *kit.Output) {
	window := in.Span.Len()
	classes := out.Table("gpu_time")
	causes := out.Table("idle_causes")
	chart := report.Chart{ID: "gpu_time", Title: "Time by class, idle time by cause", Kind: "stacked", Unit: report.Nanoseconds}
	for i, d := range in.Timeline.Devices {
		id := deviceID(d)
		l := kit.Labels("device", id)
		out.FromWork(d.Len(), "start", "end", "deviceId")
		busy, idle := d.Busy(), d.Idle
		compute, comm, copies := d.Compute, d.ExposedComm, d.ExposedCopy
		out.Int("gpu.window", l, window)
		out.Int("gpu.busy_time", l, busy)
		out.Int("gpu.idle_time", l, idle)
		ratio := stat.Ratio(idle, window)
		out.Metric("gpu.idle_ratio", l, ratio)
		out.Metric("gpu.kernel_idle_ratio", l, kernelIdle(d))
		out.Int("gpu.compute_time", l, compute)
		out.Int("gpu.comm_time", l, d.Comm)
		out.Int("gpu.exposed_comm_time", l, comm)
		out.Int("gpu.copy_time", l, d.Copies)
		out.Int("gpu.exposed_copy_time", l, copies)
		out.Source.With(trace.RoleAPI, "correlationId", "globalTid")
		row := append(causeFields(d.Cause), kit.Int("device_id", int64(d.ID)), kit.Int("idle", idle))
		parts := report.Series{Name: "GPU " + id, Labels: []string{"compute", "exposed communication", "exposed copy"},
			Values: []float64{float64(compute), float64(comm), float64(copies)}}
		for c, v := range d.Cause {
			name := timeline.CauseNames[c]
			out.Int("gpu.idle_cause_time", kit.Labels("device", id, "cause", name), v)
			parts.Labels, parts.Values = append(parts.Labels, "idle: "+name), append(parts.Values, float64(v))
		}
		causes.Row(row...)
		classes.Row(append(row, kit.Int("window", window), kit.Int("busy", busy), kit.Int("compute", compute),
			kit.Int("exposed_comm", comm), kit.Int("exposed_copy", copies), kit.Maybe("idle_ratio", ratio))...)
		if i < kit.MaxDeviceMetrics {
			chart.Series = append(chart.Series, parts)
		}
	}
	sums := append(timeline.CauseNames[:], "idle", "busy", "compute", "exposed_comm", "exposed_copy")
	classes.Cut(kit.MaxDevices, sums...).Add()
	causes.Cut(kit.MaxDevices, sums...).Add()
	out.Chart(chart)
	out.Note("Busy time counts copies, memsets and CUDA graph traces as work; nsys-llm-explainer counts kernels alone, as gpu.kernel_idle_ratio does.")
	if in.Trace.Graphs.Len() > 0 {
		out.Note("CUDA graphs traced as a whole count as compute; communication and copies inside them cannot be told apart.")
	}
	if window >= shortWindow && in.Trace.RanKernels() {
		gpuTimeFindings(in, out)
	}
}

// kernelIdle is nsys-llm-explainer's idle share: over the device's own span from first to last kernel.
func kernelIdle(d *timeline.Device) *float64 {
	busy := stat.Ratio(d.Kernels, d.KernelSpan.Len())
	if busy == nil {
		return nil
	}
	return new(1 - *busy)
}

// Shares of the judged time from which a finding is made.
const (
	exposedCommShare = 0.03
	imbalance        = 0.15 // of the window: compute of the busiest device minus that of the least busy one
	waitsShare       = 0.05 // of idle time of cause dependency
)

func gpuTimeFindings(in *kit.Input, out *kit.Output) {
	s := in.Step()
	idleFinding(in, out, s)
	if ns := s.Cause[timeline.CauseDependency]; s.Share(ns) >= waitsShare && in.IdleSite().Cause != timeline.CauseDependency {
		out.FindAs("work_waits", "GPU idle "+unit.Percent(s.Share(ns))+s.BehindLaunch(in),
			stepRefs(s, "unit.idle_cause_time", "gpu.idle_cause_time", "cause", "dependency"), s.BehindAdvice(in)...,
		).Costs(s.Worth(ns), s.IdleClaims(ns, timeline.CauseDependency)...)
	}
	if s.Share(s.Copy) >= transferBound {
		most := mostCopied(in, s)
		out.FindAs("transfer_bound", "Copies hold the GPU "+unit.Percent(s.Share(s.Copy))+
			" of the time with no kernel beside them"+most.text,
			append(stepRefs(s, "unit.exposed_copy_time", "gpu.exposed_copy_time"), stepRefs(s, "unit.compute_time", "gpu.compute_time")...),
			cmp.Or(most.advice, "Keep weights and KV cache resident on the GPU (no CPU offload in steady state), or copy one "+
				"step ahead on a stream of its own."),
			"The section on copies has direction, kind of memory, size and throughput: compare them with the rate of the link.",
		).At(most.place).Costs(s.Worth(s.Copy), s.CopyClaim())
	}
	if s.Share(s.Comm) >= exposedCommShare {
		const slowest = "A communication kernel also waits for the slowest rank: the communication section says which "
		who := "its column Waiting says which device waits."
		if waitsOf(in).window == nil {
			who = "which rank is late, a report of all ranks says (explain ranks/*.sqlite)."
		}
		title := "Communication is not hidden behind compute: " + unit.Percent(s.Share(s.Comm))
		wait := waitInStep(in)
		if wait > 0 {
			title += ", of it " + unit.Percent(s.Share(wait)) + " waiting for another GPU"
		}
		out.FindAs("exposed_comm", title,
			stepRefs(s, "unit.exposed_comm_time", "gpu.exposed_comm_time"),
			slowest+"collective it is; "+who,
			"Overlap it (two-batch overlap, a lower tensor-parallel degree); for small messages a custom all-reduce or NVLS kernels instead of NCCL.",
		).Costs(s.Worth(s.Comm-wait), s.CommClaim(s.Comm-wait))
	}
	if s.Units == 0 {
		deviceImbalance(in, out)
	}
}

// copied describes the copies with most of the judged copy time.
type copied struct {
	text     string // direction and memory, and the place, as the end of a sentence; empty if none dominate
	pageable bool
	place    string // the range that at least half of that time was copied in, or empty
	advice   string // about memsets or copies within the GPU; empty for others
}

// Advice of copied.
const (
	withinAdvice = "A copy within the GPU takes the bandwidth of its memory twice: avoid it (a view instead of clone or " +
		"contiguous), or let the kernel before it write the result where it belongs."
	setsAdvice = "Let the kernel that reads the memory start from zero, or set it once in one piece: each memset is " +
		"a launch of its own (PyTorch: zero_grad(set_to_none=True), empty instead of zeros)."
)

func mostCopied(in *kit.Input, s *kit.Step) (most copied) {
	type sort struct{ direction, kind int }
	c, times, places, where := &in.Trace.Copies, map[sort]int64{}, map[string]int64{}, kit.NewPlaces(in)
	var all, sets int64
	add := func(w *trace.Work, i int, call int32) int64 {
		ns := s.Spans.Within(w.Start(i), w.End(i))
		if w.Device(i) != s.Device.ID || ns == 0 {
			return 0
		}
		all += ns
		if call != trace.None {
			rng, _ := where.Place(call)
			places[string(kernelname.AppendRangeCanonical(nil, rng))] += ns
		}
		return ns
	}
	for i := range c.Len() {
		times[sort{kit.Direction(c.Kind(i)), kit.CopySide(c, i)}] += add(&c.Work, i, in.Calls.Copy[i])
	}
	for i := range in.Trace.Sets.Len() {
		sets += add(&in.Trace.Sets.Work, i, in.Calls.Set[i])
	}
	if 2*sets > all {
		most.text, most.advice = ", most of it memsets", setsAdvice
	}
	for k, ns := range times {
		if 2*ns > all && k.direction > 0 {
			d := kit.Directions[k.direction]
			most.text = ", most of it " + d
			if sameDevice(k.direction) {
				most.advice = withinAdvice
			}
			if in.Trace.Has.CopyKinds && (d == "HtoD" || d == "DtoH") && kit.MemKinds[k.kind] != "unknown" {
				most.text += " of " + kit.MemKinds[k.kind] + " memory"
				most.pageable = k.kind == kit.MemPageable
			}
		}
	}
	for rng, ns := range places {
		if 2*ns > all && rng != "" {
			most.place, most.text = rng, most.text+", in "+kit.Quoted(rng)
		}
	}
	return most
}

// stepRefs point at the metric of a finding: of a unit of work, or of the judged device.
func stepRefs(s *kit.Step, perUnit, whole string, labels ...string) []report.MetricRef {
	if s.Units > 0 {
		return []report.MetricRef{kit.Ref(perUnit, labels...)}
	}
	return []report.MetricRef{kit.Ref(whole, append(labels, "device", deviceID(s.Device))...)}
}

// idleLeast is the share of the judged time, 0..1, that the GPU idles from which it is a finding.
const idleLeast = 0.05

// idleFinding is the one finding for all idle time: its main cause, and its place.
func idleFinding(in *kit.Input, out *kit.Output, s *kit.Step) {
	if s.Share(s.Idle) < idleLeast {
		return
	}
	x := in.IdleSite()
	cause := func(x *kit.IdleSite) report.MetricRef {
		return stepRefs(s, "unit.idle_cause_time", "gpu.idle_cause_time", "cause", timeline.CauseNames[x.Cause])[0]
	}
	evidence := append(stepRefs(s, "unit.gpu_idle", "gpu.idle_time"), cause(x))
	if s.Units == 0 {
		evidence = append([]report.MetricRef{kit.Ref("gpu.idle_ratio", "device", deviceID(s.Device))}, evidence...)
	}
	if s.Units > 0 && s.ReadBacksTold() {
		evidence = append(evidence, kit.Ref("unit.read_back_idle"))
	}
	for _, r := range x.Ranges {
		if s.Units > 0 {
			out.From(trace.RoleNVTX, in.Trace.Ranges.Len(), "start", "end", "text", "textId", "globalTid")
			out.Source.With(trace.RoleAPI, "start", "end", "globalTid")
			out.Float("unit.idle_range_time", kit.Labels("range", r), float64(s.Where.Within[r])/float64(s.Units))
			evidence = append(evidence, kit.Ref("unit.idle_range_time", "range", r))
		}
	}
	causes := []int{timeline.CauseSync, timeline.CauseHost, timeline.CauseLaunch, timeline.CauseUnknown}
	if x.Cause == timeline.CauseDependency || s.Share(s.Cause[timeline.CauseDependency]) < waitsShare { // else told apart
		causes = append(causes, timeline.CauseDependency)
	}
	f := out.FindAs("gpu_idle", x.Title(in), evidence, idleAdvice(in, x)...).At(x.Place())
	causes = append(causes, kit.CauseReadBack) // if no finding is about it after all
	f.OfIdle(s, s.Idle, causes...).Rest(func(left *[timeline.Causes]int64) {
		y := in.IdleSiteOf(left)
		f.Evidence = slices.DeleteFunc(f.Evidence, func(r report.MetricRef) bool {
			switch r.ID {
			case "unit.read_back_idle":
				return y.Of > x.Of // the finding has the part after read-backs, too
			case "unit.idle_range_time":
				return !slices.Contains(y.Ranges, r.Labels["range"])
			}
			return false
		})
		switch {
		case y.Cause != x.Cause || y.Host != x.Host:
			for i := range f.Evidence {
				if f.Evidence[i].Labels["cause"] != "" {
					f.Evidence[i] = cause(y)
				}
			}
			f.Worth.Replayed = false
		case y.Of >= x.Of: // no other finding holds any of it
			return
		}
		f.Title, f.Advice = y.Title(in), idleAdvice(in, y)
		f.At(y.Place())
	})
}

// idleAdvice is what to do about idle time at a place, and whether the window is to blame.
func idleAdvice(in *kit.Input, x *kit.IdleSite) []string {
	s, advice, at := in.Step(), x.Advice(in), 0
	if x.Loads != "" {
		at = 1
	}
	told := s.Idle - x.Of // by other findings, which may hold it all in the gap
	if long := s.Gap.Len(); s.Share(long) > kit.GapWarn && 2*(long-told) > x.Of {
		advice = slices.Insert(advice, at, "One gap is most of that idle time, so this says more about the window "+
			"than about the work: narrow it first ("+in.NarrowFlags()+").")
	}
	return advice
}

func deviceImbalance(in *kit.Input, out *kit.Output) {
	devices := in.Timeline.Devices
	first, last := extremes(len(devices), func(i int) int64 { return devices[i].Compute })
	most, least := devices[first], devices[last]
	if float64(most.Compute-least.Compute) < imbalance*float64(in.Span.Len()) {
		return
	}
	hi, lo := deviceID(most), deviceID(least)
	out.Find("device_imbalance",
		[]report.MetricRef{kit.Ref("gpu.compute_time", "device", hi), kit.Ref("gpu.compute_time", "device", lo),
			kit.Ref("gpu.window", "device", hi)},
		"Check the parallel layout: pipeline stages of unequal cost, expert placement, or one rank that also samples and schedules.",
		"If the less busy device waits in communication, the slow one sets the pace: look at its kernels first.",
	).Costs(kit.WorthOfWindow(in.Span, (most.Compute-least.Compute)/2))
}
