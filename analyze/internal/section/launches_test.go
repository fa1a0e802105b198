package section_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// TestLaunchesTiny holds the launches section to the figures of tracetest.Tiny, 1000 µs long.
func TestLaunchesTiny(t *testing.T) {
	r := analyse(t, tracetest.Tiny(), analyze.Options{}).Report
	for _, l := range [][]string{nil, {"pid", "100"}, {"api", "cudaLaunchKernel"}} {
		metric(t, r, 12, "launch.count", l...)
		metric(t, r, 95*us, "launch.api_time", l...)
		metric(t, r, 12_000, "launch.rate", l...) // 12 in 1 ms
	}
	metric(t, r, 0, "launch.errors")
	// Kernels in µs: 10 35 40 40 40 50 50 70 70 70 80 100 100; the seventh of thirteen is the median.
	for _, l := range [][]string{nil, {"pid", "100"}} {
		metric(t, r, 13_000, "kernel.rate", l...)
		metric(t, r, 50*us, "kernel.duration", l...)
		metric(t, r, 0, "kernel.tiny_count", l...)
	}
	metric(t, r, 0, "kernel.under_ratio", "under", "5us")
	metric(t, r, 0, "kernel.under_ratio", "under", "10us") // strictly shorter: the one of 10 µs is not
	metric(t, r, 1.0/13, "kernel.under_ratio", "under", "20us")
	// From the call's return to the kernel's start, in µs: 0 0 5 5 5 37 45 65 95 95 155 185. One kernel has no call.
	for _, l := range [][]string{nil, {"pid", "100"}} {
		metric(t, r, 41*us, "launch.queue_time", l...)
	}
	if m := r.Find("launch.queue_time", report.Labels{}); m.Coverage == nil || *m.Coverage != 12.0/13 || m.Summary.Mean != 692.0/12*us {
		t.Errorf("launch.queue_time: %+v, want coverage 12/13 and mean 692/12 µs", m)
	}
	// 12 launches of 95 µs, 2 copies of 10, 1 memset of 5, 2 synchronisations of 289.
	metric(t, r, 17, "api.count")
	metric(t, r, 399*us, "api.time")
	metric(t, r, 2, "api.count", "api", "cudaMemcpyAsync")
	metric(t, r, 289*us, "api.time", "api", "cudaStreamSynchronize")
	if findingOf(r, "launch_storm") != nil {
		t.Error("12 launches are a storm")
	}
}

// TestLaunchesWindow narrows the window: calls count by their start.
func TestLaunchesWindow(t *testing.T) {
	to := 350 * time.Microsecond // 100 to 450: the call at 450 is in, its end is inclusive; those before 100 are not
	r := analyse(t, tracetest.Tiny(), analyze.Options{Window: analyze.WindowOptions{To: &to}}).Report
	metric(t, r, 4, "launch.count") // at 100, 110, 360, 450
	metric(t, r, 20*us, "launch.api_time")
	metric(t, r, 4, "kernel.count") // at 100, 200, 300, 365
}

// TestLaunchStormOfOneProcess has a process that launches 200 kernels of 1 µs in 2 ms, and one whose 300 kernels of
// 50 µs hide that in the median over both.
func TestLaunchStormOfOneProcess(t *testing.T) {
	b := tracetest.New()
	storm, calm := b.Process(100, "storm").Thread(100, ""), b.Process(200, "calm").Thread(200, "")
	for i := range int64(200) {
		storm.Launch("tiny", i*10*us, i*10*us+3*us, tracetest.Kernel{Start: i*10*us + 4*us, End: i*10*us + 5*us})
	}
	for i := range int64(300) {
		calm.Launch("big", i*6*us, i*6*us+2*us, tracetest.Kernel{Place: tracetest.Place{Device: 1, Stream: 8 + i%50}, Start: i*6*us + 4*us, End: i*6*us + 54*us})
	}
	// The window is from 4 µs to the last kernel's end: 200 tiny ones end at 1995 µs.
	r := analyse(t, b, analyze.Options{}).Report
	metric(t, r, 200/1991e-6, "launch.rate", "pid", "100")
	metric(t, r, 1*us, "kernel.duration", "pid", "100")
	metric(t, r, 50*us, "kernel.duration")
	metric(t, r, 200, "kernel.tiny_count")
	metric(t, r, 0.4, "kernel.under_ratio", "under", "5us")
	f := findingOf(r, "launch_storm")
	if f == nil || f.Evidence[0].Labels["pid"] != "100" {
		t.Fatalf("launch_storm: %+v, want it for pid 100", f)
	}
	tiny := findTable(t, r, "launches", "tiny_kernels")
	if n, _ := tiny.Rows[0][1].Int(); len(tiny.Rows) != 1 || n != 200 {
		t.Errorf("tiny kernels: %v, want one row of 200", tiny.Rows)
	}
}

