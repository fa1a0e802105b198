package workunit

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// Bounds of the search for an anchor.
const (
	maxWidth   = 3    // names of an anchor
	minRepeats = 3    // units of a kind for it to recur
	plainLine  = 32   // kernels: in a shorter sequence the repeats must be plain
	plainUnits = 10   // units needed for plain repeats
	plainIndex = 0.9  // index needed for plain repeats
	minIndex   = 0.5  // least index of a believable anchor
	pausedEven = 0.2  // the same if the GPU waits before its units
	minFilled  = 0.75 // of the time from the first to the last start, that units of recurring kinds must fill
	equalIndex = 0.01 // by which an index must be better to count as better
	maxTried   = 16   // candidates that are looked at closely
	maxSampled = 1024 // units of a candidate in the first look
	maxKinds   = 32
	maxNear    = 4       // kinds compared with a unit
	nearWork   = 0.1     // share of a unit's kernels, and of their time, that may differ within a kind
	fewKernels = 2       // this many kernels may differ, if they take no more time than that;
	someWork   = 8       // in a unit of fewer kernels than this,
	tinyWork   = 0.02    // no more than this share
	muchWork   = 256     // kernels that units must have together if most of the compute time is elsewhere
	longPart   = 1 << 17 // length of the part that is searched first, if a sequence is at least twice as long,
	longLine   = 2 * longPart
	partUnits  = 16  // if they hold this many units of one kind
	mostIdle   = 0.4 // share of the idle time that is before the units of a step
	pauseRatio = 3   // how many times longer the pause before a longer unit must be for it to be the step
)

// searcher looks for the anchor of a line.
type searcher struct {
	*fitter
	*sums
	*grams
}

// search finds the anchor of one sequence: the best believed fit or, if there is none, the best other fit. It also
// returns fits of other periods, best first. A long sequence is searched in its middle first; what is found there must
// hold for all of it, else all of it is searched.
func (l *line) search() (best *fit, others []*fit) {
	if n := len(l.seq); n >= longLine {
		middle := l.part((n-longPart)/2, (n+longPart)/2)
		if x, others := middle.searchAll(); x != nil && x.believed() && x.units >= partUnits {
			f := newFitter(l)
			if y := f.again(x); y.believed() && y.index >= x.index-2*equalIndex {
				y.alike, y.other = lists.Map(x.alike, f.again), lists.Map(x.other, f.again)
				return y, others
			}
		}
	}
	return l.searchAll()
}

func (l *line) searchAll() (best *fit, others []*fit) {
	if len(l.seq) < minRepeats {
		return nil, nil
	}
	s := &searcher{newFitter(l), newSums(l), newGrams(l)}
	for i := range s.list {
		x := &s.list[i]
		pos := s.at(x)
		x.score, x.idle = s.look(pos), l.idleBefore(pos, 0)
		for skip := int32(1); int(skip) < x.width; skip++ {
			if idle := l.idleBefore(pos, skip); idle >= mostIdle && idle > x.idle {
				x.idle, x.skip = idle, skip
			}
		}
	}
	tried := s.try()
	if len(tried) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(tried, func(a, b *fit) int { return cmp.Compare(b.index, a.index) })
	believed := slices.DeleteFunc(slices.Clone(tried), func(x *fit) bool { return !x.believed() })
	if len(believed) == 0 {
		return tried[0], tried[1:]
	}
	best = believed[0]
	for _, x := range believed[1:] { // of equals the shortest; of those about as long, the one whose units are most alike
		shorter := 3*x.period <= 2*best.period
		purer := 2*x.period < 3*best.period && x.inside > best.inside+equalIndex
		if x.indexBeside(believed[0]) >= believed[0].index-equalIndex && (shorter || purer) {
			best = x
		}
	}
	for _, x := range believed { // a step that sometimes differs is still the step
		even := 3*x.period > 2*best.period || best.pause < pauseRatio*x.pause
		if even && x.idle >= mostIdle && 2*x.idle > 3*best.idle {
			best = x
		}
	}
	others = lists.Filter(believed, func(x *fit) bool { return x != best })
	best = s.start(best)
	best.other = s.other(best, others)
	return best, others
}

// other returns an anchor of other units, which another capture may have, or none: of the best that are no part of a
// unit, such as a layer, or else of the longest part.
func (s *searcher) other(best *fit, others []*fit) []*fit {
	var x *fit
	for _, o := range others {
		if 4*max(o.period, best.period) <= 5*min(o.period, best.period) {
			continue // the same units
		}
		if 2*o.period > best.period || o.main < minInner && mostUnits*o.period >= best.period {
			x = o
			break
		}
		if x == nil || o.period > x.period {
			x = o
		}
	}
	if x == nil {
		return nil
	}
	list := append(s.alike(&fit{index: x.index}, s.places(x)), x)
	return list[:1]
}

