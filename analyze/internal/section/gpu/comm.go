package gpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

var Comm = kit.Section{
	ID: "comm", Group: report.GroupMemory, Steady: true, Title: "Communication",
	Needs: []trace.Role{trace.RoleKernel},
	Derivation: "Kernels whose name says they communicate (NCCL, custom all-reduce, expert dispatch, …) and that " +
		"start in the window, by collective. Communication is exposed while no compute runs on its device; if several " +
		"communication kernels run at once, the time belongs to the one that started first, so that " +
		"collectives sum to gpu.exposed_comm_time.",
	Findings: []kit.FindingDef{
		{ID: "comm_skew", Inside: true, Title: "Devices wait in collectives for a slower one"},
		{ID: "comm_slows", Title: "Communication slows the kernels beside it"},
	},
	Metrics: []report.MetricDef{
		kit.TotalTime("comm.time", report.Lower, report.Sum, "sum of the durations of communication kernels; the "+
			"summary is over kernels").Summarised().By("", "collective", "collective,device"),
		kit.ExactCount("comm.count", report.None, report.Sum, "communication kernels").By("", "collective"),
		kit.TotalTime("comm.exposed_time", report.Lower, report.Sum,
			"time in which a communication kernel ran and no compute kernel, summed over devices; on one device "+
				"collectives sum to gpu.exposed_comm_time").By("", "collective", "collective,device"),
		kit.Ratio("comm.hidden_ratio", report.Higher, report.Device,
			"share of the time in which a communication kernel ran that compute hides").By("device"),
		kit.TotalTime("comm.wait_time", report.Lower, report.Device,
			"time the device's collective kernels ran before the last device had joined them; only if the collectives "+
				"of all devices can be paired").By("device").Quoted(),
		kit.UnitTime("unit.comm_slowdown", report.Lower, report.OfStep,
			"how much longer kernels of a unit of the main kind take with communication beside them than the median "+
				"of the same launches without it, mean; only of kernels that run both ways"),
		kit.TotalTime("comm.slowdown_time", report.Lower, report.Leave,
			"the same over the window, of captures without units"),
		report.Define("comm.bytes", report.Bytes, report.None, report.Exact, report.Total, report.Sum,
			"message sizes that NCCL's ranges state, added up over the calls that launched communication kernels; a "+
				"message is what one rank sends, as NCCL counts it").By("", "collective"),
		kit.Rate("comm.algorithm_bandwidth", report.Higher, report.Leave,
			"bytes of the collectives over the time of their kernels, waiting for other ranks included; for an "+
				"all-gather or reduce-scatter, the bytes of all ranks; size is the largest power of two up to the "+
				"size of the message").By("collective", "collective,size"),
		kit.Rate("comm.bus_bandwidth", report.Higher, report.Leave,
			"the same as what each link carries, as nccl-tests count it: an all-reduce times 2(n-1)/n, an all-gather "+
				"or reduce-scatter times (n-1)/n for n ranks").By("collective", "collective,size"),
	},
	Tables: []report.Table{
		{ID: "comm", Title: "Collectives", File: "comm.csv", Columns: []report.Column{
			kit.TextCol("collective", "Collective").Merged(report.Key),
			kit.TextCol("library", "Library").Merged(report.Key),
			kit.CountCol("count", "Kernels", "call_count").Merged(report.Sum),
			kit.NsCol("total", "Total", "total_time_ns", "total_time_ms").Merged(report.Sum.First()),
			kit.RatioCol("share", "Of kernel time", "pct_total_kernel_time").Merged(report.Leave),
			kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.RatioOf("total", "count")),
			kit.MeanCol("p50", "p50", "p50_duration_us").Merged(report.Same),
			kit.Wide(kit.MeanCol("p90", "p90", "p90_duration_us")).Merged(report.Same),
			kit.Wide(kit.NsCol("max", "Max", "max_duration_us")).Merged(report.Max),
			kit.NsCol("exposed", "Exposed", "exposed_ns", "exposed_ms").Merged(report.Sum),
		}},
		{ID: "comm_devices", Title: "Communication per device", File: "comm_devices.csv", Columns: []report.Column{
			kit.IDCol("device_id", "GPU").Merged(report.Device),
			kit.NsCol("total", "Total", "total_time_ms").Merged(report.Same),
			kit.NsCol("busy", "Running", "comm_ms").Merged(report.Same),
			kit.NsCol("exposed", "Exposed", "exposed_comm_ms").Merged(report.Same),
			kit.RatioCol("hidden", "Hidden", "pct_hidden").Merged(report.Same),
			kit.NsCol("wait", "Waiting", "wait_ms").Merged(report.Same),
		}},
		{ID: "comm_sizes", Title: "Messages", File: "comm_sizes.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("collective", "Collective"),
			kit.FloatCol("size", "Message", report.Count),
			kit.IDCol("ranks", "Ranks"),
			kit.CountCol("count", "Calls"),
			kit.NsCol("total", "Total", "total_time_ns", "total_time_ms"),
			kit.MeanCol("mean", "Mean", "avg_duration_us"),
			bandwidthCol("algorithm", "Algorithm bandwidth", "algbw_gbps"),
			bandwidthCol("bus", "Bus bandwidth", "busbw_gbps"),
		}},
	},
	Run: comm,
}

