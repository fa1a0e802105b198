package host_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"

	tt "github.com/nsys-llm/explain/analyze/tracetest"
)

const micro = 1000

// tableNamed finds a table of the report or of the details.
func tableNamed(tb testing.TB, res *analyze.Result, id string) *report.Table {
	tb.Helper()
	for i := range res.Report.Sections {
		for j := range res.Report.Sections[i].Tables {
			if t := &res.Report.Sections[i].Tables[j]; t.ID == id {
				return t
			}
		}
	}
	for i := range res.Details {
		if res.Details[i].ID == id {
			return &res.Details[i]
		}
	}
	tb.Fatalf("no table %s", id)
	return nil
}

// cellLines writes a table's rows as text, the given columns only: what a test compares.
func cellLines(tb testing.TB, t *report.Table, columns ...string) []string {
	tb.Helper()
	var list []string
	for _, row := range t.Rows {
		var cells []string
		for _, id := range columns {
			at := -1
			for j, c := range t.Columns {
				if c.ID == id {
					at = j
				}
			}
			if at < 0 {
				tb.Fatalf("table %s has no column %s", t.ID, id)
			}
			b, err := row[at].MarshalJSON()
			if err != nil {
				tb.Fatal(err)
			}
			cells = append(cells, strings.Trim(string(b), `"`))
		}
		list = append(list, strings.Join(cells, " | "))
	}
	return list
}

