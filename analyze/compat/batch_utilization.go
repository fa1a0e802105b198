package compat

import (
	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var BatchUtilization = kit.Section{
	ID: "batch_utilization", Title: "Batch utilisation",
	Evidence: ofSession,
	Derivation: "Rows of the session's batch_utilization.csv, one per call of the scheduler: sequences over " +
		"max_num_seqs and tokens over max_num_batched_tokens, computed anew. A row whose limit is 0 has no " +
		"utilisation; profilemate counts it as 0.",
	Findings: []kit.FindingDef{
		{ID: "batches_small", Title: "Batches fill little of what the scheduler allows"},
		{ID: "batches_full", Title: "Batches are full: the scheduler's token limit bounds the work"},
		{ID: "requests_wait", Title: "Requests are queued in most steps: the server is overloaded"},
	},
	Metrics: []report.MetricDef{
		kit.Ratio("batch.seq_utilization", report.Higher, report.Leave,
			"mean share of max_num_seqs that a batch fills; the summary is over batches").Summarised().By("", "phase"),
		kit.Ratio("batch.token_utilization", report.Higher, report.Leave, "mean share of max_num_batched_tokens that "+
			"a batch fills; the summary is over batches").Summarised().By("", "phase"),
		kit.Ratio("batch.underutilized", report.Lower, report.Leave,
			"share of batches that fill less than half of max_num_batched_tokens"),
		kit.NoisyLevel("batch.running", report.None, report.Leave,
			"mean requests in the running queue; the summary is over batches").Summarised(),
		kit.NoisyLevel("batch.waiting", report.Lower, report.Leave,
			"mean requests in the waiting queue; the summary is over batches").Summarised(),
		kit.Ratio("batch.waiting_ratio", report.Lower, report.Leave, "share of batches at which some request waited"),
		kit.ExactLevel("batch.max_num_seqs", report.None, report.Leave,
			"the scheduler's limit of sequences; unknown if rows disagree"),
		kit.ExactLevel("batch.max_num_tokens", report.None, report.Leave,
			"the scheduler's limit of tokens; unknown if rows disagree"),
	},
	Tables: []report.Table{
		{ID: "batches", Title: "Batches by phase", File: "batches.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("batch_phase", "Phase"),
			kit.CountCol("batches", "Batches"),
			kit.RatioCol("seqs", "Sequences, mean", "mean_seqs_pct"),
			kit.RatioCol("seqs_p90", "p90", "p90_seqs_pct"),
			kit.RatioCol("tokens", "Tokens, mean", "mean_tokens_pct"),
			kit.RatioCol("tokens_p90", "p90", "p90_tokens_pct"),
		}},
	},
	Run: batchUtilization,
}

// The bounds are profilemate's: on the mean token utilisation, and on the share of batches with a queue.
const (
	batchLow    = 0.60
	batchHigh   = 0.95
	batchQueued = 0.50 // of the batches: some request waits
)

