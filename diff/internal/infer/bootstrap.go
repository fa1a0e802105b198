package infer

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Bounds of BlockBootstrap.
const (
	MinUnits = 8   // on each side; with fewer no interval is given
	Draws    = 999 // resamples
)

// BlockBootstrap is an interval of stat(head)/stat(base) over the units inside two captures, in the order in which they
// ran. Values are plain, not logarithms. Units that follow each other are alike, so blocks of consecutive units are
// drawn, [BlockLength] long, from each side on its own and around its end (circular blocks, Politis & Romano 1992); the
// interval is between percentiles of the ratio over Draws resamples, moved outwards as [expandedTail] says. stat gets a
// slice of its own, unsorted, and may reorder it.
//
// It covers what varies inside the captures only. What makes two captures of one commit differ is not in it.
//
// [Judge] stands in for it, and holds its level where units are few and depend on each other.
//
// method is empty where no interval can be given: fewer than MinUnits on a side, or a statistic that is not positive.
// The same arguments give the same interval.
func BlockBootstrap(
	base, head []float64,
	stat func([]float64) float64,
	level float64,
	seed uint64,
) (low, high float64, method string) {
	if len(base) < MinUnits || len(head) < MinUnits || !(level > 0 && level < 1) {
		return 0, 0, ""
	}
	b, h := BlockLength(base), BlockLength(head)
	rng := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
	scratch := make([]float64, max(len(base), len(head)))
	ratios := make([]float64, Draws)
	for i := range ratios {
		from := stat(draw(scratch[:len(base)], base, b, rng))
		to := stat(draw(scratch[:len(head)], head, h, rng))
		if r := to / from; from > 0 && to > 0 && !math.IsInf(r, 0) {
			ratios[i] = r
			continue
		}
		return 0, 0, ""
	}
	slices.Sort(ratios)
	blocks := min(float64(len(base))/float64(b), float64(len(head))/float64(h))
	tail := expandedTail((1-level)/2, blocks)
	at := max(int(math.Round(tail*(Draws+1))), 1) - 1
	method = "circular block bootstrap over units, blocks of " + strconv.Itoa(
		b) + " and " + strconv.Itoa(h) + ", " + strconv.Itoa(Draws) + " draws"
	return ratios[at], ratios[Draws-1-at], method
}

// draw fills out with blocks of values from random places, wrapping around.
func draw(out, values []float64, block int, rng *rand.PCG) []float64 {
	n := len(values)
	for i := 0; i < n; {
		// The high word of a product: even over 0..n-1 to within n/2^64, and the same in every version of Go.
		start, _ := bits.Mul64(rng.Uint64(), uint64(n))
		for k := 0; k < block && i < n; k++ {
			at := int(start) + k
			if at >= n {
				at -= n
			}
			out[i] = values[at]
			i++
		}
	}
	return out
}

// BlockLength is how many consecutive units are drawn together: the larger of n^(1/3) and the length that is best for
// the mean of a first-order autoregressive series,
//
//	(6 ρ² / (1-ρ²)²)^(1/3) · n^(1/3)
//
// (Politis & White 2004, eq. 9, with its sums worked out for that series), rounded up, and at most a third of the
// units. ρ is the lag-1 autocorrelation ([Lag1]), at least 0 and at most 0.9.
func BlockLength(values []float64) int {
	n := float64(len(values))
	if n < 3 {
		return 1
	}
	rho := min(max(Lag1(values), 0), 0.9)
	q := 1 - rho*rho
	length := math.Cbrt(n) * max(1, math.Cbrt(6*rho*rho/(q*q)))
	return min(int(math.Ceil(length-1e-9)), len(values)/3)
}

// Lag1 is the lag-1 autocorrelation, corrected for the bias it has in short series: r + (1+3r)/n (Marriott & Pope
// 1954). It is 0 for a series that does not vary.
func Lag1(values []float64) float64 {
	n := len(values)
	if n < 4 {
		return 0
	}
	m, _ := mean(values)
	var num, den float64
	for i, v := range values {
		den += (v - m) * (v - m)
		if i > 0 {
			num += (v - m) * (values[i-1] - m)
		}
	}
	if den <= float64(n)*1e-26*m*m { // rounding
		return 0
	}
	r := num / den
	return r + (1+3*r)/float64(n)
}

// expandedTail is the share of resamples beyond each end of the interval. The percentiles of a bootstrap of few values
// lie too close together; taking Φ(-√(n/(n-1)) t(1-p, n-1)) instead of p makes the interval as wide as Student's would
// be (Hesterberg 2015, section 4.3.3). n is the number of blocks on the side that has fewer, and no less than 3.
func expandedTail(p, blocks float64) float64 {
	n := max(blocks, 3)
	return NormalTail(math.Sqrt(n/(n-1)) * TQuantile(p, n-1))
}
