package engine

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Requests = kit.Section{
	ID: "requests", Title: "Requests", Evidence: []file.Kind{file.ServerLog},
	Derivation: "Requests as the log follows them: received by the server, added to the engine, finished. Newer " +
		"versions put a random suffix behind the engine's id, which is taken off to match it. Responses are the " +
		"lines of the access log by HTTP status.",
	Findings: []kit.FindingDef{
		{ID: "failed_responses", Title: "Some requests were answered with an error"},
	},
	Metrics: []report.MetricDef{
		kit.NoisyCount("serve.requests", report.None, report.Leave, "requests that the server says it received"),
		kit.NoisyCount("serve.requests_added", report.None, report.Leave, "requests that were given to the engine"),
		kit.NoisyCount("serve.requests_matched", report.None, report.Leave,
			"requests whose two lines were found and matched"),
		kit.NoisyCount("serve.requests_finished", report.None, report.Leave,
			"requests whose end the log states, or leaves no doubt about"),
		kit.NoisyCount("serve.requests_aborted", report.Lower, report.Leave, "requests that the log says were aborted"),
		kit.EventTime("serve.request_time", report.Lower, report.Leave, "time from receiving a request to its end, on "+
			"a clock of seconds (median; the summary is over requests whose end is known)").Summarised(),
		kit.EventTime("serve.request_queue_time", report.Lower, report.Leave,
			"time from receiving a request to giving it to the engine, on a clock of seconds (median; the summary is "+
				"over matched requests)").Summarised(),
		kit.EventTime("serve.request_token_time", report.Lower, report.Leave, "time in the engine for each generated "+
			"token, prefill included, as text-generation-inference states it (median over requests)").Summarised(),
		kit.NoisyCount("serve.responses", report.None, report.Leave, "lines of the access log").By("", "status"),
	},
	Tables: []report.Table{
		{ID: "responses", Title: "Responses", File: "responses.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("status", "HTTP status"),
			kit.CountCol("count", "Responses"),
		}},
		{ID: "request_times", Title: "Times of requests", File: "request_times.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("what", "Time"),
			kit.CountCol("requests", "Requests"),
			kit.MeanCol("mean", "Mean", "mean_ms"),
			kit.MeanCol("p50", "p50", "p50_ms"),
			kit.MeanCol("p90", "p90", "p90_ms"),
			kit.MeanCol("p99", "p99", "p99_ms"),
			kit.NsCol("max", "Max.", "max_ms"),
		}},
		{ID: "request_list", Title: "Requests", File: "requests.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("request_id", "Request"),
			kit.TextCol("received_time", "Received"),
			kit.TextCol("added_time", "Added"),
			kit.TextCol("completed_time", "Completed"),
			kit.NsCol("queue", "Queue", "queue_time_ms"),
			kit.NsCol("processing", "Processing", "processing_time_ms"),
			kit.NsCol("total", "Total", "total_time_ms"),
		}},
	},
	Run: requests,
}

func requests(in *kit.Input, out *kit.Output) {
	log := in.Evidence.Log
	r := &log.Requests
	responses := lists.Total(slices.Collect(maps.Values(log.Events.Status)))
	if len(r.Timed) > 0 {
		timedRequests(out, log)
		return
	}
	if len(r.List) == 0 && responses == 0 {
		out.Status(report.NotApplicable,
			"the log names no requests (vLLM: --enable-log-requests) and has no access log")
		return
	}
	if responses > 0 {
		responsesTable(out, log, responses)
	}
	if len(r.List) == 0 {
		out.Note("The log does not name requests (vLLM: --enable-log-requests does).")
		return
	}
	out.FromEvidence(file.ServerLog, len(r.List), "Received request", "Added request", "Finished request")
	out.Int("serve.requests", nil, r.Received).N = r.Received
	out.Int("serve.requests_added", nil, r.Added).N = r.Added
	out.Int("serve.requests_matched", nil, r.Matched)
	t := out.Table("request_list")
	var queue, total []int64
	var aborted, finished int64
	for i := range r.List {
		q := &r.List[i]
		if q.Aborted {
			aborted++
		}
		if q.Finished != serverlog.NoClock {
			finished++
		}
		wait, work, whole := between(q.Received, q.Added), between(q.Added, q.Finished), between(q.Received, q.Finished)
		queue, total = appendKnown(queue, wait), appendKnown(total, whole)
		if i >= maxLogRows {
			continue
		}
		id := cmp.Or(q.PublicID(), "request "+strconv.Itoa(i+1))
		t.Row(
			kit.Text("request_id", id), kit.Put("received_time", stamp(q.Received, log.Year)),
			kit.Put("added_time", stamp(q.Added, log.Year)),
			kit.Put("completed_time", stamp(q.Finished, log.Year)), kit.Put("queue", wait),
			kit.Put("processing", work), kit.Put("total", whole))
	}
	attachFirst(out, t, len(r.List), "requests")
	out.Int("serve.requests_finished", nil, finished)
	if aborted > 0 {
		out.Int("serve.requests_aborted", nil, aborted)
	}
	requestTimes(out, total, queue, nil)
	out.Note("Timestamps are in whole seconds: a time of 0 is less than one second.")
	if finished < r.Received {
		out.Note("The access log has neither request ids nor times. A response ends a request here only if no other request was open and the engine had generated tokens for it; otherwise the end is unknown.")
	}
}

