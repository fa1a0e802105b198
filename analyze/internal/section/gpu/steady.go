package gpu

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var Steady = kit.Section{
	ID: "steady", Group: report.GroupStep, Title: "Steady part and load",
	Derivation: "The steady part runs from the start of the first kept unit of work to the end of the last, over all " +
		"devices. Findings describe it if it leaves out 2 % of the window or more; all metrics but steady.* are of " +
		"the whole window. Load is the copies that end before the first kernel or CUDA graph starts.",
	Metrics: slices.Concat([]report.MetricDef{
		report.Define("steady.window", report.Nanoseconds, report.None, report.Noisy, report.Total, report.Leave,
			"length of the steady part: from the first to the last kept unit of work"),
		report.Define("steady.before_time", report.Nanoseconds, report.None, report.Noisy, report.Total, report.Leave,
			"time of the window before the steady part: load and warm-up"),
		report.Define("steady.after_time", report.Nanoseconds, report.None, report.Noisy, report.Total, report.Leave,
			"time of the window after the steady part"),
		report.Define("steady.load_copy_time", report.Nanoseconds, report.None, report.Noisy, report.Total, report.Leave,
			"sum of the copies that end before the first kernel or CUDA graph starts"),
		report.Define("steady.load_copy_bytes", report.Bytes, report.None, report.Noisy, report.Total, report.Leave,
			"bytes of the copies that end before the first kernel or CUDA graph starts"),
	}, steadyTwins()),
	Run: steady,
}

// steadyTwins are the metrics that findings of the steady part quote: steady.X is the metric X over that part only.
func steadyTwins() []report.MetricDef {
	return []report.MetricDef{
		twin("gpu.window", report.Nanoseconds, report.None, report.Total, "device"),
		twin("gpu.idle_ratio", report.Ratio, report.Lower, report.Level, "device"),
		twin("gpu.idle_time", report.Nanoseconds, report.Lower, report.Total, "device"),
		twin("gpu.idle_cause_time", report.Nanoseconds, report.Lower, report.Total, "device,cause"),
		twin("gpu.compute_time", report.Nanoseconds, report.None, report.Total, "device"),
		twin("gpu.exposed_comm_time", report.Nanoseconds, report.Lower, report.Total, "device"),
		twin("gpu.exposed_copy_time", report.Nanoseconds, report.Lower, report.Total, "device"),
		twin("kernel.window_share", report.Ratio, report.Lower, report.Level, "kernel"),
		twin("kernel.share", report.Ratio, report.None, report.Level, "kernel"),
		twin("kernel.total_time", report.Nanoseconds, report.Lower, report.Total, "", "kernel", "category"),
		twin("kernel.unnamed_time", report.Nanoseconds, report.None, report.Total),
		twin("kernel.count", report.Count, report.None, report.Total, "kernel"),
		twin("memcpy.rule_time", report.Nanoseconds, report.Lower, report.Total, "rule"),
		twin("memcpy.rule_count", report.Count, report.Lower, report.Total, "rule"),
		twin("memcpy.tiny_count", report.Count, report.Lower, report.Total, "direction"),
		twin("memcpy.count", report.Count, report.Lower, report.Total, "direction"),
		twin("sync.blocked_time", report.Nanoseconds, report.Lower, report.Total),
		twin("sync.count", report.Count, report.Lower, report.Total),
		twin("sync.gpu_busy_ratio", report.Ratio, report.None, report.Level),
		twin("wait.time", report.Nanoseconds, report.Lower, report.Total, "api"),
		twin("wait.count", report.Count, report.Lower, report.Total, "api"),
		twin("launch.rate", report.PerSecond, report.None, report.Level, "", "pid"),
		twin("launch.api_time", report.Nanoseconds, report.Lower, report.Total, "api"),
		twin("launch.count", report.Count, report.Lower, report.Total, "", "pid", "api"),
		twin("launch.errors", report.Count, report.Lower, report.Total),
		twin("graph.coverage", report.Ratio, report.Higher, report.Level),
		twin("graph.launches", report.Count, report.None, report.Total),
		twin("comm.wait_time", report.Nanoseconds, report.Lower, report.Total, "device"),
		twin("idle.longest_gap", report.Nanoseconds, report.Lower, report.Total, "device"),
		twin("idle.long_gap_count", report.Count, report.Lower, report.Total, "device"),
		twin("idle.low_use_ratio", report.Ratio, report.Lower, report.Level, "device"),
		twin("gpu.host_cause_time", report.Nanoseconds, report.Lower, report.Total, "device,cause"),
		twin("host.call_time", report.Nanoseconds, report.Lower, report.Total, "call,cause"),
		twin("host.os_time", report.Nanoseconds, report.Lower, report.Total, "group"),
		twin("host.gil_time", report.Nanoseconds, report.Lower, report.Total),
		twin("host.sample_count", report.Count, report.None, report.Total),
		twin("host.frame_ratio", report.Ratio, report.Lower, report.Level, "frame"),
		twin("host.python_sample_count", report.Count, report.None, report.Total),
		twin("host.python_ratio", report.Ratio, report.Lower, report.Level, "frame"),
		twin("host.thread_count", report.Count, report.None, report.Level),
		twin("host.cpu_count", report.Count, report.None, report.Level),
		twin("stream.copy_hidden_ratio", report.Ratio, report.Higher, report.Level, "device"),
	}
}

func twin(id, unit string, better report.Direction, scale report.Scale, labels ...string) report.MetricDef {
	return report.MetricDef{ID: "steady." + id, Unit: unit, Better: better, Assume: report.Noisy, Scale: scale, Merge: report.Leave,
		Labels: labels, Meaning: id + " of the steady part; only if a finding quotes it"}
}

func steady(in *kit.Input, out *kit.Output) {
	loadCopies(in, out)
	if in.Steady == nil {
		out.Status(report.NotApplicable, "the window has no steady part that differs from it by 2 % or more")
		return
	}
	part := in.Steady.Span
	fromWork(out, in.Trace.Kernels.Len(), "start", "end")
	out.Int("steady.window", nil, part.Len())
	out.Int("steady.before_time", nil, part.Start-in.Span.Start)
	out.Int("steady.after_time", nil, in.Span.End-part.End)
	out.Note("Findings and their worth describe the steady part, without load, warm-up and tail.")
}

// loadCopies adds up the copies before the first kernel: usually the weights.
func loadCopies(in *kit.Input, out *kit.Output) {
	c := &in.Trace.Copies
	lo, hi := c.Starting(in.Span.Start, in.Span.End)
	first, found := in.Span.End, false
	for _, w := range []*trace.Work{&in.Trace.Kernels.Work, &in.Trace.Graphs.Work} {
		if at, end := w.Starting(in.Span.Start, in.Span.End); at < end {
			first, found = min(first, w.Start(at)), true
		}
	}
	if !found {
		return
	}
	var time, bytes int64
	rows := 0
	for i := lo; i < hi && c.Start(i) < first; i++ {
		if c.End(i) <= first {
			time += c.Dur(i)
			bytes += c.Bytes(i)
			rows++
		}
	}
	if rows == 0 {
		return
	}
	out.From(trace.RoleMemcpy, rows, "start", "end", "bytes")
	out.With(trace.RoleKernel, "start")
	out.Int("steady.load_copy_time", nil, time)
	out.Int("steady.load_copy_bytes", nil, bytes)
}
