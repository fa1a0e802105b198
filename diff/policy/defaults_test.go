package policy_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/difftest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/policy"
)

// The default rules by hand: what the preset's words mean in numbers.
func TestDefaultRulesInNumbers(t *testing.T) {
	none, kernels := report.Labels{}, report.Labels{"kernel": "*"}
	want := []policy.Rule{
		{ID: "work", Metric: "work.time", Labels: none, Level: "error", Rel: difftest.Num(0.03), Direction: "up", Optional: true},
		{ID: "step", Metric: "unit.time.p50", Labels: none, Level: "error", Rel: difftest.Num(0.03), Abs: difftest.Num(10e3), AbsUnit: "ns", Direction: "up"},
		{ID: "launches", Metric: "unit.launches", Labels: none, Level: "error", Abs: difftest.Num(1), AbsUnit: "count", Direction: "up", Optional: true},
		{ID: "graphs", Metric: "graph.coverage", Labels: none, Level: "error", Abs: difftest.Num(0.05), AbsUnit: "ratio", Direction: "down", Optional: true},
		{ID: "structure", Metric: "structure", Labels: none, Level: "warn"},
		{ID: "kernels", Metric: "kernel.time_per_unit", Labels: kernels, Level: "warn", Rel: difftest.Num(0.05), Abs: difftest.Num(5e3), AbsUnit: "ns", Direction: "up", Optional: true},
		{ID: "failures", Metric: "load.failure_ratio", Labels: none, Level: "error", Abs: difftest.Num(0.01), AbsUnit: "ratio", Direction: "up", Optional: true},
		{ID: "generation", Metric: "serve.generation_throughput.p50", Labels: none, Level: "error", Rel: difftest.Num(0.05), Direction: "down", Optional: true},
		{ID: "prompt", Metric: "serve.prompt_throughput.p50", Labels: none, Level: "warn", Rel: difftest.Num(0.05), Direction: "down", Optional: true},
		{ID: "ttft", Metric: "serve.ttft.mean", Labels: none, Level: "error", Rel: difftest.Num(0.1), Direction: "up", Optional: true},
		{ID: "tpot", Metric: "serve.tpot.mean", Labels: none, Level: "error", Rel: difftest.Num(0.05), Direction: "up", Optional: true},
		{ID: "e2e", Metric: "serve.e2e.mean", Labels: none, Level: "error", Rel: difftest.Num(0.1), Direction: "up", Optional: true},
		{ID: "drafting", Metric: "serve.spec_acceptance_rate", Labels: none, Level: "warn", Abs: difftest.Num(0.05), AbsUnit: "ratio", Direction: "down", Optional: true},
		{ID: "ncu", Metric: "ncu.duration.mean", Labels: kernels, Level: "warn", Rel: difftest.Num(0.05), Abs: difftest.Num(1e3), AbsUnit: "ns", Direction: "up", Optional: true},
	}
	if d := cmp.Diff(want, policy.DefaultRules(), cmpopts.IgnoreUnexported(policy.Rule{}), cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Error(d)
	}
}

// What is true of a metric says what a rule can ask of it: a total may not change, a level and a statistic of events may, and
// nothing is recommended or taken that the metric does not have.
func TestScaleSaysWhatARuleCanJudge(t *testing.T) {
	known := []policy.MetricFacts{
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
