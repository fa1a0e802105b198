package host

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Sync = kit.Section{
	ID: "sync", Group: report.GroupLate, Steady: true, Title: "Blocking synchronisation",
	Derivation: "API calls that start in the window and are a Device-, Stream-, Event- or CtxSynchronize, " +
		"version suffix stripped. Durations are summed over threads. Queries, stream waits, cudaThreadSynchronize and " +
		"allocations have their own table; synchronous copies are in the memcpy " +
		"section. Only the waiting process's own GPU work counts for the question whether it waited for the GPU.",
	Findings: []kit.FindingDef{
		{ID: "sync_old", Title: oldSyncTitle},
		{ID: "allocations", Inside: true, Title: "Allocating and freeing memory takes a large part of the window"},
		{ID: "sync", Title: "The host waits in blocking synchronisation calls"},
	},
	Metrics: []report.MetricDef{
		kit.TotalTime("sync.blocked_time", report.Lower, report.Sum,
			"time of the window in which a thread was inside a blocking synchronisation call, added up over threads: "+
				"calls that started before the window or end after it count for the part inside, and never more than "+
				"the window for each thread").By("", "pid").Quoted(),
		kit.TotalTime("sync.total_time", report.Lower, report.Sum.Counting("api"), "time spent inside blocking "+
			"synchronisation calls, summed over threads; the summary is over calls").Summarised().By("", "pid", "api"),
		kit.ExactCount("sync.count", report.Lower, report.Sum,
			"blocking synchronisation calls").By("", "pid", "api").Quoted(),
		kit.Ratio("sync.share", report.Lower, report.Leave,
			"share of the window that the most blocked thread spent in blocking synchronisation calls").By("", "pid"),
		kit.Ratio("sync.gpu_busy_ratio", report.None, report.Leave,
			"share of the time in blocking synchronisation calls during which GPU work of the waiting process ran: "+
				"the rest up to 1 was not waiting for the GPU").By("", "pid").Quoted(),
		kit.TotalTime("wait.time", report.Lower, report.Sum.Counting("api"),
			"time spent inside calls that query an event or a stream, make a stream wait, or can block without being "+
				"a Synchronize call (cudaThreadSynchronize, allocating and freeing memory); the summary is over calls").
			Summarised().By("api").Quoted(),
		kit.ExactCount("wait.count", report.Lower, report.Sum,
			"calls that query an event or a stream, make a stream wait, or can block without being a Synchronize call "+
				"(cudaThreadSynchronize, allocating and freeing memory)").By("api").Quoted(),
		kit.TotalTime("sync.record_time", report.None, report.Sum, "duration of all synchronisation records of the "+
			"driver, queries and stream waits included: a second source, used if the API calls are missing"),
		kit.ExactCount("sync.record_count", report.None, report.Sum,
			"synchronisation records of the driver, queries and stream waits included"),
	},
	Tables: []report.Table{
		{ID: "sync", Title: "Blocking calls", File: "sync.csv", Columns: []report.Column{
			kit.NameCol("api_name", "API").Merged(report.Key),
			kit.CountCol("count", "Calls", "call_count").Merged(report.Sum),
			kit.NsCol("total", "Total", "total_time_ns", "total_time_ms").Merged(report.Sum.First()),
			kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.RatioOf("total", "count")),
			kit.MeanCol("p50", "p50", "p50_duration_us").Merged(report.PercentileOf("api", 0.5)),
			kit.MeanCol("p90", "p90", "p90_duration_us").Merged(report.PercentileOf("api", 0.9)),
			kit.Wide(kit.NsCol("min", "Min", "min_duration_us")).Merged(report.Min),
			kit.NsCol("max", "Max", "max_duration_us").Merged(report.Max),
			kit.RatioCol("share", "Of window", "pct_of_window").Merged(report.Leave),
			kit.RatioCol("gpu_busy", "GPU at work", "pct_gpu_busy").Merged(report.Leave),
		}},
		{ID: "sync_threads", Title: "Blocked threads", File: "sync_threads.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("pid", "PID"),
			kit.IDCol("tid", "TID"),
			kit.NameCol("thread_name", "Thread"),
			kit.CountCol("count", "Calls", "call_count"),
			kit.NsCol("total", "Total", "total_time_ms"),
			kit.RatioCol("share", "Of window", "pct_of_window"),
			kit.RatioCol("gpu_busy", "GPU at work", "pct_gpu_busy"),
		}},
		{ID: "sync_by_range", Title: "Blocking calls by NVTX range", File: "sync_by_range.csv", Merge: report.Leave,
			Columns: []report.Column{
				kit.NameCol("range_name", "Range"),
				kit.Wide(kit.NameCol("within", "Within")),
				kit.NameCol("phase", "Phase"),
				kit.NameCol("api_name", "API"),
				kit.CountCol("count", "Calls", "call_count"),
				kit.NsCol("total", "Total", "total_time_ms"),
				kit.MeanCol("mean", "Mean", "avg_duration_us"),
				kit.NsCol("max", "Max", "max_duration_us"),
			}},
		{ID: "waits", Title: "Queries, stream waits and other waiting calls", File: "waits.csv",
			Columns: []report.Column{
				kit.NameCol("api_name", "API").Merged(report.Key),
				kit.TextCol("kind", "Kind").Merged(report.Key),
				kit.CountCol("count", "Calls", "call_count").Merged(report.Sum),
				kit.NsCol("total", "Total", "total_time_ns", "total_time_ms").Merged(report.Sum.First()),
				kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.RatioOf("total", "count")),
				kit.MeanCol("p50", "p50", "p50_duration_us").Merged(report.PercentileOf("api", 0.5)),
				kit.MeanCol("p90", "p90", "p90_duration_us").Merged(report.PercentileOf("api", 0.9)),
				kit.NsCol("max", "Max", "max_duration_us").Merged(report.Max),
			}},
	},
	Run: syncCalls,
}

