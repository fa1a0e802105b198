package host_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"

	tt "github.com/nsys-llm/explain/analyze/tracetest"
)

func TestOverview(t *testing.T) {
	res := sectiontest.Analyse(t, crowd(), analyze.Options{}) // no adapter is listed
	r := res.Report
	sectiontest.WantStatus(t, r, "overview", report.OK, "")
	sectiontest.Metric(t, r, 2, "capture.devices")
	sectiontest.Metric(t, r, 3, "capture.processes")
	// The window is 0-40 µs. Busy: device 0 0-15, 20-24 and 30-40 = 29, device 1 0-20.
	wantLines(t, cellLines(t, tableNamed(t, res, "devices"), "device_id", "name", "sm_count", "pids", "kernels", "kernel_time", "busy", "busy_ratio"),
		"0 | null | null | 100, 300, 100 | 4 | 25000 | 29000 | 0.725",
		"1 | null | null | 100 | 1 | 20000 | 20000 | 0.5")
	wantLines(t, cellLines(t, tableNamed(t, res, "window"), "mode", "start", "end", "length"), "capture | 0 | 40000 | 40000")
}

func TestOverviewOfTiny(t *testing.T) {
	b := tt.Tiny()
	// Another adapter that calls itself device 0 and cannot run CUDA, as laptops have them.
	b.GPU(tt.GPU{ID: 1, Name: "Integrated Graphics", Set: tt.Row{"cuDevice": tt.Int(0), "smCount": tt.Int(0)}})
	b.Env("NvDriverVersion", "570.133.20")
	b.Env("DeviceEnvironment", "HF_TOKEN=secret")
	res := sectiontest.Analyse(t, b, analyze.Options{})
	sectiontest.NoMetric(t, res.Report, "capture.duration") // exporters differ in stating it, so it is shown in the window table and is no metric
	sectiontest.Metric(t, res.Report, 1, "capture.devices")
	sectiontest.Metric(t, res.Report, 1, "capture.processes")
	wantLines(t, cellLines(t, tableNamed(t, res, "devices"), "device_id", "name", "chip", "compute_capability", "sm_count", "memory_bytes", "memory_bandwidth_bytes_per_s", "clock_hz", "busy"),
		"0 | NVIDIA H100 80GB HBM3 | GH100 | 9.0 | 132 | 85028765696 | 3352320000000 | 1980000000 | 775000")
	settings := map[string]bool{}
	for _, line := range cellLines(t, tableNamed(t, res, "capture"), "setting", "value") {
		settings[line] = true
	}
	for _, want := range []string{"Driver | 570.133.20", "CUDA graphs traced | no graph was launched"} {
		if !settings[want] {
			t.Errorf("capture table lacks %q: %v", want, settings)
		}
	}
	got := map[string]bool{}
	for _, line := range cellLines(t, tableNamed(t, res, "tables"), "table", "role", "rows", "skipped") {
		got[line] = true
	}
	for _, want := range []string{"CUPTI_ACTIVITY_KIND_KERNEL | kernel | 13 | 0", "CUPTI_ACTIVITY_KIND_MEMCPY | memcpy | 2 | 0", "NVTX_EVENTS | nvtx | 4 | 0"} {
		if !got[want] {
			t.Errorf("tables lacks %q: %v", want, got)
		}
	}
}

func TestOverviewGraphTrace(t *testing.T) {
	for want, b := range map[string]*tt.Builder{
		"CUDA graphs traced | as a whole (graph): the kernels inside are hidden": tt.GraphHidden(),
		"CUDA graphs traced | kernel by kernel (node)":                           tt.Serving(),
	} {
		found := false
		for _, line := range cellLines(t, tableNamed(t, sectiontest.Analyse(t, b, analyze.Options{}), "capture"), "setting", "value") {
			found = found || line == want
		}
		if !found {
			t.Errorf("capture table lacks %q", want)
		}
	}
}

// The oldest exports say nothing of themselves; the section stands.
func TestOverviewOldest(t *testing.T) {
	res := sectiontest.Analyse(t, tt.Oldest(), analyze.Options{})
	sectiontest.WantStatus(t, res.Report, "overview", report.OK, "")
	sectiontest.Metric(t, res.Report, 1, "capture.devices")
}

// TestManyAreGrouped: 10,002 processes launch a kernel of 1 µs each, by turns on 1,026 devices: devices 0 to 767 run ten of
// them, the others nine. What is beyond 1,024 devices and 10,000 processes is one row, and one value of a metric.
func TestManyAreGrouped(t *testing.T) {
	b := tt.New()
	for i := range int64(10_002) {
		b.Process(2+i, "p").Thread(2+i, "").Launch("k", i*sectiontest.Us, i*sectiontest.Us+100, tt.Kernel{Place: tt.Place{Device: i % 1026}, Start: i*sectiontest.Us + 200, End: i*sectiontest.Us + 200 + sectiontest.Us})
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	var said []string
	for _, w := range l.Report.Warnings {
		if w.Code == "grouped" {
			said = append(said, w.Text)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], "1026 devices, more than 1024, and 10002 streams, more than 10000, and 10002 processes, more than 10000.") {
		t.Errorf("said %q", said)
	}
	devices := l.Table("overview", "devices")
	if len(devices.Rows) != 1025 || devices.TotalRows != 1026 || !devices.Others {
		t.Fatalf("%d rows of %d", len(devices.Rows), devices.TotalRows)
	}
	l.Row(devices, 767, "device_id", "767", "kernels", "10")
	l.Row(devices, 1024, "device_id", "null", "kernels", "18", "kernel_time", "18000")
	sectiontest.Metric(t, l.Report, 9, "kernel.count", "device", "1023")
	sectiontest.Metric(t, l.Report, 18, "kernel.count", "device", "(others)")
	sectiontest.Metric(t, l.Report, 18*sectiontest.Us, "kernel.total_time", "device", "(others)")
	sectiontest.NoMetric(t, l.Report, "kernel.count", "device", "1024")
	launches := l.Table("launches", "launches_by_pid")
	if len(launches.Rows) != 10_001 || launches.TotalRows != 10_002 {
		t.Fatalf("%d rows of %d", len(launches.Rows), launches.TotalRows)
	}
	l.Row(launches, 10_000, "pid", "null", "launches", "2", "api_time", "200")
	for _, s := range l.Report.Sections {
		for _, tab := range s.Tables {
			if len(tab.Rows) > 10_001 {
				t.Errorf("table %s has %d rows", tab.ID, len(tab.Rows))
			}
		}
	}
}