func wantLines(tb testing.TB, got []string, want ...string) {
	tb.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		tb.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// csvNames are the names of a table's columns in its CSV file.
func csvNames(t *report.Table) map[string]bool {
	names := map[string]bool{}
	for _, c := range t.Columns {
		if len(c.CSV) == 0 {
			names[c.ID] = true
		}
		for _, n := range c.CSV {
			names[n.Name] = true
		}
	}
	return names
}

func wantCSV(tb testing.TB, t *report.Table, columns string) {
	tb.Helper()
	have := csvNames(t)
	for _, n := range strings.Split(columns, ",") {
		if !have[n] {
			tb.Errorf("%s has no column %s", t.File, n)
		}
	}
}

// warningCodes are the warnings of a section, in their order.
func warningCodes(r *report.Report, id string) []string {
	var list []string
	for _, w := range r.Warnings {
		if w.Section == id {
			list = append(list, w.Code)
		}
	}
	return list
}

// nested is, in µs, with the API call of each kernel in brackets:
//
//	pid 100, thread 1   step 1 0-100 ⊃ aten::mm 10-60 ⊃ aten::mm 20-40; tail 95-open
//	pid 100, thread 2   step 2 50-90
//	pid 200, thread 3   no range, an NVTX mark
//	device 0            k1 30-40 [25-28], k2 50-55 [45-48], k3 80-82 [70-72], k4 90-97 [60-62, thread 2], k6 110-120 [96-98]
//	device 1            k5 100-104 [10-12, pid 200]
//
// The last event ends at 120, and so does tail. Kernel time 38, of pid 100 34.
func nested(opts ...tt.Option) *tt.Builder {
	b := tt.New(opts...)
	p := b.Process(100, "python")
	t1, t2 := p.Thread(101, "main"), p.Thread(102, "side")
	t3 := b.Process(200, "python").Thread(200, "main")
	launch := func(th *tt.Thread, name string, from, to, start, end, device int64) {
		th.Launch(name, from*micro, to*micro, tt.Kernel{Place: tt.Place{Device: device}, Start: start * micro, End: end * micro})
	}
	t1.Range("step 1", 0, 100*micro)
	t1.RangeByID("aten::mm, seq = 7, op_id = 11", 10*micro, 60*micro)
	t1.RangeByID("aten::mm, seq = 8, op_id = 12", 20*micro, 40*micro)
	t1.Range("tail", 95*micro, tt.Open)
	t2.Range("step 2", 50*micro, 90*micro)
	t3.Mark("hello", 5*micro)
	launch(t1, "k1", 25, 28, 30, 40, 0)
	launch(t1, "k2", 45, 48, 50, 55, 0)
	launch(t1, "k3", 70, 72, 80, 82, 0)
	launch(t2, "k4", 60, 62, 90, 97, 0)
	launch(t1, "k6", 96, 98, 110, 120, 0)
	launch(t3, "k5", 10, 12, 100, 104, 1)
	return b
}

func TestNVTX(t *testing.T) {
	res := sectiontest.Analyse(t, nested(), analyze.Options{})
	r := res.Report
	sectiontest.WantStatus(t, r, "nvtx", report.OK, "")
	total := 38.0
	sectiontest.Metric(t, r, 34/total, "nvtx.coverage")
	sectiontest.Metric(t, r, 1, "nvtx.coverage", "pid", "100")
	sectiontest.Metric(t, r, 0, "nvtx.coverage", "pid", "200")
	sectiontest.Metric(t, r, 5, "nvtx.count")
	for _, want := range []struct {
		name                          string
		gpu, pairs, self, count, wall int64
	}{
		{"step #", 34, 5, 9, 2, 140},   // all kernels of pid 100; k3 and k4 of its own; 100 on thread 1, 40 on thread 2
		{"aten::mm", 25, 3, 15, 2, 50}, // k1 in two of them, k2 in one; 20-40 lies inside 10-60
		{"tail", 10, 1, 10, 1, 25},     // k6; 95 to the last event
	} {
		sectiontest.Metric(t, r, float64(want.gpu*micro), "nvtx.gpu_time", "range", want.name)
		sectiontest.Metric(t, r, float64(want.self*micro), "nvtx.gpu_time_self", "range", want.name)
		sectiontest.Metric(t, r, float64(want.wall*micro), "nvtx.wall_time", "range", want.name)
		sectiontest.Metric(t, r, float64(want.count), "nvtx.count", "range", want.name)
		sectiontest.Metric(t, r, float64(want.gpu*micro), "nvtx.gpu_time", "pid", "100", "range", want.name)
		sectiontest.Metric(t, r, float64(want.self*micro), "nvtx.gpu_time_self", "pid", "100", "range", want.name)
		sectiontest.Metric(t, r, float64(want.wall*micro), "nvtx.wall_time", "pid", "100", "range", want.name)
		sectiontest.Metric(t, r, float64(want.count), "nvtx.count", "pid", "100", "range", want.name)
		if m := r.Find("nvtx.gpu_time", report.Labels{"range": want.name}); m != nil && m.N != want.pairs {
			t.Errorf("%s: %d pairs, want %d", want.name, m.N, want.pairs)
		}
	}
	wantLines(t, cellLines(t, tableNamed(t, res, "nvtx_ranges"), "range_name", "count", "gpu", "self", "kernels", "wall", "sum"),
		"step # | 2 | 34000 | 9000 | 5 | 140000 | 140000",
		"aten::mm | 2 | 25000 | 15000 | 3 | 50000 | 70000",
		"tail | 1 | 10000 | 10000 | 1 | 25000 | 25000")
	wantLines(t, cellLines(t, tableNamed(t, res, "nvtx_instances"), "range_name", "start", "duration", "pid", "tid", "open"),
		"step 1 | 0 | 100000 | 100 | 101 | false",
		"aten::mm, seq = 7, op_id = 11 | 10000 | 50000 | 100 | 101 | false",
		"step 2 | 50000 | 40000 | 100 | 102 | false",
		"tail | 95000 | 25000 | 100 | 101 | true",
		"aten::mm, seq = 8, op_id = 12 | 20000 | 20000 | 100 | 101 | false")
	wantCSV(t, tableNamed(t, res, "nvtx_ranges"), "range_name,count,total_time_ms,avg_duration_us")
	wantCSV(t, tableNamed(t, res, "nvtx_instances"), "range_name,start_ns,end_ns,dur_ms,pid,tid,name,duration_ms,thread_id")
	wantLines(t, warningCodes(r, "nvtx"), "nvtx_coverage_pid") // pid 200; 34 of 38 is enough for the whole
	if f := sectiontest.FindingOf(r, "nvtx_present"); f == nil || f.Severity != sectiontest.Remark {
		t.Errorf("finding nvtx_present = %v", f)
	}
}

func TestNVTXTiny(t *testing.T) {
	r := sectiontest.Analyse(t, tt.Tiny(), analyze.Options{}).Report
	sectiontest.Metric(t, r, 705.0/755, "nvtx.coverage")
	sectiontest.Metric(t, r, 705*micro, "nvtx.gpu_time", "range", "step #")            // 385 + 320
	sectiontest.Metric(t, r, (145+320)*micro, "nvtx.gpu_time_self", "range", "step #") // step 2 has no inner range
	sectiontest.Metric(t, r, (390+480)*micro, "nvtx.wall_time", "range", "step #")     // 80-470 and 580-1060
	sectiontest.Metric(t, r, 200*micro, "nvtx.gpu_time", "range", "attention")
	sectiontest.Metric(t, r, 40*micro, "nvtx.gpu_time", "range", "mlp")
	wantLines(t, warningCodes(r, "nvtx"))
}

// Correlation ids that repeat between processes must not mix them up: nsys-llm-explainer reports 200 % here.
func TestNVTXTwoProcesses(t *testing.T) {
	r := sectiontest.Analyse(t, tt.TwoProcs(), analyze.Options{}).Report
	sectiontest.Metric(t, r, 1, "nvtx.coverage")
	sectiontest.Metric(t, r, 1, "nvtx.coverage", "pid", "100")
	sectiontest.Metric(t, r, 1, "nvtx.coverage", "pid", "200")
	sectiontest.Metric(t, r, 60*micro, "nvtx.gpu_time", "range", "rank #")
	sectiontest.Metric(t, r, 40*micro, "nvtx.gpu_time", "pid", "100", "range", "rank #")
	sectiontest.Metric(t, r, 20*micro, "nvtx.gpu_time", "pid", "200", "range", "rank #")
}

func TestNVTXLowCoverage(t *testing.T) {
	r := sectiontest.Analyse(t, nested(), analyze.Options{CoverageWarn: 0.95}).Report
	wantLines(t, warningCodes(r, "nvtx"), "nvtx_coverage", "nvtx_coverage_pid")
	if text := r.Warnings[0].Text; r.Warnings[0].Code == "nvtx_coverage" && !strings.Contains(text, "89.5 %") { // 34 of 38
		t.Errorf("warning: %s", text)
	}
	r = sectiontest.Analyse(t, nested(), analyze.Options{CoverageWarn: -1}).Report
	wantLines(t, warningCodes(r, "nvtx"))
}

// The window 40-100 after the first kernel (which starts at 30) holds what starts in 70-130: of the ranges only tail, of the
// kernels k3 80-82, k4, k5 and k6, of which step # covers all but k5 though both steps started before.
func TestNVTXWindow(t *testing.T) {
	from := 40 * time.Microsecond
	res := sectiontest.Analyse(t, nested(), analyze.Options{Window: analyze.WindowOptions{From: &from}})
	r := res.Report
	covered := 2.0 + 7 + 10
	sectiontest.Metric(t, r, covered/(covered+4), "nvtx.coverage")
	sectiontest.Metric(t, r, 1, "nvtx.count")
	sectiontest.Metric(t, r, covered*micro, "nvtx.gpu_time", "range", "step #")
	sectiontest.NoMetric(t, r, "nvtx.wall_time", "range", "step #")
	sectiontest.Metric(t, r, 25*micro, "nvtx.wall_time", "range", "tail")
	wantLines(t, cellLines(t, tableNamed(t, res, "nvtx_ranges"), "range_name", "count", "gpu", "wall", "mean"),
		"step # | 0 | 19000 | 0 | null",
		"tail | 1 | 10000 | 25000 | 25000")
}

func TestNVTXWithoutAttribution(t *testing.T) {
	const kernels, api, ranges = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
	for _, c := range []struct {
		name   string
		option tt.Option
		opt    analyze.Options
		reason string
	}{
		{"switched off", nil, analyze.Options{NoRangeMap: true}, "--no-nvtx-kernel-map"},
		{"no kernels", tt.WithoutTable(kernels), analyze.Options{}, "GPU activity was not captured"},
		{"no API calls", tt.WithoutTable(api), analyze.Options{}, "no CUDA API calls"},
		{"no correlation id of kernels", tt.WithoutColumn(kernels, "correlationId"), analyze.Options{}, "correlationId"},
		{"no correlation id of calls", tt.WithoutColumn(api, "correlationId"), analyze.Options{}, "correlationId"},
		{"no process of kernels", tt.WithoutColumn(kernels, "globalPid"), analyze.Options{}, "globalPid"},
		{"no thread of calls", tt.WithoutColumn(api, "globalTid"), analyze.Options{}, "globalTid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var opts []tt.Option
			if c.option != nil {
				opts = append(opts, c.option)
			}
			res := sectiontest.Analyse(t, nested(opts...), c.opt)
			sectiontest.WantStatus(t, res.Report, "nvtx", report.Partial, c.reason)
			sectiontest.NoMetric(t, res.Report, "nvtx.coverage")
			sectiontest.NoMetric(t, res.Report, "nvtx.gpu_time", "range", "step #")
			sectiontest.Metric(t, res.Report, 140*micro, "nvtx.wall_time", "range", "step #")
			wantLines(t, warningCodes(res.Report, "nvtx"))
			wantLines(t, cellLines(t, tableNamed(t, res, "nvtx_ranges"), "range_name", "gpu", "self", "kernels", "self_share")[:1], "step # | null | null | null | null")
		})
	}
	t.Run("no thread of ranges", func(t *testing.T) {
		r := sectiontest.Analyse(t, nested(tt.WithoutColumn(ranges, "globalTid")), analyze.Options{}).Report
		sectiontest.WantStatus(t, r, "nvtx", report.Partial, "globalTid")
		sectiontest.Metric(t, r, 100*micro, "nvtx.wall_time", "range", "step #") // 50-90 lies inside 0-100 if they are on one thread
	})
}

