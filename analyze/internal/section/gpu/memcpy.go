package gpu

import (
	"cmp"
	"math"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Memcpy = kit.Section{
	ID: "memcpy", Group: report.GroupMemory, Steady: true, Title: "Copies and memsets",
	Derivation: "Copy and memset rows that start in the window, by direction and by the kind of memory on the " +
		"host's side (device to device: the side that is not plain device memory). Throughput is all bytes over " +
		"all time of the group, not a mean of rates. API calls are joined to copies by process and correlation " +
		"id.",
	Findings: []kit.FindingDef{
		{ID: "tiny_copies", Title: "Many tiny copies between host and device"},
		{ID: "async_pageable", Inside: true, Title: "Asynchronous copies use pageable memory"},
		{ID: "sync_copy", Inside: true, Title: "Synchronous copies block the host"},
		{ID: "sync_memset", Title: "Synchronous memsets of host-visible memory block the host"},
		{ID: "read_backs", Title: "Values are read back from the GPU one by one"},
	},
	Metrics: []report.MetricDef{
		kit.TotalTime("memcpy.time", report.Lower, report.Sum.Counting("memcpy"), "sum of copy durations on the GPU; "+
			"the summary is over copies").Summarised().By("", "direction", "kind", "direction,kind"),
		report.Define("memcpy.bytes", report.Bytes, report.Lower, report.Exact, report.Total, report.Sum,
			"bytes copied, counted once; the summary is over copies").
			Summarised().By("", "direction", "kind", "direction,kind"),
		kit.ExactCount("memcpy.count", report.Lower, report.Sum,
			"copies").By("", "direction", "kind", "direction,kind").Quoted(),
		kit.Rate("memcpy.throughput", report.Higher, report.RatioOf("memcpy.bytes", "memcpy.time"),
			"bytes per second: bytes copied over the sum of copy durations").By("direction", "kind", "direction,kind"),
		kit.ExactCount("memcpy.tiny_count", report.Lower, report.Sum,
			"copies between host and device of at most 4096 bytes, whose cost is latency").By("", "direction").Quoted(),
		kit.ExactCount("memcpy.read_back_count", report.Lower, report.Sum, "calls of the judged steps (else of the "+
			"window) that copy at most 64 bytes from the device while it is idle"),
		kit.TotalTime("memcpy.read_back_idle", report.Lower, report.Sum,
			"idle time of the judged device that these calls lead to: in them and in those that wait for them, and "+
				"after them until the next launch, for at most as long as they waited"),
		report.Define("unit.read_back_count", report.Count, report.Lower, report.Exact, report.PerUnit, report.OfStep,
			"memcpy.read_back_count by judged step"),
		kit.UnitTime("unit.read_back_idle", report.Lower, report.OfStep, "memcpy.read_back_idle by judged step"),
		kit.TotalTime("memcpy.sync_time", report.Lower, report.Sum.Counting("api", ""),
			"time spent inside synchronous copy calls (cudaMemcpy*, cuMemcpy* without Async), summed over threads; "+
				"the summary is over calls").Summarised().By("", "api"),
		kit.ExactCount("memcpy.sync_count", report.Lower, report.Sum, "synchronous copy calls").By("", "api"),
		kit.TotalTime("memcpy.rule_time", report.Lower, report.Sum, "time spent inside copy and memset calls that one "+
			"of nsys's expert rules marks: async_pageable, sync_copy, sync_memset").By("rule").Quoted(),
		kit.ExactCount("memcpy.rule_count", report.Lower, report.Sum, "copy and memset calls that one of nsys's "+
			"expert rules marks: async_pageable, sync_copy, sync_memset").By("rule").Quoted(),
		kit.TotalTime("memset.time", report.Lower, report.Sum,
			"sum of memset durations on the GPU; the summary is over memsets").Summarised().By("", "kind"),
		report.Define("memset.bytes", report.Bytes, report.Lower, report.Exact, report.Total, report.Sum,
			"bytes set; the summary is over memsets").Summarised().By("", "kind"),
		kit.ExactCount("memset.count", report.Lower, report.Sum, "memsets").By("", "kind"),
	},
	Tables: []report.Table{
		{ID: "memcpy", Title: "Copies by direction and memory", File: "memcpy.csv",
			Columns: amountColumns(kit.TextCol("direction", "Direction").Merged(report.Key), kit.TextCol("kind", "Memory").Merged(report.Key))},
		{ID: "memset", Title: "Memsets by memory", File: "memset.csv",
			Columns: amountColumns(kit.TextCol("kind", "Memory").Merged(report.Key))},
		{ID: "sync_copies", Title: "Synchronous copy calls", File: "sync_copies.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("api_name", "API"),
			kit.TextCol("direction", "Direction"),
			kit.TextCol("kind", "Memory"),
			kit.CountCol("count", "Calls", "call_count"),
			kit.NsCol("total", "Call time", "total_time_ns", "total_time_ms"),
			kit.MeanCol("mean", "Mean", "avg_duration_us"),
			kit.NsCol("max", "Max", "max_duration_us"),
			kit.NsCol("gpu", "Copy time", "gpu_time_ms"),
			kit.BytesCol("bytes", "Bytes"),
		}},
		{ID: "memcpy_stats", Title: "Copies", File: "memcpy_stats.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NsCol("duration", "Duration", "duration_us"),
			kit.BytesCol("bytes", "Bytes"),
			bandwidthCol("bandwidth", "Bandwidth", "bandwidth_gbps"),
			kit.TextCol("direction", "Direction"),
			kit.TextCol("kind", "Memory"),
			kit.MomentCol("start", "Start", "start_ns"),
			kit.IDCol("device_id", "GPU"),
		}},
		{ID: "copy_rules", Title: "Copies and memsets that hold up the host", File: "copy_rules.csv", Merge: report.Leave,
			Columns: []report.Column{
				kit.TextCol("rule", "Rule"),
				kit.NameCol("api_name", "API"),
				kit.TextCol("direction", "Direction"),
				kit.TextCol("kind", "Memory"),
				kit.Wide(kit.IDCol("device_id", "GPU")),
				kit.NameCol("range_name", "Range"),
				kit.Wide(kit.NameCol("phase", "Phase")),
				kit.CountCol("count", "Calls", "call_count"),
				kit.NsCol("call", "Call time", "api_time_ms"),
				kit.Wide(kit.NsCol("longest", "Longest call", "max_api_time_us")),
				kit.NsCol("gpu", "GPU time", "gpu_time_ms"),
				kit.BytesCol("bytes", "Bytes"),
			}},
	},
	Run: memcpy,
}

