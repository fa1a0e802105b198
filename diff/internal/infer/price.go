package infer

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Priced is one kind of unit: how often the base ran it, and times of units of it on both sides in the order in which
// they ran, which may be samples.
type Priced struct {
	Count      float64
	HeadCount  float64   // units of head that do the same work; 0: Count
	Base, Head []float64 // above 0
}

// Price is the interval, of level 1 - 2 alpha, of the base's work at the head's prices over the same at its own:
//
//	Σ count · mean(head) / Σ count · mean(base)
//
// by a circular block bootstrap over the units of each kind and side. How many units of a kind ran is given; only their
// times are noise. ok is false with fewer than MinUnits units on a side, or a kind without units or with times that are
// not positive.
func Price(kinds []Priced, alpha float64, seed uint64) (g Given, ratio float64, ok bool) {
	var units [2]int
	longest, lag1, total := 0, 0.0, 0.0
	for i := range kinds {
		k := &kinds[i]
		for side, v := range [2][]float64{k.Base, k.Head} {
			if len(v) == 0 || !all(v, positive) {
				return g, 0, false
			}
			units[side] += len(v)
			longest = max(longest, len(v))
			lag1, total = lag1+float64(len(v))*Lag1(v), total+float64(len(v))
		}
	}
	n := min(units[0], units[1])
	if n < MinUnits {
		return g, 0, false
	}
	rho := within(lag1 / total)
	scratch := make([]float64, longest)
	sum := func(of func(k *Priced) []float64, count func(k *Priced) float64, rng *rand.PCG) (sum float64) {
		for i := range kinds {
			v := of(&kinds[i])
			if rng != nil {
				v = draw(scratch[:len(v)], v, blockFor(len(v), rho), rng)
			}
			sum += count(&kinds[i]) * Mean.Of(v)
		}
		return sum
	}
	base := func(rng *rand.PCG) float64 {
		return sum(func(k *Priced) []float64 { return k.Base }, func(k *Priced) float64 { return k.Count }, rng)
	}
	head := func(rng *rand.PCG) float64 {
		return sum(func(k *Priced) []float64 { return k.Head }, (*Priced).headCount, rng)
	}
	rng := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
	samples := make([]float64, draws(int(total)))
	for i := range samples {
		samples[i] = math.Log(head(rng) / base(rng))
	}
	c := contrast{d: math.Log(head(nil) / base(nil)), alpha: alpha}
	c.ends(samples, float64(n)/float64(blockFor(n, rho)), 0)
	g = Given{Low: math.Exp(c.low), High: math.Exp(c.high), Trimmed: trimmed(kinds) / base(nil),
		Method: fmt.Sprintf("circular block bootstrap over units inside %d kinds, %d draws", len(kinds), len(samples))}
	return g, math.Exp(c.d), true
}

// trimmed is the sum of the head's side without the units that add most to it, so few that they may be accidents: each
// counts as the median of its kind.
func trimmed(kinds []Priced) (sum float64) {
	var excess []float64
	for i := range kinds {
		k := &kinds[i]
		each, middle := k.headCount()/float64(len(k.Head)), median(slices.Clone(k.Head))
		for _, v := range k.Head {
			sum += each * v
			excess = append(excess, each*(v-middle))
		}
	}
	slices.Sort(excess)
	for _, v := range excess[len(excess)-outliers(len(excess)):] {
		sum -= v
	}
	return sum
}

func (k *Priced) headCount() float64 { return cmp.Or(k.HeadCount, k.Count) }
