package host

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// held is how long calls took, and for how much of it the GPU worked for the waiting process.
type held struct {
	calls      interval.Set // union of the calls
	count      int64
	total      int64 // of the calls, whole
	held, busy int64 // of the calls, within the window where it was narrowed
}

// share is the part of the window, 0..1, that the calls of one thread cover.
func (h *held) share(in *kit.Input) *float64 {
	return stat.Ratio(h.calls.Clip(in.Span.Start, in.Span.End).Len(), in.Span.Len())
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

// workedDuring is, for each of some API calls by start, how long the GPU work of its process ran meanwhile, on any
// device. If the process of a call or of some work is not known, all work counts.
func workedDuring(in *kit.Input, rows []int) []int64 {
	if len(rows) == 0 {
		return nil
	}
	api, everyone := &in.Trace.API, len(in.Trace.Procs)
	procs := procSums(in)
	anonymous := slices.ContainsFunc(procs, func(s procSum) bool { return s.proc == trace.None && len(s.devices) > 0 })
	// The moments that are needed, by process of the work, ascending.
	type moment struct {
		at  int64
		row int32
		sum int64 // what it adds to the row's time: the time up to the end, less that up to the start
	}
	moments := make([][]moment, everyone+1)
	for n, i := range rows {
		p := in.Trace.ProcOf(api.Thread(i))
		if p == trace.None || anonymous {
			p = int32(everyone)
		}
		moments[p] = append(moments[p], moment{api.Start(i), int32(n), -1},
			moment{min(api.End(i), in.Host.End), int32(n), 1})
	}
	for p := range moments {
		lists.Sort(moments[p], func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	}
	worked := make([]int64, len(rows))
	ran := slices.Repeat([]kit.Covered{{Reached: math.MinInt64 / 2}}, everyone+1) // so far, by process of the work
	// tell answers the moments of one process up to a time before which all work is known.
	tell := func(p int, until int64) {
		list, r := moments[p], &ran[p]
		for ; len(list) > 0 && list[0].at <= until; list = list[1:] {
			m := list[0]
			worked[m.row] += m.sum * (r.Ns - max(0, r.Reached-m.at)) // less what ran after the moment
		}
		moments[p] = list
	}
	work := func(d *timeline.Device, i int) {
		start, end := max(d.Start(i), in.Span.Start), min(d.End(i), in.Span.End)
		add := func(p int) {
			if len(moments[p]) > 0 {
				tell(p, start)
				ran[p].Add(start, end)
			}
		}
		if p := d.Proc(i); p != trace.None {
			add(int(p))
		}
		add(everyone)
	}
	several := func(s procSum) bool { return len(s.devices) > 1 } // a process that ran work on them
	if len(moments[everyone]) == 0 && !slices.ContainsFunc(procs, several) {
		for _, dev := range in.Timeline.Devices {
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

// processes emits the metrics of each process, and the most blocked thread of all.
func (b *blockedTimes) processes(in *kit.Input, out *kit.Output, rows []int) {
	api := &in.Trace.API
	worst := make([]*float64, len(b.procs))
	var most *float64
	for th := range b.threads {
		if h := &b.threads[th]; h.count > 0 {
			s := h.share(in)
			p := in.Trace.Threads[th].Proc
			worst[p], most = kit.Higher(worst[p], s), kit.Higher(most, s)
		}
	}
	emit := func(l report.Labels, h *held, share *float64) {
		out.From(trace.RoleAPI, int(h.count), "start", "end", "nameId", "globalTid")
		out.Metric("sync.share", l, share)
		out.Source.WithWork("start", "end", "globalPid")
		out.Metric("sync.gpu_busy_ratio", l, stat.Ratio(h.busy, h.held))
	}
	if b.all.count > 0 {
		emit(nil, &b.all, most)
	}
	byProc := kit.Gather(nil, len(b.procs), 0, len(rows), func(at int) int32 { return in.Trace.ProcOf(api.Thread(rows[at])) },
		func(at int) int64 { return api.Dur(rows[at]) }).Sort()
	for p := range b.procs {
		h := &b.procs[p]
		if h.count == 0 {
			continue
		}
		l := kit.Labels("pid", kit.PIDText(in, int32(p)))
		out.From(trace.RoleAPI, int(h.count), "start", "end", "nameId", "globalTid")
		out.Int("sync.total_time", l, h.total).Summary = byProc.Of(p).Summary()
		out.Int("sync.count", l, h.count)
		emit(l, h, worst[p])
	}
}

func (b *blockedTimes) threadTable(in *kit.Input, out *kit.Output) {
	order := lists.Where(len(b.threads), func(th int) bool { return b.threads[th].count > 0 })
	lists.Sort(order, func(x, y int) int { return cmp.Compare(b.threads[y].total, b.threads[x].total) })
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
