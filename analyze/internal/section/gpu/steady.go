package gpu

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var Steady = kit.Section{
	ID: "steady", Title: "Steady part and load",
	Derivation: "The steady part runs from the start of the first kept unit of work to the end of the last, over all " +
		"devices. Findings are of it where it leaves out 2 % of the window or more; all metrics but steady.* are of " +
		"the whole window. Load is the copies that end before the first kernel or CUDA graph starts.",
	Metrics: slices.Concat([]report.MetricDef{
		{
			ID: "steady.window", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy, Scale: report.Total,
			Meaning: "length of the steady part: from the first to the last kept unit of work",
		},
		{
			ID: "steady.before_time", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Meaning: "time of the window before the steady part: load and warm-up",
		},
		{
			ID: "steady.after_time", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Meaning: "time of the window after the steady part",
		},
		{
			ID: "steady.load_copy_time", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Meaning: "sum of the copies that end before the first kernel or CUDA graph starts",
		},
		{
			ID: "steady.load_copy_bytes", Unit: report.Bytes, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Meaning: "bytes of the copies that end before the first kernel or CUDA graph starts",
		},
	}, steadyTwins()),
	Run: steady,
}

// steadyTwins are the metrics that findings of the steady part quote: each is the metric named behind steady., of that
// part alone.
func steadyTwins() []report.MetricDef {
	var list []report.MetricDef
	for _, m := range []report.MetricDef{
		{ID: "gpu.window", Unit: report.Nanoseconds, Better: report.None, Scale: report.Total, Labels: []string{"device"}},
		{ID: "gpu.idle_ratio", Unit: report.Ratio, Better: report.Lower, Scale: report.Level, Labels: []string{"device"}},
		{ID: "gpu.idle_time", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total, Labels: []string{"device"}},
		{ID: "gpu.idle_cause_time", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total, Labels: []string{"device,cause"}},
		{ID: "gpu.compute_time", Unit: report.Nanoseconds, Better: report.None, Scale: report.Total, Labels: []string{"device"}},
		{ID: "gpu.exposed_comm_time", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total, Labels: []string{"device"}},
		{ID: "gpu.exposed_copy_time", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total, Labels: []string{"device"}},
		{ID: "kernel.window_share", Unit: report.Ratio, Better: report.Lower, Scale: report.Level, Labels: []string{"kernel"}},
		{ID: "kernel.share", Unit: report.Ratio, Better: report.None, Scale: report.Level, Labels: []string{"kernel"}},
		{ID: "kernel.total_time", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total, Labels: []string{"", "kernel", "category"}},
		{ID: "kernel.unnamed_time", Unit: report.Nanoseconds, Better: report.None, Scale: report.Total},
		{ID: "kernel.count", Unit: report.Count, Better: report.None, Scale: report.Total, Labels: []string{"kernel"}},
		{ID: "memcpy.rule_time", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total, Labels: []string{"rule"}},
		{ID: "memcpy.rule_count", Unit: report.Count, Better: report.Lower, Scale: report.Total, Labels: []string{"rule"}},
		{ID: "memcpy.tiny_count", Unit: report.Count, Better: report.Lower, Scale: report.Total, Labels: []string{"direction"}},
		{ID: "memcpy.count", Unit: report.Count, Better: report.Lower, Scale: report.Total, Labels: []string{"direction"}},
		{ID: "sync.blocked_time", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total},
		{ID: "sync.count", Unit: report.Count, Better: report.Lower, Scale: report.Total},
		{ID: "sync.gpu_busy_ratio", Unit: report.Ratio, Better: report.None, Scale: report.Level},
		{ID: "wait.time", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total, Labels: []string{"api"}},
		{ID: "wait.count", Unit: report.Count, Better: report.Lower, Scale: report.Total, Labels: []string{"api"}},
		{ID: "launch.rate", Unit: report.PerSecond, Better: report.None, Scale: report.Level, Labels: []string{"", "pid"}},
		{ID: "launch.api_time", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total, Labels: []string{"api"}},
		{ID: "launch.count", Unit: report.Count, Better: report.Lower, Scale: report.Total, Labels: []string{"", "pid", "api"}},
		{ID: "launch.errors", Unit: report.Count, Better: report.Lower, Scale: report.Total},
		{ID: "graph.coverage", Unit: report.Ratio, Better: report.Higher, Scale: report.Level},
		{ID: "graph.launches", Unit: report.Count, Better: report.None, Scale: report.Total},
		{ID: "comm.wait_time", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total, Labels: []string{"device"}},
		{ID: "idle.longest_gap", Unit: report.Nanoseconds, Better: report.Lower, Scale: report.Total, Labels: []string{"device"}},
		{ID: "idle.long_gap_count", Unit: report.Count, Better: report.Lower, Scale: report.Total, Labels: []string{"device"}},
		{ID: "idle.low_use_ratio", Unit: report.Ratio, Better: report.Lower, Scale: report.Level, Labels: []string{"device"}},
		{ID: "stream.copy_hidden_ratio", Unit: report.Ratio, Better: report.Higher, Scale: report.Level, Labels: []string{"device"}},
	} {
		m.Meaning = m.ID + " of the steady part; there where a finding quotes it"
		m.ID, m.Assume = "steady."+m.ID, report.Noisy
		list = append(list, m)
	}
	return list
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
	out.Note("Findings, and what they are worth, are of the steady part: load, warm-up and tail have no part in them.")
}

// loadCopies adds up what was copied before the first kernel: the weights, as a rule.
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
