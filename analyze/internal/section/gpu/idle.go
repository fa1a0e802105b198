package gpu

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Idle = kit.Section{
	ID: "idle", Group: report.GroupTime, Title: "Idle gaps", Steady: true, Work: true,
	Derivation: "Every stretch of a device's window in which no kernel, CUDA graph trace, copy or memset ran, " +
		"with the work before and after it. The cause is split by the API call that launched the next work; the API call " +
		"is the one in which that call's thread spent at least half of the gap, the NVTX range the innermost " +
		"one open on it in the middle of the gap.",
	Findings: []kit.FindingDef{
		{ID: "gpu_gaps", Title: "The GPU does nothing for more than half a second at a time", General: true},
		{ID: "host_functions", Title: "A stream waits for functions that the host runs for it"},
		{ID: "gpu_low_use", Title: "For a part of the window the GPU is busy for less than half of the time"},
	},
	Metrics: []report.MetricDef{
		kit.NoisyCount("idle.gap_count", report.Lower, report.Device, "idle gaps of the device").By("device"),
		kit.EventTime("idle.gap_time", report.Lower, report.Device,
			"median length of an idle gap; the summary is over gaps").Summarised().By("device"),
		kit.TotalTime("idle.longest_gap", report.Lower, report.Device,
			"length of the device's longest idle gap").By("device").Quoted(),
		kit.NoisyCount("idle.long_gap_count", report.Lower, report.Device, "gaps of more than 500 ms between two "+
			"pieces of work, profiler overhead left out, as nsys' rule gpu_gaps counts them").By("device").Quoted(),
		kit.TotalTime("idle.host_function_time", report.Lower, report.Device,
			"idle time in which the next work was launched, and the host ran a function that its stream or its graph "+
				"waited for; part of cause dependency, or unknown").By("device"),
		kit.Ratio("idle.low_use_ratio", report.Lower, report.Device,
			"share of the window's 30 equal chunks in which the device was busy for less than half of the time, as "+
				"nsys' rule gpu_time_util counts them").By("device").Quoted(),
	},
	Tables: []report.Table{
		{ID: "idle_gaps", Title: "Longest idle gaps", File: "gpu_idle_gaps.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("device_id", "GPU"),
			kit.Wide(kit.MomentCol("start", "Start", "gap_start_ns")),
			kit.Wide(kit.MomentCol("end", "End", "gap_end_ns")),
			kit.NsCol("gap", "Gap", "gap_ms"),
			kit.TextCol("main_cause", "Main cause"),
			kit.NameCol("previous", "Before"),
			kit.NameCol("next", "After"),
			kit.NameCol("api_call", "API call"),
			kit.Wide(kit.NameCol("nvtx_range", "NVTX range")),
			kit.Wide(kit.IDCol("pid", "PID")),
			kit.Wide(kit.IDCol("tid", "TID")),
			kit.Wide(kit.NsCol("sync", "Sync", "sync_ms")),
			kit.Wide(kit.NsCol("host", "Host", "host_ms")),
			kit.Wide(kit.NsCol("launch", "Launch", "launch_ms")),
			kit.Wide(kit.NsCol("dependency", "Dependency", "dependency_ms")),
			kit.Wide(kit.NsCol("unknown", "Unknown", "unknown_ms")),
		}},
		hostFuncTable,
	},
	Gaps: func(in *kit.Input) []*timeline.Visitor { return visitors(idleLooks(in)) },
	Run:  idle,
}

const (
	topGaps      = 50          // rows of the table, as nsys-llm-explainer's
	longGap      = 500_000_000 // ns, nsys' rule gpu_gaps
	useChunks    = 30          // nsys' rule gpu_time_util
	lowUse       = 0.50
	lowUseShare  = 0.10 // of the window, from which low use is a finding
	stripBuckets = 100
	stripGaps    = 5 // longest gaps marked below a device's strip
)

