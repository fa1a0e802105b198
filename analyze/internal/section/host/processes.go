package host

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Processes = kit.Section{
	ID: "processes", Group: report.GroupLate, Title: "Processes",
	Derivation: "The main numbers of the other sections, by process. A process is the upper part of globalPid (virtual " +
		"machine, hardware and pid); its kernels are the rows with that value, its calls and ranges those of " +
		"its threads. Kernels and API calls are never joined across processes, even if their correlation ids " +
		"are equal.",
	Findings: []kit.FindingDef{
		{ID: "shared_device", Title: "Several processes run kernels on the same device"},
	},
	Metrics: []report.MetricDef{
		kit.TotalTime("kernel.total_time", report.Lower, report.Sum.Counting("kernel", "kernel"),
			"sum of the kernel durations of one process").Summarised().By("pid"),
		kit.ExactCount("kernel.count", report.None, report.Sum, "number of kernels of one process").By("pid"),
		kit.TotalTime("process.busy_time", report.None, report.Leave,
			"time in which any GPU work of the process ran: a union per device, devices added up").By("pid"),
	},
	Tables: []report.Table{
		{ID: "processes", Title: "Processes", File: "processes.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("pid", "PID"),
			kit.NameCol("process_name", "Process"),
			kit.Wide(kit.TextCol("machine", "Machine")),
			kit.NsCol("kernel_time", "Kernel time", "total_kernel_time_ns", "total_kernel_time_ms"),
			kit.RatioCol("share", "Share", "pct_of_total_kernel_time"),
			kit.CountCol("kernels", "Kernels", "kernel_count"),
			kit.NsCol("busy", "GPU busy", "gpu_busy_ms"),
			kit.TextCol("devices", "GPUs"),
			kit.CountCol("launches", "Launches", "launch_count"),
			kit.NsCol("launch_time", "In launch calls", "launch_api_time_ms"),
			kit.CountCol("syncs", "Syncs", "sync_count"),
			kit.NsCol("sync_time", "In sync calls", "sync_total_time_ms"),
			kit.CountCol("ranges", "NVTX ranges", "nvtx_count"),
			kit.RatioCol("coverage", "NVTX coverage", "pid_attribution_coverage_pct"),
		}},
		{ID: "kernels_by_pid", Title: "Top kernels per process", File: "kernels_by_pid.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("pid", "PID"),
			kit.Wide(kit.NsCol("pid_total", "Process total", "pid_total_kernel_time_ms")),
			kit.Wide(kit.RatioCol("pid_share", "Process share", "pid_pct_of_total_kernel_time")),
			kit.NameCol("kernel_name", "Kernel"),
			kit.IDCol("device_id", "GPU"),
			kit.CountCol("count", "Calls", "call_count"),
			kit.NsCol("total", "Total", "total_time_ns", "total_time_ms"),
			kit.MeanCol("mean", "Mean", "avg_duration_us"),
			kit.RatioCol("share_of_pid", "Share of process", "pct_of_pid_kernel_time"),
			kit.RatioCol("share", "Share", "pct_of_total_kernel_time"),
		}},
		{ID: "sync_by_pid", Title: "Blocking synchronisation per process", File: "sync_by_pid.csv", Merge: report.Leave,
			Columns: []report.Column{
				kit.IDCol("pid", "PID"),
				kit.NameCol("api_name", "API"),
				kit.CountCol("count", "Calls", "call_count"),
				kit.NsCol("total", "Total", "total_time_ns", "total_time_ms"),
				kit.MeanCol("mean", "Mean", "avg_duration_us"),
			}},
		{ID: "nvtx_by_pid", Title: "NVTX ranges per process", File: "nvtx_by_pid.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("pid", "PID"),
			kit.NameCol("range_name", "Range"),
			kit.CountCol("count", "Count", "nvtx_count"),
			kit.NsCol("wall", "Wall time", "nvtx_total_time_ms"),
			kit.NsCol("gpu", "GPU time", "inclusive_kernel_time_ms"),
			kit.NsCol("self", "Self GPU time", "attributed_kernel_time_ms"),
			kit.CountCol("kernels", "Kernels (self)", "attributed_kernel_count"),
			kit.Wide(kit.RatioCol("coverage", "Coverage of process", "pid_attribution_coverage_pct")),
		}},
	},
	Run: processes,
}

