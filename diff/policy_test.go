package diff_test

import (
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
