package change

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/diff/student"
	"pgregory.net/rapid"
)

// whitened is a finder with values as they are, and a correlation.
func whitened(rho float64, y ...float64) *finder {
	f := &finder{o: &Options{}, y: y, sum: []float64{0}}
	f.learned.noise.Correlation = rho
	for i := range y {
		f.sum = append(f.sum, f.sum[i]+f.white(i))
	}
	return f
}

// find is the changes alone.
func find(values []float64, o Options) []Change { return Read(values, o).Changes }

// TestFitByHand: without correlation a step is the difference of two means. 1 2 3 | 5 7: means 2 and 6, 1/variance of the
// difference 1/(1/3+1/2) = 1.2.
func TestFitByHand(t *testing.T) {
	shift, weight := whitened(0, 1, 2, 3, 5, 7).fit(0, 3, 4)
	if math.Abs(shift-4) > 1e-9 || math.Abs(weight-1.2) > 1e-9 {
		t.Errorf("shift %v, weight %v; want 4, 1.2", shift, weight)
	}
}

// TestFitWithCorrelationByHand: y = 0 | 1 with ρ = 0.5. Whitened: 0·√0.75 = 0 and 1 - 0.5·0 = 1; regressors of the constant
// √0.75 and 0.5, of the step 0 and 1. uu = 1, uv = 0.5, vv = 1, ux = 0.5, vx = 1: weight 0.75, shift (1 - 0.25)/0.75 = 1.
func TestFitWithCorrelationByHand(t *testing.T) {
	shift, weight := whitened(0.5, 0, 1).fit(0, 1, 1)
	if math.Abs(shift-1) > 1e-12 || math.Abs(weight-0.75) > 1e-12 {
		t.Errorf("shift %v, weight %v; want 1, 0.75", shift, weight)
	}
}

