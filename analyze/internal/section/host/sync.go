package host

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var Sync = kit.Section{
	ID: "sync", Steady: true, Title: "Blocking synchronisation",
	Derivation: "API calls that start in the window and are a Device-, Stream-, Event- or CtxSynchronize, " +
		"version suffix stripped. Durations are summed over threads. Queries, stream waits, " +
		"cudaThreadSynchronize and allocations have a table of their own; synchronous copies are in the memcpy " +
		"section. Whether a wait was for the GPU is measured against the waiting process's own GPU work.",
	Metrics: []report.MetricDef{
		{
			ID: "sync.blocked_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Labels: []string{"", "pid"},
			Meaning: "time of the window in which a thread was inside a blocking synchronisation call, added up over " +
				"threads: calls that started before the window or end after it count for the part inside, and never " +
				"more than the window for each thread",
		},
		{
			ID: "sync.total_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Stats: true, Labels: []string{"", "pid", "api"},
			Meaning: "time spent inside blocking synchronisation calls, summed over threads; the summary is over " +
				"calls",
		},
		{
			ID: "sync.count", Unit: report.Count, Better: report.Lower, Assume: report.Exact,
			Scale: report.Total, Labels: []string{"", "pid", "api"},
			Meaning: "blocking synchronisation calls",
		},
		{
			ID: "sync.share", Unit: report.Ratio, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Level, Labels: []string{"", "pid"},
			Meaning: "share of the window that the most blocked thread spent in blocking synchronisation calls",
		},
		{
			ID: "sync.gpu_busy_ratio", Unit: report.Ratio, Better: report.None, Assume: report.Noisy,
			Scale: report.Level, Labels: []string{"", "pid"},
			Meaning: "share of the time in blocking synchronisation calls during which GPU work of the waiting " +
				"process ran: what is missing to 1 was not waiting for the GPU",
		},
		{
			ID: "wait.time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Stats: true, Labels: []string{"api"},
			Meaning: "time spent inside calls that query an event or a stream, make a stream wait, or can block " +
				"without being a Synchronize call (cudaThreadSynchronize, allocating and freeing memory); the " +
				"summary is over calls",
		},
		{
			ID: "wait.count", Unit: report.Count, Better: report.Lower, Assume: report.Exact,
			Scale: report.Total, Labels: []string{"api"},
			Meaning: "calls that query an event or a stream, make a stream wait, or can block without being a " +
				"Synchronize call (cudaThreadSynchronize, allocating and freeing memory)",
		},
		{
			ID: "sync.record_time", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Total,
			Meaning: "duration of all synchronisation records of the driver, queries and stream waits included: " +
				"a second source, which stands in where the API calls are missing",
		},
		{
			ID: "sync.record_count", Unit: report.Count, Better: report.None, Assume: report.Exact,
			Scale:   report.Total,
			Meaning: "synchronisation records of the driver, queries and stream waits included",
		},
	},
	Tables: []report.Table{
		{ID: "sync", Title: "Blocking calls", File: "sync.csv", Columns: []report.Column{
			kit.NameCol("api_name", "API"),
			kit.CountCSVCol("count", "Calls", "call_count"),
			kit.NsCol("total", "Total", "total_time_ns", "total_time_ms"),
			kit.MeanCol("mean", "Mean", "avg_duration_us"),
			kit.MeanCol("p50", "p50", "p50_duration_us"),
			kit.MeanCol("p90", "p90", "p90_duration_us"),
			kit.Wide(kit.NsCol("min", "Min", "min_duration_us")),
			kit.NsCol("max", "Max", "max_duration_us"),
			kit.RatioCol("share", "Of window", "pct_of_window"),
			kit.RatioCol("gpu_busy", "GPU at work", "pct_gpu_busy"),
		}},
		{ID: "sync_threads", Title: "Blocked threads", File: "sync_threads.csv", Columns: []report.Column{
			kit.IDCol("pid", "PID"),
			kit.IDCol("tid", "TID"),
			kit.NameCol("thread_name", "Thread"),
			kit.CountCSVCol("count", "Calls", "call_count"),
			kit.NsCol("total", "Total", "total_time_ms"),
			kit.RatioCol("share", "Of window", "pct_of_window"),
			kit.RatioCol("gpu_busy", "GPU at work", "pct_gpu_busy"),
		}},
		{ID: "sync_by_range", Title: "Blocking calls by NVTX range", File: "sync_by_range.csv",
			Columns: []report.Column{
				kit.NameCol("range_name", "Range"),
				kit.Wide(kit.NameCol("within", "Within")),
				kit.NameCol("phase", "Phase"),
				kit.NameCol("api_name", "API"),
				kit.CountCSVCol("count", "Calls", "call_count"),
				kit.NsCol("total", "Total", "total_time_ms"),
				kit.MeanCol("mean", "Mean", "avg_duration_us"),
				kit.NsCol("max", "Max", "max_duration_us"),
			}},
		{ID: "waits", Title: "Queries, stream waits and other waiting calls", File: "waits.csv",
			Columns: []report.Column{
				kit.NameCol("api_name", "API"),
				kit.TextCol("kind", "Kind"),
				kit.CountCSVCol("count", "Calls", "call_count"),
				kit.NsCol("total", "Total", "total_time_ns", "total_time_ms"),
				kit.MeanCol("mean", "Mean", "avg_duration_us"),
				kit.MeanCol("p50", "p50", "p50_duration_us"),
				kit.MeanCol("p90", "p90", "p90_duration_us"),
				kit.NsCol("max", "Max", "max_duration_us"),
			}},
	},
	Run: syncCalls,
}

