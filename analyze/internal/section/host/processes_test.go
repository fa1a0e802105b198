package host_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"

	tt "github.com/nsys-llm/explain/analyze/tracetest"
)

// crowd is three processes, two of which are pid 100 on two virtual machines, in µs:
//
//	pid 100 on VM 1   a 0-10, a 8-14 (stream 9) and b 20-24 on device 0; a 0-20 on device 1; one cudaStreamSynchronize of 30
//	pid 100 on VM 2   a 10-15 on device 0
//	pid 300           a copy 30-40 on device 0; two cudaDeviceSynchronize of 5 and 7; an API call that is neither
//
// Kernel time: VM 1 10+6+4+20 = 40, VM 2 5. Busy: VM 1 14+4 on device 0 and 20 on device 1 = 38.
func crowd(opts ...tt.Option) *tt.Builder {
	b := tt.New(opts...)
	one := b.Process(100, "worker one").Thread(100, "t")
	two := b.Process(100, "/opt/bin/worker-two --key=x", tt.OnMachine(0, 2)).Thread(100, "t")
	three := b.Process(300, "copier").Thread(300, "t")
	launch := func(th *tt.Thread, name string, stream, device, start, end int64) {
		th.Launch(name, (start-5)*micro, (start-4)*micro, tt.Kernel{Place: tt.Place{Device: device, Stream: stream}, Start: start * micro, End: end * micro})
	}
	launch(one, "a", 7, 0, 0, 10)
	launch(one, "a", 9, 0, 8, 14)
	launch(one, "b", 7, 0, 20, 24)
	launch(one, "a", 7, 1, 0, 20)
	one.StreamSynchronize(25*micro, 55*micro, 0, 7)
	launch(two, "a", 7, 0, 10, 15)
	three.Memcpy(25*micro, 26*micro, tt.Memcpy{Start: 30 * micro, End: 40 * micro, Bytes: 10, Kind: tt.HtoD, Dst: tt.DeviceMemory})
	three.DeviceSynchronize(41*micro, 46*micro, 0)
	three.DeviceSynchronize(47*micro, 54*micro, 0)
	three.Call("cudaGetDevice_v3020", 1, 2)
	return b
}

func TestProcesses(t *testing.T) {
	res := sectiontest.Analyse(t, crowd(), analyze.Options{})
	r := res.Report
	sectiontest.WantStatus(t, r, "processes", report.OK, "")
	sectiontest.Metric(t, r, 40*micro, "kernel.total_time", "pid", "100@1")
	sectiontest.Metric(t, r, 4, "kernel.count", "pid", "100@1")
	sectiontest.Metric(t, r, 38*micro, "process.busy_time", "pid", "100@1")
	sectiontest.Metric(t, r, 5*micro, "kernel.total_time", "pid", "100@2")
	sectiontest.Metric(t, r, 1, "kernel.count", "pid", "100@2")
	sectiontest.Metric(t, r, 5*micro, "process.busy_time", "pid", "100@2")
	sectiontest.Metric(t, r, 10*micro, "process.busy_time", "pid", "300")
	sectiontest.NoMetric(t, r, "kernel.total_time", "pid", "300")
	wantLines(t, cellLines(t, tableNamed(t, res, "processes"), "pid", "process_name", "machine", "kernel_time", "kernels", "busy", "devices", "launches", "syncs", "sync_time"),
		"100 | worker | 1 | 40000 | 4 | 38000 | 0, 1 | 4 | 1 | 30000",
		"100 | worker-two | 2 | 5000 | 1 | 5000 | 0 | 1 | 0 | 0",
		"300 | copier | 1 | 0 | 0 | 10000 | 0 | 0 | 2 | 12000")
	wantLines(t, cellLines(t, tableNamed(t, res, "kernels_by_pid"), "pid", "pid_total", "kernel_name", "device_id", "count", "total", "mean", "share_of_pid"),
		"100 | 40000 | a | 1 | 1 | 20000 | 20000 | 0.5",
		"100 | 40000 | a | 0 | 2 | 16000 | 8000 | 0.4",
		"100 | 40000 | b | 0 | 1 | 4000 | 4000 | 0.1",
		"100 | 5000 | a | 0 | 1 | 5000 | 5000 | 1")
	wantLines(t, cellLines(t, tableNamed(t, res, "sync_by_pid"), "pid", "api_name", "count", "total", "mean"),
		"100 | cudaStreamSynchronize | 1 | 30000 | 30000",
		"300 | cudaDeviceSynchronize | 2 | 12000 | 6000")
	wantCSV(t, tableNamed(t, res, "kernels_by_pid"), "pid,pid_total_kernel_time_ms,pid_pct_of_total_kernel_time,kernel_name,device_id,call_count,total_time_ms,avg_duration_us,pct_of_pid_kernel_time,pct_of_total_kernel_time")
	wantCSV(t, tableNamed(t, res, "sync_by_pid"), "pid,api_name,call_count,total_time_ms,avg_duration_us")
	wantCSV(t, tableNamed(t, res, "nvtx_by_pid"), "pid,range_name,nvtx_count,nvtx_total_time_ms,attributed_kernel_time_ms,attributed_kernel_count,pid_attribution_coverage_pct")
	if n := len(tableNamed(t, res, "nvtx_by_pid").Rows); n != 0 {
		t.Errorf("nvtx_by_pid has %d rows without NVTX", n)
	}
	// Device 0 has 20 of kernel time of VM 1 and 5 of VM 2.
	f := sectiontest.FindingOf(r, "shared_device")
	if f == nil || f.Evidence[0].Labels["pid"] != "100@1" || f.Evidence[1].Labels["pid"] != "100@2" {
		t.Errorf("shared_device: %v", f)
	}
}

