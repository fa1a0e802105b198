package noise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// number names one compared number of reports without a trace: a statistic of a metric, or its value if stat is empty.
// column is the column of the table serving_samples that lists its samples in order; empty if there is none.
type number struct{ id, stat, column string }

// numbers lists them in the order of the rows: first what clients notice, then what the server did, then its resources.
func numbers() []number {
	return []number{
		{"serve.generation_throughput", "p50", "generation"}, {"serve.prompt_throughput", "p50", "prompt"},
		{"serve.ttft", "mean", ""}, {"serve.ttft", "p50", ""}, {"serve.ttft", "p99", ""},
		{"serve.tpot", "mean", ""}, {"serve.tpot", "p50", ""}, {"serve.tpot", "p99", ""}, {"serve.itl", "mean", ""},
		{"serve.e2e", "mean", ""}, {"serve.e2e", "p99", ""}, {"serve.queue_time", "mean", ""},
		{"serve.prefill_time", "mean", ""}, {"serve.decode_time", "mean", ""},
		{"serve.requests_running", "p50", "running"}, {"serve.requests_waiting", "p50", "waiting"},
		{"serve.kv_cache_usage", "p50", "usage"}, {"serve.kv_cache_usage", "max", ""},
		{"serve.prefix_cache_hit_rate", "", ""}, {"serve.spec_acceptance_rate", "", ""},
		{"serve.spec_acceptance_length", "mean", ""},
		{"serve.model_flops", "p50", ""}, {"serve.model_bandwidth", "p50", ""}, {"serve.graph_padding", "", ""},
		{"serve.expert_balance", "p50", ""},
		{"serve.kv_cache_tokens", "", ""}, {"serve.kv_cache_bytes", "", ""}, {"serve.kv_bytes_per_token", "", ""},
		{"serve.kv_bytes_per_request", "", ""}, {"serve.kv_bytes_needed", "", ""}, {"serve.max_concurrency", "", ""},
		{"serve.weight_bytes", "", ""},
		{"serve.model_load_time", "", ""}, {"serve.compile_time", "", ""}, {"serve.graph_capture_time", "", ""},
		{"serve.init_time", "", ""}, {"serve.ready_time", "", ""},
	}
}

const (
	maxMeasured = 60 // rows of numbers
	maxNCURows  = 20 // kernels with the longest time on the base
)

// Measured decides the rows of the numbers that both sides measured, at most maxMeasured with those that the comparison
// has before. Beside traces, whose metrics have rows, it returns those of logs, load runs and Nsight Compute alone.
func (x *Decider) Measured(beside bool, before int) (rows []comparison.Row) {
	known := map[string]bool{}
	add := func(n number, l report.Labels) {
		known[n.id] = true
		if before+len(rows) >= maxMeasured {
			return
		}
		if row, ok := x.measuredRow(n, l); ok {
			rows = append(rows, row)
		}
	}
	for _, n := range numbers() {
		add(n, report.Labels{})
	}
	for _, l := range longestKernels(x.Base.Captures[0], x.Head.Captures[0]) {
		add(number{"ncu.duration", "mean", ""}, l)
	}
	// Add metrics of other evidence that do not grow with the length of a recording.
	for i := range x.Base.Captures[0].Report.Metrics {
		m := &x.Base.Captures[0].Report.Metrics[i]
		stat := ""
		if m.Summary != nil {
			stat = "mean"
		}
		if len(m.Labels) == 0 && !known[m.ID] && m.Better != report.None &&
			(!beside || comparison.Beside(m.ID)) && compares(m, stat) {
			add(number{m.ID, stat, ""}, report.Labels{})
		}
	}
	return rows
}

// compares reports whether a metric describes the served load. Metrics per unit of work have rows of their own, and
// totals grow with the length of the recording.
func compares(m *report.Metric, stat string) bool {
	return m.Scale != report.PerUnit && !policy.Grows(m.Scale, stat)
}

// longestKernels returns the labels of the kernels of both sides that Nsight Compute measured longest on the base.
func longestKernels(base, head *side.Capture) []report.Labels {
	var list []*report.Metric
	for i := range base.Report.Metrics {
		m := &base.Report.Metrics[i]
		if m.ID == "ncu.duration" && len(m.Labels) == 1 && m.Labels["kernel"] != "" && m.Value != nil &&
			head.Metric(m.ID, m.Labels) != nil {
			list = append(list, m)
		}
	}
	lists.Sort(list, func(a, b *report.Metric) int { return cmp.Compare(*b.Value, *a.Value) })
	return lists.Map(list[:min(len(list), maxNCURows)], func(m *report.Metric) report.Labels { return m.Labels })
}

