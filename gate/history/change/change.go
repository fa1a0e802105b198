// Package change finds the places in a series of nights at which its level changed, and describes the rest of the
// series: its noise, where another environment begins, whether it creeps or flips. It knows only numbers: no commits,
// reports or stores.
package change

import (
	"cmp"
	_ "embed" // the page
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/order"
	"github.com/nsys-llm/explain/diff/student"
)

// Page says in markdown how changes are found, how often a found change is false, and how soon changes are found.
//
//go:embed change.md
var Page string

// Options of [Read]. The zero value gives the defaults that the page describes.
type Options struct {
	Least    float64 // smallest change of the level to report, ln; 0 means 0.02
	Falls    bool    // a fall is for the worse, as for a throughput; else a rise is
	Breaks   []int   // places at which another environment begins, ascending: no change is found across one
	Machines []int   // the machine of each night, from 0; nil: unknown
	Days     []int   // the day of the week of each night, 0 to 6; nil: unknown
}

// Least is the default for the smallest change of a level to report, ln.
const Least = 0.02

// Bounds of the search, in nights. A change is found in the first [mostAfter] nights after it or never.
const (
	leastBefore = 5 // fewest nights of a level before a change
	mostBefore  = 75
	leastAfter  = 3
	mostAfter   = 60

	worseP         = 3e-4 // two-sided p-value below which a change for the worse is found
	betterP        = 0.2  // of worseP: a gain can wait longer, and half of all false alarms are gains
	learnEach      = 5    // nights from one learning to the next
	newestMachines = 30   // nights that show whether machines come back
	shortSeries    = 80   // nights
	splitP         = 0.1  // of worseP, if the noise was learned as if the step were real
	none           = -1
	flipNights     = 180 // a level can flip back to one that was left at most this long ago
)

// Change is a place at which the level changed.
type Change struct {
	At    int     // first night of the new level
	Found int     // first night at which the change was certain
	Shift float64 // of the level, ln: new minus old
	Gone  bool    // the level came back within a few nights, or is one of two that flip
	P     float64 // p-value at the night at which the change was found
}

// Told is the result of analysing a series.
type Told struct {
	Changes []Change
	Borders []Border
	Flips   []Flips
	Creep   *Creep // since the last border; nil: none
	Noise   Noise
	// Sees is the smallest change, ln, that four of five series of so few nights show within SlowNights; 0: 40 or more
	Sees float64
	// Levels holds the level of each night's stretch, plus the effects of its machine and its day of the week.
	Levels []float64
}

// Border is a place at which another environment begins. Its effect on the level cannot be separated from that of the
// night's commits.
type Border struct {
	At     int
	Shift  float64 // of the level, ln
	SE     float64 // standard error of Shift; infinite if there are too few nights
	Nights int     // nights after the border that were used
}

// Flips are moves back and forth between two levels, which do not count as changes.
type Flips struct {
	From, To  int // places of the first and the last move
	Times     int
	Low, High float64
}

// Creep is a slow drift of the level that no single night began.
type Creep struct {
	From    int
	PerYear float64 // ln in 365 nights
	SE      float64
}

// finder goes through the nights.
type finder struct {
	o       *Options
	raw     []float64
	nth     []int  // how many nights, up to this one, its machine has had
	out     []bool // nights of excursions
	skip    []bool // nights on machines with too few nights
	starts  []int  // first nights of the stretches, each of which has its own level, ascending
	learned learner

	at       []int // nights of the stretch that count
	y        []float64
	sum      []float64 // prefix sums of the whitened values
	list     []Change
	was      []level // levels before the present one
	returned int     // night at which a known level was found again; below 0: none
	flips    flips
}

// flips are those that were found so far.
type flips []Flips

type level struct {
	until int
	value float64
}

