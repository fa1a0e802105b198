package change

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
)

const (
	borderNights = 30  // on each side of a border that give its levels
	creepNights  = 730 // the newest nights, in which creep is sought
	leastCreep   = 90  // nights
	certainCreep = 5.0 // standard errors
	fewestFlips  = 6
)

// tell analyses the whole series.
func (f *finder) tell() *Told {
	out := &Told{Changes: f.list, Flips: f.flips, Noise: f.learned.noise}
	if len(f.raw) == 0 {
		return out
	}
	out.Sees = sees(f)
	for i := range f.list {
		if c := &f.list[i]; !c.Gone {
			f.place(c)
		}
	}
	out.Borders = lists.Map(f.o.Breaks, f.border)
	out.Creep = f.creep()
	out.Levels = f.levels()
	if x := f.twoLevels(); x != nil && len(out.Flips) == 0 {
		out.Flips = []Flips{*x}
	}
	for i := range out.Changes {
		c := &out.Changes[i]
		for _, x := range out.Flips {
			v, room := out.Levels[c.At], f.o.Least/2
			c.Gone = c.Gone || c.At >= x.From && c.At <= x.To && v > x.Low-room && v < x.High+room
		}
	}
	return out
}

// stretch returns the first night of the stretch of night i, and the end of that stretch, exclusive.
func (f *finder) stretch(i int) (from, end int) {
	at, exact := slices.BinarySearch(f.starts, i)
	if !exact {
		at--
	}
	if end = len(f.raw); at+1 < len(f.starts) {
		end = f.starts[at+1]
	}
	return f.starts[at], end
}

// counted returns the nights in [from, end) that count; all of them if none does.
func (f *finder) counted(from, end int) []int {
	all := lists.Indexes[int](end)[from:]
	if at := lists.Filter(all, func(i int) bool { return counts(f, i) }); len(at) > 0 {
		return at
	}
	return all
}

// place computes the place and the size of a change from all nights between its neighbours.
func (f *finder) place(c *Change) {
	_, end := f.stretch(c.At)
	from, _ := f.stretch(c.At - 1)
	before, after := f.typicalLevel(f.counted(max(from, c.At-mostBefore), c.At)), f.typicalLevel(f.counted(c.At, end))
	bound := max(oddBeyond*f.learned.scale, math.Abs(after-before)/2)
	off := func(i int, level float64) float64 {
		d := min(bound, math.Abs(f.value(i)-level))
		return d * d
	}
	best, least := c.At, 0.0
	for _, way := range []int{-1, 1} {
		sum := 0.0
		for k := c.At + way; k > from && k < end && k <= c.Found && k >= c.At-leastBefore && k <= c.At+leastBefore; k += way {
			i := min(k, k-way) // the night that changes sides
			sum -= float64(way) * (off(i, after) - off(i, before))
			if sum < least {
				best, least = k, sum
			}
		}
	}
	at, _ := slices.BinarySearch(f.starts, c.At)
	c.At, f.starts[at] = best, best
	c.Shift = f.typicalLevel(f.counted(best, end)) - f.typicalLevel(f.counted(max(from, best-mostBefore), best))
}

// border measures the change of the level at a border.
func (f *finder) border(b int) Border {
	from, _ := f.stretch(b - 1)
	_, end := f.stretch(b)
	before, after := f.counted(max(from, b-borderNights), b), f.counted(b, min(end, b+borderNights))
	n := &f.learned.noise
	return Border{At: b, Shift: f.typicalLevel(after) - f.typicalLevel(before), Nights: len(after),
		SE: math.Hypot(n.Error(len(before)), n.Error(len(after)))}
}

// Error returns the standard error of the level of some nights, ln. At most 30 of them count.
func (n *Noise) Error(nights int) float64 {
	return n.SD * math.Sqrt((1+n.Correlation)/(1-n.Correlation)/float64(min(nights, borderNights)))
}