func TestProcessesRanges(t *testing.T) {
	res := sectiontest.Analyse(t, nested(), analyze.Options{})
	sectiontest.Metric(t, res.Report, 34*micro, "kernel.total_time", "pid", "100")
	sectiontest.Metric(t, res.Report, 4*micro, "kernel.total_time", "pid", "200")
	wantLines(t, cellLines(t, tableNamed(t, res, "processes"), "pid", "ranges", "coverage"), "100 | 5 | 1", "200 | 0 | 0")
	wantLines(t, cellLines(t, tableNamed(t, res, "nvtx_by_pid"), "pid", "range_name", "count", "wall", "gpu", "self", "kernels", "coverage"),
		"100 | step # | 2 | 140000 | 34000 | 9000 | 2 | 1",
		"100 | aten::mm | 2 | 50000 | 25000 | 15000 | 2 | 1",
		"100 | tail | 1 | 25000 | 10000 | 10000 | 1 | 1")
	if sectiontest.FindingOf(res.Report, "shared_device") != nil {
		t.Error("finds a shared device where each process has its own")
	}
}

// Only the top kernels of each process have a row; the others row makes the total whole.
func TestKernelsByPidCut(t *testing.T) {
	b := tt.New()
	for p := range int64(2) {
		th := b.Process(100+p, "p").Thread(100+p, "t")
		for i := range int64(14) {
			at := (100*p + 2*i) * micro
			th.Launch("kernel_"+string(rune('a'+i)), at, at+1, tt.Kernel{Place: tt.Place{Device: p}, Start: at + 10, End: at + 110 + 10*i - p})
		}
	}
	// Durations 100 + 10 i - p: of pid 100 100 to 230, together 2310; of pid 101 one less each, 2296.
	table := tableNamed(t, sectiontest.Analyse(t, b, analyze.Options{}), "kernels_by_pid")
	if got := len(table.Rows); got != 21 || !table.Others || table.TotalRows != 28 {
		t.Fatalf("%d rows, others %v, of %d; want 10 of each process and the others, of 28", got, table.Others, table.TotalRows)
	}
	got := cellLines(t, table, "pid", "kernel_name", "count", "total")
	wantLines(t, []string{got[0], got[9], got[10], got[20]},
		"100 | kernel_n | 1 | 230", "100 | kernel_e | 1 | 140", "101 | kernel_n | 1 | 229", "null | (others) | 8 | 916") // 100+110+120+130 = 460, and 456
}

func TestProcessesWithoutPids(t *testing.T) {
	res := sectiontest.Analyse(t, tt.Tiny(tt.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid")), analyze.Options{})
	sectiontest.WantStatus(t, res.Report, "processes", report.Partial, "globalPid")
	sectiontest.NoMetric(t, res.Report, "kernel.total_time", "pid", "100")
	got := cellLines(t, tableNamed(t, res, "processes"), "pid", "kernel_time", "launches")
	wantLines(t, got, "100 | 0 | 12", "null | 755000 | 0")

	res = sectiontest.Analyse(t, tt.Tiny(tt.WithoutTable("CUPTI_ACTIVITY_KIND_KERNEL")), analyze.Options{})
	wantLines(t, cellLines(t, tableNamed(t, res, "processes"), "pid", "kernel_time", "kernels", "launches"), "100 | null | null | 12")

	b := tt.New()
	b.OSRT(tt.OSRT{Name: "poll", Start: 1, End: 2})
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.WantStatus(t, r, "processes", report.NotApplicable, "")
}

// The arguments of a command line are no part of a process name.
func TestProcessNameWithoutArguments(t *testing.T) {
	res := sectiontest.Analyse(t, crowd(), analyze.Options{})
	for _, line := range cellLines(t, tableNamed(t, res, "processes"), "process_name") {
		if strings.Contains(line, "key") || strings.Contains(line, "/") {
			t.Errorf("process name %q", line)
		}
	}
}

// 120 processes, two of each pid: metrics of their own have the 100 with most kernel time, which are the last ones.
func TestProcessesThatShareAPIDKeepMetricsByTime(t *testing.T) {
	b := tt.New()
	for i := range int64(120) {
		th := b.Process(1+i%60, "rank", tt.OnMachine(0, 1+i/60)).Thread(1+i%60, "t")
		th.Launch("k", i*10*micro, i*10*micro+100, tt.Kernel{Start: (i*10 + 1) * micro, End: (i*10+1)*micro + 100 + i*10})
	}
	has := map[string]bool{}
	for _, m := range sectiontest.Analyse(t, b, analyze.Options{}).Report.Metrics {
		if m.ID == "launch.count" {
			has[m.Labels["pid"]] = true
		}
	}
	if !has["60@2"] || !has["21@1"] || has["20@1"] || has["1@1"] {
		t.Errorf("60@2 %v, 21@1 %v, 20@1 %v, 1@1 %v; want the first two", has["60@2"], has["21@1"], has["20@1"], has["1@1"])
	}
}
