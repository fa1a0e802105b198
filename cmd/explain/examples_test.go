package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write examples/ anew")

// TestExamplesAreCurrent regenerates examples/serving from testdata/serving.sqlite and compares every byte.
func TestExamplesAreCurrent(t *testing.T) {
	got := explainTrace(t, "../../testdata/serving.sqlite")
	dir := filepath.FromSlash("../../examples/serving")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		for name, content := range got {
			if name != "stdout" && name != "stderr" {
				put(t, filepath.Join(dir, name), []byte(content), 0o644)
			}
		}
	}
	var want []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		want = append(want, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range got {
		if name == "stdout" || name == "stderr" {
			continue
		}
		if !slices.Contains(want, name) {
			t.Errorf("examples/serving lacks %s (go test ./cmd/explain -run TestExamplesAreCurrent -update)", name)
		} else if string(read(t, filepath.Join(dir, name))) != content {
			t.Errorf("examples/serving/%s is not what explain writes today (go test ./cmd/explain -run TestExamplesAreCurrent -update)", name)
		}
	}
	for _, name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("examples/serving/%s is no longer written", name)
		}
	}
}
