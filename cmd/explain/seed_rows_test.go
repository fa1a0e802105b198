package main

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// TestSeedRows holds what nsys-llm-explainer, profilemate and llm-perf-opt do, one test per row of the table of their
// capabilities, by the row's number. The page examples/from-the-three-tools.md says where each is here.
func TestSeedRows(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	const serving = "../../testdata/serving.sqlite"
	text, code := said(serving, "--evidence", "../../testdata/evidence", "--out", out)
	if code != exitOK {
		t.Fatal(text)
	}
	s := &seedRun{dir: out, text: text, report: readSeedReport(t, filepath.Join(out, "report.json"))}
	held := map[int]bool{}
	row := func(name string, f func(t *testing.T)) {
		n, err := strconv.Atoi(name[:3])
		if err != nil || held[n] {
			t.Errorf("%s: a row has one test, named after its number", name)
		}
		held[n] = true
		t.Run(name, f)
	}

	row("001_offline_report", func(t *testing.T) { s.metric(t, "kernel.total_time", 179569803) })
	row("002_every_number_has_its_source", func(t *testing.T) {
		for i := range s.report.Metrics {
			if m := &s.report.Metrics[i]; len(m.Source.Tables) == 0 || len(m.Source.Columns) == 0 {
				t.Errorf("%s has no source", m.ID)
			}
		}
	})
	row("004_coverage_and_limits", func(t *testing.T) { s.has(t, "report.md", "Method and limits") })
	row("006_minimal_capture_command", func(t *testing.T) {
		says(t, exitOK, "nsys profile", "capture", "--dry-run", "--", "python", "serve.py")
	})
	row("009_phase_map", func(t *testing.T) {
		says(t, exitOK, "prompts", serving, "--phase-map", jsonFile(t, `{"prompts": ["re:context_[1-9]"]}`), "--format", "md")
	})
	row("010_phases_json", func(t *testing.T) {
		says(t, exitOK, "prompts", serving, "--phases-json", jsonFile(t, `{"prompts": ["re:context_[1-9]"]}`), "--format", "md")
	})
	row("011_first_phase_in_the_file_wins", func(t *testing.T) {
		a := seedReport(t, serving, "--phase-map", jsonFile(t, `{"x": "execute", "y": ["EXECUTE_context"]}`))
		b := seedReport(t, serving, "--phase-map", jsonFile(t, `{"y": ["EXECUTE_context"], "x": "execute"}`))
		if a.Find("phase.gpu_time", report.Labels{"phase": "x"}) == nil || b.Find("phase.gpu_time", report.Labels{"phase": "y"}) == nil ||
			*a.Find("phase.gpu_time", report.Labels{"phase": "x"}).Value != *b.Find("phase.gpu_time", report.Labels{"phase": "y"}).Value {
			t.Error("the order of the file does not decide")
		}
	})
	row("013_seed_phases_json_on_vllm_markers_warns", func(t *testing.T) {
		r := seedReport(t, serving, "--phase-map", jsonFile(t, `{"decode": ["decode", "generation"], "prefill": ["prefill", "prompt"]}`))
		if !warns(r, "phase_map") {
			t.Error("a map that makes all prefill decode warns of nothing")
		}
	})
	row("014_nvtx_coverage_threshold", func(t *testing.T) {
		says(t, exitUsage, "between 0 and 1", serving, "--nvtx-coverage-warn-threshold", "1.5")
	})
	row("015_no_nvtx_kernel_map", func(t *testing.T) {
		if m := seedReport(t, serving, "--no-nvtx-kernel-map").Find("nvtx.coverage", report.Labels{}); m != nil {
			t.Errorf("nvtx.coverage %+v", m)
		}
	})
	row("016_kernel_limit", func(t *testing.T) {
		if rows := seedReport(t, serving, "--kernel-limit", "3").Sections; len(rows) == 0 || len(tableOf(t, rows, "kernels", "kernels").Rows) != 4 {
			t.Error("--kernel-limit 3 does not leave three rows and the others")
		}
	})
	row("017_no_kernel_percentiles", func(t *testing.T) {
		dir := t.TempDir()
		says(t, exitOK, "", serving, "--no-kernel-percentiles", "--out", dir)
		if records := csvOf(t, filepath.Join(dir, "tables", "kernels.csv")); records[1][column(t, records, "p50_duration_us")] != "" {
			t.Error("percentiles although there should be none")
		}
	})
	row("018_print_schema", func(t *testing.T) { says(t, exitOK, "CUPTI_ACTIVITY_KIND_KERNEL", serving, "--print-schema") })
	row("019_nonexistent_trace", func(t *testing.T) { says(t, exitInput, "does not exist", filepath.Join(out, "none.sqlite")) })
	row("020_not_a_database", func(t *testing.T) {
		says(t, exitInput, "is not an Nsight Systems export", jsonFile(t, "hello, this is no database at all"))
	})
	row("022_report_md", func(t *testing.T) { s.has(t, "report.md", "## Findings") })
	row("025_kernels_csv_columns", func(t *testing.T) {
		s.columns(t, "kernels.csv", "kernel_name", "device_id", "call_count", "total_time_ms", "avg_duration_us", "min_duration_us",
			"max_duration_us", "p50_duration_us", "p90_duration_us", "pct_total_kernel_time")
	})
	row("026_kernels_per_device", func(t *testing.T) { s.columns(t, "kernels_per_device.csv", "kernel_name", "device_id", "call_count") })
	row("027_nvtx_ranges_csv", func(t *testing.T) { s.columns(t, "nvtx_ranges.csv", "range_name") })
	row("028_gpu_idle_gaps_csv", func(t *testing.T) {
		s.columns(t, "gpu_idle_gaps.csv", "device_id", "gap_start_ns", "gap_end_ns", "gap_ms")
	})
	row("029_kernels_by_pid_csv", func(t *testing.T) { s.columns(t, "kernels_by_pid.csv", "pid") })
	row("032_csv_of_an_empty_section_has_its_header", func(t *testing.T) {
		if records := csvOf(t, filepath.Join(out, "tables", "launch_errors.csv")); len(records) != 1 {
			t.Errorf("%v", records)
		}
	})
	row("033_csv_files_are_complete_and_typed", func(t *testing.T) { s.complete(t) })
	row("041_findings", func(t *testing.T) {
		for _, f := range s.report.Findings {
			if f.Title == "" || len(f.Advice) == 0 || f.Doc == "" {
				t.Errorf("%+v", f)
			}
		}
	})
	row("052_terminal_shows_the_finding_s_number", func(t *testing.T) {
		for _, f := range s.report.Findings[:3] {
			if !strings.Contains(text, "["+f.ID+"]") {
				t.Errorf("the terminal does not name %s", f.ID)
			}
			says(t, exitOK, "finding of section ", "doc", f.ID)
		}
	})
	row("058_idle_over_the_kernel_window", func(t *testing.T) {
		if s.report.Find("gpu.kernel_idle_ratio", report.Labels{"device": "0"}) == nil {
			t.Error("no gpu.kernel_idle_ratio")
		}
	})
	row("069_any_table_with_id_and_value", func(t *testing.T) {
		r := seedReport(t, tracetest.Tiny(tracetest.RenameTable("StringIds", "SomeTable")).WriteTB(t))
		if m := r.Find("launch.count", report.Labels{}); m == nil || m.Value == nil || *m.Value != 12 {
			t.Errorf("launch.count %+v, want the 12 of the trace", m)
		}
	})
	row("070_no_string_table_is_unknown_and_not_0", func(t *testing.T) {
		r := seedReport(t, tracetest.Tiny(tracetest.WithoutTable("StringIds")).WriteTB(t))
		for _, id := range []string{"launch.count", "launch.rate", "sync.count", "sync.blocked_time"} {
			if m := r.Find(id, report.Labels{}); m == nil || m.Value != nil {
				t.Errorf("%s is %+v, want null", id, m)
			}
		}
		if !warns(r, "no_strings") {
			t.Error("no warning says so")
		}
	})
	row("094_nvtx_instances", func(t *testing.T) {
		s.columns(t, "nvtx_instances.csv", "range_name", "duration_ms", "start_ns", "end_ns", "thread_id")
	})
	row("095_kernel_stats_csv", func(t *testing.T) {
		if n := len(csvOf(t, filepath.Join(out, "tables", "kernel_stats.csv"))) - 1; n != 9268 {
			t.Errorf("%d rows, want one for each of 9,268 kernels", n)
		}
	})
	row("096_memcpy_stats_csv", func(t *testing.T) {
		if n := len(csvOf(t, filepath.Join(out, "tables", "memcpy_stats.csv"))) - 1; n != 536 {
			t.Errorf("%d rows, want 536", n)
		}
	})
	row("097_summary_keeps_its_shape", func(t *testing.T) {
		got, _ := said(tracetest.Tiny().WriteTB(t), "--format", "summary")
		var x struct {
			Phases map[string]map[string]any `json:"prefill_decode"`
		}
		if err := json.Unmarshal([]byte(got), &x); err != nil {
			t.Fatal(err)
		}
		for _, phase := range []string{"prefill", "decode"} {
			if v, ok := x.Phases[phase]["total_ms"]; !ok || v != nil {
				t.Errorf("prefill_decode.%s.total_ms is %v, want null", phase, v)
			}
		}
	})
	row("100_graph_coverage_is_by_count", func(t *testing.T) {
		var x struct {
			Graphs map[string]float64 `json:"cuda_graphs"`
		}
		if err := json.Unmarshal([]byte(s.file(t, "summary.json")), &x); err != nil {
			t.Fatal(err)
		}
		g := x.Graphs // 6,864 of 9,268 kernels, and 18.84 % of their time
		if math.Abs(g["graph_coverage_pct"]-100*6864.0/9268) > 1e-9 || math.Abs(g["graph_time_coverage_pct"]-18.84) > 0.005 {
			t.Errorf("%v", g)
		}
	})
	row("117_check_regression_by_threshold", func(t *testing.T) {
		says(t, exitOK, "", "diff", filepath.Join(out, "summary.json"), filepath.Join(out, "summary.json"), "--threshold", "10")
	})
	row("178_stakeholder_page_never_calls_a_sum_mean", func(t *testing.T) {
		// 40 ranges of 0.65 ms: the mean is 650 µs, the sum 26 ms.
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		for i := range int64(40) {
			at := i * 1_000_000
			th.Range("own prompt work", at, at+650_000)
			th.Launch("gemm", at+1000, at+2000, tracetest.Kernel{Start: at + 3000, End: at + 600_000})
		}
		dir := t.TempDir()
		says(t, exitOK, "", b.WriteTB(t), "--unit", "none", "--phase-map", jsonFile(t, `{"prefill": "prompt"}`), "--out", dir)
		page, err := os.ReadFile(filepath.Join(dir, "stakeholder_summary.md"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "650 µs") || strings.Contains(string(page), "| 26 ms") {
			t.Errorf("want 650 µs per range and no 26 ms:\n%s", page)
		}
	})
	s.traceRows(row)
	s.captureRows(row)
	s.evidenceRows(row)
	s.houseRows(row)
	s.restRows(row)
	row("205_single_trace_report", func(t *testing.T) { says(t, exitOK, "Window of 353.3 ms", out) })
	everyRow(t, held)
}

// everyRow checks that each of the 205 rows is a test above, or stands on the page with the test that holds it or why none
// can: of a test that it names the source has to have it.
func everyRow(t *testing.T, held map[int]bool) {
	page := fileOf(t, "../../examples/from-the-three-tools.md")
	_, list, ok := strings.Cut(page, "## Rows that TestSeedRows does not hold itself")
	if !ok {
		t.Fatal("the page has no list of rows")
	}
	said := map[int]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([0-9]+) \| [^|]+ \| ([^|]*) \|$`).FindAllStringSubmatch(list, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || n > seedRows || held[n] || said[n] {
			t.Errorf("row %s of the page: no number of a row, or twice, or a test above holds it", m[1])
		}
		said[n] = true
		for _, test := range regexp.MustCompile("`([^` ]+/[^` ]+) ([^`]+)`").FindAllStringSubmatch(m[2], -1) {
			if !strings.Contains(fileOf(t, filepath.Join("../..", test[1])), test[2]) {
				t.Errorf("row %d: %s has no %s", n, test[1], test[2])
			}
		}
	}
	for n := 1; n <= seedRows; n++ {
		if !held[n] && !said[n] {
			t.Errorf("row %d is neither a test nor on the page", n)
		}
	}
	t.Logf("%d rows are subtests, %d are on the page", len(held), len(said))
}

// seedRows is how many rows the table has.
const seedRows = 205

// seedRun is the report that most rows look at.
type seedRun struct {
	dir, text string
	report    *report.Report
}

func (s *seedRun) file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s *seedRun) has(t *testing.T, name, text string) {
	t.Helper()
	if !strings.Contains(s.file(t, name), text) {
		t.Errorf("%s lacks %q", name, text)
	}
}

