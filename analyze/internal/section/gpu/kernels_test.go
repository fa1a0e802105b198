package gpu_test

import (
	"encoding/csv"
	"fmt"
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

// fourAndTwo has four launches of kernel a, 10 to 40 µs, on two devices, and two of kernel b, 30 µs each, on device 1.
func fourAndTwo(opts ...tracetest.Option) *tracetest.Builder {
	b := tracetest.New(opts...)
	th := b.Process(1, "p").Thread(1, "")
	launch := func(name string, device, start, length, grid int64) {
		th.Launch(name, start*sectiontest.Us, start*sectiontest.Us+1, tracetest.Kernel{
			Place: tracetest.Place{Device: device}, Start: start * sectiontest.Us, End: (start + length) * sectiontest.Us, Grid: [3]int64{grid, 2, 1}, Block: [3]int64{64, 1, 1},
		})
	}
	launch("a", 0, 0, 30, 4)
	launch("a", 0, 100, 10, 8)
	launch("a", 1, 200, 40, 4)
	launch("a", 1, 300, 20, 4)
	launch("b", 1, 400, 30, 5)
	launch("b", 1, 500, 30, 4)
	return b
}

// Two captures without kernel rows. In one CUDA was traced and nothing launched: there were 0 kernels. In the other there was
// a launch, so the kernel is missing, and how many there were is unknown.
func TestNoKernelsOrNotCaptured(t *testing.T) {
	for _, c := range []struct {
		api    string
		status report.Status
		known  bool
	}{{"cudaMalloc_v3020", report.NotApplicable, true}, {"cudaLaunchKernel_v7000", report.Unavailable, false}} {
		b := tracetest.New()
		b.Process(1, "p").Thread(1, "").Call(c.api, 10*sectiontest.Us, 20*sectiontest.Us)
		l := sectiontest.Look(t, b, analyze.Options{})
		l.Status("kernels", c.status)
		if c.known {
			sectiontest.Metric(t, l.Report, 0, "kernel.count")
			sectiontest.Metric(t, l.Report, 0, "kernel.total_time")
		} else {
			sectiontest.NoMetric(t, l.Report, "kernel.count")
			sectiontest.NoMetric(t, l.Report, "kernel.total_time")
		}
	}

	// NVTX alone: nothing was launched, so the capture holds no kernel and no launch.
	b := tracetest.New()
	b.Process(1, "p").Thread(1, "").Range("step", 10*sectiontest.Us, 20*sectiontest.Us)
	l := sectiontest.Look(t, b, analyze.Options{})
	l.Status("kernels", report.Unavailable)
	l.Status("launches", report.Unavailable)
	sectiontest.Metric(t, l.Report, 0, "kernel.count")
	sectiontest.Metric(t, l.Report, 0, "launch.count")
	sectiontest.NoMetric(t, l.Report, "launch.rate")
}

// Durations of a in order: 10, 20, 30, 40 µs. Total 100, mean 25, p50 25 (rank 1.5), p90 37 (rank 2.7), p99 39.7 (rank
// 2.97). Of 160 in all, a is 0.625 and b 0.375. Most launches of a have grid 4×2×1; b's two tie, and 5×2×1 came first.
// Blocks per launch: a 8, 16, 8 and 8, mean 10; b 10 and 8, mean 9.
func TestTopKernels(t *testing.T) {
	l := sectiontest.Look(t, fourAndTwo(), analyze.Options{})
	sectiontest.Metric(t, l.Report, 160*sectiontest.Us, "kernel.total_time")
	sectiontest.Metric(t, l.Report, 6, "kernel.count")
	sectiontest.Metric(t, l.Report, 100*sectiontest.Us, "kernel.total_time", "kernel", "a")
	sectiontest.Metric(t, l.Report, 4, "kernel.count", "kernel", "a")
	sectiontest.Metric(t, l.Report, 0.625, "kernel.share", "kernel", "a")
	sectiontest.Metric(t, l.Report, 60.0/530, "kernel.window_share", "kernel", "a") // on GPU 1, of 0 to 530 µs
	sectiontest.Metric(t, l.Report, 40*sectiontest.Us, "kernel.total_time", "device", "0")
	sectiontest.Metric(t, l.Report, 120*sectiontest.Us, "kernel.total_time", "device", "1")
	sectiontest.Metric(t, l.Report, 2, "kernel.count", "device", "0")
	sectiontest.Metric(t, l.Report, 4, "kernel.count", "device", "1")

	s := l.Find("kernel.total_time", report.Labels{"kernel": "a"}).Summary
	for _, c := range [][2]float64{{s.Min, 10_000}, {s.P50, 25_000}, {s.P90, 37_000}, {s.P99, 39_700}, {s.Max, 40_000}, {s.Mean, 25_000}, {float64(s.N), 4}} {
		if math.Abs(c[0]-c[1]) > 1e-6 {
			t.Errorf("summary of a: %v, want %v", c[0], c[1])
		}
	}
	if want := math.Sqrt(125) * sectiontest.Us; math.Abs(s.Stddev-want) > 1e-6 { // deviations 15, 5, 5, 15: mean square 125
		t.Errorf("standard deviation of a: %v, want %v", s.Stddev, want)
	}
	tab := l.Table("kernels", "kernels")
	l.Row(tab, 0, "kernel_name", `"a"`, "device_id", "null", "count", "4", "total", "100000", "share", "0.625", "mean", "25000",
		"min", "10000", "max", "40000", "p50", "25000", "grid", `"4×2×1"`, "block", `"64×1×1"`)
	l.Row(tab, 0, "avg_grid_size", "10", "avg_block_size", "64")
	l.Row(tab, 1, "kernel_name", `"b"`, "device_id", "1", "count", "2", "p50", "30000", "grid", `"5×2×1"`, "avg_grid_size", "9")
	l.CsvHas(tab, "kernels.csv", "kernel_name", "device_id", "call_count", "total_time_ns", "total_time_ms", "avg_duration_us",
		"min_duration_us", "max_duration_us", "p50_duration_us", "p90_duration_us", "pct_total_kernel_time")
	per := l.Table("kernels", "kernels_per_device")
	l.Row(per, 0, "kernel_name", `"a"`, "device_id", "1", "count", "2", "total", "60000", "share", "0.375", "mean", "30000", "p50", "30000", "min", "20000", "max", "40000")
	l.Row(per, 1, "kernel_name", `"b"`, "device_id", "1", "total", "60000")
	l.Row(per, 2, "kernel_name", `"a"`, "device_id", "0", "total", "40000")
	l.Finding("dominant_kernel", "") // on the busier device a and b take 60 each, of a window of more than 500: less than a third
	l.Finding("large_kernel", "remark")
}

func TestCutKernelTableStillSums(t *testing.T) {
	l := sectiontest.Look(t, fourAndTwo(), analyze.Options{Top: 1})
	tab := l.Table("kernels", "kernels")
	if len(tab.Rows) != 2 || tab.TotalRows != 2 || !tab.Others {
		t.Fatalf("rows %d, total %d, others %v", len(tab.Rows), tab.TotalRows, tab.Others)
	}
	l.Row(tab, 1, "kernel_name", `"(others)"`, "count", "2", "total", "60000", "share", "0.375", "p50", "null")
	if got := l.Sum(tab, "total"); got != 160*sectiontest.Us {
		t.Errorf("total column sums to %v", got)
	}
	sectiontest.NoMetric(t, l.Report, "kernel.share", "kernel", "b")
	sectiontest.Metric(t, l.Report, 60*sectiontest.Us, "kernel.total_time", "kernel", "b")
}

func TestPercentilesCanBeLeftOut(t *testing.T) {
	l := sectiontest.Look(t, fourAndTwo(), analyze.Options{NoPercentiles: true})
	l.Row(l.Table("kernels", "kernels"), 0, "p50", "null", "p90", "null", "p99", "null", "mean", "25000")
	if m := l.Find("kernel.total_time", report.Labels{"kernel": "a"}); m.Summary != nil || m.Histogram != nil {
		t.Error("percentiles were asked to be left out")
	}
}

// A third of the kernel time is a large share, half is dominant. Of kernels that take as long, the first by name is
// told.
func TestLargeKernelIsFound(t *testing.T) {
	for _, names := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		for i, name := range names {
			at := int64(i) * 10 * sectiontest.Us
			th.Launch(name, at, at+1, tracetest.Kernel{Start: at, End: at + 10*sectiontest.Us})
		}
		l := sectiontest.Look(t, b, analyze.Options{})
		l.Finding("large_kernel", report.High)
		l.Finding("dominant_kernel", "")
		if title := l.Findings[0].Title; !strings.HasPrefix(title, "`a`") {
			t.Errorf("%v: %s", names, title)
		}
	}
}

