package steps

import (
	"cmp"
	"math"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// stepTimes attributes every nanosecond of a set's units to a position of its sequence, to the end or to the rest.
type stepTimes struct {
	*sequence
	first []int32           // by position: its first piece of work
	of    []int32           // by place among the median unit's kernels: the position
	count []int32           // by position: how many kernels were combined
	list  []report.Position // sums; the one after the last is the end
	out   *report.UnitStep  // whose rest and hiccups are filled in

	sample []int32 // by unit: its place among the sampled ones plus one, or 0
	n      int     // sampled units
	values []int64
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

// newStepTimes goes through the work of each unit.
func newStepTimes(q *sequence, out *report.UnitStep) *stepTimes {
	s := &stepTimes{sequence: q, out: out, sample: make([]int32, len(q.set.Units))}
	s.first, s.of, s.count = q.fold()
	n := len(s.first)
	s.list = make([]report.Position, n+1)
	s.n = max(min(len(q.set.Units), maxCells/(n+1)), 1)
	for i := range s.n {
		s.sample[i*len(q.set.Units)/s.n] = int32(i) + 1
	}
	near := q.median // the median unit is always among them: in place of the last one up to it
	for s.sample[near] == 0 {
		near--
	}
	s.sample[near], s.sample[q.median] = 0, s.sample[near]
	s.durations()
	s.account()
	return s
}

// cells returns a cell for each position and sampled unit.
func (s *stepTimes) cells() *cells {
	return newCells(s.in.Trace.Memory(), s.n*len(s.list))
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
	return int(k-1)*len(s.list) + position
}

func (s *stepTimes) add(to *cells, unit, position int, ns int64) {
	if i := s.cell(unit, position); i >= 0 {
		to.set(i, to.at(i)+ns)
	}
}

// durations adds up how long the kernels of each unit took and when they started.
func (s *stepTimes) durations() {
	dur, start := s.cells(), s.cells()
	defer dur.free()
	defer start.free()
	for i := range start.narrow {
		start.narrow[i] = noNarrow
	}
	ran := make([]int, len(s.list)) // by position: the unit that it ran in last, plus one
	for u, unit := range s.set.Units {
		begin := s.in.Units.Units[unit].Start
		for i := int(s.from[u]); i < int(s.from[u+1]); i++ {
			p := s.position(i)
			if p < 0 {
				continue
			}
			from, to := s.device.Start(int(s.work[i])), s.device.End(int(s.work[i]))
			s.list[p].Time += to - from
			s.add(dur, u, p, to-from)
			if ran[p] == u+1 { // one of several that were folded
				continue
			}
			ran[p] = u + 1
			s.list[p].Ran++
			s.list[p].Start += from - begin
			if c := s.cell(u, p); c >= 0 {
				start.set(c, from-begin)
			}
		}
	}
	for p := range len(s.list) - 1 {
		s.list[p].TimeMedian = s.median(dur, p)
		s.list[p].StartMedian = s.median(start, p)
	}
}

// account gives the moments of each unit to positions, and finds the hiccups.
func (s *stepTimes) account() {
	gap, alone := s.cells(), s.cells()
	defer gap.free()
	defer alone.free()
	stretches := s.device.Stretches()
	for u, unit := range s.set.Units {
		s.moments(u, &s.in.Units.Units[unit], stretches, gap, alone)
	}
	s.losses(gap, alone)
}

// moments gives each moment of a unit in which kernels run to one of them, as kernel.exclusive_time_per_unit does: to
// compute before communication, and within these to the kernel that started first. Gaps, and time in which only copies
// and memsets run, go to the next kernel.
func (s *stepTimes) moments(u int, x *workunit.Unit, stretches *timeline.Stretches, gap, exclusive *cells) {
	k, next := int(s.from[u]), int(s.from[u]) // of the unit's work: what is not before the piece; before the moment
	end := int(s.from[u+1])
	after := func(moment int64) int { // moments ascend
		for ; next < end; next++ {
			if p := s.position(next); p >= 0 && s.device.Start(int(s.work[next])) >= moment {
				return p
			}
		}
		return len(s.list) - 1
	}
	alone := func(c timeline.Class, i int, from, to int64) { // i: none of the unit
		ns := max(0, to-from)
		if c == timeline.Comm && ns > 0 {
			ns = s.device.CommExposed.Within(from, to)
		}
		if ns == 0 {
			return
		}
		for k < end && int(s.work[k]) < i {
			k++
		}
		if k < end && int(s.work[k]) == i && s.position(k) >= 0 {
			s.list[s.position(k)].Alone += ns
			s.add(exclusive, u, s.position(k), ns)
			return
		}
		s.out.Rest += ns
	}
	now := x.Start
	copies := func(until int64, ends *[timeline.Idle]int64) {
		from, to := max(now, ends[timeline.Compute], ends[timeline.Comm]), min(ends[timeline.Copy], until)
		if to > from {
			s.list[after(to)].Copies += to - from
		}
		now = max(now, until)
	}
	for c, end := range s.device.EndsBefore(x.Start) {
		if c := timeline.Class(c); c <= timeline.Comm {
			alone(c, -1, x.Start, min(end, x.End))
		}
	}
	ends := stretches.Visit(interval.Interval{Start: x.Start, End: x.End}, func(g *timeline.Gap, ends *[timeline.Idle]int64) {
		copies(min(g.Start, x.End), ends)
		from, to := max(g.Start, x.Start), min(g.End, x.End)
		if to > from {
			p := after(to)
			g.AddWithin(from, to, &s.list[p].Gap)
			s.add(gap, u, p, to-from)
		}
	}, func(i int, from, to int64, ends *[timeline.Idle]int64) {
		copies(from, ends)
		if c := s.device.Class(i); c <= timeline.Comm {
			alone(c, i, max(from, ends[c]), min(to, x.End))
		}
	})
	copies(x.End, &ends)
}

// median is that of the cells of a position that have a time.
func (s *stepTimes) median(of *cells, p int) int64 {
	s.values = s.values[:0]
	for i := p; i < s.n*len(s.list); i += len(s.list) {
		if v := of.at(i); v != noTime {
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

// hiccup is a single gap, or kernel, of a unit that was longer than its median.
type hiccup struct{ position, part, unit, excess int64 }

// maxHiccups bounds how many of them a report lists.
const maxHiccups = 64

// losses computes the medians of gaps and of exclusive times, and finds the hiccups of the sampled units: single gaps or
// kernels that exceed their median by a twentieth of a unit.
func (s *stepTimes) losses(gap, alone *cells) {
	last := len(s.list) - 1
	for p := range s.list {
		s.list[p].GapMedian = s.median(gap, p)
		if p < last {
			s.list[p].AloneMedian = s.median(alone, p)
		}
	}
	s.out.Threshold = int64(s.set.P50 / 20)
	var list []hiccup
	for u, unit := range s.set.Units {
		if s.sample[u] == 0 || s.out.Threshold <= 0 {
			continue
		}
		for p := range s.list {
			c := s.cell(u, p)
			for part, excess := range [2]int64{gap.at(c) - s.list[p].GapMedian, alone.at(c) - s.list[p].AloneMedian} {
				if excess >= s.out.Threshold {
					list = append(list, hiccup{int64(p), int64(part), int64(s.in.Units.Units[unit].Number), excess})
				}
			}
		}
	}
	lists.Sort(list, func(a, b hiccup) int { return cmp.Compare(b.excess, a.excess) })
	s.out.HiccupCount = int64(len(list))
	for _, h := range list[:min(len(list), maxHiccups)] {
		s.out.Hiccups = append(s.out.Hiccups, h.position, h.part, h.unit, h.excess)
	}
}
