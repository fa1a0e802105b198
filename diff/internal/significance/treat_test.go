package significance_test

import (
	"github.com/nsys-llm/explain/diff/student"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/significance"
	"pgregory.net/rapid"
)

// Base 0, 0.02, -0.02: mean 0, squares 8e-4. Head 0.08, 0.10, 0.06: mean 0.08, squares 8e-4.
// s² = 16e-4/4 = 4e-4 with 4 degrees of freedom, SE = 0.02 √(2/3). For 4 degrees of freedom
// P(T > t) = 1/2 - 3/8 u (1 - u²/12) with u = t/√(1+t²/4).
func TestTREATByHand(t *testing.T) {
	s := significance.Sample{Base: []float64{0, 0.02, -0.02}, Head: []float64{0.08, 0.10, 0.06}}
	tau := math.Log(1.03)
	se := 0.02 * math.Sqrt(2./3)
	upper := func(t float64) float64 {
		u := t / math.Sqrt(1+t*t/4)
		return 0.5 - 3./8*u*(1-u*u/12)
	}
	two := significance.TREAT(&s, nil, significance.Moderation{}, 0.05)
	near(t, "effect", two.Effect, 0.08, 1e-14)
	near(t, "s²", two.S2, 4e-4, 1e-14)
	near(t, "SE", two.SE, se, 1e-14)
	near(t, "DF", two.DF, 4, 0)
	near(t, "two-sided p", beyond(two, tau), upper((0.08-tau)/se)+upper((0.08+tau)/se), 1e-12)
	near(t, "low", two.Low, 0.08-2.776445105197794*se, 1e-12)
	near(t, "high", two.High, 0.08+2.776445105197794*se, 1e-12)
	s.Base, s.Head = s.Head, s.Base
	near(t, "mirrored", beyond(significance.TREAT(&s, nil, significance.Moderation{}, 0.05), tau), beyond(two, tau), 1e-12)
}

// One capture a side knows nothing of the variance between captures, unless earlier captures say it: s² = 1e-4 with 4
// degrees of freedom gives SE = 0.01 √2.
func TestTREATOneCapture(t *testing.T) {
	s := significance.Sample{Base: []float64{1}, Head: []float64{1.08}}
	r := significance.TREAT(&s, nil, significance.Moderation{}, 0.05)
	if r.DF != 0 || beyond(r, 0.03) != 1 || r.SE != 0 || r.Low != r.Effect || r.High != r.Effect {
		t.Errorf("without history: %+v", r)
	}
	near(t, "effect", r.Effect, 0.08, 1e-14)
	past := &significance.History{S2: 1e-4, DF: 4}
	h := significance.TREAT(&s, past, significance.Moderation{}, 0.05)
	near(t, "SE", h.SE, 0.01*math.Sqrt2, 1e-14)
	near(t, "p", beyond(h, 0.03), student.Tail(0.05/(0.01*math.Sqrt2), 4)+student.Tail(0.11/(0.01*math.Sqrt2), 4), 1e-12)
	// History adds to what the captures say: squares 8e-4 + 8e-4 of 4 degrees of freedom and 4 × 1e-4 of 4 are 20e-4/8.
	both := significance.TREAT(&significance.Sample{Base: []float64{0, 0.02, -0.02}, Head: []float64{0.08, 0.10, 0.06}}, past, significance.Moderation{}, 0.05)
	near(t, "pooled", both.S2, 2.5e-4, 1e-14)
	near(t, "pooled df", both.DF, 8, 0)
}

