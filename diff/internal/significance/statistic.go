package significance

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/diff/student"
)

// Statistic is what a row shows of the units of one capture: [Mean], or a quantile, given by its value between 0 and 1.
type Statistic float64

// The statistics that rules can name.
const (
	Mean   Statistic = 0
	Median Statistic = 0.5
	P90    Statistic = 0.9
	P99    Statistic = 0.99
)

// tailUnits is the least number of units beyond a quantile for it to mean anything: the p99 of 64 units is their
// maximum.
const tailUnits = 5

// Of returns the statistic of a sample, which it may reorder; NaN for an empty one. Quantiles interpolate linearly
// between the closest ranks: rank (n-1)q, counted from 0.
func (s Statistic) Of(values []float64) float64 {
	n := len(values)
	switch {
	case n == 0:
		return math.NaN()
	case s == Mean:
		return mean(values)
	}
	rank := float64(n-1) * float64(s)
	k := min(int(rank), n-1)
	choose(values, k)
	v := values[k]
	if part := rank - float64(k); part > 0 && k+1 < n {
		v += part * (slices.Min(values[k+1:]) - v)
	}
	return v
}

// Enough reports whether at least five of n units lie beyond the quantile: n ≥ 50 for p90, 500 for p99. It is true for
// the mean and the median, which have no tail.
func (s Statistic) Enough(n int) bool {
	return s == Mean || s == Median || float64(n)*min(float64(s), 1-float64(s)) >= tailUnits-1e-9
}

// width is the standard error of the statistic of n normal values in units of sd/√n: 1 for the mean, and
// √(q(1-q)) / φ(z(q)) for a quantile (Stuart & Ord, Kendall's Advanced Theory of Statistics, 10.10).
func (s Statistic) width() float64 {
	if s == Mean {
		return 1
	}
	q := float64(s)
	z := student.NormalQuantile(q)
	return math.Sqrt(q*(1-q)) * math.Sqrt(2*math.Pi) * math.Exp(z*z/2)
}

// Tail returns the furthest tail that n units can show: P99 from 500 units on, P90 from 50. ok is false below that.
func Tail(n int) (s Statistic, ok bool) {
	for _, s := range []Statistic{P99, P90} {
		if s.Enough(n) {
			return s, true
		}
	}
	return 0, false
}

// choose reorders values so that the one of rank k (from 0) is at k, with none above it before and none below it
// after: quickselect with the median of three as pivot (Hoare 1961), linear on average.
func choose(values []float64, k int) {
	lo, hi := 0, len(values)-1
	for lo < hi {
		mid := lo + (hi-lo)/2
		a, b, c := values[lo], values[mid], values[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return
		}
	}
}
