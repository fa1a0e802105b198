package analyze

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze/report"
)

// testdata/findings.golden holds the first three findings of each real trace with what they are worth, and its first
// warning. Each line was read against what is known of the trace: change it only where the new line is the truer one.
func TestFindingsOfRealTraces(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(shared(t, "traces"), "*.sqlite"))
	if err != nil || len(paths) == 0 {
		t.Skipf("no traces: %v", err)
	}
	var b strings.Builder
	for _, path := range paths {
		r := reportOnce(t, path)
		fmt.Fprintf(&b, "%s\n", strings.TrimSuffix(filepath.Base(path), ".sqlite"))
		if len(r.Warnings) > 0 {
			fmt.Fprintf(&b, "  first warning: %s\n", r.Warnings[0].Code)
		}
		for i := range r.Findings {
			f := &r.Findings[i]
			if i < 3 {
				fmt.Fprintf(&b, "  %s %s%s\n", f.Severity, f.ID, worthLine(f.Worth))
			}
			holds(t, path, r, f)
		}
	}
	golden := filepath.Join("testdata", "findings.golden")
	if os.Getenv("UPDATE_FINDINGS") != "" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); d != "" {
		t.Errorf("findings (-golden +got; UPDATE_FINDINGS=1 writes them anew, read the change):\n%s", d)
	}
}

func worthLine(w *report.Worth) string {
	if w == nil {
		return ""
	}
	return fmt.Sprintf(" %.3f of %.3f ms, %d units", float64(w.Time)/1e6, float64(w.Of)/1e6, w.Units)
}

// holds checks what is true of every finding: its number is there, it points to a page that explains it, it is worth
// 1 % of the time or more, high from 10 % on, and it recommends no flag that fails on this capture.
func holds(t *testing.T, path string, r *report.Report, f *report.Finding) {
	t.Helper()
	if len(f.Evidence) == 0 {
		t.Errorf("%s: %s has no number", path, f.ID)
	}
	if section, _, found := FindingPage(f.ID); !found || section == "" {
		t.Errorf("%s: no page explains %s", path, f.ID)
	}
	if w := f.Worth; w == nil && f.Severity != report.High || w != nil && (w.Share() < 0.01 || (f.Severity == report.High) != (w.Share() >= 0.1)) {
		t.Errorf("%s: %s is %s and worth %+v", path, f.ID, f.Severity, w)
	}
	text := strings.Join(f.Advice, " ")
	if strings.Contains(text, "--steady") && r.Unit.Kind == "none" {
		t.Errorf("%s: %s advises --steady, and there is no unit of work", path, f.ID)
	}
	if strings.Contains(text, "--window nvtx") && !hasRows(r, "NVTX_EVENTS") {
		t.Errorf("%s: %s advises --window nvtx, and there are no ranges", path, f.ID)
	}
}

func hasRows(r *report.Report, table string) bool {
	for _, t := range r.Trace.Tables {
		if t.Name == table && t.Rows > 0 {
			return true
		}
	}
	return false
}
