package engine

import (
	"math"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/prom"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var Latency = kit.Section{
	ID: "latency", Title: "Latencies of requests", Evidence: []file.Kind{file.Prometheus},
	Derivation: "The histograms of the server's metrics, over all engines and models. A histogram has the number of " +
		"observations in each bucket, not their values: percentiles are interpolated linearly within their bucket, " +
		"as Prometheus does, and can be wrong by its width. Least and greatest are the edges of the outermost " +
		"buckets that hold any; the mean is exact; the standard deviation takes observations as spread evenly " +
		"over their bucket. Percentiles above the last bucket's edge are unknown, and the table gives that edge. With two " +
		"dumps the difference counts, with one everything since the server started.",
	Findings: []kit.FindingDef{
		{ID: "queue_before_first_token", Title: "Queueing dominates time to first token"},
	},
	Metrics: []report.MetricDef{
		bucketedTime("serve.ttft", "time to first token of a request"),
		bucketedTime("serve.tpot", "time per output token: of a request's tokens after the first on average, if the "+
			"server states that; else between tokens"),
		bucketedTime("serve.itl", "time between two tokens of a request"),
		bucketedTime("serve.e2e", "time of a request from its arrival to its last token"),
		bucketedTime("serve.queue_time", "time that a request waits to run"),
		bucketedTime("serve.inference_time", "time that a request runs"),
		bucketedTime("serve.prefill_time", "time that a request spends in prefill"),
		bucketedTime("serve.decode_time", "time that a request spends in decode"),
		bucketedTokens("serve.request_prompt_tokens", "prompt tokens of a request"),
		bucketedTokens("serve.request_computed_tokens",
			"prompt tokens of a request whose keys and values were computed, not found in a cache"),
		bucketedTokens("serve.request_generation_tokens", "generated tokens of a request"),
	},
	Tables: []report.Table{
		{ID: "latency", Title: "Latencies", File: "latency.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("latency", "Latency"),
			kit.CountCol("observations", "Observations"),
			kit.MeanCol("mean", "Mean", "mean_ms"),
			kit.MeanCol("p50", "p50", "p50_ms"),
			kit.MeanCol("p90", "p90", "p90_ms"),
			kit.MeanCol("p99", "p99", "p99_ms"),
			kit.MeanCol("above", "Unknown above", "unknown_above_ms"),
			kit.TextCol("metric", "Metric"),
		}},
		{ID: "request_size", Title: "Tokens of a request", File: "request_size.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("what", "Tokens"),
			kit.CountCol("observations", "Requests"),
			kit.FloatCol("mean", "Mean", report.Count),
			kit.FloatCol("p50", "p50", report.Count),
			kit.FloatCol("p90", "p90", report.Count),
			kit.FloatCol("p99", "p99", report.Count),
		}},
	},
	Run: latency,
}

// bucketedTime declares a latency for which the server keeps a histogram.
func bucketedTime(id, meaning string) report.MetricDef {
	return kit.EventTime(id, report.Lower, report.Leave, meaning+
		" (interpolated median; the summary is of the histogram, and missing where part of it is unknown)").
		Summarised().By("", "quantile")
}

// bucketedTokens declares a number of tokens for which the server keeps a histogram.
func bucketedTokens(id, meaning string) report.MetricDef {
	return report.Define(id, report.Count, report.None, report.Noisy, report.Event, report.Leave,
		meaning+" (interpolated median; the summary is of the histogram)").Summarised()
}

// histogram is one of the server: its metric, and its name in a table.
type histogram struct{ of, id, name string }

// latencies in the order of the table.
var latencies = []histogram{
	{prom.TTFT, "serve.ttft", "time to first token"},
	{prom.TPOT, "serve.tpot", "time per output token"},
	{prom.ITL, "serve.itl", "time between tokens"},
	{prom.E2E, "serve.e2e", "whole request"},
	{prom.Queue, "serve.queue_time", "queue"},
	{prom.Inference, "serve.inference_time", "inference"},
	{prom.PrefillTime, "serve.prefill_time", "prefill"},
	{prom.DecodeTime, "serve.decode_time", "decode"},
}

// requestSizes are the tokens of a request.
var requestSizes = []histogram{
	{prom.PromptLen, "serve.request_prompt_tokens", "prompt"},
	{prom.ComputedLen, "serve.request_computed_tokens", "prompt, computed"},
	{prom.OutputLen, "serve.request_generation_tokens", "generated"},
}

var quantiles = []struct {
	name string
	q    float64
}{{"p50", 0.50}, {"p90", 0.90}, {"p99", 0.99}}

