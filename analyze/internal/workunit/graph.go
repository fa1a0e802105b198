package workunit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Bounds of finding units by graph launches.
const (
	minLaunches   = 3   // of one graph
	minGraphShare = 0.5 // of the compute time, inside graphs
	minUnits      = 0.3 // of the compute time, in units, whichever way they were found
	maxAnchors    = 64
)

// launch is one run of a CUDA graph on a track.
type launch struct {
	at    int32 // of the pieces of the track: its first work
	graph int32 // number of the graph, by first appearance
	time  int64
	hash  uint64
}

// graphLaunches lists the runs of CUDA graphs, traced either as a whole or by nodes, which share a correlation id.
// Graphs traced as a whole are identified by their executable, others by their kernels.
func graphLaunches(tr *trace.Trace, t *track, names *symbols) (list []launch, graphs int) {
	device := t.device
	byCorr := map[int64]int32{}
	last, lastRow := int32(-1), 0
	for at := range t.n {
		i := t.piece(at)
		row := device.Row(i)
		switch {
		case device.Kind(i) == timeline.GraphWork:
			exec := tr.Graphs.Exec(row)
			if exec < 0 {
				exec = tr.Graphs.Graph(row)
			}
			list = append(list, launch{at: at, time: device.End(i) - device.Start(i), hash: Mix(uint64(exec) + 1)})
		case device.Kind(i) == timeline.KernelWork && tr.Kernels.InGraph(row) && tr.Kernels.Corr(row) >= 0:
			corr := tr.Kernels.Corr(row)
			if last < 0 || tr.Kernels.Corr(lastRow) != corr { // the kernels of a launch mostly follow each other
				k, ok := byCorr[corr]
				if !ok {
					k = int32(len(list))
					byCorr[corr] = k
					list = append(list, launch{at: at})
				}
				last, lastRow = k, row
			}
			list[last].time += device.End(i) - device.Start(i)
			list[last].hash += names.hash[names.at(device, i)]
		}
	}
	slices.SortFunc(list, func(a, b launch) int { return cmp.Compare(a.at, b.at) })
	var hashes lists.Numbering[uint64]
	for i := range list {
		list[i].graph = hashes.Of(list[i].hash)
	}
	return list, len(hashes.Keys)
}

// anchors returns the launches that start units. The graph with the most time is an anchor. Graphs that run in most of
// its units are parts of the same step (piecewise graphs); other graphs are the same step at another batch size, and
// anchors too.
func anchors(list []launch, graphs int) []cut {
	time, count := make([]int64, graphs), make([]int, graphs)
	for i := range list {
		time[list[i].graph] += list[i].time
		count[list[i].graph]++
	}
	order := lists.Indexes[int32](graphs)
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(time[b], time[a]), cmp.Compare(a, b)) })
	isAnchor, isPart := make([]bool, graphs), make([]bool, graphs)
	chosen := 0
	for _, g := range order {
		if isAnchor[g] || isPart[g] || count[g] < minLaunches || chosen == maxAnchors {
			continue
		}
		isAnchor[g] = true
		chosen++
		// number of units of g in which each graph ran; last unit counted for it
		in, last := make([]int, graphs), make([]int, graphs)
		unit, inside := 0, false
		for i := range list {
			l := list[i].graph
			switch {
			case l == g:
				unit, inside = unit+1, true
			case isAnchor[l]:
				inside = false
			case inside && last[l] != unit:
				last[l] = unit
				in[l]++
			}
		}
		for l := range in {
			if !isAnchor[l] && in[l]*2 >= unit {
				isPart[l] = true
			}
		}
	}
	var cuts []cut
	var kinds lists.Numbering[int32]
	for i := range list {
		if g := list[i].graph; isAnchor[g] {
			cuts = append(cuts, cut{at: list[i].at, kind: kinds.Of(g) + 1})
		}
	}
	return cuts
}

// byGraph finds units by the launches of CUDA graphs; nil if graphs have less than minShare of the compute time.
func (f *Search) byGraph(minShare float64) *Result {
	if f.Trace.Graphs.Len() == 0 && !f.Trace.Kernels.InGraphs() {
		return nil
	}
	s := f.slicer(&f.names)
	var inGraphs int64
	launches := 0
	for _, t := range f.tracks {
		list, graphs := graphLaunches(f.Trace, t, &f.names)
		inGraphs += lists.Sum(list, func(l launch) int64 { return l.time })
		cuts := anchors(list, graphs)
		if len(cuts) < minLaunches {
			continue
		}
		s.add(t, cuts)
		launches += len(cuts)
	}
	share := float64(inGraphs) / float64(max(computed(f.tracks), 1))
	if launches == 0 || share < minShare {
		return nil
	}
	mode := "by their nodes"
	if f.Trace.Graphs.Len() > 0 {
		mode = "as a whole"
	}
	r := f.sliced(s, KindGraph, "CUDA graph launch", fmt.Sprintf(
		"no step marker; CUDA graphs, traced %s, run %.2f of the compute time, and a unit runs from one launch of the graph with most time (or of the same step at another size) to the next, %d launches", mode, share, launches))
	if !f.sound(r) && (minShare > 0 || r.Primary < 0) {
		return nil
	}
	return r
}

// computed is the compute time of tracks, ns.
func computed(tracks []*track) int64 {
	return lists.Sum(tracks, func(t *track) int64 { return t.time })
}

// sound reports whether units can be believed: kept and warm-up units and those that an end of the capture cut must
// hold at least minUnits of the compute time. A cut unit that is much larger than kept ones does not count. It sets
// r.Coverage.
func (f *Search) sound(r *Result) bool {
	kept := r.grouped()
	if len(kept) == 0 {
		return false
	}
	largest := lists.Most(kept, func(u int32) int32 { return r.Units[u].comp })
	var time int64
	for i := range r.Units {
		if u := &r.Units[i]; u.State == Kept || u.State == Warmup || u.State == Cut && u.comp <= largest+largest/5 {
			time += u.busy
		}
	}
	r.Coverage = float64(time) / float64(max(1, computed(f.tracks)))
	return r.Coverage >= minUnits
}