// measuredRow compares one number; ok is false if a capture lacks it.
func (x *Decider) measuredRow(n number, l report.Labels) (comparison.Row, bool) {
	m := x.Base.Captures[0].Metric(n.id, l)
	if m == nil {
		return comparison.Row{}, false
	}
	base, head := x.Base.Sample(n.id, n.stat, l), x.Head.Sample(n.id, n.stat, l)
	if len(base.Values) < len(x.Base.Captures) || len(head.Values) < len(x.Head.Captures) {
		return comparison.Row{}, false
	}
	row := side.Row(policy.JoinStat(n.id, n.stat), l.Clone(), m.Unit, base.Values, head.Values)
	row.NBase, row.NHead, row.Class = base.N, head.N, comparison.Unsettled
	row.Unreplicated = row.Unreplicated && m.Assume != report.Exact
	if row.Why = x.Unlike(n.id, n.stat, l); row.Why != "" {
		row.Code = comparison.DifferentWork
		return row, true
	}
	x.Settle(&row, m, n.stat)
	if row.Class == comparison.Regressed && m.Better == report.None {
		row.Class = comparison.Added
		if comparison.Value(row.Delta) < 0 {
			row.Class = comparison.Removed
		}
	}
	return row, true
}

// Unlike says why the captures' values of a number of servers measure different things: the client measured one, or
// versions state it by other metrics, or as percentiles of histograms with other buckets. It is empty if they do not, or if
// a report does not state its buckets.
func (x *Decider) Unlike(id, stat string, l report.Labels) string {
	if !strings.HasPrefix(id, "serve.") {
		return ""
	}
	var first *report.Source
	for _, c := range slices.Concat(x.Base.Captures, x.Head.Captures) {
		m := c.Metric(id, l)
		if m == nil || m.Assume == report.Exact {
			continue
		}
		first = cmp.Or(first, &m.Source)
		if text := unlike(first, &m.Source, stat); text != "" {
			return text
		}
	}
	return ""
}

func unlike(a, b *report.Source, stat string) string {
	const text = "it is of %s on one side and of %s on the other, which measure different things"
	edges := func(s *report.Source) string { return strings.Join(s.Columns[min(1, len(s.Columns)):], "") }
	switch {
	case !slices.Equal(a.Tables, b.Tables):
		return fmt.Sprintf(text, strings.Join(a.Tables, ", "), strings.Join(b.Tables, ", "))
	case !slices.Equal(a.Tables, []string{"prometheus"}) || len(a.Columns) == 0 || len(b.Columns) == 0:
	case a.Columns[0] != b.Columns[0]:
		return fmt.Sprintf(text, a.Columns[0], b.Columns[0])
	case stat != "mean" && edges(a) != "" && edges(b) != "" && edges(a) != edges(b):
		return "percentiles of histograms with different buckets say nothing: compare means"
	}
	return ""
}

// Settle decides the class of one row: over the lines of a log, by a summary's spread, or against the floor if there is
// only one value. A share that falls to 0 or rises from 0 has changed if the change exceeds the default floor.
func (x *Decider) Settle(row *comparison.Row, m *report.Metric, stat string) {
	if n, ok := x.Reported(m, stat); ok {
		x.decide(row, n)
		return
	}
	size := math.Abs(comparison.Value(row.Delta))
	row.Class, row.Why = comparison.Unsettled, "one side is 0, so there is no ratio to compare with a noise floor"
	switch {
	case row.Delta == nil:
	case size == 0:
		row.Class, row.Why = comparison.Same, "both sides are equal"
	case m.Assume == report.Exact:
		row.Class, row.Why = worseOrBetter(m, comparison.Value(row.Delta)), "the number is exact"
	case m.Unit == report.Ratio && size > comparison.DefaultFloor:
		row.Class, row.Why = worseOrBetter(m, comparison.Value(row.Delta)), "a share of 0 on one side only"
	}
}

// worseOrBetter returns the class of a change. If neither direction is better, every change is a regression here, and
// the caller turns it into added or removed.
func worseOrBetter(m *report.Metric, delta float64) comparison.Class {
	if m.Better == report.Higher && delta > 0 || m.Better == report.Lower && delta < 0 {
		return comparison.Improved
	}
	return comparison.Regressed
}