// Bounds from which blocking calls are a finding.
const (
	syncIdleWindow = 0.05 // of the window idle for the cause sync
	allocShare     = 0.05 // of the window spent allocating and freeing memory
	syncGPUWait    = 0.80 // of the blocked time with the GPU at work: the wait is for the GPU
)

func syncCalls(in *kit.Input, out *kit.Output) {
	if in.Trace.Tables.Has(trace.RoleSync) {
		lo, hi := in.Trace.Syncs.Starting(in.Host.Start, in.Host.End)
		out.From(trace.RoleSync, hi-lo, "start", "end")
		out.Int("sync.record_time", nil, kit.Total(lo, hi, in.Trace.Syncs.Dur))
		out.Int("sync.record_count", nil, int64(hi-lo))
	}
	if !in.Trace.Tables.Has(trace.RoleAPI) {
		if in.Trace.Tables.Has(trace.RoleSync) {
			out.Status(report.Partial, in.Lack(trace.RoleAPI)+"; only the driver's synchronisation records are there, in which queries and stream waits cannot be told from blocking calls")
			return
		}
		out.Status(report.Unavailable, in.Lack(trace.RoleAPI))
		return
	}
	if callsUnknown(in, out, "sync.blocked_time", "sync.total_time", "sync.count") {
		return
	}
	api := &in.Trace.API
	rows := in.CallStats().Rows(func(n *trace.APIName) bool { return n.Sync })
	blocked := newBlocked(in, rows)
	stats := in.CallStats()
	list := stats.Chosen(func(n *trace.APIName) bool { return n.Sync })
	emit := func(l report.Labels, s *kit.Sums) {
		out.Calls("sync.total_time", "sync.count", l, s, "start", "end", "nameId", "globalTid")
	}
	emit(nil, &stats.Syncs.Sums)
	t := out.Table("sync")
	for _, e := range list {
		name := api.Names[e.Key].Name
		emit(kit.Labels("api", name), &e.Sums)
		w := &blocked.apis[e.Key]
		t.Row(append(t.Stats(e.Summary), kit.Text("api_name", name), kit.Int("count", e.Count), kit.Int("total", e.Total),
			kit.Maybe("share", w.share(in)), kit.Maybe("gpu_busy", stat.Ratio(w.busy, w.held)))...)
	}
	t.Cut(in.Options.Top, "count", "total").Add()
	waited := whileBlocked(in, out)
	blocked.processes(in, out, rows)
	blocked.threadTable(in, out)
	syncByRange(in, out, rows)
	old := waits(in, out)

	out.Note("\"Of window\" is the share of the window in which any thread was in the call; \"GPU at work\" the share of the call's time in which GPU work of its own process ran.")
	out.Note("The driver's synchronisation records are not used for the kind of a wait: captures number the kinds differently.")
	if stats.Syncs.Count == 0 && !old {
		out.Status(report.NotApplicable, "no blocking synchronisation call starts in the window")
	}
	if waited > 0 && in.Trace.RanKernels() {
		syncFindings(in, out, blocked)
	}
}

