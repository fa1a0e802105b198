package steps

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var unitLabels = []string{"", "device", "phase", "phase,batch", "phase,batch,tokens"}

var unitKernelLabels = []string{"kernel", "category", "kernel,phase", "category,phase", "kernel,phase,batch",
	"category,phase,batch", "kernel,phase,batch,tokens", "category,phase,batch,tokens"}

var unitCallLabels = []string{"api", "api,device", "api,phase", "api,batch,phase", "api,batch,phase,tokens"}

var unitCopyLabels = []string{"direction,kind", "device,direction,kind", "direction,kind,phase",
	"batch,direction,kind,phase", "batch,direction,kind,phase,tokens"}

// unitCauseLabels are unitLabels with the cause.
var unitCauseLabels = []string{"cause", "device,cause", "phase,cause", "phase,batch,cause", "phase,batch,tokens,cause"}

// perUnit declares a number of each unit.
func perUnit(id, unit string, better report.Direction, assume report.Noise, meaning string) report.MetricDef {
	meaning += " (median; the summary is over the kept units)"
	return report.Define(id, unit, better, assume, report.PerUnit, report.OfStep, meaning).Summarised()
}

// Section is the unit of work.
var Section = kit.Section{
	ID: "unit", Group: report.GroupStep, Title: "Unit of work",
	Derivation: "A unit is one step of the workload, found by markers, CUDA graph launches or the repeating " +
		"kernel sequence. It lasts from the start of its first GPU work to the start of the next unit's, so idle time " +
		"within and between units counts. Numbers cover the kept units of one kind on one device; without " +
		"labels, the kind with most time, on the device where it takes longest.",
	Findings: []kit.FindingDef{
		{ID: "unit_uneven", Title: "Units of the same work take very different time"},
		{ID: "unit_imbalance", Title: "Some devices have more work in each unit than others"},
	},
	Metrics: []report.MetricDef{
		kit.NoisyCount("unit.count", report.None, report.OfStep,
			"units of work that the numbers are made from: complete, steady and of one kind").By(unitLabels...),
		perUnit("unit.time", report.Nanoseconds, report.Lower, report.Noisy,
			"step time: from the start of a unit's first work to the start of the next unit's").By(unitLabels...),
		kit.Rate("unit.token_rate", report.Higher, report.OfStep, "tokens per second and GPU: tokens of a unit, by "+
			"its marker, over the median time of such units and the GPUs that run them together: those on which they "+
			"overlap in pairs and communicate; times the units at once if processes share the GPU").By("batch,phase", "batch,phase,tokens"),
		kit.UnitTime("unit.mode_time", report.None, report.OfStep, "median time of the short and of the long units, "+
			"if those of the main kind take two unlike times").By("mode"),
		kit.Ratio("unit.mode_share", report.None, report.OfStep,
			"share of the units that are short or long, if there are two such kinds").By("mode"),
		perUnit("unit.gpu_busy", report.Nanoseconds, report.None, report.Noisy,
			"time in a unit in which anything ran on the device").By(unitLabels...),
		perUnit("unit.gpu_idle", report.Nanoseconds, report.Lower, report.Noisy,
			"time in a unit in which nothing ran on the device").By(unitLabels...),
		perUnit("unit.launches", report.Count, report.Lower, report.Exact,
			"launches a unit's kernels came from, one per CUDA graph launch").By(unitLabels...),
		perUnit("unit.kernels", report.Count, report.None, report.Exact,
			"kernels of a unit, those inside CUDA graphs if the capture has them").By(unitLabels...),
		perUnit("unit.compute_time", report.Nanoseconds, report.Lower, report.Noisy,
			"time in a unit in which a kernel that is not communication, or a CUDA graph traced as a whole, ran").
			By(unitLabels...),
		perUnit("unit.exposed_comm_time", report.Nanoseconds, report.Lower, report.Noisy,
			"time in a unit in which a communication kernel ran and no compute").By(unitLabels...),
		perUnit("unit.exposed_copy_time", report.Nanoseconds, report.Lower, report.Noisy,
			"time in a unit in which a copy or memset ran and no kernel").By(unitLabels...),
		perUnit("unit.between_kernels", report.Count, report.None, report.Exact,
			"kernels launched after a unit's marker had ended and before the next began, such as an engine's "+
				"sampling: unit.kernels and kernel.time_per_unit leave them out").By(unitLabels...),
		perUnit("unit.between_time", report.Nanoseconds, report.Lower, report.Noisy,
			"sum of the durations of the kernels that unit.between_kernels counts").By(unitLabels...),
		kit.UnitTime("unit.idle_cause_time", report.Lower, report.OfStep,
			"idle time in a unit by cause, as in gpu.idle_cause_time; the means of compute, exposed communication, "+
				"exposed copies and these causes sum to the mean unit.time").Summarised().By(unitCauseLabels...),
		kit.UnitTime("unit.host_cause_time", report.Lower, report.OfStep, "idle time of cause host in a unit by what "+
			"the launching thread did, as in gpu.host_cause_time; the means of these causes sum to the mean "+
			"unit.idle_cause_time of cause host").Summarised().By(unitCauseLabels...),
		perUnit("unit.host_call_time", report.Nanoseconds, report.Lower, report.Noisy,
			"idle time of cause host in a unit inside calls of this name, as in host.call_time: the 16 longest "+
				"that take 0.1 % of the unit or more").
			By("call,cause", "call,cause,device", "call,cause,phase", "batch,call,cause,phase",
				"batch,call,cause,phase,tokens"),
		perUnit("kernel.time_per_unit", report.Nanoseconds, report.Lower, report.Noisy,
			"sum of a kernel's durations in one unit, overlaps counted in each kernel").By(unitKernelLabels...),
		perUnit("kernel.count_per_unit", report.Count, report.None, report.Exact,
			"how often a kernel runs in one unit").By(unitKernelLabels...),
		perUnit("kernel.exclusive_time_per_unit", report.Nanoseconds, report.Lower, report.Noisy,
			"time in one unit that is given to this kernel alone: each moment to compute before communication and "+
				"then to what started first, so that the means over all kernels sum to compute and exposed "+
				"communication").By(unitKernelLabels...),
		perUnit("api.time_per_unit", report.Nanoseconds, report.Lower, report.Noisy,
			"time the process spent inside launch, copy, memset or synchronising calls of this name during one "+
				"unit, summed over threads").By(unitCallLabels...),
		perUnit("api.count_per_unit", report.Count, report.Lower, report.Exact,
			"calls of this name during one unit").By(unitCallLabels...),
		perUnit("memcpy.count_per_unit", report.Count, report.Lower, report.Exact,
			"copies of one unit by direction and kind of memory, as in memcpy.count").By(unitCopyLabels...),
		perUnit("memcpy.bytes_per_unit", report.Bytes, report.Lower, report.Exact,
			"bytes copied in one unit by direction and kind of memory, as in memcpy.bytes").By(unitCopyLabels...),
	},
	Tables: []report.Table{
		{ID: "unit_api", Title: "Host calls per unit", File: "unit_api.csv", Merge: report.OfStep, Columns: []report.Column{
			kit.NameCol("api_name", "API"),
			{ID: "calls", Title: "Mean calls", Kind: report.Float, Unit: report.Count},
			kit.MeanCol("time", "Time per unit", "time_per_unit_ns", "time_per_unit_ms"),
			kit.MeanCol("mean", "Per call", "avg_duration_us"),
		}},
		{ID: "units", Title: "Units of work", File: "units.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("device_id", "GPU"),
			kit.Wide(kit.IDCol("pid", "PID")),
			kit.NameCol("phase", "Phase"),
			kit.IDCol("batch", "Batch"),
			kit.Wide(kit.IDCol("tokens", "Prompt tokens")),
			kit.TextCol("state", "State"),
			kit.MomentCol("start", "Start", "start_ns"),
			kit.NsCol("duration", "Time", "duration_ns", "duration_ms"),
			kit.NsCol("busy", "Busy", "busy_ns"),
			kit.NsCol("idle", "Idle", "idle_ns"),
			kit.Wide(kit.NsCol("compute", "Compute", "compute_ns")),
			kit.Wide(kit.NsCol("exposed_comm", "Exposed comm.", "exposed_comm_ns")),
			kit.Wide(kit.NsCol("exposed_copy", "Exposed copy", "exposed_copy_ns")),
			kit.CountCol("launches", "Launches"),
			kit.CountCol("kernels", "Kernels"),
		}},
		{ID: "unit_groups", Title: "Kinds of unit", File: "unit_groups.csv", Merge: report.OfStep, Columns: []report.Column{
			kit.NameCol("phase", "Phase"),
			kit.IDCol("batch", "Batch"),
			kit.IDCol("tokens", "Prompt tokens"),
			kit.CountCol("units", "Units"),
			kit.CountCol("kernels", "Kernels"),
			kit.IDCol("device_id", "Slowest GPU"),
			kit.MeanCol("p50", "p50", "p50_ms"),
			kit.MeanCol("mean", "Mean", "mean_ms"),
			kit.MeanCol("p90", "p90", "p90_ms"),
			kit.FloatCol("token_rate", "Tokens per GPU", report.PerSecond),
			kit.Wide(kit.MeanCol("min", "Min", "min_ms")),
			kit.Wide(kit.MeanCol("max", "Max", "max_ms")),
			kit.MeanCol("busy", "Busy, mean", "mean_busy_ms"),
			kit.MeanCol("idle", "Idle, mean", "mean_idle_ms"),
			kit.RatioCol("share", "Share of unit time", "pct_of_unit_time"),
			kit.Wide(kit.TextCol("signature", "Signature")),
		}},
		{ID: "unit_time", Title: "Where one unit's time goes", File: "unit_time.csv", Merge: report.OfStep, Columns: []report.Column{
			kit.TextCol("class", "Class"),
			kit.MeanCol("time", "Mean per unit", "mean_ns", "mean_ms"),
			kit.RatioCol("share", "Share", "pct_of_unit"),
		}},
		{ID: "unit_kernels", Title: "Kernels of one unit", File: "unit_kernels.csv", Merge: report.OfStep, Columns: []report.Column{
			kit.NameCol("kernel_name", "Kernel"),
			kit.TextCol("category", "Category"),
			kit.Wide(kit.TextCol("library", "Library")),
			kit.Wide(kit.NameCol("family", "Family")),
			kit.Wide(kit.NameCol("canonical", "Canonical name")),
			kit.Wide(kit.CountCol("position", "First position")),
			kit.Wide(kit.TextCol("geometry", "Launch geometry")),
			kit.Wide(kit.FloatCol("threads", "Threads a launch", report.Count)),
			{ID: "count", Title: "Per unit", Kind: report.Float, Unit: report.Count},
			kit.Wide(report.Column{ID: "between", Title: "Between markers", Kind: report.Float, Unit: report.Count}),
			kit.MeanCol("time", "Time per unit", "time_per_unit_ns", "time_per_unit_us"),
			kit.MeanCol("exclusive", "Exclusive", "exclusive_time_per_unit_ns"),
			kit.RatioCol("share", "Share of unit", "pct_of_unit"),
		}},
	},
	Gaps: unitGaps,
	Run:  run,
}

