package gpu

import (
	"slices"
	"sort"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Activity = kit.Section{
	ID: "activity", Group: report.GroupTime, Title: "Activity over the window",
	Derivation: "The window in equal slices. A launch call, a copy or a kernel counts in the slice in which it starts; " +
		"blocking calls, GPU use and units of work count by their time in the slice. GPU use is the mean over " +
		"devices; units are those of the first device and process.",
	Tables: []report.Table{
		{ID: "activity", Title: "Activity", File: "activity.csv", Merge: report.Leave, Columns: []report.Column{
			kit.MomentCol("start", "From", "start_ns", "start_ms"),
			kit.RatioCol("busy", "GPU use", "pct_gpu_use"),
			kit.CountCol("launches", "Launches", "launch_count"),
			kit.NsCol("sync", "Blocking sync", "sync_time_ms"),
			kit.BytesCol("copied", "Copied"),
			kit.RatioCol("in_graphs", "In CUDA graphs", "pct_in_graphs"),
			kit.TextCol("phase", "Main phase"),
		}},
	},
	Run: activity,
}

// activitySteps is how many steps the window is cut into.
const activitySteps = 100

type steps struct {
	starts []int64 // of each step, and the end of the last
	last   int     // the last step that was found: events come by start
}

// sums are a number of each step, 0 so far.
func sums() []float64 { return make([]float64, activitySteps) }

// of is the step at a moment, or -1 outside of the window.
func (s *steps) of(t int64) int {
	if t < s.starts[0] || t >= s.starts[activitySteps] {
		return -1
	}
	if t >= s.starts[s.last] && t < s.starts[s.last+1] {
		return s.last
	}
	s.last = sort.Search(activitySteps, func(i int) bool { return s.starts[i+1] > t })
	return s.last
}

// spread adds the time of [from, to) to the steps that it lies in.
func (s *steps) spread(from, to int64, add func(i int, ns int64)) {
	from, to = max(from, s.starts[0]), min(to, s.starts[activitySteps])
	if from >= to {
		return
	}
	for i := s.of(from); i < activitySteps && s.starts[i] < to; i++ {
		add(i, min(to, s.starts[i+1])-max(from, s.starts[i]))
	}
}

func activity(in *kit.Input, out *kit.Output) {
	if in.Span.Len() < activitySteps {
		out.Status(report.NotApplicable, "the window is too short to be cut into steps")
		return
	}
	s := &steps{starts: chunkStarts(in.Span, activitySteps)}
	busy := sums()
	for i := range in.Timeline.Devices {
		for k, use := range idleByDevice(in)[i].strip {
			busy[k] += use / float64(len(in.Timeline.Devices))
		}
	}
	launches, blocked := hostSteps(in, s)
	copied, inGraphs := gpuSteps(in, s)
	phases, main := phaseSteps(in, s)
	t := out.Table("activity")
	for i := range activitySteps {
		row := []kit.Field{
			kit.Int("start", s.starts[i]), kit.Int("launches", int64(launches[i])),
			kit.Int("sync", int64(blocked[i])), kit.Int("copied", int64(copied[i])),
			kit.Maybe("in_graphs", inGraphs[i]), kit.Put("phase", report.OrNull(main[i])),
		}
		if len(in.Timeline.Devices) > 0 {
			row = append(row, kit.Float("busy", busy[i]))
		}
		t.Partial(row...)
	}
	t.Add()
	labels := sinceStart(in.Span, s.starts[:activitySteps])
	draw := func(id, title, unit string, series ...report.Series) {
		some := false
		for i := range series {
			series[i].Labels = labels
			some = some || slices.ContainsFunc(series[i].Values, func(v float64) bool { return v != 0 })
		}
		if some {
			out.Chart(report.Chart{ID: id, Title: title, Kind: "strip", Unit: unit, XUnit: report.Nanoseconds,
				XTitle: "Since the window's start", Series: series})
		}
	}
	if len(phases) > 0 {
		draw("activity_phases", "Units of work over the window, by phase", report.Ratio, phases...)
	}
	draw("activity_launches", "Launch calls over the window", report.Count,
		report.Series{Name: "launch calls", Values: launches})
	draw("activity_sync", "Time in blocking synchronisation over the window, threads added up", report.Nanoseconds,
		report.Series{Name: "blocking sync", Values: blocked})
	draw("activity_copies", "Bytes copied over the window", report.Bytes, report.Series{Name: "copied", Values: copied})
	graphs := lists.Map(inGraphs, func(v *float64) float64 { return report.ValueOr(v, 0) })
	draw("activity_graphs", "Share of kernel time inside CUDA graphs over the window", report.Ratio,
		report.Series{Name: "in CUDA graphs", Values: graphs})
}

// hostSteps counts launch calls and adds up blocking ones.
func hostSteps(in *kit.Input, s *steps) (launches, blocked []float64) {
	launches, blocked = sums(), sums()
	a := &in.Trace.API
	for i := range a.Len() {
		switch n := &a.Names[a.Name(i)]; {
		case n.Launch:
			if at := s.of(a.Start(i)); at >= 0 {
				launches[at]++
			}
		case n.Sync:
			s.spread(a.Start(i), a.End(i), func(k int, ns int64) { blocked[k] += float64(ns) })
		}
	}
	return launches, blocked
}

// gpuSteps adds up the bytes of copies, and the share of kernel time inside CUDA graphs; null without kernel time.
func gpuSteps(in *kit.Input, s *steps) (copied []float64, inGraphs []*float64) {
	copied = sums()
	c := &in.Trace.Copies
	for i := range c.Len() {
		if at := s.of(c.Start(i)); at >= 0 {
			copied[at] += float64(c.Bytes(i))
		}
	}
	var all, graph [activitySteps]int64
	k := &in.Trace.Kernels
	for i := range k.Len() {
		if at := s.of(k.Start(i)); at >= 0 {
			all[at] += k.Dur(i)
			if k.InGraph(i) {
				graph[at] += k.Dur(i)
			}
		}
	}
	g := &in.Trace.Graphs
	for i := range g.Len() {
		if at := s.of(g.Start(i)); at >= 0 {
			all[at] += g.Dur(i)
			graph[at] += g.Dur(i)
		}
	}
	inGraphs = make([]*float64, activitySteps)
	for i := range all {
		inGraphs[i] = stat.Ratio(graph[i], all[i])
	}
	return copied, inGraphs
}

// phaseSteps is the share of each step that units of each phase take, and the phase with most of it. Units of one
// process on one device never overlap, so the shares add up to at most 1.
func phaseSteps(in *kit.Input, s *steps) (list []report.Series, main []string) {
	main = make([]string, activitySteps)
	if len(in.Units.Units) == 0 {
		return nil, main
	}
	first := &in.Units.Units[0]
	for _, u := range in.Units.Units {
		if u.Device != first.Device || u.Proc != first.Proc || u.Group < 0 {
			continue
		}
		phase := in.Units.Groups[u.Group].Phase
		line := lists.Entry(&list, func(x report.Series) bool { return x.Name == phase }, report.Series{Name: phase, Values: sums()})
		s.spread(u.Start, u.End, func(k int, ns int64) {
			line.Values[k] += float64(ns) / float64(s.starts[k+1]-s.starts[k])
		})
	}
	for k := range main {
		most := 0.0
		for i := range list {
			if v := list[i].Values[k]; v > most {
				most, main[k] = v, list[i].Name
			}
		}
	}
	return list, main
}
