package steps

import (
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// CriticalPath is what work waited for, and the chain of work and calls that determines how long a unit took.
var CriticalPath = kit.Section{
	ID: "critical_path", Group: report.GroupStep, Title: "Critical path",
	Derivation: "A dependency graph: the order of calls on a thread, launches, the order of work on a stream, events " +
		"recorded and waited for, collectives across devices, calls that wait for the GPU. The critical path runs back " +
		"from the end of a unit, always through what was waited for last. The time without compute before a " +
		"kernel is explained in the same way. An edge that the times contradict is left out.",
	Metrics: []report.MetricDef{
		kit.TotalTime("gpu.dependency_time", report.Lower, report.Device,
			"idle time of cause dependency by what the launched work waited for: a kernel, collective or copy before "+
				"it, an event of another stream, its launch to reach the GPU, or unresolved; reasons sum to "+
				"gpu.idle_cause_time{cause=dependency}").By("device,reason"),
		kit.TotalTime("gpu.no_compute_time", report.Lower, report.Device,
			"time of the window in which nothing computes, by what the next compute kernel waited for: its launch "+
				"(launch_starved), communication or copies (blocking_comm, blocking_copy), anything else after its "+
				"launch (dependency), unknown; causes sum to gpu.window - gpu.compute_time").By("cause,device"),
		kit.UnitTime("unit.no_compute_time", report.Lower, report.OfStep, "gpu.no_compute_time within a unit (median; "+
			"the summary is over the kept units); the means of the causes and of unit.compute_time sum to the mean "+
			"unit.time").Summarised().By("cause", "cause,device", "cause,phase"),
		kit.UnitTime("unit.path_time", report.None, report.OfStep, "time of a unit's critical path by what it is: "+
			"compute, communication, copy, latency (of the GPU), call, host, unknown (median; the summary is over the "+
			"kept units that another one follows, whose means sum to their mean time)").Summarised().By("part"),
		kit.UnitTime("unit.replay_error", report.None, report.OfStep,
			"error of a unit's time when it is replayed with typical instead of measured latencies: the part that the "+
				"graph does not explain (median; the summary is over the kept units, 512 at most)").Summarised(),
		kit.ExactCount("path.event_waits", report.None, report.Sum,
			"waits of streams for events: recorded (a row says into which stream), by_order (of the calls of the "+
				"thread), unrecorded (nothing says), contradicted (by the times)").By("found"),
		kit.NoisyCount("path.inferred", report.None, report.Sum, "work without a known cause that started just after "+
			"other work of its device: assumed to have waited for it"),
		kit.NoisyCount("path.thread_waits", report.None, report.Sum,
			"waits of a thread between two CUDA calls: for another thread of its process, recorded (it slept in a "+
				"call of the operating system or was off the CPU, or it begins here) or inferred from the order of "+
				"calls; for the end of GPU work (work) or for another process (process), inferred because the thread "+
				"goes on right after it far more often than by chance").By("found"),
		kit.NoisyCount("path.lock_waits", report.None, report.Sum,
			"those of path.thread_waits in which the thread waited for Python's lock; only where the capture names "+
				"such waits (--trace=python-gil, or stacks with take_gil)"),
		kit.TotalTime("path.outside_time", report.None, report.Sum,
			"time that threads slept between two CUDA calls, in the operating system or off the CPU, and that no "+
				"thread with CUDA calls and no GPU work explains: it is time of the host"),
		kit.ExactCount("path.collectives", report.None, report.Sum,
			"collectives whose kernels on several devices of the capture were found"),
	},
	Tables: []report.Table{
		{ID: "no_compute", Title: "Time without compute", File: "no_compute.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("device_id", "GPU"),
			kit.NsCol("time", "Without compute", "no_compute_ns", "no_compute_ms"),
			kit.NsCol("starved", "Not launched yet", "launch_starved_ns"),
			kit.NsCol("comm", "Blocked by comm.", "blocking_comm_ns"),
			kit.NsCol("copy", "Blocked by copies", "blocking_copy_ns"),
			kit.NsCol("dependency", "Dependency", "dependency_ns"),
			kit.NsCol("unknown", "Unknown", "unknown_ns"),
			kit.NsCol("exposed", "Exposed, not blocking", "exposed_not_blocking_ns"),
		}},
		{ID: "dependency_waits", Title: "What launched work waited for", File: "dependency_waits.csv", Merge: report.Leave,
			Columns: []report.Column{
				kit.IDCol("device_id", "GPU"),
				kit.TextCol("reason", "Reason"),
				kit.NameCol("what", "Waited for"),
				kit.CountCol("gaps", "Gaps"),
				kit.NsCol("time", "Idle", "dependency_ns", "dependency_ms"),
				kit.RatioCol("share", "Share", "pct_of_dependency"),
			}},
		{ID: "critical_path", Title: "Critical path of a unit", File: "critical_path.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("unit", "Unit"),
			kit.TextCol("part", "Part"),
			kit.NameCol("name", "On the path"),
			kit.CountCol("count", "Times"),
			kit.NsCol("time", "Time", "path_ns", "path_ms"),
			kit.RatioCol("share", "Share of unit", "pct_of_unit"),
		}},
		{ID: "what_ifs", Title: "What a step would gain at most", File: "what_ifs.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("change", "Change"),
			kit.NsCol("time", "Gain up to", "ceiling_ns", "ceiling_ms"),
			kit.RatioCol("share", "Share of unit", "pct_of_unit"),
		}},
	},
	Alone: func(in *kit.Input) { in.Graph() },
	Gaps:  waitGaps,
	Long:  true,
	Run:   criticalPath,
}

