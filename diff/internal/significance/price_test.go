package significance_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// shared is a sum of kinds on both sides, one and one, as a number.
func shared(base, head []significance.Share) significance.Number {
	kinds := make([]significance.Priced, len(base))
	for i := range kinds {
		kinds[i] = significance.Priced{Base: base[i : i+1], Head: head[i : i+1]}
	}
	sum := func(kinds []significance.Share) (list []significance.Capture) {
		v := 0.0
		for _, k := range kinds {
			v += k.Sum
		}
		return []significance.Capture{{Value: v}}
	}
	n := significance.Number{Tolerance: 0.05, Timer: 1e-9, Base: sum(base), Head: sum(head)}
	n.OfShares(kinds)
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

// once is a kind with a single unit.
func once(time float64) significance.Share {
	return significance.Share{Sum: time, Times: []float64{time}}
}

// steady is a kind of n units that all took equally long.
func steady(n int, time float64) significance.Share {
	return significance.Share{Sum: float64(n) * time, Times: slices.Repeat([]float64{time}, n)}
}

// Eight decode steps of 5, and one prefill that takes 60 instead of 10: 50 more, for which no other unit speaks. It is
// the standard deviation of the base's 50, so nothing is certain. If all decode steps take a fifth longer, they speak
// for a fifth of the prefill: of 12 instead of 10 nothing is unknown.
func TestOneUnitOfAKindProvesNothing(t *testing.T) {
	n := shared([]significance.Share{once(10), steady(8, 5)}, []significance.Share{once(60), steady(8, 5)})
	c := n.Base[0]
	near(t, "standard deviation of the sum", c.SD/math.Sqrt(float64(c.N)), 50, 1e-9)
	if v := judge(n); v.Outcome != significance.Undecided || v.Code != comparison.WideInterval {
		t.Errorf("one slow prefill: %+v", v)
	}
	n = shared([]significance.Share{once(60), steady(8, 5)}, []significance.Share{once(10), steady(8, 5)})
	if v := judge(n); v.Class != comparison.Unsettled {
		t.Errorf("one fast prefill: %+v", v)
	}
	n = shared([]significance.Share{once(10), steady(8, 5)}, []significance.Share{once(12), steady(8, 6)})
	if v := judge(n); v.Outcome != significance.Fails || n.Base[0].SD != 0 || n.Head[0].SD != 0 {
		t.Errorf("all slower: %+v of %+v", v, n)
	}
}

// Two prefills prove nothing; ten of unlike lengths, each a fifth slower, do. The sides of four units must not overlap.
func TestFewUnitsOfSeveralKinds(t *testing.T) {
	ten := func(factor float64) (list []significance.Share) {
		for i := range 10 {
			list = append(list, once(factor*float64(10+i)))
		}
		return list
	}
	pair := func(a, b float64) []significance.Share { return []significance.Share{once(a), once(b)} }
	four := func(times ...float64) []significance.Share {
		return []significance.Share{{Sum: significance.Mean.Of(times[:3]) * 3, Times: times[:3]}, once(times[3])}
	}
	for _, c := range []struct {
		name       string
		base, head []significance.Share
		want       significance.Outcome
		code       comparison.Code
	}{
		{"two units", pair(10, 20), pair(15, 30), significance.Undecided, comparison.TooFewUnits},
		{"ten kinds", ten(1), ten(1.2), significance.Fails, ""},
		{"four apart", four(10, 10, 11, 5), four(12, 13, 12, 7), significance.Fails, ""},
		{"four overlap", four(10, 10, 12, 5), four(11, 16, 14, 7), significance.Undecided, comparison.TooFewUnits},
	} {
		if v := judge(shared(c.base, c.head)); v.Outcome != c.want || v.Code != c.code {
			t.Errorf("%s: %+v", c.name, v)
		}
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
