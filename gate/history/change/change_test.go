package change

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestFitByHand: without correlation a step is the difference of two means. 1 2 3 | 5 7: means 2 and 6, squares about them
// 2 + 2 = 4, 1/variance of the difference 1/(1/3+1/2) = 1.2.
func TestFitByHand(t *testing.T) {
	f := &finder{o: &Options{Correlation: 1e-12}, y: []float64{1, 2, 3, 5, 7}}
	f.prepare()
	shift, weight, with, without := f.fit(0, 3, 4)
	// about the mean of all, 3.6: 2.6² + 1.6² + 0.6² + 1.4² + 3.4² = 23.2
	for name, v := range map[string][2]float64{"shift": {shift, 4}, "weight": {weight, 1.2}, "with": {with, 4}, "without": {without, 23.2}} {
		if math.Abs(v[0]-v[1]) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, v[0], v[1])
		}
	}
}

// TestFitWithCorrelationByHand: y = 0 | 1 with ρ = 0.5. Whitened: 0·√0.75 = 0 and 1 - 0.5·0 = 1; regressors of the constant
// √0.75 and 0.5, of the step 0 and 1. uu = 1, uv = 0.5, vv = 1, ux = 0.5, vx = 1: weight 0.75, shift (1 - 0.25)/0.75 = 1.
func TestFitWithCorrelationByHand(t *testing.T) {
	f := &finder{o: &Options{Correlation: 0.5}, y: []float64{0, 1}}
	f.prepare()
	shift, weight, with, _ := f.fit(0, 1, 1)
	if math.Abs(shift-1) > 1e-12 || math.Abs(weight-0.75) > 1e-12 || with > 1e-12 {
		t.Errorf("shift %v, weight %v, residuals %v; want 1, 0.75, 0", shift, weight, with)
	}
}

func TestNormalOfT(t *testing.T) {
	// two-sided 0.05 of t: 12 degrees 2.1788, 30 degrees 2.0423; the normal deviate is 1.9600
	for df, q := range map[float64]float64{12: 2.1788, 30: 2.0423, 1e9: 1.96} {
		if z := normal(q, df); math.Abs(z-1.96) > 0.002 {
			t.Errorf("%v with %v degrees of freedom: %v", q, df, z)
		}
	}
}

func steps(rng *rand.Rand, n int, at map[int]float64) []float64 {
	y := ar(rng, n, 0.3, noise)
	level := 0.0
	for i := range y {
		level += math.Log1p(at[i])
		y[i] += level
	}
	return y
}

func TestFindsWhereAndHowMuch(t *testing.T) {
	y := steps(rand.New(rand.NewPCG(1, 1)), 200, map[int]float64{60: 0.05, 120: -0.06, 160: 0.04})
	got := Find(y, Options{})
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct {
		at    int
		ratio float64
	}{{60, 0.05}, {120, -0.06}, {160, 0.04}} {
		c := got[i]
		if c.At < want.at-2 || c.At > want.at+2 || c.Found < c.At || math.Abs(math.Expm1(c.Shift)-want.ratio) > 0.01 || !(c.P < 1e-4) {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}

func TestOneWildNightIsNoLevel(t *testing.T) {
	y := ar(rand.New(rand.NewPCG(2, 2)), 100, 0.3, noise)
	y[70] += math.Log(1.4)
	if got := Find(y, Options{}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestNothingIsToldAcrossABreak(t *testing.T) {
	y := steps(rand.New(rand.NewPCG(3, 3)), 100, map[int]float64{50: 0.2})
	if got := Find(y, Options{Breaks: []int{50}}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := Find(y, Options{}); len(got) != 1 || got[0].At != 50 {
		t.Errorf("without the break: %+v", got)
	}
}

// TestEqualNights: a series without any noise has no variance to tell a step by but that of the step itself.
func TestEqualNights(t *testing.T) {
	y := make([]float64, 50)
	if got := Find(y, Options{}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	for i := 30; i < 50; i++ {
		y[i] = math.Log(2) // one launch becomes two
	}
	if got := Find(y, Options{}); len(got) != 1 || got[0].At != 30 || got[0].Found > 32 {
		t.Errorf("counts: %+v", got)
	}
	if got := Find(nil, Options{}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestNeverLooksAhead: what is found in the first nights is what is found of them later, but for its place.
func TestNeverLooksAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		at := map[int]float64{rapid.IntRange(5, 60).Draw(t, "a"): 0.06, rapid.IntRange(61, 110).Draw(t, "b"): -0.08}
		y := steps(rand.New(rand.NewPCG(seed, 4)), 120, at)
		n := rapid.IntRange(1, 120).Draw(t, "n")
		all, some := Find(y, Options{}), Find(y[:n], Options{})
		var then []Change
		for _, c := range all {
			if c.Found < n {
				then = append(then, c)
			}
		}
		if len(then) != len(some) {
			t.Fatalf("%d found up to night %d, %d of them later", len(some), n, len(then))
		}
		for i := range some {
			if some[i].Found != then[i].Found || some[i].P != then[i].P {
				t.Fatalf("%+v became %+v", some[i], then[i])
			}
		}
	})
}
