package section

import (
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var overviewSection = Section{
	ID: "overview", Title: "Overview", Rank: 10,
	Derivation: "Devices are those that did work, from the event rows; what is known of them is from the " +
		"capture's list of adapters. Settings are from the capture's metadata, by an allow-list of keys.",
	Metrics: []report.MetricDef{
		{
			ID: "capture.devices", Unit: report.Count, Better: report.None, Assume: report.Exact,
			Scale:   report.Level,
			Meaning: "devices that did work in the window",
		},
		{
			ID: "capture.processes", Unit: report.Count, Better: report.None, Assume: report.Exact,
			Scale:   report.Level,
			Meaning: "processes that called CUDA, did GPU work or opened NVTX ranges in the window",
		},
	},
	Tables: []report.Table{
		{ID: "tables", Title: "Tables of events", File: "tables.csv", Columns: []report.Column{
			nameCol("table", "Table"),
			textCol("role", "Read as"),
			countCol("rows", "Rows"),
			countCol("skipped", "Skipped"),
		}},
		{ID: "capture", Title: "Capture", File: "capture.csv", Columns: []report.Column{
			textCol("setting", "Setting"),
			nameCol("value", "Value"),
		}},
		{ID: "window", Title: "Analysed window", File: "window.csv", Columns: []report.Column{
			textCol("mode", "Mode"),
			momentCol("start", "Start", "start_ns"),
			momentCol("end", "End", "end_ns"),
			nsCol("length", "Length", "length_ns", "length_ms"),
			nsCol("captured", "Captured", "captured_ns", "captured_ms"),
			nameCol("why", "Why"),
		}},
		{ID: "devices", Title: "Devices", File: "devices.csv", Columns: []report.Column{
			idCol("device_id", "GPU"),
			nameCol("name", "Name"),
			wide(nameCol("chip", "Chip")),
			wide(textCol("compute_capability", "Compute capability")),
			countCol("sm_count", "SMs"),
			bytesCol("memory_bytes", "Memory"),
			rateCol("memory_bandwidth_bytes_per_s", "Memory bandwidth", report.BytesPerSec),
			wide(rateCol("clock_hz", "Clock", report.PerSecond)),
			textCol("pids", "PIDs"),
			countCsv("kernels", "Kernels", "kernel_count"),
			nsCol("kernel_time", "Kernel time", "total_kernel_time_ns", "total_kernel_time_ms"),
			nsCol("busy", "Busy", "busy_ms"),
			ratioCol("busy_ratio", "Busy", "busy_pct_of_window"),
		}},
	},
	Run: overview,
}

func overview(in *Input, out *Output) {
	t := in.Trace
	procs := 0
	for _, s := range in.procSums() {
		if s.proc != trace.None {
			procs++
		}
	}
	captureTable(in, out)
	windowTable(in, out)
	devicesTable(in, out)
	rows := out.Table("tables")
	var read int64
	var names []string
	for _, s := range t.Tables {
		rows.Row(report.S(s.Name), report.S(string(s.Role)), report.I(s.Rows), report.I(s.Skipped))
		read += s.Rows
		names = append(names, s.Name)
	}
	for _, name := range t.LeftOut {
		rows.Row(report.S(name), report.S("not read"), report.Null, report.Null)
	}
	rows.Add()

	if len(names) > 0 {
		out.source = report.Source{Tables: names, Columns: []string{"deviceId", "globalPid", "globalTid"}, Rows: read}
		out.Int("capture.devices", nil, int64(len(in.Timeline.Devices)))
		out.Int("capture.processes", nil, int64(procs))
	}
}

// captureTable shows what the capture says of itself and of the machine. Values are the capture's own words.
func captureTable(in *Input, out *Output) {
	t, m := in.Trace, &in.Trace.Meta
	table := out.Table("capture")
	add := func(setting, value string) {
		if value != "" {
			table.Row(report.S(setting), report.S(value))
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

// graphTrace is how CUDA graphs were traced: as the rows show, else as the capture was asked to.
func graphTrace(in *Input) string {
	switch {
	case in.Trace.Graphs.Len() > 0:
		return "as a whole (graph): the kernels inside are hidden"
	case in.Trace.GraphNodes > 0:
		return "kernel by kernel (node)"
	}
	for i := range in.Trace.API.Names {
		if in.Trace.API.Names[i].GraphLaunch {
			return in.Trace.Meta.GraphTrace
		}
	}
	return "no graph was launched"
}

func windowTable(in *Input, out *Output) {
	t := out.Table("window")
	captured := report.Null
	if d := in.Trace.Meta.CaptureStop - in.Trace.Meta.CaptureStart; d > 0 {
		captured = report.I(d)
	}
	w := &in.Window
	t.Row(report.S(w.Mode), report.I(w.Start), report.I(w.End), report.I(w.Length), captured, report.S(w.Why))
	t.Add()
}

func devicesTable(in *Input, out *Output) {
	t := out.Table("devices")
	index := map[int32]int{}
	for i := range in.Timeline.Devices {
		index[in.Timeline.Devices[i].ID] = i
	}
	counts, times := make([]int64, len(index)), make([]int64, len(index))
	ran := in.kernelStats()
	for _, c := range ran.cells {
		d := index[ran.places[c.b].b]
		counts[d] += c.count
		times[d] += c.total
	}
	for i := range in.Timeline.Devices {
		d := &in.Timeline.Devices[i]
		a := in.Trace.GPU(d.ID)
		busy := d.Busy()
		t.Row(report.I(int64(d.ID)), statedText(a.Name), statedText(a.Chip), statedText(capability(&a)), statedInt(a.SMs), statedInt(a.MemoryBytes), statedRate(a.MemoryBandwidth),
			statedRate(a.ClockHz), report.S(in.pidsOn(i)), report.I(counts[i]), report.I(times[i]), report.I(busy), cell(stat.Ratio(busy, in.Span.Len())))
	}
	t.Add()
}

// pidsOn lists the pids that did work on a device; the unknown process is left out.
func (in *Input) pidsOn(device int) string {
	seen := make([]bool, len(in.Trace.Procs))
	d := &in.Timeline.Devices[device]
	for i := range d.Len() {
		if p := d.Proc(i); p != trace.None {
			seen[p] = true
		}
	}
	var pids []string
	for p := range seen {
		if seen[p] {
			pids = append(pids, strconv.FormatInt(in.Trace.Procs[p].PID, 10))
		}
	}
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

func statedText(s string) report.Cell {
	if s == "" {
		return report.Null
	}
	return report.S(s)
}

func statedInt(v int64) report.Cell {
	if v <= 0 {
		return report.Null
	}
	return report.I(v)
}

func statedRate(v int64) report.Cell {
	if v <= 0 {
		return report.Null
	}
	return report.F(float64(v))
}
