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
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Overview = kit.Section{
	ID: "overview", Group: report.GroupCapture, Title: "Overview",
	Derivation: "Devices that did work come from the event rows, their properties from the capture's list of adapters. " +
		"Settings come from the capture's metadata, by an allow-list of keys.",
	Metrics: []report.MetricDef{
		kit.ExactLevel("capture.devices", report.None, report.Sum, "devices that did work in the window"),
		kit.ExactLevel("capture.processes", report.None, report.Sum,
			"processes that called CUDA, did GPU work or opened NVTX ranges in the window"),
	},
	Tables: []report.Table{
		{ID: "tables", Title: "Tables of events", File: "tables.csv", Columns: []report.Column{
			kit.NameCol("table", "Table").Merged(report.Key),
			kit.TextCol("role", "Read as").Merged(report.Key),
			kit.CountCol("rows", "Rows").Merged(report.Sum),
			kit.CountCol("skipped", "Skipped").Merged(report.Sum),
		}},
		{ID: "capture", Title: "Capture", File: "capture.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("setting", "Setting"),
			kit.NameCol("value", "Value"),
		}},
		{ID: "window", Title: "Analysed window", File: "window.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("mode", "Mode"),
			kit.MomentCol("start", "Start", "start_ns"),
			kit.MomentCol("end", "End", "end_ns"),
			kit.NsCol("length", "Length", "length_ns", "length_ms"),
			kit.NsCol("captured", "Captured", "captured_ns", "captured_ms"),
			kit.NameCol("why", "Why"),
		}},
		{ID: "devices", Title: "Devices", File: "devices.csv", Columns: []report.Column{
			kit.IDCol("device_id", "GPU").Merged(report.Device),
			kit.NameCol("name", "Name").Merged(report.Same),
			kit.Wide(kit.NameCol("chip", "Chip")).Merged(report.Same),
			kit.Wide(kit.TextCol("compute_capability", "Compute capability")).Merged(report.Same),
			kit.CountCol("sm_count", "SMs").Merged(report.Same),
			kit.BytesCol("memory_bytes", "Memory").Merged(report.Same),
			kit.FloatCol("memory_bandwidth_bytes_per_s", "Memory bandwidth", report.BytesPerSec).Merged(report.Same),
			kit.Wide(kit.FloatCol("clock_hz", "Clock", report.PerSecond)).Merged(report.Same),
			kit.TextCol("pids", "PIDs").Merged(report.Same),
			kit.CountCol("kernels", "Kernels", "kernel_count").Merged(report.Same),
			kit.NsCol("kernel_time", "Kernel time", "total_kernel_time_ns", "total_kernel_time_ms").Merged(report.Same),
			kit.NsCol("busy", "Busy", "busy_ms").Merged(report.Same),
			kit.RatioCol("busy_ratio", "Busy", "busy_pct_of_window").Merged(report.Same),
		}},
	},
	Run: overview,
}

func overview(in *kit.Input, out *kit.Output) {
	procs := lists.Count(procSums(in), func(s procSum) bool { return s.proc != trace.None })
	captureTable(in, out)
	t, w := out.Table("window"), &in.Window
	t.Row(kit.Text("mode", w.Mode), kit.Int("start", w.Start), kit.Int("end", w.End), kit.Int("length", w.Length),
		kit.Put("captured", kit.Stated(in.Trace.Meta.Captured)), kit.Text("why", w.Why))
	t.Add()
	devicesTable(in, out)
	rows := out.Table("tables")
	var read int64
	var names []string
	for _, s := range in.Trace.Tables {
		rows.Row(
			kit.Text("table", s.Name), kit.Text("role", string(s.Role)), kit.Int("rows", s.Rows),
			kit.Int("skipped", s.Skipped))
		read += s.Rows
		names = append(names, s.Name)
	}
	for _, name := range in.Trace.LeftOut {
		rows.Partial(kit.Text("table", name), kit.Text("role", "not read"))
	}
	rows.Add()

	if len(names) > 0 {
		out.Source.Source = report.Source{Tables: names, Columns: []string{"deviceId", "globalPid", "globalTid"}, Rows: read}
		out.Int("capture.devices", nil, int64(len(in.Timeline.Devices)))
		out.Int("capture.processes", nil, int64(procs))
	}
}

