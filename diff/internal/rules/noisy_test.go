package rules_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/difftest"
	"github.com/nsys-llm/explain/diff/policy"
	"pgregory.net/rapid"
)

// TestNoPassOverACertainRegression: whatever the rules are about, a unit's time of whatever kind that got worse for
// certain is judged by a rule that tolerates it, or the verdict is no pass.
func TestNoPassOverACertainRegression(t *testing.T) {
	labels := []report.Labels{{}, {"phase": "decode", "batch": "16"}, {"phase": "prefill"}}
	metrics := []string{"work.time", "unit.time.p50", "unit.time.mean", "unit.time.p99"}
	rapid.Check(t, func(t *rapid.T) {
		cmp := difftest.Compared(10e6, comparison.Same)
		row := cmp.Primary[0]
		cmp.Primary = cmp.Primary[:0]
		var rules []policy.Rule
		add := func(rule string) {
			r, err := policy.ParseFailOn(rule)
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, r)
		}
		add("gpu.idle_ratio{device=0}:+3%")
		for _, m := range metrics {
			for i, l := range labels {
				if m == "work.time" && i > 0 {
					break
				}
				r := row
				head := 10e6 * rapid.SampledFrom([]float64{1, 1, 1, 0.8, 1.5}).Draw(t, m+l.String())
				r.Metric, r.Labels, r.Head, r.Class = m, l, &head, comparison.Same
				if r.Change(); *r.Ratio > 1.03 {
					r.Class = comparison.Regressed
				}
				cmp.Primary = append(cmp.Primary, r)
				if tolerated := rapid.SampledFrom([]string{"", "5%", "100%", "100%,warn"}).Draw(t, "rule"); tolerated != "" {
					add(strings.Replace(m+"{"+l.String()+"}", "{}", "", 1) + ":+" + tolerated)
				}
			}
		}
		idle := difftest.Side(difftest.Metric("gpu.idle_ratio", report.Ratio, 0.2, "device", "0"))
		difftest.Judge(cmp, idle, idle, rules)
		if cmp.Verdict != comparison.Pass {
			return
		}
		for _, r := range cmp.Primary {
			tolerated := slices.ContainsFunc(cmp.Gates, func(g comparison.Gate) bool {
				return g.Metric == r.Metric && g.Labels.String() == r.Labels.String() && g.Verdict == comparison.Pass
			})
			if r.Class == comparison.Regressed && !tolerated {
				t.Fatalf("pass over %s{%s} %+.1f %%", r.Metric, r.Labels, 100*(*r.Ratio-1))
			}
		}
	})
}

// TestADeviceThatIsNotTheSlowestOnlyShows: the step takes what its slowest device does, which did not change.
func TestADeviceThatIsNotTheSlowestOnlyShows(t *testing.T) {
	for _, device := range []bool{true, false} {
		cmp := difftest.Compared(10e6, comparison.Same)
		base, head := 5e6, 6e6
		r := comparison.Row{Metric: "unit.time.p50", Kind: "decode", Labels: report.Labels{"device": "0"}, Unit: report.Nanoseconds,
			Base: &base, Head: &head, Class: comparison.Regressed, Why: "because"}
		if !device {
			r.Metric, r.Labels = "unit.time.p99", report.Labels{"phase": "prefill"}
		}
		r.Change()
		cmp.Primary = append(cmp.Primary, r)
		difftest.Judge(cmp, difftest.Side(), difftest.Side(), rules(t, "unit.time.p50:+3%"))
		if warned := len(cmp.Gates) > 1 && cmp.Verdict == comparison.Warn; warned == device {
			t.Errorf("device %v: %s, %+v", device, cmp.Verdict, cmp.Gates)
		}
	}
}

// TestTheAbsoluteToleranceOfAShortUnit: 10 us are a third of a unit of 30 us. Below 300 us a time may change by no more
// than the relative tolerance of the unit.
func TestTheAbsoluteToleranceOfAShortUnit(t *testing.T) {
	for _, c := range []struct {
		base, head float64
		want       comparison.Verdict
	}{
		{30e3, 36e3, comparison.Fail},     // +20 %, +6 us
		{30e3, 30.8e3, comparison.Pass},   // +2.7 %
		{299e3, 308.9e3, comparison.Fail}, // +3.3 %, +9.9 us
		{320e3, 329.9e3, comparison.Pass}, // +3.1 %, and 10 us count again
	} {
		cmp := difftest.Compared(c.head, comparison.Regressed)
		row := &cmp.Primary[0]
		row.Base = &c.base
		row.Change()
		difftest.Judge(cmp, difftest.Side(), difftest.Side(), rules(t, "unit.time.p50:+3%,+10us"))
		if g := cmp.Gates[0]; g.Verdict != c.want {
			t.Errorf("%v to %v: %s, %s, want %s", c.base, c.head, g.Verdict, g.Reason, c.want)
		}
	}
}

