package workunit

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// cut is a position where a unit starts on a track.
type cut struct {
	at   int32 // of the pieces of the track
	kind int32 // index of its anchor, if there are several
}

// slicer turns cuts into units: each lasts until the next cut.
type slicer struct {
	api   *trace.API
	names *symbols // names by which work is compared
	of    owned    // filled in
	units []Unit
	span  []slice // by unit
}

// slice is the work of a unit.
type slice struct {
	track  *track
	lo, hi int32 // range of the pieces of the track
	lead   bool  // before the first cut
	size   int32 // compute kernels and graphs
}

// add cuts one track into slices. The work before the first cut is a unit too, to be trimmed later.
func (s *slicer) add(t *track, cuts []cut) {
	if len(cuts) == 0 {
		return
	}
	s.units, s.span = slices.Grow(s.units, len(cuts)+1), slices.Grow(s.span, len(cuts)+1)
	for k := range cuts[0].at {
		if t.device.Class(t.piece(k)) == timeline.Compute {
			s.unit(t, 0, cuts[0].at, -1)
			s.span[len(s.span)-1].lead = true
			break
		}
	}
	for i, c := range cuts {
		hi := t.n
		if i+1 < len(cuts) {
			hi = cuts[i+1].at
		}
		s.unit(t, c.at, hi, c.kind)
	}
}

// Bounds of two kinds of slices that alternate.
const (
	minPairs    = 4    // pairs
	pairedShare = 0.95 // share of slices that have the size expected at their turn
	otherWork   = 0.5  // share of each slice's kernels that the other one lacks
)

// pairUp drops every second cut of a track if two kinds of slices alternate: strictly alternating slices of different
// kernels are one step that contains the anchor twice. The larger one comes first. kernels is the number of compute
// kernels in both together; 0 if they do not alternate.
func (t *track) pairUp(cuts []cut, names *symbols) (units []cut, kernels int) {
	n := len(cuts) - 1 // the last slice may be cut off
	if n < 2*minPairs {
		return cuts, 0
	}
	var turns [2][]int
	each := func(i int, visit func(symbol int32)) (size int) {
		for k := cuts[i].at; k < cuts[i+1].at; k++ {
			if w := t.piece(k); t.compared(w) {
				visit(names.at(t.device, w))
				size++
			}
		}
		return size
	}
	for i := range n {
		turns[i%2] = append(turns[i%2], each(i, func(int32) {}))
	}
	var typical, example [2]int
	fit := 0
	for k := range turns {
		sorted := slices.Sorted(slices.Values(turns[k]))
		typical[k] = sorted[len(sorted)/2]
		example[k] = 2*slices.Index(turns[k], typical[k]) + k
		for _, size := range turns[k] {
			if math.Abs(float64(size-typical[k])) <= sameWork*float64(typical[k]) {
				fit++
			}
		}
	}
	counts := map[int32]int{}
	first := each(example[0], func(symbol int32) { counts[symbol]++ })
	second := each(example[1], func(symbol int32) { counts[symbol]-- })
	both, one, other := first+second, 0, 0 // kernels that only the one has, and only the other
	for _, c := range counts {
		one, other = one+max(c, 0), other+max(-c, 0)
	}
	if float64(fit) < pairedShare*float64(n) ||
		float64(one) < otherWork*float64(first) || float64(other) < otherWork*float64(second) {
		return cuts, 0
	}
	lead := 0
	if typical[1] > typical[0] {
		lead = 1
	}
	for i := lead; i < len(cuts); i += 2 {
		units = append(units, cuts[i])
	}
	return units, both
}

func (s *slicer) unit(t *track, lo, hi, kind int32) {
	device, of := t.device, &s.of[t.index]
	first := device.Work(t.piece(lo))
	u := Unit{Device: device.ID, Index: int32(t.index), Proc: t.proc, Marker: trace.None, Group: -1, anchor: kind,
		Start: first.Start, LastWork: first.End, HostStart: 0, HostEnd: -1}
	x := slice{track: t, lo: lo, hi: hi}
	id := int32(len(s.units))
	for k := lo; k < hi; k++ {
		w := t.piece(k)
		of.Set(w, id)
		u.LastWork = max(u.LastWork, device.End(w))
		if t.compared(w) {
			u.hash += s.names.hash[s.names.at(device, w)]
			x.size++
		}
	}
	u.End = u.LastWork
	if hi < t.n {
		next := device.Work(t.piece(hi))
		u.End, u.closed = next.Start, true
		if first.Call != trace.None && next.Call != trace.None {
			u.HostStart, u.HostEnd = s.api.Start(int(first.Call)), s.api.Start(int(next.Call))
		}
	}
	s.units = append(s.units, u)
	s.span = append(s.span, x)
}

// Bounds of grouping by signature.
const (
	minGroup    = 3    // units with the same kernels that make a group
	maxGroups   = 32   // the rest is other work
	sameWork    = 0.05 // share of a unit's kernels that may differ within a group
	trifle      = 0.01 // share of its time that these may take if both forms recur
	maxCompared = 4    // groups that a unit is compared with
)

