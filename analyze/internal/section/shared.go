package section

import (
	"cmp"
	"slices"
	"sync"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// shared is what several sections need, worked out by whichever asks first.
type shared struct {
	kernels    once[*kernelStats]
	calls      once[*callStats]
	procSums   once[[]procSum]
	coverage   once[[]procCoverage]
	ranges     once[rangeTotals]
	openRanges once[int]
	idle       once[[]deviceIdle]
	summaries  once[[]*report.Summary]
}

// prepare works out side by side what takes longest, and what holds most memory, the durations of all ranges, by itself. A
// panic on the way is that of the sections which ask for the value.
func (in *Input) prepare() {
	defer func() { _ = recover() }()
	parallel.Do(
		func() { in.callStats() },
		func() { in.rangeTotals() },
		func() { in.kernelStats() },
		func() { in.deviceIdle() },
	)
	in.rangeSummaries()
}

// once works a value out the first time it is asked for. A panic on the way is everybody's who asks.
type once[T any] struct {
	sync.Once
	value  T
	failed interface{}
}

func (o *once[T]) get(f func() T) T {
	o.Do(func() {
		defer func() { o.failed = recover() }()
		o.value = f()
	})
	if o.failed != nil {
		panic(o.failed)
	}
	return o.value
}

// kernelStats describes the kernels that start in the window, by name and by where they ran.
type kernelStats struct {
	all        durationStats
	names      []totals // by total time
	tiny       []totals // of the kernels of at most tinyKernel, by number
	histograms []*report.Histogram
	onDevices  []placeTotals
	places     []pair    // process and device
	cells      []crossed // name and index into places
	procs      []durationStats
}

// placeTotals is the kernels of one name on one device.
type placeTotals struct {
	name, device int32
	totals
}

// kernelStats goes through the kernels twice, and sorts their durations once by name and place and once by process.
func (in *Input) kernelStats() *kernelStats { return in.shared.kernels.get(in.addKernels) }

func (in *Input) addKernels() *kernelStats {
	k, memory := &in.Trace.Kernels, in.Trace.Memory()
	lo, hi := k.Starting(in.Span.Start, in.Span.End)
	places := newPairs()
	cells := newCombos(len(k.Names), max(1, maxCombinations/max(1, len(k.Names)))) // places beyond are looked up
	last, place := pair{}, int32(-1)
	g := gatherTwice(memory, lo, hi, func(i int) int32 {
		if x := (pair{k.Proc(i), k.Device(i)}); place < 0 || x != last {
			last, place = x, places.of(x.a, x.b)
		}
		return cells.of(k.Name(i), place)
	}, k.Dur).sort()
	defer g.free()
	s := &kernelStats{places: places.list, cells: make([]crossed, len(cells.list)), procs: make([]durationStats, len(in.Trace.Procs))}
	byName, byDevice, byProc := newKeyed(), newKeyed(), newKeyed()
	for c, x := range cells.list {
		at := places.list[x.b]
		s.cells[c] = crossed{a: x.a, b: x.b, count: int64(g.of(c).Len()), total: g.of(c).Sum()}
		byName.add(pair{x.a, 0}, c)
		byDevice.add(pair{x.a, at.b}, c)
		if at.a != trace.None {
			byProc.add(pair{at.a, 0}, c)
		}
	}
	s.names = make([]totals, len(byName.list))
	for n, x := range byName.list {
		s.names[n] = totals{key: int(x.a)}
		for _, c := range byName.cells[n] {
			s.names[n].count += s.cells[c].count
			s.names[n].total += s.cells[c].total
		}
	}
	slices.SortFunc(s.names, func(a, b totals) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(b.count, a.count), cmp.Compare(k.Names[a.key].Name, k.Names[b.key].Name))
	})
	s.tiny, s.histograms = make([]totals, len(s.names)), make([]*report.Histogram, min(len(s.names), maxHistograms))
	s.onDevices = make([]placeTotals, len(byDevice.list))
	parallel.Do(func() {
		for i := range s.names {
			e := &s.names[i]
			sample := g.together(byName.cells[byName.of(int32(e.key), 0)])
			d := statsOf(sample)
			e.summary = d.summary
			s.tiny[i] = totals{key: e.key, count: d.tiny, total: d.tinyTotal}
			if i < len(s.histograms) {
				s.histograms[i] = sample.Histogram()
			}
		}
	}, func() {
		for n, x := range byDevice.list {
			d := statsOf(g.together(byDevice.cells[n]))
			s.onDevices[n] = placeTotals{x.a, x.b, totals{key: n, count: d.count, total: d.total, summary: d.summary}}
		}
	}, func() {
		for n, x := range byProc.list {
			s.procs[x.a] = statsOf(g.together(byProc.cells[n]))
		}
	})
	s.all = statsOf(g.everything())
	return s
}

