package significance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/student"
)

// Four pairs whose idle time grows by 9, 10, 11 and 10 ms: the mean is 10, s = √(2/3), and lag 1 is 0 + 1/4 for the
// bias of four values, so that they are worth 4·0.75/1.25 = 2.4: t = 10/√(2/3/2.4) = 19 with 1.4 degrees of freedom. The kernels did not change: of two parts Holm doubles the
// smaller p.
func TestPartsByHand(t *testing.T) {
	parts := []significance.Part{
		{Base: []float64{5, 5, 5, 5}, Head: []float64{14, 15, 16, 15}},
		{Base: []float64{100, 101, 100, 101}, Head: []float64{100, 101, 100, 101}},
	}
	v := significance.JudgeParts(parts, 105, true, 1e-3, 0.05)
	se := math.Sqrt(2. / 3 / 2.4)
	near(t, "delta", v[0].Delta, 10, 1e-12)
	near(t, "p", v[0].P, 2*student.Tail(10/se, 1.4), 1e-12)
	near(t, "low", v[0].Low, 10-student.Quantile(0.05, 1.4)*se, 1e-12)
	if !v[0].Certain || v[0].Hits != 0 || v[1].Certain || v[1].Delta != 0 {
		t.Errorf("%+v", v)
	}
}

// 26 steps of 49.5 ms with 0.5 of noise, of which 23 wait 14 ms longer, and a first one of 15.4: the total says nothing, the
// idle time everything. The change is 23/26 of 14 = 12.4 ms.
func TestPartsBehindOtherNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	work, more := significance.Part{}, significance.Part{}
	for i := range 26 {
		b, h := 49.5+0.5*rng.NormFloat64(), 49.5+0.5*rng.NormFloat64()
		if i == 0 {
			b, h = 49.5, 15.4
		}
		wait := 14.0
		if i < 3 {
			wait = 0
		}
		work.Base, work.Head = append(work.Base, b), append(work.Head, h)
		more.Base, more.Head = append(more.Base, 0), append(more.Head, wait)
	}
	v := significance.JudgeParts([]significance.Part{work, more}, 49.5, false, 1e-6, 0.05)
	if v[0].Certain || !v[1].Certain {
		t.Errorf("%+v", v)
	}
	near(t, "delta", v[1].Delta, 14*23./26, 1e-12)
}

// 19 steps of which each seventh has a new copy of 34 ms: two of 19, which adds 3.58 ms to the mean. From one step hit, which
// is an accident, to all of them it never gets less certain. Accidents of all sizes are no property of the program.
func TestPartsOfFewSteps(t *testing.T) {
	copies := func(hit func(i int) float64) significance.PartVerdict {
		p := significance.Part{Base: make([]float64, 19), Head: make([]float64, 19)}
		for i := range p.Head {
			p.Head[i] = hit(i)
		}
		return significance.JudgeParts([]significance.Part{p}, 90, false, 1e-6, 0.05)[0]
	}
	v := copies(func(i int) float64 {
		if i%7 == 6 {
			return 34
		}
		return 0
	})
	if near(t, "delta", v.Delta, 68./19, 1e-12); !v.Certain || v.Hits != 2 {
		t.Errorf("each 7th: %+v", v)
	}
	for k := 1; k <= 19; k++ {
		v := copies(func(i int) float64 {
			if i*k/19 != (i+1)*k/19 {
				return 34
			}
			return 0
		})
		if v.Certain != (k >= 2) || v.Hits > 9 || k <= 9 && v.Hits != k {
			t.Errorf("%d of 19: %+v", k, v)
		}
		if k == 6 && v.Every != 3 {
			t.Errorf("6 of 19 come every third: %+v", v)
		}
	}
	// From the fourth step on the host is 34 ms late: neighbours are too alike for a test of means, and no step of base does it.
	late := significance.Part{Base: make([]float64, 9), Head: []float64{0, 0, 0, 34, 34, 34, 34, 34, 34}}
	if v := significance.JudgeParts([]significance.Part{late}, 90, false, 1e-6, 0.05)[0]; !v.Certain || v.Hits != 0 || v.P <= 0.05 {
		t.Errorf("from the fourth step on: %+v", v)
	}
	if v := copies(func(i int) float64 { return map[int]float64{3: 20, 11: 70}[i] }); v.Certain || v.Hits != 0 {
		t.Errorf("accidents: %+v", v)
	}
}

// Two of seven units take 5 ms more. Beside seven of base, like sides would have the two longest of 14 among head's in
// 7·6/(14·13) = 23 % of all cases, beside four in 7·6/(11·10) = 38 %: too often to mean anything.
func TestPartsBesideFewUnits(t *testing.T) {
	head := []float64{10, 15, 10.1, 10.2, 15.1, 9.9, 10}
	base := []float64{10, 10.1, 9.9, 10, 10.2, 10, 9.8}
	for n, certain := range map[int]bool{7: true, 4: false} {
		v := significance.JudgeParts([]significance.Part{{Base: base[:n], Head: head}}, 10, false, 1e-6, 0.05)[0]
		if v.Certain != certain || v.Hits != 2 {
			t.Errorf("beside %d: %+v", n, v)
		}
	}
}

