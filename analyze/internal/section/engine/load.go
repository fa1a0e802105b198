package engine

import (
	"fmt"
	"math"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
	units "github.com/nsys-llm/explain/analyze/report/unit"
)

var Load = kit.Section{
	ID: "load", Title: "Load", Evidence: []file.Kind{file.Load},
	Derivation: "What explain load measured at the client, of the requests that succeeded. A latency counts from " +
		"the moment the request was due, not from when it was sent: a server that holds up the load cannot hide " +
		"it.",
	Findings: []kit.FindingDef{
		{ID: "load_failures", Title: "Requests failed under load", Failure: true},
		{ID: "load_saturated", Title: "The server cannot keep up with the rate"},
		{ID: "load_goodput", Title: "Many requests miss their limits"},
	},
	Metrics: []report.MetricDef{
		kit.EventTime("serve.ttft", report.Lower, report.Leave,
			"time from when a request was due to its first token (median)").Summarised(),
		kit.EventTime("serve.tpot", report.Lower, report.Leave,
			"time per output token after the first, one value per request (median)").Summarised(),
		kit.EventTime("serve.itl", report.Lower, report.Leave,
			"time between two tokens, every gap of every request (median)").Summarised(),
		kit.EventTime("serve.e2e", report.Lower, report.Leave,
			"time from when a request was due to the end of its answer (median)").Summarised(),
		kit.Rate("load.request_rate", report.Higher, report.Leave, "requests answered per second of the load"),
		report.Define("load.target_rate", report.PerSecond, report.None, report.Exact, report.Level, report.Leave,
			"requests per second that were due, of an open loop"),
		kit.ExactLevel("load.concurrency", report.None, report.Leave, "requests in flight, at most"),
		kit.Rate("load.output_throughput", report.Higher, report.Leave,
			"tokens generated per second of the load, over all requests"),
		kit.Rate("load.input_throughput", report.Higher, report.Leave,
			"tokens of prompts per second of the load, over all requests"),
		kit.NoisyCount("load.output_tokens", report.None, report.Leave, "tokens generated"),
		kit.ExactCount("load.input_tokens", report.None, report.Leave, "tokens of prompts"),
		kit.Ratio("load.goodput_ratio", report.Higher, report.Leave,
			"share of requests that met every limit given; one that failed met none"),
		kit.Rate("load.goodput", report.Higher, report.Leave, "requests per second that met every limit given"),
		kit.ExactCount("load.requests", report.None, report.Leave, "requests sent and not cancelled"),
		kit.NoisyCount("load.failures", report.Lower, report.Leave, "requests that failed, by kind: connect, reset, "+
			"timeout, http_503, bad_stream, cut_stream, server_error, no_output, client_limit, other").By("", "kind"),
		report.Define("load.failure_ratio", report.Ratio, report.Lower, report.Exact, report.Level, report.Leave,
			"share of requests that failed"),
		kit.NoisyCount("load.late_sends", report.None, report.Leave,
			"requests sent more than 5 ms after they were due"),
		kit.EventTime("load.send_delay", report.None, report.Leave,
			"time from when a request was due until it was sent (median); part of every latency").Summarised(),
		kit.TotalTime("load.window", report.None, report.Leave,
			"time from when the first request was due to the end of the last answer"),
	},
	Tables: []report.Table{
		{ID: "load_latency", Title: "Latency", File: "load_latency.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("latency", "Latency"),
			kit.CountCol("n", "n"),
			kit.MeanCol("p50", "Median"),
			kit.MeanCol("p90", "p90"),
			kit.MeanCol("p99", "p99"),
			kit.MeanCol("max", "Max"),
			kit.MeanCol("mean", "Mean"),
			kit.Wide(kit.MeanCol("stddev", "Std. dev.")),
			kit.Wide(kit.MeanCol("min", "Min")),
		}},
		{ID: "load_failures", Title: "Failures", File: "load_failures.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("kind", "Kind"),
			kit.CountCol("requests", "Requests"),
			kit.RatioCol("share", "Of all"),
		}},
		{ID: "load_requests", Title: "Requests", File: "load_requests.csv", Merge: report.Leave, Columns: []report.Column{
			kit.MomentCol("due", "Due", "due_s"),
			kit.MomentCol("sent", "Sent", "sent_s"),
			kit.MeanCol("ttft", "First token"),
			kit.MeanCol("e2e", "Answer"),
			kit.CountCol("input_tokens", "Input tokens"),
			kit.CountCol("output_tokens", "Output tokens"),
			kit.TextCol("failed", "Failed"),
		}},
	},
	Run: load,
}

