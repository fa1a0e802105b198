package workunit

import (
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// fit describes how well the units of an anchor explain a sequence.
type fit struct {
	names []int32
	skip  int32   // see gram
	pos   []int32 // where units start
	// inside is the probability that two random moments from the first to the last start lie in units of one kind: the
	// sum of the squared shares of the kinds that recur. It is the mean of that over time and over kernels, so that
	// neither many short kernels nor a few long ones decide alone.
	inside  float64
	filled  float64  // share of the compute time from the first to the last start in units of kinds that recur
	index   float64  // inside, for the whole capture
	work    int64    // compute time from the first to the last start, and after it if that is a unit, ns
	rest    [2]int64 // compute time before and after that, ns
	longest int64    // compute time of the longest unit of a kind that recurs, ns
	covered float64  // filled, for the whole capture
	main    float64  // share of compute time in the largest kind
	period  int      // kernels of that kind's most frequent form
	units   int      // of that kind
	example int32    // where a unit of that kind starts
	idle    float64  // share of the idle time that is just before units
	pause   float64  // idle time just before a unit, mean, ns
	alike   []*fit   // other anchors of the same units
	other   []*fit   // one of other units, or none
	line    *line
}

// believed reports whether the anchor's units can be used.
func (x *fit) believed() bool {
	switch {
	case x.units < minRepeats || x.filled < minFilled || x.covered < minUnits:
		return false
	case x.covered < minFilled && (x.period < someWork || x.units*x.period < muchWork):
		return false // part of a start-up may repeat a few times
	case x.line.events && x.units < plainUnits:
		return false // a start-up does much once and some things a few times
	case len(x.line.seq) < plainLine:
		return x.units >= plainUnits && x.index >= plainIndex
	}
	return x.inside >= minIndex || x.inside >= pausedEven && x.idle >= mostIdle
}

// fitter evaluates anchors by the contents of the units between them.
type fitter struct {
	*line
	count []int32 // by name, zero between calls
}

func newFitter(l *line) *fitter { return &fitter{l, make([]int32, len(l.cost))} }

// stretch is part of the sequence: [lo, hi).
type stretch struct{ lo, hi int32 }

// kind is a set of units with nearly the same work.
type kind struct {
	stretch       // an example
	long    int64 // compute time of the example, ns
	units   int
	size    int64 // kernels of all units
	time    int64
}

// add adds units to the kind.
func (k *kind) add(units int, size, time int64) {
	k.units += units
	k.size += size
	k.time += time
}

// again evaluates an anchor that was found in a part of the line on the whole line.
func (f *fitter) again(x *fit) *fit {
	return f.fit(x.names, x.skip, f.occurrences(x.names, x.skip))
}

// work returns the sum of the hashes of a stretch's names, and its compute time in ns.
func (f *fitter) work(u stretch) (names uint64, time int64) {
	for i, s := range f.seq[u.lo:u.hi] {
		names += f.hash[s]
		time += int64(f.time[int(u.lo)+i])
	}
	return names, time
}

// fit evaluates the anchor whose units start at some positions.
func (f *fitter) fit(names []int32, skip int32, pos []int32) *fit {
	x := &fit{names: names, skip: skip, pos: pos, line: f.line}
	if len(pos) < minRepeats {
		return x
	}
	var hashes lists.Numbering[uint64]
	var forms []kind
	var inside int64
	for i := 0; i+1 < len(pos); i++ {
		u := stretch{pos[i], pos[i+1]}
		hash, time := f.work(u)
		k := int(hashes.Of(hash))
		if k == len(forms) {
			forms = append(forms, kind{stretch: u, long: time})
		}
		forms[k].add(1, int64(u.hi-u.lo), time)
		inside += time
	}
	last := stretch{pos[len(pos)-1], int32(len(f.seq))}
	_, after := f.work(last)
	before := f.total - inside - after
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
			kinds = append(kinds, forms[i])
		}
	}
	for i := range kinds[:min(len(kinds), maxNear)] { // the last unit has no end, but may be complete
		if k := &kinds[i]; f.near(k.stretch, last) {
			k.add(1, int64(last.hi-last.lo), after)
			inside, after, last.lo = inside+after, 0, last.hi
			break
		}
	}
	var longest int64
	for _, k := range kinds {
		if k.units >= minRepeats {
			longest = max(longest, k.long)
		}
	}
	x.work, x.rest, x.longest = inside, [2]int64{before, after}, longest
	part := float64(x.work) / float64(whole(x.work, x.rest, x.longest))
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

// indexBeside is the index with ends of the capture as long as another fit may leave out: a step whose start is missing
// once at an end must not lose to several steps taken for one, which leave out more.
func (x *fit) indexBeside(other *fit) float64 {
	part := float64(x.work) / float64(whole(x.work, x.rest, max(x.longest, other.longest)))
	return x.inside * part * part
}

// near reports whether two stretches do nearly the same work: except for a tenth of the kernels, or two, and a tenth of
// the time, they run the same kernels equally often. If both have few kernels, those that differ must take next to no
// time.
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