const (
	maxKernelsPerPid = 10   // rows of one process in kernels_by_pid, as in nsys-llm-explainer
	sharedDevice     = 0.05 // of a device's kernel time, from which a process counts as sharing it
)

type procSum struct {
	proc     int32 // trace.None for work whose process is unknown
	kernels  int64
	kernelNs int64
	busy     int64
	devices  []int32
	launches int64
	launchNs int64
	syncs    int64
	syncNs   int64
	ranges   int64
	other    int64 // API calls and GPU work that is neither of the above
}

func (s *procSum) empty() bool {
	return s.kernels == 0 && s.busy == 0 && s.launches == 0 && s.syncs == 0 && s.ranges == 0 && s.other == 0
}

func processes(in *kit.Input, out *kit.Output) {
	list := procSums(in)
	total := lists.Sum(list, func(p procSum) int64 { return p.kernelNs })
	emitted := map[int32]bool{}
	for i, s := range list {
		if s.proc == trace.None || i >= kit.MaxProcMetrics {
			continue
		}
		l := kit.Labels("pid", kit.PIDText(in, s.proc))
		if s.kernels > 0 {
			out.From(trace.RoleKernel, int(s.kernels), "start", "end", "globalPid")
			out.Int("kernel.total_time", l, s.kernelNs)
			out.Int("kernel.count", l, s.kernels)
			emitted[s.proc] = true
		}
		if s.busy > 0 {
			out.FromWork(int(s.kernels), "start", "end", "globalPid", "deviceId")
			out.Int("process.busy_time", l, s.busy)
		}
	}
	processTable(in, out, list, total)
	kernelsByPid(in, out, list, total)
	syncByPid(in, out)
	rangesByPid(in, out)
	switch {
	case len(list) == 0:
		out.Status(report.NotApplicable, "no process did anything that the capture records")
	case list[len(list)-1].proc == trace.None && list[len(list)-1].kernels > 0:
		reason := "some kernels name no process; they are in a row without pid"
		if !in.Trace.Has.KernelPID {
			reason = "the export does not say which process a kernel belongs to (column globalPid of " +
				in.Trace.Tables.Name(trace.RoleKernel) + ")"
		}
		out.Status(report.Partial, reason)
	}
	sharedDevices(in, out, emitted)
}

// procSums lists the processes with any activity, by kernel time, then busy time, then API calls; the unknown process
// is last.
func procSums(in *kit.Input) []procSum {
	return kit.Once(in, "processes", func() []procSum { return addProcs(in) })
}

func addProcs(in *kit.Input) []procSum {
	t := in.Trace
	all := make([]procSum, len(t.Procs)+1)
	for p := range all {
		all[p].proc = int32(p)
	}
	unknown := len(t.Procs)
	all[unknown].proc = trace.None
	ran := in.KernelStats()
	for _, c := range ran.Cells {
		s := &all[orLast(ran.Places[c.B].A, unknown)]
		s.kernels += c.Count
		s.kernelNs += c.Total
	}
	procBusy(in, all)
	api := &t.API
	for _, c := range in.CallStats().Cells {
		s := &all[orLast(in.Trace.ProcOf(c.B), unknown)]
		switch n := &api.Names[c.A]; {
		case n.Launch:
			s.launches += c.Count
			s.launchNs += c.Total
		case n.Sync:
			s.syncs += c.Count
			s.syncNs += c.Total
		default:
			s.other += c.Count
		}
	}
	for _, p := range totalsOfRanges(in).parts {
		all[orLast(p.proc, unknown)].ranges += p.count
	}
	list := slices.DeleteFunc(all, func(s procSum) bool { return s.empty() })
	lists.Sort(list, func(a, b procSum) int {
		return cmp.Or(cmp.Compare(min(0, b.proc), min(0, a.proc)), cmp.Compare(b.kernelNs, a.kernelNs),
			cmp.Compare(b.busy, a.busy),
			cmp.Compare(b.launches+b.syncs+b.other, a.launches+a.syncs+a.other), cmp.Compare(a.proc, b.proc))
	})
	return list
}

