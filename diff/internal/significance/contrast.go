package significance

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/student"
)

// contrast is the difference between head and base, in ln, by the units inside the captures.
type contrast struct {
	d         float64 // ln of the judged ratio
	low, high float64 // one-sided ends, each exceeded by chance with probability alpha
	least     float64 // smallest |d| over the shifts tried; at least 0
	df        float64 // of the ends, as Student's
	alpha     float64
	variance  float64 // of the ln ratios of pairs
	method    string
}

// rounding is the most by which equal logarithms may differ.
const rounding = 1e-12

// p returns the probability of so large a change beyond tau ≥ 0 in the direction of d. It treats that side of the
// interval as Student's: p ≤ alpha if the end lies beyond tau, but not if it lies on tau. An interval whose width is
// mere rounding proves nothing: 1.
func (c *contrast) p(tau float64) float64 {
	half, d := c.d-c.low, c.d
	if d < 0 {
		half, d = c.high-c.d, -d
	}
	if !(half > rounding) {
		return 1
	}
	p := student.Tail((d-tau)*student.Quantile(c.alpha, c.df)/half, c.df)
	if d-half-tau < rounding { // the end lies on tau
		return max(p, math.Nextafter(c.alpha, 1))
	}
	return p
}

func (c contrast) inverse() contrast {
	c.d, c.low, c.high = -c.d, -c.high, -c.low
	return c
}

// A bootstrap has Draws resamples. Long series get fewer: as many as draw mostDrawn units in all, at least leastDraws.
const (
	leastDraws = 199
	mostDrawn  = 1 << 22
)

func draws(units int) int { return max(leastDraws, min(Draws, mostDrawn/max(units, 1))) }

// blockFor returns how many consecutive units are drawn together: the larger of n^(1/3) and the best length for the
// mean of a first-order autoregressive series,
//
//	(6 ρ² / (1-ρ²)²)^(1/3) · n^(1/3)
//
// (Politis & White 2004, eq. 9, with its sums solved for that series), rounded up, at most a quarter of the units.
func blockFor(n int, rho float64) int {
	q := 1 - rho*rho
	length := math.Cbrt(float64(n)) * max(1, math.Cbrt(6*rho*rho/(q*q)))
	return max(1, min(int(math.Ceil(length-1e-9)), n/4))
}

// within limits a lag-1 autocorrelation to the range that the bootstrap uses, 0 to 0.9.
func within(rho float64) float64 { return min(max(rho, 0), 0.9) }

// independent returns how many independent units n units of this autocorrelation are worth: n (1-ρ)/(1+ρ).
func independent(n int, rho float64) float64 { return float64(n) * (1 - rho) / (1 + rho) }

// ends fills in low, high and df from resamples of the ln of the judged ratio: at the percentiles of [expandedTail],
// and no closer than least standard errors allow.
func (c *contrast) ends(samples []float64, blocks, least float64) {
	slices.Sort(samples)
	c.df = max(blocks, 3) - 1
	at := max(int(math.Round(expandedTail(c.alpha, blocks)*float64(len(samples)+1))), 1) - 1
	room := student.Quantile(c.alpha, c.df) * least
	c.low = c.d - max(c.d-samples[at], room)
	c.high = c.d + max(samples[len(samples)-1-at]-c.d, room)
	c.least = math.Abs(c.d)
}

// positive reports whether a value has a finite logarithm.
func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// twoSamples contrasts the units of untied captures. It draws blocks from each capture separately; all captures of a
// side count equally, however many units they hold. It estimates the lag-1 autocorrelation over all captures together:
// 8 units of one capture hardly show it. ok is false with fewer than MinUnits in a capture, or if a statistic is not
// positive.
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
	// The ratio is of the slower side to the faster one, so that swapping the sides mirrors the interval; if both are
	// equally slow, of the side whose units come later in lexical order.
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
	if order == 0 { // equal units: both ends are equally far
		half := max(c.high-c.d, c.d-c.low)
		c.low, c.high = c.d-half, c.d+half
	}
	c.method = fmt.Sprintf("circular block bootstrap over units, blocks of %d, %d draws", block, len(samples))
	return c, true
}

// pays is the factor by which the ln ratios of pairs must vary less than the two series for pairing to pay.
const pays = 0.5

// pairs contrasts tied series, unit i of base with unit i+shift of head. With d(i) = ln head(i+shift) - ln base(i), it
// judges the mean by the ratio of the sums, the median by exp(median d), a tail by the ratio of the tails. It draws
// blocks of pairs, with a length from the autocorrelation of d. ok is false with fewer than MinUnits pairs, and if
// pairing does not pay: unless var d < (var ln base + var ln head)/2, two separate samples are better.
func pairs(base, head []float64, shift int, stat Statistic, alpha, least float64, seed uint64) (c contrast, ok bool) {
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
	order, drawn := lists.Indexes[int](n), make([]int, n)
	for i := range n {
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

// refuted is the factor by which the variance of the ln ratios must grow for another alignment to be ruled out.
const refuted = 2

// robust widens the contrast of pairs to cover a head that started 1 % or 2 % of the units earlier or later: for a
// smooth trend a late start and a slowdown are the same curve, and only marker numbers tell them apart. If the work has
// edges, the units do: it skips a shift that doubles the variance of the ln ratios, or for which pairing does not pay.
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