// tinyCopy is the size in bytes up to which a copy between host and device is all latency.
const tinyCopy = 4096

// tinyCopies is the number in the window from which they are a finding, if they are half of all copies in their
// direction.
const tinyCopies = 100

func memcpy(in *kit.Input, out *kit.Output) {
	c, m := &in.Trace.Copies, &in.Trace.Sets
	lo, hi := c.Starting(in.Span.Start, in.Span.End)
	mlo, mhi := m.Starting(in.Span.Start, in.Span.End)
	hasCopies, hasSets := in.Trace.Tables.Has(trace.RoleMemcpy), in.Trace.Tables.Has(trace.RoleMemset)
	if hasCopies {
		copyGroups(in, out, lo, hi)
	}
	if hasSets {
		setGroups(in, out, mlo, mhi)
	}
	calls := in.CallStats().InWindow(func(n *trace.APIName) bool { return n.SyncCopy || n.AsyncCopy || n.Memset })
	if in.Trace.Tables.Has(trace.RoleAPI) {
		syncCopies(in, out)
		if hasCopies || hasSets {
			copyRules(in, out, lo, hi, mlo, mhi)
		}
	}
	if hasCopies {
		copyDetails(in, out, lo, hi)
		tinyFindings(in, out, lo, hi)
		readBacks(in, out)
	}
	switch {
	case !hasCopies && !hasSets && calls > 0:
		out.Status(report.Unavailable,
			"the capture has copy or memset calls but no copies (table "+in.Trace.Tables.Name(trace.RoleMemcpy)+"): GPU activity was not captured")
	case !hasCopies && !hasSets && in.Trace.Tables.Has(trace.RoleAPI):
		out.Status(report.NotApplicable, "the capture has no copies and no memsets, and no call that asks for one")
	case !hasCopies && !hasSets:
		out.Status(report.Unavailable, in.Lack(trace.RoleMemcpy))
	case hi == lo && mhi == mlo:
		out.Status(report.NotApplicable, "no copy or memset starts in the window")
	case in.Trace.Graphs.Len() > 0:
		out.Status(report.Partial, "CUDA graphs were traced as a whole (--cuda-graph-trace=graph): copies and memsets inside them are not counted")
	case hasCopies && !in.Trace.Has.CopyKinds:
		out.Status(report.Partial, "this export does not say what kind of memory copies read and write: pageable and pinned cannot be told apart")
	}
	if hasCopies {
		out.Note("A copy within a device reads and writes: its memory traffic is twice its bytes.")
	}
}