// captureTable lists what the capture records about itself and the machine. Values are in the capture's own words.
func captureTable(in *kit.Input, out *kit.Output) {
	t, m := in.Trace, &in.Trace.Meta
	table := out.Table("capture")
	add := func(setting, value string) {
		if value != "" {
			table.Row(kit.Text("setting", setting), kit.Text("value", value))
		}
	}
	add("File", t.File.Name)
	add("Traced", strings.Join(m.TraceSet, ", "))
	add("CUDA graphs traced", graphTrace(in))
	add("Captured with nsys", m.CaptureVersion)
	add("Exported with nsys", m.ExporterVersion)
	add("Export schema", m.SchemaVersion)
	add("Driver", m.Driver)
	add("CUDA of the driver", m.CUDA)
	add("OS", m.OS)
	add("CPU", m.CPU)
	add("Architecture", m.Arch)
	table.Add()
}

// graphTrace is how CUDA graphs were traced: by the rows if there are any, else by the options of the capture.
func graphTrace(in *kit.Input) string {
	switch {
	case in.Trace.Graphs.Len() > 0:
		return "as a whole (graph): the kernels inside are hidden"
	case in.Trace.Kernels.InGraphs():
		return "kernel by kernel (node)"
	}
	if launchesGraph(in.Trace) {
		return in.Trace.Meta.GraphTrace
	}
	return "no graph was launched"
}

func devicesTable(in *kit.Input, out *kit.Output) {
	t := out.Table("devices")
	kernels, ran := kit.NewTally[int32, kit.Crossed](), in.KernelStats() // by device
	for _, c := range ran.Cells {
		d := kernels.At(ran.Places[c.B].B)
		d.Count, d.Total = d.Count+c.Count, d.Total+c.Total
	}
	for _, d := range in.Timeline.Devices {
		a := in.Trace.GPU(d.ID)
		busy, ran := d.Busy(), kernels.At(d.ID)
		t.Row(
			kit.Int("device_id", int64(d.ID)), kit.Put("name", report.OrNull(a.Name)),
			kit.Put("chip", report.OrNull(a.Chip)), kit.Put("compute_capability", report.OrNull(capability(&a))),
			kit.Put("sm_count", kit.Stated(a.SMs)), kit.Put("memory_bytes", kit.Stated(a.MemoryBytes)),
			kit.Put("memory_bandwidth_bytes_per_s", kit.Stated(a.MemoryBandwidth)),
			kit.Put("clock_hz", kit.Stated(a.ClockHz)), kit.Text("pids", pidsOn(in, d.ID)),
			kit.Int("kernels", ran.Count), kit.Int("kernel_time", ran.Total), kit.Int("busy", busy),
			kit.Maybe("busy_ratio", stat.Ratio(busy, in.Span.Len())))
	}
	t.Cut(kit.MaxDevices, "kernels", "kernel_time", "busy").Add()
}

// pidsOn lists the pids that did work on a device; the unknown process is left out.
func pidsOn(in *kit.Input, device int32) string {
	list := lists.Filter(procSums(in), func(s procSum) bool {
		return s.proc != trace.None && slices.Contains(s.devices, device)
	})
	lists.Sort(list, func(a, b procSum) int { return cmp.Compare(a.proc, b.proc) })
	pids := lists.Map(list, func(s procSum) string { return strconv.FormatInt(in.Trace.Procs[s.proc].PID, 10) })
	const few = 8
	if len(pids) > few {
		pids = append(pids[:few], "…")
	}
	return strings.Join(pids, ", ")
}

func capability(a *trace.GPUInfo) string {
	if a.CapMajor <= 0 {
		return ""
	}
	return strconv.FormatInt(a.CapMajor, 10) + "." + strconv.FormatInt(a.CapMin, 10)
}
