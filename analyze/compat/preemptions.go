package compat

import (
	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var Preemptions = kit.Section{
	ID: "preemptions", Title: "Preemptions",
	Evidence: ofSession,
	Derivation: "Rows of the session's preemption_events.csv, each preemption paired with the next resumption of " +
		"the same request; request_lifecycle.csv, which has the last one only, if there are no resumptions. " +
		"The rate is over requests that were seen to start.",
	Findings: []kit.FindingDef{
		{ID: "preempted_often", Title: "Many requests are preempted"},
		{ID: "preempted_long", Title: "Preempted requests wait long for their resumption"},
	},
	Metrics: []report.MetricDef{
		kit.NoisyCount("preemption.count", report.Lower, report.Leave,
			"requests taken out of the batch before they were done").By("", "reason"),
		kit.NoisyCount("preemption.requests", report.None, report.Leave, "requests seen from their start"),
		kit.Ratio("preemption.rate", report.Lower, report.Leave,
			"preemptions over requests seen from their start; unknown if the session recorded preempted requests only"),
		kit.EventTime("preemption.delay", report.Lower, report.Leave,
			"median time from a preemption to the request's resumption; the summary is over resumptions").Summarised(),
		kit.EventTime("preemption.run_time", report.None, report.Leave,
			"median time that a request had run when it was preempted; the summary is over preemptions").Summarised(),
		kit.EventTime("request.total_time", report.Lower, report.Leave,
			"median time from start to finish of a request; the summary is over requests").Summarised(),
	},
	Tables: []report.Table{
		{ID: "preemptions", Title: "Preemptions by reason", File: "preemptions.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("why", "Reason"),
			kit.CountCol("preemptions", "Preemptions"),
			kit.RatioCol("share", "Share", "pct_of_preemptions"),
		}},
	},
	Run: preemptions,
}

// profilemate's bounds.
const (
	preemptionRate  = 0.10
	preemptionDelay = 1e9 // ns, of the mean
)

func preemptions(in *kit.Input, out *kit.Output) {
	const events, requests, summary = "preemption_events.csv", "request_lifecycle.csv", "preemption_summary.json"
	d := sessionOf(in)
	q := &d.Requests
	if d.Had[events]+d.Had[requests] == 0 {
		s := &d.Summaries.Requests
		if d.Rows[summary] == 0 {
			sessionLacks(out, d)
			return
		}
		out.Status(report.Partial, "the session has only "+summary+": counts and means")
		fromSession(out, s.Preempted, summary, "total_preemptions", "mean_resume_delay")
		out.Int("preemption.count", nil, s.Preempted)
		out.Known("preemption.delay", nil, s.Delay.Mean())
		return
	}
	fromSession(out, d.Rows[events], events, "event", "request_id", "reason")
	out.Int("preemption.count", nil, q.Preempted)
	t := out.Table("preemptions")
	for _, reason := range session.Reasons {
		if n := q.Reasons[reason]; n != nil {
			out.Int("preemption.count", kit.Labels("reason", reason), *n)
			t.Row(kit.Text("why", reason), kit.Int("preemptions", *n), kit.Maybe("share", stat.Ratio(*n, q.Preempted)))
		}
	}
	t.Add()
	fromSession(out, d.Rows[requests], requests, "started_sec")
	out.Int("preemption.requests", nil, q.Started)
	rate := stat.Ratio(q.Preempted, q.Started)
	out.Metric("preemption.rate", nil, rate)
	if rate == nil && q.Preempted > 0 {
		out.Note("No request was seen to start, so the rate is unknown: profilemate records only preempted requests, and " +
			"divides by these.")
	}
	distribution(out, "preemption.delay", nil, &q.Delay, events, "event", "timestamp_sec", "request_id")
	distribution(out, "preemption.run_time", nil, &q.RunTime, events, "running_time_sec")
	distribution(out, "request.total_time", nil, &q.TotalTime, requests, "started_sec", "finished_sec")
	filesTogether(out, d, events)

	if rate != nil && *rate > preemptionRate {
		out.Find("preempted_often", kit.Refs("preemption.rate", "preemption.count"),
			"The KV cache is too small for the requests that are admitted. Give it more memory (--gpu-memory-utilization, a quantised KV cache), or admit less: lower --max-num-seqs, or --max-model-len if no request needs it.",
			"recompute means that the request's KV cache was dropped and is computed again: prefill work done twice.")
	}
	if mean := q.Delay.Mean(); mean != nil && *mean > preemptionDelay {
		out.Find("preempted_long", kit.Refs("preemption.delay"),
			"The server is overloaded: a resumed request needs as much of the KV cache as it had. Lower --max-num-seqs, or add capacity.")
	}
}