// procBusy adds up, device by device, the union of each process's work, and notes which devices it used.
func procBusy(in *kit.Input, all []procSum) {
	busy := make([]kit.Covered, len(all))
	for _, dev := range in.Timeline.Devices {
		for p := range busy {
			busy[p].Reached = in.Span.Start
		}
		for i := range dev.Len() {
			p := orLast(dev.Proc(i), len(all)-1)
			s := &all[p]
			if n := len(s.devices); n == 0 || s.devices[n-1] != dev.ID {
				s.devices = append(s.devices, dev.ID)
			}
			if dev.Kind(i) != timeline.KernelWork {
				s.other++
			}
			s.busy += busy[p].Add(dev.Start(i), min(dev.End(i), in.Span.End))
		}
	}
}

// sharedDevices finds devices on which more than one process took a large part of the kernel time.
func sharedDevices(in *kit.Input, out *kit.Output, emitted map[int32]bool) {
	ran := in.KernelStats()
	places, times := ran.Places, make([]int64, len(ran.Places)) // kernel time by place
	onDevice := map[int32]int64{}
	for _, c := range ran.Cells {
		times[c.B] += c.Total
		onDevice[places[c.B].B] += c.Total
	}
	order := lists.Indexes[int](len(places))
	lists.Sort(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(places[a].B, places[b].B), cmp.Compare(times[b], times[a]), cmp.Compare(places[a].A, places[b].A))
	})
	var first *kit.Pair // process and device
	for _, i := range order {
		p := &places[i]
		if !emitted[p.A] || float64(times[i]) < sharedDevice*float64(onDevice[p.B]) {
			continue
		}
		if first != nil && first.B == p.B {
			out.Find("shared_device", []report.MetricRef{kit.Ref("kernel.total_time", "pid", kit.PIDText(in, first.A)),
				kit.Ref("kernel.total_time", "pid", kit.PIDText(in, p.A))},
				"If each process was started with a CUDA_VISIBLE_DEVICES of its own, these are different GPUs that both call themselves by the same number: the export's deviceId is the process's own numbering, and numbers by device mix them.",
				"If they do share it: without MPS the GPU switches between processes and runs one at a time, whatever is free. Start nvidia-cuda-mps-control, partition the GPU (MIG), or give each process its own; look for a leftover server with nvidia-smi.")
			return
		}
		first = p
	}
}

func processTable(in *kit.Input, out *kit.Output, list []procSum, total int64) {
	t := out.Table("processes")
	mapped, _ := attributesKernels(in)
	for _, s := range list {
		devices := lists.Map(s.devices, func(id int32) string { return strconv.Itoa(int(id)) })
		row := []kit.Field{kit.PID(in.Trace.Procs, s.proc), kit.Maybe("share", stat.Ratio(s.kernelNs, total)),
			kit.Int("busy", s.busy), kit.Text("devices", strings.Join(devices, ", "))}
		if s.proc != trace.None {
			p := &in.Trace.Procs[s.proc]
			row = append(row, kit.Put("process_name", report.OrNull(p.Name)), kit.Text("machine", strconv.FormatInt(p.Global>>48, 16)))
		}
		if in.Trace.Tables.Has(trace.RoleKernel) {
			row = append(row, kit.Int("kernel_time", s.kernelNs), kit.Int("kernels", s.kernels))
		}
		if in.Trace.Tables.Has(trace.RoleAPI) {
			row = append(row, kit.Int("launches", s.launches), kit.Int("launch_time", s.launchNs), kit.Int("syncs", s.syncs),
				kit.Int("sync_time", s.syncNs))
		}
		if in.Trace.Tables.Has(trace.RoleNVTX) {
			row = append(row, kit.Int("ranges", s.ranges))
		}
		if mapped {
			row = append(row, kit.Maybe("coverage", coverageOf(in, s.proc).ratio()))
		}
		t.Partial(row...)
	}
	t.Cut(max(in.Options.Top, kit.MaxProcMetrics), "kernel_time", "share", "kernels", "busy", "launches", "launch_time",
		"syncs", "sync_time", "ranges").Add()
}

