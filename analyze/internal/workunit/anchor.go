package workunit

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Bounds of the search for an anchor.
const (
	maxWidth   = 3    // names of an anchor
	minRepeats = 3    // units of a kind that make it one that recurs
	plainLine  = 32   // kernels: of a shorter sequence the repeats must be plain
	plainUnits = 10   // units that make them plain
	plainIndex = 0.9  // and the index they need
	minIndex   = 0.5  // of an anchor to be believed
	pausedEven = 0.2  // the same where the GPU waits before its units
	minFilled  = 0.75 // of the time from the first to the last start, in units of kinds that recur
	equalIndex = 0.01 // by which an index must be better to count as better
	maxTried   = 16   // candidates that are looked at closely
	maxSampled = 1024 // units of a candidate that the first look takes in
	maxKinds   = 32
	maxNear    = 4    // kinds that a unit is compared with
	nearWork   = 0.1  // share of a unit's kernels, and of their time, that may differ within a kind
	fewKernels = 2    // this many may differ, if they take no more time than that;
	someWork   = 8    // in a unit of fewer kernels than this,
	tinyWork   = 0.02 // no more than this share
	muchWork   = 256  // kernels that units must have together where most of the compute time lies elsewhere
	mostIdle   = 0.4  // share of the idle time that lies before the units of a step
	pauseRatio = 3    // by which the pause before a longer unit must be longer to make it the step
)

// gram is one to three names in a row that occur several times.
type gram struct {
	width  int
	lo, hi int32 // of the positions of its width
	score  float64
	idle   float64 // share of the idle time that lies just before the unit
	skip   int32   // at which of the names the unit starts, from 0: not at the first where the GPU waits inside
}

func (g *gram) count() int { return int(g.hi - g.lo) }

// grams are all of a sequence, with where they occur.
type grams struct {
	list []gram
	pos  [maxWidth + 1][]int32 // by width: positions, those of one gram together
}

// at are the places where units start.
func (g *grams) at(x *gram) []int32 { return later(g.pos[x.width][x.lo:x.hi], x.skip) }

// later are places some kernels further on.
func later(pos []int32, skip int32) []int32 {
	if skip == 0 {
		return pos
	}
	moved := make([]int32, len(pos))
	for i, p := range pos {
		moved[i] = p + skip
	}
	return moved
}

