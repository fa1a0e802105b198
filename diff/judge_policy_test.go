package diff_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
)

// idleSides are captures whose first device is idle for these shares of the window.
func idleSides(values ...float64) []*report.Report {
	var list []*report.Report
	for _, v := range values {
		list = append(list, side(metric("gpu.idle_ratio", report.Ratio, v, "device", "0"))...)
	}
	return list
}

// compareBy compares by a policy on 2026-06-01.
func compareBy(t testing.TB, base, head []*report.Report, text string) *diff.Comparison {
	t.Helper()
	c, err := diff.Compare(base, head, diff.Options{Policy: policy(t, "version: 1\n"+text), Today: day("2026-06-01")})
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
		verdict     diff.Verdict
		gate        diff.Verdict
		status      string // of the waiver
		reason      string // of the gate
	}{
		{"no waiver", rule, diff.Fail, diff.Fail, "", "+10.0 %"},
		{"any change", rule + "waivers: [{rule: idle, expires: 2026-12-31, reason: why}]", diff.Pass, diff.Pass, diff.WaiverApplied, "accepted until 2026-12-31 by a waiver: why"},
		{"on its last day", rule + "waivers: [{rule: idle, expires: 2026-06-01, reason: why}]", diff.Pass, diff.Pass, diff.WaiverApplied, ""},
		{"the day after", rule + "waivers: [{rule: idle, expires: 2026-05-31, issue: '#1', reason: why}]", diff.Fail, diff.Fail, diff.WaiverExpired, "its waiver (#1) expired on 2026-05-31"},
		{"at its ceiling", rule + "waivers: [{rule: idle, ceiling: 10%, expires: 2026-12-31, reason: why}]", diff.Pass, diff.Pass, diff.WaiverApplied, ""},
		{"above its ceiling", rule + "waivers: [{rule: idle, ceiling: 9.9%, expires: 2026-12-31, reason: why}]", diff.Fail, diff.Fail, diff.WaiverExceeded, "accepts 9.9% at most"},
		{"at an absolute ceiling", rule + "waivers: [{rule: idle, ceiling: 2pp, expires: 2026-12-31, reason: why}]", diff.Pass, diff.Pass, diff.WaiverApplied, ""},
		{"above an absolute ceiling", rule + "waivers: [{rule: idle, ceiling: 1.9pp, expires: 2026-12-31, reason: why}]", diff.Fail, diff.Fail, diff.WaiverExceeded, ""},
		{"a second one holds", rule + "waivers: [{rule: idle, ceiling: 5%, expires: 2026-12-31, reason: a}, {rule: idle, ceiling: 15%, expires: 2026-12-31, reason: b}]", diff.Pass, diff.Pass, diff.WaiverExceeded, ": b"},
		{"a budget, its value below the ceiling", budget + "waivers: [{rule: idle, ceiling: 22%, expires: 2026-12-31, reason: why}]", diff.Pass, diff.Pass, diff.WaiverApplied, ""},
		{"a budget, its value above", budget + "waivers: [{rule: idle, ceiling: 21%, expires: 2026-12-31, reason: why}]", diff.Fail, diff.Fail, diff.WaiverExceeded, ""},
		{"of something else", rule + "waivers: [{rule: idle, match: {glob: flash*}, expires: 2026-12-31, reason: why}]", diff.Fail, diff.Fail, diff.WaiverUnused, ""},
		{"a rule that only warns", strings.Replace(rule, "regress", "level: warn, regress", 1) + "waivers: [{rule: idle, expires: 2026-12-31, reason: why}]", diff.Pass, diff.Pass, diff.WaiverApplied, ""},
		{"not needed", strings.Replace(rule, "3%", "30%", 1) + "waivers: [{rule: idle, expires: 2026-12-31, reason: why}]", diff.Warn, diff.Pass, diff.WaiverUnused, ""},
		{"not needed and expired", strings.Replace(rule, "3%", "30%", 1) + "waivers: [{rule: idle, expires: 2026-05-31, reason: why}]", diff.Warn, diff.Pass, diff.WaiverExpired, ""},
	} {
		// Two captures that differ in nothing else have no unit of work, so that the sides are not comparable; rules on
		// shares are judged where they are identical or where the rows stand, which compared says.
		cmp := compared(10e6, diff.Same)
		p := policy(t, "version: 1\n"+c.policy)
		diff.JudgeBy(cmp, idleSides(0.20, 0.2001, 0.1999), idleSides(0.22, 0.2201, 0.2199), p, day("2026-06-01"))
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
	for match, want := range map[string]diff.Verdict{"fmha_v2": diff.Pass, "fmha_v3": diff.Pass, "gemm": diff.Fail} {
		cmp := compared(10e6, diff.Same)
		cmp.Kernels = []diff.Kernel{kernel("fmha_v2", "fmha_v3", 100e3, 111e3, diff.Regressed)}
		p := policy(t, "version: 1\nrules: [{id: attn, metric: kernel.time_per_unit, match: {regex: fmha}, regress: {rel: 5%, abs: 1us}}]\n"+
			"waivers: [{rule: attn, match: {regex: "+match+"}, ceiling: 12%, expires: 2026-12-31, reason: fp8}]")
		diff.JudgeBy(cmp, side(), side(), p, day("2026-06-01"))
		if len(cmp.Gates) != 1 || cmp.Gates[0].Verdict != want {
			t.Errorf("%s: %+v, want %s", match, cmp.Gates, want)
		}
	}
	// What was added has no base that 12 % could be of.
	cmp := compared(10e6, diff.Same)
	cmp.Kernels = []diff.Kernel{kernel("", "fmha_v3", 0, 111e3, diff.Added)}
	p := policy(t, "version: 1\nrules: [{id: attn, metric: kernel.time_per_unit, match: {regex: fmha}, regress: {rel: 5%, abs: 1us}}]\n"+
		"waivers: [{rule: attn, ceiling: 12%, expires: 2026-12-31, reason: fp8}]")
	diff.JudgeBy(cmp, side(), side(), p, day("2026-06-01"))
	if len(cmp.Gates) != 1 || cmp.Gates[0].Verdict != diff.Fail || cmp.Waivers[0].Status != diff.WaiverExceeded {
		t.Errorf("%+v %+v", cmp.Gates, cmp.Waivers)
	}
}

