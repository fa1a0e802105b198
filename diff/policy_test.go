package diff_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/difftest"
	"github.com/nsys-llm/explain/diff/policy"
)

// compareBy compares by a policy on 2026-06-01.
func compareBy(t testing.TB, base, head []*report.Report, text string) *comparison.Comparison {
	t.Helper()
	c, err := diff.Compare(base, head, diff.Options{Policy: difftest.Policy(t, "version: 1\n"+text), Today: difftest.Day("2026-06-01")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAlphaAndFDRReachTheRows: three captures a side of an engine whose matrix product takes longer. Just above its adjusted
// p-value a row has regressed, just below it has not; and intervals are of the level 1 - alpha.
func TestAlphaAndFDRReachTheRows(t *testing.T) {
	t.Parallel()
	var base, head []*report.Report
	for i := range int64(3) {
		base = append(base, engineReport(t, engine{seed: 1 + i}))
		head = append(head, engineReport(t, engine{seed: 4 + i, scale: 1.12, all: 1 + 0.001*float64(i)}))
	}
	rows := func(alpha, fdr float64) (step comparison.Row, gemm comparison.Kernel) {
		p := policy.Default()
		p.Stats.Alpha, p.Stats.FDR = alpha, fdr
		c := compare(t, base, head, diff.Options{Policy: p})
		return *primaryRow(t, c, "unit.time.p50"), *kernelRow(c, engineGEMM)
	}
	step, gemm := rows(0.05, 0.05)
	if step.Class != comparison.Regressed || gemm.Class != comparison.Regressed || step.Interval.Level != 0.95 {
		t.Fatalf("by default: %+v %+v", step, gemm)
	}
	p, q := *step.PAdjusted, *gemm.PAdjusted
	if s, g := rows(p*1.01, q*0.99); s.Class != comparison.Regressed || g.Class == comparison.Regressed {
		t.Errorf("alpha just above p and fdr just below: %s, %s", s.Class, g.Class)
	}
	s, g := rows(p*0.99, q*1.01)
	if s.Class == comparison.Regressed || g.Class != comparison.Regressed {
		t.Errorf("alpha just below p and fdr just above: %s, %s", s.Class, g.Class)
	}
	if !(s.Interval.High > step.Interval.High) || s.Interval.Level != 1-p*0.99 {
		t.Errorf("the interval of a smaller alpha is wider: %+v and %+v", s.Interval, step.Interval)
	}
}

// TestTheEnvironmentIsThePolicys: another driver makes captures not comparable only where the policy says so, another model
// does unless the policy says otherwise.
func TestTheEnvironmentIsThePolicys(t *testing.T) {
	t.Parallel()
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
		if got := len(cmp.Reasons) > 0 && cmp.Reasons[0].Code == comparison.EnvironmentMismatch; got == c.comparable {
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

// TestProposedPolicyKnowsTheNoise: of five captures of one commit that differ by 0.4 % (standard deviation), explain policy
// init writes a floor of about 0.4 % · √2 · 3.75 = 2.1 %. By it no pair of captures that did not change is judged harder
// than by the preset, and a step that takes 4.5 % longer fails, which the assumed floor of 5 % leaves open.
func TestProposedPolicyKnowsTheNoise(t *testing.T) {
	t.Parallel()
	c, err := diff.Calibrate(each(32, 10e6, 1, 1.004, 0.995, 1.001, 0.997, 1.003))
	if err != nil {
		t.Fatal(err)
	}
	text, err := diff.ProposePolicy(&c.Noise, "llm-serving", difftest.Facts())
	if err != nil {
		t.Fatal(err)
	}
	proposed, err := policy.Read(strings.NewReader(text), difftest.Facts())
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if f := proposed.Stats.Floor; f < 0.015 || f > 0.03 {
		t.Errorf("floor %v:\n%s", f, text)
	}
	preset, err := policy.Read(strings.NewReader("version: 1\npreset: llm-serving\n"), difftest.Facts())
	if err != nil {
		t.Fatal(err)
	}
	for i, pair := range [][2]float64{{1, 1.006}, {0.997, 1.004}, {1.004, 0.994}, {1, 1.011}, {0.996, 1.001}, {1.002, 1.009}} {
		base, head := each(32, 10e6, uint64(10+i), pair[0]), each(32, 10e6, uint64(20+i), pair[1])
		by, without := compare(t, base, head, diff.Options{Policy: proposed}), compare(t, base, head, diff.Options{Policy: preset})
		if severity(by) > severity(without) {
			t.Errorf("nothing changed, %v: %s, %s without: %s", pair, by.Verdict, without.Verdict, by.Cause)
		}
		slower := each(32, 10e6, uint64(30+i), pair[0]*1.045)
		if by, without := compare(t, base, slower, diff.Options{Policy: proposed}), compare(t, base, slower, diff.Options{Policy: preset}); by.Verdict != comparison.Fail || without.Verdict != comparison.Inconclusive {
			t.Errorf("+4.5 %%: %s, %s without: %s", by.Verdict, without.Verdict, failing(by))
		}
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