// creep returns the common slope of all stretches since the last border; nil if it is not certain and large enough, or
// if one more step explains the nights as well.
func (f *finder) creep() *Creep {
	from := sinceBreak(f, creepNights)
	var sxx, sxy, total float64
	var x, y []float64
	for i := from; i < len(f.raw); {
		_, end := f.stretch(i)
		at := f.counted(i, end)
		mx, my := 0.0, f.typicalLevel(at)
		for _, k := range at {
			mx += float64(k) / float64(len(at))
		}
		for _, k := range at {
			dx, dy := float64(k)-mx, f.value(k)-my
			x, y = append(x, dx), append(y, dy)
			sxx, sxy = sxx+dx*dx, sxy+dx*dy
		}
		i = end
	}
	if len(x) < leastCreep || sxx == 0 {
		return nil
	}
	slope := sxy / sxx
	for i := range x {
		d := f.learned.clip(y[i] - slope*x[i])
		total += d * d
	}
	n := &f.learned.noise
	sd := math.Sqrt(total / float64(len(x)))
	se := sd * math.Sqrt((1+n.Correlation)/(1-n.Correlation)/sxx)
	span := float64(len(f.raw) - from)
	if math.Abs(slope)*span < f.o.Least || math.Abs(slope) < certainCreep*se || f.learned.stepFits(y, total) {
		return nil
	}
	return &Creep{From: from, PerYear: slope * 365, SE: se * 365}
}

// stepFits reports whether one step leaves a sum of squares of at most than.
func (l *learner) stepFits(y []float64, than float64) bool {
	for k := leastBefore; k < len(y)-leastBefore; k += leastBefore {
		left, right := order.Median(slices.Clone(y[:k])), order.Median(slices.Clone(y[k:]))
		sum := 0.0
		for i, v := range y {
			level := left
			if i >= k {
				level = right
			}
			d := l.clip(v - level)
			sum += d * d
		}
		if sum <= than {
			return true
		}
	}
	return false
}

// sinceBreak returns the first of the newest nights since the last border, at most so many.
func sinceBreak(f *finder, nights int) int {
	return max(len(f.raw)-nights, lists.Most(f.o.Breaks, func(at int) int { return at }))
}

// levels returns the level of each night's stretch, plus the effects of its machine and its day.
func (f *finder) levels() []float64 {
	out := make([]float64, len(f.raw))
	for i := 0; i < len(out); {
		_, end := f.stretch(i)
		m := f.typicalLevel(f.counted(i, end))
		for ; i < end; i++ {
			out[i] = m + f.raw[i] - f.value(i)
		}
	}
	return out
}

// twoLevels finds two levels that the newest nights alternate between: the medians of three nights fall in two groups
// with few between them.
func (f *finder) twoLevels() *Flips {
	from := sinceBreak(f, memory)
	var y []float64
	for i := from + 2; i < len(f.raw); i++ {
		y = append(y, order.Median([]float64{f.value(i - 2), f.value(i - 1), f.value(i)}))
	}
	if len(y) < leastCreep {
		return nil
	}
	low, high := slices.Min(y), slices.Max(y)
	above := 0.0
	for range 20 {
		sums, counts := [2]float64{}, [2]float64{}
		for _, v := range y {
			k := 0
			if v > (low+high)/2 {
				k = 1
			}
			sums[k], counts[k] = sums[k]+v, counts[k]+1
		}
		if counts[0] == 0 || counts[1] == 0 {
			return nil
		}
		low, high, above = sums[0]/counts[0], sums[1]/counts[1], counts[1]/float64(len(y))
	}
	between, times, side := 0, 0, 0.0
	for _, v := range y {
		at := 2*(v-low)/(high-low) - 1 // -1 is the low level, 1 the high one
		if math.Abs(at) < 0.5 {
			between++
			continue
		}
		if at*side < 0 {
			times++
		}
		side = at
	}
	if high-low < f.o.Least || min(above, 1-above) < 0.15 || times < fewestFlips || float64(between) > 0.2*float64(len(y)) {
		return nil
	}
	return &Flips{From: from, To: len(f.raw) - 1, Times: times, Low: low, High: high}
}