// Parts of a path.
const (
	partCompute = iota
	partComm
	partCopy
	partLatency
	partCall
	partHost
	partUnknown
	pathParts
)

// partNames are the report's words for them.
var partNames = report.PathParts[:pathParts:pathParts]

// pathRun is the state of the section.
type pathRun struct {
	in  *kit.Input
	out *kit.Output
	g   *stepgraph.Graph
	// unresolved says that a replay contradicts the paths: all of their numbers are unknown.
	unresolved bool
}

func newPathRun(in *kit.Input, out *kit.Output) *pathRun {
	c := in.Ceilings()
	return &pathRun{in: in, out: out, unresolved: c != nil && c.Contradicted}
}

func criticalPath(in *kit.Input, out *kit.Output) {
	if len(in.Timeline.Devices) == 0 {
		out.Status(report.Unavailable, in.NoWork())
		return
	}
	r := newPathRun(in, out)
	if r.g = in.Graph(); r.g == nil {
		out.Status(report.Unavailable, "the capture has more GPU work than a graph can number: record a shorter time")
		return
	}
	devices, units := r.absences(r.g) // first, as the walk over the gaps, which waits needs, may still go on
	r.found()
	r.waits()
	r.absent(devices)
	found := in.Units.Kind != workunit.KindNone && in.Units.Primary >= 0
	switch {
	case !in.Trace.Tables.Has(trace.RoleAPI):
		out.Status(report.Partial, in.Lack(trace.RoleAPI)+": what launched work is not known")
	case !found:
		out.Status(report.Partial, "no unit of work was found, so there is no critical path")
	}
	if found {
		r.units(units)
	}
}

// from sets the source: GPU work and calls, and the tables that the graph is built from.
func (r *pathRun) from(rows int) {
	roles := []trace.Role{trace.RoleKernel, trace.RoleGraph, trace.RoleMemcpy, trace.RoleMemset,
		trace.RoleAPI, trace.RoleSync, trace.RoleEvent}
	r.out.FromAny(rows, roles, "start", "end", "deviceId", "streamId", "correlationId", "globalPid")
}