func (s *seedRun) metric(t *testing.T, id string, want float64) {
	t.Helper()
	if m := s.report.Find(id, report.Labels{}); m == nil || m.Value == nil || *m.Value != want {
		t.Errorf("%s is %+v, want %g", id, m, want)
	}
}

func (s *seedRun) columns(t *testing.T, name string, want ...string) {
	t.Helper()
	records := csvOf(t, filepath.Join(s.dir, "tables", name))
	for _, c := range want {
		column(t, records, c)
	}
}

// complete checks that a file has as many rows as its table has in all, none of others, and that a column of whole
// numbers holds nothing else.
func (s *seedRun) complete(t *testing.T) {
	cut := 0
	for _, section := range s.report.Sections {
		for _, table := range section.Tables {
			if table.File == "" || table.File == "gpu_idle_gaps.csv" {
				continue
			}
			records := csvOf(t, filepath.Join(s.dir, "tables", table.File))
			if n := int64(len(records) - 1); n != max(table.TotalRows, int64(len(table.Rows))) {
				t.Errorf("%s has %d rows of %d", table.File, n, table.TotalRows)
			}
			if table.Others {
				cut++
			}
			for i, c := range table.Columns {
				if len(c.CSV) > 0 || c.Kind != report.Int {
					continue
				}
				at := column(t, records, c.ID)
				for _, r := range records[1:] {
					if _, err := strconv.ParseInt(r[at], 10, 64); r[at] != "" && err != nil {
						t.Errorf("%s: %s (column %d) holds %q", table.File, c.ID, i, r[at])
					}
				}
			}
		}
	}
	if cut == 0 {
		t.Error("no table of this report is cut: the test shows nothing")
	}
}