// group groups units with the same kernels, and units that differ very little: a kernel that logs every other step does
// not make another kind of step. A single unit joins a group if few of its kernels differ, else it is other work.
// Groups are sorted by time.
func (s *slicer) group() []Group {
	type key struct {
		hash   uint64
		anchor int32
	}
	type kind struct {
		key
		units, example int32
		time           int64
	}
	var keys lists.Numbering[key]
	var kinds []kind
	for i := range s.units {
		u := &s.units[i]
		if s.span[i].lead {
			continue
		}
		at := int(keys.Of(key{u.hash, u.anchor}))
		if at == len(kinds) {
			kinds = append(kinds, kind{key: keys.Keys[at], example: int32(i)})
		}
		kinds[at].units++
		kinds[at].time += u.Time()
	}
	sort.SliceStable(kinds, func(i, j int) bool {
		a, b := &kinds[i], &kinds[j]
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(b.units, a.units), cmp.Compare(a.hash, b.hash)) < 0
	})
	near := &comparer{s.span, s.names, make([]int32, len(s.names.name)), make([]int32, len(s.names.name))}
	of := make(map[key]int32, len(kinds))
	standing := kinds[:0:0]
	for _, k := range kinds {
		if k.units < minGroup {
			continue
		}
		at := slices.IndexFunc(standing[:min(len(standing), maxCompared)], func(g kind) bool {
			return g.anchor == k.anchor && near.alike(int(g.example), int(k.example), sameWork, trifle)
		})
		switch {
		case at >= 0:
			of[k.key] = int32(at)
		case len(standing) < maxGroups:
			of[k.key] = int32(len(standing))
			standing = append(standing, k)
		}
	}
	if len(standing) == 0 && len(kinds) > 0 {
		// No two are alike: the unit of median size represents all that are similar to it.
		bySize := slices.Clone(kinds)
		size := func(i int) int32 { return s.span[bySize[i].example].size }
		sort.SliceStable(bySize, func(i, j int) bool { return size(i) < size(j) })
		standing = append(standing, bySize[len(bySize)/2])
		of[standing[0].key] = 0
	}
	for i := range s.units {
		u := &s.units[i]
		if s.span[i].lead {
			u.State = Cut
			continue
		}
		if g, ok := of[key{u.hash, u.anchor}]; ok {
			u.Group = g
			continue
		}
		u.State = Other
		if !u.closed {
			u.State = Cut
		}
		for g := 0; g < min(len(standing), maxCompared); g++ {
			if standing[g].anchor == u.anchor && near.alike(i, int(standing[g].example), 2*sameWork, 1) {
				u.Group, u.State = int32(g), Kept
				break
			}
		}
	}
	s.leads(len(standing))
	return slices.Repeat([]Group{{Phase: "step", Batch: -1, Tokens: -1}}, len(standing))
}

// leads separates a first unit that was cut from a prologue, such as loading the model, by its size.
func (s *slicer) leads(groups int) {
	largest := int32(0)
	for i := range s.units {
		if s.units[i].Group >= 0 {
			largest = max(largest, s.span[i].size)
		}
	}
	for i := range s.units {
		if s.span[i].lead && s.span[i].size > largest && groups > 0 {
			s.units[i].State = Other
		}
	}
}

// comparer compares the kernels of two units.
type comparer struct {
	span        []slice // by unit
	names       *symbols
	count, runs []int32 // by symbol, zero between calls
}

func (c *comparer) each(unit int, visit func(symbol int32, time float64)) {
	x := &c.span[unit]
	t, device := x.track, x.track.device
	for k := x.lo; k < x.hi; k++ {
		if w := t.piece(k); t.compared(w) {
			visit(c.names.at(device, w), float64(device.End(w)-device.Start(w)))
		}
	}
}

// alike reports whether two units run the same kernels, except for a share of the kernels of the larger one, those of
// both units added up, that take a share of the time. The numbers of their kernels may differ by sameWork.
func (c *comparer) alike(a, b int, kernels, time float64) bool {
	n, m := c.span[a].size, c.span[b].size
	larger := float64(max(n, m))
	if float64(max(n, m)-min(n, m)) > sameWork*larger {
		return false
	}
	c.each(a, func(s int32, _ float64) { c.count[s]++; c.runs[s]++ })
	c.each(b, func(s int32, _ float64) { c.count[s]--; c.runs[s]++ })
	var all, other float64
	for _, unit := range [2]int{a, b} {
		c.each(unit, func(s int32, time float64) {
			all += time
			other += time * float64(max(c.count[s], -c.count[s])) / float64(c.runs[s])
		})
	}
	var differ int32
	for _, unit := range [2]int{a, b} { // not all symbols: a capture may have very many
		c.each(unit, func(s int32, _ float64) {
			differ += max(c.count[s], -c.count[s])
			c.count[s], c.runs[s] = 0, 0
		})
	}
	return float64(differ) <= kernels*larger && other <= time*all
}

// slicer begins an attempt to find units by cuts.
func (f *Search) slicer(names *symbols) *slicer {
	f.begin()
	return &slicer{api: &f.Trace.API, names: names, of: f.of}
}

// sliced sorts the units of a slicer and settles their states.
func (f *Search) sliced(s *slicer, kind, name, why string) *Result {
	r := &Result{Kind: kind, Name: name, Why: why, Groups: s.group(), Primary: -1}
	var place []int32
	r.Units, place = sorted(s.units)
	f.of.renumber(place)
	f.settle(r)
	return r
}
