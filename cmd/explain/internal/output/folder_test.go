package output

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
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
	if other, err := RemoveReports(filepath.Join(dir, "none")); other != "" || err != nil {
		t.Errorf("%q, %v", other, err)
	}
}
