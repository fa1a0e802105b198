package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/difftest"
	"github.com/nsys-llm/explain/diff/policy"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// idleSides are captures whose first device is idle for these shares of the window.
func idleSides(values ...float64) []*report.Report {
	var list []*report.Report
	for _, v := range values {
		list = append(list, difftest.Side(difftest.Metric("gpu.idle_ratio", report.Ratio, v, "device", "0"))...)
	}
	return list
}

// compareBy compares by a policy on 2026-06-01.
func compareBy(t testing.TB, base, head []*report.Report, text string) *comparison.Comparison {
	t.Helper()
	c, err := diff.Compare(base, head, diff.Options{Policy: difftest.Policy(t, "version: 1\n"+text), Today: difftest.Day("2026-06-01")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWaivers: what covers, what holds, and what becomes of the verdict. The idle share rises from 20 % to 22 %: by a tenth,
// or by two percentage points.
func TestWaivers(t *testing.T) {
	const rule = "stats: {on_not_comparable: pass}\nrules: [{id: idle, metric: gpu.idle_ratio, regress: {rel: 3%}}]\n"
	const budget = "stats: {on_not_comparable: pass}\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 15%}]\n"
	for _, c := range []struct {
		why, policy string
		verdict     comparison.Verdict
		gate        comparison.Verdict
		status      string // of the waiver
		reason      string // of the gate
	}{
		{"no waiver", rule, comparison.Fail, comparison.Fail, "", "+10.0 %"},
		{"any change", rule + "waivers: [{rule: idle, expires: 2026-12-31, reason: why}]", comparison.Pass, comparison.Pass, comparison.WaiverApplied, "accepted until 2026-12-31 by a waiver: why"},
		{"on its last day", rule + "waivers: [{rule: idle, expires: 2026-06-01, reason: why}]", comparison.Pass, comparison.Pass, comparison.WaiverApplied, ""},
		{"the day after", rule + "waivers: [{rule: idle, expires: 2026-05-31, issue: '#1', reason: why}]", comparison.Fail, comparison.Fail, comparison.WaiverExpired, "its waiver (#1) expired on 2026-05-31"},
		{"at its ceiling", rule + "waivers: [{rule: idle, ceiling: 10%, expires: 2026-12-31, reason: why}]", comparison.Pass, comparison.Pass, comparison.WaiverApplied, ""},
		{"above its ceiling", rule + "waivers: [{rule: idle, ceiling: 9.9%, expires: 2026-12-31, reason: why}]", comparison.Fail, comparison.Fail, comparison.WaiverExceeded, "accepts 9.9% at most"},
		{"at an absolute ceiling", rule + "waivers: [{rule: idle, ceiling: 2pp, expires: 2026-12-31, reason: why}]", comparison.Pass, comparison.Pass, comparison.WaiverApplied, ""},
		{"above an absolute ceiling", rule + "waivers: [{rule: idle, ceiling: 1.9pp, expires: 2026-12-31, reason: why}]", comparison.Fail, comparison.Fail, comparison.WaiverExceeded, ""},
		{"a second one holds", rule + "waivers: [{rule: idle, ceiling: 5%, expires: 2026-12-31, reason: a}, {rule: idle, ceiling: 15%, expires: 2026-12-31, reason: b}]", comparison.Pass, comparison.Pass, comparison.WaiverExceeded, ": b"},
		{"a budget, its value below the ceiling", budget + "waivers: [{rule: idle, ceiling: 22%, expires: 2026-12-31, reason: why}]", comparison.Pass, comparison.Pass, comparison.WaiverApplied, ""},
		{"a budget, its value above", budget + "waivers: [{rule: idle, ceiling: 21%, expires: 2026-12-31, reason: why}]", comparison.Fail, comparison.Fail, comparison.WaiverExceeded, ""},
		{"of something else", rule + "waivers: [{rule: idle, match: {glob: flash*}, expires: 2026-12-31, reason: why}]", comparison.Fail, comparison.Fail, comparison.WaiverUnused, ""},
		{"a rule that only warns", strings.Replace(rule, "regress", "level: warn, regress", 1) + "waivers: [{rule: idle, expires: 2026-12-31, reason: why}]", comparison.Pass, comparison.Pass, comparison.WaiverApplied, ""},
		{"not needed", strings.Replace(rule, "3%", "30%", 1) + "waivers: [{rule: idle, expires: 2026-12-31, reason: why}]", comparison.Warn, comparison.Pass, comparison.WaiverUnused, ""},
		{"not needed and expired", strings.Replace(rule, "3%", "30%", 1) + "waivers: [{rule: idle, expires: 2026-05-31, reason: why}]", comparison.Warn, comparison.Pass, comparison.WaiverExpired, ""},
	} {
		// Two captures that differ in nothing else have no unit of work, so that the sides are not comparable; rules on
		// shares are judged where they are identical or where the rows stand, which compared says.
		cmp := difftest.Compared(10e6, comparison.Same)
		p := difftest.Policy(t, "version: 1\n"+c.policy)
		difftest.JudgeBy(cmp, idleSides(0.20, 0.2001, 0.1999), idleSides(0.22, 0.2201, 0.2199), p, difftest.Day("2026-06-01"))
		if cmp.Verdict != c.verdict || len(cmp.Gates) != 1 || cmp.Gates[0].Verdict != c.gate || !strings.Contains(cmp.Gates[0].Reason, c.reason) {
			t.Errorf("%s: verdict %s, gates %+v", c.why, cmp.Verdict, cmp.Gates)
		}
		switch {
		case c.status == "" && len(cmp.Waivers) > 0, c.status != "" && (len(cmp.Waivers) == 0 || cmp.Waivers[0].Status != c.status):
			t.Errorf("%s: waivers %+v, want %s", c.why, cmp.Waivers, c.status)
		}
	}
}

// TestAWaiverCoversAReplacedKernelByEitherName: the head runs fmha_v3 where the base ran fmha_v2.
func TestAWaiverCoversAReplacedKernelByEitherName(t *testing.T) {
	for match, want := range map[string]comparison.Verdict{"fmha_v2": comparison.Pass, "fmha_v3": comparison.Pass, "gemm": comparison.Fail} {
		cmp := difftest.Compared(10e6, comparison.Same)
		cmp.Kernels = []comparison.Kernel{difftest.Kernel("fmha_v2", "fmha_v3", 100e3, 111e3, comparison.Regressed)}
		p := difftest.Policy(t, "version: 1\nrules: [{id: attn, metric: kernel.time_per_unit, match: {regex: fmha}, regress: {rel: 5%, abs: 1us}}]\n"+
			"waivers: [{rule: attn, match: {regex: "+match+"}, ceiling: 12%, expires: 2026-12-31, reason: fp8}]")
		difftest.JudgeBy(cmp, difftest.Side(), difftest.Side(), p, difftest.Day("2026-06-01"))
		if len(cmp.Gates) != 1 || cmp.Gates[0].Verdict != want {
			t.Errorf("%s: %+v, want %s", match, cmp.Gates, want)
		}
	}
	// What was added has no base that 12 % could be of.
	cmp := difftest.Compared(10e6, comparison.Same)
	cmp.Kernels = []comparison.Kernel{difftest.Kernel("", "fmha_v3", 0, 111e3, comparison.Added)}
	p := difftest.Policy(t, "version: 1\nrules: [{id: attn, metric: kernel.time_per_unit, match: {regex: fmha}, regress: {rel: 5%, abs: 1us}}]\n"+
		"waivers: [{rule: attn, ceiling: 12%, expires: 2026-12-31, reason: fp8}]")
	difftest.JudgeBy(cmp, difftest.Side(), difftest.Side(), p, difftest.Day("2026-06-01"))
	if len(cmp.Gates) != 1 || cmp.Gates[0].Verdict != comparison.Fail || cmp.Waivers[0].Status != comparison.WaiverExceeded {
		t.Errorf("%+v %+v", cmp.Gates, cmp.Waivers)
	}
}

// TestIgnoredKernels are judged by no rule; of a replaced one both names have to be ignored.
func TestIgnoredKernels(t *testing.T) {
	cmp := difftest.Compared(10e6, comparison.Same)
	cmp.Kernels = []comparison.Kernel{
		difftest.Kernel("memset_a", "memset_a", 100e3, 300e3, comparison.Regressed), difftest.Kernel("memset_b", "fill", 100e3, 300e3, comparison.Regressed), difftest.Kernel("memset_c", "memset_d", 100e3, 300e3, comparison.Regressed),
	}
	p := difftest.Policy(t, "version: 1\nignore: {kernels: ['memset*']}\nrules: [{id: k, metric: kernel.time_per_unit, regress: {rel: 5%}}]")
	difftest.JudgeBy(cmp, difftest.Side(), difftest.Side(), p, difftest.Day("2026-06-01"))
	if len(cmp.Gates) != 1 || cmp.Gates[0].Labels["kernel"] != "fill" {
		t.Errorf("%+v", cmp.Gates)
	}
}

// TestOpenAnswersMeanWhatThePolicySays, and never that a comparison which answered nothing passes.
func TestOpenAnswersMeanWhatThePolicySays(t *testing.T) {
	const step = "rules: [{id: step, metric: unit.time.p50, regress: {rel: 3%}}]\n"
	const nothing = "rules: [{id: none, metric: graph.coverage, regress: {abs: 1pp}}]\n"
	wide := func() *comparison.Comparison { return difftest.Compared(10.8e6, comparison.Unsettled) } // +8 %, not certain
	same := func() *comparison.Comparison { return difftest.Compared(10e6, comparison.Same) }
	other := func() *comparison.Comparison {
		c := difftest.Compared(10.8e6, comparison.Unsettled)
		c.Comparable, c.Reasons = false, []comparison.Reason{{Code: comparison.DifferentWork, Text: "not the same"}}
		return c
	}
	for _, c := range []struct {
		why  string
		cmp  func() *comparison.Comparison
		text string
		want comparison.Verdict
	}{
		{"inconclusive stays so by default", wide, step, comparison.Inconclusive},
		{"inconclusive warns", wide, step + "stats: {on_inconclusive: warn}", comparison.Warn},
		{"inconclusive passes", wide, step + "stats: {on_inconclusive: pass}", comparison.Pass},
		{"inconclusive fails", wide, step + "stats: {on_inconclusive: fail}", comparison.Fail},
		{"inconclusive stays so", wide, step + "stats: {on_inconclusive: inconclusive}", comparison.Inconclusive},
		{"a warning at most", wide, strings.Replace(step, "regress", "level: warn, regress", 1) + "stats: {on_inconclusive: fail}", comparison.Warn},
		{"not comparable", other, step, comparison.Inconclusive},
		{"not comparable fails", other, step + "stats: {on_not_comparable: fail}", comparison.Fail},
		{"not comparable warns", other, step + "stats: {on_not_comparable: warn}", comparison.Warn},
		{"not comparable cannot pass with nothing checked", other, step + "stats: {on_not_comparable: pass}", comparison.Inconclusive},
		{"not comparable passes where a budget was checked", other, step + "stats: {on_not_comparable: pass}\nbudgets: [{id: b, metric: unit.time.p50, max: 11ms}]", comparison.Pass},
		{"a metric that is not there", same, nothing, comparison.Inconclusive},
		{"a metric that is not there fails", same, nothing + "stats: {on_missing: fail}", comparison.Fail},
		{"nothing checked is no pass by a warning", same, nothing + "stats: {on_missing: warn}", comparison.Inconclusive},
		{"a metric that is not there warns beside one that is", same, strings.Replace(nothing, "]", ", {id: step, metric: unit.time.p50, regress: {rel: 3%}}]", 1) + "stats: {on_missing: warn}", comparison.Warn},
		{"a metric that may be missing", same, strings.Replace(strings.Replace(nothing, "}]", "}, {id: step, metric: unit.time.p50, regress: {rel: 3%}}]", 1), "id: none", "optional: true", 1), comparison.Pass},
	} {
		cmp := c.cmp()
		difftest.JudgeBy(cmp, difftest.Side(), difftest.Side(), difftest.Policy(t, "version: 1\n"+c.text), difftest.Day("2026-06-01"))
		if cmp.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.why, cmp.Verdict, c.want, cmp.Gates)
		}
	}
}

// TestMinCaptures: with fewer a side than the policy wants a duration does not fail; a count does.
func TestMinCaptures(t *testing.T) {
	const text = "version: 1\nstats: {min_captures: 3}\nrules: [{id: step, metric: unit.time.p50, regress: {rel: 3%}}]"
	for n, want := range map[int]comparison.Verdict{1: comparison.Inconclusive, 2: comparison.Inconclusive, 3: comparison.Fail} {
		var base, head []*report.Report
		for range n {
			base, head = append(base, difftest.Side()...), append(head, difftest.Side()...)
		}
		cmp := difftest.Compared(10.8e6, comparison.Regressed)
		difftest.JudgeBy(cmp, base, head, difftest.Policy(t, text), difftest.Day("2026-06-01"))
		if cmp.Verdict != want || (n < 3) != strings.Contains(cmp.Gates[0].Reason, "the policy asks for 3 (min_captures)") {
			t.Errorf("%d captures: %s, %+v", n, cmp.Verdict, cmp.Gates)
		}
	}
	cmp := difftest.Compared(10e6, comparison.Same)
	cmp.Kernels = []comparison.Kernel{difftest.Kernel("", "extra", 0, 50e3, comparison.Added)}
	difftest.JudgeBy(cmp, difftest.Side(), difftest.Side(), difftest.Policy(t, "version: 1\nstats: {min_captures: 3}\nrules: [{id: k, metric: kernel.time_per_unit, regress: {rel: 3%}}]"), difftest.Day("2026-06-01"))
	if cmp.Verdict != comparison.Fail {
		t.Errorf("a kernel that was added is exact: %+v", cmp.Gates)
	}
}

// TestAlphaReachesTheTest: the idle share of three captures a side rises from 20 % to 21 %, with a standard deviation of
// about 1 % between captures. d = ln 1.05 = 0.0488 and SE = 0.01 √(2/3) = 0.0082 with 4 degrees of freedom give t = 5.97 and
// p = 0.004. A metric that has no row is tested at a fifth of alpha: 0.01 takes that for a change, and 0.002, of an alpha of
// 1 %, does not.
func TestAlphaReachesTheTest(t *testing.T) {
	base, head := idleSides(0.198, 0.2, 0.202), idleSides(0.2079, 0.21, 0.2121)
	for text, want := range map[string]comparison.Verdict{"5%": comparison.Fail, "1%": comparison.Inconclusive} {
		cmp := difftest.Compared(10e6, comparison.Same)
		difftest.JudgeBy(cmp, base, head, difftest.Policy(t, "version: 1\nstats: {alpha: "+text+"}\nrules: [{id: idle, metric: gpu.idle_ratio, regress: {rel: 3%}}]"), difftest.Day("2026-06-01"))
		if cmp.Verdict != want {
			t.Errorf("alpha %s: %s, want %s: %+v", text, cmp.Verdict, want, cmp.Gates)
		}
	}
}

// TestFirstRun: without a base budgets are judged, and the verdict says what that leaves open.
func TestFirstRun(t *testing.T) {
	for _, c := range []struct {
		why, text string
		want      comparison.Verdict
		gates     int
		noBase    policy.NoBase
	}{
		{"no budgets", "preset: llm-serving", comparison.Inconclusive, 0, policy.NotNamed},
		{"no budgets, and no base can be there yet", "preset: llm-serving", comparison.Warn, 0, policy.NeverMade},
		{"no budgets, and the base is gone", "preset: llm-serving", comparison.Inconclusive, 0, policy.Lost},
		{"a budget held, and the base is gone", "preset: llm-serving\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 40%}]", comparison.Inconclusive, 1, policy.Lost},
		{"a budget broken, and no base can be there yet", "preset: llm-serving\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 20%}]", comparison.Fail, 1, policy.NeverMade},
		{"the policy says what a base that is gone means", "preset: llm-serving\nstats: {on_missing_baseline: fail}", comparison.Fail, 0, policy.Lost},
		{"a budget held", "preset: llm-serving\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 40%}]", comparison.Warn, 1, policy.NotNamed},
		{"a budget broken", "preset: llm-serving\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 20%}]", comparison.Fail, 1, policy.NotNamed},
		{"nothing but budgets", "budgets: [{id: idle, metric: gpu.idle_ratio, max: 40%}]", comparison.Pass, 1, policy.NotNamed},
		{"nothing but budgets, one broken", "budgets: [{id: idle, metric: gpu.idle_ratio, max: 20%}]", comparison.Fail, 1, policy.NotNamed},
		{"nothing but a budget of something else", "budgets: [{id: errors, metric: launch.errors, max: 0, optional: true}]", comparison.Inconclusive, 0, policy.NotNamed},
		{"a missing baseline passes", "preset: llm-serving\nstats: {on_missing_baseline: pass}\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 40%}]", comparison.Pass, 1, policy.NotNamed},
		{"a missing baseline passes, and nothing was checked", "preset: llm-serving\nstats: {on_missing_baseline: pass}", comparison.Warn, 0, policy.NotNamed},
		{"a missing baseline fails", "preset: llm-serving\nstats: {on_missing_baseline: fail}", comparison.Fail, 0, policy.NotNamed},
		{"a waiver is not unused before there is a comparison", "stats: {on_missing_baseline: pass}\nrules: [{id: step, metric: unit.time, regress: {rel: 3%}}]\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 40%}]\nwaivers: [{rule: step, expires: 2026-12-31, reason: x}]", comparison.Pass, 1, policy.NotNamed},
	} {
		cmp, err := diff.JudgeBudgets(idleSides(0.3, 0.31), diff.Options{Policy: difftest.Policy(t, "version: 1\n"+c.text), Today: difftest.Day("2026-06-01"), NoBase: c.noBase})
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Verdict != c.want || len(cmp.Gates) != c.gates || !cmp.FirstRun() || cmp.Comparable || cmp.Reasons[0].Code != comparison.NoBaseline || strings.Contains(cmp.Reasons[0].Text, "no baseline") {
			t.Errorf("%s: %s, %+v %+v", c.why, cmp.Verdict, cmp.Reasons, cmp.Gates)
		}
		if got, err := comparison.Read(strings.NewReader(difftest.JSON(t, cmp))); err != nil || !got.FirstRun() {
			t.Errorf("%s: read back: %v", c.why, err)
		}
	}
	if _, err := diff.JudgeBudgets(nil, diff.Options{}); err == nil {
		t.Error("nothing was judged, and no error")
	}
}

// TestAccept: a label turns fail into warn and names itself, and nothing else.
func TestAccept(t *testing.T) {
	cmp := compareBy(t, idleSides(0.3), idleSides(0.3), "budgets: [{id: idle, metric: gpu.idle_ratio, max: 20%}]")
	if !cmp.Accept("perf:accept\n::error", strings.Repeat("x", 200)) || cmp.Verdict != comparison.Warn {
		t.Fatalf("%+v", cmp)
	}
	if o := cmp.Overrides[0]; o.Label != "perf:accept::error" || len(o.By) != 100 || o.From != comparison.Fail || o.To != comparison.Warn || cmp.Gates[0].Verdict != comparison.Fail {
		t.Errorf("%+v, gate %s", o, cmp.Gates[0].Verdict)
	}
	if cmp.Accept("perf:accept", "") || len(cmp.Overrides) != 1 {
		t.Error("a warning was accepted")
	}
}

// TestWaiversNeedADay: the day comes from the caller, so that the same input gives the same bytes.
func TestWaiversNeedADay(t *testing.T) {
	p := difftest.Policy(t, difftest.Example)
	if _, err := diff.Compare(difftest.Side(), difftest.Side(), diff.Options{Policy: p}); err == nil || !strings.Contains(err.Error(), "Options.Today") {
		t.Errorf("error %v", err)
	}
}

// TestRulesThatJudgeNothingArePointedOut: general rules belong first, since the last one judges.
func TestRulesThatJudgeNothingArePointedOut(t *testing.T) {
	if got := difftest.Policy(t, difftest.Example).Shadowed(); len(got) != 1 || got[0] != [2]string{"attn", "kernels"} {
		t.Errorf("the example of the design: %v", got)
	}
	if got := difftest.Policy(t, "version: 1\npreset: strict\nrules: [{id: all, metric: kernel.time_per_unit, regress: {rel: 5%}}, {id: attn, metric: kernel.time_per_unit, match: {glob: f*}, regress: {rel: 3%}}]").Shadowed(); len(got) != 0 {
		t.Errorf("from the general to the special: %v", got)
	}
}

// What a team wrote stands before what its preset brings.
func TestOwnRulesComeFirst(t *testing.T) {
	text := "preset: strict\nbudgets:\n  - {id: mine, metric: gpu.idle_ratio, max: 99%}\n"
	c := compareBy(t, idleSides(0.1), idleSides(0.2), text)
	if len(c.Gates) < 3 || c.Gates[0].Rule != "mine" || slices.ContainsFunc(c.Gates[1:], func(g comparison.Gate) bool { return g.Rule == "mine" }) {
		t.Errorf("%d gates, the first by %s", len(c.Gates), c.Gates[0].Rule)
	}
}
