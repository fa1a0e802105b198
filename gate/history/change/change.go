// Package change finds the places in a series of nights at which its level changed. It knows numbers alone: neither
// commits nor reports nor stores.
package change

import (
	_ "embed" // the page
	"math"
	"slices"
)

// Page says as markdown how changes are found, how often that is wrong, and how soon it is right.
//
//go:embed change.md
var Page string

// Options of [Find]. The zero value is what the page says.
type Options struct {
	Correlation float64 // of one night with the next when nothing changed, 0 to below 1; 0 means 0.3, see the page
	// above which no change for the worse is found, two-sided; 0 means 0.0001. For the better it is a fifth
	P      float64
	Least  float64 // change of the level that is worth a word, ln; 0 means 0.02
	Falls  bool    // a fall is for the worse, as of a throughput; else a rise is
	Breaks []int   // places at which another environment begins, ascending: no change is told across one
}

// Bounds of what is looked at. A change is found in the first [mostAfter] nights behind it or never.
const (
	leastBefore = 5 // nights of a level that a change can be told from
	leastAfter  = 3
	mostAfter   = 60

	certain = 30.0 // deviates: more cannot be told apart from

	defaultCorrelation = 0.3
	defaultP           = 1e-4
	defaultLeast       = 0.02
	betterP            = 0.2 // of P: who waits for a gain can wait longer, and half of all false alarms are gains
)

// Change is a place at which the level changed.
type Change struct {
	At    int     // place of the first night of the new level
	Found int     // place of the night at which it could be told first
	Shift float64 // of the level, ln: the new one less the old one, over all nights up to the next change
	P     float64 // of so large a statistic by noise alone, at the night at which it was found
}

// Find returns the changes in a series of natural logarithms, the oldest first. It goes through the nights in order and
// never looks ahead, so that what was found one night is found the next; only its place is worked out again from the
// nights that came since.
//
// Noise is a normal process in which nights resemble their neighbours by Correlation (AR(1)). At each night, for each
// place k of the last 3 to 60, it fits a step at k to the nights since the last change by generalized least squares,
// and takes the step with the largest t. The variance is that of the residuals of all levels so far.
func Find(values []float64, o Options) []Change {
	o.fill()
	f := &finder{o: &o, y: values}
	f.prepare()
	var list []Change
	start, breaks := 0, o.Breaks
	for t := range values {
		if len(breaks) > 0 && breaks[0] <= t {
			f.settle(start, t)
			start, breaks = t, breaks[1:]
		}
		k, _, p, ok := f.best(start, t)
		if !ok {
			continue
		}
		list = append(list, Change{At: k, Found: t, P: p})
		f.settle(start, k)
		start = k
	}
	f.place(list)
	return list
}

func (o *Options) fill() {
	if o.Correlation == 0 {
		o.Correlation = defaultCorrelation
	}
	if o.P == 0 {
		o.P = defaultP
	}
	if o.Least == 0 {
		o.Least = defaultLeast
	}
}

// finder has the sums that every step is fitted from.
type finder struct {
	o       *Options
	y       []float64
	sum, sq []float64 // prefix sums of the whitened values and of their squares: of those before place i
	ss      float64   // sum of squares of the residuals of levels that are over
	df      float64   // and its degrees of freedom
}

// prepare whitens the series: x[i] = y[i] - ρ y[i-1].
func (f *finder) prepare() {
	f.sum, f.sq = make([]float64, len(f.y)+1), make([]float64, len(f.y)+1)
	for i := range f.y {
		x := f.white(i)
		f.sum[i+1], f.sq[i+1] = f.sum[i]+x, f.sq[i]+x*x
	}
}

func (f *finder) white(i int) float64 {
	if i == 0 {
		return f.y[0]
	}
	return f.y[i] - f.o.Correlation*f.y[i-1]
}

// fit is the step at k in the nights from a to t, both included: its size, what 1/variance of that is in units of the
// innovations' variance, and the residual sum of squares with and without the step.
func (f *finder) fit(a, k, t int) (shift, weight, with, without float64) {
	rho := f.o.Correlation
	first := math.Sqrt(1 - rho*rho) // of the level's first night, whose predecessor is of another level
	r := 1 - rho
	n, after := float64(t-a), float64(t-k) // nights but the first of all, and but the first of the step
	uu := first*first + n*r*r
	vv := 1 + after*r*r
	uv := r + after*r*r
	x0 := first * f.y[a]
	ux := first*x0 + r*(f.sum[t+1]-f.sum[a+1])
	vx := f.white(k) + r*(f.sum[t+1]-f.sum[k+1])
	xx := x0*x0 + f.sq[t+1] - f.sq[a+1]
	weight = vv - uv*uv/uu
	shift = (vx - uv/uu*ux) / weight
	without = xx - ux*ux/uu
	return shift, weight, max(0, without-shift*shift*weight), without
}

// best is the step that the nights up to t tell best; ok is false where none is certain and large enough.
func (f *finder) best(a, t int) (k int, shift, p float64, ok bool) {
	most := 0.0
	for at := max(a+leastBefore, t+1-mostAfter); at <= t+1-leastAfter; at++ {
		s, weight, ss, _ := f.fit(a, at, t)
		df := float64(t-a+1-2) + f.df
		variance := (ss + f.ss) / df
		if math.Abs(s) < f.o.Least {
			continue
		}
		z := certain // of numbers that repeat exactly
		if variance > 0 {
			z = min(z, normal(math.Abs(s)*math.Sqrt(weight/variance), df))
		}
		if z > most {
			most, k, shift = z, at, s
		}
	}
	p = math.Erfc(most / math.Sqrt2)
	accepted := f.o.P
	if shift < 0 != f.o.Falls {
		accepted *= betterP
	}
	return k, shift, p, most > 0 && p < accepted && f.typical(a, k, t, shift)
}

// typical reports whether the median night moved as well: one wild night is no new level.
func (f *finder) typical(a, k, t int, shift float64) bool {
	moved := Median(f.y[k:t+1]) - Median(f.y[max(a, k-mostAfter):k])
	return moved*shift > 0 && math.Abs(moved) >= math.Abs(shift)/2
}

// Median of some numbers, of which there is one at least.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// settle takes the residuals of a level that is over into the variance.
func (f *finder) settle(a, end int) {
	if end-a < 2 {
		return
	}
	_, _, _, ss := f.fit(a, end-1, end-1)
	f.ss, f.df = f.ss+ss, f.df+float64(end-a-1)
}

// place works out where changes are and how large, from all nights between their neighbours.
func (f *finder) place(list []Change) {
	for i := range list {
		c := &list[i]
		a, t := 0, len(f.y)-1
		if i > 0 {
			a = list[i-1].At
		}
		if i+1 < len(list) {
			t = list[i+1].At - 1
		}
		for _, b := range f.o.Breaks {
			if b <= c.At {
				a = max(a, b)
			} else {
				t = min(t, b-1)
			}
		}
		at, most := c.At, -1.0
		for k := max(a+1, c.At-leastBefore); k <= min(t, c.At+leastBefore); k++ {
			if s, weight, _, _ := f.fit(a, k, t); s*s*weight > most {
				most, at = s*s*weight, k
			}
		}
		c.At = min(at, c.Found)
		c.Shift, _, _, _ = f.fit(a, c.At, t)
	}
}

// normal is the normal deviate of the same tail as t with df degrees of freedom (Wallace 1959), to 0.1 % for df above
// 3.
func normal(t, df float64) float64 {
	return (8*df + 1) / (8*df + 3) * math.Sqrt(df*math.Log1p(t*t/df))
}