// amount sums up one group of copies or memsets.
type amount struct {
	rows  int
	total int64
	bytes int64
	time  *report.Summary
	size  *report.Summary
}

func (a *amount) throughput() *float64 { return bytesPerSecond(float64(a.bytes), a.total) }

// bytesPerSecond is nil if the time, in ns, is 0, or the bytes are not a number.
func bytesPerSecond(bytes float64, time int64) *float64 {
	rate := stat.Ratio(bytes, time)
	if rate == nil || math.IsNaN(*rate) {
		return nil
	}
	return new(*rate * 1e9)
}

// amounts are the durations and sizes of copies or memsets by cell, a small number.
type amounts struct{ times, sizes *kit.Groups }

// gatherAmounts collects the rows lo <= i < hi by cell; the number of cells is known.
func gatherAmounts(memory *spill.Arena, cells, lo, hi int, cell func(i int) int32,
	dur, size func(i int) int64) amounts {
	return amounts{kit.Gather(memory, cells, lo, hi, cell, dur).Sort(),
		kit.Gather(memory, cells, lo, hi, cell, size).Sort()}
}

func (x *amounts) free() {
	x.times.Free()
	x.sizes.Free()
}

// by sums up the cells of each of some groups.
func (x *amounts) by(groups int, group func(cell int) int) []amount {
	durs, bytes := make([]stat.Merged, groups), make([]stat.Merged, groups)
	for cell := range x.times.Keys() {
		if g := group(cell); x.times.Of(cell).Len() > 0 {
			durs[g], bytes[g] = append(durs[g], x.times.Of(cell)), append(bytes[g], x.sizes.Of(cell))
		}
	}
	list := make([]amount, groups)
	for g := range list {
		list[g] = amount{rows: durs[g].Len(), total: durs[g].Sum(), bytes: bytes[g].Sum(), time: durs[g].Summary(),
			size: bytes[g].Summary()}
	}
	return list
}

// all sums up all cells.
func (x *amounts) all() *amount { return &x.by(1, func(int) int { return 0 })[0] }

func (a *amount) emit(out *kit.Output, role trace.Role, prefix string, l report.Labels, columns ...string) {
	out.From(role, a.rows, append([]string{"start", "end", "bytes"}, columns...)...)
	out.Int(prefix+".time", l, a.total).Summary = a.time
	out.Int(prefix+".bytes", l, a.bytes).Summary = a.size
	out.Int(prefix+".count", l, int64(a.rows))
}

// fields are a row of amountColumns, whose first columns are given.
func (a *amount) fields(first ...kit.Field) []kit.Field {
	return append(first,
		kit.Int("count", int64(a.rows)), kit.Int("total", a.total),
		kit.Float("mean", a.time.Mean), kit.Float("p50", a.time.P50), kit.Int("max", int64(a.time.Max)),
		kit.Int("bytes", a.bytes), kit.Float("mean_bytes", a.size.Mean), kit.Float("p50_bytes", a.size.P50),
		kit.Int("max_bytes", int64(a.size.Max)), kit.Maybe("throughput", a.throughput()),
	)
}

func amountColumns(first ...report.Column) []report.Column {
	return append(first,
		kit.CountCol("count", "Count", "call_count").Merged(report.Sum),
		kit.NsCol("total", "Total", "total_time_ns", "total_time_ms").Merged(report.Sum.First()),
		kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.RatioOf("total", "count")),
		kit.Wide(kit.MeanCol("p50", "p50", "p50_duration_us")).Merged(report.Same),
		kit.Wide(kit.NsCol("max", "Max", "max_duration_us")).Merged(report.Max),
		kit.BytesCol("bytes", "Bytes").Merged(report.Sum),
		kit.FloatCol("mean_bytes", "Mean size", report.Bytes).Merged(report.RatioOf("bytes", "count")),
		kit.Wide(kit.FloatCol("p50_bytes", "p50 size", report.Bytes)).Merged(report.Same),
		kit.Wide(kit.BytesCol("max_bytes", "Max size")).Merged(report.Max),
		bandwidthCol("throughput", "Throughput", "bandwidth_gbps").Merged(report.RatioOf("bytes", "total")),
	)
}