// Bounds from which a load gives a finding or a warning.
const (
	lateShare   = 0.01 // of the requests, sent late by the generator itself
	growth      = 2.0  // of the median answer, from the first quarter of the load to the last
	poorGoodput = 0.90
	fewForTail  = 100 // requests, below which a p99 is hardly more than the largest value
	minGrowth   = 40  // requests listed, below which quarters say little
)

func load(in *kit.Input, out *kit.Output) {
	r := in.Evidence.Load.Result
	c := r.Counts
	answered := c.Succeeded + c.Failed
	out.FromEvidence(file.Load, int(answered), "requests")
	if r.Window > 0 {
		out.Int("load.window", nil, r.Window)
	}
	out.Int("load.requests", nil, answered)
	out.Int("load.failures", nil, c.Failed)
	out.Known("load.failure_ratio", nil, stat.Ratio(c.Failed, answered))
	for _, f := range r.Failures {
		out.Int("load.failures", kit.Labels("kind", f.Kind), f.Count)
	}
	out.Int("load.late_sends", nil, c.Late)
	w := &r.Workload
	out.Known("load.target_rate", nil, w.Rate)
	count := func(id string, n *int64) {
		if n != nil {
			out.Int(id, nil, *n)
		}
	}
	count("load.concurrency", w.Concurrency)
	out.FromEvidence(file.Load, int(c.Succeeded), "rates", "tokens", "goodput")
	out.Known("load.request_rate", nil, r.Rates.Requests)
	out.Known("load.output_throughput", nil, r.Rates.OutputTokens)
	out.Known("load.input_throughput", nil, r.Rates.InputTokens)
	count("load.output_tokens", r.Tokens.Output)
	count("load.input_tokens", r.Tokens.Input)
	if g := r.Goodput; g != nil {
		out.Known("load.goodput_ratio", nil, g.Ratio)
		out.Known("load.goodput", nil, g.Rate)
	}
	loadLatency(out, r)
	loadFailures(out, r)
	loadRequests(out, r)
	loadCharts(out, r)
	loadTrust(out, r)
	loadFindings(out, r)
}

func loadLatency(o *kit.Output, r *loadfile.Result) {
	t := o.Table("load_latency")
	for _, l := range []struct {
		name, id, field string
		d               *loadfile.Distribution
	}{
		{"time to first token", "serve.ttft", "ttft", r.Latency.TTFT},
		{"time per output token", "serve.tpot", "tpot", r.Latency.TPOT},
		{"between tokens", "serve.itl", "itl", r.Latency.ITL},
		{"whole answer", "serve.e2e", "e2e", r.Latency.E2E},
		{"due until sent", "load.send_delay", "delay", r.Latency.Delay},
	} {
		if l.d == nil {
			continue
		}
		s := l.d.Summary
		o.FromEvidence(file.Load, int(s.N), "latency."+l.field)
		m, row := o.Float(l.id, nil, s.P50), []kit.Field{kit.Text("latency", l.name), kit.Int("n", s.N)}
		if m.N = s.N; l.d.Only == loadfile.OnlyMedian {
			t.Partial(append(row, kit.Float("p50", s.P50))...)
			continue
		}
		if m.Summary = &s; l.d.Only == "" {
			m.Histogram = new(l.d.Histogram)
		}
		t.Row(append(row, t.Stats(&s)...)...)
	}
	t.Add()
}

