package rules_test

import (
	"math"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/difftest"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
	"pgregory.net/rapid"
)

func rules(t *testing.T, texts ...string) []policy.Rule {
	t.Helper()
	var list []policy.Rule
	for _, text := range texts {
		r, err := policy.ParseFailOn(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// TestAChangeFailsWhenRealAndLarge: the class says real, and both parts of the rule are exceeded.
func TestAChangeFailsWhenRealAndLarge(t *testing.T) {
	for _, c := range []struct {
		why     string
		rule    string
		head    float64
		class   comparison.Class
		gate    comparison.Verdict
		verdict comparison.Verdict
		reason  string
	}{
		{"+8 % and +800 µs", "unit.time.p50:+3%,+200us", 10.8e6, comparison.Regressed, comparison.Fail, comparison.Fail, "+8.0 % (+800 µs) is more than +3%,+200µs; because"},
		{"unit.time is its p50", "unit.time:+3%", 10.8e6, comparison.Regressed, comparison.Fail, comparison.Fail, "+8.0 %"},
		{"the same as a warning", "unit.time.p50:+3%,warn", 10.8e6, comparison.Regressed, comparison.Warn, comparison.Warn, ""},
		{"exactly what is tolerated", "unit.time.p50:+8%", 10.8e6, comparison.Regressed, comparison.Pass, comparison.Pass, "is within 8.0 %"},
		{"beyond 3 %, not beyond 1 ms", "unit.time.p50:+3%,+1ms", 10.8e6, comparison.Regressed, comparison.Pass, comparison.Pass, "is within 1 ms"},
		{"beyond 500 µs, not beyond 10 %", "unit.time.p50:+10%,+500us", 10.8e6, comparison.Regressed, comparison.Pass, comparison.Pass, "is within 10.0 %"},
		{"large and not certain", "unit.time.p50:+3%", 10.8e6, comparison.Unsettled, comparison.Inconclusive, comparison.Inconclusive, "wide_interval: +8.0 %"},
		{"small and not certain", "unit.time.p50:+3%", 10.2e6, comparison.Unsettled, comparison.Pass, comparison.Pass, "is within 3.0 %"},
		{"the other way", "unit.time.p50:+3%", 9e6, comparison.Improved, comparison.Pass, comparison.Pass, "-10.0 %"},
		{"a fall is asked about", "unit.time.p50:-3%", 9e6, comparison.Improved, comparison.Fail, comparison.Fail, "is more than -3%"},
		{"either way", "unit.time.p50:±3%", 9e6, comparison.Improved, comparison.Fail, comparison.Fail, ""},
		{"no change", "unit.time.p50:+0%", 10e6, comparison.Same, comparison.Pass, comparison.Pass, "no change"},
		{"a budget held", "unit.time.p50:<=11ms", 10.8e6, comparison.Regressed, comparison.Pass, comparison.Pass, "within the budget"},
		{"a budget broken without any change", "unit.time.p50:<=9ms", 10e6, comparison.Same, comparison.Fail, comparison.Fail, "10 ms is above the budget of 9 ms"},
		{"a lower bound", "unit.time.p50:>=11ms", 10e6, comparison.Same, comparison.Fail, comparison.Fail, "below the budget"},
	} {
		cmp := difftest.Compared(c.head, c.class)
		difftest.Judge(cmp, difftest.Side(), difftest.Side(), rules(t, c.rule))
		if len(cmp.Gates) != 1 {
			t.Errorf("%s: %d gates", c.why, len(cmp.Gates))
			continue
		}
		g := cmp.Gates[0]
		if g.Verdict != c.gate || cmp.Verdict != c.verdict || !strings.Contains(g.Reason, c.reason) || cmp.Counts.GatesChecked != 1 {
			t.Errorf("%s: gate %s, verdict %s, %d checked, reason %q, want %s, %s, %q", c.why, g.Verdict, cmp.Verdict, cmp.Counts.GatesChecked, g.Reason, c.gate, c.verdict, c.reason)
		}
	}
}

// TestWhatCannotBeComparedIsNeverAPass : inconclusive or what the policy says of it.
func TestWhatCannotBeComparedIsNeverAPass(t *testing.T) {
	idle := difftest.Metric("gpu.idle_ratio", report.Ratio, 0.1, "device", "0")
	for _, c := range []struct {
		why        string
		base, head []*report.Report
		rule       string
		incomparable,
		identical bool
		want   comparison.Verdict
		reason string
		gate   comparison.Verdict
	}{
		{"no such metric", difftest.Side(idle), difftest.Side(idle), "sync.share{pid=1}:+3%", false, false, comparison.Inconclusive, "nothing_matched: neither side", comparison.Inconclusive},
		{"a metric on one side only", difftest.Side(idle), difftest.Side(), "gpu.idle_ratio{device=0}:+3%", false, false, comparison.Inconclusive, "missing_metric: the head's value", comparison.Inconclusive},
		{"no value", difftest.Side(idle), difftest.Side(report.Metric{ID: "gpu.idle_ratio", Labels: report.Labels{"device": "0"}, Unit: report.Ratio}), "gpu.idle_ratio{device=0}:<=50%", false, false, comparison.Inconclusive, "missing_metric", comparison.Inconclusive},
		{"a warning about nothing stays a warning", difftest.Side(), difftest.Side(), "sync.share{pid=1}:+3%,warn", false, false, comparison.Warn, "nothing_matched", comparison.Inconclusive},
		{"totals", difftest.Side(difftest.Metric("kernel.total_time", report.Nanoseconds, 100)), difftest.Side(difftest.Metric("kernel.total_time", report.Nanoseconds, 200)), "kernel.total_time:+3%", false, false, comparison.Inconclusive, "grows with the length", comparison.Inconclusive},
		{"a total within a budget", difftest.Side(difftest.Metric("kernel.total_time", report.Nanoseconds, 100)), difftest.Side(difftest.Metric("kernel.total_time", report.Nanoseconds, 200)), "kernel.total_time:<=1us", false, false, comparison.Pass, "within the budget", comparison.Pass},
		{"different work", difftest.Side(idle), difftest.Side(idle), "gpu.idle_ratio{device=0}:+3%", true, false, comparison.Inconclusive, "different_work: not the same", comparison.Inconclusive},
		{"a broken budget fails all the same", difftest.Side(idle), difftest.Side(idle), "gpu.idle_ratio{device=0}:<=5%", true, false, comparison.Fail, "above the budget", comparison.Fail},
		{"a budget held proves nothing of different work", difftest.Side(idle), difftest.Side(idle), "gpu.idle_ratio{device=0}:<=50%", true, false, comparison.Inconclusive, "within the budget", comparison.Pass},
		{"the wrong unit", difftest.Side(idle), difftest.Side(idle), "gpu.idle_ratio{device=0}:+3ms", false, false, comparison.Inconclusive, "is given in ns", comparison.Inconclusive},
	} {
		cmp := difftest.Compared(10e6, comparison.Same)
		cmp.Comparable, cmp.Identical = !c.incomparable, c.identical
		if c.incomparable {
			cmp.Reasons = []comparison.Reason{{Code: comparison.DifferentWork, Text: "not the same"}}
		}
		difftest.Judge(cmp, c.base, c.head, rules(t, c.rule))
		if len(cmp.Gates) != 1 || cmp.Verdict != c.want || cmp.Gates[0].Verdict != c.gate || !strings.Contains(cmp.Gates[0].Reason, c.reason) {
			t.Errorf("%s: verdict %s, gates %+v, want %s and a gate %s that says %q", c.why, cmp.Verdict, cmp.Gates, c.want, c.gate, c.reason)
		}
	}
}

// TestIdenticalSidesPassWithoutAUnit: a capture that has no unit of work, against itself.
func TestIdenticalSidesPassWithoutAUnit(t *testing.T) {
	r := difftest.Side()
	r[0].Unit.Kind = "none"
	cmp := &comparison.Comparison{Identical: true, Reasons: []comparison.Reason{{Code: comparison.NoUnit, Text: "no unit"}}}
	difftest.Judge(cmp, r, r, nil)
	if cmp.Verdict != comparison.Pass || len(cmp.Gates) == 0 || cmp.Gates[0].Verdict != comparison.Pass {
		t.Errorf("%s, %+v", cmp.Verdict, cmp.Gates)
	}
	cmp = &comparison.Comparison{Reasons: []comparison.Reason{{Code: comparison.NoUnit, Text: "no unit"}}}
	difftest.Judge(cmp, r, r, nil)
	if cmp.Verdict != comparison.Inconclusive || cmp.Counts.GatesChecked != 0 {
		t.Errorf("%s with %d gates checked", cmp.Verdict, cmp.Counts.GatesChecked)
	}
}

// TestTheLastRuleThatSelectsAKernelJudgesIt, by either of its names where one kernel replaced another.
func TestTheLastRuleThatSelectsAKernelJudgesIt(t *testing.T) {
	cmp := difftest.Compared(10e6, comparison.Same)
	cmp.Kernels = []comparison.Kernel{
		difftest.Kernel("flash_fwd", "flash_fwd", 100e3, 108e3, comparison.Regressed),
		difftest.Kernel("gemm_a", "gemm_b", 100e3, 120e3, comparison.Regressed),
		difftest.Kernel("memset", "memset", 100e3, 300e3, comparison.Regressed),
		difftest.Kernel("", "extra", 0, 50e3, comparison.Added),
		difftest.Kernel("gone", "", 50e3, 0, comparison.Removed),
	}
	difftest.Judge(cmp, difftest.Side(), difftest.Side(), rules(t,
		"kernel.time_per_unit{kernel=*}:+5%,warn", "kernel.time_per_unit{kernel=gemm_a}:+10%", "kernel.time_per_unit{kernel=flash*}:+10%", "kernel.time_per_unit{kernel=mem?et}:off"))
	got := map[string]string{}
	for _, g := range cmp.Gates {
		got[g.Labels["kernel"]] = g.Rule + " " + string(g.Verdict)
	}
	for kernel, want := range map[string]string{
		"gemm_b":    "kernel.time_per_unit{kernel=gemm_a}:+10% fail", // +20 %
		"flash_fwd": "kernel.time_per_unit{kernel=flash*}:+10% pass", // +8 %
		"memset":    "",                                              // off
		"extra":     "kernel.time_per_unit{kernel=*}:+5%,warn warn",  // all of it is new
		"gone":      "kernel.time_per_unit{kernel=*}:+5%,warn pass",
	} {
		if got[kernel] != want {
			t.Errorf("%s: %q, want %q", kernel, got[kernel], want)
		}
	}
	if cmp.Verdict != comparison.Fail || cmp.Counts.GatesChecked != 4 {
		t.Errorf("verdict %s, %d gates checked", cmp.Verdict, cmp.Counts.GatesChecked)
	}
}

// TestAMatchSelectsByGlobOrExpression: as a policy file will write it.
func TestAMatchSelectsByGlobOrExpression(t *testing.T) {
	cmp := difftest.Compared(10e6, comparison.Same)
	cmp.Kernels = []comparison.Kernel{difftest.Kernel("flash_fwd", "flash_fwd", 100e3, 108e3, comparison.Regressed), difftest.Kernel("fmha_v2", "fmha_v2", 1e5, 1e5, comparison.Same), difftest.Kernel("gemm", "gemm", 100e3, 120e3, comparison.Regressed)}
	five := 0.05
	for match, want := range map[policy.Match]int{{Regex: "^(flash|fmha)"}: 2, {Glob: "g?mm"}: 1, {Glob: "*"}: 3, {Glob: "f*", Regex: "_v2$"}: 1} {
		difftest.Judge(cmp, difftest.Side(), difftest.Side(), []policy.Rule{{Metric: "kernel.time_per_unit", Match: match, Level: comparison.LevelError, Rel: &five}})
		if len(cmp.Gates) != want {
			t.Errorf("%+v selects %d kernels, want %d", match, len(cmp.Gates), want)
		}
	}
}

// TestOtherMetricsAreJudgedFromTheReports: one capture a side and no row in the comparison.
func TestOtherMetricsAreJudgedFromTheReports(t *testing.T) {
	with := func(m report.Metric, change func(m *report.Metric)) []*report.Report {
		change(&m)
		return difftest.Side(m)
	}
	for _, c := range []struct {
		why        string
		base, head []*report.Report
		rule       string
		want       comparison.Verdict
		class      comparison.Class
	}{
		{"a share beyond the floor of 5 %", difftest.Side(difftest.Metric("gpu.idle_ratio", report.Ratio, 0.20, "device", "0")), difftest.Side(difftest.Metric("gpu.idle_ratio", report.Ratio, 0.30, "device", "0")), "gpu.idle_ratio{device=*}:+5pp", comparison.Fail, comparison.Regressed},
		{"+4 % is within the floor, whatever the rule", difftest.Side(difftest.Metric("gpu.idle_ratio", report.Ratio, 0.50, "device", "0")), difftest.Side(difftest.Metric("gpu.idle_ratio", report.Ratio, 0.52, "device", "0")), "gpu.idle_ratio{device=*}:+1pp", comparison.Inconclusive, comparison.Unsettled},
		{"an exact metric has no floor", with(difftest.Metric("api.count_per_unit", report.Count, 100, "api", "x"), func(m *report.Metric) { m.Assume = report.Exact }), with(difftest.Metric("api.count_per_unit", report.Count, 101, "api", "x"), func(m *report.Metric) { m.Assume = report.Exact }), "api.count_per_unit{api=*}:+0", comparison.Fail, comparison.Regressed},
		{"more is better", with(difftest.Metric("graph.coverage", report.Ratio, 0.98), func(m *report.Metric) { m.Better = report.Higher }), with(difftest.Metric("graph.coverage", report.Ratio, 0.12), func(m *report.Metric) { m.Better = report.Higher }), "graph.coverage:-5pp", comparison.Fail, comparison.Regressed},
		{"a fall of exactly what is tolerated, in binary fractions", with(difftest.Metric("graph.coverage", report.Ratio, 0.80), func(m *report.Metric) { m.Better = report.Higher }), with(difftest.Metric("graph.coverage", report.Ratio, 0.75), func(m *report.Metric) { m.Better = report.Higher }), "graph.coverage:-5pp", comparison.Pass, comparison.Unsettled},
		{"a share that is gone", with(difftest.Metric("graph.coverage", report.Ratio, 0.98), func(m *report.Metric) { m.Better = report.Higher }), with(difftest.Metric("graph.coverage", report.Ratio, 0), func(m *report.Metric) { m.Better = report.Higher }), "graph.coverage:-5pp", comparison.Fail, comparison.Regressed},
		// Means of 100 and 110 with a spread of 50 over 100 calls each: the difference is 10 ± 2.576·√(25+25) = ±18.2.
		{"the spread explains it", spread(100, 50, 100), spread(110, 50, 100), "api.time.mean{api=x}:+3%", comparison.Inconclusive, comparison.Unsettled},
		// Over 10,000 calls each it is 10 ± 1.82.
		{"the spread does not", spread(100, 50, 10000), spread(110, 50, 10000), "api.time.mean{api=x}:+3%", comparison.Fail, comparison.Regressed},
	} {
		cmp := difftest.Compared(10e6, comparison.Same)
		difftest.Judge(cmp, c.base, c.head, rules(t, c.rule))
		if len(cmp.Gates) != 1 || cmp.Gates[0].Verdict != c.want || cmp.Gates[0].Class != c.class {
			t.Errorf("%s: %+v, want %s and %s", c.why, cmp.Gates, c.want, c.class)
		}
	}
}

// spread is a report with calls of a mean and a standard deviation.
func spread(mean, sd float64, n int64) []*report.Report {
	m := difftest.Metric("api.time", report.Nanoseconds, mean*float64(n), "api", "x")
	m.N, m.Summary = n, &report.Summary{N: n, Mean: mean, P50: mean, Stddev: sd}
	return difftest.Side(m)
}

// TestSeveralCapturesOfAnotherMetric: t test on the logarithms.
func TestSeveralCapturesOfAnotherMetric(t *testing.T) {
	captures := func(values ...float64) (list []*report.Report) {
		for _, v := range values {
			list = append(list, difftest.Side(difftest.Metric("gpu.idle_ratio", report.Ratio, v, "device", "0"))...)
		}
		return list
	}
	for _, c := range []struct {
		head []*report.Report
		want comparison.Verdict
	}{
		{captures(0.220, 0.221, 0.219), comparison.Fail},         // +10 %, captures within 1 %
		{captures(0.160, 0.290, 0.220), comparison.Inconclusive}, // +12 % in the mean, all over the place
		{captures(0.2, 0.201, 0.199), comparison.Pass},
	} {
		cmp := difftest.Compared(10e6, comparison.Same)
		difftest.Judge(cmp, captures(0.2, 0.201, 0.199), c.head, rules(t, "gpu.idle_ratio{device=0}:+5%"))
		if len(cmp.Gates) != 1 || cmp.Gates[0].Verdict != c.want {
			t.Errorf("%+v, want %s", cmp.Gates, c.want)
		}
	}
}

// TestAStricterRuleIsTestedByItself: classes are of changes beyond 3 %; a rule of 1 % has a test of its own, and its
// threshold stands in the reason.
func TestAStricterRuleIsTestedByItself(t *testing.T) {
	captures := func(mean, sd float64) (list []*report.Report) {
		for _, z := range []float64{-1, 0, 1} {
			list = append(list, difftest.Side(difftest.Metric("gpu.idle_ratio", report.Ratio, mean*math.Exp(z*sd), "device", "0"))...)
		}
		return list
	}
	for _, c := range []struct {
		sd   float64
		want comparison.Verdict
	}{
		// The standard error is sd √(2/3), on 4 degrees of freedom: (ln 1.02 - ln 1.01) / 0.0008 = 12.
		{0.001, comparison.Fail},
		{0.02, comparison.Inconclusive}, // 0.6
	} {
		cmp := difftest.Compared(10e6, comparison.Same)
		difftest.Judge(cmp, captures(0.2, c.sd), captures(0.204, c.sd), rules(t, "gpu.idle_ratio{device=0}:+1%"))
		if g := cmp.Gates[0]; g.Verdict != c.want || !strings.Contains(g.Reason, "against ±1.0 % is") {
			t.Errorf("%+v, want %s", g, c.want)
		}
	}
}

// TestARuleOnAPhaseMeansTheUnitThatWasCompared, if that is the phase.
func TestARuleOnAPhaseMeansTheUnitThatWasCompared(t *testing.T) {
	cmp := difftest.Compared(12e6, comparison.Regressed)
	difftest.Judge(cmp, difftest.Side(), difftest.Side(), rules(t, "unit.time{phase=decode}:+3%"))
	if cmp.Verdict != comparison.Fail {
		t.Errorf("%s %+v", cmp.Verdict, cmp.Gates)
	}
	difftest.Judge(cmp, difftest.Side(), difftest.Side(), rules(t, "unit.time{phase=prefill}:+3%"))
	if cmp.Verdict != comparison.Inconclusive {
		t.Errorf("%s %+v", cmp.Verdict, cmp.Gates)
	}
}

// TestStructureIsJudgedByFinding.
func TestStructureIsJudgedByFinding(t *testing.T) {
	cmp := difftest.Compared(10e6, comparison.Same)
	cmp.Structure = []comparison.Structural{{ID: "blocking_call/cudaStreamSynchronize", Class: comparison.Added, Text: "new"}, {ID: "copies/HtoD", Class: comparison.Removed, Text: "fewer"}}
	difftest.Judge(cmp, difftest.Side(), difftest.Side(), nil)
	if cmp.Verdict != comparison.Warn {
		t.Errorf("default rules: %s %+v", cmp.Verdict, cmp.Gates)
	}
	difftest.Judge(cmp, difftest.Side(), difftest.Side(), rules(t, "structure{finding=blocking*}:error"))
	if cmp.Verdict != comparison.Fail || len(cmp.Gates) != 1 || cmp.Gates[0].Reason != "new" {
		t.Errorf("%s %+v", cmp.Verdict, cmp.Gates)
	}
	cmp.Structure = []comparison.Structural{}
	difftest.Judge(cmp, difftest.Side(), difftest.Side(), rules(t, "structure:error"))
	if cmp.Verdict != comparison.Pass || cmp.Counts.GatesChecked != 1 {
		t.Errorf("nothing found: %s %+v", cmp.Verdict, cmp.Gates)
	}
}

// TestALargerChangeIsNeverBetter: the verdict is monotonous in the change and in the rule.
func TestALargerChangeIsNeverBetter(t *testing.T) {
	order := map[comparison.Verdict]int{comparison.Pass: 0, comparison.Fail: 1}
	rapid.Check(t, func(t *rapid.T) {
		verdict := func(head, tolerance float64) int {
			cmp := difftest.Compared(head, comparison.Regressed)
			difftest.Judge(cmp, difftest.Side(), difftest.Side(), []policy.Rule{{Metric: "unit.time.p50", Labels: report.Labels{}, Level: comparison.LevelError, Rel: &tolerance}})
			return order[cmp.Verdict]
		}
		a := rapid.Float64Range(10e6, 20e6).Draw(t, "head")
		b := rapid.Float64Range(a, 30e6).Draw(t, "slower head")
		x := rapid.Float64Range(0, 1).Draw(t, "tolerance")
		y := rapid.Float64Range(x, 2).Draw(t, "larger tolerance")
		if verdict(a, x) > verdict(b, x) || verdict(a, x) < verdict(a, y) {
			t.Fatal("a larger change, or a stricter rule, gives a better verdict")
		}
	})
}
