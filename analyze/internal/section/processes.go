package section

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var processesSection = Section{
	ID: "processes", Title: "Processes", Rank: 160,
	Derivation: "Every number of the other sections by process. A process is the whole upper part of globalPid " +
		"(virtual machine, hardware and pid); its kernels are the rows that carry it, its calls and ranges those " +
		"of its threads. Kernels and API calls never cross processes, also where their correlation ids are equal.",
	Metrics: []report.MetricDef{
		{
			ID: "kernel.total_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Stats: true, Labels: []string{"pid"},
			Meaning: "sum of the kernel durations of one process",
		},
		{
			ID: "kernel.count", Unit: report.Count, Better: report.None, Assume: report.Exact,
			Scale: report.Total, Labels: []string{"pid"},
			Meaning: "number of kernels of one process",
		},
		{
			ID: "process.busy_time", Unit: report.Nanoseconds, Better: report.None, Assume: report.Noisy,
			Scale: report.Total, Labels: []string{"pid"},
			Meaning: "time in which any GPU work of the process ran: a union per device, devices added up",
		},
	},
	Tables: []report.Table{
		{ID: "processes", Title: "Processes", File: "processes.csv", Columns: []report.Column{
			idCol("pid", "PID"),
			nameCol("process_name", "Process"),
			wide(textCol("machine", "Machine")),
			nsCol("kernel_time", "Kernel time", "total_kernel_time_ns", "total_kernel_time_ms"),
			ratioCol("share", "Share", "pct_of_total_kernel_time"),
			countCsv("kernels", "Kernels", "kernel_count"),
			nsCol("busy", "GPU busy", "gpu_busy_ms"),
			textCol("devices", "GPUs"),
			countCsv("launches", "Launches", "launch_count"),
			nsCol("launch_time", "In launch calls", "launch_api_time_ms"),
			countCsv("syncs", "Syncs", "sync_count"),
			nsCol("sync_time", "In sync calls", "sync_total_time_ms"),
			countCsv("ranges", "NVTX ranges", "nvtx_count"),
			ratioCol("coverage", "NVTX coverage", "pid_attribution_coverage_pct"),
		}},
		{ID: "kernels_by_pid", Title: "Top kernels per process", File: "kernels_by_pid.csv", Columns: []report.Column{
			idCol("pid", "PID"),
			wide(nsCol("pid_total", "Process total", "pid_total_kernel_time_ms")),
			wide(ratioCol("pid_share", "Process share", "pid_pct_of_total_kernel_time")),
			nameCol("kernel_name", "Kernel"),
			idCol("device_id", "GPU"),
			countCsv("count", "Calls", "call_count"),
			nsCol("total", "Total", "total_time_ns", "total_time_ms"),
			meanCol("mean", "Mean", "avg_duration_us"),
			ratioCol("share_of_pid", "Share of process", "pct_of_pid_kernel_time"),
			ratioCol("share", "Share", "pct_of_total_kernel_time"),
		}},
		{ID: "sync_by_pid", Title: "Blocking synchronisation per process", File: "sync_by_pid.csv", Columns: []report.Column{
			idCol("pid", "PID"),
			nameCol("api_name", "API"),
			countCsv("count", "Calls", "call_count"),
			nsCol("total", "Total", "total_time_ns", "total_time_ms"),
			meanCol("mean", "Mean", "avg_duration_us"),
		}},
		{ID: "nvtx_by_pid", Title: "NVTX ranges per process", File: "nvtx_by_pid.csv", Columns: []report.Column{
			idCol("pid", "PID"),
			nameCol("range_name", "Range"),
			countCsv("count", "Count", "nvtx_count"),
			nsCol("wall", "Wall time", "nvtx_total_time_ms"),
			nsCol("gpu", "GPU time", "inclusive_kernel_time_ms"),
			nsCol("self", "Self GPU time", "attributed_kernel_time_ms"),
			countCsv("kernels", "Kernels (self)", "attributed_kernel_count"),
			wide(ratioCol("coverage", "Coverage of process", "pid_attribution_coverage_pct")),
		}},
	},
	Run: processes,
}

const (
	maxProcMetrics   = 100
	maxKernelsPerPid = 10   // rows of one process in kernels_by_pid, as in nsys-llm-explainer
	sharedDevice     = 0.05 // of a device's kernel time, from which a process counts as sharing it
)

// procSum is what is known of one process.
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

func processes(in *Input, out *Output) {
	list := in.procSums()
	var total int64
	for i := range list {
		total += list[i].kernelNs
	}
	emitted := map[int32]bool{}
	for i := range list {
		s := &list[i]
		if s.proc == trace.None || i >= maxProcMetrics {
			continue
		}
		l := Labels("pid", in.pid(s.proc))
		if s.kernels > 0 {
			out.From(trace.RoleKernel, int(s.kernels), "start", "end", "globalPid")
			out.Int("kernel.total_time", l, s.kernelNs)
			out.Int("kernel.count", l, s.kernels)
			emitted[s.proc] = true
		}
		if s.busy > 0 {
			out.From(trace.RoleKernel, int(s.kernels), "start", "end", "globalPid", "deviceId")
			for _, r := range []trace.Role{trace.RoleMemcpy, trace.RoleMemset, trace.RoleGraph} {
				if in.has(r) {
					out.With(r)
				}
			}
			out.Int("process.busy_time", l, s.busy)
		}
	}
	in.processTable(out, list, total)
	in.kernelsByPid(out, list, total)
	in.syncByPid(out)
	in.rangesByPid(out)
	switch {
	case len(list) == 0:
		out.Status(report.NotApplicable, "no process did anything that the capture records")
	case list[len(list)-1].proc == trace.None && list[len(list)-1].kernels > 0:
		reason := "some kernels name no process; they are in a row without pid"
		if !in.Trace.Has.KernelPID {
			reason = "the export does not say which process a kernel belongs to (column globalPid of " + in.table(trace.RoleKernel) + ")"
		}
		out.Status(report.Partial, reason)
	}
	in.sharedDevices(out, emitted)
}