// keyed collects cells by a key.
type keyed struct {
	*pairs
	cells [][]int // by number of the key
}

func newKeyed() *keyed { return &keyed{pairs: newPairs()} }

func (x *keyed) add(key pair, cell int) {
	n := x.of(key.a, key.b)
	if int(n) == len(x.cells) {
		x.cells = append(x.cells, nil)
	}
	x.cells[n] = append(x.cells[n], cell)
}

// callStats describes the API calls that start in the window.
type callStats struct {
	all, launches, syncs, syncCopies durationStats
	names                            []totals        // by total time
	procs                            []durationStats // of launches, by process
	knownLaunches                    int64           // whose process is known
	cells                            []crossed       // name and thread, or trace.None
}

// callStats goes through the calls twice, and sorts their durations once by name and thread.
func (in *Input) callStats() *callStats { return in.shared.calls.get(in.addCalls) }

func (in *Input) addCalls() *callStats {
	api, memory := &in.Trace.API, in.Trace.Memory()
	lo, hi := api.Starting(in.Host.Start, in.Host.End)
	cells := newCombos(len(api.Names), len(in.Trace.Threads)+1) // threads are counted from 1, the unknown one is 0
	g := gatherTwice(memory, lo, hi, func(i int) int32 { return cells.of(api.Name(i), api.Thread(i)+1) }, api.Dur).sort()
	defer g.free()
	s := &callStats{procs: make([]durationStats, len(in.Trace.Procs)), cells: make([]crossed, len(cells.list))}
	byName, byProc := newKeyed(), newKeyed()
	var launches, syncs, syncCopies []int
	for c, x := range cells.list {
		s.cells[c] = crossed{a: x.a, b: x.b - 1, count: int64(g.of(c).Len()), total: g.of(c).Sum()}
		byName.add(pair{x.a, 0}, c)
		n := &api.Names[x.a]
		if n.Launch {
			launches = append(launches, c)
			if p := in.procOf(x.b - 1); p != trace.None {
				byProc.add(pair{p, 0}, c)
				s.knownLaunches += s.cells[c].count
			}
		}
		if n.Sync {
			syncs = append(syncs, c)
		}
		if n.SyncCopy {
			syncCopies = append(syncCopies, c)
		}
	}
	s.names = make([]totals, len(byName.list))
	parallel.Do(func() {
		for n, x := range byName.list {
			d := statsOf(g.together(byName.cells[n]))
			s.names[n] = totals{key: int(x.a), count: d.count, total: d.total, summary: d.summary}
		}
	}, func() {
		s.launches, s.syncs, s.syncCopies = statsOf(g.together(launches)), statsOf(g.together(syncs)), statsOf(g.together(syncCopies))
	}, func() {
		for n, x := range byProc.list {
			s.procs[x.a] = statsOf(g.together(byProc.cells[n]))
		}
	})
	s.all = statsOf(g.everything())
	slices.SortFunc(s.names, func(a, b totals) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(b.count, a.count), cmp.Compare(api.Names[a.key].Name, api.Names[b.key].Name))
	})
	return s
}

// callRows are the API calls of the window whose name is chosen, in order.
func (in *Input) callRows(chosen func(n *trace.APIName) bool) []int {
	api := &in.Trace.API
	names, rows := make([]bool, len(api.Names)), int64(0)
	for _, e := range in.callStats().names {
		if names[e.key] = chosen(&api.Names[e.key]); names[e.key] {
			rows += e.count
		}
	}
	if rows == 0 {
		return nil
	}
	list := make([]int, 0, rows)
	lo, hi := api.Starting(in.Host.Start, in.Host.End)
	for i := lo; i < hi; i++ {
		if names[api.Name(i)] {
			list = append(list, i)
		}
	}
	return list
}

// countCalls is how many API calls of the capture have a name that is chosen.
func (in *Input) countCalls(chosen func(n *trace.APIName) bool) (count int64) {
	api, s := &in.Trace.API, in.callStats()
	if s.all.count == int64(api.Len()) { // the window is the capture
		for _, e := range s.names {
			if chosen(&api.Names[e.key]) {
				count += e.count
			}
		}
		return count
	}
	names := make([]bool, len(api.Names))
	for n := range names {
		names[n] = chosen(&api.Names[n])
	}
	for i := range api.Len() {
		if names[api.Name(i)] {
			count++
		}
	}
	return count
}

// openRanges is how many ranges of the window were still open when the capture stopped.
func (in *Input) openRanges() int {
	return in.shared.openRanges.get(func() (n int) {
		r := &in.Trace.Ranges
		lo, hi := r.Starting(in.Host.Start, in.Host.End)
		for i := lo; i < hi; i++ {
			if r.Open(i) {
				n++
			}
		}
		return n
	})
}