func idle(in *kit.Input, out *kit.Output) {
	chart := report.Chart{ID: "utilisation", Title: "GPU use over the window", Kind: "strip", Unit: report.Ratio,
		XUnit: report.Nanoseconds, XTitle: "Since the window's start"}
	var top []deviceGap
	gaps := 0
	var left [timeline.Causes]int64
	found := idleByDevice(in)
	for i, x := range found {
		x.emit(in, out)
		if i < kit.MaxDeviceMetrics {
			chart.Series = append(chart.Series, x.utilisation(in.Span))
			if len(x.top) > 0 {
				chart.Series = append(chart.Series, x.markedGaps(in.Span))
			}
		}
		for _, g := range x.top {
			top = insertGap(top, g)
		}
		for c, ns := range x.device.Cause {
			left[c] += ns
		}
		gaps += x.device.GapCount
	}
	for i := range top {
		for c, ns := range top[i].Cause {
			left[c] -= ns
		}
	}
	gapTable(in, out, top, gaps, left).Add()
	hostFuncRows(in, out)
	if in.Options.AllRows && gaps > len(top) {
		var all []deviceGap
		for _, x := range found {
			all = append(all, x.all...)
		}
		lists.Sort(all, func(a, b deviceGap) int { return cmp.Compare(b.Len(), a.Len()) })
		gapTable(in, out, all, gaps, left).Attach()
	}
	out.Chart(chart)
	if gaps == 0 {
		out.Status(report.NotApplicable, "the GPU is never idle in the window")
		return
	}
	out.Note("A gap's causes are explained in the section on GPU time. nsys-llm-explainer looks for gaps between kernels only: copies, memsets and CUDA graph traces end a gap here.")
	if in.Span.Len() >= shortWindow && in.Trace.RanKernels() {
		idleFindings(in, out, found)
		hostFuncFinding(in, out, found)
	}
}

// insertGap keeps the longest gaps in order: by length, then device, then start.
func insertGap(top []deviceGap, g deviceGap) []deviceGap {
	if len(top) == topGaps && g.Len() <= top[topGaps-1].Len() {
		return top // gaps come by device and start, so that the one kept is the earlier one
	}
	at, _ := slices.BinarySearchFunc(top, g, func(a, b deviceGap) int {
		return cmp.Or(cmp.Compare(b.Len(), a.Len()), cmp.Compare(a.device.ID, b.device.ID),
			cmp.Compare(a.Start, b.Start))
	})
	if len(top) == topGaps {
		top = top[:topGaps-1]
	}
	return slices.Insert(top, at, g)
}

// deviceIdle visits the gaps of one device, and holds the numbers about them.
type deviceIdle struct {
	timeline.Visitor
	device     *timeline.Device
	summary    *report.Summary
	histogram  *report.Histogram
	long       int
	held       int64     // ns of gaps in which a host function held the next work
	use, strip []float64 // busy shares of the window's chunks, of nsys' rule and of the chart
	top        []deviceGap
	all        []deviceGap // only if all rows were asked for
}

func idleByDevice(in *kit.Input) []*deviceIdle {
	return kit.Once(in, "idle", func() []*deviceIdle {
		looks := idleLooks(in)
		in.Visit(in.Timeline, visitors(looks))
		return looks
	})
}

func idleLooks(in *kit.Input) []*deviceIdle {
	return kit.Once(in, "idle looks", func() []*deviceIdle {
		overhead, at, held := kit.Overhead(in.Trace), newIdleMoments(in.Span), newHeldWork(in.Trace)
		return lists.Map(in.Timeline.Devices, func(d *timeline.Device) *deviceIdle {
			return newIdleLook(in, d, overhead, at, held)
		})
	})
}

// idleMoments are the moments at which the use of devices is needed.
type idleMoments struct{ chunks, buckets, all []int64 }

