package output

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
)

// TestReportsAreRemovedAlone: what lies beside a report stays, above all its capture.
func TestReportsAreRemovedAlone(t *testing.T) {
	res, err := analyze.Run(t.Context(), "../../../../testdata/head.sqlite", analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"1", "run-1", "2"} {
		if err := Write(t.Context(), filepath.Join(dir, name), Report(res)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"run-1/trace.sqlite", "base.sqlite"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("a capture"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	other, err := RemoveReports(dir)
	if err != nil || filepath.Base(other) != "run-1" {
		t.Errorf("%q, %v", other, err)
	}
	for name, stays := range map[string]bool{"1": false, "2": false,
		"run-1/trace.sqlite": true, "run-1/report.json": true, "base.sqlite": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); stays != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"run-1/trace.sqlite", "base.sqlite"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if other, err := RemoveReports(dir); other != "" || err != nil {
		t.Errorf("%q, %v", other, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("an empty folder is left: %v", err)
	}
	if other, err := RemoveReports(filepath.Join(dir, "none")); other != "" || err != nil {
		t.Errorf("%q, %v", other, err)
	}
}

// TestReportFilesAreAll: a file that is missing in the list keeps a folder from being recognized as a report's alone.
func TestReportFilesAreAll(t *testing.T) {
	res, err := analyze.Run(t.Context(), "../../../../testdata/head.sqlite", analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res.Report.Sections = append(res.Report.Sections, report.Section{ID: "ncu"})
	var names []string
	for _, f := range Report(res) {
		if name := filepath.ToSlash(f.Name); !strings.HasPrefix(name, "tables/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if want := slices.Sorted(slices.Values(reportFiles)); !slices.Equal(names, want) {
		t.Errorf("a report has %v, the list %v", names, want)
	}
}

// TestFolderWithBrackets: the name of a folder is no pattern. What ncu measured lies beside the trace, whatever the
// name is.
func TestFolderWithBrackets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run[1]")
	for from, to := range map[string]string{"head.sqlite": "trace.sqlite", "evidence/ncu/raw.csv": "ncu/raw.csv"} {
		b, err := os.ReadFile(filepath.Join("../../../../testdata", from))
		to = filepath.Join(dir, to)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	trace, beside := TraceIn(dir)
	if trace != filepath.Join(dir, "trace.sqlite") || len(beside) != 1 || beside[0].Path != filepath.Join(dir, "ncu") {
		t.Errorf("%s, %+v", trace, beside)
	}
}

// All of a step's time inside its outer range is inside what that calls: its own is 0 ns, not what rounding leaves.
func TestAStepsRangeHasNothingOfItsOwn(t *testing.T) {
	res, err := analyze.Run(t.Context(), "../../../../testdata/head.sqlite", analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := HTML(&page, res.Report, ""); err != nil {
		t.Fatal(err)
	}
	if want := "<title>execute_context_0(0)_generation_16(16): 2.574 ms, of its own 0 ns</title>"; !strings.Contains(page.String(), want) {
		t.Errorf("the page lacks %s", want)
	}
}

// TestAProfilersFilesStay: a report.json that was printed into the folder of a profiler did not write what lies there.
func TestAProfilersFilesStay(t *testing.T) {
	res, err := analyze.Run(t.Context(), "../../../../testdata/head.sqlite", analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	printed := *res.Report
	printed.Sections = append(slices.Clone(printed.Sections), report.Section{ID: "ncu", Status: report.OK})
	printed.Fill()
	dir := t.TempDir()
	for range 2 { // the second report replaces the first
		var b bytes.Buffer
		if err := report.Write(&b, &printed); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "report.json"), b.Bytes(), 0o600),
			os.WriteFile(filepath.Join(dir, "ncu_summary.json"), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
		_, before := os.Stat(filepath.Join(dir, "report.html"))
		if err := Write(t.Context(), dir, Report(res)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "ncu_summary.json")); (err == nil) != (before != nil) {
			t.Errorf("report.html: %v; ncu_summary.json: %v", before, err)
		}
	}
}