// When blocking calls are a finding. The first is nsys-llm-explainer's.
const (
	syncMedium     = 1_000_000 // ns of blocking calls
	syncIdleWindow = 0.05      // of the window idle for the cause sync, and …
	syncIdleShare  = 0.40      // … of all idle time, for the finding to be high
	allocShare     = 0.05      // of the window spent allocating and freeing memory
	allocShareHigh = 0.40
	syncGPUWait    = 0.80 // of the blocked time with the GPU at work: the wait is for the GPU
)

func syncCalls(in *kit.Input, out *kit.Output) {
	if in.Has(trace.RoleSync) {
		lo, hi := in.Trace.Syncs.Starting(in.Host.Start, in.Host.End)
		out.From(trace.RoleSync, hi-lo, "start", "end")
		out.Int("sync.record_time", nil, kit.Total(lo, hi, in.Trace.Syncs.Dur))
		out.Int("sync.record_count", nil, int64(hi-lo))
	}
	if !in.Has(trace.RoleAPI) {
		if in.Has(trace.RoleSync) {
			out.Status(report.Partial, in.Lack(trace.RoleAPI)+"; only the driver's synchronisation records are there, in which queries and stream waits cannot be told from blocking calls")
			return
		}
		out.Status(report.Unavailable, in.Lack(trace.RoleAPI))
		return
	}
	if !in.CallsHaveNames() {
		out.Status(report.Unavailable, kit.NoCallNames)
		out.From(trace.RoleAPI, in.Trace.API.Len(), "nameId")
		for _, id := range []string{"sync.blocked_time", "sync.total_time", "sync.count"} {
			out.Metric(id, nil, nil)
		}
		return
	}
	api := &in.Trace.API
	rows := in.CallRows(func(n *trace.APIName) bool { return n.Sync })
	blocked := newBlocked(in, rows)
	stats := in.CallStats()
	list := kit.Some(stats.Names, func(name int) bool { return api.Names[name].Sync })

	emit := func(l report.Labels, count, total int64, s *report.Summary) {
		out.From(trace.RoleAPI, int(count), "start", "end", "nameId", "globalTid")
		out.Int("sync.total_time", l, total).Summary = s
		out.Int("sync.count", l, count)
	}
	calls := int(stats.Syncs.Count)
	emit(nil, stats.Syncs.Count, stats.Syncs.Total, stats.Syncs.Summary)
	t := out.Table("sync")
	for _, e := range list {
		name := api.Names[e.Key].Name
		emit(kit.Labels("api", name), e.Count, e.Total, e.Summary)
		s, w := e.Summary, &blocked.apis[e.Key]
		t.Row(
			kit.Text("api_name", name), kit.Int("count", e.Count), kit.Int("total", e.Total),
			kit.Float("mean", s.Mean), kit.Float("p50", s.P50), kit.Float("p90", s.P90),
			kit.Int("min", int64(s.Min)), kit.Int("max", int64(s.Max)),
			kit.Maybe("share", stat.Ratio(w.calls.Clip(in.Span.Start, in.Span.End).Len(), in.Span.Len())),
			kit.Maybe("gpu_busy", stat.Ratio(w.busy, w.held)))
	}
	t.Cut(in.Options.Top, "count", "total").Add()
	waited := whileBlocked(in, out)
	blocked.processes(in, out, rows)
	blocked.threadTable(in, out)
	syncByRange(in, out, rows)
	old := waits(in, out)

	out.Note("\"Of window\" is the share of the window in which any thread was in the call; \"GPU at work\" the share of the call's time in which GPU work of its own process ran.")
	out.Note("The driver's synchronisation records are not used for the kind of a wait: captures number the kinds differently.")
	if calls == 0 && !old {
		out.Status(report.NotApplicable, "no blocking synchronisation call starts in the window")
	}
	if waited > 0 && in.RanKernels() {
		syncFindings(in, out, waited, blocked)
	}
}