func run(in *kit.Input, out *kit.Output) {
	if unitless(in, out) {
		return
	}
	x, sums := in.Units, sumsOf(in)
	r := &unitRun{in: in, out: out, kinds: kindsOf(in), costs: sums.costs}
	r.rows = lists.Sum(x.Units, func(u workunit.Unit) int { return int(u.Pieces) })
	r.between = slices.ContainsFunc(r.costs, func(c unitCost) bool { return c.betweenKernels > 0 })
	r.metrics()
	r.groupTable()
	if !in.Brief {
		r.note()
		r.timeTable()
		r.chart()
	}
	detailed := r.detailed(x)
	r.kernels(detailed)
	if !in.Brief {
		others := r.elsewhere()
		for _, s := range others[:min(len(others), maxStepSets-1)] {
			detailed = append(detailed, labelled{labels: kit.Labels("device", strconv.Itoa(int(s.Device))), set: s})
		}
	}
	r.hosts(detailed, sums.late)
	if !in.Brief {
		unitTable(in, out, r.costs, &r.kinds)
		r.findings()
		r.imbalance()
	}
}

func (r *unitRun) note() {
	x := r.in.Units
	r.out.Note("How it was found: " + x.Why + ".")
	r.out.Note(workunit.Rule)
	if p := &x.Period; p.Families {
		r.out.Warn("unit_families", "The unit of work was found by comparing kernels by library, operation and type: exact names differ from step to step, as when a tuner tries tile variants.")
	}
	if r.between {
		r.out.Note("Work that the host launched between two markers, such as sampling, counts in the unit's time but not " +
			"in its counts of kernels.")
	}
	if n := len(r.main.Units); n < fewUnits {
		r.out.Warn("few_units", "Only "+strconv.Itoa(n)+" complete units of work were kept: too few to judge variation. Capture more steps.")
	}
}

