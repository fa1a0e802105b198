package diff_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
)

// side is a report with the given metrics and a unit of work.
func side(metrics ...report.Metric) []*report.Report {
	r := &report.Report{Schema: report.SchemaID, Unit: report.Unit{Kind: "nvtx"}, Environment: report.Environment{GPUs: []report.GPU{{}}}, Metrics: metrics}
	return []*report.Report{r}
}

// metric is a metric of which less is better.
func metric(id, unit string, value float64, labels ...string) report.Metric {
	l := report.Labels{}
	for i := 0; i+1 < len(labels); i += 2 {
		l[labels[i]] = labels[i+1]
	}
	return report.Metric{ID: id, Labels: l, Value: &value, Unit: unit, Better: report.Lower, Assume: report.Noisy, N: 1}
}

// compared is a comparison with a row for unit.time.p50: 10 ms on the base.
func compared(head float64, class diff.Class) *diff.Comparison {
	base := 10e6
	delta, ratio := head-base, head/base
	return &diff.Comparison{
		Comparable: true, Unit: diff.Unit{Kind: "nvtx", Phase: "decode"},
		Primary: []diff.Row{{Metric: "unit.time.p50", Labels: report.Labels{}, Unit: report.Nanoseconds, Base: &base, Head: &head, Delta: &delta, Ratio: &ratio, Class: class, Why: "because"}},
	}
}