// procSums lists the processes that did something, by kernel time, then busy time, then API calls; the unknown process is last.
func (in *Input) procSums() []procSum { return in.shared.procSums.get(in.addProcs) }

func (in *Input) addProcs() []procSum {
	t := in.Trace
	all := make([]procSum, len(t.Procs)+1)
	for p := range all {
		all[p].proc = int32(p)
	}
	unknown := len(t.Procs)
	all[unknown].proc = trace.None
	ran := in.kernelStats()
	for _, c := range ran.cells {
		s := &all[orLast(ran.places[c.b].a, unknown)]
		s.kernels += c.count
		s.kernelNs += c.total
	}
	in.procBusy(all)
	api := &t.API
	for _, c := range in.callStats().cells {
		s := &all[orLast(in.procOf(c.b), unknown)]
		switch n := &api.Names[c.a]; {
		case n.Launch:
			s.launches += c.count
			s.launchNs += c.total
		case n.Sync:
			s.syncs += c.count
			s.syncNs += c.total
		default:
			s.other += c.count
		}
	}
	for _, p := range in.rangeTotals().parts {
		all[orLast(p.proc, unknown)].ranges += p.count
	}
	list := slices.DeleteFunc(all, func(s procSum) bool { return s.empty() })
	slices.SortFunc(list, func(a, b procSum) int {
		return cmp.Or(cmp.Compare(min(0, b.proc), min(0, a.proc)), cmp.Compare(b.kernelNs, a.kernelNs), cmp.Compare(b.busy, a.busy),
			cmp.Compare(b.launches+b.syncs+b.other, a.launches+a.syncs+a.other), cmp.Compare(a.proc, b.proc))
	})
	return list
}

// procOf is the process of a thread, or trace.None.
func (in *Input) procOf(thread int32) int32 {
	if thread == trace.None {
		return trace.None
	}
	return in.Trace.Threads[thread].Proc
}

// procBusy adds up, device by device, the union of each process's work, and notes which devices it used.
func (in *Input) procBusy(all []procSum) {
	reached := make([]int64, len(all))
	for d := range in.Timeline.Devices {
		dev := &in.Timeline.Devices[d]
		for p := range reached {
			reached[p] = in.Span.Start
		}
		for i := range dev.Len() {
			p := orLast(dev.Proc(i), len(all)-1)
			s := &all[p]
			if n := len(s.devices); n == 0 || s.devices[n-1] != dev.ID {
				s.devices = append(s.devices, dev.ID)
			}
			if dev.Kind(i) != attrib.KernelWork {
				s.other++
			}
			if end := min(dev.End(i), in.Span.End); end > reached[p] {
				s.busy += end - max(dev.Start(i), reached[p])
				reached[p] = end
			}
		}
	}
}

// pidCell is the printed pid: two processes on different machines can share one, and then both have a row.
func (in *Input) pidCell(proc int32) report.Cell {
	if proc == trace.None {
		return report.Null
	}
	return report.I(in.Trace.Procs[proc].PID)
}

// sharedDevices finds devices on which more than one process did a good part of the kernel time.
func (in *Input) sharedDevices(out *Output, emitted map[int32]bool) {
	ran := in.kernelStats()
	places := ran.places
	list := make([]crossed, len(places))
	for i := range list {
		list[i].b = int32(i)
	}
	for _, c := range ran.cells {
		list[c.b].count += c.count
		list[c.b].total += c.total
	}
	onDevice := map[int32]int64{}
	for i := range list {
		onDevice[places[list[i].b].b] += list[i].total
	}
	slices.SortFunc(list, func(a, b crossed) int {
		return cmp.Or(cmp.Compare(places[a.b].b, places[b.b].b), cmp.Compare(b.total, a.total), cmp.Compare(places[a.b].a, places[b.b].a))
	})
	var first *pair // process and device
	for i := range list {
		p := &places[list[i].b]
		if !emitted[p.a] || float64(list[i].total) < sharedDevice*float64(onDevice[p.b]) {
			continue
		}
		if first != nil && first.b == p.b {
			out.Find("shared_device", report.Low, "Several processes run kernels on the same device",
				[]report.MetricRef{Ref("kernel.total_time", "pid", in.pid(first.a)), Ref("kernel.total_time", "pid", in.pid(p.a))},
				"If each process was started with a CUDA_VISIBLE_DEVICES of its own, these are different GPUs that both call themselves by the same number: the export's deviceId is the process's own numbering, and numbers by device mix them.",
				"If they do share it: without MPS the GPU switches between processes and runs one at a time, whatever is free. Start nvidia-cuda-mps-control, partition the GPU (MIG), or give each process its own; look for a leftover server with nvidia-smi.")
			return
		}
		first = p
	}
}
