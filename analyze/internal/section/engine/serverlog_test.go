package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// exampleLog is the synthetic log whose numbers the tests of the sections on server logs work out by hand.
const exampleLog = "../../../../testdata/evidence/vllm.log"

// analyseLog runs the analyzer on a log alone.
func analyseLog(tb testing.TB, path string) *report.Report {
	tb.Helper()
	res, err := analyze.Run(tb.Context(), path, analyze.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return res.Report
}

// logOf runs the analyzer on a log of these lines.
func logOf(tb testing.TB, lines ...string) *report.Report {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "server.log")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return analyseLog(tb, path)
}

// sharedLog runs the analyzer on a real log, or skips the test where there is none.
func sharedLog(tb testing.TB, name string) *report.Report {
	tb.Helper()
	path := filepath.Join("../../../../../shared/logs", name)
	if _, err := os.Stat(path); err != nil {
		tb.Skip("no shared/logs: the real logs are not part of the project")
	}
	return analyseLog(tb, path)
}

// hasFinding reports whether a report has the finding.
func hasFinding(r *report.Report, id string) bool { return sectiontest.FindingOf(r, id) != nil }

// cellOf is the text or number of a table's cell, in the row whose first cell is name.
func cellOf(tb testing.TB, s *report.Section, table, name, column string) report.Cell {
	tb.Helper()
	for i := range s.Tables {
		t := &s.Tables[i]
		if t.ID != table {
			continue
		}
		for _, row := range t.Rows {
			if v, _ := row[0].Str(); v != name {
				continue
			}
			for j, c := range t.Columns {
				if c.ID == column {
					return row[j]
				}
			}
		}
	}
	tb.Fatalf("%s has no row %q with a column %s", table, name, column)
	return report.Null
}

// A log alone is a report: only the sections that stand on it are there.
func TestLogAlone(t *testing.T) {
	r := analyseLog(t, exampleLog)
	want := []string{"serving", "iterations", "device_steps", "scheduler", "requests", "engine_start", "graph_stats", "speculative", "estimated_flops", "expert_load", "errors"}
	var got []string
	for _, s := range r.Sections {
		got = append(got, s.ID)
		if s.Status != report.OK && s.ID != "device_steps" { // vLLM states no time of the device
			t.Errorf("%s is %s: %s", s.ID, s.Status, s.Reason)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("sections %v, want %v", got, want)
	}
	e := r.Environment
	if e.Model == nil || *e.Model != "example/tiny-moe-8b" || e.DType == nil || *e.DType != "bfloat16" || e.Quantization == nil || *e.Quantization != "fp8" ||
		e.Parallelism == nil || *e.Parallelism != "tp2" || e.MaxModelLen == nil || *e.MaxModelLen != 4096 || e.MaxNumSeqs == nil || *e.MaxNumSeqs != 16 {
		t.Errorf("environment %+v", e)
	}
	// 82 lines. Of no known form: the warning of multiprocessing at the end.
	if f := r.Evidence[0]; f.Kind != "server-log" || f.Format != "vLLM V1" || f.Version == nil || *f.Version != "0.15.0" || f.Records != 82 || f.Unknown != 1 || f.Records != f.Understood+f.Known+f.Unknown {
		t.Errorf("evidence %+v", f)
	}
}