// TestIgnoredKernels are judged by no rule; of a replaced one both names have to be ignored.
func TestIgnoredKernels(t *testing.T) {
	cmp := compared(10e6, diff.Same)
	cmp.Kernels = []diff.Kernel{
		kernel("memset_a", "memset_a", 100e3, 300e3, diff.Regressed), kernel("memset_b", "fill", 100e3, 300e3, diff.Regressed), kernel("memset_c", "memset_d", 100e3, 300e3, diff.Regressed),
	}
	p := policy(t, "version: 1\nignore: {kernels: ['memset*']}\nrules: [{id: k, metric: kernel.time_per_unit, regress: {rel: 5%}}]")
	diff.JudgeBy(cmp, side(), side(), p, day("2026-06-01"))
	if len(cmp.Gates) != 1 || cmp.Gates[0].Labels["kernel"] != "fill" {
		t.Errorf("%+v", cmp.Gates)
	}
}

// TestOpenAnswersMeanWhatThePolicySays, and never that a comparison which answered nothing passes.
func TestOpenAnswersMeanWhatThePolicySays(t *testing.T) {
	const step = "rules: [{id: step, metric: unit.time.p50, regress: {rel: 3%}}]\n"
	const nothing = "rules: [{id: none, metric: graph.coverage, regress: {abs: 1pp}}]\n"
	wide := func() *diff.Comparison { return compared(10.8e6, diff.Unsettled) } // +8 %, not certain
	same := func() *diff.Comparison { return compared(10e6, diff.Same) }
	other := func() *diff.Comparison {
		c := compared(10.8e6, diff.Unsettled)
		c.Comparable, c.Reasons = false, []diff.Reason{{Code: diff.DifferentWork, Text: "not the same"}}
		return c
	}
	for _, c := range []struct {
		why  string
		cmp  func() *diff.Comparison
		text string
		want diff.Verdict
	}{
		{"inconclusive warns", wide, step, diff.Warn},
		{"inconclusive passes", wide, step + "stats: {on_inconclusive: pass}", diff.Pass},
		{"inconclusive fails", wide, step + "stats: {on_inconclusive: fail}", diff.Fail},
		{"inconclusive stays so", wide, step + "stats: {on_inconclusive: inconclusive}", diff.Inconclusive},
		{"a warning at most", wide, strings.Replace(step, "regress", "level: warn, regress", 1) + "stats: {on_inconclusive: fail}", diff.Warn},
		{"not comparable", other, step, diff.Inconclusive},
		{"not comparable fails", other, step + "stats: {on_not_comparable: fail}", diff.Fail},
		{"not comparable warns", other, step + "stats: {on_not_comparable: warn}", diff.Warn},
		{"not comparable cannot pass with nothing checked", other, step + "stats: {on_not_comparable: pass}", diff.Inconclusive},
		{"not comparable passes where a budget was checked", other, step + "stats: {on_not_comparable: pass}\nbudgets: [{id: b, metric: unit.time.p50, max: 11ms}]", diff.Pass},
		{"a metric that is not there", same, nothing, diff.Inconclusive},
		{"a metric that is not there fails", same, nothing + "stats: {on_missing: fail}", diff.Fail},
		{"nothing checked is no pass by a warning", same, nothing + "stats: {on_missing: warn}", diff.Inconclusive},
		{"a metric that is not there warns beside one that is", same, strings.Replace(nothing, "]", ", {id: step, metric: unit.time.p50, regress: {rel: 3%}}]", 1) + "stats: {on_missing: warn}", diff.Warn},
		{"a metric that may be missing", same, strings.Replace(strings.Replace(nothing, "}]", "}, {id: step, metric: unit.time.p50, regress: {rel: 3%}}]", 1), "id: none", "optional: true", 1), diff.Pass},
	} {
		cmp := c.cmp()
		diff.JudgeBy(cmp, side(), side(), policy(t, "version: 1\n"+c.text), day("2026-06-01"))
		if cmp.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.why, cmp.Verdict, c.want, cmp.Gates)
		}
	}
}

