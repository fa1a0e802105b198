package workunit

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/spill"
)

// line is a sequence of compute kernels in which anchors are looked for: those of one track's main stream, or of
// all its streams. What it adds up from the start, of time, of names and of idle time, tells of any stretch in
// constant time what ran in it.
type line struct {
	seq   []int32  // names
	time  []int64  // before each place, and at the end
	names []uint64 // before each place, and at the end: hashes of names added up
	lanes []uint64 // the same in eight bytes, each for an eighth of the names
	idle  []int64  // before each place, since the one before
	cost  []int64  // by name: mean duration
	lane  [lanes]float64
	all   int64 // idle time, together
}

// lanes is into how many parts the names are divided. Units that differ in one kernel still agree in most parts.
const lanes = 8

// newLine lays out the work of a track, given by its places in the device's work.
func (f *finder) newLine(t *track, s *symbols) *line {
	device, memory, n := f.device(t), f.Trace.Memory(), len(t.line)
	l := &line{
		seq: spill.Make[int32](memory, n), time: spill.Make[int64](memory, n+1), names: spill.Make[uint64](memory, n+1),
		lanes: spill.Make[uint64](memory, n+1), idle: spill.Make[int64](memory, n),
		cost: make([]int64, len(s.name)),
	}
	l.time[0], l.names[0], l.lanes[0] = 0, 0, 0
	times := make([]int64, n)
	var until, idle int64
	at := 0
	for k, w := range t.work {
		i := int(w)
		start, end := device.Start(i), device.End(i)
		if k > 0 {
			idle += max(0, start-until)
			until = max(until, end)
		} else {
			until = end
		}
		if at == n || t.line[at] != w {
			continue
		}
		l.seq[at], times[at] = f.symbol(s, device, i), end-start
		l.idle[at] = idle
		if at > 0 {
			l.all += idle
		}
		idle = 0
		at++
	}
	l.sum(times, func(name int32) uint64 { return s.hash[name] })
	return l
}

// sum fills in what is added up.
func (l *line) sum(times []int64, hash func(name int32) uint64) {
	count := make([]int64, len(l.cost))
	for i, s := range l.seq {
		h := hash(s)
		lane := h >> 56 % lanes
		l.time[i+1] = l.time[i] + times[i]
		l.names[i+1] = l.names[i] + h
		l.lanes[i+1] = addLane(l.lanes[i], lane, h)
		l.cost[s] += times[i]
		count[s]++
		l.lane[lane] += float64(times[i])
	}
	for s := range count {
		if count[s] > 0 {
			l.cost[s] /= count[s]
		}
	}
	if total := float64(l.time[len(l.seq)]); total > 0 {
		for i := range l.lane {
			l.lane[i] /= total
		}
	}
}

// addLane adds the low byte of h to one of the eight bytes, without carrying into the next.
func addLane(x, lane, h uint64) uint64 {
	shift := lane * 8
	return x&^(0xFF<<shift) | (x>>shift+h)&0xFF<<shift
}

// laneOf is the byte of the stretch between two sums.
func laneOf(from, to uint64, lane int) byte { return byte(to>>(lane*8)) - byte(from>>(lane*8)) }

func (l *line) free(f *finder) {
	memory := f.Trace.Memory()
	spill.Free(memory, l.seq)
	spill.Free(memory, l.time)
	spill.Free(memory, l.names)
	spill.Free(memory, l.lanes)
	spill.Free(memory, l.idle)
}

// mainStreams reduces the sequence of each track to the stream with most compute time, and reports whether any
// track has others. How streams interleave differs from step to step even where each of them repeats exactly.
func (f *finder) mainStreams() (several bool) {
	for k := range f.tracks {
		t := &f.tracks[k]
		device := f.device(t)
		time := map[int64]int64{}
		for _, w := range t.comp {
			time[device.Stream(int(w))] += device.End(int(w)) - device.Start(int(w))
		}
		t.line, t.stream = t.comp, everyStream
		if len(time) < 2 {
			continue
		}
		several = true
		streams := make([]int64, 0, len(time))
		for s := range time {
			streams = append(streams, s)
		}
		main := slices.MinFunc(streams, func(a, b int64) int {
			return cmp.Or(cmp.Compare(time[b], time[a]), cmp.Compare(a, b))
		})
		t.line, t.stream = make([]int32, 0, len(t.comp)), main
		for _, w := range t.comp {
			if device.Stream(int(w)) == main {
				t.line = append(t.line, w)
			}
		}
	}
	return several
}

// allStreams takes all compute of each track as its sequence.
func (f *finder) allStreams() {
	for k := range f.tracks {
		f.tracks[k].line, f.tracks[k].stream = f.tracks[k].comp, everyStream
	}
}

// onLine reports whether a piece of work counts when units of the track are told apart.
func onLine(device *attrib.Device, i int, t *track) bool {
	return device.Class(i) == attrib.Compute && (t.stream == everyStream || device.Stream(i) == t.stream)
}

// mix spreads the bits of x (splitmix64's finaliser).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xBF58476D1CE4E5B9
	x ^= x >> 27
	x *= 0x94D049BB133111EB
	return x ^ x>>31
}
