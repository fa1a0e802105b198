package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fuse is a context that ends when it is asked for the n-th time, as Ctrl-C at that moment would end it.
type fuse struct {
	context.Context
	left atomic.Int64
	blow func()
}

func newFuse(n int) *fuse {
	ctx, cancel := context.WithCancel(context.Background())
	f := &fuse{Context: ctx, blow: cancel}
	f.left.Store(int64(n))
	return f
}

func (f *fuse) burn() {
	if f.left.Add(-1) == 0 {
		f.blow()
	}
}

func (f *fuse) Err() error {
	f.burn()
	return f.Context.Err()
}

func (f *fuse) Done() <-chan struct{} {
	f.burn()
	return f.Context.Done()
}

// TestInterruptSaysWhatIsLeft: a long command that is interrupted at any moment exits with 3, says in one sentence what it left,
// and has left that: nothing, or all of --out where it had got so far.
func TestInterruptSaysWhatIsLeft(t *testing.T) {
	traces, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	tiny, two := filepath.Join(traces, "tiny.sqlite"), filepath.Join(traces, "twoprocs.sqlite")
	commit := strings.Repeat("a", 40)
	for _, x := range []struct {
		name string
		args func(out string) []string
		left string // the file of out that is there once it is whole
	}{
		{"report", func(out string) []string { return []string{tiny, "--quiet", "--out", out} }, "report.json"},
		{"diff of many", func(out string) []string {
			return []string{"diff", "--base", tiny + "," + two, "--head", two + "," + tiny, "--quiet", "--out", out}
		}, "comparison.json"},
		{"gate", func(out string) []string {
			return []string{"gate", "--base", tiny, "--head", two, "--quiet", "--out", out}
		}, "comparison.json"},
		{"calibrate", func(out string) []string {
			return []string{"calibrate", filepath.Join(traces, "base.sqlite"), filepath.Join(traces, "head.sqlite"), "--quiet", "--out", out}
		}, ""},
		{"merge", func(out string) []string { return []string{"merge", tiny, two, "--quiet", "--out", out} }, "report.json"},
		{"partial", func(out string) []string { return []string{"partial", tiny, "--quiet", "--out", out} }, ""},
		{"scrub", func(out string) []string { return []string{"scrub", tiny, out} }, ""},
		{"history", func(out string) []string {
			return []string{"history", "add", tiny, "--commit", commit, "--store", out}
		}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Setenv("GITHUB_ACTIONS", "")
			interrupted := 0
			for n, last := 1, 0; ; n, last = n+max(1, n/2), n {
				dir := t.TempDir()
				t.Chdir(dir)
				ctx := newFuse(n)
				var out, errs bytes.Buffer
				code := run(ctx, x.args("out"), &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: os.Getenv})
				ctx.blow()
				if code != exitInput {
					if info, err := os.Stat(filepath.Join("out", x.left)); err != nil || info.Size() == 0 {
						t.Errorf("asked %d times: exit %d and no %s: %v; said %s", n, code, x.left, err, errs.String())
					}
					if interrupted == 0 {
						t.Errorf("never interrupted; the last of %d, exit %d: %s", last, code, errs.String())
					}
					return
				}
				interrupted++
				if said := errs.String(); said != "explain: interrupted; nothing was written\n" {
					t.Errorf("asked %d times: said %q", n, said)
				}
				left, err := os.ReadDir(".")
				if x.name == "history" && len(left) > 0 { // writers run side by side: a store that was begun stays, without the run
					out.Reset()
					if code := run(context.Background(), x.args("out"), &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: os.Getenv}); code != exitOK || !strings.HasPrefix(out.String(), "aaaaaaaaaa: 1 run added, to out") {
						t.Errorf("asked %d times: the run was added: exit %d: %s%s", n, code, out.String(), errs.String())
					}
				} else if err != nil || len(left) > 0 {
					t.Errorf("asked %d times: left %v, %v", n, left, err)
				}
				if n > 1<<20 {
					t.Fatal("no end")
				}
			}
		})
	}
}

// TestInterruptedBisectKeepsItsCaptures: what a search learned until Ctrl-C is said and, with --out, kept.
func TestInterruptedBisectKeepsItsCaptures(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	trace, err := filepath.Abs("../../testdata/serving.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint(kept), func(t *testing.T) {
			t.Chdir(t.TempDir())
			script := `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_GLOBAL=/dev/null
git init -q -b main repo; cd repo; for i in 1 2 3 4; do git commit -q --allow-empty -m "$i"; git tag "v$i"; done`
			if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			args := []string{"bisect", "--checkout", "repo", "--good", "v1", "--bad", "v4", "--quiet"}
			left := `nothing was written: --out keeps them`
			if kept {
				args, left = append(args, "--out", "found"), `found holds them`
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			dir := t.TempDir()
			go func() { // the third capture hangs
				for ctx.Err() == nil {
					if n, _ := os.ReadFile(filepath.Join(dir, "n")); string(n) == "2\n" {
						cancel()
					}
					time.Sleep(10 * time.Millisecond)
				}
			}()
			args = append(args, "--", "sh", "-c", `n=$(cat "$1/n" 2>/dev/null || echo 0); [ "$n" -lt 2 ] || exec sleep 60
cp "$2" "$EXPLAIN_OUT"; [ "$n" -lt 1 ] || { echo 2 > "$1/n"; exec sleep 60; }; echo 1 > "$1/n"`, "sh", dir, trace)
			var out, errs bytes.Buffer
			code := run(ctx, args, &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: os.Getenv})
			want := regexp.MustCompile(`^explain: interrupted after 1 capture; one capture tells nothing yet; ` + left + `\n$`)
			if code != exitInput || !want.MatchString(errs.String()) {
				t.Errorf("exit %d, said %q", code, errs.String())
			}
			text, err := os.ReadFile("found/bisect.json")
			if kept != (err == nil) || kept && (!strings.Contains(string(text), `"settled": false`) || strings.Count(string(text), `"number"`) != 1) {
				t.Errorf("%v: %s", err, text)
			}
			reports, _ := filepath.Glob("found/reports/*.json")
			if kept != (len(reports) == 1) {
				t.Errorf("reports %v", reports)
			}
			if trees, err := exec.Command("git", "-C", "repo", "worktree", "list").Output(); err != nil || strings.Count(string(trees), "\n") != 1 {
				t.Errorf("%v: working trees are left: %s", err, trees)
			}
		})
	}
}