func (r *pathRun) found() {
	f := &r.g.Found
	r.from(r.in.Timeline.Pieces())
	waits := f.Recorded + f.ByOrder + f.Unrecorded + f.Contradicted
	for _, w := range []struct {
		name string
		n    int64
	}{{"recorded", f.Recorded}, {"by_order", f.ByOrder}, {"unrecorded", f.Unrecorded}, {"contradicted", f.Contradicted}} {
		r.out.Int("path.event_waits", kit.Labels("found", w.name), w.n)
	}
	r.out.Int("path.inferred", nil, f.Inferred)
	r.out.Int("path.collectives", nil, f.Collectives)
	r.out.Int("path.thread_waits", kit.Labels("found", "recorded"), f.Handed)
	r.out.Int("path.thread_waits", kit.Labels("found", "inferred"), f.HandedInferred)
	r.out.Int("path.thread_waits", kit.Labels("found", "work"), f.ByWork)
	r.out.Int("path.thread_waits", kit.Labels("found", "process"), f.ByProcess)
	if f.Locks {
		r.out.Int("path.lock_waits", nil, f.Locked)
	}
	r.out.Int("path.outside_time", nil, f.Outside)
	if text := f.Threads(); text != "" {
		r.out.Note(text)
	}
	if lost := f.Unrecorded + f.Contradicted; lost > 0 {
		r.out.Note(strconv.FormatInt(lost, 10) + " of " + strconv.FormatInt(waits, 10) +
			" waits of streams for events could not be resolved: the work they waited for may be missing from the paths.")
	}
	if f.ByOrder > 0 {
		r.out.Note(strconv.FormatInt(f.ByOrder, 10) + " waits for events were resolved by the order of calls: the " +
			"capture does not say into which stream an event was recorded (capture with --cuda-event-trace=true).")
	}
}

func (r *pathRun) callName(call int32) string {
	return r.in.Trace.API.Names[r.in.Trace.API.Name(int(call))].Name
}

// absences are the parts of time without compute.
type absences [stepgraph.Absences]int64

// upTo is, for each of the ascending moments, the time of each cause before it, and the total of each.
func upTo(g *stepgraph.Graph, device int, moments []int64) (list []absences, sum absences) {
	list = make([]absences, 0, len(moments))
	g.Absent(device, func(a stepgraph.Absence, start, end int64) {
		for len(list) < len(moments) && moments[len(list)] <= end {
			part := sum
			part[a] += max(0, moments[len(list)]-start)
			list = append(list, part)
		}
		sum[a] += end - start
	})
	for len(list) < len(moments) {
		list = append(list, sum)
	}
	return list, sum
}

// absences is the time without compute by cause: for every device of a graph, and for every unit if the graph is
// theirs, which it is if the window is the whole capture.
func (r *pathRun) absences(g *stepgraph.Graph) (devices, units []absences) {
	devices = make([]absences, len(g.Timeline.Devices))
	var list []workunit.Unit
	if x := r.in.Units; g.Timeline == x.Timeline {
		list, units = x.Units, make([]absences, len(x.Units))
	}
	parallel.Each(len(devices), func(index int) {
		var moments []int64
		for i := range list {
			if u := &list[i]; int(u.Index) == index {
				moments = append(moments, u.Start, u.End)
			}
		}
		slices.Sort(moments)
		moments = slices.Compact(moments)
		var sums []absences
		sums, devices[index] = upTo(g, index, moments)
		for i, u := range list {
			if int(u.Index) != index {
				continue
			}
			from, _ := slices.BinarySearch(moments, u.Start)
			to, _ := slices.BinarySearch(moments, u.End)
			for a := range units[i] {
				units[i][a] = sums[to][a] - sums[from][a]
			}
		}
	})
	return devices, units
}

// absent emits for each device the causes of the time without compute.
func (r *pathRun) absent(sums []absences) {
	t := r.out.Table("no_compute")
	for i, d := range r.in.Timeline.Devices {
		r.from(d.Len())
		for a, ns := range sums[i] {
			r.out.Int("gpu.no_compute_time",
				kit.Labels("device", strconv.Itoa(int(d.ID)), "cause", stepgraph.AbsenceNames[a]), ns)
		}
		blocking := sums[i][stepgraph.BlockedByComm] + sums[i][stepgraph.BlockedByCopy]
		t.Row(kit.Int("device_id", int64(d.ID)), kit.Int("time", lists.Total(sums[i][:])),
			kit.Int("starved", sums[i][stepgraph.Starved]), kit.Int("comm", sums[i][stepgraph.BlockedByComm]),
			kit.Int("copy", sums[i][stepgraph.BlockedByCopy]), kit.Int("dependency", sums[i][stepgraph.Dependent]),
			kit.Int("unknown", sums[i][stepgraph.AbsentUnknown]),
			kit.Int("exposed", max(0, d.ExposedComm+d.ExposedCopy-blocking)))
	}
	t.Cut(kit.MaxDevices, "time", "starved", "comm", "copy", "dependency", "unknown", "exposed").Add()
}