const fewUnits = 5

func (r *unitRun) metrics() {
	x := r.in.Units
	r.from("start", "end", "deviceId", "globalPid", "correlationId")
	list := []labelled{{set: r.main}}
	for _, s := range r.devices {
		list = append(list, labelled{labels: kit.Labels("device", strconv.Itoa(int(s.Device))), set: s})
	}
	if len(x.Groups) > 1 || x.Groups[0].Batch >= 0 || x.Kind == workunit.KindNVTX {
		for _, s := range r.phases {
			list = append(list, labelled{labels: kit.Labels("phase", x.Groups[s.Group].Phase), set: s})
		}
		for _, s := range r.byTime[:min(len(r.byTime), kit.MaxGroupMetrics)] {
			if g := &x.Groups[s.Group]; g.Batch >= 0 {
				list = append(list, labelled{labels: groupLabels(g), set: s})
			}
		}
	}
	for _, k := range list {
		r.set(k.labels, k.set)
	}
	kit.FromThreads(r.out, r.in.Trace.API.Len())
	for _, k := range list {
		r.costs.hosts(r.out, k.labels, k.set)
	}
}

func (r *unitRun) set(l report.Labels, s *unitSet) {
	m := r.out.Int("unit.count", l, int64(len(s.Units)))
	m.N, m.Group = int64(len(s.Units)), s.id
	emit := func(id string, l report.Labels, of func(c *unitCost) int64) {
		s.summary(r.out, id, l, r.costs.of(s, of))
	}
	for _, n := range unitNumbers {
		if n.metric != "unit.launches" || r.in.Trace.Has.KernelCorrelation || r.in.Trace.Kernels.Len() == 0 {
			emit(n.metric, l, n.of)
		}
	}
	if r.between {
		emit("unit.between_kernels", l, func(c *unitCost) int64 { return c.betweenKernels })
		emit("unit.between_time", l, func(c *unitCost) int64 { return c.betweenTime })
	}
	for cause, name := range timeline.CauseNames {
		emit("unit.idle_cause_time", kit.And(l, "cause", name), func(c *unitCost) int64 { return c.Cause[cause] })
	}
}

