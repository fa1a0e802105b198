package unit

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/report"
)

// stepTimes hands every nanosecond of a set's units to a position of its sequence, to the end or to the rest.
type stepTimes struct {
	*sequence
	first []int32           // by position: its first piece of work
	of    []int32           // by place among the median unit's kernels: the position
	count []int32           // by position: how many kernels were put together
	list  []report.Position // sums; the one behind the last is the end
	rest  int64

	slot   []int32 // by the device's work: place in sequence.work plus one, or 0
	sample []int32 // by unit: its place among the sampled ones plus one, or 0
	n      int     // sampled units
	// By sampled unit and position, ns: what medians are taken of.
	gap, alone, dur, start []int64

	shown []shownUnit

	hiccups                []hiccup
	hiccupCount, threshold int64
}

// maxCells bounds the sampled units times the positions: 32 bytes each.
const maxCells = 1 << 19

// newStepTimes goes through the device four times; where units are to be shown, it finds their gaps on the way.
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
	for _, cells := range s.cells() {
		*cells = spill.Make[int64](memory, s.n*(n+1))
	}
	for i := range s.start {
		s.start[i] = math.MinInt64
	}
	s.slot = spill.Make[int32](memory, q.device.Len())
	defer spill.Free(memory, s.slot)
	for i, w := range q.work {
		s.slot[w] = int32(i) + 1
	}
	s.durations()
	s.exclusive()
	s.idle()
	s.copies()
	return s
}

func (s *stepTimes) cells() []*[]int64 { return []*[]int64{&s.gap, &s.alone, &s.dur, &s.start} }

// position of a place in work, or -1.
func (s *stepTimes) position(i int) int {
	if s.at[i] < 0 {
		return -1
	}
	return int(s.of[s.at[i]])
}

// cell of a unit at a position; nil where the unit is not sampled.
func (s *stepTimes) cell(of []int64, unit, position int) *int64 {
	k := s.sample[unit]
	if k == 0 {
		return nil
	}
	return &of[int(k-1)*len(s.list)+position]
}

func add(cell *int64, ns int64) {
	if cell != nil {
		*cell += ns
	}
}

func (s *stepTimes) durations() {
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
			add(s.cell(s.dur, u, p), to-from)
			if ran[p] == u+1 { // one of several that are folded
				continue
			}
			ran[p] = u + 1
			s.list[p].Ran++
			s.list[p].Start += from - begin
			if c := s.cell(s.start, u, p); c != nil {
				*c = from - begin
			}
		}
	}
}

// exclusive gives each moment in which kernels run to one of them, as kernel.exclusive_time_per_unit does: compute
// before communication, and of several the one that started first.
func (s *stepTimes) exclusive() {
	d := s.device
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
				if c == int(attrib.Comm) {
					ns = d.CommExposed.Within(from, to)
				}
				if ns == 0 {
					return
				}
				if k := int(s.slot[i]) - 1; k >= int(s.from[u]) && k < int(s.from[u+1]) && s.position(k) >= 0 {
					s.list[s.position(k)].Alone += ns
					add(s.cell(s.alone, u, s.position(k)), ns)
					return
				}
				s.rest += ns
			})
		}
	}
}

// follower finds what a unit runs next; moments must not go back within a unit.
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
	s.device.Sweep(func(g *attrib.Gap) {
		for i := range s.shown {
			s.shown[i].addGap(g)
		}
		for i := range list {
			f := &list[i]
			f.within(g.Start, g.End, func(u int, from, to int64) {
				p := f.after(u, to)
				causes := g.Within(from, to)
				for c, ns := range causes {
					s.list[p].Gap[c] += ns
				}
				add(s.cell(s.gap, u, p), to-from)
			})
		}
	}, nil)
}

// copies hands out the time in which copies and memsets ran and no kernel.
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
		if d.Class(i) == attrib.Copy {
			copies = max(copies, to)
		} else {
			kernels = max(kernels, to)
		}
	}
	until(math.MaxInt64)
}

// medians completes the positions by the medians over the sampled units.
func (s *stepTimes) medians() {
	values := make([]int64, 0, s.n)
	median := func(of []int64, p int, known bool) int64 {
		values = values[:0]
		for k := range s.n {
			if v := of[k*len(s.list)+p]; !known || v != math.MinInt64 {
				values = append(values, v)
			}
		}
		if len(values) == 0 {
			return 0
		}
		slices.Sort(values)
		n := len(values)
		return values[(n-1)/2] + (values[n/2]-values[(n-1)/2])/2
	}
	for p := range s.list {
		x := &s.list[p]
		x.GapMedian = median(s.gap, p, false)
		if p == len(s.list)-1 {
			return
		}
		x.AloneMedian, x.TimeMedian = median(s.alone, p, false), median(s.dur, p, false)
		x.StartMedian = median(s.start, p, true)
	}
}

// hiccup is a single gap, or kernel, that was much longer than its median.
type hiccup struct {
	position, part int
	unit           int64
	excess         int64
}

// maxHiccups bounds those that a report lists.
const maxHiccups = 64

// findHiccups keeps those of the sampled units that exceed their median by the threshold, the longest first, and counts
// them. What medians are taken of is not needed any more.
func (s *stepTimes) findHiccups(threshold int64) {
	var list []hiccup
	for u, unit := range s.set.units {
		if s.sample[u] == 0 || threshold <= 0 {
			continue
		}
		for p := range s.list {
			for part, excess := range [2]int64{
				*s.cell(s.gap, u, p) - s.list[p].GapMedian, *s.cell(s.alone, u, p) - s.list[p].AloneMedian,
			} {
				if excess >= threshold {
					list = append(list, hiccup{p, part, int64(s.in.Units.Units[unit].Number), excess})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b hiccup) int { return int(min(max(b.excess-a.excess, -1), 1)) })
	s.threshold, s.hiccupCount = threshold, int64(len(list))
	s.hiccups = list[:min(len(list), maxHiccups)]
	for _, cells := range s.cells() {
		spill.Free(s.in.Trace.Memory(), *cells)
		*cells = nil
	}
}
