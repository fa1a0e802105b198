package input

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// A folder of evidence, and JSON files that are evidence, are analysed; other folders and JSON files are mistakes.
func TestFind(t *testing.T) {
	evidence := filepath.FromSlash("../../../../testdata/evidence/")
	for path, want := range map[string]Kind{
		evidence + "session": Trace, filepath.Join(evidence, "session", "moe_expert_tracking", "moe_summary.json"): Trace,
		filepath.Join(evidence, "perfopt", "metrics.json"): Trace, filepath.FromSlash("../../../../examples/serving"): Report, filepath.FromSlash("../../../../examples/serving/summary.json"): Summary,
	} {
		if in, err := Find(path); err != nil || in.Kind != want {
			t.Errorf("%s: %s (%v), want %s", path, in.Kind, err, want)
		}
	}
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "a.json"), []byte(`{"a": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, filepath.Join(empty, "a.json")} {
		if in, err := Find(path); err == nil {
			t.Errorf("%s: taken for a %s", path, in.Kind)
		}
	}
}

// Traces of one name are Named by the shortest end of their paths that tells them apart; a report.json goes by the trace it
// is of. A name that nothing shares, and one file Named twice, stay.
func TestNamesTellFilesApart(t *testing.T) {
	for _, c := range []struct{ paths, traces, want []string }{
		{[]string{"/data/run-1/trace.sqlite", "/data/run-9/trace.sqlite"}, []string{"trace.sqlite", "trace.sqlite"},
			[]string{"run-1/trace.sqlite", "run-9/trace.sqlite"}},
		{[]string{"a/x/t.sqlite", "b/x/t.sqlite", "b/y/t.sqlite"}, []string{"t.sqlite", "t.sqlite", "t.sqlite"},
			[]string{"a/x/t.sqlite", "b/x/t.sqlite", "y/t.sqlite"}},
		{[]string{"main/report.json", "head/t.sqlite"}, []string{"t.sqlite", "t.sqlite"}, []string{"main/t.sqlite", "head/t.sqlite"}},
		{[]string{"a.json", "b.json"}, []string{"t.sqlite", "t.sqlite"}, []string{"a.json", "b.json"}},
		{[]string{"a/base.sqlite", "a/head.sqlite"}, []string{"base.sqlite", "head.sqlite"}, []string{"base.sqlite", "head.sqlite"}},
		{[]string{"a/t.sqlite", "a/t.sqlite"}, []string{"t.sqlite", "t.sqlite"}, []string{"t.sqlite", "t.sqlite"}},
	} {
		var inputs []File
		var reports []*report.Report
		for i := range c.paths {
			inputs = append(inputs, File{Path: filepath.FromSlash(c.paths[i])})
			reports = append(reports, &report.Report{Trace: report.Provenance{Name: c.traces[i]}})
		}
		for i, r := range Named(inputs, reports) {
			if r.Trace.Name != c.want[i] || reports[i].Trace.Name != c.traces[i] {
				t.Errorf("%v: %q, want %q", c.paths, r.Trace.Name, c.want[i])
			}
		}
	}
}