// Share of the judged time: waiting of the device that waits most minus that of the one that waits least.
const commSkewShare = 0.05

// pairedShare is how many of the paired collectives must overlap in time for the pairing to count.
const pairedShare = 0.95

// commGroup is one collective, or one collective of one library.
type commGroup struct{ collective, library string }

// commUse is the sums for a group.
type commUse struct {
	commGroup
	time, exposed []int64 // by device
	durs          []int64
}

func comm(in *kit.Input, out *kit.Output) {
	k := &in.Trace.Kernels
	devices := in.Timeline.Devices
	collectives, libraries := kit.NewTally[commGroup, commUse](), kit.NewTally[commGroup, commUse]()
	ofName := make([][2]*commUse, len(in.Kinds)) // by kernel name: its collective, and its collective and library
	for n := range in.Kinds {
		if kind := &in.Kinds[n]; kind.Comm {
			ofName[n] = [2]*commUse{collectives.At(commGroup{kind.Collective, ""}), libraries.At(commGroup{kind.Collective, kind.Library})}
			for _, u := range ofName[n] {
				if u.time == nil {
					u.time, u.exposed = make([]int64, len(devices)), make([]int64, len(devices))
				}
			}
		}
	}
	for i, d := range devices {
		cursor := in.Span.Start // up to this moment communication is attributed
		for j := range d.Len() {
			if d.Class(j) != timeline.Comm {
				continue
			}
			w := d.Work(j)
			start, end := max(w.Start, cursor), min(w.End, in.Span.End)
			for _, u := range ofName[k.Name(int(w.Row))] {
				if w.Start >= in.Span.Start {
					u.time[i] += w.End - w.Start
					u.durs = append(u.durs, w.End-w.Start)
				}
				if start < end {
					u.exposed[i] += d.CommExposed.Within(start, end)
				}
			}
			cursor = max(cursor, end)
		}
	}
	uses := commUses(collectives)
	if len(uses) == 0 {
		reason := "no communication kernel runs in the window"
		if _, graphs := wholeGraphs(in); graphs > 0 {
			reason += "; those inside CUDA graphs traced as a whole cannot be seen"
		}
		out.Status(report.NotApplicable, reason)
		return
	}
	if _, graphs := wholeGraphs(in); graphs > 0 {
		out.Status(report.Partial, hiddenKernels)
	}
	commTotals(in, out, uses)
	commTable(in, out, commUses(libraries))
	waits := waitsOf(in).window
	commDevices(in, out, uses, waits)
	commMessages(in, out)
	commFindings(in, out, waits)
	commSlows(in, out)
}

