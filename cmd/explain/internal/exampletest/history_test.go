package exampletest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

// TestHistoryBranch runs examples/history/branch.sh: three jobs at once push to one branch, and none is lost; nor are
// theirs when a fourth job cannot fetch the branch at first.
func TestHistoryBranch(t *testing.T) {
	t.Parallel()
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
	for i := range 4 {
		if i == 3 {
			wg.Wait()
			once := "#!/bin/sh\n[ \"$1\" = fetch ] && rm \"$0\" && exit 128\nPATH=${PATH#*:} exec git \"$@\"\n"
			explaintest.Put(t, filepath.Join(bin, "git"), []byte(once), 0o755)
		}
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
	if n := strings.Count(list, "2026-01-01 00:00"); n != 4 {
		t.Errorf("%d runs of 4:\n%s", n, list)
	}
	if n := strings.TrimSpace(must(filepath.Join(dir, "remote"), "git", "rev-list", "--count", "explain-history")); n != "1" {
		t.Errorf("the branch has %s commits", n)
	}
	if out, err := do(job, script, "nothing", "x"); explaintest.Exit(t, err) != 2 || !strings.Contains(out, "branch.sh add REPORT") {
		t.Errorf("wrong usage: %v: %s", err, out)
	}
}

// historyStep is a step of the workflows in examples/history/README.md.
type historyStep struct {
	Name string            `yaml:"name"`
	If   string            `yaml:"if"`
	Uses string            `yaml:"uses"`
	Run  string            `yaml:"run"`
	Env  map[string]string `yaml:"env"`
	With map[string]string `yaml:"with"`
}

// historyWorkflows are the workflows of examples/history/README.md by their headings.
func historyWorkflows(t *testing.T) map[string][]historyStep {
	t.Helper()
	page := string(explaintest.Read(t, "../../../../examples/history/README.md"))
	list := map[string][]historyStep{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		name, _, _ := strings.Cut(section, "\n")
		_, block, found := strings.Cut(section, "```yaml\n")
		if !found {
			continue
		}
		block, _, _ = strings.Cut(block, "```")
		var steps []historyStep
		if err := yaml.UnmarshalWithOptions([]byte(block), &steps, yaml.Strict()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list[name] = steps
	}
	return list
}

// nights runs a workflow as GitHub does, each night in an empty folder with one capture: its commands in bash, gh and the
// actions of others by stand-ins that keep artifacts and caches in folders.
type nights struct {
	t     *testing.T
	bin   string // programs in front of PATH
	kept  string // artifacts/RUN/NAME and caches/KEY
	steps []historyStep
}

// run is one night: whether the job succeeded, and its folder.
func (n *nights) run(number int) (ok bool, dir string) {
	n.t.Helper()
	dir = n.t.TempDir()
	var text bytes.Buffer
	c := historytest.Capture{Seed: uint64(number), Noise: 0.007, Steps: 4}
	if err := report.Write(&text, historytest.Report(n.t, c)); err != nil {
		n.t.Fatal(err)
	}
	explaintest.Put(n.t, filepath.Join(dir, "run-1/report.json"), text.Bytes(), 0o644)
	explaintest.Put(n.t, filepath.Join(dir, ".github/CODEOWNERS"), []byte("* @all\n"), 0o644)
	id := fmt.Sprint(1000 + number)
	fill := strings.NewReplacer("${{ github.token }}", "t", "${{ github.run_id }}", id).Replace
	ok = true
	var save string // the cache that the end of a job that succeeded writes
	for _, s := range n.steps {
		if !ok && s.If != "${{ !cancelled() }}" {
			continue
		}
		if strings.Contains(s.Run, "${{") {
			n.t.Errorf("what a person can write comes into a command: %s", s.Run)
		}
		action, _, _ := strings.Cut(s.Uses, "@")
		var script string
		switch {
		case s.Run != "":
			script = s.Run
		case action == "actions/upload-artifact":
			script = `to="$KEPT/artifacts/$RUN/` + s.With["name"] + `"; mkdir -p "$to"; cp -r ` + strings.Join(strings.Fields(s.With["path"]), " ") + ` "$to/"`
		case action == "actions/cache": // the newest of the prefix
			file, prefix := s.With["path"], s.With["restore-keys"]
			script = `mkdir -p "$KEPT/caches"; from=$(ls "$KEPT/caches" | grep "^` + prefix + `" | sort | tail -n 1); [ -z "$from" ] || cp "$KEPT/caches/$from" ` + file
			save = `to="$KEPT/caches/` + fill(s.With["key"]) + `"; [ ! -e "$to" ]; cp ` + file + ` "$to"`
		default:
			n.t.Fatalf("no stand-in for %q", s.Uses)
		}
		env := []string{"RUN=" + id, "GITHUB_SHA=" + historytest.Commit(number)}
		for k, v := range s.Env {
			env = append(env, k+"="+fill(v))
		}
		ok = n.bash(dir, script, env...) && ok
	}
	if ok && save != "" && !n.bash(dir, save) {
		n.t.Error("the cache could not be kept: is its key that of another night?")
	}
	status := map[bool]string{true: "success", false: "failure"}[ok]
	explaintest.Put(n.t, filepath.Join(n.kept, "runs", id), []byte(status+"\n"), 0o644)
	return ok, dir
}

func (n *nights) bash(dir, script string, env ...string) bool {
	n.t.Helper()
	c := exec.Command("bash", "-e", "-c", script)
	c.Dir = dir
	c.Env = append(append(os.Environ(), "PATH="+n.bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "KEPT="+n.kept, "GITHUB_REPOSITORY=octo/llm"), env...)
	out, err := c.CombinedOutput()
	n.t.Logf("%s\n%s%v", script, out, err)
	return err == nil
}

// gh knows the runs of a workflow and their artifacts, for the two commands that the example has.
const historyGH = `#!/usr/bin/env bash
set -eu
[ "$GH_TOKEN" = t ]
case "$1 $2" in
"run list")
  status= limit=20
  while [ $# -gt 0 ]; do case "$1" in --status) status=$2 ;; --limit) limit=$2 ;; esac; shift; done
  for id in $(ls "$KEPT/runs" 2>/dev/null | sort -rn); do
    if [ "$status" = completed ] || [ "$status" = "$(cat "$KEPT/runs/$id")" ]; then echo "$id"; fi
  done | head -n "$limit" ;;
"run download")
  [ "$4" = --name ]
  [ -d "$KEPT/artifacts/$3/$5" ] || { echo "no artifact matches any of the names or patterns provided" >&2; exit 1; }
  cp -r "$KEPT/artifacts/$3/$5/." . ;;
*) echo "gh $*: not known here" >&2; exit 1 ;;
esac
`

// TestHistoryInAnArtifactOrACache runs the workflows of examples/history/README.md for nights in a row: each begins with the
// history of all nights before, whatever came of them.
func TestHistoryInAnArtifactOrACache(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed here")
	}
	workflows := historyWorkflows(t)
	begin := func(t *testing.T, name string) *nights {
		n := &nights{t: t, bin: t.TempDir(), kept: t.TempDir(), steps: workflows[name]}
		if len(n.steps) < 2 {
			t.Fatalf("the page has no workflow %q", name)
		}
		if err := os.Symlink(explaintest.Program(t), filepath.Join(n.bin, "explain")); err != nil {
			t.Fatal(err)
		}
		explaintest.Put(t, filepath.Join(n.bin, "gh"), []byte(historyGH), 0o755)
		return n
	}
	runs := func(t *testing.T, file string) int {
		t.Helper()
		said, err := exec.Command(explaintest.Program(t), "history", "list", "--format", "json", "--store", file).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return strings.Count(string(said), `"commit": `)
	}
	t.Run("artifact", func(t *testing.T) {
		n := begin(t, "An artifact (GitHub Actions)")
		for night := 1; night <= 3; night++ {
			// Few nights, in which nothing can be found: check says 4, and the job is no success.
			ok, dir := n.run(night)
			if got := runs(t, filepath.Join(dir, "history.db")); ok || got != night {
				t.Errorf("night %d: success %v, %d runs in the history", night, ok, got)
			}
		}
		// A run that was cancelled before it kept anything.
		explaintest.Put(t, filepath.Join(n.kept, "runs/1004"), []byte("cancelled\n"), 0o644)
		_, dir := n.run(5)
		if got := runs(t, filepath.Join(dir, "history.db")); got != 4 {
			t.Errorf("after a run without an artifact the history has %d runs, want 4", got)
		}
		for _, name := range []string{"history.db", "history/index.html", "history/check.json"} {
			if len(explaintest.Read(t, filepath.Join(n.kept, "artifacts/1005/explain-history", name))) == 0 {
				t.Errorf("the artifact's %s is empty", name)
			}
		}
	})
	t.Run("cache", func(t *testing.T) {
		n := begin(t, "A cache (GitHub Actions)")
		for night := 1; night <= 3; night++ {
			ok, dir := n.run(night)
			if got := runs(t, filepath.Join(dir, "history.db")); !ok || got != night {
				t.Errorf("night %d: success %v, %d runs in the history", night, ok, got)
			}
		}
	})
}