// TestMinCaptures: with fewer a side than the policy wants a duration does not fail; a count does.
func TestMinCaptures(t *testing.T) {
	const text = "version: 1\nstats: {min_captures: 3}\nrules: [{id: step, metric: unit.time.p50, regress: {rel: 3%}}]"
	for n, want := range map[int]diff.Verdict{1: diff.Warn, 2: diff.Warn, 3: diff.Fail} {
		var base, head []*report.Report
		for range n {
			base, head = append(base, side()...), append(head, side()...)
		}
		cmp := compared(10.8e6, diff.Regressed)
		diff.JudgeBy(cmp, base, head, policy(t, text), day("2026-06-01"))
		if cmp.Verdict != want || (n < 3) != strings.Contains(cmp.Gates[0].Reason, "the policy asks for 3 (min_captures)") {
			t.Errorf("%d captures: %s, %+v", n, cmp.Verdict, cmp.Gates)
		}
	}
	cmp := compared(10e6, diff.Same)
	cmp.Kernels = []diff.Kernel{kernel("", "extra", 0, 50e3, diff.Added)}
	diff.JudgeBy(cmp, side(), side(), policy(t, "version: 1\nstats: {min_captures: 3}\nrules: [{id: k, metric: kernel.time_per_unit, regress: {rel: 3%}}]"), day("2026-06-01"))
	if cmp.Verdict != diff.Fail {
		t.Errorf("a kernel that was added is exact: %+v", cmp.Gates)
	}
}

// TestAlphaReachesTheTest: the idle share of three captures a side rises from 20 % to 21 %, with a standard deviation of
// about 1 % between captures. d = ln 1.05 = 0.0488 and SE = 0.01 √(2/3) = 0.0082 with 4 degrees of freedom give t = 5.97 and
// p = 0.004. A metric that has no row is tested at a fifth of alpha: 0.01 takes that for a change, and 0.002, of an alpha of
// 1 %, does not.
func TestAlphaReachesTheTest(t *testing.T) {
	base, head := idleSides(0.198, 0.2, 0.202), idleSides(0.2079, 0.21, 0.2121)
	for text, want := range map[string]diff.Verdict{"5%": diff.Fail, "1%": diff.Warn} {
		cmp := compared(10e6, diff.Same)
		diff.JudgeBy(cmp, base, head, policy(t, "version: 1\nstats: {alpha: "+text+"}\nrules: [{id: idle, metric: gpu.idle_ratio, regress: {rel: 3%}}]"), day("2026-06-01"))
		if cmp.Verdict != want {
			t.Errorf("alpha %s: %s, want %s: %+v", text, cmp.Verdict, want, cmp.Gates)
		}
	}
}