// whileBlocked emits how long threads were blocked in the window, and returns the sum over threads. Calls count if they
// overlap the window, wherever they start.
func whileBlocked(in *kit.Input, out *kit.Output) (total int64) {
	api := &in.Trace.API
	calls := make([]interval.Set, len(in.Trace.Threads)+1) // the last for calls that name no thread
	rows, procRows := 0, make([]int, len(in.Trace.Procs))
	_, hi := api.Starting(in.Span.Start, in.Span.End)
	for i := range hi {
		if !api.Names[api.Name(i)].Sync || api.End(i) <= in.Span.Start {
			continue
		}
		rows++
		if p := in.Trace.ProcOf(api.Thread(i)); p != trace.None {
			procRows[p]++
		}
		calls[orLast(api.Thread(i), len(in.Trace.Threads))].Add(max(api.Start(i), in.Span.Start), min(api.End(i), in.Span.End))
	}
	procs := make([]int64, len(in.Trace.Procs))
	for th := range calls {
		ns := calls[th].Len()
		total += ns
		if th < len(in.Trace.Threads) {
			procs[in.Trace.Threads[th].Proc] += ns
		}
	}
	out.From(trace.RoleAPI, rows, "start", "end", "nameId", "globalTid")
	out.Int("sync.blocked_time", nil, total)
	for p, ns := range procs {
		if procRows[p] > 0 {
			out.Source.Rows = int64(procRows[p])
			out.Int("sync.blocked_time", kit.Labels("pid", kit.PIDText(in, int32(p))), ns)
		}
	}
	return total
}

// syncByRange lists the places in the program of the blocking calls.
func syncByRange(in *kit.Input, out *kit.Output, rows []int) {
	type place struct{ rng, within, phase, api string }
	api := &in.Trace.API
	var places lists.Numbering[place]
	where := kit.NewPlaces(in)
	if in.Trace.Ranges.Len() == 0 {
		rows = nil
	}
	g := kit.Gather(nil, 0, 0, len(rows), func(at int) int32 {
		rng, within, phase := where.Path(int32(rows[at]))
		return places.Of(place{rng, within, phase, api.Names[api.Name(rows[at])].Name})
	}, func(at int) int64 { return api.Dur(rows[at]) }).Sort()
	t := out.Table("sync_by_range")
	for _, e := range g.Rank(cmp.Compare) {
		p := &places.Keys[e.Key]
		t.Row(append(t.Stats(e.Summary),
			kit.Put("range_name", kit.RangeCell(p.rng)), kit.Put("within", report.OrNull(p.within)),
			kit.Put("phase", report.OrNull(p.phase)), kit.Text("api_name", p.api), kit.Int("count", e.Count),
			kit.Int("total", e.Total))...)
	}
	t.Cut(in.Options.Top, "count", "total").Add()
}

const oldSyncTitle = "The host waits in the deprecated `cudaThreadSynchronize`, and launches nothing ahead"

// barrierIdle are the causes of idle time that a barrier can have: no work was launched ahead.
var barrierIdle = []int{timeline.CauseSync, timeline.CauseLaunch, timeline.CauseHost}

// syncFindings report blocking calls. Their worth is the judged time in which the GPU was idle because the thread that
// launches its work was blocked. Waiting on other threads, or while the GPU works, costs nothing.
func syncFindings(in *kit.Input, out *kit.Output, b *blockedTimes) {
	evidence := kit.Refs("sync.blocked_time", "sync.count")
	if b.all.count > 0 {
		evidence = append(evidence, kit.Ref("sync.share"), kit.Ref("sync.gpu_busy_ratio"))
	}
	step, async := in.Step(), in.Engine().AsyncScheduling()
	idle := step.IdleOf(timeline.CauseSync)
	site := step.Where.Blocking(&in.Trace.API, idle)
	advice := []string{"Launch the next step before waiting for this one: the time after each wait is lost." + async}
	switch busy := stat.Ratio(b.all.busy, b.all.held); {
	case step.Share(idle) >= syncIdleWindow:
		advice[0] = "The GPU runs dry while the launching thread is blocked: prepare and launch the next step before waiting for this one." + async
	case busy != nil && *busy < syncGPUWait:
		advice[0] = "For much of the wait, no GPU work of the process runs: it waits for another rank or for work that " +
			"has not started, or pays for the call itself."
	}
	advice = append(advice, "The table by NVTX range says where the calls are made: read results one step later, through an event.")
	title, place := "The host waits in blocking synchronisation calls", site
	if site != "" {
		title = "No work is queued ahead: after each wait in " + kit.Quoted(site) + " the GPU idles"
		after := timeline.CauseHost
		if step.Cause[timeline.CauseLaunch] > step.Cause[after] {
			after = timeline.CauseLaunch
		}
		switch {
		case 2*idle >= step.Idle:
			title = "The host waits in " + kit.Quoted(site) + ", and the GPU runs dry"
		case step.Cause[after] > step.Cause[timeline.CauseSync]:
			follows, at := afterWait(in, after)
			title, place = title+follows, cmp.Or(at, site)
		}
		title += kit.Stall(step)
	}
	out.FindAs("sync", title, evidence, advice...).At(place).OfIdle(step, idle, barrierIdle...)
}

