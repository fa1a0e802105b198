package kit

import (
	"cmp"
	"slices"
	"sync"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Once is a value that several sections need: f computes it for the first that asks, under a name of its own. A panic
// of f is raised for everyone who asks: [Section.run] makes it the status of the section.
func Once[T any](in *Input, name string, f func() T) T {
	value, _ := in.shared.LoadOrStore(name, sync.OnceValue(f))
	return value.(func() T)()
}

// Begin prepares an input for the sections. It computes the shared values that take most memory, one by one, before
// anything else. A panic is raised again for the sections that ask for the value.
func Begin(sections []*Section, in *Input) {
	if in.NoTrace {
		return
	}
	for _, s := range sections {
		if !s.applies(in) {
			continue
		}
		lacks := slices.ContainsFunc(s.Needs, func(role trace.Role) bool { return !in.Trace.Tables.Has(role) })
		if s.Gaps != nil && !lacks {
			in.walk.add(in, s)
		}
		if s.Alone != nil {
			quietly(in, s.Alone)
		}
	}
}

// early are the computations of shared values that take long: the visit of the devices, which most sections wait for,
// comes first. A panic is raised again for the sections that ask for the value.
func early(in *Input, list []*Section) (tasks []func()) {
	if in.NoTrace {
		return nil
	}
	tasks = append(tasks, func() { quietly(in, visitTogether) })
	for _, s := range list {
		if s.Early != nil {
			tasks = append(tasks, func() { quietly(in, s.Early) })
		}
	}
	return tasks
}

func quietly(in *Input, f func(in *Input)) {
	defer func() { _ = recover() }()
	f(in)
}

// kernelStats describes the kernels that start in the window, by name and by where they ran.
type kernelStats struct {
	All        DurationStats
	Names      []Totals // by total time
	Tiny       []Totals // of the kernels of at most tinyKernel, by number
	Histograms []*report.Histogram
	OnDevices  []PlaceTotals
	Places     []Pair    // process and device
	Cells      []Crossed // name and index into places
	Procs      []DurationStats
}

// PlaceTotals is the kernels of one name on one device.
type PlaceTotals struct {
	Name, Device int32
	Sums
}

// KernelStats goes through the kernels twice, and sorts their durations once by name and place and once by process.
func (in *Input) KernelStats() *kernelStats {
	return Once(in, "kernels", func() *kernelStats { return newKernelStats(in.Trace, in.Span) })
}

func newKernelStats(t *trace.Trace, span interval.Interval) *kernelStats {
	k := &t.Kernels
	lo, hi := k.Starting(span.Start, span.End)
	var places lists.Numbering[Pair]
	cells := NewCombos(len(k.Names), max(1, maxCombinations/max(1, len(k.Names)))) // places beyond are looked up
	last, place := Pair{}, int32(-1)
	g := gatherTwice(t.Memory(), lo, hi, func(i int) int32 {
		if x := (Pair{k.Proc(i), k.Device(i)}); place < 0 || x != last {
			last, place = x, places.Of(x)
		}
		return cells.Of(k.Name(i), place)
	}, k.Dur).Sort()
	defer g.Free()
	s := &kernelStats{Places: places.Keys, Cells: make([]Crossed, len(cells.Keys))}
	byName, byProc := make([][]int, len(k.Names)), make([][]int, len(t.Procs))
	byDevice := NewTally[Pair, []int]() // by name, too
	for c, x := range cells.Keys {
		at := places.Keys[x.B]
		s.Cells[c] = Crossed{A: x.A, B: x.B, Count: int64(g.Of(c).Len()), Total: g.Of(c).Sum()}
		byName[x.A] = append(byName[x.A], c)
		onDevice := byDevice.At(Pair{x.A, at.B})
		*onDevice = append(*onDevice, c)
		if at.A != trace.None {
			byProc[at.A] = append(byProc[at.A], c)
		}
	}
	s.OnDevices = make([]PlaceTotals, len(byDevice.Keys))
	parallel.Do(func() {
		tiny := make([]Sums, len(byName))
		for n, list := range byName {
			if len(list) > 0 {
				d := g.stats(list)
				s.Names, tiny[n] = append(s.Names, Totals{n, d.Sums}), Sums{Count: d.Tiny, Total: d.tinyTotal}
			}
		}
		rankTotals(s.Names, func(a, b int) int { return cmp.Compare(k.Names[a].Name, k.Names[b].Name) })
		s.Tiny = lists.Map(s.Names, func(e Totals) Totals { return Totals{e.Key, tiny[e.Key]} })
		s.Histograms = lists.Map(s.Names[:min(len(s.Names), MaxHistograms)], func(e Totals) *report.Histogram {
			return g.Together(byName[e.Key]).Histogram()
		})
	}, func() {
		for n, x := range byDevice.Keys {
			s.OnDevices[n] = PlaceTotals{x.A, x.B, g.stats(*byDevice.Values[n]).Sums}
		}
	}, func() { s.Procs = lists.Map(byProc, g.stats) })
	s.All = statsOf(g.Everything())
	return s
}

// callStats describes the API calls that start in the window.
type callStats struct {
	All, Launches, Syncs, SyncCopies DurationStats
	Names                            []Totals        // by total time
	Procs                            []DurationStats // of launches, by process
	KnownLaunches                    int64           // whose process is known
	Cells                            []Crossed       // name and thread, or trace.None

	api  *trace.API
	span interval.Interval
}

// CallStats goes through the calls twice, and sorts their durations once by name and thread.
func (in *Input) CallStats() *callStats {
	return Once(in, "calls", func() *callStats { return newCallStats(in.Trace, in.Host) })
}

func newCallStats(t *trace.Trace, span interval.Interval) *callStats {
	api := &t.API
	lo, hi := api.Starting(span.Start, span.End)
	cells := NewCombos(len(api.Names), len(t.Threads)+1) // threads are counted from 1, the unknown one is 0
	g := gatherTwice(t.Memory(), lo, hi, func(i int) int32 { return cells.Of(api.Name(i), api.Thread(i)+1) },
		api.Dur).Sort()
	defer g.Free()
	s := &callStats{Cells: make([]Crossed, len(cells.Keys)), api: api, span: span}
	byName, byProc := make([][]int, len(api.Names)), make([][]int, len(t.Procs))
	var launches, syncs, syncCopies []int
	for c, x := range cells.Keys {
		s.Cells[c] = Crossed{A: x.A, B: x.B - 1, Count: int64(g.Of(c).Len()), Total: g.Of(c).Sum()}
		byName[x.A] = append(byName[x.A], c)
		n := &api.Names[x.A]
		if n.Launch {
			launches = append(launches, c)
			if p := t.ProcOf(x.B - 1); p != trace.None {
				byProc[p] = append(byProc[p], c)
				s.KnownLaunches += s.Cells[c].Count
			}
		}
		if n.Sync {
			syncs = append(syncs, c)
		}
		if n.SyncCopy {
			syncCopies = append(syncCopies, c)
		}
	}
	parallel.Do(func() {
		for n, list := range byName {
			if len(list) > 0 {
				s.Names = append(s.Names, Totals{n, g.stats(list).Sums})
			}
		}
	}, func() {
		s.Launches, s.Syncs, s.SyncCopies = g.stats(launches), g.stats(syncs), g.stats(syncCopies)
	}, func() { s.Procs = lists.Map(byProc, g.stats) })
	s.All = statsOf(g.Everything())
	rankTotals(s.Names, func(a, b int) int { return cmp.Compare(api.Names[a].Name, api.Names[b].Name) })
	return s
}

// Rows are the API calls of the window whose name is chosen, in order.
func (s *callStats) Rows(chosen func(n *trace.APIName) bool) []int {
	api := s.api
	names, rows := make([]bool, len(api.Names)), int64(0)
	for _, e := range s.Names {
		if names[e.Key] = chosen(&api.Names[e.Key]); names[e.Key] {
			rows += e.Count
		}
	}
	if rows == 0 {
		return nil
	}
	list := make([]int, 0, rows)
	lo, hi := api.Starting(s.span.Start, s.span.End)
	for i := lo; i < hi; i++ {
		if names[api.Name(i)] {
			list = append(list, i)
		}
	}
	return list
}

// InWindow is how many API calls of the window have a chosen name.
func (s *callStats) InWindow(chosen func(n *trace.APIName) bool) int64 {
	return lists.Sum(s.Chosen(chosen), func(e Totals) int64 { return e.Count })
}

// Chosen are the sums of the calls of the window whose name is chosen, by total time.
func (s *callStats) Chosen(chosen func(n *trace.APIName) bool) []Totals {
	return lists.Filter(s.Names, func(e Totals) bool { return chosen(&s.api.Names[e.Key]) })
}

// InCapture is how many API calls of the capture have a chosen name.
func (s *callStats) InCapture(chosen func(n *trace.APIName) bool) (count int64) {
	api := s.api
	if s.All.Count == int64(api.Len()) { // the window is the capture
		return s.InWindow(chosen)
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

// Overhead is when the profiler was busy with itself.
func Overhead(t *trace.Trace) interval.Set {
	var set interval.Set
	for i := range t.Overhead.Len() {
		set.Add(t.Overhead.Start(i), t.Overhead.End(i))
	}
	return set
}

// OpenRanges is how many ranges of the window were still open when the capture stopped.
func (in *Input) OpenRanges() int {
	return Once(in, "open ranges", func() (n int) {
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

// MaxHistograms is how many kernels, by time, have a histogram of their durations.
const MaxHistograms = 30

// Crossed is a count and a total of events by two keys.
type Crossed struct {
	A, B         int32
	Count, Total int64
}
