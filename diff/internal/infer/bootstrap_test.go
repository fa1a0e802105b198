package infer_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/infer"
	"pgregory.net/rapid"
)

func mean(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// 27 units in turn 1 and -1: r = -26/27, so ρ counts as 0 and blocks are 27^(1/3) = 3 long. Eight units are in blocks of at
// most 8/3.
func TestBlockLengthByHand(t *testing.T) {
	var v []float64
	for i := range 27 {
		v = append(v, float64(1-2*(i%2)))
	}
	if got := infer.BlockLength(v); got != 3 {
		t.Errorf("independent units: blocks of %d, want 3", got)
	}
	if got := infer.BlockLength(v[:8]); got != 2 {
		t.Errorf("8 units: blocks of %d, want 2", got)
	}
	// 0,0,0,0,1,1,1,1: mean 1/2, squares 8/4, neighbours alike 6/4 and unlike 1/4: r = (6-1)/8 = 0.625, corrected by
	// (1+1.875)/8 = 0.359375 to 0.984375, which counts as 0.9.
	step := []float64{0, 0, 0, 0, 1, 1, 1, 1}
	near(t, "lag 1", infer.Lag1(step), 0.984375, 1e-12)
	// 1000 units of ρ = 0.9 would be drawn in blocks of 10 (6·0.81/0.19²)^(1/3) = 51.3.
	slow := make([]float64, 1000)
	for i := range slow {
		slow[i] = float64(i)
	}
	if got := infer.BlockLength(slow); got != 52 {
		t.Errorf("slow units: blocks of %d, want 52", got)
	}
	if infer.BlockLength(nil) != 1 || infer.Lag1(nil) != 0 || infer.Lag1(make([]float64, 9)) != 0 {
		t.Error("nothing to look at")
	}
}

func TestBootstrapEdges(t *testing.T) {
	v := []float64{10, 11, 10, 12, 10, 11, 13, 10, 11}
	for name, c := range map[string]struct{ base, head []float64 }{
		"few units":      {v, v[:infer.MinUnits-1]},
		"zero base":      {make([]float64, 9), v},
		"negative head":  {v, []float64{-1, -1, -1, -1, -1, -1, -1, -1}},
		"nothing at all": {nil, nil},
	} {
		if lo, hi, method := infer.BlockBootstrap(c.base, c.head, mean, 0.95, 1); lo != 0 || hi != 0 || method != "" {
			t.Errorf("%s: got %v to %v by %q", name, lo, hi, method)
		}
	}
	same := []float64{5, 5, 5, 5, 5, 5, 5, 5}
	if lo, hi, method := infer.BlockBootstrap(same, same, mean, 0.95, 1); lo != 1 || hi != 1 || method == "" {
		t.Errorf("no spread: got %v to %v by %q", lo, hi, method)
	}
}

func TestBootstrapProperties(t *testing.T) {
	side := rapid.SliceOfN(rapid.Float64Range(1, 2), infer.MinUnits, 40)
	rapid.Check(t, func(t *rapid.T) {
		base, head := side.Draw(t, "base"), side.Draw(t, "head")
		keepB, keepH := slices.Clone(base), slices.Clone(head)
		seed := rapid.Uint64().Draw(t, "seed")
		lo, hi, method := infer.BlockBootstrap(base, head, median, 0.95, seed)
		lo2, hi2, _ := infer.BlockBootstrap(base, head, median, 0.95, seed)
		if lo != lo2 || hi != hi2 || method == "" {
			t.Fatal("the same arguments give another interval")
		}
		if !slices.Equal(base, keepB) || !slices.Equal(head, keepH) {
			t.Fatal("the units were reordered")
		}
		narrowLo, narrowHi, _ := infer.BlockBootstrap(base, head, median, 0.5, seed)
		if !(lo <= narrowLo && narrowLo <= narrowHi && narrowHi <= hi) {
			t.Fatalf("95 %%: %v to %v, 50 %%: %v to %v", lo, hi, narrowLo, narrowHi)
		}
		for i := range head {
			head[i] *= 4 // exact in binary
		}
		if lo4, hi4, _ := infer.BlockBootstrap(base, head, median, 0.95, seed); lo4 != 4*lo || hi4 != 4*hi {
			t.Fatalf("scaled by 4: %v to %v, before %v to %v", lo4, hi4, lo, hi)
		}
	})
}

// What the page one-capture says of the coverage of 90 % intervals, for the mean, less what 400 trials can be off by.
func TestBootstrapCoverage(t *testing.T) {
	for _, c := range []struct {
		n      int
		rho    float64
		spikes bool
		least  float64
	}{
		{9, 0, false, 0.93}, {9, 0.3, true, 0.89}, {16, 0.3, false, 0.88}, {16, 0.6, false, 0.82}, {64, 0.3, true, 0.85}, {9, 0.6, false, 0.74},
	} {
		rng := rand.New(rand.NewPCG(7, uint64(c.n)))
		units := func() []float64 {
			v := make([]float64, c.n)
			e := rng.NormFloat64()
			for i := range v {
				e = c.rho*e + math.Sqrt(1-c.rho*c.rho)*rng.NormFloat64()
				v[i] = 100 + e
				if c.spikes && rng.Float64() < 0.1 {
					v[i] += 20 * rng.ExpFloat64()
				}
			}
			return v
		}
		const trials = 400
		held := 0
		for k := range trials {
			if lo, hi, _ := infer.BlockBootstrap(units(), units(), mean, 0.90, uint64(k)); lo <= 1 && 1 <= hi {
				held++
			}
		}
		if share := float64(held) / trials; share < c.least {
			t.Errorf("%+v: %.3f of the intervals hold the truth", c, share)
		}
	}
}

func BenchmarkBlockBootstrap(b *testing.B) {
	v := make([]float64, 300)
	for i := range v {
		v[i] = 1 + float64(i*7919%101)/1000
	}
	for b.Loop() {
		infer.BlockBootstrap(v, v, median, 0.95, 1)
	}
}

// Base 1, 2, 3 and head 2, 3, 4: of 9 pairs head is larger in 1 (2>1) + 2 (3>1,2) + 3 = 6, smaller in 1 (2<3); (6-1)/9.
func TestCliffsDelta(t *testing.T) {
	d, ok := infer.CliffsDelta([]float64{3, 1, 2}, []float64{4, 2, 3})
	if near(t, "delta", d, 5./9, 1e-15); !ok {
		t.Error("not ok")
	}
	if _, ok := infer.CliffsDelta(nil, []float64{1}); ok {
		t.Error("an empty side has no effect size")
	}
	side := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 9), func(v int) float64 { return float64(v) }), 1, 20)
	rapid.Check(t, func(t *rapid.T) {
		base, head := side.Draw(t, "base"), side.Draw(t, "head")
		want := 0
		for _, b := range base {
			for _, h := range head {
				switch {
				case h > b:
					want++
				case h < b:
					want--
				}
			}
		}
		if d, _ := infer.CliffsDelta(base, head); math.Abs(d-float64(want)/float64(len(base)*len(head))) > 1e-15 {
			t.Fatalf("got %v", d)
		}
	})
}

