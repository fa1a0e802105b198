package steps

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report"
)

// stepTimes attributes every nanosecond of a set's units to a position of its sequence, to the end or to the rest.
type stepTimes struct {
	*sequence
	first []int32           // by position: its first piece of work
	of    []int32           // by place among the median unit's kernels: the position
	count []int32           // by position: how many kernels were combined
	list  []report.Position // sums; the one after the last is the end
	rest  int64

	sample []int32 // by unit: its place among the sampled ones plus one, or 0
	n      int     // sampled units
	// Values for medians: first dur and start, then in the same memory gap and alone.
	dur, start, gap, alone *cells

	shown []shownUnit

	hiccups     []hiccup // single long gaps or kernels, the longest first, at most maxHiccups
	hiccupCount int64
	threshold   int64 // from which it is one, ns
	values      []int64
}

// maxCells bounds the sampled units times the positions: 8 bytes each, 16 where times are long.
const maxCells = 1 << 18

// cells are times by position and sampled unit, in ns: narrow until one of them needs more than 32 bits.
type cells struct {
	memory *spill.Arena
	narrow []int32
	wide   []int64
}

// noTime is read from a cell without a time; narrow cells store noNarrow for it.
const (
	noTime   = math.MinInt64
	noNarrow = math.MinInt32
)

func newCells(memory *spill.Arena, n int) *cells {
	return &cells{memory: memory, narrow: spill.Make[int32](memory, n)}
}

func (c *cells) free() {
	spill.Free(c.memory, c.narrow)
	spill.Free(c.memory, c.wide)
}

// fill puts a small number, or noTime, into all of them.
func (c *cells) fill(ns int64) {
	for i := range c.narrow {
		c.narrow[i] = int32(max(ns, noNarrow))
	}
	for i := range c.wide {
		c.wide[i] = ns
	}
}

func (c *cells) at(i int) int64 {
	if c.wide != nil {
		return c.wide[i]
	}
	if v := c.narrow[i]; v != noNarrow {
		return int64(v)
	}
	return noTime
}

func (c *cells) set(i int, ns int64) {
	if c.wide == nil {
		if ns > noNarrow && ns <= math.MaxInt32 {
			c.narrow[i] = int32(ns)
			return
		}
		c.widen()
	}
	c.wide[i] = ns
}

func (c *cells) widen() {
	wide := spill.Make[int64](c.memory, len(c.narrow))
	for i := range wide {
		wide[i] = c.at(i)
	}
	spill.Free(c.memory, c.narrow)
	c.narrow, c.wide = nil, wide
}

// newStepTimes goes through the device four times; if units are to be shown, it finds their gaps on the way.
func newStepTimes(q *sequence, shown bool) *stepTimes {
	s := &stepTimes{sequence: q, sample: make([]int32, len(q.set.units))}
	s.first, s.of, s.count = q.fold()
	n := len(s.first)
	s.list = make([]report.Position, n+1)
	if shown {
		s.shown = q.toShow()
	}
	s.n = max(min(len(q.set.units), maxCells/(n+1)), 1)
	for i := range s.n {
		s.sample[i*len(q.set.units)/s.n] = int32(i) + 1
	}
	if s.sample[q.median] == 0 { // the median unit is always among them
		for u := q.median; ; u-- {
			if s.sample[u] > 0 {
				s.sample[u], s.sample[q.median] = 0, s.sample[u]
				break
			}
		}
	}
	memory := q.in.Trace.Memory()
	s.dur, s.start = newCells(memory, s.n*(n+1)), newCells(memory, s.n*(n+1))
	defer s.dur.free()
	defer s.start.free()
	s.durations()
	s.gap, s.alone = s.dur, s.start
	s.gap.fill(0)
	s.alone.fill(0)
	s.exclusive()
	s.idle()
	s.copies()
	s.losses()
	s.gap, s.alone, s.dur, s.start = nil, nil, nil, nil
	return s
}

// position of a place in work, or -1.
func (s *stepTimes) position(i int) int {
	if s.at[i] < 0 {
		return -1
	}
	return int(s.of[s.at[i]])
}

// cell of a unit at a position; -1 if the unit is not sampled.
func (s *stepTimes) cell(unit, position int) int {
	k := s.sample[unit]
	if k == 0 {
		return -1
	}
	return position*s.n + int(k-1)
}

func (s *stepTimes) add(to *cells, unit, position int, ns int64) {
	if i := s.cell(unit, position); i >= 0 {
		to.set(i, to.at(i)+ns)
	}
}

// durations adds up how long kernels took and when they started, and computes the medians.
func (s *stepTimes) durations() {
	s.start.fill(noTime)
	ran := make([]int, len(s.list)) // by position: the unit it ran in last, plus one
	for u, unit := range s.set.units {
		begin := s.in.Units.Units[unit].Start
		for i := int(s.from[u]); i < int(s.from[u+1]); i++ {
			p := s.position(i)
			if p < 0 {
				continue
			}
			from, to := s.device.Start(int(s.work[i])), s.device.End(int(s.work[i]))
			s.list[p].Time += to - from
			s.add(s.dur, u, p, to-from)
			if ran[p] == u+1 { // one of several that were folded
				continue
			}
			ran[p] = u + 1
			s.list[p].Ran++
			s.list[p].Start += from - begin
			if c := s.cell(u, p); c >= 0 {
				s.start.set(c, from-begin)
			}
		}
	}
	for p := range s.list[:len(s.list)-1] {
		s.list[p].TimeMedian = s.median(s.dur, p, func(int64) bool { return true })
		s.list[p].StartMedian = s.median(s.start, p, func(v int64) bool { return v != noTime })
	}
}