// TestTheTestIsThatOfAComparison: 40 nights of a level, then 5 of one that is 5 % up, without correlation. The nights before
// and behind are two sides whose standard deviation is known: a comparison's test gives the same p.
func TestTheTestIsThatOfAComparison(t *testing.T) {
	f := &finder{o: &Options{Least: 0.02}, raw: make([]float64, 45), skip: make([]bool, 45), out: make([]bool, 45), starts: []int{0}}
	for i := range f.raw {
		if f.raw[i] = 0.001 * float64(i%3-1); i >= 40 {
			f.raw[i] += 0.05
		}
		f.at = append(f.at, i)
	}
	f.learned = learner{innovation: 4e-4, df: 20, scale: 0.02}
	c, ok := f.best()
	before, behind := mean(f.raw[:40]), mean(f.raw[40:])
	want := student.Beyond(behind-before, 0, 0.02*math.Sqrt(1./40+1./5), 20)
	if !ok || c.at != 40 || math.Abs(c.p/want-1) > 1e-9 {
		t.Errorf("%+v, %v: want p %v", c, ok, want)
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
	y := steps(rand.New(rand.NewPCG(1, 1)), 200, map[int]float64{60: 0.05, 120: -0.08, 160: 0.06})
	got := find(y, Options{})
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct {
		at    int
		ratio float64
	}{{60, 0.05}, {120, -0.08}, {160, 0.06}} {
		c := got[i]
		if c.At < want.at-2 || c.At > want.at+2 || c.Found < c.At || math.Abs(math.Expm1(c.Shift)-want.ratio) > 0.01 || !(c.P < 3e-4) {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}

// TestPlaceByHand: 0 0 0 0 0 0 | 1 1 1 1, found as a step at 7: the sum of squares about 0 and 1 is least at 6.
func TestPlaceByHand(t *testing.T) {
	f := &finder{o: &Options{}, raw: []float64{0, 0, 0, 0, 0, 0, 1, 1, 1, 1}, starts: []int{0, 7},
		skip: make([]bool, 10), out: make([]bool, 10)}
	c := Change{At: 7, Found: 9}
	if f.place(&c); c.At != 6 || c.Shift != 1 || f.starts[1] != 6 {
		t.Errorf("%+v, %v", c, f.starts)
	}
}

func TestOneWildNightIsNoLevel(t *testing.T) {
	y := ar(rand.New(rand.NewPCG(2, 2)), 100, 0.3, noise)
	y[70] += math.Log(1.4)
	if got := find(y, Options{}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestBorders: a driver that costs 20 % is no change and is told; behind it +5 % is found as ever.
func TestBorders(t *testing.T) {
	y := steps(rand.New(rand.NewPCG(3, 3)), 100, map[int]float64{50: 0.2, 80: 0.05})
	got := Read(y, Options{Breaks: []int{50}})
	if len(got.Changes) != 1 || got.Changes[0].At < 78 || got.Changes[0].At > 82 {
		t.Errorf("%+v", got.Changes)
	}
	if len(got.Borders) != 1 || got.Borders[0].At != 50 || math.Abs(math.Expm1(got.Borders[0].Shift)-0.2) > 3*got.Borders[0].SE || got.Borders[0].SE > 0.01 {
		t.Errorf("%+v", got.Borders)
	}
	if got := find(y, Options{}); len(got) != 2 || got[0].At != 50 {
		t.Errorf("without the border: %+v", got)
	}
}

// TestBorderByHand: means 0 and 1 on five nights each; with noise of 0.1 and correlation 0.6, whose (1+ρ)/(1-ρ) is 4, the
// standard error is 0.1·2·√(2/5) = 0.1265.
func TestBorderByHand(t *testing.T) {
	f := &finder{o: &Options{}, raw: []float64{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}, starts: []int{0, 5},
		skip: make([]bool, 10), out: make([]bool, 10)}
	f.learned.noise = Noise{SD: 0.1, Correlation: 0.6}
	if got := f.border(5); got.Shift != 1 || math.Abs(got.SE-0.1265) > 1e-4 || got.Nights != 5 {
		t.Errorf("%+v", got)
	}
}

// TestNoiseIsLearned: of 365 nights the standard deviation is known to 4 %, the correlation to 0.05.
func TestNoiseIsLearned(t *testing.T) {
	for _, x := range []struct{ rho, sd float64 }{{0, 0.005}, {0, 0.02}, {0.6, 0.01}, {0.8, 0.01}} {
		n := Read(ar(rand.New(rand.NewPCG(7, 7)), 730, x.rho, x.sd), Options{}).Noise
		if math.Abs(n.Correlation-x.rho) > 0.15 || math.Abs(n.SD/x.sd-1) > 0.2 || n.Nights != memory || n.Odd > 0.01 {
			t.Errorf("%+v: %+v", x, n)
		}
	}
}

// TestMachines: of three machines one is 4 % slower. Their effects are learned, and +3 % is found on all of them.
func TestMachines(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	y, machines := ar(rng, 200, 0, noise), make([]int, 200)
	for i := range y {
		if machines[i] = rng.IntN(3); machines[i] == 2 {
			y[i] += 0.04
		}
		if i >= 150 {
			y[i] += math.Log(1.03)
		}
	}
	got := Read(y, Options{Machines: machines})
	if len(got.Changes) != 1 || got.Changes[0].At < 148 || got.Changes[0].At > 152 || got.Changes[0].Found > 156 {
		t.Errorf("%+v", got.Changes)
	}
	if got.Noise.Machines != 3 || got.Noise.MachineSD < 0.01 || got.Noise.MachineSD > 0.04 || math.Abs(got.Noise.SD/noise-1) > 0.2 {
		t.Errorf("%+v", got.Noise)
	}
}

// TestThreeNightsOnABadHost are neither two changes where the host is known, nor where it was never seen before.
func TestThreeNightsOnABadHost(t *testing.T) {
	y, machines := ar(rand.New(rand.NewPCG(9, 9)), 120, 0, noise), make([]int, 120)
	for i := 80; i < 83; i++ {
		y[i], machines[i] = y[i]+0.08, 1
	}
	if got := find(y, Options{Machines: machines}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestWeek: each seventh night takes 4 % longer, which is told, and +3 % is found beside it.
func TestWeek(t *testing.T) {
	y, days := ar(rand.New(rand.NewPCG(10, 10)), 300, 0, noise), make([]int, 300)
	for i := range y {
		if days[i] = i % 7; days[i] == 6 {
			y[i] += 0.04
		}
		if i >= 250 {
			y[i] += math.Log(1.03)
		}
	}
	got := Read(y, Options{Days: days})
	if len(got.Changes) != 1 || math.Abs(got.Noise.Week-0.04) > 0.01 {
		t.Errorf("%+v, %+v", got.Changes, got.Noise)
	}
	if quiet := Read(ar(rand.New(rand.NewPCG(11, 11)), 300, 0, noise), Options{Days: days}); quiet.Noise.Week != 0 {
		t.Errorf("a pattern of days where there is none: %+v", quiet.Noise)
	}
}

// TestCreepByHand: 200 nights that rise by 0.0002 each, and alternate by ± 0.001: 0.073 in 365 nights.
func TestCreepByHand(t *testing.T) {
	y := make([]float64, 200)
	for i := range y {
		y[i] = 0.0002*float64(i) + 0.001*float64(i%2*2-1)
	}
	got := Read(y, Options{})
	if len(got.Changes) != 0 || got.Creep == nil || math.Abs(got.Creep.PerYear-0.073) > 0.001 || got.Creep.From != 0 {
		t.Errorf("%+v, %+v", got.Changes, got.Creep)
	}
	if step := Read(steps(rand.New(rand.NewPCG(12, 12)), 200, map[int]float64{100: 0.015}), Options{}); step.Creep != nil {
		t.Errorf("a small step is told as creep: %+v", step.Creep)
	}
}

// TestFlips: ten nights low, ten nights high, time and again.
func TestFlips(t *testing.T) {
	y := ar(rand.New(rand.NewPCG(13, 13)), 200, 0, noise/2)
	for i := range y {
		y[i] += 0.05 * float64(i/10%2)
	}
	got := Read(y, Options{})
	if len(got.Flips) != 1 || math.Abs(got.Flips[0].High-got.Flips[0].Low-0.05) > 0.01 || got.Flips[0].Times < 5 {
		t.Errorf("%+v, %+v", got.Changes, got.Flips)
	}
	if slices.ContainsFunc(got.Changes, func(c Change) bool { return !c.Gone }) {
		t.Errorf("a flip counts as a change: %+v", got.Changes)
	}
}

// TestEqualNights: a series without any noise has no variance to tell a step by but that of the step itself.
func TestEqualNights(t *testing.T) {
	y := make([]float64, 50)
	if got := find(y, Options{}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	for i := 30; i < 50; i++ {
		y[i] = math.Log(2) // one launch becomes two
	}
	if got := find(y, Options{}); len(got) != 1 || got[0].At != 30 || got[0].Found > 32 {
		t.Errorf("counts: %+v", got)
	}
	if got := Read(nil, Options{}); len(got.Changes) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestEqualNightsAtABorderOfChunks: the new level begins where the noise is learned from a new chunk of nights, so that
// all nights look the same as their level. The step is where the numbers change, as large as they change, and nowhere
// else.
func TestEqualNightsAtABorderOfChunks(t *testing.T) {
	y := make([]float64, 150)
	for i := chunk; i < len(y); i++ {
		y[i] = 0.05
	}
	if got := find(y, Options{}); len(got) != 1 || got[0].At != 60 || got[0].Found > 62 || math.Abs(got[0].Shift-0.05) > 1e-12 {
		t.Errorf("%+v", got)
	}
}

// TestNeverLooksAhead: what is found in the first nights is what is found of them later, but for its place and size.
func TestNeverLooksAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		at := map[int]float64{rapid.IntRange(5, 60).Draw(t, "a"): 0.06, rapid.IntRange(61, 110).Draw(t, "b"): -0.08}
		y := steps(rand.New(rand.NewPCG(seed, 4)), 120, at)
		n := rapid.IntRange(1, 120).Draw(t, "n")
		all, some := find(y, Options{}), find(y[:n], Options{})
		then := slices.DeleteFunc(all, func(c Change) bool { return c.Found >= n })
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
