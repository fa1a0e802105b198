package infer_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/infer"
	"pgregory.net/rapid"
)

// One sample is not moderated. Base 0, 0.02, -0.02: mean 0, squares 8e-4. Head 0.08, 0.10, 0.06: mean 0.08, squares 8e-4.
// s² = 16e-4/4 = 4e-4 with 4 degrees of freedom, SE = 0.02 √(2/3). For 4 degrees of freedom
// P(T > t) = 1/2 - 3/8 u (1 - u²/12) with u = t/√(1+t²/4).
func TestTREATByHand(t *testing.T) {
	s := infer.Sample{ID: "k", Base: []float64{0, 0.02, -0.02}, Head: []float64{0.08, 0.10, 0.06}}
	tau := math.Log(1.03)
	se := 0.02 * math.Sqrt(2./3)
	upper := func(t float64) float64 {
		u := t / math.Sqrt(1+t*t/4)
		return 0.5 - 3./8*u*(1-u*u/12)
	}
	one := infer.TREAT([]infer.Sample{s}, tau, 0.05, true)[0]
	two := infer.TREAT([]infer.Sample{s}, tau, 0.05, false)[0]
	near(t, "effect", one.Effect, 0.08, 1e-14)
	near(t, "s²", one.S2, 4e-4, 1e-14)
	near(t, "moderated", one.Moderated, 4e-4, 1e-14)
	near(t, "SE", one.SE, se, 1e-14)
	near(t, "DF", one.DF, 4, 0)
	near(t, "one-sided p", one.P, upper((0.08-tau)/se), 1e-12)
	near(t, "two-sided p", two.P, upper((0.08-tau)/se)+upper((0.08+tau)/se), 1e-12)
	near(t, "low", two.Low, 0.08-2.776445105197794*se, 1e-12)
	near(t, "high", two.High, 0.08+2.776445105197794*se, 1e-12)
	if !one.Known || one.NBase != 3 || one.NHead != 3 || one.ID != "k" {
		t.Errorf("got %+v", one)
	}
	// A decrease is beyond tau on two sides, not on the upper one.
	s.Base, s.Head = s.Head, s.Base
	near(t, "mirrored", infer.TREAT([]infer.Sample{s}, tau, 0.05, false)[0].P, two.P, 1e-12)
	near(t, "other side", infer.TREAT([]infer.Sample{s}, tau, 0.05, true)[0].P, 1-upper((0.08+tau)/se), 1e-12)
}

// One capture a side knows nothing of the variance between captures, unless earlier captures say it: s² = 1e-4 with 4
// degrees of freedom gives SE = 0.01 √2.
func TestTREATOneCapture(t *testing.T) {
	s := []infer.Sample{{ID: "k", Base: []float64{1}, Head: []float64{1.08}}}
	r := infer.TREAT(s, 0.03, 0.05, true)[0]
	if r.Known || r.P != 1 || r.SE != 0 || r.Low != r.Effect || r.High != r.Effect {
		t.Errorf("without history: %+v", r)
	}
	near(t, "effect", r.Effect, 0.08, 1e-14)
	h := infer.TREAT(s, 0.03, 0.05, true, infer.History{ID: "k", S2: 1e-4, DF: 4}, infer.History{ID: "other", S2: 1, DF: 4})[0]
	near(t, "SE", h.SE, 0.01*math.Sqrt2, 1e-14)
	near(t, "p", h.P, infer.TTail(0.05/(0.01*math.Sqrt2), 4), 1e-12)
	// History adds to what the captures say: squares 8e-4 + 8e-4 of 4 degrees of freedom and 4 × 1e-4 of 4 are 20e-4/8.
	both := infer.TREAT([]infer.Sample{{ID: "k", Base: []float64{0, 0.02, -0.02}, Head: []float64{0.08, 0.10, 0.06}}}, 0, 0.05, true, infer.History{ID: "k", S2: 1e-4, DF: 4})[0]
	near(t, "pooled", both.S2, 2.5e-4, 1e-14)
	near(t, "pooled df", both.S2DF, 8, 0)
}

