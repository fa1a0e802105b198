package significance_test

import (
	"testing"

	"github.com/nsys-llm/explain/diff/internal/significance"
	"pgregory.net/rapid"
)

// p ascending: 0.005, 0.01, 0.03, 0.04. Holm: 4·0.005 = 0.02, 3·0.01 = 0.03, 2·0.03 = 0.06, then 1·0.04 raised to 0.06.
// Benjamini-Hochberg from the end: 0.04, 4/3·0.03 = 0.04, 4/2·0.01 = 0.02, 4·0.005 = 0.02.
func TestAdjustByHand(t *testing.T) {
	p := []float64{0.01, 0.04, 0.03, 0.005}
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		near(t, "Holm", significance.Holm(p)[i], want, 1e-15)
	}
	for i, want := range []float64{0.02, 0.04, 0.04, 0.02} {
		near(t, "BH", significance.BH(p)[i], want, 1e-15)
	}
	if len(significance.Holm(nil)) != 0 || len(significance.BH(nil)) != 0 {
		t.Error("nothing to adjust")
	}
}

func TestAdjustProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOf(rapid.Float64Range(0, 1)).Draw(t, "p")
		holm, bh := significance.Holm(p), significance.BH(p)
		for i := range p {
			if !(p[i] <= bh[i]+1e-15 && bh[i] <= holm[i]+1e-15 && holm[i] <= min(1, float64(len(p))*p[i])+1e-12) {
				t.Fatalf("p %v, BH %v, Holm %v", p[i], bh[i], holm[i])
			}
			for k := range p {
				if p[i] < p[k] && (bh[i] > bh[k] || holm[i] > holm[k]) {
					t.Fatal("the order changed")
				}
			}
		}
		if len(p) == 1 && (holm[0] != p[0] || bh[0] != p[0]) {
			t.Fatal("one p is its own adjustment")
		}
	})
}
