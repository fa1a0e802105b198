package noise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/infer"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// number is one number of reports without a trace that is compared: a metric's statistic, or its value where that is
// empty. column is where the report lists its samples in their order: of the table serving_samples.
type number struct{ id, stat, column string }

// numbers in the order of the rows: what clients feel first, then what the server did, then what it has.
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
	maxNCURows  = 20 // kernels, by their time on the base
)

// Measured fills in the rows of what both sides measured, where there is no trace.
func (x *Decider) Measured() { x.measured(func(*report.Metric) bool { return true }) }

// MeasuredBeside does so where there are traces, whose own metrics have their rows.
func (x *Decider) MeasuredBeside() {
	x.measured(func(m *report.Metric) bool {
		return strings.HasPrefix(m.ID, "serve.") || strings.HasPrefix(m.ID, "load.") || strings.HasPrefix(m.ID, "ncu.")
	})
}

func (x *Decider) measured(evidence func(m *report.Metric) bool) {
	known := map[string]bool{}
	add := func(n number, l report.Labels) {
		known[n.id] = true
		if len(x.C.Primary) >= maxMeasured {
			return
		}
		if row, ok := x.measuredRow(n, l); ok {
			x.C.Primary = append(x.C.Primary, row)
		}
	}
	for _, n := range numbers() {
		add(n, report.Labels{})
	}
	for _, l := range x.longestKernels() {
		add(number{"ncu.duration", "mean", ""}, l)
	}
	// What other evidence holds that does not grow with the length of a recording.
	for i := range x.Base.Captures[0].Report.Metrics {
		m := &x.Base.Captures[0].Report.Metrics[i]
		stat := ""
		if m.Summary != nil {
			stat = "mean"
		}
		if len(m.Labels) == 0 && !known[m.ID] && m.Better != report.None && evidence(m) && compares(m, stat) {
			add(number{m.ID, stat, ""}, report.Labels{})
		}
	}
}

// compares reports whether a metric says something of what was served, rather than of a unit of work, which has rows of
// its own, or of how long somebody recorded.
func compares(m *report.Metric, stat string) bool {
	scale := report.ScaleOf(m.ID, m.Unit, m.Scale)
	return scale != report.PerUnit && !policy.Grows(scale, stat)
}

// longestKernels are the labels of the kernels that Nsight Compute measured longest on the base, and on the head too.
func (x *Decider) longestKernels() []report.Labels {
	var list []*report.Metric
	for i := range x.Base.Captures[0].Report.Metrics {
		m := &x.Base.Captures[0].Report.Metrics[i]
		if m.ID == "ncu.duration" && len(m.Labels) == 1 && m.Labels["kernel"] != "" && m.Value != nil &&
			x.Head.Captures[0].Metric(m.ID, m.Labels) != nil {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b *report.Metric) int { return cmp.Compare(*b.Value, *a.Value) })
	labels := make([]report.Labels, 0, maxNCURows)
	for _, m := range list[:min(len(list), maxNCURows)] {
		labels = append(labels, m.Labels)
	}
	return labels
}

// measuredRow compares one number; ok is false where a capture does not hold it.
func (x *Decider) measuredRow(n number, l report.Labels) (comparison.Row, bool) {
	m := x.Base.Captures[0].Metric(n.id, l)
	if m == nil {
		return comparison.Row{}, false
	}
	row := comparison.Row{Metric: n.id, Labels: l.Clone(), Unit: m.Unit, Class: comparison.Unsettled}
	if n.stat != "" {
		row.Metric += "." + n.stat
	}
	base, head := x.Base.Sample(n.id, n.stat, l), x.Head.Sample(n.id, n.stat, l)
	if len(base.Values) < len(x.Base.Captures) || len(head.Values) < len(x.Head.Captures) {
		return comparison.Row{}, false
	}
	row.BaseValues, row.Base, row.NBase = base.Values, base.Mean(), base.N
	row.HeadValues, row.Head, row.NHead = head.Values, head.Mean(), head.N
	row.Unreplicated = m.Assume != report.Exact && (len(base.Values) == 1 || len(head.Values) == 1)
	row.Change()
	x.settle(&row, n, m, base, head)
	if row.Class == comparison.Regressed && m.Better == report.None {
		row.Class = comparison.Added
		if *row.Delta < 0 {
			row.Class = comparison.Removed
		}
	}
	return row, true
}

