package infer

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Work is one unit whose work is known.
type Work struct {
	Phase  int     // prefill, decode, … by any numbering; phases are priced on their own
	Batch  float64 // sequences
	Tokens float64 // of them
	Time   float64 // plain, above 0
}

// Bounds of a fit.
const (
	minFitted = 32 // units of a phase on a side, to fit them,
	minKinds  = 4  // of so many kinds: a line through two batch sizes says nothing of what lies between
	stretches = 4  // into which an axis is cut, at quartiles
	sweeps    = 2000
)

// Fit is the time of a step of one phase as a function of batch and tokens,
//
//	t = a + f(batch) + g(tokens)
//
// with a ≥ 0 and f and g piecewise linear between the quartiles of the units, and nowhere falling: more work never
// takes less time. Coefficients are those with the least sum of squared relative errors under these conditions
// (non-negative least squares on ramps, by cyclic coordinate descent).
type Fit struct {
	batch, tokens []float64 // knots
	coefficients  []float64
	cells         map[[2]int]bool
	Residual      float64 // root mean square of the relative errors
}

// FitTime fits the units of one phase. ok is false with fewer than 32, or of fewer than 4 kinds, or times that are not
// positive.
func FitTime(units []Work) (f *Fit, ok bool) {
	if len(units) < minFitted || len(counts(units)) < minKinds {
		return nil, false
	}
	f = &Fit{cells: map[[2]int]bool{}}
	f.batch = knots(units, func(w Work) float64 { return w.Batch })
	f.tokens = knots(units, func(w Work) float64 { return w.Tokens })
	for _, u := range units {
		if !positive(u.Time) || math.IsNaN(u.Batch+u.Tokens) || math.IsInf(u.Batch+u.Tokens, 0) {
			return nil, false
		}
		f.cells[f.cell(u)] = true
	}
	f.solve(units)
	return f, true
}

// knots are the distinct quartiles of one axis.
func knots(units []Work, of func(Work) float64) []float64 {
	values := make([]float64, len(units))
	for i, u := range units {
		values[i] = of(u)
	}
	slices.Sort(values)
	list := make([]float64, 0, stretches+1)
	for k := range stretches + 1 {
		list = append(list, values[k*(len(values)-1)/stretches])
	}
	return slices.Compact(list)
}

// ramps are the terms of the fit at one place: 1, and for every stretch between knots the share of it that lies below
// x.
func (f *Fit) ramps(out []float64, w Work) []float64 {
	out = append(out[:0], 1)
	for axis, list := range [2][]float64{f.batch, f.tokens} {
		x := w.Batch
		if axis == 1 {
			x = w.Tokens
		}
		for k := 1; k < len(list); k++ {
			out = append(out, min(max((x-list[k-1])/(list[k]-list[k-1]), 0), 1))
		}
	}
	return out
}

// solve finds the coefficients for units, which may be resampled ones.
func (f *Fit) solve(units []Work) {
	terms := len(f.batch) + len(f.tokens) - 1
	gram, right := make([]float64, terms*terms), make([]float64, terms)
	row := make([]float64, 0, terms)
	for _, u := range units {
		row = f.ramps(row, u)
		for i, x := range row {
			right[i] += x / u.Time
			for k, y := range row {
				gram[i*terms+k] += x * y / (u.Time * u.Time)
			}
		}
	}
	c := make([]float64, terms)
	for range sweeps {
		moved := 0.0
		for i := range c {
			if gram[i*terms+i] == 0 {
				continue
			}
			left := right[i]
			for k := range c {
				left -= gram[i*terms+k] * c[k]
			}
			next := max(0, c[i]+left/gram[i*terms+i])
			moved = max(moved, math.Abs(next-c[i])*math.Sqrt(gram[i*terms+i]))
			c[i] = next
		}
		if moved < 1e-9*math.Sqrt(float64(len(units))) {
			break
		}
	}
	f.coefficients = c
	var sum float64
	for _, u := range units {
		e := f.time(u)/u.Time - 1
		sum += e * e
	}
	f.Residual = math.Sqrt(sum / float64(len(units)))
}

func (f *Fit) time(w Work) float64 {
	var buffer [2*stretches + 1]float64
	var t float64
	for i, x := range f.ramps(buffer[:0], w) {
		t += f.coefficients[i] * x
	}
	return t
}

