package explaintest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// StandinPath is a folder with fakes for nsys, ncu, vllm and QdstrmImporter, to be put on PATH. They are the test
// binary (see [Standins]).
func StandinPath(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, program := range map[string]string{
		"nsys": "standin-nsys", "ncu": "standin-ncu", "vllm": "standin", "QdstrmImporter": "standin-import",
	} {
		Put(t, filepath.Join(dir, name), []byte("#!/bin/sh\nexec "+program+" \"$@\"\n"), 0o755)
	}
	return dir
}

// Process is explain in a folder, with the stand-ins on PATH and more of the environment as NAME=VALUE; it is not
// started yet. Its children have EXPLAIN_TEST with the folder in their environment.
func Process(t testing.TB, dir string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	if bin != "" { // else explain on PATH is what the test says
		Program(t)
	}
	c := exec.Command("explain", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+StandinPath(t)+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"STANDIN=tokens=4", "TMPDIR="+dir)
	c.Env = append(append(c.Env, env...), "EXPLAIN_TEST="+dir)
	c.WaitDelay = 10 * time.Second
	return c
}

// FilesIn are the names in a folder, which may be missing.
func FilesIn(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return lists.Map(entries, os.DirEntry.Name)
}
