//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestCaptureFaultsAtSystemCalls: as TestFaultsAtSystemCalls, for captures by a stand-in for nsys, whose own calls do not
// fail. What was recorded is never lost: it is in the folder, or in the one that the error names, from which it can be
// resumed. What --force replaces is there until the new capture is whole.
func TestCaptureFaultsAtSystemCalls(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	commands := map[string][]string{
		"capture": {"capture", "--out", "out", "--", "touch", "ran"},
		"replace": {"capture", "--out", "out", "--force", "--", "touch", "ran"},
		"repeat":  {"capture", "--out", "out", "--repeat", "2", "--no-report", "--", "touch", "ran"},
		"resume":  {"capture", "resume", "lost.failed", "--out", "out"},
	}
	for i, name := range longtest.Some(slices.Sorted(maps.Keys(commands)), 2) {
		args, rng := commands[name], rand.New(rand.NewPCG(*longSeed, uint64(i)))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := t.TempDir()
			switch name {
			case "replace":
				explainIn(t, before, "capture", "--out", "out", "--no-report", "--", "true")
			case "resume":
				explainIn(t, before, "capture", "--out", "lost.failed", "--no-report", "--", "true")
				for _, gone := range []string{"trace.sqlite", "logs/children.json"} {
					if err := os.Remove(filepath.Join(before, "lost.failed", gone)); err != nil {
						t.Fatal(err)
					}
				}
			}
			old := sums(t, filepath.Join(before, "out"))
			run := func(inject ...string) (code int, said, dir string) {
				dir = t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(before)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				c := explaintest.Process(t, dir, nil, args...)
				argv := append(append([]string{"-f", "-qq", "-b", "execve"}, inject...), append([]string{"--", c.Path}, c.Args[1:]...)...)
				traced := exec.CommandContext(ctx, strace, argv...)
				traced.Dir, traced.Env, traced.WaitDelay = c.Dir, c.Env, c.WaitDelay
				text, err := traced.CombinedOutput()
				if traced.ProcessState == nil || ctx.Err() != nil {
					t.Fatal(inject, err, ctx.Err(), string(text))
				}
				return traced.ProcessState.ExitCode(), string(text), dir
			}
			log := filepath.Join(t.TempDir(), "calls")
			code, said, dir := run("-o", log, "-e", "trace="+strings.Join(keysOf(faultCalls), ","))
			if code != exitOK {
				t.Fatalf("without a fault: exit %d: %s", code, said)
			}
			want := filesIn(t, filepath.Join(dir, "out"))
			most := countCalls(t, log)
			for _, call := range someCalls(i) {
				errno := faultCalls[call]
				for _, n := range drawn(rng, call, most[call]) {
					code, said, dir := run("-o", log, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", call, errno, n))
					if strings.Contains(said, "runtime: netpoll") || strings.Contains(said, "fatal error: runtime") || code == 127 {
						continue // the fault met Go itself, or the loader
					}
					wrote := filesIn(t, filepath.Join(dir, "out"))
					_, err := os.Stat(filepath.Join(dir, "ran"))
					recorded := err == nil || name == "resume"
					what := fmt.Sprintf("%s %d of %d fails with %s: exit %d", call, n, most[call], errno, code)
					switch whole := wrote == want; {
					case strings.Contains(said, "goroutine "):
						t.Errorf("%s, and a panic: %s", what, said)
					case code != exitOK && code != exitInput:
						t.Errorf("%s: %s", what, said)
					case code == exitOK && !whole:
						t.Errorf("%s, and the capture is another one:\n%s\nfor\n%s\n%s", what, wrote, want, said)
					case whole:
					case name == "repeat" && strings.Count(wrote, "trace.nsys-rep") == strings.Count(said, "Exporting trace"):
						// each that was recorded is in its place
					case wrote != "" && name != "repeat" && sums(t, filepath.Join(dir, "out")) != old:
						t.Errorf("%s, and a part of the capture is there:\n%s\n%s", what, wrote, said)
					case name == "replace" && wrote == "":
						t.Errorf("%s, and what was to be replaced is gone: %s", what, said)
					case recorded:
						_, resume, _ := strings.Cut(said, "continue with: explain capture resume ")
						kept, _, _ := strings.Cut(resume, "\n")
						switch calls, _ := os.ReadFile(log); {
						case name == "resume":
							kept = "lost.failed"
						case mute.Match(calls): // each thread has an n-th call: the one that was to say so failed too
							kept = "out.failed"
						}
						if resumed := explaintest.Process(t, dir, nil, "capture", "resume", kept, "--out", "again"); kept == "" || resumed.Run() != nil {
							t.Errorf("%s, and what was recorded cannot be resumed: %s\n%s", what, said, sums(t, dir))
						}
					}
				}
			}
		})
	}
}

// mute matches a write to stderr that was made to fail.
var mute = regexp.MustCompile(`write\(2, .*\(INJECTED\)`)

// explainIn runs explain in a folder, and it succeeds.
func explainIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	if said, err := explaintest.Process(t, dir, nil, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// filesIn are the names of the files below a folder, a line each.
func filesIn(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(sums(t, dir)) {
		name, sum, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(filepath.Base(name), "trace.") {
			sum = "\n"
		}
		b.WriteString(name + " " + sum)
	}
	return b.String()
}
