package workunit

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Search looks for the units of one capture, in one or several ways. The ways share data, which stays in memory until
// [Search.Free].
type Search struct {
	*Input
	names    symbols // canonical names
	families symbols
	tracks   []*track
	missing  []hole
	of       owned  // of the present attempt; nil before the first
	lines    layout // of the last sequence that was searched
	own      *ownRanges
}

// symbols numbers names in sorted order, so that the numbers of two captures of one program sort alike.
type symbols struct {
	kernels *trace.Kernels
	of      []int32 // by kernel name
	hash    []uint64
	name    []string
}

// graphName stands for a CUDA graph that was traced as a whole.
const graphName = "[CUDA graph]"

// track is the work of one process on one device. Two processes on one device have separate sequences.
type track struct {
	device *timeline.Device
	index  int // of the device in the timeline
	proc   int32
	n      int32   // pieces of work
	work   []int32 // their indexes into the device's work, in order; nil: the track is all the device's work
	comp   int     // number of compute kernels and whole graphs in work
	time   int64   // total duration of those, ns
	main   int64   // stream with most compute time, or everyStream
	stream int64   // stream on which units are compared, or everyStream
}

// piece is the index into the device's work of the k-th piece of a track.
func (t *track) piece(k int32) int {
	if t.work == nil {
		return int(k)
	}
	return int(t.work[k])
}

// everyStream stands for all streams of a track. CUPTI counts streams from 0, and -1 is an unknown stream.
const everyStream = -2

// NewSearch prepares a search.
func NewSearch(in *Input) *Search {
	f := &Search{Input: in}
	kernels := &in.Trace.Kernels
	f.names = number(kernels, lists.Map(in.Kinds, func(k kernelname.Info) string { return k.Canonical }))
	f.families = number(kernels, lists.Map(in.Kinds, func(k kernelname.Info) string { return k.Family }))
	parallel.Do(
		func() { f.missing = holes(in.Trace, in.Calls) },
		func() {
			for d := range in.Timeline.Devices {
				f.tracks = append(f.tracks, tracksOf(in.Trace, in.Timeline.Devices[d], d)...)
			}
		})
	return f
}

// number gives equal names of kernels equal symbols; the last one is graphName's.
func number(kernels *trace.Kernels, names []string) symbols {
	distinct := slices.Compact(slices.Sorted(slices.Values(names)))
	of := lists.Map(names, func(name string) int32 {
		at, _ := slices.BinarySearch(distinct, name)
		return int32(at)
	})
	distinct = append(distinct, graphName)
	return symbols{kernels: kernels, of: of, hash: lists.Map(distinct, hashText), name: distinct}
}

// find returns the symbol of a name.
func (s *symbols) find(name string) (symbol int32, ok bool) {
	n := len(s.name) - 1
	if name == graphName {
		return int32(n), true
	}
	at, ok := slices.BinarySearch(s.name[:n], name)
	return int32(at), ok
}

func hashText(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s)) // never fails
	return Mix(h.Sum64())
}

// at returns the symbol of a device's i-th piece of work if it is a kernel or a graph, else -1.
func (s *symbols) at(d *timeline.Device, i int) int32 {
	switch d.Kind(i) {
	case timeline.KernelWork:
		return s.of[s.kernels.Name(d.Row(i))]
	case timeline.GraphWork:
		return int32(len(s.name) - 1)
	case timeline.CopyWork, timeline.SetWork:
	}
	return -1
}

// tracksOf splits a device's work by process.
func tracksOf(tr *trace.Trace, device *timeline.Device, index int) (list []*track) {
	n := device.Len()
	counts := make([]int, len(tr.Procs)+1) // the last is the unknown process
	place := func(i int) int {
		if p := device.Proc(i); p != trace.None {
			return int(p)
		}
		return len(tr.Procs)
	}
	for i := range n {
		counts[place(i)]++
	}
	of := make([]*track, len(counts))
	for p, c := range counts {
		if c == 0 {
			continue
		}
		t := &track{device: device, index: index, proc: int32(p), n: int32(c), main: everyStream, stream: everyStream}
		if c < n {
			t.work = spill.Make[int32](tr.Memory(), c)[:0]
		}
		if p == len(tr.Procs) {
			t.proc = trace.None
		}
		of[p] = t
		list = append(list, t)
	}
	for i := range n {
		t := of[place(i)]
		if t.work != nil {
			t.work = append(t.work, int32(i))
		}
		if device.Class(i) == timeline.Compute {
			t.comp++
			t.time += device.End(i) - device.Start(i)
		}
	}
	return list
}

// owned is the unit of each piece of work, by device, or trace.None.
type owned []spill.Indexes

func newOwned(memory *spill.Arena, tl *timeline.Timeline) owned {
	of := make(owned, len(tl.Devices))
	for d := range of {
		of[d] = spill.NewIndexes(memory, tl.Devices[d].Len())
	}
	return of
}

// free gives up the results of an attempt.
func (of *owned) free() {
	for d := range *of {
		(*of)[d].Free()
	}
	*of = nil
}

// renumber gives the work of each unit to the one in its place.
func (of owned) renumber(place []int32) {
	parallel.Each(len(of), func(d int) {
		for w := range of[d].Len() {
			if u := of[d].At(w); u != trace.None {
				of[d].Set(w, place[u])
			}
		}
	})
}

// begin begins an attempt: no piece of work has a unit.
func (f *Search) begin() {
	f.of.free()
	f.of = newOwned(f.Trace.Memory(), f.Timeline)
}

// Free releases what only the search needs. Results remain valid.
func (f *Search) Free() {
	f.lines.free(f.Trace.Memory())
	for _, t := range f.tracks {
		spill.Free(f.Trace.Memory(), t.work)
	}
	f.tracks = nil
}

// find tries one way after the other, the most certain first: the user's choice, step markers, CUDA graph launches, the
// program's own ranges, a recurring sequence of kernels.
func (f *Search) find() *Result {
	if len(f.tracks) == 0 {
		return &Result{Kind: KindNone, Why: "the capture holds no GPU work"}
	}
	switch f.Spec.Kind {
	case KindNone:
		return &Result{Kind: KindNone, Why: "switched off with --unit none"}
	case KindNVTX:
		return f.byUserRange()
	case KindKernel:
		return f.byUserKernel()
	case KindGraph:
		if r := f.byGraph(0); r != nil {
			r.Why = "asked for with --unit graph: " + r.Why
			return r
		}
		return &Result{Kind: KindNone,
			Why: "--unit graph: the capture has no CUDA graph that was launched at least three times"}
	}
	byGraph := func() *Result { return f.byGraph(minGraphShare) }
	for _, way := range []func() *Result{f.byMarkers, byGraph, f.byRanges} {
		if r := way(); r != nil {
			return r
		}
		f.of.free()
	}
	return f.bySequence()
}

// sorted sorts units by device, process and start, and returns the new place of each.
func sorted(units []Unit) (list []Unit, place []int32) {
	index := lists.Indexes[int32](len(units))
	slices.SortFunc(index, func(a, b int32) int {
		x, y := &units[a], &units[b]
		return cmp.Or(cmp.Compare(x.Index, y.Index), cmp.Compare(x.Proc, y.Proc), cmp.Compare(x.Start, y.Start),
			cmp.Compare(a, b))
	})
	list, place = make([]Unit, len(units)), make([]int32, len(units))
	for i, at := range index {
		list[i] = units[at]
		place[at] = int32(i)
	}
	return list, place
}
