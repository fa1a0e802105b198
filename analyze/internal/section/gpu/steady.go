package gpu

import (
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var Steady = kit.Section{
	ID: "steady", Group: report.GroupStep, Title: "Steady part and load",
	Derivation: "The steady part runs from the start of the first kept unit of work to the end of the last, over all " +
		"devices. Findings describe it if it leaves out 2 % of the window or more; all metrics but steady.* are of " +
		"the whole window. Load is the copies that end before the first kernel or CUDA graph starts.",
	Metrics: []report.MetricDef{ // and those that findings of the steady part quote: see kit.QuotedOfSteady
		kit.TotalTime("steady.window", report.None, report.Leave,
			"length of the steady part: from the first to the last kept unit of work"),
		kit.TotalTime("steady.before_time", report.None, report.Leave,
			"time of the window before the steady part: load and warm-up"),
		kit.TotalTime("steady.after_time", report.None, report.Leave, "time of the window after the steady part"),
		kit.TotalTime("steady.load_copy_time", report.None, report.Leave,
			"sum of the copies that end before the first kernel or CUDA graph starts"),
		report.Define("steady.load_copy_bytes", report.Bytes, report.None, report.Noisy, report.Total, report.Leave,
			"bytes of the copies that end before the first kernel or CUDA graph starts"),
	},
	Run: steady,
}

func steady(in *kit.Input, out *kit.Output) {
	loadCopies(in, out)
	if in.Steady == nil {
		out.Status(report.NotApplicable, "the window has no steady part that differs from it by 2 % or more")
		return
	}
	part := in.Steady.Span
	out.FromWork(in.Trace.Kernels.Len(), "start", "end")
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
	out.Source.With(trace.RoleKernel, "start")
	out.Int("steady.load_copy_time", nil, time)
	out.Int("steady.load_copy_bytes", nil, bytes)
}
