package significance

import (
	"cmp"
	"fmt"
	"github.com/nsys-llm/explain/diff/student"
	"math"
	"math/rand/v2"
	"slices"
)

// contrast is how far head lies from base by the units inside the captures, in ln units.
type contrast struct {
	d         float64 // ln of what is judged
	low, high float64 // one-sided ends, each passed by chance in alpha of all cases
	least     float64 // |d| after the shifts that it must survive, towards 0 at most
	df        float64 // of the ends, as if they were Student's
	alpha     float64
	variance  float64 // of the ln ratios of pairs
	method    string
}

// rounding is what logarithms that are equal may differ by.
const rounding = 1e-12

// p is the probability of so large a change beyond tau ≥ 0, in the direction of d, read off the end of the interval as
// if that side were Student's: p ≤ alpha where the end lies beyond tau, and not on it. An interval without width, but
// for what rounding leaves, proves nothing: 1.
func (c *contrast) p(tau float64) float64 {
	half, d := c.d-c.low, c.d
	if d < 0 {
		half, d = c.high-c.d, -d
	}
	if !(half > rounding) {
		return 1
	}
	p := student.Tail((d-tau)*student.Quantile(c.alpha, c.df)/half, c.df)
	if d-half-tau < rounding { // an end that lies on tau
		return max(p, math.Nextafter(c.alpha, 1))
	}
	return p
}

// inverse is the contrast of base to head.
func (c contrast) inverse() contrast {
	c.d, c.low, c.high = -c.d, -c.high, -c.low
	return c
}

// A bootstrap has Draws resamples; of long series fewer, as many as draw mostDrawn units, but leastDraws.
const (
	leastDraws = 199
	mostDrawn  = 1 << 22
)

func draws(units int) int { return max(leastDraws, min(Draws, mostDrawn/max(units, 1))) }

// blockFor is how many consecutive units are drawn together: the larger of n^(1/3) and the length that is best for the
// mean of a first-order autoregressive series,
//
//	(6 ρ² / (1-ρ²)²)^(1/3) · n^(1/3)
//
// (Politis & White 2004, eq. 9, with its sums worked out for that series), rounded up, and at most a quarter of the
// units.
func blockFor(n int, rho float64) int {
	q := 1 - rho*rho
	length := math.Cbrt(float64(n)) * max(1, math.Cbrt(6*rho*rho/(q*q)))
	return max(1, min(int(math.Ceil(length-1e-9)), n/4))
}

// within bounds a lag-1 autocorrelation to what a bootstrap reckons with.
func within(rho float64) float64 { return min(max(rho, 0), 0.9) }

// independent is how many independent units n of that autocorrelation are worth: n (1-ρ)/(1+ρ).
func independent(n int, rho float64) float64 { return float64(n) * (1 - rho) / (1 + rho) }

// ends fills in low, high and df from resamples of ln of what is judged: percentiles as [expandedTail] places them,
// and no closer than least standard errors.
func (c *contrast) ends(samples []float64, blocks, least float64) {
	slices.Sort(samples)
	c.df = max(blocks, 3) - 1
	at := max(int(math.Round(expandedTail(c.alpha, blocks)*float64(len(samples)+1))), 1) - 1
	room := student.Quantile(c.alpha, c.df) * least
	c.low = c.d - max(c.d-samples[at], room)
	c.high = c.d + max(samples[len(samples)-1-at]-c.d, room)
	c.least = math.Abs(c.d)
}

// positive reports whether a value has a logarithm to work with.
func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// twoSamples contrasts the units of captures that nothing ties together: of each capture blocks are drawn on their
// own, and its statistic counts as much as that of any other of its side, however many units it holds. The lag-1
// autocorrelation is estimated over all captures together: with 8 units, one of them says next to nothing of it. ok
// is false with fewer than MinUnits in a capture or a statistic that is not positive.
func twoSamples(base, head [][]float64, stat Statistic, alpha, least float64, seed uint64) (c contrast, ok bool) {
	sides := [2][][]float64{base, head}
	var units, weighted float64
	smallest, total := math.MaxInt, 0
	for _, side := range sides {
		for _, v := range side {
			if len(v) < MinUnits {
				return c, false
			}
			smallest = min(smallest, len(v))
			total += len(v)
			units += float64(len(v))
			weighted += float64(len(v)) * Lag1(v)
		}
	}
	if total == 0 || len(base) == 0 || len(head) == 0 {
		return c, false
	}
	rho := within(weighted / units)
	scratch := make([]float64, 0, total)
	value := func(side [][]float64, rng *rand.PCG) float64 {
		var sum float64
		for _, v := range side {
			if rng == nil {
				sum += stat.Of(append(scratch[:0], v...))
				continue
			}
			sum += stat.Of(draw(scratch[:len(v)], v, blockFor(len(v), rho), rng))
		}
		return sum / float64(len(side))
	}
	b, h := value(base, nil), value(head, nil)
	if !positive(b) || !positive(h) {
		return c, false
	}
	// The slower side stands over the faster one, so that swapping the sides mirrors the interval; of two that are equally
	// slow, the one whose units come later in lexical order.
	order := cmp.Compare(b, h)
	if order == 0 {
		order = slices.CompareFunc(base, head, slices.Compare[[]float64])
	}
	if order > 0 {
		c, ok = twoSamples(head, base, stat, alpha, least, seed)
		return c.inverse(), ok
	}
	rng := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
	samples := make([]float64, draws(total))
	for i := range samples {
		from, to := value(base, rng), value(head, rng)
		if !positive(from) || !positive(to) {
			return c, false
		}
		samples[i] = math.Log(to / from)
	}
	block := blockFor(smallest, rho)
	c = contrast{d: math.Log(h / b), alpha: alpha}
	c.ends(samples, float64(smallest)/float64(block), least)
	if order == 0 { // the same units: both ends are as far
		half := max(c.high-c.d, c.d-c.low)
		c.low, c.high = c.d-half, c.d+half
	}
	c.method = fmt.Sprintf("circular block bootstrap over units, blocks of %d, %d draws", block, len(samples))
	return c, true
}