// settle decides the class of a row. Of one capture a side it has changed only if it did so by more than the noise
// floor and an interval does not hold "no change": over the lines of a log by block bootstrap, since lines that follow
// each other are alike; where no order is known, between means, by their spread. A number that is stated once has no
// interval: beyond the floor it has changed. Several captures a side are tested.
func (x *Decider) settle(row *comparison.Row, n number, m *report.Metric, base, head side.Sample) {
	switch {
	case *row.Delta == 0:
		row.Class, row.Why = comparison.Same, "both sides are equal"
		return
	case m.Assume == report.Exact:
		row.Class, row.Why = worseOrBetter(m, *row.Delta), "the number is exact"
		return
	case row.Ratio == nil || *row.Ratio <= 0:
		row.Why = "one side is 0, so that there is no ratio to hold against a noise floor"
		return
	}
	floor, text := x.floor(row.Metric, row.Labels)
	row.NoiseFloor = &floor
	size := unit.Change(*row.Ratio - 1)
	beyond := math.Abs(math.Log(*row.Ratio)) > math.Log1p(floor)
	if len(base.Values) > 1 && len(head.Values) > 1 {
		sure, why := Certain(base, head, m, x.alpha())
		row.Why = size + "; " + why
		switch {
		case sure && beyond:
			row.Class = worseOrBetter(m, *row.Delta)
		case !beyond:
			row.Class = comparison.Same
		}
		return
	}
	row.Interval = x.overLines(n, base, head)
	if row.Interval == nil {
		row.Interval = x.overMeans(row, base, head)
	}
	switch {
	case row.Interval != nil:
	case n.column != "":
		row.Why = fmt.Sprintf("%s; %d and %d lines are too few for an interval", size, base.N, head.N)
		return
	case base.Summary != nil && head.Summary != nil: // a percentile of one run: how far it varies is not known
		row.Why = size + "; a percentile of one run a side has no interval, the mean decides"
		if !beyond && math.Abs(math.Log(*row.Ratio)) <= math.Log1p(min(floor, Tau)) {
			row.Class = comparison.Same
		}
		return
	default:
		sure, why := Certain(base, head, m, x.alpha())
		row.Why = size + "; " + why
		switch {
		case sure && beyond:
			row.Class = worseOrBetter(m, *row.Delta)
		case !beyond && math.Abs(math.Log(*row.Ratio)) <= math.Log1p(min(floor, Tau)):
			row.Class = comparison.Same
		}
		return
	}
	lo, hi := row.Interval.Low, row.Interval.High
	row.Why = fmt.Sprintf("%s, interval %s to %s", size, unit.Change(lo-1), unit.Change(hi-1))
	switch clear := lo > 1 || hi < 1; {
	case beyond && clear:
		row.Class = worseOrBetter(m, *row.Delta)
		row.Why += ": beyond the " + text
	case beyond:
		row.Why += ": beyond the " + text + ", but what was measured varies as much"
	case lo >= 1/(1+floor) && hi <= 1+floor && math.Abs(math.Log(*row.Ratio)) <= math.Log1p(min(floor, Tau)):
		row.Class = comparison.Same
		row.Why += ": within the " + text
	default:
		row.Why += ": neither beyond the " + text + " nor surely within it"
	}
}

// worseOrBetter is the class of a change in one direction. Of what neither way is better every change is a regression,
// which the caller turns into added or removed.
func worseOrBetter(m *report.Metric, delta float64) comparison.Class {
	if m.Better == report.Higher && delta > 0 || m.Better == report.Lower && delta < 0 {
		return comparison.Improved
	}
	return comparison.Regressed
}

// overLines is an interval of the ratio of medians over the lines of a log, or nil.
func (x *Decider) overLines(n number, base, head side.Sample) *comparison.Interval {
	if n.column == "" {
		return nil
	}
	b, h := x.Base.Captures[0].SteadyLines(n.column), x.Head.Captures[0].SteadyLines(n.column)
	if len(b) == 0 || len(h) == 0 {
		return nil
	}
	level := 1 - 2*x.alpha()
	b0, h0 := infer.MedianOf(slices.Clone(b)), infer.MedianOf(slices.Clone(h))
	if b0 <= 0 || h0 <= 0 {
		return nil
	}
	var low, high float64
	var method string
	if b0 <= h0 {
		low, high, method = infer.BlockBootstrap(b, h, infer.MedianOf, level, x.seed)
	} else if l, u, m := infer.BlockBootstrap(h, b, infer.MedianOf, level, x.seed); m != "" {
		low, high, method = 1/u, 1/l, m+", of the inverse" // so that swapping the sides inverts the interval
	}
	if method == "" {
		return nil
	}
	shift := (*head.Mean() / *base.Mean()) / (h0 / b0) // to all lines, of which the report lists a part
	return &comparison.Interval{Low: low * shift, High: high * shift, Level: level,
		Method: strings.Replace(method, "units", "lines of the log", 1)}
}

// overMeans is an interval of the ratio of means by their spread, which takes observations for independent: what is
// known of a histogram, or of launches that were replayed one by one. nil where the row is no mean.
func (x *Decider) overMeans(row *comparison.Row, base, head side.Sample) *comparison.Interval {
	b, h := base.Summary, head.Summary
	if !strings.HasSuffix(row.Metric, ".mean") || b == nil || h == nil || b.N < 2 || h.N < 2 || b.Mean <= 0 ||
		h.Mean <= 0 {
		return nil
	}
	level := 1 - 2*x.alpha()
	se := math.Sqrt(b.Stddev*b.Stddev/(float64(b.N)*b.Mean*b.Mean) + h.Stddev*h.Stddev/(float64(h.N)*h.Mean*h.Mean))
	half := infer.NormalQuantile((1-level)/2) * se
	r := math.Log(*row.Ratio)
	return &comparison.Interval{Low: math.Exp(r - math.Abs(half)), High: math.Exp(r + math.Abs(half)),
		Level: level, Method: "normal interval of the means, observations taken for independent"}
}