// afterWait says where the idle time is that follows a wait, as the end of a sentence, and names the place if most of
// that time has the cause.
func afterWait(in *kit.Input, cause int) (text, place string) {
	step := in.Step()
	var idle [timeline.Causes]int64
	for _, c := range barrierIdle {
		idle[c] = step.IdleOf(c)
	}
	if x := in.IdleSiteOf(&idle); x.Cause == cause {
		place = x.Place()
	}
	return " (idle: " + timeline.CauseNames[cause] + ")" + step.Where.Inside(in.Trace, step.Each), place
}

// waits lists the calls that are easily mistaken for blocking ones, and those that can block outside the four families:
// cudaThreadSynchronize and allocations. It reports whether there was one of the former.
func waits(in *kit.Input, out *kit.Output) (old bool) {
	api := &in.Trace.API
	var allocated interval.Set
	var evidence []report.MetricRef
	for _, i := range in.CallStats().Rows(func(n *trace.APIName) bool { return waitKind(n) == "allocates" }) {
		allocated.Add(api.Start(i), api.End(i))
	}
	t := out.Table("waits")
	for _, e := range in.CallStats().Chosen(func(n *trace.APIName) bool { return waitKind(n) != "" }) {
		n := &api.Names[e.Key]
		kind := waitKind(n)
		out.Calls("wait.time", "wait.count", kit.Labels("api", n.Name), &e.Sums, "start", "end", "nameId")
		t.Row(append(t.Stats(e.Summary), kit.Text("api_name", n.Name), kit.Text("kind", kind),
			kit.Int("count", e.Count), kit.Int("total", e.Total))...)
		if kind == "allocates" && len(evidence) < 4 {
			evidence = append(evidence, kit.Ref("wait.time", "api", n.Name))
		}
		if n.OldSync {
			old = true
			title, place := oldSyncTitle, n.Name
			if follows, at := afterWait(in, timeline.CauseHost); at != "" && at != place {
				title, place = title+follows, at
			}
			out.FindAs("sync_old", title,
				[]report.MetricRef{kit.Ref("wait.time", "api", n.Name), kit.Ref("wait.count", "api", n.Name)},
				"It waits for the whole device, as cudaDeviceSynchronize does. It counts neither in sync.total_time nor as the idle cause sync: idle time that it causes is under host.",
				"Wait for one event or stream instead, and only when the host needs the result.",
			).At(place).OfIdle(in.Step(), in.Step().OldWaits, barrierIdle...)
		}
	}
	t.Cut(in.Options.Top, "count", "total").Add()
	if !in.Trace.RanKernels() {
		return old
	}
	step := in.Step()
	idle, call, rng := kit.AllocationIdle(step, in.Trace)
	share := stat.Ratio(allocated.Within(in.Span.Start, in.Span.End), in.Span.Len())
	if kit.Told(step, idle) || share != nil && *share >= allocShare {
		title := "Allocating and freeing memory takes a large part of the window"
		if kit.Told(step, idle) {
			title = "The host allocates or frees memory in " + kit.Quoted(call)
			if rng != "" {
				title += " inside " + kit.Quoted(rng)
			}
			title += ", and the GPU idles meanwhile: " + step.Each(idle)
		}
		out.FindAs("allocations", title, evidence,
			"cudaMalloc and cudaFree may wait for the device, and pinning memory (cudaHostAlloc) is slow: allocate once and reuse. In steady state a caching allocator makes no such call. Look for torch.cuda.empty_cache(), fragmentation (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True) and memory limits that force the allocator to give memory back.",
			"If the window holds the start of the program, narrow it ("+in.NarrowFlags()+") before believing this.",
		).At(cmp.Or(rng, call)).OfIdle(step, idle, timeline.CauseHost, timeline.CauseLaunch, timeline.CauseSync)
	}
	return old
}

// waitKind is the kind of a call outside the Synchronize family, or empty.
func waitKind(n *trace.APIName) string {
	switch {
	case n.Poll:
		return "query"
	case n.Wait:
		return "stream wait"
	case n.OldSync:
		return "blocks"
	case kit.Allocates(n.Name):
		return "allocates"
	}
	return ""
}
