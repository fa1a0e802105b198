package host

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// rangesTable is the table of range names; if there are none it is only a header.
func rangesTable(in *kit.Input, out *kit.Output, names *rangeNames, list []rangeTotal, summaries []*report.Summary,
	mapped bool) {
	t := out.Table("nvtx_ranges")
	for _, e := range list {
		row := append(t.Stats(summaries[e.text]), kit.Text("range_name", names.texts[e.text]), kit.Int("count", e.count),
			kit.Int("wall", e.wall), kit.Int("sum", e.sum))
		if mapped {
			row = append(row, kit.Int("gpu", e.gpu), kit.Int("self", e.self), kit.Int("kernels", e.pairs),
				kit.Maybe("self_share", stat.Ratio(e.self, in.NVTX.Total)))
		}
		t.Partial(row...)
	}
	t.Cut(in.Options.Top, "count", "wall", "sum", "gpu", "self", "self_share", "kernels").Add()
}

// rangeInstances writes the longest single ranges, longest first, under their original names.
func rangeInstances(in *kit.Input, out *kit.Output, lo, hi int) {
	r := &in.Trace.Ranges
	t := out.Table("nvtx_instances")
	rows := in.Options.LongestFirst(lo, hi, r.Dur)
	texts, err := in.Trace.RangeText(rows)
	if err != nil {
		texts = make([]string, len(rows))
		for i, at := range rows {
			texts[i] = r.Names[r.Name(at)].Text
		}
		out.Note("The names of single ranges could not be read again from the file; their canonical names are shown instead.")
	}
	for n, i := range rows {
		row := []kit.Field{kit.Text("range_name", texts[n]), kit.Int("start", r.Start(i)), kit.Int("end", r.End(i)),
			kit.Int("duration", r.Dur(i)), kit.Put("open", report.B(r.Open(i)))}
		if th := r.Thread(i); th != trace.None {
			thread := &in.Trace.Threads[th]
			row = append(row, kit.PID(in.Trace.Procs, thread.Proc), kit.Int("tid", thread.TID), kit.Int("thread_id", thread.Global))
		}
		t.Partial(row...)
	}
	t.AttachDetails(hi - lo)
}

// rangesInReport visits the first of some names, as many as the report has room for.
func rangesInReport(names *rangeNames, list []rangeTotal, most int, visit func(e *rangeTotal, name string)) {
	room := kit.Budget{Names: most, Bytes: maxRangeNameBytes}
	for i := range list {
		name := names.texts[list[i].text]
		if !room.Take(name) {
			return
		}
		visit(&list[i], name)
	}
}

// emitGPU emits the GPU time of ranges.
func (a *rangeTotal) emitGPU(out *kit.Output, l report.Labels) {
	fromAttribution(out, a.pairs)
	out.Int("nvtx.gpu_time", l, a.gpu)
	out.Source.Rows = a.kernels
	out.Int("nvtx.gpu_time_self", l, a.self)
}

// emitWall emits the host time of ranges, with a summary of single ones if there is one.
func (a *rangeTotal) emitWall(out *kit.Output, l report.Labels, single *report.Summary) {
	out.From(trace.RoleNVTX, int(a.count), "start", "end", "text", "textId", "globalTid")
	out.Int("nvtx.wall_time", l, a.wall).Summary = single
	out.Int("nvtx.count", l, a.count)
}

// rangeMetrics emits the GPU time of the names with most of it, wall time and count of those with most wall time, and
// both by process.
func rangeMetrics(in *kit.Input, out *kit.Output, totals *rangeTotals, summaries []*report.Summary, mapped bool) {
	names := totals.names
	launched := func(e rangeTotal) bool { return mapped && e.pairs > 0 }
	rangesInReport(names, lists.Filter(totals.list, launched), maxRangeMetrics, func(e *rangeTotal, name string) {
		e.emitGPU(out, kit.Labels("range", name))
	})
	byWall := lists.Filter(totals.list, func(e rangeTotal) bool { return e.count > 0 })
	lists.Sort(byWall, func(a, b rangeTotal) int { return cmp.Compare(b.wall, a.wall) })
	rangesInReport(names, byWall, maxRangeWalls, func(e *rangeTotal, name string) {
		e.emitWall(out, kit.Labels("range", name), summaries[e.text])
	})
	byProc := lists.Filter(totals.parts, func(e rangeTotal) bool { return e.proc != trace.None })
	rankRanges(byProc, names)
	rangesInReport(names, byProc, maxRangePidMetrics, func(e *rangeTotal, name string) {
		l := kit.Labels("pid", kit.PIDText(in, e.proc), "range", name)
		if launched(*e) {
			e.emitGPU(out, l)
		}
		if e.count > 0 {
			e.emitWall(out, l, nil)
		}
	})
}
