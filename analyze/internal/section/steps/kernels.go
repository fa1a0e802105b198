package steps

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Bounds that keep report.json small.
const (
	maxUnitKernels   = 150 // of the primary group
	maxPhaseKernels  = 40  // of each other phase
	maxKindKernels   = 24  // of each further kind of unit
	maxUnitNameBytes = 48 << 10
)

// graphLabel stands for CUDA graphs that were traced as a whole, in place of the kernels they hide.
const graphLabel = "[CUDA graph]"

// part is some time of one kernel name in one unit of a set, of one or more pieces of work.
type part struct {
	name, unit int32
	count, ns  int64
}

// parts gathers times by name and unit. Work of one unit mostly comes together, so that most of the time of a name goes
// into one part.
type parts struct {
	pieces [][]part // of partsPiece each, so that nothing is moved when there is more
	last   []*part  // by name
}

const partsPiece = 1 << 10

func newParts(names int) *parts { return &parts{last: make([]*part, names)} }

func (p *parts) add(name, unit int32, ns int64) {
	if x := p.last[name]; x != nil && x.unit == unit {
		x.count++
		x.ns += ns
		return
	}
	n := len(p.pieces) - 1
	if n < 0 || len(p.pieces[n]) == partsPiece {
		p.pieces = append(p.pieces, make([]part, 0, partsPiece))
		n++
	}
	p.pieces[n] = append(p.pieces[n], part{name, unit, 1, ns})
	p.last[name] = &p.pieces[n][len(p.pieces[n])-1]
}

func (p *parts) each(visit func(x *part)) {
	for _, piece := range p.pieces {
		for i := range piece {
			visit(&piece[i])
		}
	}
}

// unitWork is the kernels of a set of units: name by name, and unit by unit. The number after the last kernel's name
// stands for CUDA graphs traced as a whole.
type unitWork struct {
	names     int
	units     int
	time      *parts // durations, of the work that belongs to the unit
	exclusive *parts // time that is this kernel's alone, between the unit's start and end
}

// unitWorkOf goes through the device once for the work that belongs to the units, and once for the time between their
// start and end.
func unitWorkOf(in *kit.Input, s *unitSet) *unitWork {
	w := &unitWork{names: len(in.Trace.Kernels.Names) + 1, units: len(s.Units)}
	w.time, w.exclusive = newParts(w.names), newParts(w.names)
	eachPiece(in, s, func(d *timeline.Device, i int, unit int32) {
		if name := w.name(in, d, i); name >= 0 {
			w.time.add(name, unit, d.End(i)-d.Start(i))
		}
	}, in.Units.Of)
	w.alone(in, s)
	return w
}

// eachPiece visits the device's work of the units of a set by start, and with the place of its unit: what belongs to
// them by the first of some members that know its unit.
func eachPiece(in *kit.Input, s *unitSet, visit func(d *timeline.Device, i int, unit int32), of ...[]workunit.Members) {
	place, index := unitPlaces(in, s), in.Units.Units[s.Units[0]].Index
	device := in.Units.Timeline.Devices[index]
	var walks []workunit.Walk
	for _, members := range of {
		if members != nil {
			walks = append(walks, members[index].Walk())
		}
	}
	for i := 0; i < device.Len(); {
		u, end := trace.None, device.Len()
		for w := 0; w < len(walks) && u == trace.None; w++ {
			u, end = walks[w].Run(i, end)
		}
		if u == trace.None || place[u] == 0 {
			i = end
			continue
		}
		for at := place[u] - 1; i < end; i++ {
			visit(device, i, at)
		}
	}
}

// unitPlaces is, by unit, its place in the set plus one, or 0.
func unitPlaces(in *kit.Input, s *unitSet) []int32 {
	place := make([]int32, len(in.Units.Units))
	for k, u := range s.Units {
		place[u] = int32(k) + 1
	}
	return place
}

