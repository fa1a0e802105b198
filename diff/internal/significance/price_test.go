package significance_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/significance"
)

// shared is a sum of kinds on both sides as a number.
func shared(base, head []significance.Share) significance.Number {
	sum := func(kinds []significance.Share) (list []significance.Capture) {
		v := 0.0
		for _, k := range kinds {
			v += k.Sum
		}
		return []significance.Capture{{Value: v}}
	}
	n := significance.Number{Tolerance: 0.05, Timer: 1e-9, Base: sum(base), Head: sum(head)}
	n.OfShares(base, head)
	return n
}

// Of kind a, 100 in all of four units that took 8, 12, 8, 12: the mean is 10 and s² = 16/3, so that its sum has a variance
// of 10² · 16/3 / 4 = 133.3. Of kind b, 60 of six units that all took 5: none. The largest of the ten units is
// left out: on head, where one took 20 instead of 12, 100/48 · (20-10) less than 160, on base 100/40 · (12-10).
func TestSharesByHand(t *testing.T) {
	a := significance.Share{Sum: 100, Times: []float64{8, 12, 8, 12}}
	b := significance.Share{Sum: 60, Times: slices.Repeat([]float64{5}, 6)}
	n := shared([]significance.Share{a, b}, []significance.Share{{Sum: 100, Times: []float64{8, 20, 8, 12}}, b})
	c := n.Base[0]
	if near(t, "variance of the sum", c.SD*c.SD/10, 400./3, 1e-9); c.N != 10 {
		t.Errorf("%d units", c.N)
	}
	near(t, "without the largest", n.Trimmed, (160-100./48*(20-10))/(160-100./40*(12-10)), 1e-12)
	n = shared([]significance.Share{{Sum: 70, Times: slices.Repeat([]float64{10}, 7)}}, []significance.Share{b})
	if c := n.Base[0]; c.N != 0 || n.Trimmed != 0 {
		t.Errorf("seven units say something: %+v", n)
	}
}

// Twelve batch sizes of 10 to 40 units, with 3 % of noise each and a head that is 6 % slower: 90 % intervals hold it in nine
// of ten cases.
func TestSharesHoldTheirLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	const trials = 400
	held := 0
	for range trials {
		var base, head []significance.Share
		for batch := range 12 {
			count := 10 + rng.IntN(31)
			draw := func(n int, factor float64) significance.Share {
				var s significance.Share
				for range n {
					s.Times = append(s.Times, factor*(4000+100*float64(batch))*math.Exp(0.03*rng.NormFloat64()))
				}
				s.Sum = significance.Mean.Of(s.Times) * float64(count)
				return s
			}
			base, head = append(base, draw(count, 1)), append(head, draw(10+rng.IntN(31), 1.06))
		}
		if v := judge(shared(base, head)); v.Low <= 1.06 && 1.06 <= v.High {
			held++
		}
	}
	if held < trials*86/100 || held > trials*94/100 {
		t.Errorf("%d of %d intervals hold the truth", held, trials)
	}
}
