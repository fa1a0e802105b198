//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestFilesOfHistoryFollowTheirSchemas: the lines of an export, and the log of decisions.
func TestFilesOfHistoryFollowTheirSchemas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, lines := filepath.Join(dir, "history.db"), filepath.Join(dir, "history.ndjson")
	for _, args := range [][]string{
		{"history", "add", "../../testdata/base.sqlite", "--store", store, "--commit", strings.Repeat("01", 20), "--repository", "o/r", "--branch", "main"},
		{"history", "list", "--store", store, "--format", "ndjson", "--out", lines},
	} {
		if code, said := runHere(t, args...); code != exitOK {
			t.Fatalf("%v: exit code %d: %s", args, code, said)
		}
	}
	all := strings.Split(strings.TrimSpace(string(read(t, lines))), "\n")
	if len(all) < 10 {
		t.Errorf("%d lines", len(all))
	}
	for _, i := range []int{0, len(all) / 2, len(all) - 1} {
		checkSchema(t, "history", []byte(all[i]))
	}
	base, err := filepath.Abs("../../testdata/base.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	c := explaintest.Process(t, dir, nil, "capture", "--out", "out", "--pair", "--until-decided", "true "+base, "true "+base)
	if said, err := c.CombinedOutput(); c.ProcessState == nil || c.ProcessState.ExitCode() == exitUsage {
		t.Fatalf("%v: %s", err, said)
	}
	checkSchema(t, "decisions", read(t, filepath.Join(dir, "out", "comparison", "decisions.json")))
}