// name is the index of a kernel's name, or -1 for copies and memsets.
func (w *unitWork) name(in *kit.Input, d *timeline.Device, work int) int32 {
	switch d.Kind(work) {
	case timeline.KernelWork:
		return in.Trace.Kernels.Name(d.Row(work))
	case timeline.GraphWork:
		return int32(w.names - 1)
	case timeline.CopyWork, timeline.SetWork:
	}
	return -1
}

// alone attributes each moment in which kernels run to one of them, within the units of a set: to compute before
// communication, and within these to the kernel that started first.
func (w *unitWork) alone(in *kit.Input, s *unitSet) {
	d := in.Units.Timeline.Devices[in.Units.Units[s.Units[0]].Index]
	own := [2]owners{ownersOf(in, s), ownersOf(in, s)} // by class
	// By class, everything before this moment is attributed.
	given := [2]int64{math.MinInt64, math.MinInt64}
	for i := range d.Len() {
		c := int(d.Class(i))
		if c >= len(own) {
			continue
		}
		from, to := max(d.Start(i), given[c]), d.End(i)
		if from >= to {
			continue
		}
		given[c] = to
		own[c].each(from, to, func(unit int32, from, to int64) {
			ns := to - from
			if c == int(timeline.Comm) {
				ns = d.CommExposed.Within(from, to)
			}
			if ns > 0 {
				w.exclusive.add(w.name(in, d, i), unit, ns)
			}
		})
	}
}

// total adds a value of parts up by name.
func (w *unitWork) total(list *parts, value func(p *part) int64) []int64 {
	sums := make([]int64, w.names)
	list.each(func(x *part) { sums[x.name] += value(x) })
	return sums
}

// ranked are the names that have any part, by their time, largest first; equal ones by name.
func (w *unitWork) ranked(in *kit.Input) []int32 {
	time, alone := w.total(w.time, partTime), w.total(w.exclusive, partTime)
	runs, own := w.total(w.time, partCount), w.total(w.exclusive, partCount)
	list := lists.Where(w.names, func(n int32) bool { return runs[n]+own[n] > 0 })
	lists.Sort(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(max(time[b], alone[b]), max(time[a], alone[a])),
			cmp.Compare(w.label(in, a), w.label(in, b)))
	})
	return list
}

// fitting is how many of the names a report lists: the first most, as far as their bytes allow.
func (w *unitWork) fitting(in *kit.Input, names []int32, most int) int {
	room := kit.Budget{Names: most, Bytes: maxUnitNameBytes}
	for i, n := range names {
		if !room.Take(w.label(in, n)) {
			return i
		}
	}
	return len(names)
}

// label is the full name of a kernel, as in the section kernels.
func (w *unitWork) label(in *kit.Input, name int32) string {
	if int(name) == w.names-1 {
		return graphLabel
	}
	return in.Trace.Kernels.Names[name].Name
}

// info is what is known of a kernel by its name; of a CUDA graph, that it is one.
func (w *unitWork) info(in *kit.Input, name int32) *kernelname.Info {
	if int(name) == w.names-1 {
		return &kernelname.Info{Category: graphCategory, Family: graphLabel, Canonical: graphLabel}
	}
	return &in.Kinds[name]
}

// slotsOf is, for each of n numbers, its place among those listed, or -1.
func slotsOf(list []int32, n int) []int32 {
	slot := slices.Repeat([]int32{-1}, n)
	for i, at := range list {
		slot[at] = int32(i)
	}
	return slot
}

// samples adds parts up by slot and unit: slot gives, by name, the slot of its parts, or -1. A unit without a part has
// 0.
func (w *unitWork) samples(of *parts, slot []int32, slots int, value func(p *part) int64) [][]int64 {
	list := make([][]int64, slots)
	for i := range list {
		list[i] = make([]int64, w.units)
	}
	of.each(func(x *part) {
		if at := slot[x.name]; at >= 0 {
			list[at][x.unit] += value(x)
		}
	})
	return list
}

func partTime(p *part) int64  { return p.ns }
func partCount(p *part) int64 { return p.count }
