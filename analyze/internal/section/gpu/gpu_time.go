package gpu

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var Time = kit.Section{
	ID: "gpu_time", Title: "GPU time", Steady: true,
	Derivation: "Per device, the union of kernels, CUDA graph traces, copies and memsets over the window common " +
		"to all devices. Each nanosecond belongs to one class, in this order: compute, exposed communication, " +
		"exposed copy or memset, idle. Each idle gap is split by the API call that launched the work after it.",
	Metrics: []report.MetricDef{
		{
			ID: "gpu.window", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Merge: report.Device, Labels: []string{"device"},
			Meaning: "length of the analysed window, common to all devices",
		},
		{
			ID: "gpu.busy_time", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Merge: report.Device, Labels: []string{"device"},
			Meaning: "union of all GPU work on the device: kernels, CUDA graph traces, copies and memsets",
		},
		{
			ID: "gpu.idle_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Merge: report.Device, Labels: []string{"device"},
			Meaning: "window minus busy time",
		},
		{
			ID: "gpu.idle_ratio", Unit: report.Ratio, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Level, Merge: report.Device, Labels: []string{"device"},
			Meaning: "idle time over window",
		},
		{
			ID: "gpu.kernel_idle_ratio", Unit: report.Ratio, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Level, Merge: report.Device, Labels: []string{"device"},
			Meaning: "share of the time between the device's first and last kernel in which no kernel ran, as " +
				"nsys-llm-explainer defines idle: copies and CUDA graph traces do not count as work",
		},
		{
			ID: "gpu.compute_time", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Merge: report.Device, Labels: []string{"device"},
			Meaning: "time in which a kernel that is not communication, or a CUDA graph traced as a whole, ran",
		},
		{
			ID: "gpu.comm_time", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Merge: report.Device, Labels: []string{"device"},
			Meaning: "time in which a communication kernel ran",
		},
		{
			ID: "gpu.exposed_comm_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Merge: report.Device, Labels: []string{"device"},
			Meaning: "time in which a communication kernel ran and no compute kernel",
		},
		{
			ID: "gpu.copy_time", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Merge: report.Device, Labels: []string{"device"},
			Meaning: "time in which a copy or memset ran",
		},
		{
			ID: "gpu.exposed_copy_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Merge: report.Device, Labels: []string{"device"},
			Meaning: "time in which a copy or memset ran and no kernel",
		},
		{
			ID: "gpu.idle_cause_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Merge: report.Device, Labels: []string{"device,cause"},
			Meaning: "idle time by cause: sync (a blocking call on the launching thread), host (that thread did " +
				"something else), launch (the launching call itself), dependency (launched, waiting for an " +
				"event, a stream or the device), unknown (no API row, or nothing after the gap); causes sum to " +
				"gpu.idle_time",
		},
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
	if len(in.Timeline.Devices) == 0 {
		out.Status(report.Unavailable, in.NoWork())
		return
	}
	window := in.Span.Len()
	classes := out.Table("gpu_time")
	causes := out.Table("idle_causes")
	chart := report.Chart{ID: "gpu_time", Title: "Time by class", Kind: "stacked", Unit: report.Nanoseconds}
	idleChart := report.Chart{ID: "idle_causes", Title: "Idle time by cause", Kind: "stacked", Unit: report.Nanoseconds}
	for i := range in.Timeline.Devices {
		d := &in.Timeline.Devices[i]
		id := strconv.Itoa(int(d.ID))
		l := kit.Labels("device", id)
		fromWork(out, d.Len(), "start", "end", "deviceId")
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
		if in.Has(trace.RoleAPI) {
			out.With(trace.RoleAPI, "correlationId", "globalTid")
		}
		row := []kit.Field{kit.Int("device_id", int64(d.ID)), kit.Int("idle", idle)}
		for c, v := range d.Cause {
			out.Int("gpu.idle_cause_time", kit.Labels("device", id, "cause", attrib.CauseNames[c]), v)
			row = append(row, kit.Int(attrib.CauseNames[c], v))
		}
		causes.Row(row...)
		idleChart.Series = append(idleChart.Series, idleParts(id, d))
		classes.Row(
			kit.Int("device_id", int64(d.ID)), kit.Int("window", window), kit.Int("busy", busy),
			kit.Int("compute", compute), kit.Int("exposed_comm", comm), kit.Int("exposed_copy", copies),
			kit.Int("idle", idle), kit.Maybe("idle_ratio", ratio))
		chart.Series = append(chart.Series, report.Series{Name: "GPU " + id,
			Labels: []string{"compute", "exposed communication", "exposed copy", "idle"},
			Values: []float64{float64(compute), float64(comm), float64(copies), float64(idle)}})
	}
	classes.Add()
	causes.Add()
	out.Chart(chart)
	out.Chart(idleChart)
	out.Note("Busy time counts copies, memsets and CUDA graph traces as work; nsys-llm-explainer counts kernels alone, which gpu.kernel_idle_ratio keeps.")
	if in.Trace.Graphs.Len() > 0 {
		out.Note("CUDA graphs traced as a whole count as compute; communication and copies inside them cannot be told apart.")
	}
	if window >= shortWindow && in.RanKernels() {
		gpuTimeFindings(in, out)
	}
}

func idleParts(id string, d *attrib.Device) report.Series {
	s := report.Series{Name: "GPU " + id}
	for c, v := range d.Cause {
		s.Labels, s.Values = append(s.Labels, attrib.CauseNames[c]), append(s.Values, float64(v))
	}
	return s
}

// kernelIdle is nsys-llm-explainer's idle share: over the device's own span from first to last kernel.
func kernelIdle(d *attrib.Device) *float64 {
	busy := stat.Ratio(d.Kernels, d.KernelSpan.Len())
	if busy == nil {
		return nil
	}
	idle := 1 - *busy
	return &idle
}

// Shares of the window from which a finding is made. The idle ones are nsys-llm-explainer's, on the corrected idle
// time.
const (
	idleHigh           = 0.40
	exposedCommShare   = 0.10
	imbalance          = 0.15 // of the window: compute of the busiest device minus that of the least busy one
	hostBoundShare     = 0.10 // of the window, host and launch idle together
	hostBoundShareHigh = 0.30
)

func gpuTimeFindings(in *kit.Input, out *kit.Output) {
	f := &gpuFinder{in: in, out: out, devices: in.Timeline.Devices, window: float64(in.Span.Len())}
	f.idle()
	f.transferBound()
	f.exposedComm()
	f.imbalance()
}

// gpuFinder looks at the device where something is worst.
type gpuFinder struct {
	in      *kit.Input
	out     *kit.Output
	devices []attrib.Device
	window  float64
}

func (f *gpuFinder) share(ns int64) float64 { return float64(ns) / f.window }

// worst is the device with the most of something, the first of equals.
func (f *gpuFinder) worst(of func(d *attrib.Device) int64) (d *attrib.Device, id string) {
	d = &f.devices[0]
	for i := range f.devices {
		if of(&f.devices[i]) > of(d) {
			d = &f.devices[i]
		}
	}
	return d, strconv.Itoa(int(d.ID))
}

// idle is one finding for all idle time of the device that has most: that it is a large part of the window, or that the
// host alone causes a part that is.
func (f *gpuFinder) idle() {
	d, id := f.worst(func(d *attrib.Device) int64 { return d.Idle })
	idle, host := f.share(d.Idle), f.share(d.Cause[attrib.CauseHost]+d.Cause[attrib.CauseLaunch])
	if idle < idleMedium && host < hostBoundShare {
		return
	}
	severity := kit.AtLeast(idle, idleHigh)
	if host >= hostBoundShareHigh {
		severity = report.High
	}
	main := mainCause(d.Cause)
	evidence := []report.MetricRef{kit.Ref("gpu.idle_ratio", "device", id), kit.Ref("gpu.idle_time", "device", id),
		kit.Ref("gpu.idle_cause_time", "cause", attrib.CauseNames[main], "device", id)}
	var advice []string
	if longest := d.LongestGap; f.share(longest) > kit.GapWarn && 2*longest > d.Idle {
		advice = append(advice, "One gap is most of that idle time, so this says more about the window than about the work: narrow it first ("+f.in.NarrowFlags()+").")
	}
	advice = append(advice, kit.IdleAdvice[main]...)
	if main == attrib.CauseHost || main == attrib.CauseLaunch {
		advice = append(advice, "The idle gaps section says what the launching thread does in the longest gaps, the launches section what one launch call costs.",
			"CUDA graphs launch a whole step with one call: the CUDA graphs section says how much of the work they run.", slowHost)
	}
	f.out.Find("gpu_idle", severity, idleTitle[main], evidence, advice...).Worth = f.in.Worth(d.ID, d.Idle)
}

func (f *gpuFinder) transferBound() {
	exposed := func(d *attrib.Device) int64 { return d.ExposedCopy }
	d, id := f.worst(exposed)
	if f.share(exposed(d)) < transferBound {
		return
	}
	f.out.Find("transfer_bound", report.High, "The GPU is bound by copies, not by kernels",
		[]report.MetricRef{kit.Ref("gpu.exposed_copy_time", "device", id), kit.Ref("gpu.compute_time", "device", id),
			kit.Ref("gpu.window", "device", id)},
		"Keep weights and KV cache resident on the GPU (no CPU offload in steady state), or move copies to their own stream and overlap them with compute.",
		"The section on copies shows direction, kind of memory, size and throughput to hold against the link's rate: pageable memory wants to be pinned, small copies to be fewer and larger.",
	).Worth = f.in.Worth(d.ID, exposed(d))
}

func (f *gpuFinder) exposedComm() {
	comm := func(d *attrib.Device) int64 { return d.ExposedComm }
	d, id := f.worst(comm)
	s := f.share(comm(d))
	if s < exposedCommShare {
		return
	}
	f.out.Find("exposed_comm", kit.AtLeast(s, 2*exposedCommShare), "Communication is not hidden behind compute",
		[]report.MetricRef{kit.Ref("gpu.exposed_comm_time", "device", id), kit.Ref("gpu.window", "device", id)},
		"The communication section says which collective it is and whether the devices wait for a slow one: a communication kernel also waits for the slowest rank.",
		"For small messages use the engine's custom all-reduce or NVLS/multimem kernels instead of NCCL; check NVLink topology with nvidia-smi topo -m.",
		"Overlap it: chunked prefill, two-batch overlap, or a lower tensor-parallel degree.",
	).Worth = f.in.Worth(d.ID, comm(d))
}

func (f *gpuFinder) imbalance() {
	busiest, hi := f.worst(func(d *attrib.Device) int64 { return d.Compute })
	least, lo := f.worst(func(d *attrib.Device) int64 { return -d.Compute })
	if f.share(busiest.Compute-least.Compute) < imbalance {
		return
	}
	f.out.Find("device_imbalance", report.Medium, "Compute load is imbalanced across GPUs",
		[]report.MetricRef{kit.Ref("gpu.compute_time", "device", hi), kit.Ref("gpu.compute_time", "device", lo),
			kit.Ref("gpu.window", "device", hi)},
		"Check the parallel layout: pipeline stages of unequal cost, expert placement, or one rank that also samples and schedules.",
		"If the less busy device waits in communication, the slow one sets the pace: look at its kernels first.",
	).Worth = f.in.Worth(busiest.ID, (busiest.Compute-least.Compute)/2)
}

// slowHost is what to look at where the host does not keep up.
const slowHost = "If the host itself is slow, check CPU frequency, NUMA binding and what else runs on the machine, and sample its call stacks with nsys profile --sample=process-tree."

// idleTitle is the finding of an idle GPU, by its main cause.
var idleTitle = [attrib.Causes]string{
	attrib.CauseSync:       "The GPU is idle: the host is blocked and launches nothing",
	attrib.CauseHost:       "The GPU is idle: it waits for the host to launch work",
	attrib.CauseLaunch:     "The GPU is idle: it waits for launch calls to return",
	attrib.CauseDependency: "The GPU is idle: work is launched and does not start",
	attrib.CauseUnknown:    "The GPU is idle, and the capture does not say why",
}