// bandwidthCol is a throughput, written to CSV in GB/s (10^9 bytes per second): bandwidth_gbps is profilemate's name.
func bandwidthCol(id, title, csv string) report.Column {
	c := kit.FloatCol(id, title, report.BytesPerSec)
	c.CSV = []report.CSVCol{{Name: csv, Exp10: -9}}
	return c
}

func copyGroups(in *kit.Input, out *kit.Output, lo, hi int) {
	c := &in.Trace.Copies
	const kinds = len(kit.MemKinds)
	x := gatherAmounts(in.Trace.Memory(), len(kit.Directions)*kinds, lo, hi,
		func(i int) int32 { return int32(kit.Direction(c.Kind(i))*kinds + kit.CopySide(c, i)) }, c.Dur, c.Bytes)
	defer x.free()
	x.all().emit(out, trace.RoleMemcpy, "memcpy", nil)
	emit := func(a *amount, l report.Labels, columns ...string) {
		a.emit(out, trace.RoleMemcpy, "memcpy", l, columns...)
		out.Metric("memcpy.throughput", l, a.throughput())
	}
	byDirection := x.by(len(kit.Directions), func(cell int) int { return cell / kinds })
	for d := range kit.Directions {
		if byDirection[d].rows > 0 {
			emit(&byDirection[d], kit.Labels("direction", kit.Directions[d]), "copyKind")
		}
	}
	byKind := x.by(kinds, func(cell int) int { return cell % kinds })
	for _, k := range ranked(byKind) {
		emit(&byKind[k], kit.Labels("kind", kit.MemKinds[k]), "srcKind", "dstKind")
	}
	t := out.Table("memcpy")
	pairs := x.by(len(kit.Directions)*kinds, func(cell int) int { return cell })
	for _, p := range ranked(pairs) {
		d, k := kit.Directions[p/kinds], kit.MemKinds[p%kinds]
		emit(&pairs[p], kit.Labels("direction", d, "kind", k), "copyKind", "srcKind", "dstKind")
		t.Row(pairs[p].fields(kit.Text("direction", d), kit.Text("kind", k))...)
	}
	t.Add()
}

func setGroups(in *kit.Input, out *kit.Output, lo, hi int) {
	m := &in.Trace.Sets
	x := gatherAmounts(in.Trace.Memory(), len(kit.MemKinds), lo, hi,
		func(i int) int32 { return int32(kit.MemKind(m.MemKind(i))) }, m.Dur, m.Bytes)
	defer x.free()
	x.all().emit(out, trace.RoleMemset, "memset", nil)
	groups := x.by(len(kit.MemKinds), func(cell int) int { return cell })
	t := out.Table("memset")
	for _, k := range ranked(groups) {
		groups[k].emit(out, trace.RoleMemset, "memset", kit.Labels("kind", kit.MemKinds[k]), "memKind")
		t.Row(groups[k].fields(kit.Text("kind", kit.MemKinds[k]))...)
	}
	t.Add()
}

// ranked are the groups that have rows, by total time.
func ranked(groups []amount) []int {
	list := lists.Where(len(groups), func(k int) bool { return groups[k].rows > 0 })
	lists.Sort(list, func(a, b int) int { return cmp.Compare(groups[b].total, groups[a].total) })
	return list
}