func TestLaunchErrors(t *testing.T) {
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "")
	th.Launch("gemm", 0, 5*us, tracetest.Kernel{Start: 10 * us, End: 20 * us})
	for i := range int64(3) {
		b.API(tracetest.API{Thread: th, Name: "cudaLaunchKernel_v7000", Start: (10 + i) * us, End: (11 + i) * us, Correlation: 50 + i, Return: 701})
	}
	b.API(tracetest.API{Thread: th, Name: "cudaEventQuery_v3020", Start: 14 * us, End: 15 * us, Correlation: 60, Return: 600}) // not ready: no error
	r := analyse(t, b, analyze.Options{}).Report
	metric(t, r, 3, "launch.errors")
	metric(t, r, 4, "launch.count")
	if f := findingOf(r, "launch_errors"); f == nil || f.Severity != report.High {
		t.Errorf("launch_errors: %+v", f)
	}
	if rows := findTable(t, r, "launches", "launch_errors").Rows; len(rows) != 1 || rows[0][1] != report.I(701) || rows[0][2] != report.I(3) {
		t.Errorf("failed launches: %v, want 3 of error 701", rows)
	}
}

func TestSlowLaunches(t *testing.T) {
	for _, c := range []struct {
		cost int64
		want report.Severity
	}{{6, ""}, {12, report.Low}, {25, report.Medium}} {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "")
		for i := range int64(100) {
			at := i * 100 * us
			th.Launch("gemm", at, at+c.cost*us, tracetest.Kernel{Start: at + 30*us, End: at + 90*us})
		}
		got := report.Severity("")
		if f := findingOf(analyse(t, b, analyze.Options{}).Report, "slow_launches"); f != nil {
			got = f.Severity
		}
		if got != c.want {
			t.Errorf("calls of %d µs: slow_launches is %q, want %q", c.cost, got, c.want)
		}
	}
}

