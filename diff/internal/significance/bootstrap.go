package significance

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/nsys-llm/explain/diff/student"
)

// Limits of a bootstrap.
const (
	MinUnits = 8   // on each side; below that there is no interval
	Draws    = 999 // resamples
)

// draw fills out with blocks of values from random positions, wrapping around.
func draw[T any](out, values []T, block int, rng *rand.PCG) []T {
	n := len(values)
	for i := 0; i < n; {
		// The high word of a product: uniform over 0..n-1 to within n/2^64, and the same in every version of Go.
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

// Lag1 is the lag-1 autocorrelation, corrected for the bias it has in short series: r + (1+3r)/n (Marriott & Pope
// 1954). It is 0 for a series that does not vary.
func Lag1(values []float64) float64 {
	n := len(values)
	if n < 4 {
		return 0
	}
	m := mean(values)
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

// expandedTail returns the share of resamples beyond each end of the interval. The percentiles of a bootstrap of few
// values lie too close together; Φ(-√(n/(n-1)) t(1-p, n-1)) instead of p makes the interval as wide as Student's
// (Hesterberg 2015, section 4.3.3). n is the number of blocks on the side with fewer, at least 3.
func expandedTail(p, blocks float64) float64 {
	n := max(blocks, 3)
	return student.NormalTail(math.Sqrt(n/(n-1)) * student.Quantile(p, n-1))
}