// grams lists the grams that occur at least minRepeats times.
func (l *line) grams() *grams {
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

// longer numbers the pairs of a gram and the name after it.
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

// bin counts units that agree in one lane.
type bin struct {
	time  int64
	units int32
}

// look is the first look at an anchor: for each lane the share of time in units that agree on it, squared; the mean
// of the lanes by the time of their names. It takes constant time per unit.
func (l *line) look(pos []int32, bins *[lanes][256]bin) float64 {
	stride := (len(pos)-1)/maxSampled + 1
	var best [lanes]int64
	var sampled, longest int64
	visit := func(do func(from, to int32)) {
		for i := 0; i+1 < len(pos); {
			do(pos[i], pos[i+1])
			if i++; stride > 1 { // not every k-th: units may alternate
				i += int(mix(uint64(i)) % uint64(2*stride-1))
			}
		}
	}
	visit(func(from, to int32) {
		time := l.time[to] - l.time[from]
		sampled += time
		longest = max(longest, time)
		for lane := range lanes {
			b := &bins[lane][laneOf(l.lanes[from], l.lanes[to], lane)]
			b.time += time
			if b.units++; b.units > 1 {
				best[lane] = max(best[lane], b.time)
			}
		}
	})
	visit(func(from, to int32) {
		for lane := range lanes {
			bins[lane][laneOf(l.lanes[from], l.lanes[to], lane)] = bin{}
		}
	})
	if sampled <= 0 {
		return 0
	}
	inside := l.time[pos[len(pos)-1]] - l.time[pos[0]]
	covered := float64(inside) / float64(l.whole(inside, pos, longest))
	var score float64
	for lane := range lanes {
		share := float64(best[lane]) / float64(sampled) * covered
		score += l.lane[lane] * share * share
	}
	return score
}

// whole is the time that units should hold: that from the first to the last start, inside, and what lies around
// them beyond one unit, which the capture may have cut.
func (l *line) whole(inside int64, pos []int32, longest int64) int64 {
	n := len(l.seq)
	for _, rest := range [2]int64{l.time[pos[0]], l.time[n] - l.time[pos[len(pos)-1]]} {
		inside += max(0, rest-longest)
	}
	return max(1, inside)
}

// fit says how well the units of an anchor explain a sequence.
type fit struct {
	names []int32
	skip  int32   // see gram
	pos   []int32 // where units start
	// inside is how likely two moments from the first to the last start lie in units of one kind: the shares of the
	// kinds that recur, squared and added up; the mean of that and of the same for kernels, so that neither many
	// short nor few long kernels decide alone.
	inside  float64
	filled  float64 // share of the compute time from the first to the last start in units of kinds that recur
	index   float64 // inside, of the whole capture
	covered float64 // filled, of the whole capture
	main    float64 // share of compute time in the kind with most
	period  int     // kernels of that kind's most frequent form
	units   int     // of that kind
	example int32   // where one of them starts
	idle    float64 // share of the idle time that lies just before units
	pause   float64 // idle time just before a unit, mean, ns
	alike   []*fit  // other anchors of the same units
}

// believed reports whether the units of the anchor can be taken.
func (x *fit) believed(l *line) bool {
	switch {
	case x.units < minRepeats || x.filled < minFilled || x.covered < minUnits:
		return false
	case x.covered < minFilled && (x.period < someWork || x.units*x.period < muchWork):
		return false // part of a start-up may repeat a few times
	case len(l.seq) < plainLine:
		return x.units >= plainUnits && x.index >= plainIndex
	}
	return x.inside >= minIndex || x.inside >= pausedEven && x.idle >= mostIdle
}

// fitter judges anchors by what the units between them hold.
type fitter struct {
	*line
	count []int32 // by name, zero between calls
}

// stretch is part of the sequence: [lo, hi).
type stretch struct{ lo, hi int32 }

// kind is units of nearly the same work.
type kind struct {
	stretch // an example
	units   int
	size    int64 // kernels of all units
	time    int64
}

// add takes units of the kind in.
func (k *kind) add(units int, size, time int64) {
	k.units += units
	k.size += size
	k.time += time
}

// of judges a gram.
func (f *fitter) of(g *grams, x *gram) *fit {
	pos := g.at(x)
	from := pos[0] - x.skip
	return f.fit(f.seq[from:int(from)+x.width], x.skip, pos)
}

// fit judges the anchor whose units start at some positions.
func (f *fitter) fit(names []int32, skip int32, pos []int32) *fit {
	x := &fit{names: names, skip: skip, pos: pos}
	if len(pos) < minRepeats {
		return x
	}
	type form struct {
		kind
		hash uint64
	}
	index := map[uint64]int{}
	var forms []form
	add := func(u stretch) {
		hash := f.names[u.hi] - f.names[u.lo]
		k, ok := index[hash]
		if !ok {
			k = len(forms)
			index[hash] = k
			forms = append(forms, form{kind{stretch: u}, hash})
		}
		forms[k].add(1, int64(u.hi-u.lo), f.time[u.hi]-f.time[u.lo])
	}
	for i := 0; i+1 < len(pos); i++ {
		add(stretch{pos[i], pos[i+1]})
	}
	last := stretch{pos[len(pos)-1], int32(len(f.seq))}
	x.idle = f.idleBefore(pos, 0)
	x.pause = x.idle * float64(f.all) / float64(len(pos)-1)
	sort.SliceStable(forms, func(a, b int) bool { return forms[a].time > forms[b].time })
	var kinds []kind
	for i := range forms {
		largest := kinds[:min(len(kinds), maxNear)]
		at := slices.IndexFunc(largest, func(k kind) bool { return f.near(k.stretch, forms[i].stretch) })
		switch {
		case at >= 0:
			kinds[at].add(forms[i].units, forms[i].size, forms[i].time)
		case len(kinds) < maxKinds:
			kinds = append(kinds, forms[i].kind)
		}
	}
	for i := range kinds[:min(len(kinds), maxNear)] { // nothing closes the last unit, but it may be complete
		if k := &kinds[i]; f.near(k.stretch, last) {
			k.add(1, int64(last.hi-last.lo), f.time[last.hi]-f.time[last.lo])
			last.lo = last.hi
			break
		}
	}
	var longest int64
	for _, k := range kinds {
		if k.units >= minRepeats {
			longest = max(longest, f.time[k.hi]-f.time[k.lo])
		}
	}
	inside := f.time[last.lo] - f.time[pos[0]]
	total := float64(f.whole(inside, append(slices.Clone(pos[:1]), last.lo), longest))
	part := float64(inside) / total
	kernels := float64(last.lo - pos[0])
	var most int64
	for _, k := range kinds {
		if k.units < minRepeats {
			continue
		}
		share, size := float64(k.time)/float64(max(1, inside)), float64(k.size)/kernels
		x.filled += share
		x.inside += (share*share + size*size) / 2
		if k.time > most {
			most = k.time
			x.main, x.units, x.period, x.example = share*part, k.units, int(k.hi-k.lo), k.lo
		}
	}
	x.covered, x.index = x.filled*part, x.inside*part*part
	return x
}

// near reports whether two stretches do nearly the same work: but for a tenth of the kernels, or for two, and a tenth of
// the time they run the same kernels equally often. Two of a few kernels must take next to no time.
func (f *fitter) near(a, b stretch) bool {
	n, m := a.hi-a.lo, b.hi-b.lo
	part := int32(nearWork * float64(max(n, m)))
	limit := max(part, fewKernels)
	if max(n, m)-min(n, m) > limit {
		return false
	}
	var cost int64
	for _, s := range f.seq[a.lo:a.hi] {
		f.count[s]++
		cost += f.cost[s]
	}
	var other int64
	for _, s := range f.seq[b.lo:b.hi] {
		f.count[s]--
		other += f.cost[s]
	}
	var more, less int32
	var moreTime, lessTime int64
	for _, x := range [2]stretch{a, b} {
		for _, s := range f.seq[x.lo:x.hi] {
			switch c := f.count[s]; {
			case c > 0:
				more += c
				moreTime += int64(c) * f.cost[s]
			case c < 0:
				less -= c
				lessTime -= int64(c) * f.cost[s]
			}
			f.count[s] = 0
		}
	}
	share := nearWork
	if max(more, less) > part && max(n, m) < someWork {
		share = tinyWork
	}
	return max(more, less) <= limit && float64(max(moreTime, lessTime)) <= share*float64(max(cost, other))
}

// search finds the anchor of one sequence: its fit is believed, or the best of those that are not. Fits of other
// periods come with it, best first.
func (l *line) search() (best *fit, others []*fit) {
	if len(l.seq) < minRepeats {
		return nil, nil
	}
	g := l.grams()
	bins := new([lanes][256]bin)
	for i := range g.list {
		x := &g.list[i]
		pos := g.at(x)
		x.score, x.idle = l.look(pos, bins), l.idleBefore(pos, 0)
		for skip := int32(1); int(skip) < x.width; skip++ {
			if idle := l.idleBefore(pos, skip); idle >= mostIdle && idle > x.idle {
				x.idle, x.skip = idle, skip
			}
		}
	}
	f := &fitter{l, make([]int32, len(l.cost))}
	tried := l.try(g, f)
	if len(tried) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(tried, func(a, b *fit) int { return cmp.Compare(b.index, a.index) })
	believed := slices.DeleteFunc(slices.Clone(tried), func(x *fit) bool { return !x.believed(l) })
	if len(believed) == 0 {
		return tried[0], tried[1:]
	}
	best = believed[0]
	for _, x := range believed[1:] { // of equals the shortest
		if x.index >= believed[0].index-equalIndex && 3*x.period <= 2*best.period {
			best = x
		}
	}
	for _, x := range believed { // a step that differs from time to time is still the step
		even := 3*x.period > 2*best.period || best.pause < pauseRatio*x.pause
		if even && x.idle >= mostIdle && 2*x.idle > 3*best.idle {
			best = x
		}
	}
	for _, x := range believed {
		if x != best {
			others = append(others, x)
		}
	}
	return l.start(g, f, best), others
}

// try looks closely at the best candidates: for each number of units at the best, and at the best before which the
// GPU waits.
func (l *line) try(g *grams, f *fitter) (tried []*fit) {
	order := make([]int32, len(g.list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(g.list[b].score, g.list[a].score) })
	type class struct {
		count int
		idle  bool
	}
	var classes []class
	for _, i := range order {
		x := &g.list[i]
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
		tried = append(tried, f.of(g, x))
	}
	return tried
}

// idleBefore is the share of the idle time that lies just before places some kernels after others, the first left
// out. Pauses count up to twice the median one: those before few of the places do not make it a place where the GPU
// waits.
func (l *line) idleBefore(pos []int32, skip int32) float64 {
	sum := func(most int64) float64 {
		var idle int64
		for _, p := range pos[1:] {
			idle += min(l.idle[p+skip], most)
		}
		return float64(idle) / float64(max(1, l.all))
	}
	share := sum(math.MaxInt64)
	if share < mostIdle {
		return share
	}
	pauses := make([]int64, 0, len(pos))
	for _, p := range pos[1:] {
		pauses = append(pauses, l.idle[p+skip])
	}
	if share = sum(2 * median(pauses)); share*float64(len(l.seq)) < pauseRatio*float64(len(pos)) {
		return 0 // as long as anywhere
	}
	return share
}

// alike reports whether anchors that occur n and m times can be of the same units.
func alike(n, m int) bool { return max(n, m)-min(n, m) <= 1+n/50 }

// start chooses at which kernel the units of a fit start, of all anchors that occur as often and explain as much,
// narrow ones first: where the GPU waits before most units, there; else before the longest stretch of work up to
// the next such place. In a model's step that is the embedding, before the layers.
func (l *line) start(g *grams, f *fitter, of *fit) *fit {
	places := l.places(g, of)
	if len(places) == 0 {
		return of
	}
	work := make([]int64, len(places))
	for k, x := range places {
		work[k] = l.between(g.at(x), g.at(places[(k+1)%len(places)]))
	}
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
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
	var best *fit
	for _, k := range order[:min(len(order), maxTried)] {
		x := f.of(g, places[k])
		switch {
		case !x.believed(l) || x.index < of.index-2*equalIndex:
		case best == nil:
			best = x
		default:
			best.alike = append(best.alike, x)
		}
		if best != nil && len(best.alike) == maxAnchorsKept-1 {
			break
		}
	}
	if best == nil {
		return of
	}
	return best
}

// places are the anchors that occur as often as a fit's and explain as much, narrow ones first until there are
// some, by where they stand in one of its units.
func (l *line) places(g *grams, of *fit) (places []*gram) {
	end := of.example + int32(of.period)
	var score float64
	for i := range g.list {
		if x := &g.list[i]; x.width == len(of.names) && x.skip == of.skip && g.at(x)[0] == of.pos[0] {
			score = x.score
		}
	}
	type place struct {
		at   int32
		gram *gram
	}
	var found []place
	for width := 1; width <= maxWidth && len(found) < maxAnchorsKept; width++ {
		for i := range g.list {
			x := &g.list[i]
			if x.width != width || x.score < score-2*equalIndex || !alike(len(of.pos), x.count()) {
				continue
			}
			pos := g.at(x)
			k, _ := slices.BinarySearch(pos, of.example)
			if k == len(pos) || pos[k] >= end || k+1 < len(pos) && pos[k+1] < end {
				continue
			}
			found = append(found, place{pos[k], x})
		}
	}
	slices.SortStableFunc(found, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	for _, x := range found {
		places = append(places, x.gram)
	}
	return places
}

// between is the compute time from each place to the next one of others, median.
func (l *line) between(places, others []int32) int64 {
	times := make([]float64, 0, len(places))
	k := 0
	for _, p := range places {
		for k < len(others) && others[k] <= p {
			k++
		}
		if k == len(others) {
			break
		}
		times = append(times, float64(l.time[others[k]]-l.time[p]))
	}
	if len(times) == 0 {
		return 0
	}
	return int64(median(times))
}