// queueShare is the share of the queue in the time to the first token, by medians, from which it is a finding.
const queueShare = 0.5

func latency(in *kit.Input, out *kit.Output) {
	d := in.Evidence.Prom
	if d.Engine == "" {
		out.Status(report.NotApplicable, "the dump has no metrics of vLLM, SGLang or TensorRT-LLM")
		return
	}
	t := out.Table("latency")
	bars := make([]report.Series, len(quantiles))
	for i, q := range quantiles {
		bars[i] = report.Series{Name: q.name, Labels: []string{}, Values: []float64{}}
	}
	observed := false
	for _, l := range latencies {
		h := d.Hists[l.of]
		if h == nil {
			continue
		}
		out.FromEvidence(file.Prometheus, int(h.Count), h.Family, h.Edges())
		values, above, row := bucketed(out, &l, h, 1e9)
		for i, q := range quantiles {
			out.Metric(l.id, kit.Labels("quantile", q.name), values[i]).N = int64(h.Count)
			if values[i] != nil {
				bars[i].Labels, bars[i].Values = append(bars[i].Labels, l.name), append(bars[i].Values, *values[i])
			}
		}
		observed = observed || h.Count > 0
		t.Partial(append(row, kit.Text("latency", l.name), kit.Maybe("above", above), kit.Text("metric", h.Family))...)
	}
	t.Add()
	sizes := out.Table("request_size")
	for _, l := range requestSizes {
		if h := d.Hists[l.of]; h != nil && h.Count > 0 {
			out.FromEvidence(file.Prometheus, int(h.Count), h.Family, h.Edges())
			_, _, row := bucketed(out, &l, h, 1)
			sizes.Partial(append(row, kit.Text("what", l.name))...)
		}
	}
	sizes.Add()
	switch {
	case t.Len() == 0:
		out.Status(report.NotApplicable, "the dump has no histograms of latencies")
		return
	case !observed:
		out.Status(report.NotApplicable, "no request was served: the histograms are empty")
		return
	}
	if len(bars[0].Values) > 0 {
		out.Chart(report.Chart{ID: "latency", Title: "Latencies", Kind: "bar", Unit: report.Nanoseconds, Series: bars})
	}
	queueFinding(out, d)
}

// bucketed emits the median of a histogram, scaled, with its summary if all of it is known. It returns the percentiles,
// nil if unknown, for those beyond the last bucket the bound that they exceed, and the cells of a row.
func bucketed(o *kit.Output, l *histogram, h *prom.Histogram, scale float64) (values [3]*float64, above *float64, row []kit.Field) {
	row = append(row, kit.Int("observations", int64(h.Count)))
	for i, q := range quantiles {
		v, ok := h.Quantile(q.q)
		if v *= scale; scale == 1e9 {
			v = math.Round(v) // to the nanosecond
		}
		switch {
		case ok:
			values[i] = &v
		case h.Count > 0:
			above = &v
		}
		row = append(row, kit.Maybe(q.name, values[i]))
	}
	mean := stat.Ratio(h.Sum, h.Count)
	switch {
	case math.IsNaN(h.Sum):
		mean = nil
	case mean != nil:
		*mean *= scale
	}
	row = append(row, kit.Maybe("mean", mean))
	if o.In.Evidence.Load != nil && kit.ClientMetrics[l.id] {
		return values, above, row
	}
	m := o.Metric(l.id, nil, values[0])
	m.N = int64(h.Count)
	if low, high, ok := h.Range(); ok && mean != nil && above == nil {
		m.Summary = &report.Summary{N: m.N, Min: low * scale, P50: *values[0], P90: *values[1], P99: *values[2],
			Max: high * scale, Mean: *mean, Stddev: h.Spread() * scale}
	}
	return values, above, row
}

func queueFinding(o *kit.Output, d *prom.Data) {
	queue, first := d.Hists[prom.Queue], d.Hists[prom.TTFT]
	if queue == nil || first == nil {
		return
	}
	q, ok1 := queue.Quantile(0.5)
	f, ok2 := first.Quantile(0.5)
	if ok1 && ok2 && f > 0 && q >= queueShare*f {
		whole := first
		if e := d.Hists[prom.E2E]; e != nil && e.Sum > 0 {
			whole = e
		}
		o.Find("queue_before_first_token", kit.Refs("serve.queue_time", "serve.ttft"),
			"More requests arrive than run at once: look at what limits the batch (KV cache, --max-num-seqs, --max-num-batched-tokens), or add replicas.").
			Costs(kit.WorthOf(report.OfLatency, queue.Sum, whole.Sum))
	}
}
