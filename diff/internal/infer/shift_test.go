package infer_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/infer"
)

// kernelsOf makes 27 kernels in 3 captures a side: 0.3 % of noise each, and the head's means moved by move(i).
func kernelsOf(rng *rand.Rand, clock float64, move func(i int) float64) (samples []infer.Sample, weights []float64) {
	var shift [6]float64
	for k := range shift {
		shift[k] = clock * rng.NormFloat64()
	}
	for i := range 27 {
		s := infer.Sample{ID: strconv.Itoa(i)}
		for k := range 3 {
			s.Base = append(s.Base, float64(i)+shift[k]+0.003*rng.NormFloat64())
			s.Head = append(s.Head, float64(i)+shift[3+k]+0.003*rng.NormFloat64()+move(i))
		}
		samples = append(samples, s)
		weight := 1.0
		if i == 26 {
			weight = 26 // the attention: half of the time
		}
		weights = append(weights, weight)
	}
	return samples, weights
}

// Seventeen of 27 kernels are 8 % slower, the attention, half of the time, is not: that is no clock. Taken for one, the
// seventeen were the same and the attention had improved.
func TestChangeOfMostKernelsIsNoClock(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	samples, weights := kernelsOf(rng, 0.0005, func(i int) float64 {
		if i < 17 {
			return 0.08
		}
		return 0
	})
	s, _, ok := infer.PlausibleShift(samples, weights, 0)
	if !ok || s.Plausible || math.Abs(s.Ln-0.08) > 0.005 || s.Alike > 0.4 {
		t.Fatalf("%+v, %v", s, ok)
	}
	near(t, "limit", s.Limit, 3*0.01*math.Sqrt(2./3), 1e-12)
	for i, r := range infer.TREAT(samples, math.Log1p(0.03), 0.05, false) {
		if slower := i < 17; slower != (r.P <= 0.05) || !slower && r.P < 0.5 {
			t.Errorf("kernel %d: %+.1f %%, p %v", i, 100*math.Expm1(r.Effect), r.P)
		}
	}
}

// A clock of 1 % between captures is taken out in nearly all comparisons, and what is left has no shift.
func TestClockIsTakenOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	const trials = 300
	out := 0
	for range trials {
		samples, weights := kernelsOf(rng, 0.01, func(int) float64 { return 0 })
		s, adjusted, ok := infer.PlausibleShift(samples, weights, 0.01)
		if ok && s.Plausible {
			out++
		}
		for i, r := range infer.TREAT(adjusted, 0, 0.05, false) {
			if math.Abs(r.Effect) > 0.02 {
				t.Fatalf("kernel %d is left with %v", i, r.Effect)
			}
		}
	}
	t.Logf("taken out in %.1f %%", 100*float64(out)/trials)
	if out < trials*97/100 {
		t.Errorf("taken out in %d of %d", out, trials)
	}
	if _, _, ok := infer.PlausibleShift(nil, nil, 0); ok {
		t.Error("no kernels")
	}
}
