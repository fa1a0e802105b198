package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// action runs the action's program with inputs, in a folder, as a step of run 41.
func action(t *testing.T, inputs string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	vars := map[string]string{"INPUTS": inputs, "GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "41", "GITHUB_RUN_ATTEMPT": "2"}
	code = run(context.Background(), []string{"action"}, &env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(name string) string { return vars[name] }})
	return code, out.String()
}

// TestActionReports: the folder holds the reports of this run alone, each says whose it is, and what explain did not write stays.
func TestActionReports(t *testing.T) {
	trace, err := filepath.Abs("../../testdata/base.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"base-1.sqlite", "head-1.sqlite", "head-2.sqlite"} {
		put(t, name, b, 0o644)
	}
	three := `{"command": "report", "out": "reports", "baseline": "base-*.sqlite", "candidate": "head-1.sqlite\nhead-2.sqlite"}`
	list := func() []string {
		found, _ := filepath.Glob("reports/*/*/report.json")
		return found
	}
	if code, said := action(t, three); code != 0 || len(list()) != 3 {
		t.Fatalf("%d, %q: %s", code, list(), said)
	}
	f, err := os.Open("reports/head/2-head-2/report.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r, err := report.Read(f); err != nil || r.Trace.Run == nil || *r.Trace.Run != (report.MeasuredBy{ID: 41, Attempt: 2}) {
		t.Errorf("%v, %+v", err, r.Trace.Run)
	}
	two := strings.Replace(three, `\nhead-2.sqlite`, "", 1)
	if code, said := action(t, two); code != 0 || len(list()) != 2 {
		t.Errorf("%d, %q: %s", code, list(), said)
	}
	if code, said := action(t, strings.Replace(three, "head-2", "gone-*", 1)); code != exitInput || !strings.Contains(said, "::error title=explain::no capture of the head is where the input says") {
		t.Errorf("%d: %s", code, said)
	}
	if code, said := action(t, three); code != 0 || len(list()) != 3 { // after the error
		t.Errorf("%d, %q: %s", code, list(), said)
	}
	put(t, "reports/head/mine.txt", []byte("x"), 0o644)
	if code, said := action(t, three); code != exitUsage || !strings.Contains(said, "explain did not write it") {
		t.Errorf("%d: %s", code, said)
	}
}
