// Package change finds the places in a series of nights at which its level changed, and says what else the series does:
// how noisy it is, where another environment begins, whether it creeps or flips. It knows numbers alone: neither commits
// nor reports nor stores.
package change

import (
	_ "embed" // the page
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/order"
	"github.com/nsys-llm/explain/diff/student"
)

// Page says as markdown how changes are found, how often that is wrong, and how soon it is right.
//
//go:embed change.md
var Page string

// Options of [Read]. The zero value is what the page says.
type Options struct {
	// above which no change for the worse is found, two-sided; 0 means 0.0003. For the better it is a fifth
	P        float64
	Least    float64 // change of the level that is worth a word, ln; 0 means 0.02
	Falls    bool    // a fall is for the worse, as of a throughput; else a rise is
	Breaks   []int   // places at which another environment begins, ascending: no change is told across one
	Machines []int   // the machine of each night, from 0 on; nil: not known
	Days     []int   // the day of the week of each night, 0 to 6; nil: not known
}

// Least is the change of a level that is worth a word unless said otherwise, ln.
const Least = 0.02

// Bounds of what is looked at. A change is found in the first [mostAfter] nights behind it or never.
const (
	leastBefore = 5 // nights of a level that a change can be told from
	mostBefore  = 75
	leastAfter  = 3
	mostAfter   = 60

	certain = 30.0 // standard errors: more cannot be told apart from

	defaultP       = 3e-4
	betterP        = 0.2 // of P: who waits for a gain can wait longer, and half of all false alarms are gains
	learnEach      = 5   // nights
	newestMachines = 30  // nights that say whether machines come again
	shortSeries    = 80  // nights
	splitP         = 0.1 // of P, where the noise was learned as if the step were there
	none           = -1
	flipNights     = 180 // a level that was left no longer ago can be flipped back to
)

// Change is a place at which the level changed.
type Change struct {
	At    int     // place of the first night of the new level
	Found int     // place of the night at which it could be told first
	Shift float64 // of the level, ln: the new one less the old one
	Gone  bool    // the level came back by itself within a few nights, or is one of two that flip
	P     float64 // of so large a statistic by noise alone, at the night at which it was found
}

// Told is what a series tells.
type Told struct {
	Changes []Change
	Borders []Border
	Flips   []Flips
	Creep   *Creep // of the nights since the last border; nil: none
	Noise   Noise
	// Levels are, of each night, where the nights around it lie, with what its machine and its day of the week add.
	Levels []float64
}

// Border is a place at which another environment begins. What it did to the level cannot be told from what the night's
// commits did.
type Border struct {
	At     int
	Shift  float64 // of the level, ln
	SE     float64 // of that; infinite if there are too few nights
	Nights int     // behind it that say so
}

// Flips are moves to and fro between two levels, which are no changes.
type Flips struct {
	From, To  int // places of the first and of the last of them
	Times     int
	Low, High float64
}

// Creep is a slow drift of the level, in which no night is the one at which it changed.
type Creep struct {
	From    int
	PerYear float64 // ln in 365 nights
	SE      float64
}

// Find returns the changes alone.
func Find(values []float64, o Options) []Change { return Read(values, o).Changes }

// finder goes through the nights.
type finder struct {
	o       *Options
	raw     []float64
	nth     []int  // how many nights a night's machine had up to it
	out     []bool // nights of excursions
	skip    []bool // nights on machines of which too little is known
	starts  []int  // of stretches with a level of their own, ascending
	learned learner

	at       []int // nights of the stretch that count
	y        []float64
	sum      []float64 // prefix sums of the whitened values
	list     []Change
	was      []level // levels before the present one
	returned int     // night at which a level was found that was known; below 0: none
	flips    []Flips
}

type level struct {
	until int
	value float64
}

// Read reads a series of natural logarithms, the oldest first.
func Read(values []float64, o Options) *Told {
	o.fill()
	f := &finder{o: &o, raw: values}
	f.returned = -1
	f.machines()
	f.learned.noise.Correlation = priorCorrelation
	breaks := o.Breaks
	f.begin(0, -1)
	for t := range values {
		if len(breaks) > 0 && breaks[0] <= t {
			breaks = breaks[1:]
			f.begin(t, t-1)
			f.was, f.returned = f.was[:0], -1
		}
		if !f.skip[t] {
			f.at = append(f.at, t)
		}
		learned := t%learnEach == 0 || t < shortSeries
		if learned {
			f.learn(t, none)
		}
		c, ok := f.best()
		switch {
		case ok && !learned:
			f.learn(t, none)
			c, ok = f.best()
		case !ok && c.at > 0 && t < shortSeries: // in so few nights the step itself looks like noise
			f.learn(t, c.at)
			if c, ok = f.best(); !ok || c.p > f.o.P*splitP {
				ok = false
				f.learn(t, none)
			}
		}
		if ok {
			f.step(c, t)
		}
	}
	return f.tell()
}

