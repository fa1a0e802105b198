package section

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

func (in *Input) processTable(out *Output, list []procSum, total int64) {
	t := out.Table("processes")
	mapped, _ := in.attributesKernels()
	var coverage []procCoverage
	if mapped {
		coverage = in.coverageByProc()
	}
	where := func(ok bool, c report.Cell) report.Cell {
		if ok {
			return c
		}
		return report.Null
	}
	kernels, api := in.has(trace.RoleKernel), in.has(trace.RoleAPI)
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
			covered = cell(coverage[orLast(s.proc, len(in.Trace.Procs))].ratio())
		}
		t.Row(in.pidCell(s.proc), name, machine, where(kernels, report.I(s.kernelNs)), cell(stat.Ratio(s.kernelNs, total)), where(kernels, report.I(s.kernels)),
			report.I(s.busy), report.S(deviceList(s.devices)), where(api, report.I(s.launches)), where(api, report.I(s.launchNs)),
			where(api, report.I(s.syncs)), where(api, report.I(s.syncNs)), where(in.has(trace.RoleNVTX), report.I(s.ranges)), covered)
	}
	t.Cut(max(in.Options.Top, maxProcMetrics), "kernel_time", "share", "kernels", "busy", "launches", "launch_time", "syncs", "sync_time", "ranges").Add()
}

func deviceList(ids []int32) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(int(id))
	}
	return strings.Join(texts, ", ")
}

// crossed is a count and a total of events by two keys.
type crossed struct {
	a, b         int32
	count, total int64
}

// kernelsByPid shows the top kernels of each process; kernels of the same name on two devices are two rows.
func (in *Input) kernelsByPid(out *Output, procs []procSum, total int64) {
	t := out.Table("kernels_by_pid")
	k := &in.Trace.Kernels
	ran := in.kernelStats()
	places, list := ran.places, slices.Clone(ran.cells)
	rank := make([]int, len(in.Trace.Procs)+1)
	for i := range procs {
		rank[orLast(procs[i].proc, len(in.Trace.Procs))] = i
	}
	of := func(e *crossed) int { return rank[orLast(places[e.b].a, len(in.Trace.Procs))] }
	slices.SortFunc(list, func(a, b crossed) int {
		return cmp.Or(cmp.Compare(of(&a), of(&b)), cmp.Compare(b.total, a.total), cmp.Compare(b.count, a.count),
			cmp.Compare(k.Names[a.a].Name, k.Names[b.a].Name), cmp.Compare(places[a.b].b, places[b.b].b))
	})
	row := func(e *crossed) {
		p := &procs[of(e)]
		device := report.Null
		if d := places[e.b].b; d >= 0 {
			device = report.I(int64(d))
		}
		t.Row(in.pidCell(p.proc), report.I(p.kernelNs), cell(stat.Ratio(p.kernelNs, total)), report.S(k.Names[e.a].Name), device, report.I(e.count), report.I(e.total),
			report.F(float64(e.total)/float64(e.count)), cell(stat.Ratio(e.total, p.kernelNs)), cell(stat.Ratio(e.total, total)))
	}
	// The rows to keep first, what only counts for the others row behind them.
	isTop := make([]bool, len(list))
	kept := 0
	for i, inProc := 0, 0; i < len(list); i++ {
		if inProc++; i == 0 || of(&list[i]) != of(&list[i-1]) {
			inProc = 1
		}
		if isTop[i] = inProc <= maxKernelsPerPid && kept < maxProcMetrics; isTop[i] {
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

func (in *Input) syncByPid(out *Output) {
	t := out.Table("sync_by_pid")
	api := &in.Trace.API
	index := newPairs() // name and process
	var list []crossed
	for _, c := range in.callStats().cells {
		if !api.Names[c.a].Sync {
			continue
		}
		at := index.of(c.a, int32(orLast(in.procOf(c.b), len(in.Trace.Procs))))
		if int(at) == len(list) {
			list = append(list, crossed{a: c.a, b: index.list[at].b})
		}
		list[at].count += c.count
		list[at].total += c.total
	}
	slices.SortFunc(list, func(a, b crossed) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(b.count, a.count), cmp.Compare(api.Names[a.a].Name, api.Names[b.a].Name), cmp.Compare(a.b, b.b))
	})
	for i := range list {
		e := &list[i]
		proc := e.b
		if int(proc) == len(in.Trace.Procs) {
			proc = trace.None
		}
		t.Row(in.pidCell(proc), report.S(api.Names[e.a].Name), report.I(e.count), report.I(e.total), report.F(float64(e.total)/float64(e.count)))
	}
	t.Cut(2*in.Options.Top, "count", "total").Add()
}

// rangesByPid is nsys-llm-explainer's nvtx_by_pid: kernel time by innermost range, and beside it the inclusive one.
func (in *Input) rangesByPid(out *Output) {
	t := out.Table("nvtx_by_pid")
	mapped, _ := in.attributesKernels()
	var coverage []procCoverage
	if mapped {
		coverage = in.coverageByProc()
	}
	totals := in.rangeTotals()
	names, list := totals.names, slices.Clone(totals.parts)
	rankRanges(list, names)
	for i := range list {
		e := &list[i]
		gpu, self, kernels, covered := report.Null, report.Null, report.Null, report.Null
		if mapped {
			gpu, self, kernels = report.I(e.gpu), report.I(e.self), report.I(e.kernels)
			covered = cell(coverage[orLast(e.proc, len(in.Trace.Procs))].ratio())
		}
		t.Row(in.pidCell(e.proc), report.S(names.texts[e.text]), report.I(e.count), report.I(e.wall), gpu, self, kernels, covered)
	}
	sums := []string{"count", "wall"}
	if mapped {
		sums = append(sums, "gpu", "self", "kernels")
	}
	t.Cut(2*in.Options.Top, sums...).Add()
}
