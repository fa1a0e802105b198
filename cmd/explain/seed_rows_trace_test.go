package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// traceRows are the rows of nsys-llm-explainer that TestSeedRows itself does not hold.
func (s *seedRun) traceRows(row func(string, func(*testing.T))) {
	const serving = "../../testdata/serving.sqlite"
	row("003_a_sentence_instead_of_sql", func(t *testing.T) {
		for _, x := range s.report.Sections {
			if x.Derivation == "" {
				t.Errorf("section %s does not say how its numbers come about", x.ID)
			}
		}
	})
	row("007_export_command", func(t *testing.T) {
		says(t, exitOK, "nsys export --type=sqlite --lazy=false --force-overwrite=true", "capture", "--dry-run", "--", "python", "serve.py")
	})
	row("008_trace_and_out", func(t *testing.T) {
		for _, name := range []string{"report.md", "report.json", "report.html", "summary.json", "tables/kernels.csv"} {
			if s.file(t, name) == "" {
				t.Errorf("%s is empty", name)
			}
		}
	})
	row("012_re_patterns_are_RE2", func(t *testing.T) {
		says(t, exitUsage, "(?!", serving, "--phase-map", jsonFile(t, `{"x": ["re:a(?!b)"]}`))
	})
	row("021_summary_on_the_terminal", func(t *testing.T) {
		for _, want := range []string{"Top kernels of 179.6 ms", "Launch rate", "GPU idle"} {
			if !strings.Contains(s.text, want) {
				t.Errorf("the terminal lacks %q", want)
			}
		}
	})
	row("023_report_json_has_a_schema_of_its_own", func(t *testing.T) { s.has(t, "report.json", `"schema": "explain.report/1"`) })
	row("024_no_clock_and_no_path", func(t *testing.T) {
		again := t.TempDir()
		says(t, exitOK, "", serving, "--evidence", "../../testdata/evidence", "--out", again)
		if text := s.file(t, "report.json"); text != fileOf(t, filepath.Join(again, "report.json")) || strings.Contains(text, s.dir) {
			t.Error("two runs differ, or name a folder")
		}
	})
	row("030_sync_by_pid_csv", func(t *testing.T) {
		records := csvOf(t, filepath.Join(s.dir, "tables", "sync_by_pid.csv"))
		at := column(t, records, "api_name")
		for _, r := range records[1:] {
			if strings.Contains(r[at], "_v") || r[at] == "cudaEventQuery" {
				t.Errorf("%q: a version suffix, or a call that does not block", r[at])
			}
		}
	})
	row("031_nvtx_by_pid_csv", func(t *testing.T) {
		records := csvOf(t, filepath.Join(s.dir, "tables", "nvtx_by_pid.csv"))
		at := column(t, records, "pid_attribution_coverage_pct")
		for _, r := range records[1:] {
			if v, err := strconv.ParseFloat(r[at], 64); err != nil || v <= 0 || v > 100 {
				t.Errorf("coverage %q of a process", r[at])
			}
		}
	})
	row("034_warnings_first", func(t *testing.T) {
		page := s.file(t, "report.md")
		if w, f := strings.Index(page, "## Warnings"), strings.Index(page, "## Findings"); w < 0 || f < w {
			t.Errorf("warnings at %d, findings at %d", w, f)
		}
	})
	row("035_warning_coverage", func(t *testing.T) {
		if r := oneRange(t, 15); !warns(r, "nvtx_coverage") {
			t.Error("15 % covered, and no warning")
		}
		if r := oneRange(t, 95); warns(r, "nvtx_coverage") {
			t.Error("95 % covered, and a warning")
		}
	})
	row("036_warning_coverage_of_the_worst_process", func(t *testing.T) {
		b := tracetest.New()
		for pid := range int64(2) {
			th := b.Process(7+pid, "p").Thread(7+pid, "")
			if pid == 0 {
				th.Range("work", 0, 1000)
			}
			th.Launch("k", 10, 20, tracetest.Kernel{Place: tracetest.Place{Device: pid}, Start: 1000, End: 1_001_000})
		}
		if r := seedReport(t, b.WriteTB(t)); !warns(r, "nvtx_coverage_pid") {
			t.Error("pid 8 has 0 %, and no warning")
		}
	})
	row("037_warning_time_unit", func(t *testing.T) {
		if r := seedReport(t, tracetest.TwoProcs().WriteTB(t)); !warns(r, "time_unit") {
			t.Error("a window of 40 µs, and no warning")
		}
	})
	row("042_top_kernel_of_half_is_high", func(t *testing.T) {
		severity(t, twoKernels(t, 510), "dominant_kernel", report.High)
		severity(t, twoKernels(t, 490), "dominant_kernel", "")
	})
	row("043_top_kernel_of_a_quarter", func(t *testing.T) {
		severity(t, manyKernels(t, 26), "large_kernel", "remark") // a finding from a third of the time on
		severity(t, manyKernels(t, 24), "large_kernel", "")
	})
	row("044_storm_at_50k", func(t *testing.T) {
		severity(t, storm(t, 16_667, 1_000, 1), "launch_storm", report.Medium)
		severity(t, storm(t, 16_667, 11_000, 1), "launch_storm", "")
	})
	row("045_storm_at_100k", func(t *testing.T) {
		severity(t, storm(t, 9_000, 8_900, 1), "launch_storm", "remark")
	})
	row("046_launch_rate", func(t *testing.T) {
		severity(t, storm(t, 5_000, 30_000, 8), "launch_rate", "remark") // 125,000 a second, with the pauses
	})
	row("048_idle_of_20_and_40_percent", func(t *testing.T) {
		severity(t, idle(t, 4), "gpu_idle", "")
		severity(t, idle(t, 8), "gpu_idle", report.Medium) // by what it is worth: high from 10 % on
		severity(t, idle(t, 25), "gpu_idle", report.High)
		severity(t, idle(t, 45), "gpu_idle", report.High)
	})
	row("049_nvtx_present", func(t *testing.T) { severity(t, s.report, "nvtx_present", "remark") })
	row("050_one_phase_of_70_percent_of_the_host_s_time", func(t *testing.T) {
		severity(t, phased(t, 75), "dominant_phase_wall", "remark")
		severity(t, phased(t, 65), "dominant_phase_wall", "")
	})
	row("051_one_phase_of_70_percent_of_the_gpu_s_time", func(t *testing.T) {
		severity(t, phased(t, 75), "dominant_phase", "remark")
		severity(t, phased(t, 65), "dominant_phase", "")
	})
	row("053_top_kernels", func(t *testing.T) {
		records := csvOf(t, filepath.Join(s.dir, "tables", "kernels.csv"))
		calls, ms := 0.0, 0.0
		for _, r := range records[1:] {
			calls += num(t, r[column(t, records, "call_count")])
			ms += num(t, r[column(t, records, "total_time_ms")])
		}
		if calls != 9268 || ms < 179.5697 || ms > 179.5699 {
			t.Errorf("%g calls, %g ms: want 9,268 and 179.569803", calls, ms)
		}
	})
	row("054_shares_below_5_10_and_20_us", func(t *testing.T) {
		d := s.durations(t)
		for label, below := range map[string]float64{"5us": 5, "10us": 10, "20us": 20} {
			n := 0.0
			for _, us := range d {
				if us < below {
					n++
				}
			}
			s.labelled(t, "kernel.under_ratio", n/float64(len(d)), "under", label)
		}
		s.metric(t, "kernel.duration", 1000*(d[len(d)/2-1]+d[len(d)/2])/2)
	})
	row("055_tiny_kernels", func(t *testing.T) {
		n := 0.0
		for _, us := range s.durations(t) {
			if us <= 5 {
				n++
			}
		}
		s.metric(t, "kernel.tiny_count", n)
		s.columns(t, "tiny_kernels.csv", "kernel_name", "call_count", "total_time_ms", "avg_duration_us")
	})
	row("056_storm_by_process", func(t *testing.T) {
		s.columns(t, "launches_by_pid.csv", "pid", "rate", "p50_kernel_us", "is_launch_storm")
	})
	row("057_blocking_calls", func(t *testing.T) {
		s.metric(t, "sync.count", 142)
		s.metric(t, "sync.total_time", 134543684+40589675+20000) // by call: stream, event, device
	})
	row("059_largest_gaps_with_cause", func(t *testing.T) { s.columns(t, "gpu_idle_gaps.csv", "main_cause", "previous", "next", "nvtx_range") })
	row("060_nvtx_wall_by_name", func(t *testing.T) { s.columns(t, "nvtx_ranges.csv", "range_name", "count", "total_time_ms") })
	row("061_nvtx_gpu_time", func(t *testing.T) {
		records, self := csvOf(t, filepath.Join(s.dir, "tables", "nvtx_ranges.csv")), 0.0
		for _, r := range records[1:] {
			self += num(t, r[column(t, records, "gpu_time_self_ns")])
		}
		if covered := s.report.Find("nvtx.coverage", report.Labels{}); self/179569803 != *covered.Value {
			t.Errorf("self times make %g of the kernel time, coverage is %g", self/179569803, *covered.Value)
		}
	})
	row("062_phases", func(t *testing.T) {
		for phase, want := range map[string]float64{"prefill": 127102592, "decode": 36705655, "mixed": 13923690, "sampling": 1598343} {
			s.labelled(t, "phase.gpu_time", want, "phase", phase)
		}
		s.labelled(t, "phase.wall_time", 120718964, "phase", "prefill")
	})
	row("063_top_processes", func(t *testing.T) {
		s.columns(t, "processes.csv", "pid", "process_name", "total_kernel_time_ms", "kernel_count")
	})
	row("064_phases_by_process", func(t *testing.T) { s.columns(t, "phases_by_pid.csv", "pid", "phase", "total_kernel_time_ms") })
	renamed := func(t *testing.T, from string, names ...string) {
		for _, name := range names {
			r := seedReport(t, tracetest.Tiny(tracetest.RenameTable(from, name)).WriteTB(t))
			want := seedReport(t, tracetest.Tiny().WriteTB(t))
			for _, id := range []string{"kernel.count", "launch.count", "nvtx.count"} {
				got, w := r.Find(id, report.Labels{}), want.Find(id, report.Labels{})
				if got == nil || got.Value == nil || *got.Value != *w.Value {
					t.Errorf("%s called %s: %s is %+v, want %g", from, name, id, got, *w.Value)
				}
			}
		}
	}
	row("065_kernel_tables", func(t *testing.T) {
		renamed(t, "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "CUDA_GPU_KERNEL", "GPU_KERNEL", "MY_KERNEL_ROWS")
	})
	row("066_runtime_tables", func(t *testing.T) {
		renamed(t, "CUPTI_ACTIVITY_KIND_RUNTIME", "CUDA_RUNTIME_API", "CUDA_API", "MY_RUNTIME_CALLS")
	})
	row("067_nvtx_tables", func(t *testing.T) { renamed(t, "NVTX_EVENTS", "NVTX_RANGES", "MY_NVTX_EVENTS") })
	row("068_string_tables", func(t *testing.T) { renamed(t, "StringIds", "Strings", "StringIdsV2") })
	row("071_process_columns", func(t *testing.T) {
		for _, name := range []string{"pid", "processId"} {
			rename := "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN globalPid TO " + name
			alone := "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET " + name + " = (" + name + " >> 24) & 0xFFFFFF"
			for _, path := range []string{altered(t, rename), altered(t, rename, alone)} { // the whole identity, or the pid alone
				r := seedReport(t, path)
				for _, pid := range []string{"4101", "4102"} {
					want := s.report.Find("kernel.total_time", report.Labels{"pid": pid})
					if m := r.Find("kernel.total_time", report.Labels{"pid": pid}); m == nil || m.Value == nil || *m.Value != *want.Value {
						t.Errorf("column %s, pid %s: %+v, want %g", name, pid, m, *want.Value)
					}
				}
				if m := r.Find("nvtx.coverage", report.Labels{}); m == nil || m.Value == nil || *m.Value < 0.99 {
					t.Errorf("column %s: the kernels lost their calls: %+v", name, m)
				}
			}
		}
	})
	row("072_spellings_of_correlation_and_thread", func(t *testing.T) {
		for _, names := range [][2]string{{"correlationID", "globalTID"}, {"correlation_id", "global_tid"}} {
			path := altered(t, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN correlationId TO "+names[0],
				"ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME RENAME COLUMN correlationId TO "+names[0],
				"ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME RENAME COLUMN globalTid TO "+names[1],
				"ALTER TABLE NVTX_EVENTS RENAME COLUMN globalTid TO "+names[1])
			want := s.report.Find("nvtx.coverage", report.Labels{})
			if m := seedReport(t, path).Find("nvtx.coverage", report.Labels{}); m == nil || m.Value == nil || *m.Value != *want.Value {
				t.Errorf("%v: %+v, want %g", names, m, *want.Value)
			}
		}
	})
	row("073_missing_tables_degrade", func(t *testing.T) {
		for _, table := range []string{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY",
			"NVTX_EVENTS", "TARGET_INFO_GPU", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"} {
			for _, x := range seedReport(t, tracetest.Tiny(tracetest.WithoutTable(table)).WriteTB(t)).Sections {
				if x.Status == report.Error || x.Status == report.Unavailable && x.Reason == "" {
					t.Errorf("without %s section %s is %s (%s)", table, x.ID, x.Status, x.Reason)
				}
			}
		}
	})
	row("074_steady_state", func(t *testing.T) { says(t, exitOK, "window by --steady", serving, "--steady") })
	row("075_capture_range_by_nvtx", func(t *testing.T) {
		says(t, exitOK, "NSYS_NVTX_PROFILER_REGISTER_ONLY=0", "capture", "--dry-run", "--nvtx", "decode", "--", "python", "serve.py")
	})
	row("077_runbook", func(t *testing.T) { says(t, exitOK, "capture → export → explain → gate", "doc", "capture") })
	row("083_template_of_a_writeup", func(t *testing.T) { says(t, exitOK, "steady", serving, "--format", "md") })
}

// altered is a copy of the serving trace on which statements were run.
func altered(t *testing.T, statements ...string) string {
	path := filepath.Join(t.TempDir(), "altered.sqlite")
	if err := os.WriteFile(path, []byte(fileOf(t, "../../testdata/serving.sqlite")), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return path
}

// oneRange is a trace in which a range encloses the launches of so many percent of the kernel time.
func oneRange(t *testing.T, percent int64) *report.Report {
	b := tracetest.New()
	th := b.Process(7, "p").Thread(7, "")
	th.Range("work", 0, 100)
	th.Launch("a", 10, 20, tracetest.Kernel{Start: 1_000_000, End: 1_000_000 + percent*100_000})
	th.Launch("b", 200, 210, tracetest.Kernel{Start: 20_000_000, End: 20_000_000 + (100-percent)*100_000})
	return seedReport(t, b.WriteTB(t))
}

// twoKernels is a trace with one kernel of so many of 1,000 µs; another one has the rest.
func twoKernels(t *testing.T, us int64) *report.Report {
	b := tracetest.New()
	th := b.Process(7, "p").Thread(7, "")
	th.Launch("a", 10, 20, tracetest.Kernel{Start: 1000, End: 1000 + us*1000})
	for i := range int64(5) { // so that none of the rest is larger
		at := 1000 + us*1000 + i*(1000-us)*200
		th.Launch(string(rune('b'+i)), 30+i*20, 40+i*20, tracetest.Kernel{Start: at, End: at + (1000-us)*200})
	}
	return seedReport(t, b.WriteTB(t))
}

// manyKernels is a trace in which one kernel has so many percent, and each of ten others less.
func manyKernels(t *testing.T, percent int64) *report.Report {
	b := tracetest.New()
	th := b.Process(7, "p").Thread(7, "")
	at := int64(1000)
	for i := range int64(11) {
		dur := percent * 100_000
		if i > 0 {
			dur = (100 - percent) * 10_000
		}
		th.Launch(string(rune('a'+i)), 10+i*20, 20+i*20, tracetest.Kernel{Start: at, End: at + dur})
		at += dur
	}
	return seedReport(t, b.WriteTB(t))
}

// storm is a trace of 2,000 launches, one each period, of kernels of one length on some streams, ns. Several streams pause
// for 300 µs after each 100 launches, so that the GPU waits for the host.
func storm(t *testing.T, period, length, streams int64) *report.Report {
	b := tracetest.New()
	th := b.Process(7, "p").Thread(7, "")
	for i := range int64(2000) {
		at := i * period
		if streams > 1 {
			at += i / 100 * 300_000
		}
		th.Launch("k", at, at+1000, tracetest.Kernel{Place: tracetest.Place{Stream: 7 + i%streams}, Start: at + 2000, End: at + 2000 + length})
	}
	return seedReport(t, b.WriteTB(t), "--unit", "none")
}

// idle is a trace whose GPU is idle for so many percent, in gaps of a kernel's order.
func idle(t *testing.T, percent int64) *report.Report {
	b := tracetest.New()
	th := b.Process(7, "p").Thread(7, "")
	for i := range int64(101) { // the last kernel closes the hundredth gap
		at := i * 1_000_000
		th.Launch("k"+strconv.Itoa(int(i%7)), at-2000, at-1000, tracetest.Kernel{Start: at, End: at + (100-percent)*10_000})
	}
	return seedReport(t, b.WriteTB(t), "--unit", "none")
}

// graphedInPart is a trace in which a CUDA graph runs 10 of 30 µs, and the GPU waits for 20 more before the other kernel.
func graphedInPart(t *testing.T) *report.Report {
	b := tracetest.New()
	th := b.Process(7, "p").Thread(7, "")
	th.GraphLaunch(0, 5_000, tracetest.Kernel{Name: "gemm", Start: 5_000, End: 15_000})
	th.Launch("gemm", 30_000, 35_000, tracetest.Kernel{Start: 35_000, End: 55_000})
	return seedReport(t, b.WriteTB(t))
}

// phased is a trace with ranges of prefill for so many percent of host and kernel time, and of decode for the rest.
func phased(t *testing.T, percent int64) *report.Report {
	b := tracetest.New()
	th := b.Process(7, "p").Thread(7, "")
	at := int64(0)
	for _, x := range []struct {
		name string
		us   int64
	}{{"my prefill", percent * 10}, {"my decode", (100 - percent) * 10}} {
		th.Range(x.name, at, at+x.us*1000)
		th.Launch("k "+x.name, at+10, at+20, tracetest.Kernel{Start: at + 30, End: at + x.us*1000})
		at += x.us * 1000
	}
	return seedReport(t, b.WriteTB(t))
}

// severity checks that a report tells of a finding, with this severity where it is worth something, and as a remark else; or
// for an empty one that it does not.
func severity(t *testing.T, r *report.Report, id string, want report.Severity) {
	t.Helper()
	at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.ID == id })
	remarked := slices.ContainsFunc(r.Remarks, func(m report.Remark) bool { return m.ID == id })
	switch {
	case want == "" && remarked:
		t.Errorf("%s is a remark, want nothing said", id)
	case want == "remark" && remarked && at < 0:
	case at < 0 && want != "":
		t.Errorf("no finding %s among %+v, remarks %+v", id, r.Findings, r.Remarks)
	case at >= 0 && r.Findings[at].Severity != want:
		t.Errorf("finding %s is %s, want %q", id, r.Findings[at].Severity, want)
	}
}

// durations of all kernels in µs, from kernel_stats.csv, sorted.
func (s *seedRun) durations(t *testing.T) []float64 {
	records := csvOf(t, filepath.Join(s.dir, "tables", "kernel_stats.csv"))
	at := column(t, records, "duration_us")
	var list []float64
	for _, r := range records[1:] {
		list = append(list, num(t, r[at]))
	}
	slices.Sort(list)
	return list
}

func (s *seedRun) labelled(t *testing.T, id string, want float64, pairs ...string) {
	t.Helper()
	l := report.Labels{}
	for i := 0; i < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	if m := s.report.Find(id, l); m == nil || m.Value == nil || *m.Value != want {
		t.Errorf("%s%v is %+v, want %g", id, l, m, want)
	}
}

func num(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func fileOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
