package change

import (
	"math"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/student"
)

// SlowNights are the nights of a new level after which it should have been found.
const SlowNights = 5

// In the first fewNights of a series its noise cannot be told from a step: [few] takes it from the nights on
// both sides of the step. The numbers come from the simulation of TestFewNights.
const (
	fewNights   = 40
	fewAfter    = 4    // fewest nights of the new level; a bad host often stays for three
	priorSD     = 0.01 // standard deviation of a night that is assumed at first, ln
	priorWeight = 8    // of the assumption, in nights
	fourOfFive  = 0.84 // standard errors above a limit for 80 % of all values to exceed it
	strays      = 8    // one night in so many on each side of a step may be nearer to the other level
)

// few returns the most significant step of a stretch of few nights; ok is false if it is not certain, large and clean.
func few(f *finder) (c candidate, ok bool) {
	f.y = f.y[:0]
	for _, i := range f.at {
		f.y = append(f.y, f.value(i))
	}
	best := 0
	c.p = 1
	for k := leastBefore; k <= len(f.y)-fewAfter; k++ {
		if s := sides(f, k); s.p < c.p {
			c, best = s, k
		}
	}
	moved := c.after - c.before
	ok = c.p < f.o.accepted(moved) && math.Abs(moved) >= f.o.Least &&
		clean(f.y[:best], c.before, c.after) && clean(f.y[best:], c.after, c.before)
	return c, ok && lasts(f, f.at[best:], c.before, moved)
}

// sides returns the step at the k-th night of the stretch. Its p-value is that of a change beyond half the least one.
func sides(f *finder, k int) (c candidate) {
	c.at, c.before, c.after = f.at[k], mean(f.y[:k]), mean(f.y[k:])
	last, sq, cross := 0.0, 0.0, 0.0
	for i, v := range f.y {
		r := v - c.before
		if i >= k {
			r = v - c.after
		}
		if i != k {
			cross += r * last
		}
		last, sq = r, sq+r*r
	}
	n := float64(len(f.y))
	c.se = fewError(float64(k), n-float64(k), sq, correlation(cross, sq, n-2, n, 2))
	c.p = student.Beyond(c.after-c.before, f.o.Least/2, c.se, n-2+priorWeight)
	return c
}

// fewError returns the standard error of the difference of two levels of so many nights each, from the sum of squares
// about the levels and the correlation. The assumption can only raise the noise.
func fewError(before, after, sq, rho float64) float64 {
	n := before + after - 2
	variance := max(sq/n, (sq+priorWeight*priorSD*priorSD)/(n+priorWeight))
	return math.Sqrt(variance * (1 + rho) / (1 - rho) * (1/before + 1/after))
}

// sees returns the smallest change of the level, ln, that four of five such series show within [SlowNights] of it; 0 if
// there are nights enough.
func sees(f *finder) float64 {
	if len(f.raw) >= fewNights {
		return 0
	}
	n, before := f.learned.noise, float64(max(len(f.at), leastBefore))
	df := before + SlowNights - 2
	se := fewError(before, SlowNights, df*n.SD*n.SD, n.Correlation)
	return f.o.Least/2 + (student.Quantile(worseP/2, df+priorWeight)+fourOfFive)*se
}

// clean reports whether at most one in [strays] of the nights of a level lies nearer to the other one.
func clean(y []float64, level, other float64) bool {
	n := lists.Count(y, func(v float64) bool { return math.Abs(v-level) > math.Abs(v-other) })
	return n <= len(y)/strays
}

// mean is exact for numbers that repeat exactly: what rounding leaves of them would look like correlated nights.
func mean(y []float64) float64 {
	return y[0] + lists.Sum(y, func(v float64) float64 { return (v - y[0]) / float64(len(y)) })
}