func TestTREATWithoutVarianceOrValues(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name  string
		s     infer.Sample
		known bool
		p     float64
	}{
		{"equal", infer.Sample{Base: []float64{1, 1}, Head: []float64{1, 1}}, true, 1},
		{"beyond tau for sure", infer.Sample{Base: []float64{1, 1}, Head: []float64{2, 2}}, true, 0},
		{"no head", infer.Sample{Base: []float64{1, 1}, Head: []float64{nan, nan}}, false, 1},
		{"nothing", infer.Sample{}, false, 1},
	} {
		if r := infer.TREAT([]infer.Sample{c.s}, 0.03, 0.05, false)[0]; r.Known != c.known || r.P != c.p || r.SE != 0 {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	// The resolution of a timer bounds what can be known: SE 0.01 instead of 0.
	s := infer.Sample{Base: []float64{1, 1}, Head: []float64{1.05, 1.05}, Resolution: 0.01}
	r := infer.TREAT([]infer.Sample{s}, 0.03, 0.05, true)[0]
	near(t, "p at the resolution", r.P, infer.TTail(2, 2), 1e-12)
	// A capture without the value is left out: (0, 0.02) has squares 2e-4 of 1 degree of freedom, as has the head.
	s = infer.Sample{Base: []float64{0, nan, 0.02}, Head: []float64{0.02, 0, nan}}
	r = infer.TREAT([]infer.Sample{s}, 0, 0.05, true)[0]
	near(t, "s² of what is there", r.S2, 2e-4, 1e-14)
	if r.NBase != 2 || r.NHead != 2 || r.DF != 2 {
		t.Errorf("missing values: %+v", r)
	}
}

// spread makes a sample of 3 captures a side whose pooled variance is v: deviations -d, 0, d have squares 2d² a side, of 4
// degrees of freedom together: s² = d².
func spread(i int, v float64) infer.Sample {
	d := math.Sqrt(v)
	return infer.Sample{ID: strconv.Itoa(i), Base: []float64{-d, 0, d}, Head: []float64{d, 0, -d}}
}

// Ten samples with s² = 1 and 100 in turn, ν = 4. z is 0 and ln 100, so var(z) = (ln 10)² 10/9 and
// ψ'(D0/2) = (ln 10)² 10/9 - ψ'(2); mean e = ln 10 - ψ(2) + ln 2 with ψ(2) = 1 - γ.
func TestModerateByHand(t *testing.T) {
	var samples []infer.Sample
	for i := range 10 {
		samples = append(samples, spread(i, []float64{1, 100}[i%2]))
	}
	m := infer.Moderate(samples)
	near(t, "ψ'(D0/2)", infer.Trigamma(m.D0/2), math.Ln10*math.Ln10*10/9-(math.Pi*math.Pi/6-1), 1e-12)
	near(t, "ln S02", math.Log(m.S02), math.Ln10-(1-0.577215664901532861)+math.Ln2+infer.Digamma(m.D0/2)-math.Log(m.D0/2), 1e-12)
	near(t, "pooled", m.Pooled, 40, 0)
	s2, df := m.Squeeze(1, 4)
	near(t, "squeezed", s2, (m.D0*m.S02+4)/(m.D0+4), 1e-12)
	near(t, "squeezed df", df, m.D0+4, 1e-12)
	r := infer.TREAT(samples, 0, 0.05, true)
	near(t, "in the test", r[0].Moderated, s2, 1e-12)
}

// Equal variances differ less than chance makes them: D0 would be infinite, and is twice ν. s̃² = (8·4 + 4·4)/12.
func TestModerateEqualVariances(t *testing.T) {
	var samples []infer.Sample
	for i := range 12 {
		samples = append(samples, spread(i, 4))
	}
	m := infer.Moderate(samples)
	near(t, "D0", m.D0, 8, 1e-12)
	near(t, "S02", m.S02, 4, 1e-14)
	s2, df := m.Squeeze(4, 4)
	near(t, "s²", s2, 4, 1e-14)
	near(t, "df", df, 12, 1e-12)
	// A sample that nothing is known of has what the others have.
	s2, df = m.Squeeze(0, 0)
	near(t, "s² of the others", s2, 4, 1e-14)
	near(t, "its df", df, 8, 1e-12)
	// One that varies ten times as much as the others does not count, and stands on its own variance.
	samples = append(samples, spread(12, 400))
	if with := infer.Moderate(samples); with != m {
		t.Errorf("with an outlier %+v, without %+v", with, m)
	}
	r := infer.TREAT(samples, 0, 0.05, false)
	near(t, "its variance", r[12].Moderated, 400, 1e-12)
	near(t, "its df", r[12].DF, 4, 0)

	if m := infer.Moderate(samples[:infer.MinModerate-1]); m.D0 != 0 {
		t.Errorf("too few samples: %+v", m)
	}
	for i := range samples {
		samples[i] = spread(i, 0)
	}
	if m := infer.Moderate(samples); m.D0 != 0 {
		t.Errorf("nothing varies: %+v", m)
	}
	samples[0] = spread(0, 1)
	if m := infer.Moderate(samples); m.D0 != 0 {
		t.Errorf("next to nothing varies: %+v", m)
	}
}

// The prior that variances were drawn from is found again: s² = S02 · F(ν, D0). Of such samples 1.5 % lie above the limit,
// which makes the rest look a little more alike.
func TestModerateFindsThePrior(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	chi := func(df int) float64 {
		var v float64
		for range df {
			z := rng.NormFloat64()
			v += z * z
		}
		return v / float64(df)
	}
	var samples []infer.Sample
	for i := range 20000 {
		samples = append(samples, spread(i, 2.5*chi(4)/chi(4)))
	}
	m := infer.Moderate(samples)
	if math.Abs(m.D0-4) > 1 || math.Abs(m.S02-2.5) > 0.15 {
		t.Errorf("got %+v, want D0 4, S02 2.5", m)
	}
}

// Of tests of no change, 5 % have p ≤ 0.05, also where one sample in a family varies ten times as much as the others, and
// for that sample.
func TestModerateKeepsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var all, odd, n float64
	for range 1000 {
		var samples []infer.Sample
		for i := range 20 {
			s := infer.Sample{ID: strconv.Itoa(i)}
			sd := 1.0
			if i == 0 {
				sd = 10
			}
			for range 3 {
				s.Base, s.Head = append(s.Base, sd*rng.NormFloat64()), append(s.Head, sd*rng.NormFloat64())
			}
			samples = append(samples, s)
		}
		n++
		for i, r := range infer.TREAT(samples, 0, 0.05, false) {
			if r.P <= 0.05 {
				all++
				if i == 0 {
					odd++
				}
			}
		}
	}
	if share := all / n / 20; share > 0.055 || share < 0.03 {
		t.Errorf("%.4f of all tests have p ≤ 0.05", share)
	}
	if share := odd / n; share > 0.085 {
		t.Errorf("%.4f of the tests of the odd one have p ≤ 0.05", share)
	}
}

