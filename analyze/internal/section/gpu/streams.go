package gpu

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

var Streams = kit.Section{
	ID: "streams", Group: report.GroupTime, Steady: true, Work: true, Title: "Streams and concurrency",
	Derivation: "All GPU work that overlaps the window, by device, process and stream. A stream is busy while " +
		"any of its work runs; work is concurrent while two or more streams of a device are busy.",
	Findings: []kit.FindingDef{
		{ID: "serial_copies", Title: "Copies run where kernels could have hidden them", Inside: true, General: true,
			Part: true},
	},
	Metrics: []report.MetricDef{
		kit.ExactLevel("stream.count", report.None, report.Device,
			"streams of the device that ran work in the window").By("device"),
		kit.TotalTime("stream.concurrent_time", report.None, report.Device,
			"time in which two or more streams of the device ran work").By("device"),
		kit.Ratio("stream.concurrency_ratio", report.None, report.Device,
			"stream.concurrent_time over gpu.busy_time").By("device"),
		kit.Ratio("stream.copy_hidden_ratio", report.Higher, report.Device,
			"share of the time in which a copy or memset ran that kernels hide").By("device").Quoted(),
	},
	Tables: []report.Table{
		{ID: "streams", Title: "Streams", File: "streams.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("device_id", "GPU"),
			kit.IDCol("pid", "PID"),
			kit.IDCol("stream_id", "Stream"),
			kit.CountCol("kernels", "Kernels", "kernel_count"),
			kit.CountCol("graphs", "Graphs", "graph_count"),
			kit.CountCol("copies", "Copies", "copy_count"),
			kit.NsCol("kernel_time", "Kernel time", "kernel_time_ms"),
			kit.NsCol("total", "Total", "total_time_ms"),
			kit.NsCol("busy", "Busy", "busy_ms"),
			kit.RatioCol("share", "Of the window", "pct_of_window"),
		}},
	},
	Run: streams,
}

// Bounds of the finding about copies that overlap nothing, if they do not bind the whole of it.
const (
	serialCopyShare  = 0.03 // of the judged time: exposed copies
	serialCopyHidden = 0.50 // of the copy time of the judged time
)

// streamKey is a stream of one process on one device.
type streamKey struct {
	proc   int32
	stream int64
}

type streamUse struct {
	streamKey
	kernels, graphs, copies int64
	kernelTime, time        int64
	busy                    kit.Covered
}

// streamsOf gathers the device's work by stream, and the time in which two or more of them are busy: for each piece of
// work the time until the end of the work that began before it, unless its own stream has the latest end, which covers
// that time already.
func streamsOf(in *kit.Input, d *timeline.Device) (list []*streamUse, concurrent int64) {
	streams := kit.NewTally[streamKey, streamUse]()
	var latest *streamUse // whose work ends last so far
	latestEnd := in.Span.Start
	both := kit.Covered{Reached: in.Span.Start}
	for i := range d.Len() {
		key, from, to := streamKey{d.Proc(i), d.Stream(i)}, d.Start(i), d.End(i)
		u := streams.At(key)
		u.streamKey = key
		if u.kernels+u.graphs+u.copies == 0 {
			u.busy.Reached = in.Span.Start
		}
		switch d.Kind(i) {
		case timeline.KernelWork:
			u.kernels++
			u.kernelTime += to - from
		case timeline.GraphWork:
			u.graphs++
		case timeline.CopyWork, timeline.SetWork:
			u.copies++
		}
		u.time += to - from
		start, end := max(from, in.Span.Start), min(to, in.Span.End)
		u.busy.Add(start, end)
		if u != latest {
			both.Add(start, min(end, latestEnd))
		}
		if end > latestEnd {
			latest, latestEnd = u, end
		}
	}
	return streams.Values, both.Ns
}

func streams(in *kit.Input, out *kit.Output) {
	type row struct {
		device *timeline.Device
		*streamUse
	}
	var rows []row
	for _, d := range in.Timeline.Devices {
		list, concurrent := streamsOf(in, d)
		l := kit.Labels("device", deviceID(d))
		out.FromWork(d.Len(), "start", "end", "deviceId", "streamId", "globalPid")
		out.Int("stream.count", l, int64(len(list)))
		out.Int("stream.concurrent_time", l, concurrent)
		out.Metric("stream.concurrency_ratio", l, stat.Ratio(concurrent, d.Busy()))
		if copies := d.Copies; copies > 0 {
			out.Metric("stream.copy_hidden_ratio", l, stat.Ratio(copies-d.ExposedCopy, copies))
		}
		for _, u := range list {
			rows = append(rows, row{d, u})
		}
	}
	if len(rows) == 0 {
		out.Status(report.NotApplicable, "no GPU work in the window")
		return
	}
	lists.Sort(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.busy.Ns, a.busy.Ns), cmp.Compare(a.device.ID, b.device.ID), cmp.Compare(a.proc, b.proc),
			cmp.Compare(a.stream, b.stream))
	})
	t := out.Table("streams")
	for _, r := range rows {
		t.Row(
			kit.Int("device_id", int64(r.device.ID)), kit.PID(in.Trace.Procs, r.proc), kit.Put("stream_id", kit.Known(r.stream)),
			kit.Int("kernels", r.kernels), kit.Int("graphs", r.graphs), kit.Int("copies", r.copies),
			kit.Int("kernel_time", r.kernelTime), kit.Int("total", r.time), kit.Int("busy", r.busy.Ns),
			kit.Maybe("share", stat.Ratio(r.busy.Ns, in.Span.Len())))
	}
	t.Cut(in.Options.Top, "kernels", "graphs", "copies", "kernel_time", "total").Add()
	out.Note("Copies include memsets. Work of several streams can only overlap if the GPU has room: two kernels that each fill the GPU run one after the other, whatever their streams.")
	streamFindings(in, out)
}

func streamFindings(in *kit.Input, out *kit.Output) {
	s := in.Step()
	d := s.Device
	if d == nil || !in.Trace.RanKernels() || s.Share(s.Copy) < serialCopyShare || s.Share(s.Copy) >= transferBound {
		return
	}
	if copies := interval.Intersect(ranIn(d, timeline.Copy), s.Spans).Len(); float64(copies-s.Copy) >= serialCopyHidden*float64(copies) {
		return
	}
	most := mostCopied(in, s)
	title := "Copies run for " + unit.Percent(s.Share(s.Copy)) + " of the " + s.What() +
		" where kernels could have hidden them" + most.text
	advice := "Put copies on a stream of their own, from pinned memory and asynchronous, and issue them one step ahead: " +
		"copies on the stream of the kernels run between them by definition."
	if most.pageable {
		advice = "Pin the host's side (pin_memory=True, cudaHostAlloc) and copy with non_blocking=True: pageable memory " +
			"is staged, which is slow and holds the host. Issue copies one step ahead, on a stream of their own."
	}
	out.FindAs("serial_copies", title, append(stepRefs(s, "unit.exposed_copy_time", "gpu.exposed_copy_time"),
		kit.Ref("stream.copy_hidden_ratio", "device", deviceID(d))),
		cmp.Or(most.advice, advice), "The memcpy section has direction, kind of memory, size and throughput.",
	).At(most.place).Costs(s.Worth(s.Copy), s.CopyClaim())
}