func batchUtilization(in *kit.Input, out *kit.Output) {
	const name, summary = "batch_utilization.csv", "batch_utilization_summary.json"
	d := sessionOf(in)
	b, s := &d.Batches, &d.Summaries.Batches
	if b.Steps == 0 {
		if s.Steps == 0 {
			sessionLacks(out, d, name, summary)
			return
		}
		out.Status(report.Partial, "the session has only "+summary+": means, no distributions and no queues")
		fromSession(out, s.Steps, summary, "total_samples", "mean_token_utilization_pct",
			"mean_seq_utilization_pct", "underutilization_events")
		out.Metric("batch.token_utilization", nil, s.Tokens[""].Mean())
		out.Metric("batch.seq_utilization", nil, s.Seqs[""].Mean())
		out.Metric("batch.underutilized", nil, stat.Ratio(s.Under, s.Steps))
		out.Note("profilemate counts a batch whose limit it did not find as empty; these means contain that.")
		return
	}
	t := out.Table("batches")
	for _, p := range append([]string{""}, session.Phases...) {
		seqs, tokens := b.Seqs[p], b.Tokens[p]
		if seqs == nil && tokens == nil {
			continue
		}
		var labels report.Labels
		title := "all"
		if p != "" {
			labels, title = kit.Labels("phase", p), p
		}
		row, batches := []kit.Field{kit.Text("batch_phase", title)}, report.Null
		for _, x := range []struct {
			id, column, limit, mean string
			sample                  *session.Sample
		}{
			{"batch.seq_utilization", "num_seqs", "max_num_seqs", "seqs", seqs},
			{"batch.token_utilization", "num_tokens", "max_tokens", "tokens", tokens},
		} {
			if x.sample == nil {
				continue
			}
			sum := x.sample.Summary()
			meanOf(out, x.id, labels, x.sample, name, x.column, x.limit, "phase")
			batches = report.I(x.sample.N())
			row = append(row, kit.Float(x.mean, sum.Mean), kit.Float(x.mean+"_p90", sum.P90))
		}
		t.Partial(append(row, kit.Put("batches", batches))...)
	}
	t.Add()
	tokens := b.Tokens[""]
	if tokens != nil {
		fromSession(out, tokens.N(), name, "num_tokens", "max_tokens")
		out.Metric("batch.underutilized", nil, stat.Ratio(b.Under, tokens.N()))
	}
	meanOf(out, "batch.running", nil, &b.Running.Sample, name, "running_queue_len")
	meanOf(out, "batch.waiting", nil, &b.Waiting.Sample, name, "waiting_queue_len")
	waiting := stat.Ratio(b.Queued, b.Waiting.N())
	out.Known("batch.waiting_ratio", nil, waiting)
	fromSession(out, b.Steps, name, "max_num_seqs", "max_tokens")
	out.Metric("batch.max_num_seqs", nil, floatOf(b.MaxSeqs.Value()))
	out.Metric("batch.max_num_tokens", nil, floatOf(b.MaxTokens.Value()))
	if tokens == nil {
		out.Status(report.Partial, "no row states the scheduler's limit: utilisation is unknown")
	}
	filesTogether(out, d, name)
	out.Chart(kit.Lines("batch_utilization", "Batch utilisation over time", report.Ratio, sinceStart,
		overTime("sequences", &b.SeqsOverTime), overTime("tokens", &b.TokensOverTime)))
	out.Chart(kit.Lines("batch_queues", "Requests running and waiting over time", report.Count, sinceStart,
		overTime("running", &b.Running.OverTime), overTime("waiting", &b.Waiting.OverTime)))
	batchFindings(out, tokens, waiting)
}

func batchFindings(out *kit.Output, tokens *session.Sample, waiting *float64) {
	if tokens != nil {
		evidence := kit.Refs("batch.token_utilization", "batch.underutilized")
		switch mean := *tokens.Mean(); {
		case mean < batchLow:
			out.Find("batches_small", evidence,
				"A decode step has one token for each request, so low token utilisation is normal while decode dominates: look at the rows by phase. If prefill batches are small too, the load is low or requests arrive one by one.",
				"A smaller --max-num-batched-tokens or --max-num-seqs leaves more memory for the KV cache, and costs nothing "+
					"while batches are not full.")
		case mean > batchHigh:
			out.Find("batches_full", evidence,
				"Raise --max-num-batched-tokens if the time between tokens allows it; prompts are being cut into chunks at this limit.")
		}
	}
	if waiting != nil && *waiting >= batchQueued {
		out.Find("requests_wait", kit.Refs("batch.waiting_ratio", "batch.waiting"),
			"If the KV cache is full, give it more memory or shorten --max-model-len; if not, raise --max-num-seqs.",
			"Otherwise the load is above what this server can do: more replicas, or fewer requests.")
	}
}

// meanOf emits a metric whose value is the mean, with the summary of the sample. Its source is that of fromSession.
func meanOf(o *kit.Output, id string, labels report.Labels, s *session.Sample, source ...string) {
	fromSession(o, s.N(), source...)
	if d := s.Summary(); d != nil {
		m := o.Float(id, labels, d.Mean)
		m.N, m.Summary = s.N(), d
	}
}

func floatOf(v *int64) *float64 {
	return report.Of(v, func(n int64) *float64 { return new(float64(n)) }, nil)
}