// try examines the best candidates: for each number of units the best one, and the best one before which the GPU waits.
func (s *searcher) try() (tried []*fit) {
	order := lists.Indexes[int32](len(s.list))
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(s.list[b].score, s.list[a].score) })
	type class struct {
		count int
		idle  bool
	}
	var classes []class
	for _, i := range order {
		x := &s.list[i]
		if x.score <= 0 {
			break
		}
		idle := x.idle >= mostIdle
		k := slices.IndexFunc(classes, func(c class) bool { return alike(c.count, x.count()) })
		switch {
		case k >= 0 && (!idle || classes[k].idle), k < 0 && len(classes) == maxTried:
			continue
		case k >= 0:
			classes[k].idle = true
		default:
			classes = append(classes, class{x.count(), idle})
		}
		tried = append(tried, s.of(x))
	}
	return tried
}

// of evaluates a gram.
func (s *searcher) of(x *gram) *fit {
	pos := s.at(x)
	from := pos[0] - x.skip
	return s.fit(s.seq[from:int(from)+x.width], x.skip, pos)
}

// alike reports whether anchors that occur n and m times can define the same units.
func alike(n, m int) bool { return max(n, m)-min(n, m) <= 1+n/50 }

// start chooses the kernel at which the units of a fit start, among all anchors that occur as often and explain as
// much, narrow ones first. If the GPU waits before most units, they start there; else before the longest stretch of
// work up to the next such place. In a model's step that is the embedding, before the layers.
func (s *searcher) start(of *fit) *fit {
	places := s.places(of)
	if len(places) == 0 {
		return of
	}
	work := make([]int64, len(places))
	for k, x := range places {
		work[k] = s.between(s.at(x), s.at(places[(k+1)%len(places)]))
	}
	order := lists.Indexes[int](len(places))
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(places[a].width, places[b].width), cmp.Compare(work[b], work[a]))
	})
	paused, most := -1, mostIdle
	for k, x := range places {
		if x.idle > most {
			paused, most = k, x.idle
		}
	}
	if paused >= 0 {
		order = slices.Insert(slices.DeleteFunc(order, func(k int) bool { return k == paused }), 0, paused)
	}
	for _, k := range order[:min(len(order), maxTried)] {
		if x := s.of(places[k]); x.believed() && x.index >= of.index-2*equalIndex {
			x.alike = s.alike(x, places)
			return x
		}
	}
	return of
}

// alike returns other anchors of the same units, those of other kernels first. Which ones does not depend on where a
// capture begins or ends: captures of a program have an anchor in common, wherever their units start.
func (s *searcher) alike(best *fit, places []*gram) (list []*fit) {
	type place struct {
		*fit
		rank int
		hash uint64
	}
	others := lists.Map(places, func(x *gram) place {
		from := s.at(x)[0] - x.skip
		p := place{&fit{names: s.seq[from : int(from)+x.width], skip: x.skip}, x.width, uint64(x.skip)}
		for _, n := range p.names {
			p.hash = Mix(p.hash + s.hash[n])
		}
		if slices.ContainsFunc(p.names, func(n int32) bool { return slices.Contains(best.names, n) }) {
			p.rank += maxWidth
		}
		return p
	})
	slices.SortFunc(others, func(a, b place) int { return cmp.Or(a.rank-b.rank, cmp.Compare(a.hash, b.hash)) })
	for _, p := range others[:min(len(others), maxTried)] {
		x := s.again(p.fit)
		if x.believed() && x.index >= best.index-2*equalIndex && (x.skip != best.skip || !slices.Equal(x.names, best.names)) {
			list = append(list, x)
		}
		if len(list) == maxAnchorsKept-1 {
			break
		}
	}
	return list
}

// places returns the anchors that occur as often as a fit's and explain as much, narrow ones first until there are
// enough, sorted by their position in one of its units.
func (s *searcher) places(of *fit) []*gram {
	end := of.example + int32(of.period)
	var score float64
	for i := range s.list {
		if x := &s.list[i]; x.width == len(of.names) && x.skip == of.skip && s.at(x)[0] == of.pos[0] {
			score = x.score
		}
	}
	type place struct {
		at   int32
		gram *gram
	}
	var found []place
	for width := 1; width <= maxWidth && len(found) < maxAnchorsKept; width++ {
		for i := range s.list {
			x := &s.list[i]
			if x.width != width || x.score < score-2*equalIndex || !alike(len(of.pos), x.count()) {
				continue
			}
			pos := s.at(x)
			k, _ := slices.BinarySearch(pos, of.example)
			if k == len(pos) || pos[k] >= end || k+1 < len(pos) && pos[k+1] < end {
				continue
			}
			found = append(found, place{pos[k], x})
		}
	}
	slices.SortStableFunc(found, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	return lists.Map(found, func(x place) *gram { return x.gram })
}

// between is the median compute time from each place to the next of others, in ns.
func (s *sums) between(places, others []int32) int64 {
	times := make([]float64, 0, len(places))
	k := 0
	for _, p := range places {
		for k < len(others) && others[k] <= p {
			k++
		}
		if k == len(others) {
			break
		}
		times = append(times, float64(s.time[others[k]]-s.time[p]))
	}
	if len(times) == 0 {
		return 0
	}
	return int64(order.Median(times))
}
