package steps

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Bounds of a unit that is shown event by event.
const (
	maxShownWork   = 4_000 // on the device, and of calls; gaps are at most one more
	maxShownRanges = 400
	// maxShownThreads bounds the launching threads.
	maxShownThreads = 4
	lookBack        = 20_000 // calls before the unit, of which one may reach into it
)

// named is something with a name that steps name, and its category.
type named struct{ name, category string }

// nameTable numbers what steps name: kernels, copies, calls and ranges.
type nameTable struct{ lists.Numbering[named] }

func (t *nameTable) of(name, category string) int { return int(t.Of(named{name, category})) }

// label is the name and category of a piece of work.
func (t *nameTable) label(in *kit.Input, d *timeline.Device, i int) int {
	row := d.Row(i)
	switch d.Kind(i) {
	case timeline.KernelWork:
		n := in.Trace.Kernels.Name(row)
		return t.of(in.Trace.Kernels.Names[n].Name, string(in.Kinds[n].Category))
	case timeline.GraphWork:
		return t.of(graphLabel, graphCategory)
	case timeline.CopyWork:
		return t.of("[copy "+kit.Directions[kit.Direction(in.Trace.Copies.Kind(row))]+"]", copyCategory)
	case timeline.SetWork:
	}
	return t.of("[memset]", copyCategory)
}

// copyCategory is the category of copies and memsets in figures.
const copyCategory = "copy"

// slowest is the unit of all of the sequence that took longest: the median one if none took longer.
func (q *sequence) slowest() int32 {
	units := q.in.Units.Units
	return slices.MaxFunc(slices.Concat([]int32{q.set.Units[q.median]}, q.all.Units), func(a, b int32) int {
		return cmp.Compare(units[a].Time(), units[b].Time())
	})
}

// showUnit shows a unit event by event.
func showUnit(in *kit.Input, which string, unit int32, names *nameTable) *report.UnitShown {
	u := &in.Units.Units[unit]
	device := in.Units.Timeline.Devices[u.Index]
	work, gaps := workOf(device, u.Start, u.End)
	s := &report.UnitShown{Which: which, Number: int64(u.Number), Start: u.Start, Duration: u.Time()}
	s.LeftOut += int64(max(len(work)-maxShownWork, 0))
	work = work[:min(len(work), maxShownWork)]
	places := map[int32]int64{} // of the listed calls, by row
	callsOf := func(thread int32) []report.UnitEvent {
		list, rows := shownCalls(in, thread, u.Start, u.End, names)
		s.LeftOut += int64(max(len(list)-maxShownWork, 0))
		for _, row := range rows[:min(len(rows), maxShownWork)] {
			places[row] = int64(len(places))
		}
		return list[:min(len(list), maxShownWork)]
	}
	threads := launching(in, device, unit)
	var calls, ranges []report.UnitEvent
	if len(threads) > 0 {
		thread := threads[0]
		s.Thread = in.Trace.Threads[thread].Name
		calls, ranges = callsOf(thread), shownRanges(in, thread, u.Start, u.End, names)
	}
	if len(gaps) > maxShownWork+1 {
		s.LeftOut += int64(len(gaps) - maxShownWork - 1)
		gaps = gaps[:maxShownWork+1]
	}
	events, origins := make([]report.UnitEvent, len(work)), make([]report.UnitOrigin, len(work))
	for k, i := range work {
		start := max(device.Start(i), u.Start)
		events[k] = report.UnitEvent{Name: names.label(in, device, i), Lane: device.Stream(i),
			Start: start - u.Start, Duration: min(device.End(i), u.End) - start}
	}
	s.SetEvents(events, calls, ranges, gaps)
	for i, th := range threads {
		if i > 0 && i < maxShownThreads {
			s.AddThread(in.Trace.Threads[th].Name, callsOf(th))
		}
	}
	for k, i := range work {
		origins[k] = originOf(in, device, i, places, names)
	}
	s.SetOrigins(origins)
	s.Path = pathOf(in, unit)
	return s
}

// originOf is the origin of a piece of work: its call among those listed, and the geometry of its launch.
func originOf(in *kit.Input, d *timeline.Device, i int, places map[int32]int64, names *nameTable) report.UnitOrigin {
	o := report.UnitOrigin{Call: -1, Shape: -1}
	if call, ok := places[d.Call(i)]; ok {
		o.Call = call
	}
	if d.Kind(i) == timeline.KernelWork {
		kernels := &in.Trace.Kernels
		if text := geometry(kernels.Configs[kernels.Config(d.Row(i))]); text != "" {
			o.Shape = int64(names.of(text, shapeCategory))
		}
	}
	return o
}

