package host

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

func processTable(in *kit.Input, out *kit.Output, list []procSum, total int64) {
	t := out.Table("processes")
	mapped, _ := attributesKernels(in)
	var coverage []procCoverage
	if mapped {
		coverage = coverageByProc(in)
	}
	where := func(ok bool, c report.Cell) report.Cell {
		if ok {
			return c
		}
		return report.Null
	}
	kernels, api := in.Has(trace.RoleKernel), in.Has(trace.RoleAPI)
	for i := range list {
		s := &list[i]
		name, machine, covered := report.Null, report.Null, report.Null
		if s.proc != trace.None {
			p := &in.Trace.Procs[s.proc]
			if p.Name != "" {
				name = report.S(p.Name)
			}
			machine = report.S(strconv.FormatInt(p.Global>>48, 16))
		}
		if mapped {
			covered = kit.Cell(coverage[orLast(s.proc, len(in.Trace.Procs))].ratio())
		}
		t.Row(
			kit.Put("pid", pidCell(in, s.proc)), kit.Put("process_name", name), kit.Put("machine", machine),
			kit.Put("kernel_time", where(kernels, report.I(s.kernelNs))),
			kit.Maybe("share", stat.Ratio(s.kernelNs, total)),
			kit.Put("kernels", where(kernels, report.I(s.kernels))), kit.Int("busy", s.busy),
			kit.Text("devices", deviceList(s.devices)), kit.Put("launches", where(api, report.I(s.launches))),
			kit.Put("launch_time", where(api, report.I(s.launchNs))),
			kit.Put("syncs", where(api, report.I(s.syncs))),
			kit.Put("sync_time", where(api, report.I(s.syncNs))),
			kit.Put("ranges", where(in.Has(trace.RoleNVTX), report.I(s.ranges))), kit.Put("coverage", covered))
	}
	t.Cut(max(in.Options.Top, kit.MaxProcMetrics), "kernel_time", "share", "kernels", "busy", "launches", "launch_time",
		"syncs", "sync_time", "ranges").Add()
}

func deviceList(ids []int32) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(int(id))
	}
	return strings.Join(texts, ", ")
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
	slices.SortFunc(list, func(a, b kit.Crossed) int {
		return cmp.Or(cmp.Compare(of(&a), of(&b)), cmp.Compare(b.Total, a.Total), cmp.Compare(b.Count, a.Count),
			cmp.Compare(k.Names[a.A].Name, k.Names[b.A].Name), cmp.Compare(places[a.B].B, places[b.B].B))
	})
	row := func(e *kit.Crossed) {
		p := &procs[of(e)]
		device := report.Null
		if d := places[e.B].B; d >= 0 {
			device = report.I(int64(d))
		}
		t.Row(
			kit.Put("pid", pidCell(in, p.proc)), kit.Int("pid_total", p.kernelNs),
			kit.Maybe("pid_share", stat.Ratio(p.kernelNs, total)), kit.Text("kernel_name", k.Names[e.A].Name),
			kit.Put("device_id", device), kit.Int("count", e.Count), kit.Int("total", e.Total),
			kit.Float("mean", float64(e.Total)/float64(e.Count)),
			kit.Maybe("share_of_pid", stat.Ratio(e.Total, p.kernelNs)),
			kit.Maybe("share", stat.Ratio(e.Total, total)))
	}
	// The rows to keep first; the others only count in the last row.
	isTop := make([]bool, len(list))
	kept := 0
	for i, inProc := 0, 0; i < len(list); i++ {
		if inProc++; i == 0 || of(&list[i]) != of(&list[i-1]) {
			inProc = 1
		}
		if isTop[i] = inProc <= maxKernelsPerPid && kept < kit.MaxProcMetrics; isTop[i] {
			kept++
			row(&list[i])
		}
	}
	for i := range list {
		if !isTop[i] {
			row(&list[i])
		}
	}
	t.Cut(kept, "count", "total", "share").Add()
}

func syncByPid(in *kit.Input, out *kit.Output) {
	t := out.Table("sync_by_pid")
	api := &in.Trace.API
	index := kit.NewNumbering[kit.Pair]() // name and process
	var list []kit.Crossed
	for _, c := range in.CallStats().Cells {
		if !api.Names[c.A].Sync {
			continue
		}
		at := index.Of(kit.Pair{A: c.A, B: int32(orLast(in.ProcOf(c.B), len(in.Trace.Procs)))})
		if int(at) == len(list) {
			list = append(list, kit.Crossed{A: c.A, B: index.Keys[at].B})
		}
		list[at].Count += c.Count
		list[at].Total += c.Total
	}
	slices.SortFunc(list, func(a, b kit.Crossed) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Count, a.Count),
			cmp.Compare(api.Names[a.A].Name, api.Names[b.A].Name), cmp.Compare(a.B, b.B))
	})
	for i := range list {
		e := &list[i]
		proc := e.B
		if int(proc) == len(in.Trace.Procs) {
			proc = trace.None
		}
		t.Row(
			kit.Put("pid", pidCell(in, proc)), kit.Text("api_name", api.Names[e.A].Name),
			kit.Int("count", e.Count), kit.Int("total", e.Total),
			kit.Float("mean", float64(e.Total)/float64(e.Count)))
	}
	t.Cut(2*in.Options.Top, "count", "total").Add()
}

// rangesByPid is nsys-llm-explainer's nvtx_by_pid: kernel time by innermost range, and beside it the inclusive time.
func rangesByPid(in *kit.Input, out *kit.Output) {
	t := out.Table("nvtx_by_pid")
	mapped, _ := attributesKernels(in)
	var coverage []procCoverage
	if mapped {
		coverage = coverageByProc(in)
	}
	totals := totalsOfRanges(in)
	names, list := totals.names, slices.Clone(totals.parts)
	rankRanges(list, names)
	for i := range list {
		e := &list[i]
		gpu, self, kernels, covered := report.Null, report.Null, report.Null, report.Null
		if mapped {
			gpu, self, kernels = report.I(e.gpu), report.I(e.self), report.I(e.kernels)
			covered = kit.Cell(coverage[orLast(e.proc, len(in.Trace.Procs))].ratio())
		}
		t.Row(
			kit.Put("pid", pidCell(in, e.proc)), kit.Text("range_name", names.texts[e.text]),
			kit.Int("count", e.count), kit.Int("wall", e.wall), kit.Put("gpu", gpu), kit.Put("self", self),
			kit.Put("kernels", kernels), kit.Put("coverage", covered))
	}
	sums := []string{"count", "wall"}
	if mapped {
		sums = append(sums, "gpu", "self", "kernels")
	}
	t.Cut(2*in.Options.Top, sums...).Add()
}