func rules(t *testing.T, texts ...string) []diff.Rule {
	t.Helper()
	var list []diff.Rule
	for _, text := range texts {
		r, err := diff.ParseFailOn(text)
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
		class   diff.Class
		gate    diff.Verdict
		verdict diff.Verdict
		reason  string
	}{
		{"+8 % and +800 µs", "unit.time.p50:+3%,+200us", 10.8e6, diff.Regressed, diff.Fail, diff.Fail, "+8.0 % (+800 µs) is more than +3%,+200µs; because"},
		{"unit.time is its p50", "unit.time:+3%", 10.8e6, diff.Regressed, diff.Fail, diff.Fail, "+8.0 %"},
		{"the same as a warning", "unit.time.p50:+3%,warn", 10.8e6, diff.Regressed, diff.Warn, diff.Warn, ""},
		{"exactly what is tolerated", "unit.time.p50:+8%", 10.8e6, diff.Regressed, diff.Pass, diff.Pass, "is within 8.0 %"},
		{"beyond 3 %, not beyond 1 ms", "unit.time.p50:+3%,+1ms", 10.8e6, diff.Regressed, diff.Pass, diff.Pass, "is within 1 ms"},
		{"beyond 500 µs, not beyond 10 %", "unit.time.p50:+10%,+500us", 10.8e6, diff.Regressed, diff.Pass, diff.Pass, "is within 10.0 %"},
		{"large and not certain", "unit.time.p50:+3%", 10.8e6, diff.Unsettled, diff.Inconclusive, diff.Warn, "wide_interval: +8.0 %"},
		{"small and not certain", "unit.time.p50:+3%", 10.2e6, diff.Unsettled, diff.Pass, diff.Pass, "is within 3.0 %"},
		{"the other way", "unit.time.p50:+3%", 9e6, diff.Improved, diff.Pass, diff.Pass, "-10.0 %"},
		{"a fall is asked about", "unit.time.p50:-3%", 9e6, diff.Improved, diff.Fail, diff.Fail, "is more than -3%"},
		{"either way", "unit.time.p50:±3%", 9e6, diff.Improved, diff.Fail, diff.Fail, ""},
		{"no change", "unit.time.p50:+0%", 10e6, diff.Same, diff.Pass, diff.Pass, "no change"},
		{"a budget held", "unit.time.p50:<=11ms", 10.8e6, diff.Regressed, diff.Pass, diff.Pass, "within the budget"},
		{"a budget broken without any change", "unit.time.p50:<=9ms", 10e6, diff.Same, diff.Fail, diff.Fail, "10 ms is above the budget of 9 ms"},
		{"a lower bound", "unit.time.p50:>=11ms", 10e6, diff.Same, diff.Fail, diff.Fail, "below the budget"},
	} {
		cmp := compared(c.head, c.class)
		diff.Judge(cmp, side(), side(), rules(t, c.rule))
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

// TestWhatCannotBeComparedIsNeverAPass holds the rule of design.md, section 7.
func TestWhatCannotBeComparedIsNeverAPass(t *testing.T) {
	idle := metric("gpu.idle_ratio", report.Ratio, 0.1, "device", "0")
	for _, c := range []struct {
		why        string
		base, head []*report.Report
		rule       string
		incomparable,
		identical bool
		want   diff.Verdict
		reason string
		gate   diff.Verdict
	}{
		{"no such metric", side(idle), side(idle), "sync.share{pid=1}:+3%", false, false, diff.Inconclusive, "nothing_matched: neither side", diff.Inconclusive},
		{"a metric on one side only", side(idle), side(), "gpu.idle_ratio{device=0}:+3%", false, false, diff.Inconclusive, "missing_metric: the head's value", diff.Inconclusive},
		{"no value", side(idle), side(report.Metric{ID: "gpu.idle_ratio", Labels: report.Labels{"device": "0"}, Unit: report.Ratio}), "gpu.idle_ratio{device=0}:<=50%", false, false, diff.Inconclusive, "missing_metric", diff.Inconclusive},
		{"a warning about nothing stays a warning", side(), side(), "sync.share{pid=1}:+3%,warn", false, false, diff.Warn, "nothing_matched", diff.Inconclusive},
		{"totals", side(metric("kernel.total_time", report.Nanoseconds, 100)), side(metric("kernel.total_time", report.Nanoseconds, 200)), "kernel.total_time:+3%", false, false, diff.Inconclusive, "grows with the length", diff.Inconclusive},
		{"a total within a budget", side(metric("kernel.total_time", report.Nanoseconds, 100)), side(metric("kernel.total_time", report.Nanoseconds, 200)), "kernel.total_time:<=1us", false, false, diff.Pass, "within the budget", diff.Pass},
		{"different work", side(idle), side(idle), "gpu.idle_ratio{device=0}:+3%", true, false, diff.Inconclusive, "different_work: not the same", diff.Inconclusive},
		{"a broken budget fails all the same", side(idle), side(idle), "gpu.idle_ratio{device=0}:<=5%", true, false, diff.Fail, "above the budget", diff.Fail},
		{"a budget held proves nothing of different work", side(idle), side(idle), "gpu.idle_ratio{device=0}:<=50%", true, false, diff.Inconclusive, "within the budget", diff.Pass},
		{"the wrong unit", side(idle), side(idle), "gpu.idle_ratio{device=0}:+3ms", false, false, diff.Inconclusive, "is given in ns", diff.Inconclusive},
	} {
		cmp := compared(10e6, diff.Same)
		cmp.Comparable, cmp.Identical = !c.incomparable, c.identical
		if c.incomparable {
			cmp.Reasons = []diff.Reason{{Code: diff.DifferentWork, Text: "not the same"}}
		}
		diff.Judge(cmp, c.base, c.head, rules(t, c.rule))
		if len(cmp.Gates) != 1 || cmp.Verdict != c.want || cmp.Gates[0].Verdict != c.gate || !strings.Contains(cmp.Gates[0].Reason, c.reason) {
			t.Errorf("%s: verdict %s, gates %+v, want %s and a gate %s that says %q", c.why, cmp.Verdict, cmp.Gates, c.want, c.gate, c.reason)
		}
	}
}

// TestIdenticalSidesPassWithoutAUnit: a capture that has no unit of work, against itself.
func TestIdenticalSidesPassWithoutAUnit(t *testing.T) {
	r := side()
	r[0].Unit.Kind = "none"
	cmp := &diff.Comparison{Identical: true, Reasons: []diff.Reason{{Code: diff.NoUnit, Text: "no unit"}}}
	diff.Judge(cmp, r, r, nil)
	if cmp.Verdict != diff.Pass || len(cmp.Gates) == 0 || cmp.Gates[0].Verdict != diff.Pass {
		t.Errorf("%s, %+v", cmp.Verdict, cmp.Gates)
	}
	cmp = &diff.Comparison{Reasons: []diff.Reason{{Code: diff.NoUnit, Text: "no unit"}}}
	diff.Judge(cmp, r, r, nil)
	if cmp.Verdict != diff.Inconclusive || cmp.Counts.GatesChecked != 0 {
		t.Errorf("%s with %d gates checked", cmp.Verdict, cmp.Counts.GatesChecked)
	}
}

func kernel(base, head string, b, h float64, class diff.Class) diff.Kernel {
	k := diff.Kernel{Delta: h - b, Class: class, Why: "measured"}
	if base != "" {
		k.BaseName, k.Base = &base, &b
	}
	if head != "" {
		k.HeadName, k.Head = &head, &h
	}
	return k
}

// TestTheLastRuleThatSelectsAKernelJudgesIt, by either of its names where one kernel replaced another.
func TestTheLastRuleThatSelectsAKernelJudgesIt(t *testing.T) {
	cmp := compared(10e6, diff.Same)
	cmp.Kernels = []diff.Kernel{
		kernel("flash_fwd", "flash_fwd", 100e3, 108e3, diff.Regressed),
		kernel("gemm_a", "gemm_b", 100e3, 120e3, diff.Regressed),
		kernel("memset", "memset", 100e3, 300e3, diff.Regressed),
		kernel("", "extra", 0, 50e3, diff.Added),
		kernel("gone", "", 50e3, 0, diff.Removed),
	}
	diff.Judge(cmp, side(), side(), rules(t,
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
	if cmp.Verdict != diff.Fail || cmp.Counts.GatesChecked != 4 {
		t.Errorf("verdict %s, %d gates checked", cmp.Verdict, cmp.Counts.GatesChecked)
	}
}

// TestAMatchSelectsByGlobOrExpression: as a policy file will write it.
func TestAMatchSelectsByGlobOrExpression(t *testing.T) {
	cmp := compared(10e6, diff.Same)
	cmp.Kernels = []diff.Kernel{kernel("flash_fwd", "flash_fwd", 100e3, 108e3, diff.Regressed), kernel("fmha_v2", "fmha_v2", 1e5, 1e5, diff.Same), kernel("gemm", "gemm", 100e3, 120e3, diff.Regressed)}
	five := 0.05
	for match, want := range map[diff.Match]int{{Regex: "^(flash|fmha)"}: 2, {Glob: "g?mm"}: 1, {Glob: "*"}: 3, {Glob: "f*", Regex: "_v2$"}: 1} {
		diff.Judge(cmp, side(), side(), []diff.Rule{{Metric: "kernel.time_per_unit", Match: match, Level: diff.LevelError, Rel: &five}})
		if len(cmp.Gates) != want {
			t.Errorf("%+v selects %d kernels, want %d", match, len(cmp.Gates), want)
		}
	}
}

// TestOtherMetricsAreJudgedFromTheReports: one capture a side and no row in the comparison.
func TestOtherMetricsAreJudgedFromTheReports(t *testing.T) {
	with := func(m report.Metric, change func(m *report.Metric)) []*report.Report {
		change(&m)
		return side(m)
	}
	for _, c := range []struct {
		why        string
		base, head []*report.Report
		rule       string
		want       diff.Verdict
		class      diff.Class
	}{
		{"a share beyond the floor of 5 %", side(metric("gpu.idle_ratio", report.Ratio, 0.20, "device", "0")), side(metric("gpu.idle_ratio", report.Ratio, 0.30, "device", "0")), "gpu.idle_ratio{device=*}:+5pp", diff.Fail, diff.Regressed},
		{"+4 % is within the floor, whatever the rule", side(metric("gpu.idle_ratio", report.Ratio, 0.50, "device", "0")), side(metric("gpu.idle_ratio", report.Ratio, 0.52, "device", "0")), "gpu.idle_ratio{device=*}:+1pp", diff.Inconclusive, diff.Same},
		{"an exact metric has no floor", with(metric("api.count_per_unit", report.Count, 100, "api", "x"), func(m *report.Metric) { m.Assume = report.Exact }), with(metric("api.count_per_unit", report.Count, 101, "api", "x"), func(m *report.Metric) { m.Assume = report.Exact }), "api.count_per_unit{api=*}:+0", diff.Fail, diff.Regressed},
		{"more is better", with(metric("graph.coverage", report.Ratio, 0.98), func(m *report.Metric) { m.Better = report.Higher }), with(metric("graph.coverage", report.Ratio, 0.12), func(m *report.Metric) { m.Better = report.Higher }), "graph.coverage:-5pp", diff.Fail, diff.Regressed},
		{"a fall of exactly what is tolerated, in binary fractions", with(metric("graph.coverage", report.Ratio, 0.80), func(m *report.Metric) { m.Better = report.Higher }), with(metric("graph.coverage", report.Ratio, 0.75), func(m *report.Metric) { m.Better = report.Higher }), "graph.coverage:-5pp", diff.Pass, diff.Regressed},
		{"a share that is gone", with(metric("graph.coverage", report.Ratio, 0.98), func(m *report.Metric) { m.Better = report.Higher }), with(metric("graph.coverage", report.Ratio, 0), func(m *report.Metric) { m.Better = report.Higher }), "graph.coverage:-5pp", diff.Fail, diff.Regressed},
		// Means of 100 and 110 with a spread of 50 over 100 calls each: the difference is 10 ± 2.576·√(25+25) = ±18.2.
		{"the spread explains it", spread(100, 50, 100), spread(110, 50, 100), "api.time.mean{api=x}:+3%", diff.Inconclusive, diff.Unsettled},
		// Over 10,000 calls each it is 10 ± 1.82.
		{"the spread does not", spread(100, 50, 10000), spread(110, 50, 10000), "api.time.mean{api=x}:+3%", diff.Fail, diff.Regressed},
	} {
		cmp := compared(10e6, diff.Same)
		diff.Judge(cmp, c.base, c.head, rules(t, c.rule))
		if len(cmp.Gates) != 1 || cmp.Gates[0].Verdict != c.want || cmp.Gates[0].Class != c.class {
			t.Errorf("%s: %+v, want %s and %s", c.why, cmp.Gates, c.want, c.class)
		}
	}
}

// spread is a report with calls of a mean and a standard deviation.
func spread(mean, sd float64, n int64) []*report.Report {
	m := metric("api.time", report.Nanoseconds, mean*float64(n), "api", "x")
	m.N, m.Summary = n, &report.Summary{N: n, Mean: mean, P50: mean, Stddev: sd}
	return side(m)
}

// TestSeveralCapturesOfAnotherMetric: t test on the logarithms.
func TestSeveralCapturesOfAnotherMetric(t *testing.T) {
	captures := func(values ...float64) (list []*report.Report) {
		for _, v := range values {
			list = append(list, side(metric("gpu.idle_ratio", report.Ratio, v, "device", "0"))...)
		}
		return list
	}
	for _, c := range []struct {
		head []*report.Report
		want diff.Verdict
	}{
		{captures(0.220, 0.221, 0.219), diff.Fail},         // +10 %, captures within 1 %
		{captures(0.160, 0.290, 0.220), diff.Inconclusive}, // +12 % in the mean, all over the place
		{captures(0.2, 0.201, 0.199), diff.Pass},
	} {
		cmp := compared(10e6, diff.Same)
		diff.Judge(cmp, captures(0.2, 0.201, 0.199), c.head, rules(t, "gpu.idle_ratio{device=0}:+5%"))
		if len(cmp.Gates) != 1 || cmp.Gates[0].Verdict != c.want {
			t.Errorf("%+v, want %s", cmp.Gates, c.want)
		}
	}
}

// TestAStricterRuleIsTestedByItself: rows are tested against 3 %; a rule of 1 % is held against the same test.
func TestAStricterRuleIsTestedByItself(t *testing.T) {
	for _, c := range []struct {
		se   float64
		want diff.Verdict
	}{
		{0.001, diff.Fail},        // (ln 1.02 - ln 1.01) / 0.001 = 9.9 standard errors
		{0.01, diff.Inconclusive}, // 1
	} {
		cmp := compared(10.2e6, diff.Same)
		cmp.Primary[0].Test = &diff.Test{Effect: 0.0198, SE: c.se, DF: 10, Tau: 0.02956}
		diff.Judge(cmp, side(), side(), rules(t, "unit.time.p50:+1%"))
		if cmp.Gates[0].Verdict != c.want {
			t.Errorf("%+v, want %s", cmp.Gates[0], c.want)
		}
	}
}

// TestARuleOnAPhaseMeansTheUnitThatWasCompared, if that is the phase.
func TestARuleOnAPhaseMeansTheUnitThatWasCompared(t *testing.T) {
	cmp := compared(12e6, diff.Regressed)
	diff.Judge(cmp, side(), side(), rules(t, "unit.time{phase=decode}:+3%"))
	if cmp.Verdict != diff.Fail {
		t.Errorf("%s %+v", cmp.Verdict, cmp.Gates)
	}
	diff.Judge(cmp, side(), side(), rules(t, "unit.time{phase=prefill}:+3%"))
	if cmp.Verdict != diff.Inconclusive {
		t.Errorf("%s %+v", cmp.Verdict, cmp.Gates)
	}
}

// TestStructureIsJudgedByFinding.
func TestStructureIsJudgedByFinding(t *testing.T) {
	cmp := compared(10e6, diff.Same)
	cmp.Structure = []diff.Structural{{ID: "blocking_call/cudaStreamSynchronize", Class: diff.Added, Text: "new"}, {ID: "copies/HtoD", Class: diff.Removed, Text: "fewer"}}
	diff.Judge(cmp, side(), side(), nil)
	if cmp.Verdict != diff.Warn {
		t.Errorf("default rules: %s %+v", cmp.Verdict, cmp.Gates)
	}
	diff.Judge(cmp, side(), side(), rules(t, "structure{finding=blocking*}:error"))
	if cmp.Verdict != diff.Fail || len(cmp.Gates) != 1 || cmp.Gates[0].Reason != "new" {
		t.Errorf("%s %+v", cmp.Verdict, cmp.Gates)
	}
	cmp.Structure = []diff.Structural{}
	diff.Judge(cmp, side(), side(), rules(t, "structure:error"))
	if cmp.Verdict != diff.Pass || cmp.Counts.GatesChecked != 1 {
		t.Errorf("nothing found: %s %+v", cmp.Verdict, cmp.Gates)
	}
}

// TestALargerChangeIsNeverBetter: the verdict is monotonous in the change and in the rule.
func TestALargerChangeIsNeverBetter(t *testing.T) {
	order := map[diff.Verdict]int{diff.Pass: 0, diff.Fail: 1}
	rapid.Check(t, func(t *rapid.T) {
		verdict := func(head, tolerance float64) int {
			cmp := compared(head, diff.Regressed)
			diff.Judge(cmp, side(), side(), []diff.Rule{{Metric: "unit.time.p50", Labels: report.Labels{}, Level: diff.LevelError, Rel: &tolerance}})
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