// Nine of 13 units take 14 and not 10. Beside three of base that is no proof: like sides would have the nine longest
// among the 13 in C(13,9)/C(16,9) = 6.25 % of all cases; beside five in C(13,9)/C(18,9) = 1.5 %, and ten in 3.6 %.
// Units that are all longer are certain beside three.
func TestPartsBesideThreeUnits(t *testing.T) {
	of := func(long int) (list []float64) {
		for i := range 13 {
			v := 10 + float64(i%3)/10
			if i >= 13-long {
				v += 4
			}
			list = append(list, v)
		}
		return list
	}
	for _, c := range []struct {
		base, long int
		certain    bool
	}{{3, 9, false}, {3, 10, true}, {5, 9, true}, {3, 13, true}} {
		part := significance.Part{Base: of(0)[:c.base], Head: of(c.long)}
		if v := significance.JudgeParts([]significance.Part{part}, 20, false, 1e-6, 0.05)[0]; v.Certain != c.certain {
			t.Errorf("%+v: %+v", c, v)
		}
	}
}

// Two of five units waited 3.4 and 3.9 ms in communication, all others 0.3 to 2 ms: of 7 + 5 like units, the two
// longest are among the 5 in 5·4/(12·11) = 15 % of all cases. Three of five are most, and 4 of 9 beside 9 are so in
// 9·8·7·6/(18·17·16·15) = 4.1 %.
func TestPartsThatWait(t *testing.T) {
	base := []float64{0.4, 0.4, 0.3, 0.4, 0.6, 0.8, 1}
	for _, tt := range []struct {
		name       string
		base, head []float64
		certain    bool
	}{
		{"two of five", base, []float64{0.4, 3.9, 3.4, 2, 0.6}, false},
		{"three of five", base, []float64{3.8, 3.9, 3.4, 2, 0.6}, true},
		{"four of nine", append(base, 0.4, 0.5), []float64{3.8, 0.4, 3.9, 0.3, 3.4, 2, 0.6, 3.5, 0.4}, true},
	} {
		for _, waits := range []bool{true, false} {
			part := significance.Part{Base: tt.base, Head: tt.head, Waits: waits}
			v := significance.JudgeParts([]significance.Part{part}, 18, false, 1e-6, 0.05)[0]
			if v.Certain != (tt.certain || !waits) {
				t.Errorf("%s, waits %v: %+v", tt.name, waits, v)
			}
		}
	}
}

// Twelve parts that did not change, of 16 units with 5 % of noise each, lag 1 of up to 0.3: in 5 % of all cases at most any of
// them is certain.
func TestPartsKeepTheirLevel(t *testing.T) {
	for _, rho := range []float64{0, 0.3} {
		rng := rand.New(rand.NewPCG(9, 4))
		const trials = 400
		wrong := 0
		for range trials {
			parts := make([]significance.Part, 12)
			for i := range parts {
				for _, of := range []*[]float64{&parts[i].Base, &parts[i].Head} {
					for _, e := range wave(rng, 16, rho) {
						*of = append(*of, 1e6*(1+0.05*e))
					}
				}
			}
			for _, v := range significance.JudgeParts(parts, 12e6, false, 1, 0.05) {
				if v.Certain {
					wrong++
					break
				}
			}
		}
		limit := 0.1 // one-sided p in the direction that is seen: 5 % up and 5 % down
		if rho > 0 {
			limit = 0.16
		}
		if share := float64(wrong) / trials; share > most(limit, trials) {
			t.Errorf("rho %v: %.1f %% of the families have a false one", rho, 100*share)
		}
	}
}

// Swapping the sides mirrors changes and certainty.
func TestPartsMirror(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		p := significance.Part{}
		for i := range 20 {
			p.Base = append(p.Base, 10+rng.NormFloat64())
			h := 10 + rng.NormFloat64()
			if i%5 == 0 && rng.IntN(2) == 0 {
				h += 30
			}
			p.Head = append(p.Head, h)
		}
		a := significance.JudgeParts([]significance.Part{p}, 100, true, 1e-3, 0.05)[0]
		b := significance.JudgeParts([]significance.Part{{Base: p.Head, Head: p.Base}}, 100, true, 1e-3, 0.05)[0]
		if a.Certain != b.Certain || math.Abs(a.Delta+b.Delta) > 1e-9 || a.Hits != b.Hits || math.Abs(a.P-b.P) > 1e-9 {
			t.Fatalf("%+v, %+v", a, b)
		}
	}
}

// A part that grows steadily drifts, also from nothing; one that is the same everywhere, is new everywhere, or is there in
// each third unit does not.
func TestPartsThatDrift(t *testing.T) {
	series := func(of func(i int) float64) (list []float64) {
		for i := range 16 {
			list = append(list, of(i))
		}
		return list
	}
	none := series(func(int) float64 { return 0 })
	for name, x := range map[string]struct {
		base, head []float64
		drifts     bool
	}{
		"grows":        {series(func(i int) float64 { return 100 + 5*float64(i) }), series(func(i int) float64 { return 200 + 5*float64(i) }), true},
		"from nothing": {none, series(func(i int) float64 { return 10 * float64(i) }), true},
		"new":          {none, series(func(int) float64 { return 40 }), false},
		"the same":     {series(func(int) float64 { return 40 }), series(func(i int) float64 { return 41 + float64(i%2) }), false},
		"each third":   {none, series(func(i int) float64 { return float64(i % 3 / 2 * 90) }), false},
	} {
		if v := significance.JudgeParts([]significance.Part{{Base: x.base, Head: x.head}}, 200, false, 1e-3, 0.05)[0]; v.Drifts != x.drifts {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