func (f *Fit) cell(w Work) [2]int {
	at := func(list []float64, x float64) int {
		i, found := slices.BinarySearch(list, x)
		if !found {
			i--
		}
		return min(i, len(list)-2)
	}
	return [2]int{at(f.batch, w.Batch), at(f.tokens, w.Tokens)}
}

// At is the time of a step with that work. ok is false outside the support: beyond the units on either axis, or in a
// rectangle between quartiles in which no unit lies.
func (f *Fit) At(batch, tokens float64) (time float64, ok bool) {
	w := Work{Batch: batch, Tokens: tokens}
	inside := func(list []float64, x float64) bool { return x >= list[0] && x <= list[len(list)-1] }
	if !inside(f.batch, batch) || !inside(f.tokens, tokens) || !f.cells[f.cell(w)] {
		return 0, false
	}
	time = f.time(w)
	return time, time > 0
}

// Priced is the base's work at the head's prices.
type Priced struct {
	Ratio     float64 // Σ base count × head time / Σ base count × base time, over the work that has a price
	Low, High float64 // interval of Ratio, of level 1 - 2 alpha; equal to it where none can be had
	Exact     float64 // share of the base's time that was priced by units of the same phase, batch and tokens
	Fitted    float64 // … by the fits of both sides
	Unpriced  float64 // … not at all: work that the head did not do
	Residual  float64 // the larger of the fits'; 0: nothing was fitted
	Method    string
}

// kind of a unit.
type kind struct {
	phase         int
	batch, tokens float64
}

func (w Work) kind() kind { return kind{w.Phase, w.Batch, w.Tokens} }

// pricing holds what the resamples share: how each unit of base is priced.
type pricing struct {
	base, head []Work
	exact      map[kind]bool
	fits       map[int]*[2]Fit // by phase: base, head
	fitted     []bool          // by unit of base
}

// Price prices the base's work at the head's times. A kind of unit (phase, batch, tokens) of which each side has at
// least MinUnits has the head's mean as its price. Other units are priced by a fit of each side's phase, within the
// support of both: time × head's fit / base's fit, so that what the form of the fit misses cancels. The interval is a
// circular block bootstrap over the units of each side, fits included. Units must be in the order in which they ran.
// ok is false where nothing can be priced.
func Price(base, head []Work, alpha float64, seed uint64) (p Priced, ok bool) {
	valid := func(list []Work) bool {
		return !slices.ContainsFunc(list, func(w Work) bool {
			return !positive(w.Time) || math.IsNaN(w.Batch+w.Tokens) || math.IsInf(w.Batch+w.Tokens, 0)
		})
	}
	if !valid(base) || !valid(head) || !(alpha > 0 && alpha < 0.5) {
		return p, false
	}
	s := pricing{base: base, head: head, exact: map[kind]bool{}, fits: map[int]*[2]Fit{}}
	s.fitted = make([]bool, len(base))
	inBase, inHead := counts(base), counts(head)
	for k, n := range inBase {
		s.exact[k] = n >= MinUnits && inHead[k] >= MinUnits
	}
	s.fit()
	var total, priced float64
	for i, u := range base {
		total += u.Time
		switch {
		case s.exact[u.kind()]:
			p.Exact += u.Time
		case s.fits[u.Phase] != nil:
			f := s.fits[u.Phase]
			_, here := f[0].At(u.Batch, u.Tokens)
			_, there := f[1].At(u.Batch, u.Tokens)
			if s.fitted[i] = here && there; s.fitted[i] {
				p.Fitted += u.Time
				p.Residual = max(p.Residual, f[0].Residual, f[1].Residual)
			}
		}
	}
	if priced = p.Exact + p.Fitted; !(priced > 0) {
		return Priced{}, false
	}
	d := s.ratio(base, head, s.fitted)
	p.Ratio, p.Low, p.High = math.Exp(d), math.Exp(d), math.Exp(d)
	p.Exact, p.Fitted, p.Unpriced = p.Exact/total, p.Fitted/total, max(0, 1-priced/total)
	if len(base) < MinUnits || len(head) < MinUnits {
		return p, true
	}
	c := s.interval(d, alpha, seed)
	p.Low, p.High, p.Method = math.Exp(c.low), math.Exp(c.high), c.method
	return p, true
}

func counts(units []Work) map[kind]int {
	m := map[kind]int{}
	for _, u := range units {
		m[u.kind()]++
	}
	return m
}

