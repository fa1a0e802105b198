package main

import (
	"path/filepath"
	"testing"
)

// A folder of evidence, and JSON files that are evidence, are analysed; other folders and JSON files are mistakes.
func TestFindInput(t *testing.T) {
	evidence := filepath.FromSlash("../../testdata/evidence/")
	for path, want := range map[string]string{
		evidence + "session": traceInput, filepath.Join(evidence, "session", "moe_expert_tracking", "moe_summary.json"): traceInput,
		filepath.Join(evidence, "perfopt", "metrics.json"): traceInput, filepath.FromSlash("../../examples/serving"): reportInput, filepath.FromSlash("../../examples/serving/summary.json"): summaryInput,
	} {
		if in, err := findInput(path); err != nil || in.kind != want {
			t.Errorf("%s: %s (%v), want %s", path, in.kind, err, want)
		}
	}
	empty := t.TempDir()
	put(t, filepath.Join(empty, "a.json"), []byte(`{"a": 1}`), 0o644)
	for _, path := range []string{empty, filepath.Join(empty, "a.json")} {
		if in, err := findInput(path); err == nil {
			t.Errorf("%s: taken for a %s", path, in.kind)
		}
	}
}