func TestTREATWithoutVariance(t *testing.T) {
	for _, c := range []struct {
		name string
		s    significance.Sample
		p    float64
	}{
		{"equal", significance.Sample{Base: []float64{1, 1}, Head: []float64{1, 1}}, 1},
		{"beyond tau for sure", significance.Sample{Base: []float64{1, 1}, Head: []float64{2, 2}}, 0},
	} {
		if r := significance.TREAT(&c.s, nil, significance.Moderation{}, 0.05); r.DF != 2 || beyond(r, 0.03) != c.p || r.SE != 0 {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	// The resolution of a timer bounds what can be known: SE 0.01 instead of 0.
	s := significance.Sample{Base: []float64{1, 1}, Head: []float64{1.05, 1.05}, Resolution: 0.01}
	r := significance.TREAT(&s, nil, significance.Moderation{}, 0.05)
	near(t, "p at the resolution", beyond(r, 0.03), student.Tail(2, 2)+student.Tail(8, 2), 1e-12)
}

// Ten variances of 1 and 100 in turn, 4 degrees of freedom each: ln s² is 0 and ln 100, its variance (ln 10)² 10/9 = 5.8910,
// of which chance gives ψ'(2) ≈ 1/2 + 1/8 + 1/48 = 0.645833 (π²/6 - 1 = 0.644934). v = 5.24517, D0 = (1 + √11.49034)/v =
// 0.836902; S02 is the mean, 50.5.
func TestModerateByHand(t *testing.T) {
	s2, df := make([]float64, 10), make([]float64, 10)
	for i := range s2 {
		s2[i], df[i] = []float64{1, 100}[i%2], 4
	}
	m := significance.Moderate(s2, df)
	near(t, "D0", m.D0, 0.836902, 1e-5)
	near(t, "S02", m.S02, 50.5, 1e-12)
	near(t, "pooled", m.Pooled, 40, 0)
	moderated, total := m.Squeeze(1, 4)
	near(t, "squeezed", moderated, (m.D0*m.S02+4)/(m.D0+4), 1e-12)
	near(t, "squeezed df", total, m.D0+4, 1e-12)
	r := significance.TREAT(&significance.Sample{Base: []float64{-1, 0, 1}, Head: []float64{1, 0, -1}}, nil, m, 0.05)
	near(t, "in the test", r.Moderated, moderated, 1e-12)
}

// Equal variances differ less than chance makes them: D0 would be infinite, and is twice ν. s̃² = (8·4 + 4·4)/12.
func TestModerateEqualVariances(t *testing.T) {
	s2, df := make([]float64, 12), make([]float64, 12)
	for i := range s2 {
		s2[i], df[i] = 4, 4
	}
	m := significance.Moderate(s2, df)
	near(t, "D0", m.D0, 8, 1e-12)
	near(t, "S02", m.S02, 4, 1e-14)
	v, d := m.Squeeze(4, 4)
	near(t, "s²", v, 4, 1e-14)
	near(t, "df", d, 12, 1e-12)
	// A sample that nothing is known of has what the others have.
	v, d = m.Squeeze(0, 0)
	near(t, "s² of the others", v, 4, 1e-14)
	near(t, "its df", d, 8, 1e-12)
	// One that varies a hundred times as much as the others does not count, and stands on its own variance.
	if with := significance.Moderate(append(s2, 400), append(df, 4)); with != m {
		t.Errorf("with an outlier %+v, without %+v", with, m)
	}
	if v, d = m.Squeeze(400, 4); v != 400 || d != 4 {
		t.Errorf("the outlier: %v, %v", v, d)
	}
	for name, s2 := range map[string][]float64{"too few": s2[:significance.MinModerate-1], "nothing varies": make([]float64, 12), "next to nothing": append(make([]float64, 11), 1)} {
		if m := significance.Moderate(s2, df); m.D0 != 0 {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// The prior that variances were drawn from is found again to within what the approximation costs: s² = S02 · F(ν, D0), D0 = 4,
// of which 1.5 % lie above the limit; the mean of F(4, 4) without those is below its 2.
func TestModerateFindsThePrior(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	chi := func(df int) (v float64) {
		for range df {
			z := rng.NormFloat64()
			v += z * z / float64(df)
		}
		return v
	}
	s2, df := make([]float64, 20000), make([]float64, 20000)
	for i := range s2 {
		s2[i], df[i] = 2.5*chi(4)/chi(4), 4
	}
	if m := significance.Moderate(s2, df); math.Abs(m.D0-4) > 1 || m.S02 < 2.5 || m.S02 > 5 {
		t.Errorf("got %+v, want D0 4, S02 2.5 to 5", m)
	}
}

// Of tests of no change, 5 % have p ≤ 0.05, also where one sample in a family varies ten times as much as the others, and
// for that sample.
func TestModerateKeepsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var all, odd, n float64
	for range 1000 {
		samples := make([]significance.Sample, 20)
		var s2, df []float64
		for i := range samples {
			s, sd := &samples[i], 1.0
			if i == 0 {
				sd = 10
			}
			for range 3 {
				s.Base, s.Head = append(s.Base, sd*rng.NormFloat64()), append(s.Head, sd*rng.NormFloat64())
			}
			v, d := s.Variance(nil)
			s2, df = append(s2, v), append(df, d)
		}
		n++
		m := significance.Moderate(s2, df)
		for i := range samples {
			if beyond(significance.TREAT(&samples[i], nil, m, 0.05), 0) <= 0.05 {
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
		s := significance.Sample{Base: side.Draw(t, "base"), Head: side.Draw(t, "head")}
		moved := significance.Sample{}
		for _, v := range s.Base {
			moved.Base = append(moved.Base, v+8)
		}
		for _, v := range s.Head {
			moved.Head = append(moved.Head, v+8)
		}
		tau := rapid.Float64Range(0, 0.5).Draw(t, "tau")
		a, b, c := significance.TREAT(&s, nil, significance.Moderation{}, 0.05), significance.TREAT(&significance.Sample{Base: s.Head, Head: s.Base}, nil, significance.Moderation{}, 0.05), significance.TREAT(&moved, nil, significance.Moderation{}, 0.05)
		if math.Abs(a.Effect+b.Effect) > 1e-12 || math.Abs(beyond(a, tau)-beyond(b, tau)) > 1e-9 {
			t.Fatalf("swapped sides: %+v and %+v", a, b)
		}
		if math.Abs(a.Effect-c.Effect) > 1e-12 || math.Abs(beyond(a, tau)-beyond(c, tau)) > 1e-6 {
			t.Fatalf("scaled values: %+v and %+v", a, c)
		}
		if p, loose := beyond(a, tau), beyond(a, tau/2); !(p >= 0 && p <= 1) || p < loose-1e-12 {
			t.Fatalf("p against %v is %v, against half of it %v", tau, p, loose)
		}
		for _, v := range []float64{a.SE, a.DF, a.Low, a.High, a.S2} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("not finite: %+v", a)
			}
		}
	})
}

// beyond is the probability that noise alone shows the effect of a test beyond tau; 1 if the noise is unknown.
func beyond(r significance.Result, tau float64) float64 {
	if r.DF == 0 {
		return 1
	}
	return student.Beyond(r.Effect, tau, r.SE, r.DF)
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
		t.Errorf("%s = %.15g, want %.15g", what, got, want)
	}
}
