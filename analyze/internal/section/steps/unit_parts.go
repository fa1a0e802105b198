package steps

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Bounds of the parts: about 70 kB in all.
const (
	mostPartUnits = 512    // of a kind, picked by the hash of their number: the same ones in every capture
	mostPartSets  = 8      // kinds of unit and devices
	mostPartCells = 16_384 // units times parts, over all kinds
	mostFamilies  = 16     // of kernels; the others are one sum
	leastFamily   = 0.002  // of the units' time
)

// Parts emits for each kind of unit on its slowest device, and for the main kind on every device, how the time of every
// unit was spent, see [report.UnitParts]. If there are too many kinds, those with most time.
func Parts(in *kit.Input) []*report.UnitParts {
	x := in.Units
	if x == nil || x.Kind == workunit.KindNone || x.Primary < 0 {
		return nil
	}
	k := kindsOf(in)
	others := lists.Filter(k.byTime, func(s *unitSet) bool { return s != k.main })
	order := slices.Concat([]*unitSet{k.main}, k.elsewhere(), others)
	numbers := stepNumbers(in)
	var list []*report.UnitParts
	room := mostPartCells
	for _, s := range order[:min(len(order), mostPartSets)] {
		p := partsOf(in, s, numbers)
		if n := len(p.Parts); n > 0 {
			room -= n * len(p.Parts[0].Time)
		}
		if room < 0 {
			break
		}
		list = append(list, p)
	}
	return list
}

// partsOf is how the time of the units of a set was spent.
func partsOf(in *kit.Input, s *unitSet, steps []int64) *report.UnitParts {
	x, costs := in.Units, sumsOf(in).costs
	picked := &unitSet{}
	var numbers []int64
	total := 0.0
	for _, u := range s.Units {
		n := int64(x.Units[u].Number)
		if steps != nil {
			n = steps[u]
		}
		if lists.Sampled(n, len(s.Units), mostPartUnits) {
			picked.Units, numbers = append(picked.Units, u), append(numbers, int64(x.Units[u].Number))
			total += float64(x.Units[u].Time())
		}
	}
	out := report.NewUnitParts(s.id, int64(s.Device), numbers)
	if len(picked.Units) == 0 {
		return out
	}
	for _, p := range append(familyTimes(in, picked, leastFamily*total), copyTimes(in, picked)...) {
		out.Add(p.kind, p.name, p.times)
	}
	for cause, name := range timeline.CauseNames {
		times := lists.Map(picked.Units, func(u int32) int64 { return costs[u].Cause[cause] })
		if slices.ContainsFunc(times, func(ns int64) bool { return ns != 0 }) {
			out.Add(report.PartIdle, name, times)
		}
	}
	return out
}

// partTimes is a part, unit by unit.
type partTimes struct {
	kind, name string
	total      int64
	times      []int64
}

// familyTimes are the families of kernels by exclusive time, the longest first; those below least are one sum by class.
func familyTimes(in *kit.Input, s *unitSet, least float64) []*partTimes {
	w := &unitWork{names: len(in.Trace.Kernels.Names) + 1, units: len(s.Units)}
	w.exclusive = newParts(w.names)
	w.alone(in, s)
	families := kit.NewTally[[2]string, partTimes]()
	w.exclusive.each(func(p *part) {
		kind, k := report.PartCompute, w.info(in, p.name)
		if k.Comm {
			kind = report.PartComm
		}
		x := families.At([2]string{kind, k.Family})
		if x.times == nil {
			*x = partTimes{kind: kind, name: k.Family, times: make([]int64, len(s.Units))}
		}
		x.times[p.unit] += p.ns
		x.total += p.ns
	})
	lists.Sort(families.Values, func(a, b *partTimes) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name))
	})
	var out []*partTimes
	for i, p := range families.Values {
		if i < mostFamilies && float64(p.total) >= least {
			out = append(out, p)
			continue
		}
		rest := *lists.Entry(&out, func(o *partTimes) bool { return o.kind == p.kind && o.name == "" },
			&partTimes{kind: p.kind, times: make([]int64, len(s.Units))})
		for u, ns := range p.times {
			rest.times[u] += ns
		}
	}
	return out
}

// copyTimes are the copies by direction and memory, by the time in which one runs and no kernel does; if several run,
// the time belongs to the one that started first.
func copyTimes(in *kit.Input, s *unitSet) []*partTimes {
	d := in.Units.Timeline.Devices[in.Units.Units[s.Units[0]].Index]
	units, sorts := ownersOf(in, s), kit.NewTally[copySort, partTimes]()
	type piece struct {
		from, to int64
		sort     copySort
	}
	var open []piece // of the time that copies take, in order
	first := 0       // of those that are not attributed yet: a damaged capture may have 200,000 at once
	kernels, copies := int64(math.MinInt64), int64(math.MinInt64)
	var times []int64 // of the piece that is attributed
	add := func(unit int32, from, to int64) { times[unit] += to - from }
	until := func(moment int64) {
		for first < len(open) && open[first].from < moment {
			p := &open[first]
			if from, to := max(p.from, kernels), min(p.to, moment); from < to {
				x := sorts.At(p.sort)
				if x.times == nil {
					*x = partTimes{kind: report.PartCopy, name: p.sort.name(), times: make([]int64, len(s.Units))}
				}
				times = x.times
				units.each(from, to, add)
			}
			if p.from = moment; p.to <= moment {
				first++
			}
		}
		if first == len(open) {
			open, first = open[:0], 0
		}
	}
	for i := range d.Len() {
		from, to := d.Start(i), d.End(i)
		if to <= from {
			continue
		}
		until(from)
		if d.Class(i) != timeline.Copy {
			kernels = max(kernels, to)
		} else if at := max(from, copies); to > at {
			open, copies = append(open, piece{at, to, copySortOf(in, d, i)}), to
		}
	}
	until(math.MaxInt64)
	list := lists.Filter(sorts.Values, func(p *partTimes) bool { return lists.Total(p.times) > 0 })
	lists.Sort(list, func(a, b *partTimes) int { return cmp.Compare(a.name, b.name) })
	return list
}

// copySort is the direction of a copy and the kind of its memory; -1 for a memset.
type copySort struct{ direction, memory int }

func copySortOf(in *kit.Input, d *timeline.Device, i int) copySort {
	if d.Kind(i) != timeline.CopyWork {
		return copySort{-1, -1}
	}
	c, row := &in.Trace.Copies, d.Row(i)
	return copySort{kit.Direction(c.Kind(row)), kit.CopySide(c, row)}
}

func (c copySort) name() string {
	if c.direction < 0 {
		return "memset"
	}
	return kit.Directions[c.direction] + " " + kit.MemKinds[c.memory]
}