// TestAlphaAndFDRReachTheRows: three captures a side of an engine whose matrix product takes longer. Just above its adjusted
// p-value a row has regressed, just below it has not; and intervals are of the level 1 - alpha.
func TestAlphaAndFDRReachTheRows(t *testing.T) {
	var base, head []*report.Report
	for i := range int64(3) {
		base = append(base, engineReport(t, engine{seed: 1 + i}))
		head = append(head, engineReport(t, engine{seed: 4 + i, scale: 1.12, all: 1 + 0.001*float64(i)}))
	}
	rows := func(alpha, fdr float64) (step diff.Row, gemm diff.Kernel) {
		p := diff.DefaultPolicy()
		p.Stats.Alpha, p.Stats.FDR = alpha, fdr
		c := compare(t, base, head, diff.Options{Policy: p})
		return *primaryRow(t, c, "unit.time.p50"), *kernelRow(c, engineGEMM)
	}
	step, gemm := rows(0.05, 0.05)
	if step.Class != diff.Regressed || gemm.Class != diff.Regressed || step.Interval.Level != 0.95 {
		t.Fatalf("by default: %+v %+v", step, gemm)
	}
	p, q := *step.PAdjusted, *gemm.PAdjusted
	if s, g := rows(p*1.01, q*0.99); s.Class != diff.Regressed || g.Class == diff.Regressed {
		t.Errorf("alpha just above p and fdr just below: %s, %s", s.Class, g.Class)
	}
	s, g := rows(p*0.99, q*1.01)
	if s.Class == diff.Regressed || g.Class != diff.Regressed {
		t.Errorf("alpha just below p and fdr just above: %s, %s", s.Class, g.Class)
	}
	if !(s.Interval.High > step.Interval.High) || s.Interval.Level != 1-p*0.99 {
		t.Errorf("the interval of a smaller alpha is wider: %+v and %+v", s.Interval, step.Interval)
	}
}

// TestTheEnvironmentIsThePolicys: another driver makes captures not comparable only where the policy says so, another model
// does unless the policy says otherwise.
func TestTheEnvironmentIsThePolicys(t *testing.T) {
	with := func(driver, model string) []*report.Report {
		r := *engineReport(t, engine{})
		r.Environment.Driver, r.Environment.Model = &driver, &model
		return []*report.Report{&r}
	}
	for _, c := range []struct {
		why        string
		head       []*report.Report
		text       string
		comparable bool
		soft       string // field that is warned of
	}{
		{"another driver", with("560", "m"), "", true, "driver"},
		{"another driver, hard", with("560", "m"), "environment: {hard: [driver]}", false, ""},
		{"another driver, residue", with("560", "m"), "environment: {residue: [driver]}", true, ""},
		{"another model", with("550", "n"), "", false, ""},
		{"another model, soft", with("550", "n"), "environment: {soft: [model]}", true, "model"},
	} {
		cmp := compareBy(t, with("550", "m"), c.head, "preset: llm-serving\n"+c.text)
		if cmp.Comparable != c.comparable && !cmp.Identical || cmp.Comparable && !c.comparable && len(cmp.Reasons) == 0 {
			t.Errorf("%s: comparable %t, %+v", c.why, cmp.Comparable, cmp.Reasons)
		}
		if got := len(cmp.Reasons) > 0 && cmp.Reasons[0].Code == diff.EnvironmentMismatch; got == c.comparable {
			t.Errorf("%s: reasons %+v", c.why, cmp.Reasons)
		}
		soft := ""
		for _, r := range cmp.Residue {
			if r.Soft {
				soft = r.Field
			}
		}
		if soft != c.soft {
			t.Errorf("%s: warned of %q, want %q", c.why, soft, c.soft)
		}
	}
}