// Read analyses a series of natural logarithms, the oldest first.
func Read(values []float64, o Options) *Told {
	o.Least = cmp.Or(o.Least, Least)
	f := &finder{o: &o, raw: values, returned: -1}
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
		case !ok && t < fewNights:
			c, ok = few(f)
		case !ok && c.at > 0 && t < shortSeries: // in so few nights the step itself looks like noise
			f.learn(t, c.at)
			if c, ok = f.best(); !ok || c.p > worseP*splitP {
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

// step handles a step that was found at night t: a change, the end of an excursion, or one of the flips between two
// levels.
func (f *finder) step(c candidate, t int) {
	defer f.learn(t, none)
	from := f.starts[len(f.starts)-1]
	tolerance := max(0.75*f.o.Least, 2*c.se)
	n := len(f.was)
	if n > 0 && math.Abs(f.was[n-1].value-c.after) < tolerance && c.at-from <= longestExcursion {
		for i := from; i < c.at; i++ { // the level came back
			f.out[i] = true
		}
		f.was, f.starts = f.was[:n-1], f.starts[:len(f.starts)-1]
		for i := range f.list {
			f.list[i].Gone = f.list[i].Gone || f.list[i].At == from
		}
		return
	}
	known := slices.ContainsFunc(f.was, func(l level) bool {
		return c.at-l.until <= flipNights && math.Abs(l.value-c.after) < tolerance
	})
	flips := known && f.returned >= 0 && t-f.returned <= flipNights || f.flips.around(c, f.o.Least/2)
	if known {
		f.returned = t
	}
	f.was = append(f.was, level{c.at, c.before})
	f.begin(c.at, t)
	if flips {
		f.flips.add(c, f.list[max(0, len(f.list)-2):])
		return
	}
	f.list = append(f.list, Change{At: c.at, Found: t, Shift: c.after - c.before, P: c.p})
}

// around reports whether a step lies within the two levels that the series flipped between in the last year, give or
// take room: such a step averages over some of the flips.
func (list flips) around(c candidate, room float64) bool {
	if len(list) == 0 {
		return false
	}
	x := &list[len(list)-1]
	return c.at-x.To <= memory && min(c.before, c.after) > x.Low-room && max(c.before, c.after) < x.High+room
}

// add records one more move between two known levels; latest are the last changes before it.
func (list *flips) add(c candidate, latest []Change) {
	low, high := min(c.before, c.after), max(c.before, c.after)
	if n := len(*list); n > 0 && c.at-(*list)[n-1].To <= flipNights {
		x := &(*list)[n-1]
		x.To, x.Times = c.at, x.Times+1
		x.Low, x.High = x.Low+(low-x.Low)/float64(x.Times), x.High+(high-x.High)/float64(x.Times)
		return
	}
	first := c.at
	for _, old := range latest {
		if c.at-old.At <= flipNights {
			first = min(first, old.At)
		}
	}
	*list = append(*list, Flips{From: first, To: c.at, Times: 3, Low: low, High: high})
}

// begin starts a stretch at night k, with the nights up to t.
func (f *finder) begin(k, t int) {
	f.starts = append(f.starts, k)
	f.take(k, t)
}

// take collects the nights of the stretch from k to t that count.
func (f *finder) take(k, t int) {
	f.at = f.at[:0]
	for i := k; i <= t; i++ {
		if counts(f, i) {
			f.at = append(f.at, i)
		}
	}
}

// counts reports whether a night shows the level of its stretch.
func counts(f *finder, i int) bool { return !f.skip[i] && !f.out[i] }

// candidate is a step that may be a change.
type candidate struct {
	at            int
	p             float64
	before, after float64 // levels
	se            float64 // standard error of their difference
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
		f.skip[i] = count[m] < leastOnMachine && 2*again > seen // else most nights are on machines that do not come back
		if i >= newestMachines && f.nth[i-newestMachines] > 1 {
			again--
		}
		count[m]++
		if f.nth[i] = count[m]; count[m] > 1 {
			again++
		}
	}
}

// value returns a night without the effects of its machine and its day.
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

// prepare clips the newest nights of the stretch about their level, and whitens them: x[i] = y[i] - ρ y[i-1].
func (f *finder) prepare() {
	at := f.at[max(0, len(f.at)-mostAfter-mostBefore):]
	l := &f.learned
	l.work = l.work[:0]
	for _, i := range at[max(0, len(at)-leastAfter-mostAfter) : len(at)-leastAfter] {
		l.work = append(l.work, f.value(i))
	}
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

// fit returns the size of a step at k in the nights from a to t, both included, and its weight: the innovations'
// variance over the variance of the size.
func (f *finder) fit(a, k, t int) (shift, weight float64) {
	rho := f.learned.noise.Correlation
	first := math.Sqrt(1 - rho*rho) // for the level's first night, whose predecessor has another level
	r := 1 - rho
	n, after := float64(t-a), float64(t-k) // nights after the first, and after the first of the step
	uu := first*first + n*r*r
	vv := 1 + after*r*r
	uv := r + after*r*r
	ux := first*first*f.y[a] + r*(f.sum[t+1]-f.sum[a+1])
	vx := f.white(k) + r*(f.sum[t+1]-f.sum[k+1])
	weight = vv - uv*uv/uu
	return (vx - uv/uu*ux) / weight, weight
}

// best returns the most significant step of the stretch; ok is false if it is not certain and large enough.
func (f *finder) best() (c candidate, ok bool) {
	if len(f.at) < leastBefore+leastAfter {
		return c, false
	}
	f.prepare()
	l := &f.learned
	n := len(f.y)
	most, k, shift := 0.0, 0, 0.0 // times the root of its weight: in standard errors, but for a factor
	least := min(0.8*f.o.Least, 1.5*l.scale)
	for at := max(leastBefore, n-mostAfter); at <= n-leastAfter; at++ {
		s, weight := f.fit(max(0, at-mostBefore), at, n-1)
		if math.Abs(s) < least {
			continue
		}
		if size := math.Abs(s) * math.Sqrt(weight); size > most {
			most, k, shift = size, at, s
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
	if c.p >= f.o.accepted(shift) {
		return c, false
	}
	return c, lasts(f, at[k:], c.before, moved)
}

// accepted is the p-value below which a change counts.
func (o *Options) accepted(shift float64) float64 {
	if shift < 0 != o.Falls {
		return worseP * betterP
	}
	return worseP
}

// lasts reports whether the newest nights have been at a new level for longer than excursions are.
func lasts(f *finder, at []int, before, moved float64) bool {
	nights, size := f.lasting(at, before, moved)
	stay := f.learned.stay(size)
	return nights > stay || stay == 0 && (nights > 0 || len(f.learned.came) == 0)
}

// lasting returns how many of the newest nights are at the new level, and their mean distance from the old one.
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

// typicalLevel is the mean of nights, each clipped to two typical deviations from their median.
func (f *finder) typicalLevel(at []int) float64 {
	l := &f.learned
	l.work = l.work[:0]
	for _, i := range at {
		l.work = append(l.work, f.value(i))
	}
	m, sum := order.Median(l.work), 0.0 // the list is sorted from here on
	for _, v := range l.work {
		sum += min(max(v-m, -2*l.scale), 2*l.scale)
	}
	return m + sum/float64(len(at))
}
