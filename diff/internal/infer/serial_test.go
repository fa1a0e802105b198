package infer

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Of two values 1 and 3 the mean is 2 whatever ρ is; q = (1-ρ²) 1 + (1+ρ)² = 2 (1+ρ) and S = 2 (1-ρ), so that se is
// √((1+ρ)/(1-ρ)), by hand.
func TestSerialOfTwoValues(t *testing.T) {
	s, ok := serialOf([]float64{1, 3})
	if !ok || s.df != 1 || len(s.rhos) != lag1Steps {
		t.Fatalf("%+v, %v", s, ok)
	}
	var sum float64
	for _, r := range s.rhos {
		if want := math.Sqrt((1 + r.rho) / (1 - r.rho)); math.Abs(r.se-want) > 1e-9 || math.Abs(r.mean-2) > 1e-12 {
			t.Errorf("ρ = %v: mean %v, se %v, want 2, %v", r.rho, r.mean, r.se, want)
		}
		sum += r.weight
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("weights sum to %v", sum)
	}
	// Weights are √(1-ρ²) S^(-1/2) q^(-1/2) ∝ √(1-ρ²) / √(1-ρ²) = 1: each ρ counts as much, and two units are worth 2 (1-ρ)/(1+ρ), of which
	// the mean over 0 to 0.95 is 2 (2 ln 1.95 / 0.95 - 1) = 0.8119, and the middle of 40 steps misses it by less than 1 in 10,000.
	if got := s.effective(2); math.Abs(got-0.8119) > 1e-4 {
		t.Errorf("two values are worth %v", got)
	}
	if p := s.below(2); math.Abs(p-0.5) > 1e-12 {
		t.Errorf("half lies below the mean, not %v", p)
	}
}

func TestSerialMirrorsAndScales(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		d, mirrored := make([]float64, 12), make([]float64, 12)
		for i := range d {
			d[i] = rng.NormFloat64()
			mirrored[i] = -4 * d[i]
		}
		m, _ := mean(d)
		a, _ := serialOf(d)
		b, _ := serialOf(mirrored)
		one, four := a.half(m, 0.05), b.half(-4*m, 0.05)
		if math.Abs(four-4*one) > 1e-9*four {
			t.Errorf("half %v of d, %v of -4 d", one, four)
		}
		if beyond := (a.below(m-one) + 1 - a.below(m+one)) / 2; math.Abs(beyond-0.05) > 1e-9 {
			t.Errorf("%v lie beyond", beyond)
		}
	}
	if _, ok := serialOf([]float64{2, 2, 2, 2}); ok {
		t.Error("a series that does not vary has no likelihood")
	}
}