func TestDeviations(t *testing.T) {
	// 1, 2, 3, 10: mean 4, squares 9+4+1+36 = 50, √(50/3). Median 2.5, deviations 1.5, 0.5, 0.5, 7.5, their median 1.
	v := []float64{10, 1, 3, 2}
	near(t, "deviation", infer.Deviation(v), math.Sqrt(50./3), 1e-14)
	near(t, "MAD", infer.MAD(v), 1, 1e-14)
	if v[0] != 10 || infer.Deviation(v[:1]) != 0 || infer.MAD(nil) != 0 {
		t.Error("edges")
	}
}

// sd 1 %, effect 6 %, threshold 3 %, 3 captures a side so far (4 degrees of freedom). For k = 3:
// 2 (t(0.975, 4) + 0.8416)² (1/3)² = 2 · 3.6181² / 9 = 2.91 ≤ 3, for k = 2 the same 2.91 > 2.
func TestCaptures(t *testing.T) {
	if got := infer.Captures(0.06, 0.03, 0.01, 4, infer.Alpha); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
	// An effect of nothing is settled by an interval below the threshold, with the same gap.
	if got := infer.Captures(0, 0.03, 0.01, 4, infer.Alpha); got != 3 {
		t.Errorf("no effect: got %d, want 3", got)
	}
	// With 2 degrees of freedom: k = 2 needs 2 (4.3027+0.8416)²/9 = 5.88; k = 3 has 4 degrees of freedom itself: 2.91.
	if got := infer.Captures(-0.06, 0.03, 0.01, 2, infer.Alpha); got != 3 {
		t.Errorf("a decrease: got %d, want 3", got)
	}
	for _, c := range [][3]float64{{0.03, 0.03, 0.01}, {0.0301, 0.03, 0.01}, {math.NaN(), 0, 1}, {0.06, 0.03, math.Inf(1)}} {
		if got := infer.Captures(c[0], c[1], c[2], 4, infer.Alpha); got != 0 {
			t.Errorf("%v: got %d, want 0: no sensible number", c, got)
		}
	}
	if got := infer.Captures(0.06, 0.03, 0, 4, infer.Alpha); got != 2 {
		t.Errorf("no spread: got %d, want the least", got)
	}
}

// (1.959964 + 0.841621) · 1 % · √(2/2) = 2.801585 %; with 4 degrees of freedom (2.776445+0.841621) √(2/3).
func TestMDE(t *testing.T) {
	near(t, "2 a side", infer.Detectable(0.01, infer.MaxDF, 2), 0.02801585218112968, 1e-12)
	near(t, "3 a side", infer.Detectable(0.01, 4, 3), 0.01*(2.776445105197794+0.841621233572914)*math.Sqrt(2./3), 1e-12)
}

func TestPages(t *testing.T) {
	for _, name := range infer.Pages() {
		if page, err := infer.Page(name); err != nil || len(page) < 20 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := infer.Page("none"); err == nil {
		t.Error("there is no such page")
	}
}
