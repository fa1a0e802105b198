package host

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// rangesTable is the table of range names; if there are none it is only a header.
func rangesTable(in *kit.Input, out *kit.Output, names *rangeNames, list []rangeTotal, summaries []*report.Summary,
	mapped bool) {
	t := out.Table("nvtx_ranges")
	for i := range list {
		e := &list[i]
		gpu, self, share, kernels := report.Null, report.Null, report.Null, report.Null
		if mapped {
			gpu, self, kernels = report.I(e.gpu), report.I(e.self), report.I(e.pairs)
			share = kit.Cell(stat.Ratio(e.self, in.NVTX.Total))
		}
		mean, least, p50, most := report.Null, report.Null, report.Null, report.Null
		if s := summaries[e.text]; s != nil {
			mean, least, p50, most = report.F(s.Mean), report.I(int64(s.Min)), report.F(s.P50), report.I(int64(s.Max))
		}
		t.Row(
			kit.Text("range_name", names.texts[e.text]), kit.Int("count", e.count), kit.Put("gpu", gpu),
			kit.Put("self", self), kit.Put("self_share", share), kit.Put("kernels", kernels),
			kit.Int("wall", e.wall), kit.Int("sum", e.sum), kit.Put("mean", mean), kit.Put("min", least),
			kit.Put("p50", p50), kit.Put("max", most))
	}
	sums := []string{"count", "wall", "sum"}
	if mapped {
		sums = append(sums, "gpu", "self", "self_share", "kernels")
	}
	t.Cut(in.Options.Top, sums...).Add()
}

// rangeInstances writes the longest single ranges, longest first, under their original names.
func rangeInstances(in *kit.Input, out *kit.Output, lo, hi int) {
	r := &in.Trace.Ranges
	t := out.Table("nvtx_instances")
	rows := in.LongestFirst(lo, hi, r.Dur)
	texts, err := in.Trace.RangeText(rows)
	if err != nil {
		texts = make([]string, len(rows))
		for i, at := range rows {
			texts[i] = r.Names[r.Name(at)].Text
		}
		out.Note("The names of single ranges could not be read again from the file; their canonical names are shown instead.")
	}
	for n, i := range rows {
		pid, tid, global := report.Null, report.Null, report.Null
		if th := r.Thread(i); th != trace.None {
			thread := &in.Trace.Threads[th]
			pid, tid, global = report.I(in.Trace.Procs[thread.Proc].PID), report.I(thread.TID), report.I(thread.Global)
		}
		t.Row(
			kit.Text("range_name", texts[n]), kit.Int("start", r.Start(i)), kit.Int("end", r.End(i)),
			kit.Int("duration", r.Dur(i)), kit.Put("pid", pid), kit.Put("tid", tid),
			kit.Put("thread_id", global), kit.Put("open", report.B(r.Open(i))))
	}
	t.AttachDetails(hi - lo)
}

func rangeGPUMetrics(in *kit.Input, out *kit.Output, names *rangeNames, list []rangeTotal) {
	fromAttribution(in, out, 0)
	bytes, shown := 0, 0
	for i := range list {
		e := &list[i]
		if e.pairs == 0 {
			continue
		}
		text := names.texts[e.text]
		if bytes, shown = bytes+len(text), shown+1; bytes > maxRangeNameBytes || shown > maxRangeMetrics {
			return
		}
		l := kit.Labels("range", text)
		out.Rows(e.pairs)
		out.Int("nvtx.gpu_time", l, e.gpu)
		out.Rows(e.kernels)
		out.Int("nvtx.gpu_time_self", l, e.self)
	}
}

// rangeWallMetrics emits wall time and count of the names with the most wall time.
func rangeWallMetrics(in *kit.Input, out *kit.Output, names *rangeNames, list []rangeTotal,
	summaries []*report.Summary) {
	byWall := slices.Clone(list)
	slices.SortStableFunc(byWall, func(a, b rangeTotal) int { return cmp.Compare(b.wall, a.wall) })
	out.From(trace.RoleNVTX, 0, "start", "end", "text", "textId", "globalTid")
	bytes, shown := 0, 0
	for i := range byWall {
		e := &byWall[i]
		if e.count == 0 {
			continue
		}
		text := names.texts[e.text]
		if bytes, shown = bytes+len(text), shown+1; bytes > maxRangeNameBytes || shown > maxRangeWalls {
			return
		}
		l := kit.Labels("range", text)
		out.Rows(e.count)
		m := out.Int("nvtx.wall_time", l, e.wall)
		m.Summary = summaries[e.text]
		out.Int("nvtx.count", l, e.count)
	}
}

func rangePidMetrics(in *kit.Input, out *kit.Output, names *rangeNames, parts []rangeTotal, mapped bool) {
	list := slices.Clone(parts)
	rankRanges(list, names)
	bytes, shown := 0, 0
	for i := range list {
		e := &list[i]
		if e.proc == trace.None {
			continue
		}
		text := names.texts[e.text]
		if bytes, shown = bytes+len(text), shown+1; bytes > maxRangeNameBytes || shown > maxRangePidMetrics {
			return
		}
		l := kit.Labels("pid", pidText(in, e.proc), "range", text)
		if mapped && e.pairs > 0 {
			fromAttribution(in, out, e.pairs)
			out.Int("nvtx.gpu_time", l, e.gpu)
			out.Rows(e.kernels)
			out.Int("nvtx.gpu_time_self", l, e.self)
		}
		if e.count > 0 {
			out.From(trace.RoleNVTX, int(e.count), "start", "end", "text", "textId", "globalTid")
			out.Int("nvtx.wall_time", l, e.wall)
			out.Int("nvtx.count", l, e.count)
		}
	}
}
