package whatif

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// facing evaluates changes on some units: by a replay, or at face value, on units as they were.
type facing struct {
	graph   *stepgraph.Graph
	r       *workunit.Result
	of      *stepgraph.Units
	list    []int32 // units
	stretch interval.Interval
	once    sync.Once
	busy    []int64 // by unit
	full    []bool  // by device: its units are hardly idle
}

func newFacing(g *stepgraph.Graph, r *workunit.Result, list []int32) *facing {
	return &facing{graph: g, r: r, of: g.UnitsOf(r), list: list, stretch: stretchOf(r, list)}
}

// replay returns how long units take after a change, in ns, by unit; -1 for units that were not replayed.
func (f *facing) replay(c *stepgraph.Change) []int64 {
	times := f.graph.Replay(f.stretch, f.of, c)
	f.bound(times, c)
	return times
}

// mostIdle is the largest idle share of the units' time, 0 to 1, up to which a kernel is worth at least the time in
// which nothing else runs.
const mostIdle = 0.02

// look computes once how busy units are.
func (f *facing) look() {
	f.once.Do(func() {
		f.busy = f.covered(func(*timeline.Device, int) bool { return true })
		time, busy := f.sum(func(u int32) int64 { return f.r.Units[u].Time() }), f.sum(func(u int32) int64 { return f.busy[u] })
		f.full = make([]bool, len(time))
		for d := range time {
			f.full[d] = time[d] > 0 && float64(time[d]-busy[d]) < mostIdle*float64(time[d])
		}
	})
}

// sum sums a value of units by device.
func (f *facing) sum(of func(u int32) int64) []int64 {
	list := make([]int64, len(f.graph.Timeline.Devices))
	for _, u := range f.list {
		list[f.r.Units[u].Index] += of(u)
	}
	return list
}

// bound raises the gain of the units of a device that is hardly idle to at least the time in which nothing runs but
// what a change takes away. times are those of a replay, in ns, -1 for units that were not replayed.
func (f *facing) bound(times []int64, c *stepgraph.Change) {
	if c.Work == nil {
		return
	}
	if f.look(); !slices.Contains(f.full, true) {
		return
	}
	alone := f.exclusive(c.Work)
	replayed := func(of func(u int32) int64) []int64 {
		return f.sum(func(u int32) int64 {
			if times[u] < 0 {
				return 0
			}
			return of(u)
		})
	}
	gain, least := replayed(func(u int32) int64 { return f.r.Units[u].Time() - times[u] }), replayed(func(u int32) int64 { return alone[u] })
	for _, u := range f.list {
		if d := f.r.Units[u].Index; times[u] >= 0 && f.full[d] && gain[d] < least[d] {
			times[u] = f.r.Units[u].Time() - alone[u]
		}
	}
}

// pieces returns the range of a device's pieces that start between the first unit's start and the last unit's end.
func (f *facing) pieces(d *timeline.Device) (lo, hi int) {
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for _, u := range f.list {
		from, to = min(from, f.r.Units[u].Start), max(to, f.r.Units[u].End)
	}
	lo = d.From(from)
	return lo, max(lo, d.From(to))
}

// covered returns, by unit of the result, for how many ns such work runs on its device.
func (f *facing) covered(are func(d *timeline.Device, i int) bool) []int64 {
	sum := make([]int64, len(f.r.Units))
	for index := range f.graph.Timeline.Devices {
		units := lists.Filter(f.list, func(u int32) bool { return int(f.r.Units[u].Index) == index })
		if len(units) == 0 {
			continue
		}
		lists.Sort(units, func(a, b int32) int { return cmp.Compare(f.r.Units[a].Start, f.r.Units[b].Start) })
		spans := interval.Cursor{Left: lists.Map(units, func(u int32) interval.Interval {
			return interval.Interval{Start: f.r.Units[u].Start, End: f.r.Units[u].End}
		})}
		d := f.graph.Timeline.Devices[index]
		reached := f.r.Units[units[0]].Start
		lo, hi := f.pieces(d)
		for i := lo; i < hi; i++ {
			end := d.End(i)
			if end <= reached || !are(d, i) {
				continue
			}
			at := max(reached, d.Start(i))
			reached = end
			spans.Advance(at, end)
			spans.Each(at, end, func(k int, start, end int64) { sum[units[k]] += end - start })
		}
	}
	return sum
}

// exclusive returns, by unit, how many ns a change takes of the time in which only work runs that it makes faster.
func (f *facing) exclusive(left func(d *timeline.Device, i int) float64) []int64 {
	var levels []float64 // remaining shares of the work's time, largest first
	for _, device := range f.graph.Timeline.Devices {
		lo, hi := f.pieces(device)
		for i := lo; i < hi; i++ {
			if x := max(0, left(device, i)); !slices.Contains(levels, x) && len(levels) < mostLevels {
				levels = append(levels, x)
			}
		}
	}
	lists.Sort(levels, func(a, b float64) int { return cmp.Compare(b, a) })
	gain, above := make([]int64, len(f.r.Units)), make([]int64, len(f.r.Units))
	for _, level := range levels {
		time := f.covered(func(d *timeline.Device, i int) bool { return max(0, left(d, i)) >= level })
		for u := range gain {
			gain[u] += int64(max(0, 1-level) * float64(time[u]-above[u]))
		}
		above = time
	}
	return gain
}

// mostLevels bounds the number of different factors in one change.
const mostLevels = 16

// times returns how long units take after a change at face value, in ns: without the GPU time that only the affected
// work covers or, for a change of the host, without the idle time that it may explain; -1 for others.
func (f *facing) times(c *stepgraph.Change) []int64 {
	gain := make([]int64, len(f.r.Units))
	add := func(left func(d *timeline.Device, i int) float64) {
		for u, ns := range f.exclusive(left) {
			gain[u] += ns
		}
	}
	if c.Work != nil {
		add(c.Work)
	}
	if c.Overlap {
		add(func(d *timeline.Device, i int) float64 {
			if d.Class(i) == timeline.Comm {
				return 0
			}
			return 1
		})
	}
	if c.HostFree || c.NoWait != nil || c.Graph || c.Call != nil {
		f.look()
		calls := f.calls(c)
		for _, u := range f.list {
			idle := f.r.Units[u].Time() - f.busy[u]
			if !c.HostFree && c.NoWait == nil {
				idle = min(idle, calls[u])
			}
			gain[u] += idle
		}
	}
	list := slices.Repeat([]int64{-1}, len(f.r.Units))
	for _, u := range f.list {
		if f.of.Next[u] != trace.None {
			list[u] = max(0, f.r.Units[u].Time()-gain[u])
		}
	}
	return list
}

// calls returns, by unit, how many ns a change takes away from the calls that start in it.
func (f *facing) calls(c *stepgraph.Change) []int64 {
	sum := make([]int64, len(f.r.Units))
	t := f.graph.Trace()
	api := &t.API
	for _, u := range f.list {
		x := &f.r.Units[u]
		lo, hi := api.Starting(x.Start, x.End)
		for call := lo; call < hi; call++ {
			th, name := api.Thread(call), api.Name(call)
			if th == trace.None || x.Proc != trace.None && t.Threads[th].Proc != x.Proc {
				continue
			}
			left := 1.0
			if c.Call != nil {
				left = max(0, c.Call(name))
			}
			if c.Graph && api.Names[name].Launch {
				left = 0
			}
			sum[u] += int64(max(0, 1-left) * float64(api.Dur(call)))
		}
	}
	return sum
}