func loadFailures(o *kit.Output, r *loadfile.Result) {
	if len(r.Failures) == 0 {
		return
	}
	t := o.Table("load_failures")
	all := float64(r.Counts.Succeeded + r.Counts.Failed)
	for _, f := range r.Failures {
		t.Row(kit.Text("kind", f.Kind), kit.Int("requests", f.Count), kit.Float("share", float64(f.Count)/all))
	}
	t.Add()
}

func loadRequests(o *kit.Output, r *loadfile.Result) {
	row := func(t *kit.Table, i int) {
		q := &r.Requests[i]
		row := []kit.Field{kit.Int("due", q.Due), kit.Int("sent", q.Sent), kit.Text("failed", q.Failed)}
		if q.First != nil {
			row = append(row, kit.Float("ttft", float64(*q.First-q.Due)))
		}
		if q.Failed == "" {
			row = append(row, kit.Float("e2e", float64(q.End-q.Due)))
		}
		if q.Input != nil {
			row = append(row, kit.Int("input_tokens", *q.Input))
		}
		if q.Output != nil {
			row = append(row, kit.Int("output_tokens", *q.Output))
		}
		t.Partial(row...)
	}
	addSpaced(o, "load_requests", len(r.Requests), r.Counts.Sent, "requests", row)
}

func loadCharts(o *kit.Output, r *loadfile.Result) {
	points := func(name string, since func(q *loadfile.Request) *int64) report.Series {
		line := lineOf(name, len(r.Requests), func(i int) int64 { return r.Requests[i].Due }, func(i int) float64 {
			q := &r.Requests[i]
			if at := since(q); q.Failed == "" && at != nil {
				return float64(*at - q.Due)
			}
			return math.NaN()
		})
		line.Style = "points"
		return line
	}
	o.Chart(kit.Lines("load_latency", "Latency over the load", report.Nanoseconds,
		"time since the first request was due", points("first token", func(q *loadfile.Request) *int64 { return q.First }),
		points("whole answer", func(q *loadfile.Request) *int64 { return &q.End })))
}

// loadTrust emits the warnings that limit trust in the numbers.
func loadTrust(o *kit.Output, r *loadfile.Result) {
	c, w := r.Counts, &r.Workload
	if r.Tool.Name != "explain" {
		o.Note("Measured by " + r.Tool.Name + ": latencies count from when a request was sent, not from when it was due.")
		if d := r.Latency.TTFT; d != nil && d.Only == loadfile.OnlyMedian {
			o.Warn("load_medians_only", "The result of "+r.Tool.Name+" holds no samples, so that means and tails are not judged: "+
				"run it with --save-detailed (vLLM) or --output-details (SGLang).")
		}
	} else {
		o.Note(workloadText(w))
	}
	if c.Succeeded == 0 {
		o.Status(report.Partial, "no request succeeded: there are no latencies")
	}
	if !r.Complete {
		why := map[string]string{
			"server_gone": "the server stopped answering before the load was over",
			"interrupted": "the load was interrupted", "aborted": "the load was ended before it was over",
		}[r.Stopped]
		if c.Succeeded > 0 {
			o.Status(report.Partial, why)
		}
		text := fmt.Sprintf("The load is incomplete: %s. %s requests were answered.", why, units.Int(c.Succeeded))
		if c.Cancelled > 0 {
			text += fmt.Sprintf(" %s in flight were cancelled and are left out: slow answers are missing more often than fast ones.",
				units.Int(c.Cancelled))
		}
		o.Warn("load_incomplete", text)
	}
	if float64(c.Late) > lateShare*float64(c.Sent) {
		why := "the generator could not keep the schedule: its machine is too busy, or the rate too high for it"
		if w.Concurrency != nil {
			why = "they waited for one of the " + units.Int(*w.Concurrency) +
				" places, or the generator could not keep the schedule"
		}
		o.Warn("late_sends", fmt.Sprintf("%s of %s requests were sent more than 5 ms after they were due (%s). The delay is part of their latency, see load.send_delay.",
			units.Int(c.Late), units.Int(c.Sent), why))
	}
	if 0 < c.Succeeded && c.Succeeded < fewForTail {
		o.Warn("few_requests", fmt.Sprintf(
			"%s requests succeeded: a p99 of so few is close to the largest value. Send a few hundred.",
			units.Int(c.Succeeded)))
	}
	if n := r.Tokens.Output; r.Tokens.CountedBy == "usage" && n != nil {
		events := c.Succeeded
		if d := r.Latency.ITL; d != nil {
			events += d.Summary.N
		}
		if float64(*n) > 1.05*float64(events) {
			o.Warn("several_tokens_per_event",
				fmt.Sprintf("The server streamed %s tokens in %s events: serve.itl is the time between events, each of several tokens; serve.tpot is per token.",
					units.Int(*n), units.Int(events)))
		}
	}
	if r.Tokens.CountedBy == "events" || r.Tokens.CountedBy == "mixed" {
		o.Warn("tokens_by_events", "The server did not say how many tokens it generated: each event of the stream counts as one.")
	}
}

