package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/policy"
)

// The default rules by hand: what the preset's words mean in numbers.
func TestDefaultRulesInNumbers(t *testing.T) {
	none, kernels := report.Labels{}, report.Labels{"kernel": "*"}
	rule := func(id, metric, level string, rel, abs float64, unit, direction string) policy.Rule {
		r := policy.Rule{ID: id, Metric: metric, Labels: none, Level: level, AbsUnit: unit, Direction: direction, Optional: true}
		if rel > 0 {
			r.Rel = &rel
		}
		if abs > 0 {
			r.Abs = &abs
		}
		return r
	}
	work := rule("work", "work.time", "error", 0.03, 0, "", "up")
	step := rule("step", "unit.time.p50", "error", 0.03, 10e3, "ns", "up")
	step.Optional = false
	forward := rule("forward", "forward.time.mean", "error", 0.05, 0, "", "up")
	forward.Labels = report.Labels{"phase": "*"}
	launches := rule("launches", "unit.launches", "error", 0.01, 1, "count", "up")
	launches.OnlySlower = true
	each, ncu := rule("kernels", "kernel.time_per_unit", "warn", 0.05, 5e3, "ns", "up"), rule("ncu", "ncu.duration.mean", "warn", 0.05, 1e3, "ns", "up")
	each.Labels, ncu.Labels = kernels, kernels
	want := []policy.Rule{
		work,
		step,
		rule("mean", "unit.time.mean", "error", 0.05, 10e3, "ns", "up"),
		rule("tail", "unit.time.p90", "warn", 0.15, 10e3, "ns", "up"),
		rule("far tail", "unit.time.p99", "warn", 0.15, 10e3, "ns", "up"),
		launches,
		rule("graphs", "graph.coverage", "error", 0, 0.05, "ratio", "down"),
		{ID: "structure", Metric: "structure", Labels: none, Level: "warn"},
		each,
		rule("held up", "ranks.held_up_ratio", "warn", 0, 0.02, "ratio", "up"),
		rule("first rank", "ranks.first_ratio", "warn", 0, 0.02, "ratio", "up"),
		rule("failures", "load.failure_ratio", "error", 0, 0.01, "ratio", "up"),
		rule("generation", "serve.generation_throughput.p50", "error", 0.05, 0, "", "down"),
		rule("prompt", "serve.prompt_throughput.p50", "warn", 0.05, 0, "", "down"),
		rule("ttft", "serve.ttft.mean", "error", 0.10, 0, "", "up"),
		rule("tpot", "serve.tpot.mean", "error", 0.05, 0, "", "up"),
		rule("e2e", "serve.e2e.mean", "error", 0.10, 0, "", "up"),
		rule("token", "serve.request_token_time.mean", "error", 0.05, 0, "", "up"),
		forward,
		rule("drafting", "serve.spec_acceptance_rate", "warn", 0, 0.05, "ratio", "down"),
		ncu,
	}
	if d := cmp.Diff(want, policy.DefaultRules(), cmpopts.IgnoreUnexported(policy.Rule{}), cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Error(d)
	}
}

// What is true of a metric says what a rule can ask of it: a total may not change, a level and a statistic of events may, and
// nothing is recommended or taken that the metric does not have.
func TestScaleSaysWhatARuleCanJudge(t *testing.T) {
	known := []report.MetricDef{
		{ID: "stream.count", Unit: report.Count, Scale: report.Total, Labels: []string{""}},
		{ID: "moe.peak_to_mean", Unit: report.Count, Scale: report.Level, Labels: []string{""}},
		{ID: "idle.gap_time", Unit: report.Nanoseconds, Scale: report.Event, Stats: true, Labels: []string{""}},
		{ID: "sync.total_time", Unit: report.Nanoseconds, Scale: report.Total, Stats: true, Labels: []string{""}},
	}
	for _, c := range []struct{ rule, want, not string }{
		{"moe.peak_to_mean:+5%", "", ""},
		{"idle.gap_time:+5%", "", ""},
		{"idle.gap_time.p99:+5%", "", ""},
		{"stream.count:+5%", "grows with the length", "stream.count.p50"},
		{"stream.count.p50:+5%", "stream.count is a single number and has no p50", ""},
		{"stream.count.p50:<=5", "has no p50", ""},
		{"stream.count:<=5", "", ""},
		{"moe.peak_to_mean.mean:+5%", "has no mean", ""},
		{"sync.total_time:+5%", "(sync.total_time.p50)", ""},
		{"sync.total_time.p50:+5%", "", ""},
		{"idle.gap_time.max:+5%", "the more extreme its max", ""},
	} {
		r, err := policy.ParseFailOn(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		err = policy.Check([]policy.Rule{r}, known)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.rule, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || c.not != "" && strings.Contains(err.Error(), c.not)):
			t.Errorf("%s: error %v, want one that says %q and not %q", c.rule, err, c.want, c.not)
		}
	}
}
