package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/gate/history"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

// loop is a repository of 60 commits, three of which make a step slower, each in another way.
type loop struct {
	t       *testing.T
	dir     string
	commits []string
	seed    uint64
}

// slower says what each of the three does to a step of 400 µs, and whose files it touches.
var slower = []struct {
	commit             int
	file, owner, cause string
	apply              func(c *historytest.Capture)
}{
	{15, "attention/flash.cu", "@attention-team", "flash_fwd_splitkv_kernel", func(c *historytest.Capture) { c.Kernels["attention"] = 1.3 }},
	{30, "gemm/gate.cu", "@gemm-team", "nvjet_tst_192x8", func(c *historytest.Capture) { c.Kernels["gate_gemm"] = 1.35 }},
	{45, "scheduler/loop.py", "@host-team", "idle", func(c *historytest.Capture) { c.Gap = 1.6 }},
}

func (l *loop) git(args ...string) string {
	l.t.Helper()
	c := exec.Command("git", args...)
	c.Dir = l.dir
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := c.CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (l *loop) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// capture is a report of a commit, as a file, with noise of 0.7 %.
func (l *loop) capture(commit int, path string) string {
	l.t.Helper()
	l.seed++
	c := historytest.Capture{Seed: l.seed, Noise: 0.007, Steps: 4, Kernels: map[string]float64{}}
	for _, s := range slower {
		if commit >= s.commit {
			s.apply(&c)
		}
	}
	r := historytest.Report(l.t, c)
	var b bytes.Buffer
	if err := report.Write(&b, r); err != nil {
		l.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// explain runs a command line and returns what it says on standard output.
func (l *loop) explain(code int, args ...string) string {
	l.t.Helper()
	var out, errs bytes.Buffer
	got := run(context.Background(), args, &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	if got != code {
		l.t.Fatalf("explain %s: exit %d, want %d:\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
	}
	return out.String()
}

// TestWholeLoop goes from 60 commits with three regressions through add, check, page, comment and bisect.
func TestWholeLoop(t *testing.T) {
	t.Parallel()
	start := time.Now()
	l := &loop{t: t, dir: t.TempDir()}
	work := t.TempDir()
	store := filepath.Join(work, "history.db")
	l.git("init", "-q", "-b", "main")
	l.write("CODEOWNERS", "* @all\n/attention/ @attention-team\n/gemm/ @gemm-team\n/scheduler/ @host-team\n")
	for i := range 60 {
		l.write("README", fmt.Sprintf("commit %d\n", i))
		subject := fmt.Sprintf("change %d", i)
		for _, s := range slower {
			if s.commit == i {
				l.write(s.file, subject)
				subject = "rework " + s.file
			}
		}
		l.git("add", ".")
		l.git("commit", "-qm", subject)
		l.commits = append(l.commits, l.git("rev-parse", "HEAD"))
		name := l.capture(i, filepath.Join(work, fmt.Sprintf("night-%d", i), "report.json"))
		l.explain(exitOK, "history", "add", name, "--store", store, "--commit", l.commits[i], "--time",
			time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC).AddDate(0, 0, i).Format(time.RFC3339), "--quiet")
	}

	var checks history.Checks
	text := l.explain(exitFail, "history", "check", "--store", store, "--checkout", l.dir, "--codeowners", filepath.Join(l.dir, "CODEOWNERS"), "--format", "json")
	if err := json.Unmarshal([]byte(text), &checks); err != nil {
		t.Fatal(err)
	}
	if len(checks.Changes) != len(slower) || checks.Open != len(slower) {
		t.Fatalf("%d changes, %d open: %s", len(checks.Changes), checks.Open, text)
	}
	for i, s := range slower {
		f := checks.Changes[len(slower)-1-i] // the newest first
		if f.After.Commit != l.commits[s.commit] {
			t.Errorf("%s: found at commit %s, want %s", s.file, f.After.Commit, l.commits[s.commit])
			continue
		}
		if !strings.Contains(f.Cause, s.cause) || strings.Join(f.Owners, " ") != "@all "+s.owner || len(f.Commits) != 1 || f.Commits[0].Subject != "rework "+s.file {
			t.Errorf("%s: cause %q, ask %v, commits %v", s.file, f.Cause, f.Owners, f.Commits)
		}
	}
	if said := l.explain(exitFail, "history", "check", "--store", store, "--checkout", l.dir); !strings.Contains(said, "rework gemm/gate.cu") {
		t.Errorf("check says: %s", said)
	}
	l.explain(exitOK, "history", "ack", l.commits[15], "--store", store, "--reason", "wider heads", "--expires", "2099-12-31")

	l.explain(exitOK, "history", "page", "--store", store, "--checkout", l.dir, "--out", filepath.Join(work, "page"))
	page := string(read(t, filepath.Join(work, "page", "index.html")))
	for _, want := range []string{"3 changes in 1 series of 60 nights, 2 open", "unit.time.p50 of decode/32", "wider heads", "<svg class=\"area\"", "rework scheduler/loop.py"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "src=\"http") || strings.Contains(page, "href=\"http") {
		t.Error("the page loads something")
	}

	head := l.capture(59, filepath.Join(work, "head", "report.json"))
	l.explain(exitOK, "gate", "--head", head, "--history", store, "--base-commit", l.commits[59], "--out", filepath.Join(work, "gate"))
	comment := string(read(t, filepath.Join(work, "gate", "comment.md")))
	for _, want := range []string{"History, noise: from 15 runs", "unit.time.p50 of decode/32: ", "30 nights)"} {
		if !strings.Contains(comment, want) {
			t.Errorf("the comment lacks %q:\n%s", want, comment)
		}
	}

	if !regexp.MustCompile(`unit\.time\.p50 of decode/32: [▁▂▃▄▅▆▇█]{30} [^▁▂▃▄▅▆▇█\n]+, 30 nights\)`).MatchString(comment) {
		t.Errorf("the comment has no line of 30 runs:\n%s", comment)
	}

	// The command takes the next of four captures of the commit that were made before.
	for i := 20; i <= 40; i++ {
		for n := range 6 {
			l.capture(i, filepath.Join(work, "captures", l.commits[i], fmt.Sprintf("%d.json", n)))
		}
	}
	script := `d=` + filepath.Join(work, "captures") + `/$EXPLAIN_COMMIT; grep -q . README || exit 1
for f in $d/*.json; do mkdir -p "$EXPLAIN_OUT"; mv $f "$EXPLAIN_OUT/report.json"; exit 0; done`
	said := l.explain(exitOK, "bisect", "--checkout", l.dir, "--good", l.commits[20], "--bad", l.commits[40], "--noise", "0.7%", "--out", filepath.Join(work, "bisect"),
		"--quiet", "--", "sh", "-c", script)
	if !strings.HasPrefix(said, l.commits[30]+" rework gemm/gate.cu\nfound, with a probability of ") || !strings.Contains(said, "nvjet_tst_192x8") {
		t.Errorf("bisect says: %s", said)
	}
	if trees := l.git("worktree", "list"); strings.Count(trees, "\n") != 0 {
		t.Errorf("working trees are left: %s", trees)
	}
	if kept := string(read(t, filepath.Join(work, "bisect", "bisect.json"))); !strings.Contains(kept, `"settled": true`) || !strings.Contains(kept, l.commits[30]) {
		t.Errorf("bisect.json: %s", kept)
	}
	checkSchema(t, "bisect", read(t, filepath.Join(work, "bisect", "bisect.json")))

	if !longtest.On() {
		return
	}
	// Captures are shared both ways: a search begins with those of the nights and of searches before it, and what it makes is in
	// the history, in a branch that no check of all branches takes for nights.
	few := filepath.Join(work, "few.db")
	l.explain(exitOK, "history", "add", filepath.Join(work, "captures", l.commits[22], "0.json"), "--store", few, "--commit", l.commits[22], "--time",
		"2026-03-01T00:00:00Z")
	search := func(number int, store string) (made, recalled int) {
		out := filepath.Join(work, fmt.Sprintf("bisect%d", number))
		l.explain(exitOK, "bisect", "--checkout", l.dir, "--good", l.commits[20], "--bad", l.commits[40], "--noise", "0.7%", "--history", store,
			"--out", out, "--quiet", "--", "sh", "-c", script)
		text := string(read(t, filepath.Join(out, "bisect.json")))
		recalled = strings.Count(text, `"recalled": true`)
		return strings.Count(text, `"recalled"`) - recalled, recalled
	}
	made, recalled := search(2, few)
	again, all := search(3, few)
	if made < 6 || recalled != 1 || again != 0 || all != made+1 {
		t.Errorf("%d captures made, %d recalled; then %d and %d", made, recalled, again, all)
	}
	type branch struct{ Branch string }
	var found struct{ Series []branch }
	text = l.explain(exitInconclusive, "history", "check", "--store", few, "--format", "json")
	if err := json.Unmarshal([]byte(text), &found); err != nil || slices.ContainsFunc(found.Series, func(s branch) bool { return s.Branch != "main" }) {
		t.Errorf("%v, series of %+v", err, found.Series)
	}
	if made, recalled := search(4, store); made != 0 || recalled != 21 {
		t.Errorf("of a history of all nights %d captures made, %d recalled", made, recalled)
	}
	t.Logf("the whole loop took %v", time.Since(start).Round(time.Second))
}
