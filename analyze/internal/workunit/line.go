package workunit

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// line is a sequence of compute kernels that is searched for anchors: those of one track's main stream, or of all its
// streams.
type line struct {
	seq  []int32  // names
	time []uint32 // duration of each, ns, at most 4.29 s
	idle []uint32 // idle time before each, ns, likewise
	hash []uint64 // by name

	cost       []int64 // by name: mean time
	total, all int64   // total compute time; total idle time
	events     bool    // some kernels were discounted
}

// newLine lays out the work of a track.
func newLine(t *track, s *symbols, memory *spill.Arena) *line {
	device, n := t.device, int(t.n)
	l := &line{
		seq: spill.Make[int32](memory, n), time: spill.Make[uint32](memory, n), idle: spill.Make[uint32](memory, n),
		hash: s.hash,
	}
	var until, idle int64
	at := 0
	for k := range t.n {
		i := t.piece(k)
		start, end := device.Start(i), device.End(i)
		if k > 0 {
			idle += max(0, start-until)
		}
		until = max(until, end)
		if !t.compared(i) {
			continue
		}
		l.seq[at] = s.at(device, i)
		l.time[at], l.idle[at] = short(end-start), short(idle)
		idle = 0
		at++
	}
	l.seq = spill.Cut(memory, l.seq, at)
	l.time, l.idle = spill.Cut(memory, l.time, at), spill.Cut(memory, l.idle, at)
	l.weigh()
	return l
}

func short(ns int64) uint32 { return uint32(max(0, min(ns, math.MaxUint32))) }

// part returns part of the sequence as a line.
func (l *line) part(lo, hi int) *line {
	x := &line{seq: l.seq[lo:hi], time: l.time[lo:hi], idle: l.idle[lo:hi], hash: l.hash, events: l.events}
	x.weigh()
	return x
}

// discount gives no time to kernels of a line that run, one after the other or alone, at fewer places than units of a
// kind must have: an evaluation or a log in one step can take as long as many steps, and is no part of any.
func discount(l *line) {
	places := make([]int, len(l.hash))
	for i, s := range l.seq {
		if i == 0 || l.seq[i-1] != s {
			places[s]++
		}
	}
	for i, s := range l.seq {
		if places[s] < minRepeats {
			l.time[i], l.events = 0, true
		}
	}
	l.weigh()
}

// weigh sums up times.
func (l *line) weigh() {
	l.cost, l.total, l.all = make([]int64, len(l.hash)), 0, 0
	count := make([]int64, len(l.hash))
	for i, s := range l.seq {
		l.cost[s] += int64(l.time[i])
		count[s]++
		l.total += int64(l.time[i])
		if i > 0 {
			l.all += int64(l.idle[i])
		}
	}
	for s := range count {
		if count[s] > 0 {
			l.cost[s] /= count[s]
		}
	}
}

func (l *line) free(memory *spill.Arena) {
	spill.Free(memory, l.seq)
	spill.Free(memory, l.time)
	spill.Free(memory, l.idle)
}

// busiest is the stream of a track with the most compute time times different names, or everyStream if no other stream
// computes. Streams interleave differently from step to step even if each of them repeats exactly. The names tell a
// step from one kernel of it that takes most time on a stream of its own.
func (t *track) busiest(s *symbols) int64 {
	type stream struct{ id, time, names int64 }
	type kernel struct {
		stream int64
		name   int32
	}
	device := t.device
	streams, seen := map[int64]*stream{}, map[kernel]bool{}
	last := make([]*stream, len(s.name)) // by name: the stream on which it ran last
	var x *stream
	for k := range t.n {
		i := t.piece(k)
		if device.Class(i) != timeline.Compute {
			continue
		}
		if id := device.Stream(i); x == nil || id != x.id {
			if x = streams[id]; x == nil {
				x = &stream{id: id}
				streams[id] = x
			}
		}
		x.time += device.End(i) - device.Start(i)
		if name := s.at(device, i); last[name] != x {
			last[name] = x
			if key := (kernel{x.id, name}); !seen[key] {
				seen[key] = true
				x.names++
			}
		}
	}
	if len(streams) < 2 {
		return everyStream
	}
	return slices.MinFunc(slices.Collect(maps.Values(streams)), func(a, b *stream) int {
		return cmp.Or(cmp.Compare(b.time*b.names, a.time*a.names), cmp.Compare(a.id, b.id))
	}).id
}

// compared reports whether a piece of the device's work counts when the track's units are compared.
func (t *track) compared(i int) bool {
	return t.device.Class(i) == timeline.Compute && (t.stream == everyStream || t.device.Stream(i) == t.stream)
}

// Mix spreads the bits of x: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// gram is one to three consecutive names that occur several times.
type gram struct {
	width  int
	lo, hi int32 // range in the positions of its width
	score  float64
	idle   float64 // share of the idle time that is just before the unit
	skip   int32   // index of the name at which the unit starts, from 0; not 0 if the GPU waits inside
}

func (g *gram) count() int { return int(g.hi - g.lo) }

// grams are all grams of a sequence, with their positions.
type grams struct {
	list []gram
	pos  [maxWidth + 1][]int32 // by width: positions, grouped by gram
}

// at returns the positions where units start.
func (g *grams) at(x *gram) []int32 { return later(g.pos[x.width][x.lo:x.hi], x.skip) }

// later shifts positions by some kernels.
func later(pos []int32, skip int32) []int32 {
	if skip == 0 {
		return pos
	}
	return lists.Map(pos, func(p int32) int32 { return p + skip })
}

// newGrams lists the grams of a line that occur at least minRepeats times.
func newGrams(l *line) *grams {
	g := &grams{}
	ids, kinds := l.seq, len(l.cost)
	for width := 1; width <= min(maxWidth, len(l.seq)); width++ {
		if width > 1 {
			ids, kinds = longer(ids, l.seq[width-1:])
		}
		offset := make([]int32, kinds+1)
		for _, id := range ids {
			offset[id+1]++
		}
		for id := range kinds {
			offset[id+1] += offset[id]
			if offset[id+1]-offset[id] >= minRepeats {
				g.list = append(g.list, gram{width: width, lo: offset[id], hi: offset[id+1]})
			}
		}
		at, pos := slices.Clone(offset[:kinds]), make([]int32, len(ids))
		for i, id := range ids {
			pos[at[id]] = int32(i)
			at[id]++
		}
		g.pos[width] = pos
	}
	return g
}

// longer numbers each pair of a gram and the name after it.
func longer(ids, next []int32) (pairs []int32, kinds int) {
	number := make(map[uint64]int32)
	pairs = make([]int32, len(next))
	for i, s := range next {
		key := uint64(uint32(ids[i]))<<32 | uint64(uint32(s))
		id, ok := number[key]
		if !ok {
			id = int32(len(number))
			number[key] = id
		}
		pairs[i] = id
	}
	return pairs, len(number)
}