// pays is how much less the ln ratios of pairs must vary than the two series do by themselves.
const pays = 0.5

// pairs contrasts series that evidence ties together, unit i of one with unit i+shift of the other: with d(i) = ln
// head(i+shift) - ln base(i), the mean is judged by the ratio of the sums, the median by exp(median d), a tail by the
// ratio of the tails. Blocks of pairs are drawn, their length from the autocorrelation of d. ok is false with fewer
// than MinUnits pairs, and where pairing does not pay: unless var d < (var ln base + var ln head)/2, the two sides are
// better looked at by themselves.
func pairs(base, head []float64, shift int, stat Statistic, alpha, least float64, seed uint64) (
	c contrast, ok bool) {
	b, h := base[max(0, -shift):], head[min(len(head), max(0, shift)):]
	n := min(len(b), len(h))
	if n < MinUnits {
		return c, false
	}
	b, h = b[:n], h[:n]
	if slices.Min(b) <= 0 || slices.Min(h) <= 0 {
		return c, false
	}
	lb, lh := logs(b), logs(h)
	d := make([]float64, n)
	for i := range d {
		d[i] = lh[i] - lb[i]
	}
	vb, vh, vd := Deviation(lb), Deviation(lh), Deviation(d)
	if !(vd*vd < pays*(vb*vb+vh*vh)) {
		return c, false
	}
	block := blockFor(n, within(Lag1(d)))
	from, to := make([]float64, n), make([]float64, n)
	value := func() float64 {
		if stat == Median {
			return Median.Of(from)
		}
		return math.Log(stat.Of(to) / stat.Of(from))
	}
	fill := func(k, i int) {
		if stat == Median {
			from[k] = d[i]
			return
		}
		from[k], to[k] = b[i], h[i]
	}
	order, drawn := make([]int, n), make([]int, n)
	for i := range n {
		order[i] = i
		fill(i, i)
	}
	c = contrast{d: value(), alpha: alpha, variance: vd * vd}
	rng := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
	samples := make([]float64, draws(2*n))
	for s := range samples {
		for k, i := range draw(drawn, order, block, rng) {
			fill(k, i)
		}
		samples[s] = value()
	}
	c.ends(samples, float64(n)/float64(block), least)
	c.method = fmt.Sprintf("block bootstrap over %d pairs of units, blocks of %d, %d draws", n, block, len(samples))
	return c, true
}

// refuted is how many times the variance of the ln ratios makes another alignment worse than this one beyond doubt.
const refuted = 2

// robust is the pairs' contrast, widened to what it would be if head had started 1 % or 2 % of the units earlier or
// later: for a smooth trend a late start and a slowdown are the same curve, and only marker numbers rule it out. If the
// work has edges, the units themselves do: a shift that doubles the variance of the ln ratios, or with which pairing
// does not pay, is not considered.
func robust(base, head []float64, stat Statistic, alpha, least float64, seed uint64) (contrast, bool) {
	c, ok := pairs(base, head, 0, stat, alpha, least, seed)
	if !ok {
		return c, false
	}
	n := min(len(base), len(head))
	tried := map[int]bool{0: true}
	low, high := c.low, c.high
	for _, share := range []float64{0.01, -0.01, 0.02, -0.02} {
		shift := int(math.Round(share * float64(n)))
		if tried[shift] {
			continue
		}
		tried[shift] = true
		s, ok := pairs(base, head, shift, stat, alpha, least, seed)
		if !ok || s.variance > refuted*c.variance {
			continue
		}
		low, high = min(low, s.low), max(high, s.high)
		c.least = min(c.least, max(0, math.Copysign(1, c.d)*s.d))
	}
	c.low, c.high = low, high
	return c, true
}