// TestLaunchesWithoutColumns drops what ties kernels to processes and calls: the totals stay, the rest is absent.
func TestLaunchesWithoutColumns(t *testing.T) {
	r := analyse(t, tracetest.Tiny(tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"), tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_RUNTIME", "returnValue")), analyze.Options{}).Report
	metric(t, r, 12, "launch.count")
	noMetric(t, r, "launch.count", "pid", "100")
	noMetric(t, r, "launch.queue_time")
	noMetric(t, r, "launch.errors")
	r = analyse(t, tracetest.Tiny(tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid")), analyze.Options{}).Report
	metric(t, r, 12, "launch.count", "pid", "100")
	noMetric(t, r, "launch.queue_time")
	metric(t, r, 50*us, "kernel.duration")
	noMetric(t, r, "kernel.tiny_count", "pid", "100") // unknown, not zero
	r = analyse(t, tracetest.Tiny(tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_RUNTIME")), analyze.Options{}).Report
	if s := sectionOf(t, r, "launches"); s.Status != report.Unavailable {
		t.Errorf("without API calls: %s", s.Status)
	}
	noMetric(t, r, "launch.count")
}

// TestAPIOracle holds all API calls against NVIDIA's cuda_api_sum. Ours are summed over the versions of a name, and
// their standard deviation is the population's.
func TestAPIOracle(t *testing.T) {
	eachOracle(t, "cuda_api_sum", func(t *testing.T, r *report.Report, rows []oracleRow) {
		type sum struct {
			count, total float64
			rows         int
		}
		sums := map[string]sum{}
		for _, row := range rows {
			s := sums[stripAPI(row.text("Name"))]
			sums[stripAPI(row.text("Name"))] = sum{s.count + row.num("Num Calls"), s.total + row.num("Total Time (ns)"), s.rows + 1}
		}
		for name, s := range sums {
			metric(t, r, s.count, "api.count", "api", name)
			metric(t, r, s.total, "api.time", "api", name)
		}
		for _, row := range rows {
			name := stripAPI(row.text("Name"))
			if m := r.Find("api.time", report.Labels{"api": name}); m != nil && sums[name].rows == 1 {
				row.summary(t, name, m.Summary, " (ns)", 1, 0.051)
			}
		}
	})
}

// TestLaunchQueueOracle holds the waits between launch call and kernel against NVIDIA's cuda_kern_exec_sum, which has a
// row per kernel name where ours are per API.
func TestLaunchQueueOracle(t *testing.T) {
	eachOracle(t, "cuda_kern_exec_sum", func(t *testing.T, r *report.Report, rows []oracleRow) {
		type sum struct{ kernels, api, queued, wait, low, high float64 }
		sums := map[string]*sum{}
		for _, row := range rows {
			key := fmt.Sprint(row.num("PID"), row.num("DevId"), stripAPI(row.text("API Name")))
			s := sums[key]
			if s == nil {
				s = &sum{low: math.Inf(1)}
				sums[key] = s
			}
			s.kernels += row.num("Count")
			s.api += row.num("Count") * row.num("AAvg (ns)")
			if n := row.num("QCount"); n > 0 {
				s.queued += n
				s.wait += n * row.num("QAvg (ns)")
				s.low, s.high = min(s.low, row.num("QMin (ns)")), max(s.high, row.num("QMax (ns)"))
			}
		}
		table := findTable(t, r, "launches", "launch_queue")
		for _, row := range table.Rows {
			num := func(i int) float64 { v, _ := row[i].Num(); return v }
			name, _ := row[2].Str()
			key := fmt.Sprint(num(0), num(1), name)
			s := sums[key]
			if s == nil {
				t.Errorf("%s: not in NVIDIA's", key)
				continue
			}
			delete(sums, key)
			if num(3) != s.kernels || num(5) != s.queued || !near(num(4), s.api/s.kernels, 0.06) {
				t.Errorf("%s: %v kernels, calls of %v, %v queued; NVIDIA's %v %v %v", key, num(3), num(4), num(5), s.kernels, s.api/s.kernels, s.queued)
			}
			if s.queued > 0 && (!near(num(6), s.wait/s.queued, 0.06) || num(9) != s.low || num(10) != s.high) {
				t.Errorf("%s: waits %v from %v to %v, NVIDIA's %v %v %v", key, num(6), num(9), num(10), s.wait/s.queued, s.low, s.high)
			}
		}
		for key := range sums {
			t.Errorf("%s: only in NVIDIA's", key)
		}
	})
}

// findTable is a table of a section.
func findTable(t *testing.T, r *report.Report, section, table string) *report.Table {
	t.Helper()
	s := sectionOf(t, r, section)
	for i := range s.Tables {
		if s.Tables[i].ID == table {
			return &s.Tables[i]
		}
	}
	t.Fatalf("section %s has no table %s", section, table)
	return nil
}

// eachOracle runs a test for every real trace of which NVIDIA's own summary is there.
func eachOracle(t *testing.T, summary string, test func(t *testing.T, r *report.Report, rows []oracleRow)) {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..", "shared")
	files, err := filepath.Glob(filepath.Join(root, "oracle", "*", summary+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no shared/oracle: the real traces are not part of the project")
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			res, err := analyze.Run(context.Background(), filepath.Join(root, "traces", name+".sqlite"), analyze.Options{Top: 1000})
			if err != nil {
				t.Fatal(err)
			}
			test(t, res.Report, readOracle(t, file))
		})
	}
}

// oracleRow is one row of NVIDIA's CSV, by column name.
type oracleRow map[string]string

func readOracle(t *testing.T, file string) []oracleRow {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []oracleRow
	for _, line := range lines[1:] {
		row := oracleRow{}
		for i, v := range line {
			row[lines[0][i]] = v
		}
		rows = append(rows, row)
	}
	return rows
}

func (row oracleRow) text(column string) string { return row[column] }

// num is a cell as a number; NVIDIA leaves cells empty that have none.
func (row oracleRow) num(column string) float64 {
	v, err := strconv.ParseFloat(row[column], 64)
	if err != nil {
		return 0
	}
	return v
}

// summary compares a distribution with the row's, whose cells are rounded: within is half of their last digit.
func (row oracleRow) summary(t *testing.T, what string, s *report.Summary, unit string, scale, within float64) {
	t.Helper()
	sd := 0.0
	if s.N > 1 {
		sd = s.Stddev * math.Sqrt(float64(s.N)/float64(s.N-1)) // NVIDIA's is the sample's
	}
	for column, got := range map[string]float64{"Avg": s.Mean, "Med": s.P50, "Min": s.Min, "Max": s.Max, "StdDev": sd} {
		if want := row.num(column + unit); !near(got/scale, want, within) {
			t.Errorf("%s: %s = %v, NVIDIA's %v", what, column, got/scale, want)
		}
	}
}

func near(got, want, within float64) bool {
	return math.Abs(got-want) <= within+1e-9*math.Abs(want)
}

var apiSuffix = regexp.MustCompile(`(_v\d+|_ptsz|_ptds)+$`)

// stripAPI removes the version suffix, of which NVIDIA's summaries keep what is longer than five characters.
func stripAPI(name string) string { return apiSuffix.ReplaceAllString(name, "") }

// realReport analyses one of the real traces, or skips where they are not there.
func realReport(t *testing.T, name string) *report.Report {
	t.Helper()
	path := filepath.Join("..", "..", "..", "..", "shared", "traces", name+".sqlite")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no shared/traces: the real traces are not part of the project")
	}
	res, err := analyze.Run(context.Background(), path, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Report
}
