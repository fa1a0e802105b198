package ranks

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

const (
	// SampleSize is how many collectives of each communicator a sample takes by their numbers.
	SampleSize = 64
	// stretch is how many consecutive collectives a sample takes at a time: what a rank did between two of them is
	// known, and captures that begin some collectives apart still share most of a stretch.
	stretch = 16
	// byTime is how many additional stretches, of half the length, begin at times that all hosts share, multiples of
	// markEvery ns since 1970: captures that begin many collectives apart share those.
	byTime    = 2
	markEvery = 1 << 27
	// maxBetween is how many other calls a sample takes.
	maxBetween = 32
	// maxParts is how many activities before a call a sample keeps; the last one then includes the rest.
	maxParts = 3
	// grain is the resolution of a sample's times, in ns: clocks of hosts differ by more.
	grain = 100
)

// Sample returns a track with some of the collectives and the calls between them. It takes the same ones on every rank,
// chosen by a hash of the communicator and the collective's number in it. A track with few calls keeps all. session is
// when the capture began, in ns since 1970; 0 unknown.
func (t *Track) Sample(session int64) *Track {
	of := make([][]int32, len(t.Comms)+1) // by communicator; the last list has those without one
	for i := range t.Calls {
		if t.synchronises(i) {
			c := t.comm(i)
			of[c] = append(of[c], int32(i))
		}
	}
	keep := make([]bool, len(t.Calls))
	number := make([]int32, len(t.Calls)) // of other calls: number of the collective before
	out := &Track{Rank: t.Rank, World: t.World, From: t.From, PID: t.PID, Device: t.Device}
	between := 0
	for c, calls := range of {
		for n, i := range calls {
			number[i] = int32(n)
		}
		for _, from := range t.stretches(lists.Nth(t.Comms, c, ""), calls, session) {
			part := calls[from.at:min(from.at+from.n, len(calls))]
			for _, i := range part {
				keep[i] = true
			}
			for i := part[0]; i < part[len(part)-1]; i++ {
				if !keep[i] && !t.synchronises(int(i)) && between < maxBetween {
					keep[i] = true
					between++
				}
			}
		}
	}
	for i := range t.Calls {
		if i > 0 && !t.synchronises(i) {
			number[i] = number[i-1]
		}
		if !keep[i] {
			continue
		}
		c := t.Calls[i]
		if c.Comm >= 0 {
			c.Comm = out.Communicator(t.Comms[c.Comm], t.local(c.Comm))
		}
		c.Seq, c.Left = number[i], i > 0 && !keep[i-1]
		c.Kind = lists.Place[int32](&out.Kinds, t.Kinds[c.Kind])
		c.Start, c.End, c.Hidden = round(c.Start), round(c.End), round(c.Hidden)
		out.Add(c, out.fewer(t.Parts(i), t.Acts))
	}
	for _, name := range out.Comms {
		out.Total = append(out.Total, int64(len(of[slices.Index(t.Comms, name)])))
	}
	out.Total = append(out.Total, int64(len(of[len(t.Comms)])))
	out.count()
	return out
}

// run is n consecutive collectives.
type run struct{ at, n int }

// stretches returns the collectives of a communicator that a sample takes.
func (t *Track) stretches(comm string, calls []int32, session int64) (list []run) {
	switch {
	case len(calls) == 0:
		return nil
	case len(calls) <= SampleSize:
		return []run{{0, len(calls)}}
	}
	for _, k := range least(comm, lists.Indexes[int](len(calls)/stretch), SampleSize/stretch) {
		list = append(list, run{k * stretch, stretch})
	}
	if session == 0 {
		return list
	}
	end := func(i int) int64 { return session + t.Calls[calls[i]].End }
	var marks []int64
	for k := (end(0)-1)/markEvery + 1; k <= end(len(calls)-stretch)/markEvery && len(marks) < 1<<16; k++ {
		marks = append(marks, k)
	}
	for _, k := range least(comm, marks, byTime) {
		at, _ := slices.BinarySearchFunc(calls, k*markEvery, func(c int32, mark int64) int {
			return cmp.Compare(session+t.Calls[c].End, mark)
		})
		list = append(list, run{at, stretch / 2})
	}
	return list
}

// least returns the n numbers with the smallest hashes.
func least[N int | int64](comm string, list []N, n int) []N {
	lists.Sort(list, func(a, b N) int { return cmp.Compare(hash(comm, uint64(a)), hash(comm, uint64(b))) })
	return list[:min(n, len(list))]
}

func hash(comm string, n uint64) uint64 {
	h := fnv.New64a()
	h.Write([]byte(comm))
	h.Write(binary.LittleEndian.AppendUint64([]byte{0}, n))
	v := h.Sum64() // consecutive numbers give consecutive upper bits
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	return v ^ v>>33
}

// fewer keeps the longest parts; the last one kept includes the rest.
func (t *Track) fewer(parts []Part, acts []string) []Part {
	parts = slices.Clone(parts)
	lists.Sort(parts, func(a, b Part) int { return cmp.Compare(b.Time, a.Time) })
	for len(parts) > maxParts {
		last := len(parts) - 1
		parts[maxParts-1].Time += parts[last].Time
		parts = parts[:last]
	}
	for i := range parts {
		parts[i].Time = round(parts[i].Time)
		parts[i].Act = lists.Place[int32](&t.Acts, acts[parts[i].Act])
	}
	return parts
}

func round(ns int64) int64 { return (ns + grain/2) / grain * grain }

// comm is the index of a call's communicator, or len(t.Comms) if the call names none.
func (t *Track) comm(i int) int {
	if c := t.Calls[i].Comm; c >= 0 {
		return int(c)
	}
	return len(t.Comms)
}

// count counts the collectives of a sample, in total and by communicator.
func (t *Track) count() {
	t.kept = make([]int64, len(t.Comms)+1)
	for i := range t.Calls {
		if t.synchronises(i) {
			t.kept[t.comm(i)]++
		}
	}
}

// weight is how many calls one call of a sample represents.
func (t *Track) weight(i int) float64 {
	if t.Total == nil {
		return 1
	}
	if t.synchronises(i) {
		c := t.comm(i)
		return float64(t.Total[c]) / float64(t.kept[c])
	}
	all, kept := t.Sampled()
	return float64(max(1, all)) / float64(max(1, kept))
}

// Sampled returns how many collectives the track had, and how many it still has.
func (t *Track) Sampled() (all, kept int64) {
	if t.Total == nil {
		for i := range t.Calls {
			if t.synchronises(i) {
				all++
			}
		}
		return all, all
	}
	for c := range t.Total {
		all, kept = all+t.Total[c], kept+t.kept[c]
	}
	return all, kept
}