// exclusive attributes each moment in which kernels run to one of them, as kernel.exclusive_time_per_unit does: to
// compute before communication, and within these to the kernel that started first.
func (s *stepTimes) exclusive() {
	d := s.device
	next := slices.Clone(s.from) // by unit: the first of its work that is not before the piece
	for _, of := range owners(s.in, s.set) {
		at := [2]owner{of, of}
		given := [2]int64{math.MinInt64, math.MinInt64}
		for i := range d.Len() {
			c := int(d.Class(i))
			if c >= len(at) {
				continue
			}
			from, to := max(d.Start(i), given[c]), d.End(i)
			if from >= to {
				continue
			}
			given[c] = to
			at[c].within(from, to, func(u int, from, to int64) {
				ns := to - from
				if c == int(timeline.Comm) {
					ns = d.CommExposed.Within(from, to)
				}
				if ns == 0 {
					return
				}
				for next[u] < s.from[u+1] && s.work[next[u]] < int32(i) {
					next[u]++
				}
				if k := int(next[u]); k < int(s.from[u+1]) && s.work[k] == int32(i) && s.position(k) >= 0 {
					s.list[s.position(k)].Alone += ns
					s.add(s.alone, u, s.position(k), ns)
					return
				}
				s.rest += ns
			})
		}
	}
}

// follower finds the next work of a unit; moments must ascend within a unit.
type follower struct {
	owner
	s    *stepTimes
	unit int
	next int
}

func (s *stepTimes) followers() []follower {
	var list []follower
	for _, o := range owners(s.in, s.set) {
		list = append(list, follower{owner: o, s: s, unit: -1})
	}
	return list
}

// after is the position of the first kernel of the unit that starts at a moment or later, or the end.
func (f *follower) after(unit int, moment int64) int {
	s := f.s
	if unit != f.unit {
		f.unit, f.next = unit, int(s.from[unit])
	}
	for ; f.next < int(s.from[unit+1]); f.next++ {
		if s.device.Start(int(s.work[f.next])) >= moment && s.position(f.next) >= 0 {
			return s.position(f.next)
		}
	}
	return len(s.list) - 1
}

func (s *stepTimes) idle() {
	list := s.followers()
	s.device.Sweep(func(g *timeline.Gap) {
		for i := range s.shown {
			s.shown[i].addGap(g)
		}
		for i := range list {
			f := &list[i]
			f.within(g.Start, g.End, func(u int, from, to int64) {
				p := f.after(u, to)
				g.AddWithin(from, to, &s.list[p].Gap)
				s.add(s.gap, u, p, to-from)
			})
		}
	}, nil)
}

// copies attributes the time in which copies and memsets ran and no kernel did.
func (s *stepTimes) copies() {
	list, d := s.followers(), s.device
	now, kernels, copies := int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64)
	until := func(moment int64) {
		if from, to := max(now, kernels), min(copies, moment); to > from {
			for i := range list {
				f := &list[i]
				f.within(from, to, func(u int, from, to int64) { s.list[f.after(u, to)].Copies += to - from })
			}
		}
		now = max(now, moment)
	}
	for i := range d.Len() {
		from, to := d.Start(i), d.End(i)
		if to <= from {
			continue
		}
		until(from)
		if d.Class(i) == timeline.Copy {
			copies = max(copies, to)
		} else {
			kernels = max(kernels, to)
		}
	}
	until(math.MaxInt64)
}

// median is that of the cells of a position that count.
func (s *stepTimes) median(of *cells, p int, counts func(v int64) bool) int64 {
	s.values = s.values[:0]
	for i := p * s.n; i < (p+1)*s.n; i++ {
		if v := of.at(i); counts(v) {
			s.values = append(s.values, v)
		}
	}
	n := len(s.values)
	if n == 0 {
		return 0
	}
	stat.Sort(s.values)
	return s.values[(n-1)/2] + (s.values[n/2]-s.values[(n-1)/2])/2
}

// hiccup is a single gap, or kernel, that was much longer than its median.
type hiccup struct {
	position, part int
	unit           int64
	excess         int64
}

// maxHiccups bounds how many of them a report lists.
const maxHiccups = 64

// losses computes the medians of gaps and of time alone, and finds the hiccups of the sampled units: times that exceed
// their median by a twentieth of a unit.
func (s *stepTimes) losses() {
	every := func(int64) bool { return true }
	last := len(s.list) - 1
	for p := range s.list {
		s.list[p].GapMedian = s.median(s.gap, p, every)
		if p < last {
			s.list[p].AloneMedian = s.median(s.alone, p, every)
		}
	}
	s.threshold = int64(s.set.p50 / 20)
	var list []hiccup
	for u, unit := range s.set.units {
		if s.sample[u] == 0 || s.threshold <= 0 {
			continue
		}
		for p := range s.list {
			c := s.cell(u, p)
			for part, excess := range [2]int64{
				s.gap.at(c) - s.list[p].GapMedian, s.alone.at(c) - s.list[p].AloneMedian,
			} {
				if excess >= s.threshold {
					list = append(list, hiccup{p, part, int64(s.in.Units.Units[unit].Number), excess})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b hiccup) int { return cmp.Compare(b.excess, a.excess) })
	s.hiccups, s.hiccupCount = list[:min(len(list), maxHiccups)], int64(len(list))
}
