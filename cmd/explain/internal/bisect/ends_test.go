package bisect

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestEndsWithinTwoStandardErrors: four captures of each end, with the noise that is known beforehand, give the change
// of most searches within two standard errors: that of two means of four is 1 % √(1/4 + 1/4) = 0.71 %. As the noise is
// not known for sure, the share is a little below 95 %.
func TestEndsWithinTwoStandardErrors(t *testing.T) {
	const n = 600
	for _, change := range []float64{0, 0.05, 1} {
		inside, typical := 0, 0.0
		for seed := range n {
			rng := rand.New(rand.NewPCG(uint64(seed), 5))
			s := New(64, 0.01)
			for range 4 {
				for i, level := range []float64{0, change} {
					if err := s.Add(64*i, 100*math.Exp(level+0.01*rng.NormFloat64()), ""); err != nil {
						t.Fatal(err)
					}
				}
			}
			r := s.Result()
			within := r.Within / (1 + r.Ends) // of ln
			typical += within / 2 / n
			if math.Abs(math.Log1p(r.Ends)-change) <= within {
				inside++
			}
		}
		if share := float64(inside) / n; share < 0.9 || share > 0.97 || math.Abs(typical-0.0071) > 0.0005 {
			t.Errorf("change %g: %.3f within two standard errors of %.5f", change, share, typical)
		}
	}
}
