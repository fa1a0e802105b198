package significance_test

import (
	"math"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/significance"
	"pgregory.net/rapid"
)

func mean(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// 0,0,0,0,1,1,1,1: mean 1/2, squares 8/4, neighbours alike 6/4 and unlike 1/4: r = (6-1)/8 = 0.625, corrected by
// (1+1.875)/8 = 0.359375 to 0.984375.
func TestLag1ByHand(t *testing.T) {
	near(t, "lag 1", significance.Lag1([]float64{0, 0, 0, 0, 1, 1, 1, 1}), 0.984375, 1e-12)
	if significance.Lag1(nil) != 0 || significance.Lag1(make([]float64, 9)) != 0 {
		t.Error("nothing to look at")
	}
}

// Base 1, 2, 3 and head 2, 3, 4: of 9 pairs head is larger in 1 (2>1) + 2 (3>1,2) + 3 = 6, smaller in 1 (2<3); (6-1)/9.
func TestCliffsDelta(t *testing.T) {
	d, ok := significance.CliffsDelta([]float64{3, 1, 2}, []float64{4, 2, 3})
	if near(t, "delta", d, 5./9, 1e-15); !ok {
		t.Error("not ok")
	}
	if _, ok := significance.CliffsDelta(nil, []float64{1}); ok {
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
		if d, _ := significance.CliffsDelta(base, head); math.Abs(d-float64(want)/float64(len(base)*len(head))) > 1e-15 {
			t.Fatalf("got %v", d)
		}
	})
}

func TestDeviations(t *testing.T) {
	// 1, 2, 3, 10: mean 4, squares 9+4+1+36 = 50, √(50/3). Median 2.5, deviations 1.5, 0.5, 0.5, 7.5, their median 1.
	v := []float64{10, 1, 3, 2}
	near(t, "deviation", significance.Deviation(v), math.Sqrt(50./3), 1e-14)
	near(t, "MAD", significance.MAD(v), 1, 1e-14)
	if v[0] != 10 || significance.Deviation(v[:1]) != 0 || significance.MAD(nil) != 0 {
		t.Error("edges")
	}
}