// commUses lists the groups that ran in the window, most time first.
func commUses(groups *kit.Tally[commGroup, commUse]) []*commUse {
	for i, g := range groups.Keys {
		groups.Values[i].commGroup = g
	}
	list := slices.DeleteFunc(groups.Values, func(u *commUse) bool {
		return len(u.durs) == 0 && lists.Total(u.exposed) == 0
	})
	slices.SortFunc(list, func(a, b *commUse) int {
		return cmp.Or(cmp.Compare(lists.Total(b.time), lists.Total(a.time)),
			cmp.Compare(a.collective, b.collective), cmp.Compare(a.library, b.library))
	})
	return list
}

func commTotals(in *kit.Input, out *kit.Output, uses []*commUse) {
	var all []int64
	var exposed int64
	for _, u := range uses {
		all = append(all, u.durs...)
		exposed += lists.Total(u.exposed)
	}
	columns := []string{"start", "end", "deviceId", "demangledName", "shortName"}
	out.From(trace.RoleKernel, len(all), columns...)
	out.Int("comm.time", nil, lists.Total(all)).Summary = stat.Summarize(all)
	out.Int("comm.count", nil, int64(len(all)))
	out.Int("comm.exposed_time", nil, exposed)
	for _, u := range uses {
		l := kit.Labels("collective", u.collective)
		out.From(trace.RoleKernel, len(u.durs), columns...)
		out.Int("comm.time", l, lists.Total(u.durs)).Summary = stat.Summarize(slices.Clone(u.durs))
		out.Int("comm.count", l, int64(len(u.durs)))
		out.Int("comm.exposed_time", l, lists.Total(u.exposed))
		for i, d := range in.Timeline.Devices {
			if u.time[i] != 0 || u.exposed[i] != 0 {
				l := kit.And(l, "device", deviceID(d))
				out.Int("comm.time", l, u.time[i])
				out.Int("comm.exposed_time", l, u.exposed[i])
			}
		}
	}
}

func commTable(in *kit.Input, out *kit.Output, uses []*commUse) {
	all := in.KernelStats().All.Total
	t := out.Table("comm")
	for _, u := range uses {
		t.Row(append(t.Stats(stat.Summarize(slices.Clone(u.durs))),
			kit.Text("collective", u.collective), kit.Text("library", u.library),
			kit.Int("count", int64(len(u.durs))), kit.Int("total", lists.Total(u.durs)),
			kit.Maybe("share", stat.Ratio(lists.Total(u.durs), all)), kit.Int("exposed", lists.Total(u.exposed)))...)
	}
	t.Add()
}

func commDevices(in *kit.Input, out *kit.Output, uses []*commUse, waits []int64) {
	t := out.Table("comm_devices")
	for i, d := range in.Timeline.Devices {
		busy, exposed := d.Comm, d.ExposedComm
		hidden := stat.Ratio(busy-exposed, busy)
		out.FromWork(d.Len(), "start", "end", "deviceId")
		out.Known("comm.hidden_ratio", kit.Labels("device", deviceID(d)), hidden)
		total := lists.Sum(uses, func(u *commUse) int64 { return u.time[i] })
		row := []kit.Field{kit.Int("device_id", int64(d.ID)), kit.Int("total", total), kit.Int("busy", busy),
			kit.Int("exposed", exposed), kit.Maybe("hidden", hidden)}
		if waits != nil {
			row = append(row, kit.Int("wait", waits[i]))
		}
		t.Partial(row...)
	}
	t.Add()
	if waits == nil {
		return
	}
	out.From(trace.RoleKernel, 0, "start", "end", "deviceId", "demangledName", "shortName")
	for i, ns := range waits {
		d := in.Timeline.Devices[i]
		out.Int("comm.wait_time", kit.Labels("device", deviceID(d)), ns).N = int64(len(synchronising(in, d)))
	}
	out.Note("Waiting is the time a device's collective kernels ran before the last device had joined: collectives are paired in the order in which each device runs them. The device that waits least is the one the others wait for.")
}