// step takes a step that was found at night t: a change, or the end of an excursion, or one of the flips between two
// levels.
func (f *finder) step(c candidate, t int) {
	defer f.learn(t, none)
	from := f.starts[len(f.starts)-1]
	tolerance := max(0.75*f.o.Least, 2*c.se)
	n := len(f.was)
	if n > 0 && math.Abs(f.was[n-1].value-c.after) < tolerance && c.at-from <= longestExcursion {
		for i := from; i < c.at; i++ { // it came back by itself
			f.out[i] = true
		}
		f.was, f.starts = f.was[:n-1], f.starts[:len(f.starts)-1]
		if last := &f.list[len(f.list)-1]; last.At == from {
			last.Gone = true
		}
		return
	}
	known := slices.ContainsFunc(f.was, func(l level) bool {
		return c.at-l.until <= flipNights && math.Abs(l.value-c.after) < tolerance
	})
	flips := known && f.returned >= 0 && t-f.returned <= flipNights || f.between(c)
	if known {
		f.returned = t
	}
	f.was = append(f.was, level{c.at, c.before})
	f.begin(c.at, t)
	if flips {
		f.flip(c)
		return
	}
	f.list = append(f.list, Change{At: c.at, Found: t, Shift: c.after - c.before, P: c.p})
}

// between reports whether a step is within the two levels that the series flipped between in the last year: it is one
// that has seen some of the flips and not others.
func (f *finder) between(c candidate) bool {
	if len(f.flips) == 0 {
		return false
	}
	x, room := &f.flips[len(f.flips)-1], f.o.Least/2
	return c.at-x.To <= memory && min(c.before, c.after) > x.Low-room && max(c.before, c.after) < x.High+room
}

// flip takes one more move between two known levels.
func (f *finder) flip(c candidate) {
	low, high := min(c.before, c.after), max(c.before, c.after)
	if n := len(f.flips); n > 0 && c.at-f.flips[n-1].To <= flipNights {
		x := &f.flips[n-1]
		x.To, x.Times = c.at, x.Times+1
		x.Low, x.High = x.Low+(low-x.Low)/float64(x.Times), x.High+(high-x.High)/float64(x.Times)
		return
	}
	first := c.at
	for _, old := range f.list[max(0, len(f.list)-2):] {
		if c.at-old.At <= flipNights {
			first = min(first, old.At)
		}
	}
	f.flips = append(f.flips, Flips{From: first, To: c.at, Times: 3, Low: low, High: high})
}

// begin starts a stretch at night k, of which nights up to t are there.
func (f *finder) begin(k, t int) {
	f.starts = append(f.starts, k)
	f.take(k, t)
}

// take takes the nights of the stretch from k to t that count.
func (f *finder) take(k, t int) {
	f.at = f.at[:0]
	for i := k; i <= t; i++ {
		if !f.skip[i] && !f.out[i] {
			f.at = append(f.at, i)
		}
	}
}

// candidate is a step that may be a change.
type candidate struct {
	at            int
	p             float64
	before, after float64 // levels
	se            float64 // of their difference
}

func (f *finder) machines() {
	f.skip, f.out = make([]bool, len(f.raw)), make([]bool, len(f.raw))
	if f.o.Machines == nil || len(f.raw) == 0 {
		return
	}
	f.nth = make([]int, len(f.raw))
	count := make([]int, slices.Max(f.o.Machines)+1)
	f.learned.effect = make([]float64, len(count))
	again := 0 // of the newest nights, those on a machine that was seen before
	for i, m := range f.o.Machines {
		seen := min(i, newestMachines)
		f.skip[i] = count[m] < leastOnMachine && 2*again > seen // else most nights are on machines of their own
		if i >= newestMachines && f.nth[i-newestMachines] > 1 {
			again--
		}
		count[m]++
		if f.nth[i] = count[m]; count[m] > 1 {
			again++
		}
	}
}

// value of a night without what its machine and its day add.
func (f *finder) value(i int) float64 {
	v := f.raw[i]
	if f.o.Machines != nil {
		v -= f.learned.effect[f.o.Machines[i]]
	}
	if f.o.Days != nil {
		v -= f.learned.week[f.o.Days[i]]
	}
	return v
}

func (o *Options) fill() {
	if o.P == 0 {
		o.P = defaultP
	}
	if o.Least == 0 {
		o.Least = Least
	}
}

