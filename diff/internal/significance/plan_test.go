package significance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/student"
)

// With an sd that is as good as known, Tau far from 0 and 2 captures a side, the power at effect e is
// P(Z > (Tau + 1.6449 sd - e)/sd): 0.5 at Tau + 1.6449 sd, 0.8 at 0.8416 sd more.
func TestPlanByHand(t *testing.T) {
	p := significance.Plan{Captures: 2, SD: 0.01, DF: 1e7, Tau: 0.1, Alpha: 0.05}
	near(t, "half", p.Power(0.1+0.016448536269514722), 0.5, 1e-5)
	near(t, "power", p.Power(-0.1-0.024864748605243863), 0.8, 1e-5)
	near(t, "detectable", p.Detectable(0.8), math.Expm1(0.1+0.024864748605243863), 1e-6)
	// Without a threshold the test is the ordinary two-sided one: 1.96 sd.
	p.Tau = 0
	near(t, "no threshold", p.Power(0.01959963984540054), 0.5, 1e-4)
	// One capture a side and no calibration: the point estimate against the floor, sd √2.
	one := significance.Plan{Captures: 1, SD: 0.01, Tau: 0.03, Alpha: 0.05, Floor: 0.05}
	near(t, "one capture", one.Power(0.05+0.01*math.Sqrt2), student.NormalTail(-1), 1e-12)
	// Nothing varies: what is beyond Tau is found, for sure.
	if got := (significance.Plan{Captures: 3, Tau: 0.03, Alpha: 0.05}); got.Power(0.031) != 1 || got.Power(0.029) != 0 {
		t.Error("no noise")
	}
}

// What was claimed to be found with 80 % was found with 47 %. The power that a plan states is the share of simulated
// comparisons in which the test, run as it will be, finds the change.
func TestPlanKeepsItsPromise(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	tau := math.Log1p(0.03)
	const sd, trials = 0.0047, 4000
	for _, c := range []struct {
		captures, calibration int
		alpha                 float64
	}{{2, 0, 0.05}, {3, 0, 0.05}, {2, 0, 0.0125}, {3, 0, 0.0125}, {2, 5, 0.0125}, {3, 5, 0.0125}, {1, 5, 0.05}} {
		p := significance.Plan{Captures: c.captures, SD: sd, DF: float64(max(c.calibration-1, 0)), Tau: tau, Alpha: c.alpha}
		mde := math.Log1p(p.Detectable(0.8))
		found := 0
		for range trials {
			draw := func(n int, at float64) []float64 {
				v := make([]float64, n)
				for i := range v {
					v[i] = at + sd*rng.NormFloat64()
				}
				return v
			}
			s := significance.Sample{Base: draw(c.captures, 0), Head: draw(c.captures, mde)}
			var past *significance.History
			if c.calibration > 0 {
				d := significance.Deviation(draw(c.calibration, 0))
				past = &significance.History{S2: d * d, DF: float64(c.calibration - 1)}
			}
			if r := significance.TREAT(&s, past, significance.Moderation{}, c.alpha); beyond(r, tau) <= c.alpha {
				found++
			}
		}
		share := float64(found) / trials
		t.Logf("%d a side, calibration of %d, alpha %v: %.2f %% found in %.1f %%", c.captures, c.calibration, c.alpha,
			100*math.Expm1(mde), 100*share)
		if math.Abs(share-0.8) > 0.02 {
			t.Errorf("%+v: %.2f %% is found in %.1f %% of the comparisons, not in 80 %%", c, 100*math.Expm1(mde), 100*share)
		}
	}
}

// What a plan needs is the least number with the power: one capture less has not.
func TestNeed(t *testing.T) {
	p := significance.Plan{SD: 0.01, Tau: math.Log1p(0.03), Alpha: 0.05}
	k := p.Need(math.Log1p(0.06), 0.8)
	at := func(k int) float64 { p.Captures = k; return p.Power(math.Log1p(0.06)) }
	if k < 3 || at(k) < 0.8 || at(k-1) >= 0.8 {
		t.Errorf("%d captures: power %.3f, with one less %.3f", k, at(k), at(k-1))
	}
	// A calibration of two captures with sd 0.44 % and a change of 6 %: two suffice, not 70.
	if got := (significance.Plan{SD: 0.0044, DF: 1, Tau: math.Log1p(0.03), Alpha: 0.05}).Need(math.Log1p(0.06), 0.8); got != 2 && got != 3 {
		t.Errorf("a quiet machine: %d captures", got)
	}
	if got := (significance.Plan{SD: 0.01, Tau: 0.03, Margin: 0.03, Alpha: 0.05}).Need(0, 0.8); got < 2 || got > 4 {
		t.Errorf("no change: %d captures", got)
	}
	for _, effect := range []float64{0.03, math.NaN()} {
		if got := (significance.Plan{SD: 0.01, Tau: 0.03, Alpha: 0.05}).Need(effect, 0.8); got != 0 {
			t.Errorf("effect %v: %d captures", effect, got)
		}
	}
}