// shapeCategory is that of the names of launch geometries.
const shapeCategory = "geometry"

// workOf is the work of the device between two moments, and the gaps in it.
func workOf(d *timeline.Device, from, to int64) (work []int, gaps []report.UnitGap) {
	work = lists.Where(d.From(to), func(i int) bool { return d.End(i) > from })
	d.Stretches().Visit(interval.Interval{Start: from, End: to}, func(g *timeline.Gap, _ *[timeline.Idle]int64) {
		gaps = append(gaps, report.UnitGap{Start: max(g.Start, from) - from, Causes: g.Within(from, to)})
	}, func(int, int64, int64, *[timeline.Idle]int64) {})
	return work, gaps
}

// launching are the threads that launched a unit's kernels, that with most of them first.
func launching(in *kit.Input, d *timeline.Device, unit int32) []int32 {
	counts := kit.NewTally[int32, int]()
	kernelsOf(in, oneUnit(unit), func(i int, _ int32) {
		if call := d.Call(i); call != trace.None {
			if th := in.Trace.API.Thread(int(call)); th != trace.None {
				*counts.At(th)++
			}
		}
	})
	list := slices.Clone(counts.Keys)
	lists.Sort(list, func(a, b int32) int { return cmp.Compare(*counts.At(b), *counts.At(a)) })
	return list
}

// shownCalls are the API calls of a thread between two moments, cut at them, and their rows.
func shownCalls(in *kit.Input, thread int32, from, to int64, names *nameTable) (list []report.UnitEvent, rows []int32) {
	api := &in.Trace.API
	within := func(i int32) (start, end int64) { return max(api.Start(int(i)), from), min(api.End(int(i)), to) }
	lo, hi := api.Starting(from, to)
	for i := int32(max(lo-lookBack, 0)); i < int32(hi); i++ {
		if start, end := within(i); api.Thread(int(i)) == thread && end > start {
			rows = append(rows, i)
		}
	}
	lists.Sort(rows, func(a, b int32) int {
		start, end := within(a)
		otherStart, otherEnd := within(b)
		return byTimeOf(start, end, otherStart, otherEnd)
	})
	for _, i := range rows {
		start, end := within(i)
		list = append(list, report.UnitEvent{Name: names.of(api.Names[api.Name(int(i))].Name, callCategory(in, int(i))),
			Start: start - from, Duration: end - start})
	}
	return list, rows
}

// callCategory is the kind of a call, for figures: launch, sync or call.
func callCategory(in *kit.Input, i int) string {
	switch n := &in.Trace.API.Names[in.Trace.API.Name(i)]; {
	case n.Launch:
		return "launch"
	case n.Blocking() || n.OldSync:
		return "sync"
	}
	return "call"
}

// shownRanges are the ranges open on a thread between two moments, cut at them, each below those around it; if there
// are many, the longest.
func shownRanges(in *kit.Input, thread int32, from, to int64, names *nameTable) []report.UnitEvent {
	r := &in.Trace.Ranges
	var list []report.UnitEvent
	for i := range r.Len() {
		if r.Start(i) >= to {
			break
		}
		if start, end := max(r.Start(i), from), min(r.End(i), to); r.Thread(i) == thread && end > start {
			list = append(list, report.UnitEvent{Name: int(r.Name(i)), Start: start - from, Duration: end - start})
		}
	}
	lists.Sort(list, func(a, b report.UnitEvent) int {
		return byTimeOf(a.Start, a.Start+a.Duration, b.Start, b.Start+b.Duration)
	})
	var ends []int64 // of the ranges around
	for i := range list {
		e := &list[i]
		for len(ends) > 0 && ends[len(ends)-1] <= e.Start {
			ends = ends[:len(ends)-1]
		}
		e.Lane = int64(len(ends))
		ends = append(ends, e.Start+e.Duration)
	}
	if len(list) > maxShownRanges {
		order := slices.Clone(list)
		lists.Sort(order, func(a, b report.UnitEvent) int { return cmp.Compare(b.Duration, a.Duration) })
		least := order[maxShownRanges-1].Duration
		list = slices.DeleteFunc(list, func(e report.UnitEvent) bool { return e.Duration < least })
		list = list[:min(len(list), maxShownRanges)]
	}
	for i := range list {
		list[i].Name = names.of(r.Names[list[i].Name].Text, "range")
	}
	return list
}