// prepare takes the newest nights of the stretch, clipped about their level, and whitens them: x[i] = y[i] - ρ y[i-1].
func (f *finder) prepare() {
	at := f.at[max(0, len(f.at)-mostAfter-mostBefore):]
	l := &f.learned
	l.work = l.work[:0]
	for _, i := range at[max(0, len(at)-leastAfter-mostAfter) : len(at)-leastAfter] {
		l.work = append(l.work, f.value(i))
	}
	slices.Sort(l.work)
	m := order.Median(l.work)
	f.y, f.sum = f.y[:0], append(f.sum[:0], 0)
	for _, i := range at {
		f.y = append(f.y, l.clip(f.value(i)-m))
	}
	for i := range f.y {
		f.sum = append(f.sum, f.sum[i]+f.white(i))
	}
}

func (f *finder) white(i int) float64 {
	if i == 0 {
		return f.y[0]
	}
	return f.y[i] - f.learned.noise.Correlation*f.y[i-1]
}

// fit is the step at k in the nights from a to t, both included: its size, and 1/variance of that in units of the
// innovations' variance.
func (f *finder) fit(a, k, t int) (shift, weight float64) {
	rho := f.learned.noise.Correlation
	first := math.Sqrt(1 - rho*rho) // of the level's first night, whose predecessor is of another level
	r := 1 - rho
	n, after := float64(t-a), float64(t-k) // nights but the first of all, and but the first of the step
	uu := first*first + n*r*r
	vv := 1 + after*r*r
	uv := r + after*r*r
	ux := first*first*f.y[a] + r*(f.sum[t+1]-f.sum[a+1])
	vx := f.white(k) + r*(f.sum[t+1]-f.sum[k+1])
	weight = vv - uv*uv/uu
	return (vx - uv/uu*ux) / weight, weight
}

// best is the step that the nights of the stretch tell best; ok is false if none is certain and large enough.
func (f *finder) best() (c candidate, ok bool) {
	if len(f.at) < leastBefore+leastAfter {
		return c, false
	}
	f.prepare()
	l := &f.learned
	n := len(f.y)
	most, k, shift := 0.0, 0, 0.0 // in standard errors
	least := min(0.8*f.o.Least, 1.5*l.scale)
	for at := max(leastBefore, n-mostAfter); at <= n-leastAfter; at++ {
		s, weight := f.fit(max(0, at-mostBefore), at, n-1)
		if math.Abs(s) < least {
			continue
		}
		t := certain // of numbers that repeat exactly
		if l.innovation > 0 {
			t = min(t, math.Abs(s)*math.Sqrt(weight/l.innovation))
		}
		if t > most {
			most, k, shift = t, at, s
			c.se = math.Sqrt(l.innovation / weight)
		}
	}
	if most == 0 {
		return c, false
	}
	at := f.at[len(f.at)-n:]
	c.before, c.after = f.typicalLevel(at[max(0, k-mostBefore):k]), f.typicalLevel(at[k:])
	moved := c.after - c.before
	if moved*shift < 0 || math.Abs(moved) < f.o.Least {
		return c, false
	}
	c.at, c.p = at[k], student.Beyond(shift, 0, c.se, l.df)
	accepted := f.o.P
	if shift < 0 != f.o.Falls {
		accepted *= betterP
	}
	if c.p >= accepted {
		return c, false
	}
	nights, size := f.lasting(at[k:], c.before, moved)
	stay := l.stay(size)
	return c, nights > stay || stay == 0 && (nights > 0 || len(l.came) == 0)
}

// lasting is how many of the newest nights in a row are of the new level, and how far off they are.
func (f *finder) lasting(at []int, before, moved float64) (nights int, size float64) {
	sum, off := 0.0, 0
	for _, i := range slices.Backward(at) {
		d := f.value(i) - before
		if d/moved < 0.5 {
			if off++; off > 1 || nights == 0 {
				break
			}
			continue
		}
		nights, sum, off = nights+1, sum+d, 0
	}
	if nights == 0 {
		return 0, moved
	}
	return nights, sum / float64(nights)
}

// typicalLevel is the mean of nights, none of which counts as more than two typical deviations from their median.
func (f *finder) typicalLevel(at []int) float64 {
	l := &f.learned
	l.work = l.work[:0]
	for _, i := range at {
		l.work = append(l.work, f.value(i))
	}
	slices.Sort(l.work)
	m, sum := order.Median(l.work), 0.0
	for _, v := range l.work {
		sum += min(max(v-m, -2*l.scale), 2*l.scale)
	}
	return m + sum/float64(len(at))
}
