package compat

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var ForwardPass = kit.Section{
	ID: "forward_pass", Title: "Forward passes",
	Evidence: ofSession,
	Derivation: "Rows of the session's forward_pass_timing.csv, by phase. Throughput is all tokens over all " +
		"forward time, not a mean of ratios; profilemate's column of it is not used.",
	Findings: []kit.FindingDef{
		{ID: "prefill_heavy", Title: "Most of the forward time is prefill"},
	},
	Metrics: []report.MetricDef{
		kit.EventTime("forward.time", report.Lower, report.Leave,
			"median duration of a forward pass; the summary is over passes").Summarised().By("", "phase"),
		kit.TotalTime("forward.total_time", report.None, report.Leave, "forward passes added up").By("", "phase"),
		kit.NoisyCount("forward.count", report.None, report.Leave, "forward passes").By("", "phase"),
		kit.NoisyCount("forward.tokens", report.None, report.Leave,
			"tokens that forward passes computed").By("", "phase"),
		kit.Rate("forward.token_rate", report.Higher, report.Leave,
			"tokens per second of forward time").By("", "phase"),
		kit.Ratio("forward.time_share", report.None, report.Leave,
			"share of the forward time spent in the phase").By("phase"),
	},
	Tables: []report.Table{
		{ID: "forward_passes", Title: "Forward passes by phase", File: "forward_passes.csv", Merge: report.Leave,
			Columns: slices.Concat([]report.Column{
				kit.TextCol("pass_phase", "Phase"),
				kit.CountCol("passes", "Passes"),
				kit.CountCol("tokens", "Tokens"),
				kit.MeanCol("total", "Total", "total_ms"),
				kit.RatioCol("share", "Share", "pct_of_forward_time"),
			}, sampleCols(), []report.Column{kit.FloatCol("throughput", "Tokens per second", report.PerSecond)})},
	},
	Run: forwardPass,
}

// forwardPrefill is profilemate's bound on the share of prefill.
const forwardPrefill = 0.60

func forwardPass(in *kit.Input, out *kit.Output) {
	const name, summary = "forward_pass_timing.csv", "forward_pass_summary.json"
	d := sessionOf(in)
	all := &d.AllForward
	if all.Time.N() == 0 {
		sessionLacks(out, d, name, summary)
		return
	}
	stated, source := all.Time.Stated(), []string{name, "phase", "num_tokens", "forward_time_ms"}
	if stated {
		source = []string{summary, "count", "mean_ms"}
		statedOnly(out, summary, "counts and means, no distributions and no tokens", "forward.time")
	}
	t := out.Table("forward_passes")
	emit := func(labels report.Labels, f *session.Forward) (row []kit.Field) {
		n := f.Time.N()
		distribution(out, "forward.time", labels, &f.Time, source...)
		out.Float("forward.total_time", labels, f.Time.Sum())
		out.Int("forward.count", labels, n)
		row = append(sampleFields(t, &f.Time), kit.Int("passes", n), kit.Float("total", f.Time.Sum()))
		if !stated {
			rate := stat.Ratio(float64(f.Tokens)*1e9, f.Time.Sum())
			out.Int("forward.tokens", labels, f.Tokens)
			out.Metric("forward.token_rate", labels, rate)
			row = append(row, kit.Int("tokens", f.Tokens), kit.Maybe("throughput", rate))
		}
		return row
	}
	emit(nil, all)
	for _, p := range session.Phases {
		f := d.Forward[p]
		if f == nil {
			continue
		}
		row := emit(kit.Labels("phase", p), f)
		share := stat.Ratio(f.Time.Sum(), all.Time.Sum())
		out.Metric("forward.time_share", kit.Labels("phase", p), share)
		t.Partial(append(row, kit.Text("pass_phase", p), kit.Maybe("share", share))...)
		if p == "prefill" && share != nil && *share > forwardPrefill {
			out.Find("prefill_heavy",
				[]report.MetricRef{kit.Ref("forward.time_share", "phase", p), kit.Ref("forward.time", "phase", p)},
				"Use chunked prefill, so that decode steps are not held up (vLLM: on by default in V1), and tune --max-num-batched-tokens: larger for throughput, smaller for the time between tokens.",
				"If prompts share their beginning, check that prefix caching hits.")
		}
	}
	t.Add()
	filesTogether(out, d, name)
	switch {
	case stated:
	case d.CUDAEvents != nil && *d.CUDAEvents:
		out.Note("metadata.json says that times were taken with CUDA events: GPU time of a step, with its gaps.")
	default:
		out.Note("Nothing says how times were taken. The simple profiler times on the host and waits for the GPU after every step, which itself costs time.")
	}
	out.Chart(kit.Lines("forward_throughput", "Tokens per second of forward time, over time", report.PerSecond, sinceStart,
		overTime("tokens per second", &d.Throughput)))
}