// One kernel is all of the kernel time, and 20 of 1000 µs: it dominates the kernels, and is no place to start.
func TestMinorKernelIsNoPlaceToStart(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	for _, at := range []int64{0, 990 * sectiontest.Us} {
		th.Launch("a", at, at+1, tracetest.Kernel{Start: at, End: at + 10*sectiontest.Us})
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	l.Finding("dominant_kernel", "remark")
	if l.Findings[0].ID != "gpu_idle" {
		t.Errorf("first %+v", l.Findings[0])
	}
}

// The largest kernel outside of graphs has 60 of 100 µs, and of all 9100 µs next to nothing.
func TestHiddenGraphsMakeNoKernelDominant(t *testing.T) {
	l := sectiontest.Look(t, tracetest.GraphHidden(), analyze.Options{})
	l.Status("kernels", report.Partial)
	if c, kernels, all := l.Section("kernels").Coverage, 100.0, 9100.0; c == nil || *c != kernels/all {
		t.Errorf("coverage = %v, want %v", c, kernels/all)
	}
	l.Finding("dominant_kernel", "")
	l.Finding("large_kernel", "")
}

// A name that the string table lacks keeps its rows.
func TestDanglingNamesKeepTheirRows(t *testing.T) {
	l := sectiontest.Look(t, fourAndTwo(tracetest.DanglingID("a")), analyze.Options{})
	sectiontest.Metric(t, l.Report, 160*sectiontest.Us, "kernel.total_time")
	sectiontest.Metric(t, l.Report, 6, "kernel.count")
	l.Row(l.Table("kernels", "kernels"), 0, "count", "4", "total", "100000")
}

// From 100 to 320 µs: a starts at 100, 200 and 300; what starts in the window counts in full.
func TestKernelsOfANarrowWindow(t *testing.T) {
	l := sectiontest.Look(t, fourAndTwo(), analyze.Options{Window: between(100*sectiontest.Us, 310*sectiontest.Us)})
	sectiontest.Metric(t, l.Report, 3, "kernel.count")
	sectiontest.Metric(t, l.Report, 70*sectiontest.Us, "kernel.total_time")
	sectiontest.NoMetric(t, l.Report, "kernel.total_time", "kernel", "b")
	sectiontest.Look(t, fourAndTwo(), analyze.Options{Window: between(41*sectiontest.Us, 99*sectiontest.Us)}).Status("kernels", report.NotApplicable)
}

func TestKernelLaunchesAreAttached(t *testing.T) {
	for _, d := range sectiontest.Analyse(t, fourAndTwo(), analyze.Options{}).Details {
		if d.ID != "kernel_stats" {
			continue
		}
		l := sectiontest.Looker{TB: t}
		l.Row(&d, 1, "kernel_name", `"a"`, "duration", "10000", "start", "100000", "grid_size", "16", "block_size", "64")
		if len(d.Rows) != 6 {
			t.Errorf("%d rows", len(d.Rows))
		}
		return
	}
	t.Error("no kernel_stats.csv")
}

// oracle reads what NVIDIA's nsys stats says of a real trace; the test goes on where ../shared is absent.
func oracle(t *testing.T, name string) map[string][][]string {
	t.Helper()
	root := filepath.FromSlash("../../../../../shared/oracle")
	files, _ := filepath.Glob(filepath.Join(root, "*", name+".csv"))
	if len(files) == 0 {
		t.Skip("no ../shared/oracle: the real traces are not part of the project")
	}
	all := map[string][][]string{}
	for _, f := range files {
		r, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(r).ReadAll()
		r.Close()
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[filepath.Base(filepath.Dir(f))] = rows
	}
	return all
}

func realTrace(name string) string {
	return filepath.Join(filepath.FromSlash("../../../../../shared/traces"), name+".sqlite")
}

// Totals, counts, minima, maxima and medians of every kernel are nsys' own, on every real trace.
func TestKernelsAgainstNsys(t *testing.T) {
	for trace, rows := range oracle(t, "cuda_gpu_kern_sum") {
		t.Run(trace, func(t *testing.T) {
			res, err := analyze.Run(t.Context(), realTrace(trace), analyze.Options{Top: 1 << 30})
			if err != nil {
				t.Fatal(err)
			}
			l := sectiontest.Looker{TB: t, Report: res.Report}
			tab := l.Table("kernels", "kernels")
			at := map[string]int{}
			for i := range tab.Rows {
				at[l.Cell(tab, i, "kernel_name")] = i
			}
			column := map[string]int{}
			for i, h := range rows[0] {
				column[h] = i
			}
			if len(tab.Rows) != len(rows)-1 {
				t.Errorf("%d kernels, nsys has %d", len(tab.Rows), len(rows)-1)
			}
			for _, r := range rows[1:] {
				name, err := report.S(r[column["Name"]]).MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				i, ok := at[string(name)]
				if !ok {
					t.Errorf("no kernel %s", name)
					continue
				}
				l.Row(tab, i, "total", r[column["Total Time (ns)"]], "count", r[column["Instances"]], "min", r[column["Min (ns)"]], "max", r[column["Max (ns)"]])
				got, err := strconv.ParseFloat(l.Cell(tab, i, "p50"), 64)
				if err != nil || strconv.FormatFloat(got, 'f', 1, 64) != r[column["Med (ns)"]] {
					t.Errorf("%s: median %v, nsys has %s", name, got, r[column["Med (ns)"]])
				}
			}
		})
	}
}

// A CUDA graph traced as a whole is 900 µs of a step of 1 ms; of the real decode step it is two thirds, and that is no
// finding.
func TestWholeGraphsAreTold(t *testing.T) {
	sectiontest.Look(t, tracetest.GraphHidden(), analyze.Options{}).Finding("dominant_graph", report.High)
	r := sectiontest.AnalyseFile(t, "../../../../testdata/serving_graph.sqlite", analyze.Options{}).Report
	sectiontest.Looker{TB: t, Report: r}.Finding("dominant_graph", "")
}

// Three launches of a kernel: 75 %, 25 %, and one of which the profiler could not tell.
func TestEstimatedOccupancy(t *testing.T) {
	kernel := func(at int, args string) string {
		return fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":5,"args":{"device":0,"stream":7%s}}`, at, args)
	}
	path := filepath.Join(t.TempDir(), "trace.json")
	text := `{"traceEvents":[` + kernel(0, `,"est. achieved occupancy %":75`) + "," + kernel(10, `,"est. achieved occupancy %":25`) + "," + kernel(20, "") + `]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	table := sectiontest.FindTable(t, sectiontest.AnalyseFile(t, path, analyze.Options{}).Report, "kernels", "kernels")
	if last := len(table.Columns) - 1; table.Columns[last].ID != "occupancy_estimate" || !table.Rows[0][last].Equal(report.F(0.5)) {
		t.Errorf("%s is %v", table.Columns[last].ID, table.Rows[0][last])
	}
}