// timedRequests are those of text-generation-inference, whose router states all times of a request at its end.
func timedRequests(out *kit.Output, log *serverlog.Data) {
	list := log.Requests.Timed
	out.FromEvidence(file.ServerLog, len(list), "total_time", "validation_time", "queue_time", "inference_time",
		"time_per_token")
	t := out.Table("request_list")
	var total, queue, token []int64
	for i, q := range list {
		whole, wait, work := kit.Known(q.Total.Nanoseconds()), kit.Known(q.Queue.Nanoseconds()), kit.Known(q.Work.Nanoseconds())
		total, queue = appendKnown(total, whole), appendKnown(queue, wait)
		token = appendKnown(token, kit.Known(q.PerToken.Nanoseconds()))
		if i < maxLogRows {
			t.Partial(kit.Text("request_id", "request "+strconv.Itoa(i+1)), kit.Put("completed_time", stamp(q.Clock, log.Year)),
				kit.Put("queue", wait), kit.Put("processing", work), kit.Put("total", whole))
		}
	}
	attachFirst(out, t, len(list), "requests")
	out.Int("serve.requests_finished", nil, int64(len(list))).N = int64(len(list))
	requestTimes(out, total, queue, token)
	out.Note("The router of text-generation-inference logs a request when it has answered it, and neither its tokens nor how many others run.")
}

// requestTimes emits how long requests took, how long they waited, and their time per token, if known.
func requestTimes(out *kit.Output, total, queue, token []int64) {
	t := out.Table("request_times")
	for _, s := range []struct {
		id, name string
		sample   []int64
	}{
		{"serve.request_time", "whole request", total}, {"serve.request_queue_time", "in the queue", queue},
		{"serve.request_token_time", "for each token", token},
	} {
		if len(s.sample) == 0 {
			continue
		}
		m := out.Summary(s.id, nil, s.sample).Summary
		t.Row(append(t.Stats(m), kit.Text("what", s.name), kit.Int("requests", m.N))...)
	}
	t.Add()
}

// between is the time from one moment to another, unknown if one of them is or if they run backwards.
func between(from, to int64) report.Cell {
	if from == serverlog.NoClock || to == serverlog.NoClock || to < from {
		return report.Null
	}
	return report.I((to - from) * 1e9)
}

func appendKnown(list []int64, c report.Cell) []int64 {
	if v, ok := c.Int(); ok {
		return append(list, v)
	}
	return list
}

// stamp is a moment as the log writes it.
func stamp(clock int64, year bool) report.Cell {
	if clock == serverlog.NoClock {
		return report.Null
	}
	return report.S(serverlog.ClockText(clock, year))
}

func responsesTable(o *kit.Output, log *serverlog.Data, all int64) {
	o.FromEvidence(file.ServerLog, int(all), "HTTP access")
	o.Int("serve.responses", nil, all)
	t := o.Table("responses")
	var failed []report.MetricRef
	var broken int64
	for _, code := range slices.Sorted(maps.Keys(log.Events.Status)) {
		n, status := log.Events.Status[code], strconv.FormatInt(code, 10)
		o.Int("serve.responses", kit.Labels("status", status), n).N = n
		t.Row(kit.Text("status", status), kit.Int("count", n))
		if code >= 400 {
			failed = append(failed, kit.Ref("serve.responses", "status", status))
		}
		if code >= 500 {
			broken += n
		}
	}
	t.Add()
	if len(failed) > 0 {
		o.Find("failed_responses", append(failed, kit.Ref("serve.responses")),
			"A status below 500 is the client's fault (a wrong model name, a prompt that is too long), one from 500 on the server's. The engine's statistics do not include these requests.").
			Fails(broken > 0).Costs(kit.WorthOf(report.OfRequests, float64(broken), float64(all)))
	}
}
