package kernelcounters_test

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

const ncuEvidence = "../../../../testdata/evidence/ncu"

// lookNCU is a report of evidence alone: files of a folder, or a text.
func lookNCU(t *testing.T, path string) (sectiontest.Looker, *analyze.Result) {
	t.Helper()
	if strings.Contains(path, "\n") {
		text := path
		path = filepath.Join(t.TempDir(), "ncu.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	res, err := analyze.Run(t.Context(), "", analyze.Options{Evidence: []analyze.Evidence{{Path: path, Kind: analyze.EvidenceNCU}}})
	if err != nil {
		t.Fatal(err)
	}
	return sectiontest.Looker{TB: t, Report: res.Report}, res
}

// The launches of testdata/evidence/ncu: µs, MB read and written, DRAM, SM and memory in percent.
//
//	fused_moe_kernel     10  20+5    75  30  75        nvjet…   20  10+2     18  90  40        topkGatingSoftmax  4  0.4+0.1   3  62  60
//	fused_moe_kernel     30  60+15   80  40  80        FlashAttnFwdSm90  15  3+1.5  9  55  35   fused_add_rms_norm 5  6+6      72  20  72
//	moe_align (details)   6  67 GB/s  2   4   8
//
// In all 90 µs. DRAM: (75·10 + 80·30 + 18·20 + 9·15 + 72·5 + 3·4 + 2·6) / 90 = 4029/90 = 44.76…; SM: (300 + 1200 + 1800 + 825 + 100 + 248 + 24) / 90
// = 4497/90; memory: (750 + 2400 + 800 + 525 + 360 + 240 + 48) / 90 = 5123/90.
func TestNCUOfTheServer(t *testing.T) {
	l, res := lookNCU(t, ncuEvidence)
	near := func(want float64, id string, pairs ...string) {
		t.Helper()
		m := l.Find(id, labels(pairs...))
		if m == nil || m.Value == nil || math.Abs(*m.Value-want) > 1e-12*math.Abs(want) {
			t.Errorf("%s{%v} = %v, want %v", id, pairs, m, want)
		}
	}
	sectiontest.Metric(t, l.Report, 7, "ncu.launches")
	sectiontest.Metric(t, l.Report, 90*sectiontest.Us, "ncu.duration")
	near(40.29/90, "ncu.dram_ratio")
	near(44.97/90, "ncu.sm_ratio")
	near(51.23/90, "ncu.memory_ratio")
	// Bytes: 25 + 75 + 12 + 4.5 + 12 + 0.5 MB, and 67 GB/s for 6 µs = 0.402 MB.
	near(129.402e6/90e-6, "ncu.dram_throughput")
	// Occupancy: (12·10 + 12.4·30 + 17.5·20 + 15·15 + 78·5 + 60·4 + 11·6) / 90.
	near(17.63/90, "ncu.occupancy")

	const moe = "fused_moe_kernel"
	sectiontest.Metric(t, l.Report, 2, "ncu.launches", "kernel", moe)
	sectiontest.Metric(t, l.Report, 40*sectiontest.Us, "ncu.duration", "kernel", moe)
	near(100e6/40e-6, "ncu.dram_throughput", "kernel", moe)
	sectiontest.Metric(t, l.Report, 100e6, "ncu.dram_bytes", "kernel", moe)
	sectiontest.NoMetric(t, l.Report, "ncu.dram_bytes", "kernel", "void vllm::moe::moe_align_block_size_kernel<int>(const T1 *, int *, int *, int *, int, int, unsigned long, int *)")
	near((75*10+80*30)/40.0/100, "ncu.dram_ratio", "kernel", moe)
	near((30*10+40*30)/40.0/100, "ncu.sm_ratio", "kernel", moe)
	near((12*10+12.4*30)/40.0/100, "ncu.occupancy", "kernel", moe)
	sectiontest.Metric(t, l.Report, 0.125, "ncu.occupancy_limit", "kernel", moe)
	near((10.5*10+12.5*30)/40/100, "ncu.cache_hit_ratio", "kernel", moe, "cache", "l1")
	near((40*10+44*30)/40.0/100, "ncu.cache_hit_ratio", "kernel", moe, "cache", "l2")
	sectiontest.Metric(t, l.Report, 168, "ncu.registers", "kernel", moe)
	s := l.Find("ncu.duration", report.Labels{"kernel": moe}).Summary
	if s.N != 2 || s.Min != 10*sectiontest.Us || s.P50 != 20*sectiontest.Us || s.P90 != 28*sectiontest.Us || s.Max != 30*sectiontest.Us {
		t.Errorf("durations %+v", s)
	}

	// By bound: fused_moe and rms_norm memory (45 µs), nvjet and topk compute (24), FlashAttn and moe_align latency (21).
	for bound, want := range map[string][2]float64{"memory": {45 * sectiontest.Us, 2}, "compute": {24 * sectiontest.Us, 2}, "latency": {21 * sectiontest.Us, 2}, "balanced": {0, 0}} {
		sectiontest.Metric(t, l.Report, want[0], "ncu.bound_time", "bound", bound)
		sectiontest.Metric(t, l.Report, want[1], "ncu.bound_kernels", "bound", bound)
	}
	sectiontest.NoMetric(t, l.Report, "ncu.bound_kernels", "bound", "unknown")
	if c := l.Section("ncu").Coverage; c == nil || *c != 1 {
		t.Errorf("coverage %v", c)
	}
	sectiontest.Metric(t, l.Report, 3, "ncu.moe_kernels") // fused_moe, moe_align, topkGating
	sectiontest.Metric(t, l.Report, 50*sectiontest.Us, "ncu.moe_time")
	sectiontest.NoMetric(t, l.Report, "ncu.trace_coverage")

	tab := l.Table("ncu", "ncu_kernels")
	l.Row(tab, 0, "kernel_name", `"fused_moe_kernel"`, "bound", `"memory"`, "launches", "2", "total", "40000", "dram_ratio", "0.7875", "sm_ratio", "0.375", "grid", "null", "block", `"(256, 1, 1)"`, "trace_share", "null")
	l.CsvHas(tab, "ncu_kernels.csv", "kernel_name", "bound", "total_time_us", "dram_throughput_pct", "sm_throughput_pct")
	l.Finding("top_kernel_bound", sectiontest.Remark)
	l.Finding("low_dram", sectiontest.Remark)
	l.Finding("high_dram", "")
	l.Finding("latency_bound", "")

	for id, want := range map[string]string{
		"kernel_bandwidth_metrics": "kernel_name,dram_read_bytes,dram_write_bytes,dram_throughput_pct,sm_throughput_pct,duration_ns,bandwidth_gbps",
		"roofline_data":            "kernel_name,sm_utilization,memory_utilization,bottleneck,bandwidth_gbps",
		"classification_summary":   "kernel_id,classification",
		"metrics_summary": "kernel_id,kernel_name,display_name,grid_size,block_size,device,cc,process,process_id,sm_throughput_pct,dram_throughput_pct,mem_throughput_pct,l1tex_throughput_pct," +
			"l2_throughput_pct,duration_us,mem_busy_pct,max_bandwidth_pct,memory_throughput_gbs,l1tex_hit_rate_pct,l2_hit_rate_pct,achieved_occupancy_pct,theoretical_occupancy_pct,classification," +
			"roofline_ai_flops_per_byte,roofline_flops_per_s",
	} {
		d := detail(t, res, id)
		var columns []string
		for _, c := range d.Columns {
			for _, f := range c.CSV {
				columns = append(columns, f.Name)
			}
			if len(c.CSV) == 0 {
				columns = append(columns, c.ID)
			}
		}
		if got := strings.Join(columns, ","); got != want {
			t.Errorf("%s: columns %s", id, got)
		}
	}
	bandwidth := detail(t, res, "kernel_bandwidth_metrics")
	l.Row(bandwidth, 0, "dram_read_bytes", "40000000", "dram_write_bytes", "10000000", "duration_ns", "20000", "bandwidth_gbps", "2500000000000")
	l.Row(detail(t, res, "ncu_launches"), 2, "kernel_name", `"fused_moe_kernel"`, "id", "1", "duration", "30000", "grid", `"(720, 1, 1)"`)
	if n := len(detail(t, res, "ncu_moe").Rows); n != 3 {
		t.Errorf("%d kernels of experts", n)
	}
	l.Row(detail(t, res, "classification_summary"), 0, "classification", `"memory_bound"`)
	if id, _ := detail(t, res, "metrics_summary").Rows[0][0].Str(); id != "kernel_0001_6085a6215eda2a9886533b6aac181849" { // MD5 of fused_moe_kernel
		t.Errorf("kernel id %s", id)
	}
}

func labels(pairs ...string) report.Labels {
	l := report.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	return l
}

// detail is a table that is a file only.
func detail(t *testing.T, res *analyze.Result, id string) *report.Table {
	t.Helper()
	for i := range res.Details {
		if res.Details[i].ID == id {
			return &res.Details[i]
		}
	}
	t.Fatalf("no table %s", id)
	return nil
}

// ncuPage is a raw page of launches: name, µs, SM %, DRAM %.
func ncuPage(launches ...string) string {
	const pct = ".avg.pct_of_peak_sustained_elapsed"
	text := `"ID","Kernel Name","gpu__time_duration.sum","sm__throughput` + pct + `","gpu__dram_throughput` + pct + `"` + "\n" + `"","","us","%","%"` + "\n"
	for i, l := range launches {
		text += `"` + strconv.Itoa(i) + `","` + strings.Join(strings.Split(l, "|"), `","`) + "\"\n"
	}
	return text
}

// The findings' rules: DRAM throughput on average above 85 % and below 50 %, half of the time in kernels bound by latency.
func TestNCUFindings(t *testing.T) {
	l, _ := lookNCU(t, ncuPage("a|10|20|86", "b|10|20|85.5"))
	l.Finding("high_dram", sectiontest.Remark)
	l.Finding("low_dram", "")
	l.Finding("latency_bound", "")
	l, _ = lookNCU(t, ncuPage("a|10|20|84", "b|10|20|85.5"))
	l.Finding("high_dram", "")
	l, _ = lookNCU(t, ncuPage("a|10|70|50", "b|10|30|50"))
	l.Finding("low_dram", "")
	l.Finding("latency_bound", sectiontest.Remark)
	l, _ = lookNCU(t, ncuPage("a|11|70|49", "b|10|30|50"))
	l.Finding("low_dram", sectiontest.Remark)
	l.Finding("latency_bound", "")
}

// Pages without what a bound needs, and without any launch.
func TestNCUWithoutThroughput(t *testing.T) {
	l, _ := lookNCU(t, ncuPage("a|10|n/a|86", "b|30||"))
	l.Status("ncu", report.Partial)
	sectiontest.Metric(t, l.Report, 40*sectiontest.Us, "ncu.bound_time", "bound", "unknown")
	if m := l.Find("ncu.sm_ratio", nil); m == nil || m.Value != nil || m.N != 0 {
		t.Errorf("SM throughput %+v, want unknown", m)
	}
	l, _ = lookNCU(t, ncuPage())
	l.Status("ncu", report.Unavailable)
	l.Status("roofline", report.Unavailable)
	sectiontest.Metric(t, l.Report, 0, "ncu.launches")
	sectiontest.NoMetric(t, l.Report, "ncu.duration")
}

// Kernels of a trace find what was measured of them: by spelling, without namespaces where ncu printed none, and by a bare function's name
// where it is one kernel's alone. 60 of 100 µs were measured.
func TestNCUBesideATrace(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	at := int64(0)
	for _, k := range []struct {
		name string
		us   int64
	}{
		{"void ns::f<(int)8>(float *)", 10}, {"void ns::g<(bool)1>(int)", 20}, {"void ns::only<float>(int)", 30}, {"void ns::twice<float>(int)", 15}, {"void ns::twice<int>(int)", 15}, {"void other::g2(int)", 10},
	} {
		th.Launch(k.name, at, at+1, tracetest.Kernel{Start: at, End: at + k.us*sectiontest.Us})
		at += k.us * sectiontest.Us
	}
	path := filepath.Join(t.TempDir(), "ncu.csv")
	text := ncuPage("void ns::f<8>(float*)|1|70|20", "void g<1>(int)|1|20|70", "only|1|65|65", "twice|1|90|10", "void ns::g2(int)|1|90|10")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	l := sectiontest.Look(t, b, analyze.Options{Evidence: []analyze.Evidence{{Path: path}}})
	got := map[string]string{}
	tab := l.Table("kernels", "kernels")
	for i := range tab.Rows {
		got[l.Cell(tab, i, "kernel_name")] = l.Cell(tab, i, "bound") + " " + l.Cell(tab, i, "sm_ratio") + " " + l.Cell(tab, i, "dram_ratio")
	}
	for name, want := range map[string]string{
		`"void ns::f<(int)8>(float *)"`: `"compute" 0.7 0.2`, `"void ns::g<(bool)1>(int)"`: `"memory" 0.2 0.7`, `"void ns::only<float>(int)"`: `"balanced" 0.65 0.65`,
		`"void ns::twice<float>(int)"`: "null null null", `"void other::g2(int)"`: "null null null",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	if m := l.Find("ncu.trace_coverage", nil); m == nil || math.Abs(*m.Value-0.6) > 1e-12 {
		t.Errorf("coverage %+v", m)
	}
	l.Finding("few_measured", "")
	l.Finding("top_kernel_bound", sectiontest.Remark)
	l.CsvHas(tab, "kernels.csv", "kernel_name", "bound", "dram_throughput_pct", "sm_throughput_pct")

	// The server's GPUs are H100s; so is that of the raw page of testdata, and an A10G is another one.
	raw, err := os.ReadFile(filepath.Join(ncuEvidence, "raw.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"NVIDIA H100 80GB HBM3": false, "NVIDIA A10G": true} {
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(raw), "NVIDIA H100 80GB HBM3", name)), 0o644); err != nil {
			t.Fatal(err)
		}
		warned := false
		for _, w := range sectiontest.AnalyseFile(t, "../../../../testdata/serving.sqlite", analyze.Options{Evidence: []analyze.Evidence{{Path: path}}}).Report.Warnings {
			warned = warned || w.Code == "ncu_other_gpu"
		}
		if warned != want {
			t.Errorf("%s: warned of another GPU: %v", name, warned)
		}
	}

	plain := sectiontest.Look(t, b, analyze.Options{})
	for _, c := range plain.Table("kernels", "kernels").Columns {
		if c.ID == "bound" {
			t.Error("without evidence the table of kernels has its columns")
		}
	}
}

// The top kernel is bound by memory, and its loads use 40 % of each sector; of 90 % nothing is said, nor of a kernel that
// computes.
func TestSectorsThatAreNotUsed(t *testing.T) {
	head := "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"sm__throughput.avg.pct_of_peak_sustained_elapsed\",\"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\"," +
		"\"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct\",\"smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct\"," +
		"\"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio\"\n\"\",\"\",\"us\",\"%\",\"%\",\"%\",\"%\",\"sector/request\"\n"
	for row, want := range map[string]string{
		`"0","gather","10","20","80","40","100","10"`:  "The top kernel is bound by memory, and its loads use 40.0 % of each sector",
		`"0","stream","10","20","80","90","100","4.4"`: "The top kernel is bound by memory",
		`"0","gemm","10","90","20","40","100","10"`:    "The top kernel is bound by compute",
	} {
		l, _ := lookNCU(t, head+row+"\n")
		said := ""
		for i := range l.Remarks {
			if l.Remarks[i].ID == "top_kernel_bound" {
				said = l.Remarks[i].Title
			}
		}
		if said != want {
			t.Errorf("%s: %q, want %q", row, said, want)
		}
		if strings.Contains(row, "gather") {
			sectiontest.Metric(t, l.Report, 0.4, "ncu.sector_use_ratio", "kernel", "gather", "access", "load")
			sectiontest.Metric(t, l.Report, 10, "ncu.sectors_per_request", "kernel", "gather", "access", "load")
		}
	}
}
