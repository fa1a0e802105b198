//go:build linux

package capturesession_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestRealNsys captures with the nsys that is installed here ($NSYS, or on PATH). It needs no GPU: what it wants is that the flags are
// accepted, that a window opens and shuts, that a raw stream is imported, and that nothing is left running.
func TestRealNsys(t *testing.T) {
	name := os.Getenv("NSYS")
	if name == "" {
		name = "nsys"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("nsys is not installed here")
	}
	for _, x := range []struct {
		name      string
		args      []string
		code      int
		want      string // on standard error
		keeps     state
		interrupt string // Ctrl-C once this is said; empty: none
		disk      string // size of the file system; empty: the ordinary one
	}{
		{name: "whole run", args: []string{"--", "sh", "-c", "sleep 0.2"}, want: "Exporting", keeps: leavesWhole},
		{name: "window", args: []string{"--ready", "flag", "--duration", "500ms", "--", "sh", "-c", "sleep 1; touch flag; while :; do sleep 0.1; done"}, want: "Exporting", keeps: leavesWhole},
		{name: "duration", args: []string{"--duration", "1s", "--", "sleep", "30"}, want: "Exporting", keeps: leavesWhole},
		{name: "no such range", args: []string{"--nvtx", "decode", "--", "sleep", "0.1"}, code: 3, want: "explain: nothing was recorded"},
		{name: "program fails", args: []string{"--", "sh", "-c", "sleep 1; echo bad config >&2; exit 7"}, code: 3, want: "explain: the program ended with exit code 7: bad config; its trace is kept in out", keeps: leavesWhole},
		{name: "a daemon stays", args: []string{"--", "sh", "-c", "setsid sleep 60 & sleep 1"}, code: 3, want: "explain: interrupted: out holds what was recorded", keeps: leavesWhole,
			interrupt: "The program has ended; nsys is waiting for processes that it started: sleep (pid "},
		{name: "the server dies and its child lives", args: []string{"--ready", "flag", "--duration", "1s", "--", "sh", "-c", "sleep 60 & sleep 1; echo CUDA out of memory >&2; exit 1"}, code: 3,
			want: "are still running: sleep (pid "},
		{name: "overhead", args: []string{"--overhead", "--ready", "flag", "--client", "sleep 0.5", "--", "sh", "-c", "trap 'rm -f flag; exit' INT TERM; touch flag; while :; do sleep 0.1; done"},
			want: "under the profiler: ", keeps: leavesWhole},
		{name: "the disk is full", args: []string{"--", "sh", "-c", "sleep 0.2"}, code: 3, want: "explain: the disk is full", disk: "600k"},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			if x.disk != "" {
				mountSmall(t, dir, x.disk)
			}
			c := explaintest.Process(t, dir, nil, append([]string{"capture", "--nsys", path, "--out", "out", "--no-report"}, x.args...)...)
			c.Env = append(c.Env, "PATH="+os.Getenv("PATH"))
			code, said := signalWhen(t, c, syscall.SIGINT, x.interrupt, 1)
			if code != x.code || !strings.Contains(said, x.want) {
				t.Fatalf("exit code %d, want %d; said:\n%s", code, x.code, said)
			}
			checkLeft(t, c, dir, x.keeps)
		})
	}
}