// kernelsByPid shows the top kernels of each process; kernels of the same name on two devices are two rows.
func kernelsByPid(in *kit.Input, out *kit.Output, procs []procSum, total int64) {
	t := out.Table("kernels_by_pid")
	k := &in.Trace.Kernels
	ran := in.KernelStats()
	places, list := ran.Places, slices.Clone(ran.Cells)
	rank := make([]int, len(in.Trace.Procs)+1)
	for i := range procs {
		rank[orLast(procs[i].proc, len(in.Trace.Procs))] = i
	}
	of := func(e *kit.Crossed) int { return rank[orLast(places[e.B].A, len(in.Trace.Procs))] }
	lists.Sort(list, func(a, b kit.Crossed) int {
		return cmp.Or(cmp.Compare(of(&a), of(&b)), cmp.Compare(b.Total, a.Total), cmp.Compare(b.Count, a.Count),
			cmp.Compare(k.Names[a.A].Name, k.Names[b.A].Name), cmp.Compare(places[a.B].B, places[b.B].B))
	})
	// The rows to keep first; the others only count in the last row.
	var kept, others []*kit.Crossed
	for i, inProc := 0, 0; i < len(list); i++ {
		if inProc++; i == 0 || of(&list[i]) != of(&list[i-1]) {
			inProc = 1
		}
		if inProc <= maxKernelsPerPid && len(kept) < kit.MaxProcMetrics {
			kept = append(kept, &list[i])
		} else {
			others = append(others, &list[i])
		}
	}
	for _, e := range slices.Concat(kept, others) {
		p := &procs[of(e)]
		t.Row(
			kit.PID(in.Trace.Procs, p.proc), kit.Int("pid_total", p.kernelNs),
			kit.Maybe("pid_share", stat.Ratio(p.kernelNs, total)), kit.Text("kernel_name", k.Names[e.A].Name),
			kit.Put("device_id", kit.Known(int64(places[e.B].B))), kit.Int("count", e.Count), kit.Int("total", e.Total),
			kit.Float("mean", float64(e.Total)/float64(e.Count)),
			kit.Maybe("share_of_pid", stat.Ratio(e.Total, p.kernelNs)),
			kit.Maybe("share", stat.Ratio(e.Total, total)))
	}
	t.Cut(len(kept), "count", "total", "share").Add()
}

func syncByPid(in *kit.Input, out *kit.Output) {
	t := out.Table("sync_by_pid")
	api := &in.Trace.API
	calls := kit.NewTally[kit.Pair, kit.Crossed]() // by name and process
	for _, c := range in.CallStats().Cells {
		if !api.Names[c.A].Sync {
			continue
		}
		proc := in.Trace.ProcOf(c.B)
		e := calls.At(kit.Pair{A: c.A, B: proc})
		*e = kit.Crossed{A: c.A, B: proc, Count: e.Count + c.Count, Total: e.Total + c.Total}
	}
	lists.Sort(calls.Values, func(a, b *kit.Crossed) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Count, a.Count),
			cmp.Compare(api.Names[a.A].Name, api.Names[b.A].Name), cmp.Compare(uint32(a.B), uint32(b.B))) // unknown: last
	})
	for _, e := range calls.Values {
		t.Row(
			kit.PID(in.Trace.Procs, e.B), kit.Text("api_name", api.Names[e.A].Name),
			kit.Int("count", e.Count), kit.Int("total", e.Total),
			kit.Float("mean", float64(e.Total)/float64(e.Count)))
	}
	t.Cut(2*in.Options.Top, "count", "total").Add()
}

// rangesByPid is nsys-llm-explainer's nvtx_by_pid: kernel time by innermost range, and beside it the inclusive time.
func rangesByPid(in *kit.Input, out *kit.Output) {
	t := out.Table("nvtx_by_pid")
	mapped, _ := attributesKernels(in)
	totals := totalsOfRanges(in)
	names, list := totals.names, slices.Clone(totals.parts)
	rankRanges(list, names)
	for _, e := range list {
		row := []kit.Field{kit.PID(in.Trace.Procs, e.proc), kit.Text("range_name", names.texts[e.text]),
			kit.Int("count", e.count), kit.Int("wall", e.wall)}
		if mapped {
			row = append(row, kit.Int("gpu", e.gpu), kit.Int("self", e.self), kit.Int("kernels", e.kernels),
				kit.Maybe("coverage", coverageOf(in, e.proc).ratio()))
		}
		t.Partial(row...)
	}
	t.Cut(2*in.Options.Top, "count", "wall", "gpu", "self", "kernels").Add()
}