// kernels emits the kernels of kinds of unit, and a table of those of the main kind.
func (r *unitRun) kernels(list []labelled) {
	r.work = unitWorkOf(r.in, r.main)
	for _, k := range list {
		w := r.work
		if k.set != r.main {
			w = unitWorkOf(r.in, k.set)
		}
		r.kernelSet(k, w)
	}
	r.kernelTable()
}

// hosts emits the calls and copies of kinds of unit.
func (r *unitRun) hosts(list []labelled, late []*lateCalls) {
	calls := map[*unitSet]*unitCalls{} // the main set occurs twice
	for _, k := range list {
		l, s := k.labels, k.set
		if calls[s] == nil {
			calls[s] = callsOf(r.in, s)
		}
		apis(r.in, r.out, l, s, calls[s])
		copies(r.in, r.out, l, s)
		kit.FromThreads(r.out, r.in.Trace.API.Len())
		device := r.in.Units.Units[s.Units[0]].Index
		late[device].emit(r.out, l, s, r.costs.mean(s, func(c *unitCost) int64 { return c.time }))
	}
}

// kernelSet emits the kernels of a set of units, those with most time one by one.
func (r *unitRun) kernelSet(k labelled, w *unitWork) {
	r.from("start", "end", "demangledName", "shortName")
	s := k.set
	label := func(key, value string) report.Labels { return kit.And(k.labels, key, value) }
	names := w.ranked(r.in)
	names = names[:w.fitting(r.in, names, k.kernels)]
	slot := slotsOf(names, w.names)
	emit := func(slots int, labels func(i int) report.Labels) {
		time := w.samples(w.time, slot, slots, partTime)
		count := w.samples(w.time, slot, slots, partCount)
		alone := w.samples(w.exclusive, slot, slots, partTime)
		for i := range slots {
			s.summary(r.out, "kernel.time_per_unit", labels(i), time[i])
			s.summary(r.out, "kernel.count_per_unit", labels(i), count[i])
			s.summary(r.out, "kernel.exclusive_time_per_unit", labels(i), alone[i])
		}
	}
	emit(len(names), func(i int) report.Labels { return label("kernel", w.label(r.in, names[i])) })

	if len(k.labels) < 2 { // all kernels together
		clear(slot)
		emit(1, func(int) report.Labels { return kit.And(k.labels) })
	}
	var categories []string
	for n := range slot {
		slot[n] = lists.Place[int32](&categories, string(w.info(r.in, int32(n)).Category))
	}
	total := make([]int64, len(categories))
	for n, ns := range w.total(w.time, partTime) {
		total[slot[n]] += ns
	}
	order := lists.Where(len(categories), func(i int32) bool { return total[i] > 0 })
	lists.Sort(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(categories[a], categories[b]))
	})
	place := slotsOf(order, len(categories))
	for n := range slot {
		slot[n] = place[slot[n]]
	}
	emit(len(order), func(i int) report.Labels { return label("category", categories[order[i]]) })
}
