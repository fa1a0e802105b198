package host

import (
	"cmp"
	"slices"

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

func rangeGPUMetrics(out *kit.Output, names *rangeNames, list []rangeTotal) {
	fromAttribution(out, 0)
	room := kit.Budget{Names: maxRangeMetrics, Bytes: maxRangeNameBytes}
	for _, e := range list {
		if e.pairs == 0 {
			continue
		}
		text := names.texts[e.text]
		if !room.Take(text) {
			return
		}
		l := kit.Labels("range", text)
		out.Source.Rows = e.pairs
		out.Int("nvtx.gpu_time", l, e.gpu)
		out.Source.Rows = e.kernels
		out.Int("nvtx.gpu_time_self", l, e.self)
	}
}

// rangeWallMetrics emits wall time and count of the names with the most wall time.
func rangeWallMetrics(out *kit.Output, names *rangeNames, list []rangeTotal, summaries []*report.Summary) {
	byWall := slices.Clone(list)
	lists.Sort(byWall, func(a, b rangeTotal) int { return cmp.Compare(b.wall, a.wall) })
	out.From(trace.RoleNVTX, 0, "start", "end", "text", "textId", "globalTid")
	room := kit.Budget{Names: maxRangeWalls, Bytes: maxRangeNameBytes}
	for _, e := range byWall {
		if e.count == 0 {
			continue
		}
		text := names.texts[e.text]
		if !room.Take(text) {
			return
		}
		l := kit.Labels("range", text)
		out.Source.Rows = e.count
		out.Int("nvtx.wall_time", l, e.wall).Summary = summaries[e.text]
		out.Int("nvtx.count", l, e.count)
	}
}

func rangePidMetrics(in *kit.Input, out *kit.Output, names *rangeNames, parts []rangeTotal, mapped bool) {
	list := slices.Clone(parts)
	rankRanges(list, names)
	room := kit.Budget{Names: maxRangePidMetrics, Bytes: maxRangeNameBytes}
	for _, e := range list {
		if e.proc == trace.None {
			continue
		}
		text := names.texts[e.text]
		if !room.Take(text) {
			return
		}
		l := kit.Labels("pid", kit.PIDText(in, e.proc), "range", text)
		if mapped && e.pairs > 0 {
			fromAttribution(out, e.pairs)
			out.Int("nvtx.gpu_time", l, e.gpu)
			out.Source.Rows = e.kernels
			out.Int("nvtx.gpu_time_self", l, e.self)
		}
		if e.count > 0 {
			out.From(trace.RoleNVTX, int(e.count), "start", "end", "text", "textId", "globalTid")
			out.Int("nvtx.wall_time", l, e.wall)
			out.Int("nvtx.count", l, e.count)
		}
	}
}
