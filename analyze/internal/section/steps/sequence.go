package steps

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report/align"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// sequence aligns the kernels of the units of a set, or of a sample of them, with those of the median unit. Kernels of
// one stream keep their order from unit to unit, those of several streams interleave at random: so they are aligned
// stream by stream, unless streams change from unit to unit.
type sequence struct {
	in       *kit.Input
	all      *unitSet
	set      *unitSet // those of all that are aligned
	device   *timeline.Device
	work     []int32 // the kernels of all units, unit by unit, each by start: numbers of the device's work
	from     []int32 // by unit: where its kernels start in work; one more at the end
	at       []int32 // by place in work: the position, or -1
	median   int     // the unit that defines the positions
	families []int64 // by kernel name: the key of its family; nil if that is the name
	// positions of the median unit, in the order of their start: their work.
	positions []int32
}

// maxUnitEdits bounds how much a unit may differ from the median one before its middle is left unaligned.
const maxUnitEdits = 400

func newSequence(in *kit.Input, s *unitSet) *sequence {
	x := in.Units
	index := x.Units[s.Units[0]].Index
	q := &sequence{in: in, all: s, set: s.sample(), device: x.Timeline.Devices[index]}
	if x.Period.Families {
		q.families = kit.Once(in, "kernel families", func() []int64 { return families(in.Kinds) })
	}
	q.gather()
	single, perStream := q.hashes()
	_, alike := occurrences(single)
	_, alikePerStream := occurrences(perStream)
	byStream := alikePerStream > alike
	if !byStream {
		perStream = single
	}
	q.median = q.nearMedian(perStream)
	q.positions = q.work[q.from[q.median]:q.from[q.median+1]]
	q.place(perStream, byStream)
	return q
}

// free releases the memory that grows with the capture.
func (q *sequence) free() {
	memory := q.in.Trace.Memory()
	spill.Free(memory, q.work)
	spill.Free(memory, q.at)
}

// kernelsOf visits the kernels of units, and for each the place of its unit in the set: those that belong to it, and
// those launched between its marker and the next.
func kernelsOf(in *kit.Input, s *unitSet, visit func(i int, unit int32)) {
	eachPiece(in, s, func(d *timeline.Device, i int, unit int32) {
		if k := d.Kind(i); k == timeline.KernelWork || k == timeline.GraphWork {
			visit(i, unit)
		}
	}, in.Units.Of, in.Units.Between)
}

// gather lists the kernels of each unit.
func (q *sequence) gather() {
	memory := q.in.Trace.Memory()
	q.from = make([]int32, len(q.set.Units)+1)
	kernelsOf(q.in, q.set, func(_ int, unit int32) { q.from[unit+1]++ })
	for u := range q.set.Units {
		q.from[u+1] += q.from[u]
	}
	next := slices.Clone(q.from)
	q.work = spill.Make[int32](memory, int(q.from[len(q.set.Units)]))
	q.at = spill.Make[int32](memory, len(q.work))
	kernelsOf(q.in, q.set, func(i int, unit int32) {
		q.work[next[unit]] = int32(i)
		next[unit]++
	})
}

// key identifies kernels: by name, or by family if names of the same work differ from step to step.
func (q *sequence) key(work int32) int64 {
	if q.device.Kind(int(work)) == timeline.GraphWork {
		return -1
	}
	name := q.in.Trace.Kernels.Name(q.device.Row(int(work)))
	if q.families != nil {
		return q.families[name]
	}
	return int64(name)
}

// families numbers kernels by their family, by name.
func families(kinds []kernelname.Info) []int64 {
	var numbers lists.Numbering[string]
	return lists.Map(kinds, func(k kernelname.Info) int64 { return int64(numbers.Of(k.Library + "\x00" + k.Family)) })
}

// hashes identify units with equal sequences, by unit: of all kernels by start, and stream by stream.
func (q *sequence) hashes() (single, perStream []uint64) {
	single, perStream = make([]uint64, len(q.set.Units)), make([]uint64, len(q.set.Units))
	streams := map[int64]uint64{}
	for u := range q.set.Units {
		clear(streams)
		for _, w := range q.work[q.from[u]:q.from[u+1]] {
			key := q.key(w)
			single[u] = mix(single[u], key)
			stream := q.device.Stream(int(w))
			streams[stream] = mix(streams[stream], key)
		}
		for stream, h := range streams { // in any order
			perStream[u] += mix(h, stream)
		}
	}
	return single, perStream
}

// mix adds a number, which may be 0, to a hash.
func mix(h uint64, v int64) uint64 { return workunit.Mix((h ^ uint64(v)) + 0x9e3779b97f4a7c15) }

// occurrences counts how often each value occurs, and the most common one.
func occurrences(list []uint64) (counts map[uint64]int, most int) {
	counts = map[uint64]int{}
	for _, v := range list {
		counts[v]++
		most = max(most, counts[v])
	}
	return counts, most
}

