package engine

import (
	"math"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Scheduler = kit.Section{
	ID: "scheduler", Title: "Scheduler: batches, queue and KV pools", Evidence: []file.Kind{file.ServerLog},
	Derivation: "Ratios of what the server logs: tokens of a step over the most that it may batch, requests that wait " +
		"over those that run, preemptions over steps. Numbers from lines of statistics are over the steady lines, as in " +
		"the section on serving.",
	Metrics: []report.MetricDef{
		kit.Ratio("serve.batch_utilization", report.Higher, report.Leave, "tokens of a step ÷ max_num_batched_tokens "+
			"(median; the summary is over steps that are not idle)").Summarised(),
		kit.NoisyLevel("serve.queue_pressure", report.Lower, report.Leave, "requests that wait ÷ requests that run "+
			"(median; the summary is over steady lines with any that run)").Summarised(),
		kit.Ratio("serve.preemption_rate", report.Lower, report.Leave, "preemptions ÷ iterations of the engine"),
		kit.NoisyLevel("serve.requests_deferred", report.Lower, report.Leave,
			"requests that wait for something other than a place, such as a KV cache from another server (median; the "+
				"summary is over steady lines)").Summarised(),
		kit.Ratio("serve.pool_usage", report.None, report.Leave, "share of a pool of the KV cache that is in use "+
			"(median; the summary is over steady lines)").Summarised().By("pool"),
		kit.Ratio("serve.media_cache_hit_rate", report.Higher, report.Leave, "share of images and other media found "+
			"in the cache (median; the summary is over steady lines)").Summarised(),
		kit.NoisyCount("serve.kv_transfers", report.None, report.Leave, "KV caches that were moved between servers"),
		report.Define("serve.kv_transfer_bytes", report.Bytes, report.None, report.Noisy, report.Total, report.Leave,
			"bytes of these, from their logged mean"),
		kit.EventTime("serve.kv_transfer_time", report.Lower, report.Leave, "mean time of one such transfer"),
	},
	Tables: []report.Table{
		{ID: "scheduler", Title: "Batches and queue", File: "scheduler.csv", Merge: report.Leave,
			Columns: statisticColumns(kit.TextCol("statistic", "Statistic"), report.Ratio)},
	},
	Run: scheduler,
}

func scheduler(in *kit.Input, out *kit.Output) {
	log := in.Evidence.Log
	t := out.Table("scheduler")
	batches(out, t, log)

	list := log.Samples
	out.FromEvidence(file.ServerLog, len(list), "Waiting", "Running", "token usage")
	emit := func(name, id string, l report.Labels, of func(s *serverlog.Sample) float64) {
		s := sampled(list, of, steady)
		s.emit(out, id, l)
		if name != "" {
			s.row(t, name)
		}
	}
	emit("waiting per running request", "serve.queue_pressure", nil, decoding(func(s *serverlog.Sample) float64 {
		if !(s.Running > 0) {
			return math.NaN()
		}
		return s.Waiting / s.Running
	}))
	for p, name := range serverlog.PoolNames {
		emit("KV pool "+name, "serve.pool_usage", kit.Labels("pool", name),
			decoding(func(s *serverlog.Sample) float64 { return s.Pools[p] }))
	}
	emit("", "serve.requests_deferred", nil, func(s *serverlog.Sample) float64 { return s.Deferred })
	emit("", "serve.media_cache_hit_rate", nil, func(s *serverlog.Sample) float64 { return s.MediaHits })

	if n := log.Iterations.Len(); n > 0 && log.HasPreemptions {
		out.FromEvidence(file.ServerLog, n, "Preemptions", "Iteration(N)")
		out.Float("serve.preemption_rate", nil, float64(log.Preemptions)/float64(n)).N = int64(n)
	}
	if x := &log.Transfers; x.Lines > 0 {
		out.FromEvidence(file.ServerLog, int(x.Lines), "KV Transfer metrics")
		out.Int("serve.kv_transfers", nil, x.Count)
		out.Float("serve.kv_transfer_bytes", nil, x.Bytes)
		if x.Count > 0 {
			out.Float("serve.kv_transfer_time", nil, x.Seconds*1e9/float64(x.Count)).N = x.Count
		}
	}
	t.Add()
	if len(out.Metrics()) == 0 {
		out.Status(report.NotApplicable, "the log has no lines on batches, the queue or pools of the KV cache")
	}
}

// batches emits how full the steps were: by the scheduler's own lines, or by the iterations and the limit that the
// server was started with.
func batches(out *kit.Output, t *kit.Table, log *serverlog.Data) {
	var shares []float64
	if most := log.Start().MaxBatchedTokens; len(log.Batches) == 0 && most > 0 {
		out.FromEvidence(file.ServerLog, log.Iterations.Len(), "Iteration(N)", "max_num_batched_tokens")
		for i := range log.Iterations.Len() {
			if it := log.Iterations.At(i); it.Type() != serverlog.Idle {
				shares = append(shares, float64(it.ContextTokens+it.Tokens)/float64(most))
			}
		}
	} else {
		out.FromEvidence(file.ServerLog, len(log.Batches), "num_batched_tokens", "max_num_batched_tokens")
		shares = lists.Map(log.Batches, func(b serverlog.Batch) float64 { return float64(b.Tokens) / float64(b.Most) })
	}
	s := steadySample{all: int64(len(shares)), steady: stat.Summarize(shares)}
	s.emit(out, "serve.batch_utilization", nil)
	s.row(t, "batch, tokens")
}
