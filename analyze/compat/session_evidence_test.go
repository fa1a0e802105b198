package compat_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// sessionFolder and perfoptFolder are the synthetic evidence whose numbers the tests work out by hand.
const (
	sessionFolder = "../../testdata/evidence/session"
	perfoptFolder = "../../testdata/evidence/perfopt"
)

// folderReport analyses a folder of evidence alone.
func folderReport(tb testing.TB, folder string) *report.Report {
	tb.Helper()
	res, err := analyze.Run(context.Background(), "", analyze.Options{Evidence: []analyze.Evidence{{Path: folder}}})
	if err != nil {
		tb.Fatal(err)
	}
	return res.Report
}

// filesReport analyses evidence that the test writes.
func filesReport(tb testing.TB, files map[string]string) *report.Report {
	tb.Helper()
	return folderReport(tb, evidenceFolder(tb, files))
}

func evidenceFolder(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// nearly is metric for values that are not exact in binary.
func nearly(tb testing.TB, r *report.Report, want float64, id string, pairs ...string) {
	tb.Helper()
	l := report.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	m := r.Find(id, l)
	if m == nil || m.Value == nil || math.Abs(*m.Value-want) > 1e-9*math.Abs(want) {
		tb.Errorf("%s{%s} = %v, want %v", id, l, sectiontest.ShownValue(m), want)
	}
}

// unknownMetric checks that a metric is there and null.
func unknownMetric(tb testing.TB, r *report.Report, id string, pairs ...string) {
	tb.Helper()
	l := report.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	if m := r.Find(id, l); m == nil || m.Value != nil {
		tb.Errorf("%s{%s} = %v, want null", id, l, sectiontest.ShownValue(m))
	}
}

func findsIt(r *report.Report, id string) bool { return sectiontest.FindingOf(r, id) != nil }

func wantFindings(tb testing.TB, r *report.Report, want bool, ids ...string) {
	tb.Helper()
	for _, id := range ids {
		if findsIt(r, id) != want {
			tb.Errorf("finding %s: %v, want %v", id, !want, want)
		}
	}
}

func warnsOf(r *report.Report, code string) bool {
	for _, w := range r.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// What env.json says of packages stands beside the engine in the head of the report, and a comparison tells a change of it.
func TestPackagesAreEnvironment(t *testing.T) {
	r := folderReport(t, perfoptFolder)
	if e := r.Environment.Software(); e != "torch 2.6.0+cu124, transformers 4.46.3" {
		t.Errorf("software %q", e)
	}
	for _, f := range report.EnvironmentFields() {
		if f.Name == "packages" && (f.Class != report.SoftField || !f.Differ(f.Get(&r.Environment), "torch 2.7.0")) {
			t.Errorf("%+v does not tell packages apart", f)
		}
	}
}