func TestNVTXWithoutRanges(t *testing.T) {
	res := sectiontest.Analyse(t, nested(tt.WithoutTable("NVTX_EVENTS")), analyze.Options{})
	sectiontest.WantStatus(t, res.Report, "nvtx", report.Unavailable, "no NVTX ranges")
	for _, id := range []string{"nvtx_ranges", "nvtx_instances"} {
		if n := len(tableNamed(t, res, id).Rows); n != 0 {
			t.Errorf("%s has %d rows, want the header alone", id, n)
		}
	}
	b := tt.New()
	th := b.Process(1, "p").Thread(1, "t")
	th.Mark("mark", 5)
	th.Launch("k", 0, 1, tt.Kernel{Start: 10, End: 20})
	sectiontest.WantStatus(t, sectiontest.Analyse(t, b, analyze.Options{}).Report, "nvtx", report.NotApplicable, "only marks")
}

func TestNVTXOddRows(t *testing.T) {
	b := tt.New()
	th := b.Process(1, "p").Thread(1, "t")
	th.Range("zero", 50, 50)
	th.Range("back", 60, 40) // enters no sum
	th.Range("", 70, 90)
	th.Launch("k", 75, 80, tt.Kernel{Start: 100, End: 130})
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 2, "nvtx.count")
	sectiontest.Metric(t, r, 0, "nvtx.wall_time", "range", "zero")
	sectiontest.Metric(t, r, 30, "nvtx.gpu_time", "range", "(unnamed)")
	sectiontest.NoMetric(t, r, "nvtx.count", "range", "back")
}

