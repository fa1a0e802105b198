package infer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/infer"
)

// Nine steps of batch 1 at 10 and nine of batch 2 at 30, priced at 11 and 27, of which the head ran other numbers:
// (9·11 + 9·27)/(9·10 + 9·30) = 0.95. Times that do not vary leave an interval without width.
func TestPriceByHand(t *testing.T) {
	times := func(n int, v float64) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = v
		}
		return list
	}
	kinds := []infer.Priced{{Count: 9, Base: times(9, 10), Head: times(20, 11)}, {Count: 9, Base: times(9, 30), Head: times(8, 27)}}
	g, ratio, ok := infer.Price(kinds, 0.05, 1)
	if near(t, "ratio", ratio, 0.95, 1e-12); !ok || math.Abs(g.Low-0.95) > 1e-12 || math.Abs(g.High-0.95) > 1e-12 {
		t.Errorf("%+v, %v", g, ok)
	}
	for name, list := range map[string][]infer.Priced{
		"seven units":    {{Count: 9, Base: times(7, 10), Head: times(9, 11)}},
		"nothing priced": {{Count: 9, Base: times(9, 10)}},
		"not a number":   {{Count: 9, Base: times(9, math.NaN()), Head: times(9, 1)}},
	} {
		if _, _, ok := infer.Price(list, 0.05, 1); ok {
			t.Error(name)
		}
	}
}

// Twelve batch sizes of 10 to 40 units, with 3 % of noise each and a head that is 6 % slower: 90 % intervals hold it in nine
// of ten cases.
func TestPriceHoldsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	const trials = 80
	held := 0
	for k := range trials {
		var kinds []infer.Priced
		for batch := range 12 {
			p := infer.Priced{Count: float64(10 + rng.IntN(31))}
			draw := func(n int, factor float64) (v []float64) {
				for range n {
					v = append(v, factor*(4000+100*float64(batch))*math.Exp(0.03*rng.NormFloat64()))
				}
				return v
			}
			p.Base, p.Head = draw(int(p.Count), 1), draw(10+rng.IntN(31), 1.06)
			kinds = append(kinds, p)
		}
		if g, _, ok := infer.Price(kinds, 0.05, uint64(k)); ok && g.Low <= 1.06 && 1.06 <= g.High {
			held++
		}
	}
	if held < trials*83/100 || held > trials*97/100 {
		t.Errorf("%d of %d intervals hold the truth", held, trials)
	}
}