func newIdleMoments(window interval.Interval) *idleMoments {
	at := &idleMoments{}
	if window.Len() >= useChunks {
		at.chunks = chunkStarts(window, useChunks)
	}
	if n := min(stripBuckets, window.Len()); n > 0 {
		at.buckets = chunkStarts(window, int(n))
	}
	at.all = slices.Concat(at.chunks, at.buckets)
	slices.Sort(at.all)
	return at
}

func visitors(looks []*deviceIdle) []*timeline.Visitor {
	return lists.Map(looks, func(x *deviceIdle) *timeline.Visitor { return &x.Visitor })
}

func newIdleLook(in *kit.Input, d *timeline.Device, overhead interval.Set, at *idleMoments, held heldWork) *deviceIdle {
	x := &deviceIdle{Visitor: timeline.Visitor{Moments: at.all}, device: d}
	room := spill.Make[uint32](in.Trace.Memory(), d.GapCount)
	lengths := stat.Narrow(room[:0])
	x.Gap = func(g *timeline.Gap) {
		lengths.Add(g.Len())
		if g.Len() > longGap && g.Prev != trace.None && g.Next != trace.None &&
			uncovered(g.Interval, overhead) > longGap {
			x.long++
		}
		x.held += held.within(d, g)
		if len(x.top) < topGaps || g.Len() > x.top[topGaps-1].Len() {
			x.top = insertGap(x.top, deviceGap{d, *g})
		}
		if in.Options.AllRows {
			x.all = append(x.all, deviceGap{d, *g})
		}
	}
	x.End = func() {
		busy := func(moment int64) int64 {
			i, _ := slices.BinarySearch(at.all, moment)
			return x.Times[i].Busy()
		}
		x.use, x.strip = chunkUse(at.chunks, busy), chunkUse(at.buckets, busy)
		kit.SortIn(in.Trace.Memory(), lengths)
		x.summary, x.histogram = lengths.Summary(), lengths.Histogram()
		spill.Free(in.Trace.Memory(), room)
		x.Gap, x.End, x.Times = nil, nil, nil // with many devices they take much memory
	}
	return x
}

func (x *deviceIdle) emit(in *kit.Input, out *kit.Output) {
	d, l := x.device, kit.Labels("device", deviceID(x.device))
	out.FromWork(d.Len(), "start", "end", "deviceId")
	out.Int("idle.gap_count", l, int64(d.GapCount))
	if s := x.summary; s != nil {
		m := out.Float("idle.gap_time", l, s.P50)
		m.N, m.Summary, m.Histogram = s.N, s, x.histogram
		out.Float("idle.longest_gap", l, s.Max)
	}
	out.Int("idle.long_gap_count", l, int64(x.long))
	if in.Trace.Tables.Has(trace.RoleHostFunc) {
		out.Source.With(trace.RoleHostFunc, "start", "end", "streamId")
		out.Int("idle.host_function_time", l, x.held)
	}
	if x.use != nil {
		out.Float("idle.low_use_ratio", l, x.lowUse())
	}
}

// lowUse is the share of the window's chunks in which the device was busy for less than lowUse of the time.
func (x *deviceIdle) lowUse() float64 {
	low := lists.Count(x.use, func(use float64) bool { return use < lowUse })
	return float64(low) / useChunks
}

// uncovered is the longest piece of the gap outside the set.
func uncovered(gap interval.Interval, set interval.Set) int64 {
	longest, at := int64(0), gap.Start
	for _, o := range set.Clip(gap.Start, gap.End) {
		longest, at = max(longest, o.Start-at), o.End
	}
	return max(longest, gap.End-at)
}

// chunkUse is the share of each chunk in which the device was busy, by how long it was up to a moment.
func chunkUse(starts []int64, busy func(at int64) int64) []float64 {
	if starts == nil {
		return nil
	}
	use := make([]float64, len(starts)-1)
	for i := range use {
		from, to := starts[i], starts[i+1]
		use[i] = float64(busy(to)-busy(from)) / float64(to-from)
	}
	return use
}