// synchronising are the device's communication kernels that start in the window and in which no device can finish
// before all have begun, as indexes into its work: of two devices, also what they send each other.
func synchronising(in *kit.Input, d *timeline.Device) (list []int) {
	for j := range d.Len() {
		if d.Class(j) != timeline.Comm || d.Start(j) < in.Span.Start {
			continue
		}
		switch collective(in, d, j) {
		case kernelname.CollSendRecv:
			if len(in.Timeline.Devices) == 2 { // with each other
				list = append(list, j)
			}
		case kernelname.CollAllReduce, kernelname.CollAllGather, kernelname.CollReduceScatter, kernelname.CollAllToAll,
			kernelname.CollBarrier:
			list = append(list, j)
		}
	}
	return list
}

func collective(in *kit.Input, d *timeline.Device, work int) string {
	return in.Kinds[in.Trace.Kernels.Name(d.Row(work))].Collective
}

// collectiveWaits is how long each device's collectives ran before the last device joined them, by index of the
// timeline's devices, in ns.
type collectiveWaits struct {
	window []int64
	steps  []int64 // the part in the judged steps
}

// waitsOf is how long each device waits. It is empty unless the n-th collective of one device is the n-th of every
// other: numbers and kinds are equal, and the kernels overlap in time.
func waitsOf(in *kit.Input) collectiveWaits {
	return kit.Once(in, "comm_waits", func() collectiveWaits { return pairedWaits(in) })
}

func pairedWaits(in *kit.Input) (none collectiveWaits) {
	devices := in.Timeline.Devices
	if len(devices) < 2 {
		return none
	}
	lists := make([][]int, len(devices))
	for i, d := range devices {
		lists[i] = synchronising(in, d)
		if len(lists[i]) == 0 || len(lists[i]) != len(lists[0]) {
			return none
		}
	}
	waits := collectiveWaits{make([]int64, len(devices)), make([]int64, len(devices))}
	judged := in.Step().Spans
	together := 0
	for n := range lists[0] {
		last, end := int64(math.MinInt64), int64(math.MaxInt64)
		for i := range devices {
			d, w := devices[i], lists[i][n]
			if collective(in, d, w) != collective(in, devices[0], lists[0][n]) {
				return none
			}
			last, end = max(last, d.Start(w)), min(end, d.End(w))
		}
		if last < end {
			together++
		}
		for i := range devices {
			d, w := devices[i], lists[i][n]
			joined := min(last, d.End(w))
			waits.window[i] += joined - d.Start(w)
			waits.steps[i] += judged.Within(d.Start(w), joined)
		}
	}
	if float64(together) < pairedShare*float64(len(lists[0])) {
		return none
	}
	return waits
}

// waitInStep is how long the judged device waits in the collectives of the judged steps for the device that is late; 0
// if the waits are not known or short, and in a window without steps.
func waitInStep(in *kit.Input) (ns int64) {
	waits, s := waitsOf(in), in.Step()
	_, least, ok := commSkew(in)
	if !ok || s.Units == 0 {
		return 0
	}
	for i, d := range in.Timeline.Devices {
		if d.ID == s.Device.ID {
			ns = min(waits.steps[i]-waits.steps[least], s.Comm)
		}
	}
	return ns
}

// commSkew are the devices that wait most and least in the judged time; not ok if they wait about as long, or if the
// waits are not known.
func commSkew(in *kit.Input) (most, least int, ok bool) {
	waits, of := waitsOf(in).window, in.Span.Len()
	if s := in.Step(); s.Units > 0 {
		waits, of = waitsOf(in).steps, s.Of
	}
	if len(waits) == 0 {
		return 0, 0, false
	}
	most, least = extremes(len(waits), func(i int) int64 { return waits[i] })
	return most, least, float64(waits[most]-waits[least]) >= commSkewShare*float64(of)
}