// whileBlocked emits for how long threads were blocked in the window, and returns the sum over threads. Calls count that
// overlap the window, wherever they start.
func whileBlocked(in *kit.Input, out *kit.Output) (total int64) {
	api := &in.Trace.API
	calls := make([]interval.Set, len(in.Trace.Threads)+1) // the last of calls that name no thread
	rows, procRows := 0, make([]int, len(in.Trace.Procs))
	_, hi := api.Starting(in.Span.Start, in.Span.End)
	for i := range hi {
		if !api.Names[api.Name(i)].Sync || api.End(i) <= in.Span.Start {
			continue
		}
		rows++
		th := api.Thread(i)
		if th == trace.None {
			th = int32(len(in.Trace.Threads))
		} else {
			procRows[in.Trace.Threads[th].Proc]++
		}
		calls[th].Add(max(api.Start(i), in.Span.Start), min(api.End(i), in.Span.End))
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
			out.Rows(int64(procRows[p]))
			out.Int("sync.blocked_time", kit.Labels("pid", pidText(in, int32(p))), ns)
		}
	}
	return total
}

// held is how long calls were under way, and how much of it the GPU worked for the waiting process.
type held struct {
	calls      interval.Set // union of the calls
	count      int64
	total      int64 // of the calls, whole
	held, busy int64 // of the calls, within the window where it was narrowed
}

// blockedTimes are the blocking calls by API name, thread and process.
type blockedTimes struct {
	apis    []held
	threads []held
	procs   []held
	all     held
}

func newBlocked(in *kit.Input, rows []int) *blockedTimes {
	api := &in.Trace.API
	b := &blockedTimes{apis: make([]held, len(api.Names)), threads: make([]held, len(in.Trace.Threads)),
		procs: make([]held, len(in.Trace.Procs))}
	worked := workedDuring(in, rows)
	for at, i := range rows {
		start, end := api.Start(i), api.End(i)
		to := min(end, in.Host.End)
		into := []*held{&b.all, &b.apis[api.Name(i)]}
		if th := api.Thread(i); th != trace.None {
			into = append(into, &b.threads[th], &b.procs[in.Trace.Threads[th].Proc])
		}
		for _, h := range into {
			h.calls.Add(start, end)
			h.count++
			h.total += end - start
			h.held += to - start
			h.busy += worked[at]
		}
	}
	return b
}