func TestTREATProperties(t *testing.T) {
	side := rapid.SliceOfN(rapid.Map(rapid.IntRange(-1000, 1000), func(v int) float64 { return float64(v) / 1000 }), 1, 5)
	rapid.Check(t, func(t *rapid.T) {
		var samples, swapped, shifted []infer.Sample
		for i := range rapid.IntRange(1, 14).Draw(t, "samples") {
			s := infer.Sample{ID: strconv.Itoa(i), Base: side.Draw(t, "base"), Head: side.Draw(t, "head")}
			samples = append(samples, s)
			swapped = append(swapped, infer.Sample{ID: s.ID, Base: s.Head, Head: s.Base})
			moved := infer.Sample{ID: s.ID}
			for _, v := range s.Base {
				moved.Base = append(moved.Base, v+8)
			}
			for _, v := range s.Head {
				moved.Head = append(moved.Head, v+8)
			}
			shifted = append(shifted, moved)
		}
		tau := rapid.Float64Range(0, 0.5).Draw(t, "tau")
		a, b, c := infer.TREAT(samples, tau, 0.05, false), infer.TREAT(swapped, tau, 0.05, false), infer.TREAT(shifted, tau, 0.05, false)
		loose := infer.TREAT(samples, tau/2, 0.05, false)
		for i := range a {
			if math.Abs(a[i].Effect+b[i].Effect) > 1e-12 || math.Abs(a[i].P-b[i].P) > 1e-9 {
				t.Fatalf("swapped sides: %+v and %+v", a[i], b[i])
			}
			if math.Abs(a[i].Effect-c[i].Effect) > 1e-12 || math.Abs(a[i].P-c[i].P) > 1e-6 {
				t.Fatalf("scaled values: %+v and %+v", a[i], c[i])
			}
			if !(a[i].P >= 0 && a[i].P <= 1) || a[i].P < loose[i].P-1e-12 {
				t.Fatalf("p against %v is %v, against half of it %v", tau, a[i].P, loose[i].P)
			}
			for _, v := range []float64{a[i].SE, a[i].DF, a[i].Low, a[i].High, a[i].S2, a[i].Moderated} {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("not finite: %+v", a[i])
				}
			}
		}
	})
}
