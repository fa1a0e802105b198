package examples

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

// TestHistoryBranch runs examples/history/branch.sh: three jobs at once push to one branch, and none is lost.
func TestHistoryBranch(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed here")
	}
	script, err := filepath.Abs("../../../../examples/history/branch.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.Symlink(explaintest.Program(t), filepath.Join(bin, "explain")); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "GITHUB_REPOSITORY=")
	do := func(in, name string, args ...string) (string, error) {
		c := exec.Command(name, args...)
		c.Dir, c.Env = in, env
		out, err := c.CombinedOutput()
		return string(out), err
	}
	must := func(in, name string, args ...string) string {
		out, err := do(in, name, args...)
		if err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
		return out
	}
	must(dir, "git", "init", "-q", "--bare", "-b", "main", "remote")
	var wg sync.WaitGroup
	for i := range 3 {
		job := filepath.Join(dir, string(rune('a'+i)))
		must(dir, "git", "init", "-q", "-b", "main", job)
		must(job, "git", "remote", "add", "origin", filepath.Join(dir, "remote"))
		name := filepath.Join(dir, "captures", string(rune('a'+i))+".json")
		var text bytes.Buffer
		if err := report.Write(&text, historytest.Report(t, historytest.Capture{Seed: uint64(i + 1), Noise: 0.007, Steps: 4})); err != nil {
			t.Fatal(err)
		}
		explaintest.Put(t, name, text.Bytes(), 0o644)
		wg.Add(1)
		go func() {
			defer wg.Done()
			if out, err := do(job, script, "add", name, "--commit", historytest.Commit(i), "--time", "2026-01-01"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}()
	}
	wg.Wait()
	job := filepath.Join(dir, "a")
	must(job, script, "get", "history.db")
	list := must(job, "explain", "history", "list", "--store", "history.db")
	if n := strings.Count(list, "2026-01-01 00:00"); n != 3 {
		t.Errorf("%d runs of 3:\n%s", n, list)
	}
	if n := strings.TrimSpace(must(filepath.Join(dir, "remote"), "git", "rev-list", "--count", "explain-history")); n != "1" {
		t.Errorf("the branch has %s commits", n)
	}
	if out, err := do(job, script, "nothing", "x"); explaintest.Exit(t, err) != 2 || !strings.Contains(out, "branch.sh add REPORT") {
		t.Errorf("wrong usage: %v: %s", err, out)
	}
}