// syncCopies lists the copy calls that return when the copy is done, with the copied data if the capture has it.
func syncCopies(in *kit.Input, out *kit.Output) {
	api, c := &in.Trace.API, &in.Trace.Copies
	rows := in.CallStats().Rows(func(n *trace.APIName) bool { return n.SyncCopy })
	copied := make(map[int32]int32) // by call, its copy
	for i, call := range in.Calls.Copy {
		if len(rows) > 0 && call != trace.None && api.Names[api.Name(int(call))].SyncCopy {
			if _, ok := copied[call]; !ok {
				copied[call] = int32(i)
			}
		}
	}
	emit := func(l report.Labels, s *kit.Sums) {
		out.Calls("memcpy.sync_time", "memcpy.sync_count", l, s, "start", "end", "nameId")
	}
	stats := in.CallStats()
	names := stats.Chosen(func(n *trace.APIName) bool { return n.SyncCopy })
	emit(nil, &stats.SyncCopies.Sums)
	lists.Sort(names, func(a, b kit.Totals) int { return cmp.Compare(a.Key, b.Key) })
	for _, e := range names {
		emit(kit.Labels("api", api.Names[e.Key].Name), &e.Sums)
	}
	type group struct{ name, direction, kind int32 }
	groups := kit.NewTally[group, struct{ bytes, time int64 }]() // of the copies
	calls := kit.Gather(nil, 0, 0, len(rows), func(at int) int32 {
		k := group{api.Name(rows[at]), -1, -1}
		row, ok := copied[int32(rows[at])]
		if ok {
			k.direction, k.kind = int32(kit.Direction(c.Kind(int(row)))), int32(kit.CopySide(c, int(row)))
		}
		if sum := groups.At(k); ok {
			sum.bytes += c.Bytes(int(row))
			sum.time += c.Dur(int(row))
		}
		return groups.Of(k)
	}, func(at int) int64 { return api.Dur(rows[at]) }).Sort()
	t := out.Table("sync_copies")
	for _, e := range calls.Rank(cmp.Compare) {
		k, copies := groups.Keys[e.Key], groups.Values[e.Key]
		row := append(t.Stats(e.Summary),
			kit.Text("api_name", api.Names[k.name].Name), kit.Int("count", e.Count), kit.Int("total", e.Total))
		if k.direction >= 0 {
			row = append(row, kit.Text("direction", kit.Directions[k.direction]), kit.Text("kind", kit.MemKinds[k.kind]),
				kit.Int("gpu", copies.time), kit.Int("bytes", copies.bytes))
		}
		t.Partial(row...)
	}
	t.Cut(in.Options.Top, "count", "total", "gpu", "bytes").Add()
}

// copyDetails is profilemate's memcpy_stats.csv: one row per copy, the longest ones if there are too many.
func copyDetails(in *kit.Input, out *kit.Output, lo, hi int) {
	c := &in.Trace.Copies
	t := out.Table("memcpy_stats")
	for _, i := range in.Options.Longest(lo, hi, c.Dur) {
		a := amount{total: c.Dur(i), bytes: c.Bytes(i)}
		d := "Other" // profilemate's word for all but these three
		switch k := kit.Direction(c.Kind(i)); k {
		case kit.CopyHtoD, kit.CopyDtoH, kit.CopyDtoD:
			d = kit.Directions[k]
		}
		t.Row(
			kit.Int("duration", a.total), kit.Int("bytes", a.bytes), kit.Maybe("bandwidth", a.throughput()),
			kit.Text("direction", d), kit.Text("kind", kit.MemKinds[kit.CopySide(c, i)]), kit.Int("start", c.Start(i)),
			kit.Int("device_id", int64(c.Device(i))))
	}
	t.AttachDetails(hi - lo)
}

func tinyFindings(in *kit.Input, out *kit.Output, lo, hi int) {
	c := &in.Trace.Copies
	var tiny, all [len(kit.Directions)]int64
	for i := lo; i < hi; i++ {
		d := kit.Direction(c.Kind(i))
		if all[d]++; (d == kit.CopyHtoD || d == kit.CopyDtoH) && c.Bytes(i) <= tinyCopy {
			tiny[d]++
		}
	}
	out.From(trace.RoleMemcpy, hi-lo, "bytes", "copyKind")
	out.Int("memcpy.tiny_count", nil, tiny[kit.CopyHtoD]+tiny[kit.CopyDtoH])
	var evidence []report.MetricRef
	for _, d := range []int{kit.CopyHtoD, kit.CopyDtoH} {
		if all[d] == 0 {
			continue
		}
		out.Source.Rows = all[d]
		out.Int("memcpy.tiny_count", kit.Labels("direction", kit.Directions[d]), tiny[d])
		if tiny[d] >= tinyCopies && 2*tiny[d] >= all[d] {
			evidence = append(evidence, kit.Ref("memcpy.tiny_count", "direction", kit.Directions[d]),
				kit.Ref("memcpy.count", "direction", kit.Directions[d]))
		}
	}
	if len(evidence) > 0 {
		out.Find("tiny_copies", evidence,
			"Each costs a call and a round trip of some microseconds, whatever its size: pack the inputs of a step into one pinned buffer, and read results back in one copy per step.",
			"Device to host, each is usually a .item(), .cpu() or .tolist() that also blocks: the copy rules table and the synchronisation section give the NVTX range.")
	}
}