// fit fits the phases that both sides have enough units of.
func (s *pricing) fit() {
	phases := func(units []Work) map[int][]Work {
		m := map[int][]Work{}
		for _, u := range units {
			m[u.Phase] = append(m[u.Phase], u)
		}
		return m
	}
	b, h := phases(s.base), phases(s.head)
	for phase := range b {
		if from, ok := FitTime(b[phase]); ok {
			if to, ok := FitTime(h[phase]); ok {
				s.fits[phase] = &[2]Fit{*from, *to}
			}
		}
	}
}

// ratio is ln of the priced sums, with the fits of s.
func (s *pricing) ratio(base, head []Work, fitted []bool) float64 {
	type sum struct{ time, n float64 }
	prices := map[kind]sum{}
	for _, u := range head {
		if k := u.kind(); s.exact[k] {
			v := prices[k]
			prices[k] = sum{v.time + u.Time, v.n + 1}
		}
	}
	var at, own float64
	for i, u := range base {
		switch k := u.kind(); {
		case s.exact[k] && prices[k].n > 0:
			at, own = at+prices[k].time/prices[k].n, own+u.Time
		case fitted[i]:
			f := s.fits[u.Phase]
			if from := f[0].time(u); from > 0 {
				at, own = at+u.Time*f[1].time(u)/from, own+u.Time
			}
		}
	}
	if !positive(own) || !positive(at) {
		return 0
	}
	return math.Log(at / own)
}

// priceDraws is how many resamples the interval stands on: each solves the fits anew.
const priceDraws = 199

// interval draws blocks of units of both sides and prices them anew, keeping which units are priced how.
func (s *pricing) interval(d, alpha float64, seed uint64) contrast {
	nb, nh := len(s.base), len(s.head)
	lag1 := (float64(nb)*Lag1(s.residuals(s.base, 0)) + float64(nh)*Lag1(s.residuals(s.head, 1))) / float64(nb+nh)
	rho := ofSamples.reckon(lag1, float64(nb+nh))
	rng := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
	resample := func(out []Work, marks []bool, units []Work, from []bool) {
		n := len(units)
		block := blockFor(n, rho)
		for k := 0; k < n; {
			start, _ := bits.Mul64(rng.Uint64(), uint64(n))
			for j := 0; j < block && k < n; j++ {
				i := (int(start) + j) % n
				out[k] = units[i]
				if from != nil {
					marks[k] = from[i]
				}
				k++
			}
		}
	}
	base, head, marks := make([]Work, nb), make([]Work, nh), make([]bool, nb)
	samples := make([]float64, priceDraws)
	phases := make([]int, 0, len(s.fits))
	for phase := range s.fits {
		phases = append(phases, phase)
	}
	slices.SortFunc(phases, cmp.Compare)
	of := func(units []Work, phase int) []Work {
		return slices.DeleteFunc(slices.Clone(units), func(u Work) bool { return u.Phase != phase })
	}
	for i := range samples {
		resample(base, marks, s.base, s.fitted)
		resample(head, nil, s.head, nil)
		again := pricing{exact: s.exact, fits: map[int]*[2]Fit{}}
		for _, phase := range phases {
			f := *s.fits[phase]
			for side, units := range [2][]Work{of(base, phase), of(head, phase)} {
				if len(units) > 0 {
					f[side].solve(units)
				}
			}
			again.fits[phase] = &f
		}
		samples[i] = again.ratio(base, head, marks)
	}
	n := min(nb, nh)
	block := blockFor(n, rho)
	c := contrast{d: d, alpha: alpha, lag1: rho}
	c.ends(samples, float64(n)/float64(block), unseen(rho, n, block), 0)
	c.method = fmt.Sprintf("circular block bootstrap over units and fits, blocks of %d, %d draws", block, priceDraws)
	return c
}

// residuals are what the mean of its kind, or else the fit, leaves of ln of each unit that has one.
func (s *pricing) residuals(units []Work, side int) []float64 {
	sums := map[kind][2]float64{}
	for _, u := range units {
		v := sums[u.kind()]
		sums[u.kind()] = [2]float64{v[0] + math.Log(u.Time), v[1] + 1}
	}
	var list []float64
	for _, u := range units {
		switch f := s.fits[u.Phase]; {
		case s.exact[u.kind()]:
			v := sums[u.kind()]
			list = append(list, math.Log(u.Time)-v[0]/v[1])
		case f != nil:
			if t := f[side].time(u); t > 0 {
				list = append(list, math.Log(u.Time/t))
			}
		}
	}
	return list
}