// canonicalRange is our name of a range of NVIDIA's reports: theirs is raw, and starts with the domain if it has one.
func canonicalRange(raw string) string {
	return string(kernelname.AppendRangeCanonical(nil, strings.TrimPrefix(strings.TrimPrefix(raw, "NCCL:"), "cuBLAS:")))
}

// oracleRows runs a test for every trace for which NVIDIA's own tool made the report; rows come as maps by column.
func oracleRows(t *testing.T, name string, test func(t *testing.T, trace string, rows []map[string]string)) {
	root := filepath.Join("..", "..", "..", "..", "shared")
	files, _ := filepath.Glob(filepath.Join(root, "oracle", "*", name))
	if len(files) == 0 {
		t.Skip("no shared/oracle: NVIDIA's own numbers are not part of the project")
	}
	for _, f := range files {
		t.Run(filepath.Base(filepath.Dir(f)), func(t *testing.T) {
			in, err := os.Open(f)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			records, err := csv.NewReader(in).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			var rows []map[string]string
			for _, rec := range records[1:] {
				row := map[string]string{}
				for i, c := range records[0] {
					row[c] = rec[i]
				}
				rows = append(rows, row)
			}
			test(t, filepath.Join(root, "traces", filepath.Base(filepath.Dir(f))+".sqlite"), rows)
		})
	}
}