// TestLaunchesFailOnlyWithTheStep: 638 launches more in a step that is faster are shown; in one that got slower they
// fail.
func TestLaunchesFailOnlyWithTheStep(t *testing.T) {
	for _, c := range []struct {
		class      comparison.Class
		head, want float64
		launches   comparison.Class
		verdict    comparison.Verdict
	}{
		{comparison.Improved, 9.9e6, 1106, comparison.Regressed, comparison.Warn},
		{comparison.Same, 10e6, 1106, comparison.Regressed, comparison.Warn},
		{comparison.Regressed, 10.2e6, 1106, comparison.Regressed, comparison.Fail},
		{comparison.Regressed, 10.2e6, 641, comparison.Regressed, comparison.Pass}, // +0.5 % is within 1 %
		{comparison.Unsettled, 10.2e6, 1106, comparison.Regressed, comparison.Fail},
		{comparison.Unsettled, 10.01e6, 1106, comparison.Regressed, comparison.Warn}, // +0.1 % is negligible
		// counts that vary too much for certainty
		{comparison.Improved, 2.5e6, 1106, comparison.Unsettled, comparison.Warn},
		{comparison.Same, 10e6, 1106, comparison.Unsettled, comparison.Warn},
		{comparison.Regressed, 10.2e6, 1106, comparison.Unsettled, comparison.Inconclusive},
	} {
		cmp := difftest.Compared(c.head, c.class)
		base := 638.0
		r := comparison.Row{Metric: "unit.launches", Labels: report.Labels{}, Unit: report.Count, Base: &base, Head: &c.want,
			Class: c.launches, Why: "because"}
		r.Change()
		cmp.Primary = append(cmp.Primary, r)
		difftest.Judge(cmp, difftest.Side(), difftest.Side(), nil)
		at := slices.IndexFunc(cmp.Gates, func(g comparison.Gate) bool { return g.Rule == "launches" })
		if at < 0 || cmp.Gates[at].Verdict != c.verdict {
			t.Errorf("%s, %v launches %s: %+v, want %s", c.class, c.want, c.launches, cmp.Gates, c.verdict)
		}
	}
}

// TestACertainRegressionThatMayBreakItsRule is no warning: +7 % against a rule of +5 % with a standard deviation of sd
// between three captures a side has a standard error of sd √(2/3) and 4 degrees of freedom, of which 2.13 are certain.
func TestACertainRegressionThatMayBreakItsRule(t *testing.T) {
	captures := func(mean, sd float64) (list []*report.Report) {
		for _, z := range []float64{-1, 0, 1} {
			list = append(list, difftest.Side(difftest.Metric("gpu.idle_ratio", report.Ratio, mean*math.Exp(z*sd), "device", "0"))...)
		}
		return list
	}
	for sd, want := range map[float64]comparison.Verdict{
		0.004: comparison.Fail,         // 5.8 standard errors beyond the rule
		0.012: comparison.Inconclusive, // 3.9 beyond 3 %, 1.9 beyond the rule
		0.04:  comparison.Inconclusive, // 1.2 beyond 3 %: suspected, and too large to pass
	} {
		cmp := difftest.Compared(10e6, comparison.Same)
		difftest.Judge(cmp, captures(0.2, sd), captures(0.214, sd), rules(t, "gpu.idle_ratio{device=0}:+5%"))
		if cmp.Verdict != want {
			t.Errorf("sd %v: %s, want %s: %+v", sd, cmp.Verdict, want, cmp.Gates)
		}
	}
}

// TestFewUnitsAreNoWarning: a kernel that runs in three units says nothing, and a rule on it that must be answered is
// inconclusive, not suspected (A5).
func TestFewUnitsAreNoWarning(t *testing.T) {
	side := func(mean float64) []*report.Report {
		m := difftest.Metric("api.time", report.Nanoseconds, mean*3, "api", "x")
		m.N, m.Summary = 3, &report.Summary{N: 3, Mean: mean, P50: mean, Min: mean, Max: mean, Stddev: 1}
		return difftest.Side(m)
	}
	cmp := difftest.Compared(10e6, comparison.Same)
	difftest.Judge(cmp, side(1000), side(1100), rules(t, "api.time.mean{api=x}:+3%"))
	if g := cmp.Gates[0]; g.Code != comparison.TooFewUnits || cmp.Verdict != comparison.Inconclusive {
		t.Errorf("%s, %+v", cmp.Verdict, g)
	}
}
