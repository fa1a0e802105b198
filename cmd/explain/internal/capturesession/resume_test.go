//go:build linux

package capturesession_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestResumeLineWorksAsPrinted: the line that an error prints finishes the capture, where nsys was named by a path and is
// not on PATH, and the folder's name has blanks and quotes.
func TestResumeLineWorksAsPrinted(t *testing.T) {
	t.Parallel()
	for name, named := range map[string][]string{"flag": {"--nsys", "my tools/nsys 1"}, "variable": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tool := filepath.Join(dir, "my tools", "nsys 1")
			explaintest.Put(t, tool, []byte("#!/bin/sh\nexec standin-nsys \"$@\"\n"), 0o755)
			env := []string{"PATH=" + os.Getenv("PATH"), "NSYS_STANDIN=fault=export_fail"}
			if named == nil {
				env = append(env, "NSYS="+tool)
			}
			said, err := explaintest.Process(t, dir, env, append(append([]string{"capture", "--out", "it's mine"}, named...), "--", "true")...).CombinedOutput()
			_, line, found := strings.Cut(strings.TrimSpace(string(said)), "continue with: ")
			if err == nil || !found {
				t.Fatalf("%v: %s", err, said)
			}
			c := explaintest.Process(t, dir, []string{"PATH=" + os.Getenv("PATH")}, line)
			shell := exec.Command("sh", "-c", line)
			shell.Dir, shell.Env = c.Dir, c.Env
			if said, err := shell.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", line, err, said)
			}
			if _, err := os.Stat(filepath.Join(dir, "it's mine", "report.json")); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		})
	}
}