// workloadText describes the workload in a sentence.
func workloadText(w *loadfile.Workload) string {
	api, how := "completions", "streamed"
	if w.API == "chat" {
		api = "chat completions"
	}
	if !w.Stream {
		how = "not streamed"
	}
	loop := "Closed loop"
	switch {
	case w.Rate != nil:
		loop = "Open loop, " + units.Format(*w.Rate, report.PerSecond) + " requests due at random (Poisson)"
		if w.Concurrency != nil {
			loop += ", " + units.Int(*w.Concurrency) + " in flight at most"
		}
	case w.Concurrency != nil:
		loop += ", " + units.Int(*w.Concurrency) + " in flight"
	}
	return fmt.Sprintf("%s; prompts: %s; %s, %s. Fingerprint of the requests: %s. Loads with different fingerprints are different work.",
		loop, w.Prompts, api, how, w.Fingerprint)
}

func loadFindings(o *kit.Output, r *loadfile.Result) {
	c := r.Counts
	if answered := c.Succeeded + c.Failed; c.Failed > 0 {
		evidence := kit.Refs("load.failures", "load.failure_ratio")
		for _, f := range r.Failures {
			evidence = append(evidence, kit.Ref("load.failures", "kind", f.Kind))
		}
		o.Find("load_failures", evidence,
			"Latencies cover only the requests that succeeded, and the failed ones are often the slow ones: find the cause in the server's log before comparing anything.").Costs(kit.WorthOf(report.OfRequests, float64(c.Failed), float64(answered)))
	}
	if r.Workload.Rate != nil && r.Rates.Requests != nil && growing(r.Requests) {
		o.Find("load_saturated", kit.Refs("load.request_rate", "load.target_rate", "serve.e2e"),
			"Requests pile up, and their latency grows as long as the load lasts: it measures the length of the run more than the server. Measure at a rate that it can keep, or compare throughput.")
	}
	if g := r.Goodput; g != nil && g.Ratio != nil && *g.Ratio < poorGoodput {
		o.Find("load_goodput", kit.Refs("load.goodput_ratio"),
			"Lower the rate, or shorten the slow part of the request: a long time to the first token is queueing or prefill, "+
				"a long time per token is decoding.").
			Costs(kit.WorthOf(report.OfRequests, 1-*g.Ratio, 1))
	}
}

// growing reports whether answers took much longer at the end of the load than at its start.
func growing(list []loadfile.Request) bool {
	var times []float64
	for i := range list {
		if list[i].Failed == "" {
			times = append(times, float64(list[i].End-list[i].Due))
		}
	}
	if len(times) < minGrowth {
		return false
	}
	quarter := len(times) / 4
	first, last := stat.Summarize(times[:quarter]), stat.Summarize(times[len(times)-quarter:])
	return last.P50 >= growth*first.P50
}