func commFindings(in *kit.Input, out *kit.Output, waits []int64) {
	most, least, ok := commSkew(in)
	if !ok {
		return
	}
	id := func(i int) string { return deviceID(in.Timeline.Devices[i]) }
	s, late := in.Step(), "GPU "+id(least)
	title := "GPU " + id(most) + " waits in collectives for " + late
	ns := waitInStep(in)
	if ns > 0 {
		title = "GPU " + deviceID(s.Device) + " waits in collectives for " + late + ": " + s.Each(ns)
	}
	f := out.FindAs("comm_skew", title, []report.MetricRef{kit.Ref("comm.wait_time", "device", id(most)),
		kit.Ref("comm.wait_time", "device", id(least)), kit.Ref("gpu.window", "device", id(least))},
		late+" joins last: look at what it does before its collectives (idle gaps and their cause, kernels per device) rather than at the link.",
		"Usual reasons: a rank that also samples, schedules or tokenises, uneven expert or pipeline placement, a host thread on the wrong NUMA node, a GPU at lower clocks (nvidia-smi -q -d CLOCK,PERFORMANCE).",
	).At(late)
	if s.Units > 0 { // where the step is that of the late device, its idle time and its kernels are what could be saved
		f.Costs(s.Worth(ns), s.CommClaim(ns))
	} else {
		f.Costs(kit.WorthOfWindow(in.Span, waits[most]-waits[least]))
	}
}

// Bounds from which launches of a kernel show the cost of communication beside them.
const (
	besideShare  = 0.50 // of a launch with communication beside it
	besideLeast  = 5    // launches with it, and as many without
	besideSpread = 1.25 // p90 over p10 of those without: else their work differs
)

// commSlows compares launches of the same kernel and the same geometry in the judged time, those with communication
// beside them and those without.
func commSlows(in *kit.Input, out *kit.Output) {
	s := in.Step()
	if s.Device == nil {
		return
	}
	d, k := s.Device, &in.Trace.Kernels
	comm := ranIn(d, timeline.Comm)
	if len(comm) == 0 {
		return
	}
	launches := kit.NewCombos(len(k.Names), len(k.Configs))
	times := kit.Gather(in.Trace.Memory(), 0, 0, d.Len(), func(i int) int32 { // two lists a launch: alone, and beside it
		start, end := d.Start(i), d.End(i)
		if d.Class(i) != timeline.Compute || d.Kind(i) != timeline.KernelWork || end <= start || s.Spans.Within(start, end) < end-start {
			return -1
		}
		list := 2 * launches.Of(k.Name(d.Row(i)), k.Config(d.Row(i)))
		switch ns := comm.Within(start, end); {
		case ns == 0:
			return list
		case float64(ns) >= besideShare*float64(end-start):
			return list + 1
		}
		return -1
	}, func(i int) int64 { return d.End(i) - d.Start(i) })
	defer times.Free()
	var more, without float64
	var claims []kit.Claim
	for g := 1; g < times.Keys(); g += 2 {
		alone, beside := times.Of(g-1), times.Of(g)
		if beside.Len() < besideLeast || alone.Len() < besideLeast {
			continue
		}
		kit.SortIn(in.Trace.Memory(), alone)
		if alone.Percentile(0.9) > besideSpread*alone.Percentile(0.1) {
			continue
		}
		usual := alone.Percentile(0.5) * float64(beside.Len())
		excess := float64(beside.Sum()) - usual
		more, without = more+excess, without+usual
		if excess > 0 {
			claims = append(claims, kit.KernelClaim(launches.Keys[g/2].A, int64(excess)))
		}
	}
	if more <= 0 {
		return
	}
	ref := kit.Ref("comm.slowdown_time")
	if s.Units > 0 {
		ref = kit.Ref("unit.comm_slowdown")
		out.Float(ref.ID, nil, more/float64(s.Units)).N = s.Units
	} else {
		out.Float(ref.ID, nil, more)
	}
	out.FindAs("comm_slows", "Kernels beside communication take "+unit.Percent(more/without)+" longer than without it: "+s.Each(int64(more)),
		[]report.MetricRef{ref},
		"Communication takes SMs and memory bandwidth from them: give it fewer SMs (NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS), or let copy engines or NVLS move the data.",
		"Overlap still pays while this is less than the communication that it hides.",
	).Costs(s.Worth(int64(more)), claims...)
}
