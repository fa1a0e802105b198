package steps

import (
	"cmp"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// units emits how the time of units is spent. absent is their time without compute, nil if it is not known yet.
func (r *pathRun) units(absent []absences) {
	x := r.in.Units
	g := r.in.UnitGraph()
	if g == nil {
		return
	}
	k := kindsOf(r.in)
	if absent == nil {
		_, absent = r.absences(g)
	}
	emit := func(s *unitSet, pairs ...string) {
		for a, name := range stepgraph.AbsenceNames {
			values := lists.Map(s.Units, func(u int32) int64 { return absent[u][a] })
			s.summary(r.out, "unit.no_compute_time", kit.Labels(append(pairs, "cause", name)...), values)
		}
	}
	r.from(r.in.Timeline.Pieces())
	emit(k.main)
	for _, s := range k.devices {
		emit(s, "device", strconv.Itoa(int(s.Device)))
	}
	if x.Kind == workunit.KindNVTX || len(x.Groups) > 1 {
		for _, s := range k.phases {
			emit(s, "phase", x.Groups[s.Group].Phase)
		}
	}
	units := g.UnitsOf(x)
	r.paths(g, units, k.main)
	r.fit(g, units, k.main)
	r.whatIfs()
}

// spread is at most n of a list, evenly spread.
func spread(list []int32, n int) []int32 {
	if len(list) <= n {
		return list
	}
	return lists.Map(lists.Indexes[int](n), func(i int) int32 { return list[i*len(list)/n] })
}

// paths walks the critical paths of the units of a set, and shows those of the median and of the slowest.
func (r *pathRun) paths(g *stepgraph.Graph, units *stepgraph.Units, main *unitSet) {
	x := r.in.Units
	var values [pathParts][]int64
	list := lists.Filter(main.Units, func(u int32) bool { return units.Next[u] != trace.None })
	walked := spread(list, mostUnits)
	if len(walked) < len(list) {
		r.out.Note("Critical paths are of " + strconv.Itoa(len(walked)) + " of " + strconv.Itoa(len(list)) +
			" units, evenly spread.")
	}
	for _, u := range walked {
		var sum [pathParts]int64
		g.Walk(units.Next[u], x.Units[u].Start, func(s *stepgraph.Step) {
			r.split(g, s, func(part int, _ string, ns int64) { sum[part] += ns })
		})
		for part, ns := range sum {
			values[part] = append(values[part], ns)
		}
	}
	if len(list) == 0 {
		return
	}
	for part, name := range partNames {
		main.summary(r.out, "unit.path_time", kit.Labels("part", name), values[part])
	}
	lists.Sort(list, func(a, b int32) int { return cmp.Compare(x.Units[a].Time(), x.Units[b].Time()) })
	t, whole := r.out.Table("critical_path"), r.out.Table("critical_path")
	cut := r.path(t, whole, g, "median", x.Units[list[(len(list)-1)/2]], units.Next[list[(len(list)-1)/2]])
	if n := len(list); n > 1 {
		cut = r.path(t, whole, g, "slowest", x.Units[list[n-1]], units.Next[list[n-1]]) || cut
	}
	t.TotalRows = int64(whole.Len())
	t.Add()
	if cut {
		whole.Attach()
	}
}

// split splits a step into its parts, each with the name of what it is.
func (r *pathRun) split(g *stepgraph.Graph, s *stepgraph.Step, tell func(part int, name string, ns int64)) {
	ns := s.End - s.Start
	if r.unresolved {
		tell(partUnknown, "(unresolved)", ns)
		return
	}
	switch s.Kind {
	case stepgraph.Runs:
		d, i := g.Place(s.Piece)
		device, part := g.Timeline.Devices[d], partCompute
		switch device.Class(i) {
		case timeline.Comm:
			part = partComm
		case timeline.Copy:
			part = partCopy
		case timeline.Compute, timeline.Idle:
		}
		tell(part, r.in.WorkNames().Of(device, i), ns)
	case stepgraph.AfterWork:
		tell(partLatency, "(between pieces of work)", ns)
	case stepgraph.AfterCall:
		tell(partLatency, "(from a launch to its start)", ns)
	case stepgraph.InCall:
		tell(partCall, r.callName(s.Call), ns)
	case stepgraph.OnHost:
		g.CallsBetween(s.Call, s.Start, s.End, func(call int32, start, end int64) {
			if call == trace.None {
				tell(partHost, "(host code)", end-start)
				return
			}
			tell(partCall, r.callName(call), end-start)
		})
	case stepgraph.Unexplained, stepgraph.Unknown:
		tell(partUnknown, "(unknown)", ns)
	}
}

// path adds the rows of one unit's path, longest first: all to whole, and to t the first maxPathRows and one for the
// others. It reports whether there are others.
func (r *pathRun) path(t, whole *kit.Table, g *stepgraph.Graph, which string, u workunit.Unit, next int32) bool {
	type key struct {
		part int
		name string
	}
	sums := kit.NewTally[key, spent]()
	g.Walk(next, u.Start, func(s *stepgraph.Step) {
		r.split(g, s, func(part int, name string, ns int64) { sums.At(key{part, name}).add(spent{1, ns}) })
	})
	order := longestFirst(sums, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.name, b.name))
	})
	add := func(t *kit.Table, part, name string, e spent) {
		t.Row(kit.Text("unit", which), kit.Text("part", part), kit.Text("name", name), kit.Int("count", e.count),
			kit.Int("time", e.ns), kit.Maybe("share", stat.Ratio(e.ns, u.Time())))
	}
	var rest spent
	for i, k := range order {
		e := *sums.At(k)
		add(whole, partNames[k.part], k.name, e)
		if i < maxPathRows {
			add(t, partNames[k.part], k.name, e)
		} else {
			rest.add(e)
		}
	}
	if rest.count > 0 {
		add(t, "", "(others)", rest)
	}
	return rest.count > 0
}

// fit emits how well the graph explains the units.
func (r *pathRun) fit(g *stepgraph.Graph, units *stepgraph.Units, main *unitSet) {
	x := r.in.Units
	stretch := stepgraph.Stretch(x, main.Units)
	usual := g.Replay(stretch, units, &stepgraph.Change{Typical: true})
	var off, times []int64
	for _, u := range main.Units {
		if ns := x.Units[u].Time(); usual[u] >= 0 {
			off, times = append(off, max(usual[u]-ns, ns-usual[u])), append(times, ns)
		}
	}
	if len(off) == 0 {
		return
	}
	r.from(r.in.Timeline.Pieces())
	m := r.out.Summary("unit.replay_error", nil, off)
	m.Group = main.id
	if m := *m.Value / max(1, stat.Summarize(times).P50); m > badFit {
		r.out.Warn("graph_fit", "The graph of dependencies does not explain the units: replayed with typical "+
			"latencies they are off by "+strconv.FormatFloat(100*m, 'f', 1, 64)+" % (median). Read paths and ceilings with care.")
	}
}

// badFit is the error of a replay, as a share of the unit, from which to warn.
const badFit = 0.01