// TestFirstRun: without a base budgets are judged, and the verdict says what that leaves open.
func TestFirstRun(t *testing.T) {
	for _, c := range []struct {
		why, text string
		want      diff.Verdict
		gates     int
	}{
		{"no budgets", "preset: llm-serving", diff.Warn, 0},
		{"a budget held", "preset: llm-serving\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 40%}]", diff.Warn, 1},
		{"a budget broken", "preset: llm-serving\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 20%}]", diff.Fail, 1},
		{"nothing but budgets", "budgets: [{id: idle, metric: gpu.idle_ratio, max: 40%}]", diff.Pass, 1},
		{"nothing but budgets, one broken", "budgets: [{id: idle, metric: gpu.idle_ratio, max: 20%}]", diff.Fail, 1},
		{"nothing but a budget of something else", "budgets: [{id: errors, metric: launch.errors, max: 0, optional: true}]", diff.Inconclusive, 0},
		{"a missing baseline passes", "preset: llm-serving\nstats: {on_missing_baseline: pass}\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 40%}]", diff.Pass, 1},
		{"a missing baseline passes, and nothing was checked", "preset: llm-serving\nstats: {on_missing_baseline: pass}", diff.Warn, 0},
		{"a missing baseline fails", "preset: llm-serving\nstats: {on_missing_baseline: fail}", diff.Fail, 0},
		{"a waiver is not unused before there is a comparison", "stats: {on_missing_baseline: pass}\nrules: [{id: step, metric: unit.time, regress: {rel: 3%}}]\nbudgets: [{id: idle, metric: gpu.idle_ratio, max: 40%}]\nwaivers: [{rule: step, expires: 2026-12-31, reason: x}]", diff.Pass, 1},
	} {
		cmp, err := diff.JudgeBudgets(idleSides(0.3, 0.31), diff.Options{Policy: policy(t, "version: 1\n"+c.text), Today: day("2026-06-01")})
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Verdict != c.want || len(cmp.Gates) != c.gates || !cmp.FirstRun() || cmp.Comparable || cmp.Reasons[0].Code != diff.NoBaseline || !strings.Contains(cmp.Reasons[0].Text, "no baseline (first run)") {
			t.Errorf("%s: %s, %+v %+v", c.why, cmp.Verdict, cmp.Reasons, cmp.Gates)
		}
		if got, err := diff.Read(strings.NewReader(written(t, cmp))); err != nil || !got.FirstRun() {
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
	if !cmp.Accept("perf:accept\n::error", strings.Repeat("x", 200)) || cmp.Verdict != diff.Warn {
		t.Fatalf("%+v", cmp)
	}
	if o := cmp.Overrides[0]; o.Label != "perf:accept::error" || len(o.By) != 100 || o.From != diff.Fail || o.To != diff.Warn || cmp.Gates[0].Verdict != diff.Fail {
		t.Errorf("%+v, gate %s", o, cmp.Gates[0].Verdict)
	}
	if cmp.Accept("perf:accept", "") || len(cmp.Overrides) != 1 {
		t.Error("a warning was accepted")
	}
}

// TestWaiversNeedADay: the day comes from the caller, so that the same input gives the same bytes.
func TestWaiversNeedADay(t *testing.T) {
	p := policy(t, designExample)
	if _, err := diff.Compare(side(), side(), diff.Options{Policy: p}); err == nil || !strings.Contains(err.Error(), "Options.Today") {
		t.Errorf("error %v", err)
	}
}

// TestTheUnitIsThePolicys: a report that was made per another kind of unit is not comparable.
func TestTheUnitIsThePolicys(t *testing.T) {
	r := []*report.Report{engineReport(t, engine{})}
	for _, c := range []struct {
		unit string
		ok   bool
	}{{"auto", true}, {r[0].Unit.Kind, true}, {"none", false}} {
		text := c.unit
		if text == "nvtx" || text == "kernel" {
			text += ":x"
		}
		cmp := compareBy(t, r, []*report.Report{engineReport(t, engine{gap: 50_000})}, "preset: llm-serving\nunit: '"+text+"'")
		if cmp.Comparable != c.ok {
			t.Errorf("%s: comparable %t, %+v", c.unit, cmp.Comparable, cmp.Reasons)
		}
	}
}

// TestRulesThatJudgeNothingArePointedOut: general rules belong first, since the last one judges.
func TestRulesThatJudgeNothingArePointedOut(t *testing.T) {
	if got := policy(t, designExample).Shadowed(); len(got) != 1 || got[0] != [2]string{"attn", "kernels"} {
		t.Errorf("the example of the design: %v", got)
	}
	if got := policy(t, "version: 1\npreset: strict\nrules: [{id: all, metric: kernel.time_per_unit, regress: {rel: 5%}}, {id: attn, metric: kernel.time_per_unit, match: {glob: f*}, regress: {rel: 3%}}]").Shadowed(); len(got) != 0 {
		t.Errorf("from the general to the special: %v", got)
	}
}