func wholeNumber(tb testing.TB, text string) int64 {
	tb.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// NVIDIA's nvtx_sum adds up range durations by raw name and style; so does our column sum, by canonical name.
func TestNVTXOracleSum(t *testing.T) {
	oracleRows(t, "nvtx_sum.csv", func(t *testing.T, path string, rows []map[string]string) {
		want := map[string][2]int64{}
		for _, row := range rows {
			name := canonicalRange(row["Range"])
			want[name] = [2]int64{want[name][0] + wholeNumber(t, row["Instances"]), want[name][1] + wholeNumber(t, row["Total Time (ns)"])}
		}
		got := tableNamed(t, sectiontest.AnalyseFile(t, path, analyze.Options{Top: 1000}), "nvtx_ranges")
		for _, line := range cellLines(t, got, "range_name", "count", "sum") {
			cells := strings.Split(line, " | ")
			name := strings.Join(cells[:len(cells)-2], " | ")
			if v := want[unquoteCell(name)]; fmt.Sprint(v[0]) != cells[len(cells)-2] || fmt.Sprint(v[1]) != cells[len(cells)-1] {
				t.Errorf("%s, want %v", line, v)
			}
			delete(want, unquoteCell(name))
		}
		for name, v := range want {
			t.Errorf("%s: missing, want %v", name, v)
		}
	})
}

// NVIDIA's nvtx_kern_sum credits every kernel to each range around its launch, and to an empty name where there is none:
// our inclusive time and pairs by name, and the rest of the kernel time.
func TestNVTXOracleKernels(t *testing.T) {
	oracleRows(t, "nvtx_kern_sum.csv", func(t *testing.T, path string, rows []map[string]string) {
		type sum struct{ pairs, time int64 }
		want := map[string]sum{}
		var unattributed int64
		for _, row := range rows {
			n, ns := wholeNumber(t, row["Kern Inst"]), wholeNumber(t, row["Total Time (ns)"])
			if row["NVTX Range"] == "" {
				unattributed += ns
				continue
			}
			name := canonicalRange(row["NVTX Range"])
			want[name] = sum{want[name].pairs + n, want[name].time + ns}
		}
		r := sectiontest.AnalyseFile(t, path, analyze.Options{}).Report
		for i := range r.Metrics {
			m := &r.Metrics[i]
			if m.ID != "nvtx.gpu_time" || len(m.Labels) != 1 {
				continue
			}
			name := m.Labels["range"]
			if got := (sum{m.N, int64(*m.Value)}); got != want[name] {
				t.Errorf("%s = %v, want %v", name, got, want[name])
			}
			delete(want, name)
		}
		for name, v := range want {
			t.Errorf("%s: missing, want %v", name, v)
		}
		total := *r.Find("kernel.total_time", nil).Value
		sectiontest.Metric(t, r, (total-float64(unattributed))/total, "nvtx.coverage")
	})
}

func unquoteCell(s string) string {
	if u, err := strconv.Unquote(`"` + s + `"`); err == nil {
		return u
	}
	return s
}

// Sixty ranges of 1 µs follow each other in one process, with a kernel of 2 ns launched in each: each has its metrics by
// process, not only the first fifty, where nsys-llm-explainer stopped.
func TestRangesByProcessBeyondFifty(t *testing.T) {
	b := tt.New()
	th := b.Process(7, "p").Thread(7, "")
	for i := range int64(60) {
		name := "layer_" + string(rune('A'+i))
		th.Range(name, i*micro, (i+1)*micro)
		th.Launch("k", i*micro+100, i*micro+200, tt.Kernel{Start: i*micro + 300, End: i*micro + 302})
	}
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	for i := range 60 {
		name := "layer_" + string(rune('A'+i))
		sectiontest.Metric(t, r, 2, "nvtx.gpu_time", "pid", "7", "range", name)
		sectiontest.Metric(t, r, 1*micro, "nvtx.wall_time", "pid", "7", "range", name)
	}
}