func csvOf(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil || len(records) == 0 {
		t.Fatalf("%s: %v", path, err)
	}
	return records
}

func column(t *testing.T, records [][]string, name string) int {
	t.Helper()
	for i, c := range records[0] {
		if c == name {
			return i
		}
	}
	t.Fatalf("no column %s in %v", name, records[0])
	return -1
}

func says(t *testing.T, want int, text string, args ...string) {
	t.Helper()
	if got, code := said(args...); code != want || !strings.Contains(got, text) {
		t.Errorf("explain %q: exit %d, want %d and %q in:\n%.2000s", args, code, want, text, got)
	}
}

func jsonFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "phases.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func readSeedReport(t *testing.T, path string) *report.Report {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := report.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func seedReport(t *testing.T, args ...string) *report.Report {
	t.Helper()
	text, code := said(append(args, "--format", "json")...)
	if code != exitOK {
		t.Fatalf("explain %q: exit %d: %s", args, code, text)
	}
	r, err := report.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func warns(r *report.Report, code string) bool {
	for _, w := range r.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

func tableOf(t *testing.T, sections []report.Section, section, table string) *report.Table {
	t.Helper()
	for i := range sections {
		for j := range sections[i].Tables {
			if sections[i].ID == section && sections[i].Tables[j].ID == table {
				return &sections[i].Tables[j]
			}
		}
	}
	t.Fatalf("no table %s of section %s", table, section)
	return nil
}