// nearMedian is the unit of the most common sequence whose time is nearest to the median, the earlier if two are equal.
func (q *sequence) nearMedian(hashes []uint64) int {
	counts, most := occurrences(hashes)
	best, away := 0, math.Inf(1)
	for u, unit := range q.set.Units {
		d := math.Abs(float64(q.in.Units.Units[unit].Time()) - q.set.P50)
		if counts[hashes[u]] == most && d < away {
			best, away = u, d
		}
	}
	return best
}

// place finds the position of every kernel of every unit.
func (q *sequence) place(hashes []uint64, byStream bool) {
	type lane struct{ keys, places []int32 }
	var numbers lists.Numbering[int64]
	lanes := func(u int) *kit.Tally[int64, lane] { // by stream
		list := kit.NewTally[int64, lane]()
		lo, hi := q.from[u], q.from[u+1]
		for i := lo; i < hi; i++ {
			stream := int64(0)
			if byStream {
				stream = q.device.Stream(int(q.work[i]))
			}
			l := list.At(stream)
			l.keys, l.places = append(l.keys, numbers.Of(q.key(q.work[i]))), append(l.places, i-lo)
		}
		return list
	}
	model := lanes(q.median)
	for u := range q.set.Units {
		at := q.at[q.from[u]:q.from[u+1]]
		if !byStream && hashes[u] == hashes[q.median] {
			for i := range at {
				at[i] = int32(i)
			}
			continue
		}
		for i := range at {
			at[i] = -1
		}
		list := lanes(u)
		for n, stream := range list.Keys {
			if !model.Has(stream) {
				continue
			}
			l, m := list.Values[n], model.At(stream)
			of, _ := align.Pairs(m.keys, l.keys, maxUnitEdits)
			for k, i := range of {
				if i >= 0 {
					at[l.places[k]] = m.places[i]
				}
			}
		}
	}
}

func (q *sequence) category(work int32) string {
	if q.device.Kind(int(work)) == timeline.GraphWork {
		return graphCategory
	}
	return string(q.in.Kinds[q.in.Trace.Kernels.Name(q.device.Row(int(work)))].Category)
}

// Bounds of a sequence: the length from which it is folded, and its length afterwards at most.
const maxPositions = 6_000

// fold gives neighbours of one category on one stream one position. It returns the first work of each position, the new
// position of each old one, and how many were combined.
func (q *sequence) fold() (first, of, count []int32) {
	of = make([]int32, len(q.positions))
	last := ""
	for i, w := range q.positions {
		kind := q.category(w) + "\x00" + strconv.FormatInt(q.device.Stream(int(w)), 10)
		if len(q.positions) <= maxPositions || kind != last {
			first, count = append(first, w), append(count, 0)
		}
		last = kind
		of[i] = int32(len(first) - 1)
		count[of[i]]++
	}
	if each := (len(first)-1)/maxPositions + 1; each > 1 { // still too many: so many neighbours each
		n := (len(first)-1)/each + 1
		for i := range n {
			first[i] = first[i*each]
			count[i] = lists.Total(count[i*each : min((i+1)*each, len(count))])
		}
		first, count = first[:n], count[:n]
		for i := range of {
			of[i] /= int32(each)
		}
	}
	return first, of, count
}

// owners go through the units of a set, those of each process by itself: they follow each other and do not overlap.
type owners []owner

type owner struct {
	first int32 // place of the first unit in the set
	interval.Cursor
}

func ownersOf(in *kit.Input, s *unitSet) (list owners) {
	proc := func(i int) int32 { return in.Units.Units[s.Units[i]].Proc }
	for lo := 0; lo < len(s.Units); {
		hi := lo
		for hi < len(s.Units) && proc(hi) == proc(lo) {
			hi++
		}
		list = append(list, owner{int32(lo), cursorOf(in, s.Units[lo:hi])})
		lo = hi
	}
	return list
}

// each calls visit with each part of a stretch that is in a unit, and the place of that in the set. Stretches ascend.
func (list owners) each(from, to int64, visit func(unit int32, from, to int64)) {
	for i := range list {
		if o := &list[i]; o.Advance(from, to) {
			o.Each(from, to, func(u int, from, to int64) { visit(o.first+int32(u), from, to) })
		}
	}
}

// cursorOf goes through units, which are in the order of their starts.
func cursorOf(in *kit.Input, units []int32) interval.Cursor {
	return interval.Cursor{Left: lists.Map(units, func(u int32) interval.Interval {
		return interval.Interval{Start: in.Units.Units[u].Start, End: in.Units.Units[u].End}
	})}
}

// byTimeOf orders events by start, the longer first.
func byTimeOf(aStart, aEnd, bStart, bEnd int64) int {
	return cmp.Or(cmp.Compare(aStart, bStart), cmp.Compare(bEnd, aEnd))
}