// utilisation is the device's busy share over the window, by the start of each bucket.
func (x *deviceIdle) utilisation(window interval.Interval) report.Series {
	if len(x.strip) == 0 {
		return report.Series{Name: "GPU " + deviceID(x.device), Labels: []string{}, Values: []float64{}}
	}
	starts := chunkStarts(window, len(x.strip))[:len(x.strip)]
	return report.Series{Name: "GPU " + deviceID(x.device), Labels: sinceStart(window, starts), Values: x.strip}
}

// markedGaps are the device's longest gaps, longest first, by their start: their share of the window.
func (x *deviceIdle) markedGaps(window interval.Interval) report.Series {
	top := x.top[:min(len(x.top), stripGaps)]
	return report.Series{Name: "GPU " + deviceID(x.device) + ", longest gaps", Style: "marks",
		Labels: sinceStart(window, lists.Map(top, func(g deviceGap) int64 { return g.Start })),
		Values: lists.Map(top, func(g deviceGap) float64 { return float64(g.Len()) / float64(window.Len()) })}
}

func gapTable(in *kit.Input, out *kit.Output, top []deviceGap, total int, left [timeline.Causes]int64) *kit.Table {
	t := out.Table("idle_gaps")
	around := lookAround(in, top)
	for i, g := range top {
		a := &around[i]
		t.Row(append(causeFields(g.Cause),
			kit.Int("device_id", int64(g.device.ID)), kit.Int("start", g.Start), kit.Int("end", g.End),
			kit.Int("gap", g.Len()),
			kit.Text("main_cause", timeline.CauseNames[g.Main()]),
			kit.Put("previous", in.WorkNames().Cell(g.device, g.Prev)), kit.Put("next", in.WorkNames().Cell(g.device, g.Next)),
			kit.Put("api_call", report.OrNull(a.api)), kit.Put("nvtx_range", report.OrNull(a.text)),
			a.pid, kit.Put("tid", a.tid))...)
	}
	if total > len(top) {
		t.Partial(append(causeFields(left), kit.Text("main_cause", "(others)"), kit.Int("gap", lists.Total(left[:])))...)
		t.Others = true
	}
	t.TotalRows = int64(total)
	return t
}

func idleFindings(in *kit.Input, out *kit.Output, found []*deviceIdle) {
	if i := slices.IndexFunc(found, func(x *deviceIdle) bool { return x.long > 0 }); i >= 0 {
		d := found[i].device
		id := deviceID(d)
		main, _ := extremes(timeline.Causes, func(c int) int64 { return d.Cause[c] })
		out.Find("gpu_gaps", []report.MetricRef{kit.Ref("idle.long_gap_count", "device", id),
			kit.Ref("idle.longest_gap", "device", id), kit.Ref("gpu.idle_cause_time", "cause",
				timeline.CauseNames[main], "device", id)},
			"Gaps as long as these (nsys' expert rule gpu_gaps) are load, warm-up or waiting for requests rather than a part of serving: narrow the window ("+in.NarrowFlags()+") before reading ratios.",
			"If they belong to the work, the table of the longest gaps says what ran before and after them and what the launching thread did.",
		)
	}
	lowUse := func(x *deviceIdle) bool { return x.use != nil && x.lowUse() >= lowUseShare }
	if i := slices.IndexFunc(found, lowUse); i >= 0 {
		id := deviceID(found[i].device)
		out.Find("gpu_low_use",
			[]report.MetricRef{kit.Ref("idle.low_use_ratio", "device", id),
				kit.Ref("gpu.idle_ratio", "device", id)},
			"The GPU is busy over the window as a whole, but not evenly (nsys' expert rule gpu_time_util). The chart utilisation in report.json shows where: at the ends it is start-up and tail, in a comb the gaps of every step.",
			"Look at the longest idle gaps for what the launching thread did, and batch more work per step.")
	}
}