// workedDuring is, for each of some API calls by start, how long its process's own GPU work ran meanwhile, on any
// device. A call of no known process looks at all work. Where some work is of no known process, every call does.
func workedDuring(in *kit.Input, rows []int) []int64 {
	if len(rows) == 0 {
		return nil
	}
	api, everyone := &in.Trace.API, len(in.Trace.Procs)
	anonymous := false
	for d := range in.Timeline.Devices {
		dev := &in.Timeline.Devices[d]
		for i := 0; i < dev.Len() && !anonymous; i++ {
			anonymous = dev.Proc(i) == trace.None
		}
	}
	// The moments that are asked for, by whose work, ascending.
	type moment struct {
		at  int64
		row int32
		sum int64 // what it adds to the row's time: the time up to the end, less that up to the start
	}
	moments := make([][]moment, everyone+1)
	for n, i := range rows {
		p := in.ProcOf(api.Thread(i))
		if p == trace.None || anonymous {
			p = int32(everyone)
		}
		moments[p] = append(moments[p], moment{api.Start(i), int32(n), -1},
			moment{min(api.End(i), in.Host.End), int32(n), 1})
	}
	for p := range moments {
		slices.SortFunc(moments[p], func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	}
	worked := make([]int64, len(rows))
	// What ran so far, and the stretch that may go on, by whose work.
	type ran struct{ closed, start, end int64 }
	sums := make([]ran, everyone+1)
	for p := range sums {
		sums[p].start, sums[p].end = math.MinInt64, math.MinInt64
	}
	// tell answers the moments of one process up to a time before which all work is known.
	tell := func(p int, until int64) {
		list, r := moments[p], &sums[p]
		for len(list) > 0 && list[0].at <= until {
			m := list[0]
			worked[m.row] += m.sum * (r.closed + max(0, min(m.at, r.end)-r.start))
			list = list[1:]
		}
		moments[p] = list
	}
	work := func(d *attrib.Device, i int) {
		start, end := max(d.Start(i), in.Span.Start), min(d.End(i), in.Span.End)
		if end <= start {
			return
		}
		add := func(p int) {
			if len(moments[p]) > 0 && moments[p][0].at <= start {
				tell(p, start)
			}
			r := &sums[p]
			if start > r.end {
				r.closed, r.start, r.end = r.closed+r.end-r.start, start, start
			}
			r.end = max(r.end, end)
		}
		if p := d.Proc(i); p != trace.None && len(moments[p]) > 0 {
			add(int(p))
		}
		if len(moments[everyone]) > 0 {
			add(everyone)
		}
	}
	if apart := processesApart(in); apart && len(moments[everyone]) == 0 {
		for d := range in.Timeline.Devices {
			dev := &in.Timeline.Devices[d]
			for i := range dev.Len() {
				work(dev, i)
			}
		}
	} else {
		in.Timeline.ByStart(work)
	}
	for p := range moments {
		tell(p, math.MaxInt64)
	}
	return worked
}

// processesApart reports whether no process ran work on more than one device.
func processesApart(in *kit.Input) bool {
	for _, s := range procSums(in) {
		if len(s.devices) > 1 {
			return false
		}
	}
	return true
}

// share is the part of the window that the calls of one thread cover.
func (h *held) share(in *kit.Input) *float64 {
	return stat.Ratio(h.calls.Clip(in.Span.Start, in.Span.End).Len(), in.Span.Len())
}

// processes emits what is said of each process, and the most blocked thread of all.
func (b *blockedTimes) processes(in *kit.Input, out *kit.Output, rows []int) {
	api := &in.Trace.API
	worst := make([]*float64, len(b.procs))
	var most *float64
	larger := func(a, b *float64) *float64 {
		if a == nil || b != nil && *b > *a {
			return b
		}
		return a
	}
	for th := range b.threads {
		if h := &b.threads[th]; h.count > 0 {
			s := h.share(in)
			p := in.Trace.Threads[th].Proc
			worst[p], most = larger(worst[p], s), larger(most, s)
		}
	}
	emit := func(l report.Labels, h *held, share *float64) {
		out.From(trace.RoleAPI, int(h.count), "start", "end", "nameId", "globalTid")
		out.Metric("sync.share", l, share)
		out.With(trace.RoleKernel, "start", "end", "globalPid")
		for _, r := range []trace.Role{trace.RoleMemcpy, trace.RoleMemset, trace.RoleGraph} {
			if in.Has(r) {
				out.With(r)
			}
		}
		out.Metric("sync.gpu_busy_ratio", l, stat.Ratio(h.busy, h.held))
	}
	if b.all.count > 0 {
		emit(nil, &b.all, most)
	}
	byProc := kit.Gather(nil, len(b.procs), 0, len(rows), func(at int) int32 { return in.ProcOf(api.Thread(rows[at])) },
		func(at int) int64 { return api.Dur(rows[at]) }).Sort()
	for p := range b.procs {
		h := &b.procs[p]
		if h.count == 0 {
			continue
		}
		l := kit.Labels("pid", pidText(in, int32(p)))
		out.From(trace.RoleAPI, int(h.count), "start", "end", "nameId", "globalTid")
		out.Int("sync.total_time", l, h.total).Summary = byProc.Of(p).Summary()
		out.Int("sync.count", l, h.count)
		emit(l, h, worst[p])
	}
}

func (b *blockedTimes) threadTable(in *kit.Input, out *kit.Output) {
	var order []int
	for th := range b.threads {
		if b.threads[th].count > 0 {
			order = append(order, th)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(b.threads[y].total, b.threads[x].total) })
	t := out.Table("sync_threads")
	for _, th := range order {
		h, thread := &b.threads[th], &in.Trace.Threads[th]
		t.Row(
			kit.Int("pid", in.Trace.Procs[thread.Proc].PID), kit.Int("tid", thread.TID),
			kit.Text("thread_name", thread.Name), kit.Int("count", h.count), kit.Int("total", h.total),
			kit.Maybe("share", h.share(in)), kit.Maybe("gpu_busy", stat.Ratio(h.busy, h.held)))
	}
	t.Cut(in.Options.Top, "count", "total").Add()
}

// syncByRange says where in the program the blocking calls are made.
func syncByRange(in *kit.Input, out *kit.Output, rows []int) {
	type place struct{ rng, within, phase, api string }
	api := &in.Trace.API
	places, where := kit.NewNumbering[place](), kit.NewPlaces(in)
	if in.Trace.Ranges.Len() == 0 {
		rows = nil
	}
	keys := make([]int32, len(rows))
	for at, i := range rows {
		rng, within, phase := where.Path(int32(i))
		keys[at] = places.Of(place{rng, within, phase, api.Names[api.Name(i)].Name})
	}
	g := kit.Gather(nil, len(places.Keys), 0, len(rows), func(at int) int32 { return keys[at] },
		func(at int) int64 { return api.Dur(rows[at]) }).Sort()
	t := out.Table("sync_by_range")
	for _, e := range g.Rank(func(a, b int) int { return cmp.Compare(a, b) }) {
		p := &places.Keys[e.Key]
		t.Row(
			kit.Put("range_name", kit.RangeCell(p.rng)), kit.Put("within", kit.OptionalCell(p.within)),
			kit.Put("phase", kit.OptionalCell(p.phase)), kit.Text("api_name", p.api), kit.Int("count", e.Count),
			kit.Int("total", e.Total), kit.Float("mean", e.Summary.Mean), kit.Int("max", int64(e.Summary.Max)))
	}
	t.Cut(in.Options.Top, "count", "total").Add()
}

// waitKind says what a call outside the Synchronize family does, or is empty.
func waitKind(n *trace.APIName) string {
	switch {
	case n.Poll:
		return "query"
	case n.Wait:
		return "stream wait"
	case n.OldSync:
		return "blocks"
	case allocates(n.Name):
		return "allocates"
	}
	return ""
}

// allocates reports whether a call allocates, frees or pins memory at once. Many such calls wait for the device.
func allocates(name string) bool {
	if strings.Contains(name, "Async") || strings.Contains(name, "FromPool") {
		return false
	}
	for _, prefix := range []string{"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister", "cudaHostUnregister",
		"cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemHostRegister", "cuMemHostUnregister"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// waits shows the calls that are easily taken for blocking ones, and those that can block outside the four families:
// cudaThreadSynchronize and allocations. It reports whether there was one of the former.
func waits(in *kit.Input, out *kit.Output) (old bool) {
	api := &in.Trace.API
	kinds := make([]string, len(api.Names))
	for n := range kinds {
		kinds[n] = waitKind(&api.Names[n])
	}
	var allocated interval.Set
	var evidence []report.MetricRef
	for _, i := range in.CallRows(func(n *trace.APIName) bool { return waitKind(n) == "allocates" }) {
		allocated.Add(api.Start(i), api.End(i))
	}
	t := out.Table("waits")
	for _, e := range kit.Some(in.CallStats().Names, func(name int) bool { return kinds[name] != "" }) {
		n, s := &api.Names[e.Key], e.Summary
		out.From(trace.RoleAPI, int(e.Count), "start", "end", "nameId")
		l := kit.Labels("api", n.Name)
		out.Int("wait.time", l, e.Total).Summary = s
		out.Int("wait.count", l, e.Count)
		t.Row(
			kit.Text("api_name", n.Name), kit.Text("kind", kinds[e.Key]), kit.Int("count", e.Count),
			kit.Int("total", e.Total), kit.Float("mean", s.Mean), kit.Float("p50", s.P50),
			kit.Float("p90", s.P90), kit.Int("max", int64(s.Max)))
		if kinds[e.Key] == "allocates" && len(evidence) < 4 {
			evidence = append(evidence, kit.Ref("wait.time", "api", n.Name))
		}
		if n.OldSync {
			old = true
			severity := report.Low
			if e.Total >= syncMedium {
				severity = report.Medium
			}
			out.Find("sync_old", severity, "Blocking barriers through the deprecated cudaThreadSynchronize",
				[]report.MetricRef{kit.Ref("wait.time", "api", n.Name), kit.Ref("wait.count", "api", n.Name)},
				"It waits for the whole device, as cudaDeviceSynchronize does. It counts neither in sync.total_time nor as the idle cause sync: idle time that it causes is under host.",
				"Wait for one event or stream instead, and only where the host needs the result.").Worth = in.HostWorth(e.Total)
		}
	}
	t.Cut(in.Options.Top, "count", "total").Add()
	ns := allocated.Within(in.Span.Start, in.Span.End)
	if share := stat.Ratio(ns, in.Span.Len()); share != nil && *share >= allocShare && in.RanKernels() {
		out.Find("allocations", kit.AtLeast(*share, allocShareHigh),
			"Allocating and freeing memory takes a large part of the window", evidence,
			"cudaMalloc and cudaFree may wait for the device, and pinning memory (cudaHostAlloc) is slow: allocate once and reuse. In steady state a caching allocator makes no such call. Look for torch.cuda.empty_cache(), fragmentation (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True) and memory limits that force the allocator to give memory back.",
			"If the window holds the start of the program, narrow it ("+in.NarrowFlags()+") before believing this.",
		).Worth = in.HostWorth(ns)
	}
	return old
}

func syncFindings(in *kit.Input, out *kit.Output, waited int64, b *blockedTimes) {
	severity := report.Low
	if waited >= syncMedium {
		severity = report.Medium
	}
	evidence := []report.MetricRef{kit.Ref("sync.blocked_time"), kit.Ref("sync.count")}
	if b.all.count > 0 {
		evidence = append(evidence, kit.Ref("sync.share"), kit.Ref("sync.gpu_busy_ratio"))
	}
	if id, idle := idleForSync(in); idle {
		severity = report.High
		evidence = append(evidence, kit.Ref("gpu.idle_cause_time", "cause", attrib.CauseNames[attrib.CauseSync],
			"device", id))
	}
	var advice []string
	switch busy := stat.Ratio(b.all.busy, b.all.held); {
	case severity == report.High:
		advice = append(advice, "The GPU runs dry while the launching thread is blocked: prepare and launch the next step before waiting for this one (vLLM: --async-scheduling; SGLang: without --disable-overlap-schedule).")
	case busy != nil && *busy >= syncGPUWait:
		advice = append(advice, "Most of the wait is for GPU work that is running: the barrier costs little by itself, and that work is where the time is.")
	case busy != nil:
		advice = append(advice, "A good part of the wait passes with no GPU work of the process running: it waits for another rank or for work that has not started, or pays for the call itself.")
	}
	advice = append(advice, "The table by NVTX range says where the calls are made. Remove those of every step (.item(), .cpu(), .tolist(), torch.cuda.synchronize(), a non-pinned copy), and read results one step later, through an event.")
	out.Find("sync", severity, "The host waits in blocking synchronisation calls", evidence, advice...).Worth = syncWorth(in)
}

// syncWorth is the time for which a device was idle because the thread that launches its work was blocked: waiting on
// other threads, or while the GPU works, costs nothing.
func syncWorth(in *kit.Input) *report.Worth {
	if len(in.Timeline.Devices) == 0 {
		return nil
	}
	most := &in.Timeline.Devices[0]
	for i := range in.Timeline.Devices {
		if d := &in.Timeline.Devices[i]; d.Cause[attrib.CauseSync] > most.Cause[attrib.CauseSync] {
			most = d
		}
	}
	return in.Worth(most.ID, most.Cause[attrib.CauseSync])
}

// idleForSync finds the device that is idle longest because the launching thread was blocked, if that is a large part
// of its idle time.
func idleForSync(in *kit.Input) (device string, large bool) {
	best, window := int64(0), float64(in.Span.Len())
	for i := range in.Timeline.Devices {
		d := &in.Timeline.Devices[i]
		blocked := d.Cause[attrib.CauseSync]
		if blocked > best && float64(blocked) >= syncIdleWindow*window &&
			float64(blocked) >= syncIdleShare*float64(d.Idle) {
			best, device, large = blocked, strconv.Itoa(int(d.ID)), true
		}
	}
	return device, large
}
