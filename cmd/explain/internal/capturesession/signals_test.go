//go:build linux

package capturesession_test

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// signalWhen runs explain and sends it a signal, some times, once it says something on standard error; never, where
// that is empty.
func signalWhen(t *testing.T, c *exec.Cmd, sig syscall.Signal, when string, times int) (code int, said string) {
	t.Helper()
	errs, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if when != "" && strings.Contains(lines.Text(), when) {
			when = ""
			for range times {
				time.Sleep(500 * time.Millisecond)
				if err := c.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return explaintest.Exit(t, c.Wait()), all.String()
}

// TestSignalsEndACapture: a terminal that closes, Ctrl-\ and the end of a job are as Ctrl-C at every stage: every process ends, and what
// was recorded is kept.
func TestSignalsEndACapture(t *testing.T) {
	t.Parallel()
	const hup, quit, term = syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM
	// Tests under nohup ignore SIGHUP, which children inherit; that of a caught signal they do not.
	signal.Notify(make(chan os.Signal, 1), hup)
	before, kept, failed := "explain: interrupted before anything was recorded", "explain: interrupted: out holds what was recorded up to then",
		"explain capture resume out.failed"
	busy := []string{"STANDIN=ttft=5ms,tokens=4"}
	load := []string{"vllm", "--model", "m", "--num-requests", "100000", "--no-report", "--grace", "2s"}
	program := []string{"--no-report", "--", "sh", "-c", "sleep 60"}
	for _, x := range longtest.Some([]struct {
		name  string
		sig   syscall.Signal
		times int
		when  string
		env   []string
		args  []string
		says  string
		keeps state
	}{
		{"hangup while the server starts", hup, 1, "Starting vllm", []string{"STANDIN=healthy_after=never"}, load, before, leavesNothing},
		{"hangup while the server is waited for", hup, 1, "Waiting until", []string{"STANDIN=healthy_after=never"}, load, before, leavesNothing},
		{"quit while the server is waited for", quit, 1, "Waiting until", []string{"STANDIN=healthy_after=never"}, load, before, leavesNothing},
		{"end while the server is waited for", term, 1, "Waiting until", []string{"STANDIN=healthy_after=never"}, load, before, leavesNothing},
		{"hangup under load", hup, 1, "Recording", busy, load, kept, leavesWhole},
		{"quit under load", quit, 1, "Recording", busy, load, kept, leavesWhole},
		{"hangup of a server that does not end", hup, 1, "Recording", []string{"STANDIN=ttft=5ms,tokens=4,stop=ignore"}, load, kept, leavesWhole},
		{"hangup while a program runs", hup, 1, "Recording", nil, program, kept, leavesWhole},
		{"quit while a program runs", quit, 1, "Recording", nil, program, kept, leavesWhole},
		{"end while a program runs", term, 1, "Recording", nil, program, kept, leavesWhole},
		{"hangup while a client runs", hup, 1, "Recording", nil, []string{"--no-report", "--ready", "ready", "--client", "sleep 60", "--", "sh", "-c", "touch ready; sleep 60"}, kept, leavesWhole},
		{"hangup in a window", hup, 1, "Recording", nil, []string{"--no-report", "--ready", "ready", "--duration", "60s", "--", "sh", "-c", "touch ready; sleep 60"}, kept, leavesWhole},
		{"hangup while nsys starts to record", hup, 1, "Waiting until", []string{"NSYS_STANDIN=fault=start_hang"}, []string{"--no-report", "--ready", "ready", "--duration", "60s", "--grace", "1s", "--", "sh", "-c", "touch ready; sleep 60"}, "interrupted", leavesNothing},
		{"hangup twice while the raw stream is imported", hup, 2, "Importing", []string{"NSYS_STANDIN=fault=importer_hang"}, []string{"--", "true"}, failed, leavesRecording},
		{"hangup twice while it is exported", hup, 2, "Exporting", []string{"NSYS_STANDIN=fault=export_hang"}, []string{"--", "true"}, failed, leavesRecording},
		{"quit twice while it is exported", quit, 2, "Exporting", []string{"NSYS_STANDIN=fault=export_hang"}, []string{"--", "true"}, failed, leavesRecording},
		{"hangup while a daemon is waited for", hup, 1, "The program has ended; nsys is waiting for processes that it started: sleep (pid ", nil,
			[]string{"--no-report", "--", "sh", "-c", "setsid sleep 60 & sleep 1"}, kept, leavesWhole},
		{"Ctrl-C while a program with a daemon runs", syscall.SIGINT, 1, "Recording", nil, []string{"--no-report", "--", "sh", "-c", "setsid sleep 60 & sleep 60"}, kept, leavesWhole},
		{"Ctrl-C while a daemon that ignores TERM is waited for", syscall.SIGINT, 1, "The program has ended", nil,
			[]string{"--no-report", "--grace", "1s", "--", "sh", "-c", "(trap '' TERM INT; setsid sh -c 'while :; do sleep 0.1; done') & sleep 1"}, kept, leavesWhole},
		{"Ctrl-C while a program that ignores TERM runs", syscall.SIGINT, 1, "Recording", nil, []string{"--no-report", "--grace", "1s", "--", "sh", "-c", "trap '' TERM INT; while :; do sleep 0.1; done"}, kept, leavesWhole},
		{"Ctrl-C twice while a program with a daemon runs", syscall.SIGINT, 2, "Recording", nil, []string{"--no-report", "--", "sh", "-c", "setsid sleep 60 & sleep 60"}, failed, leavesRecording},
		{"Ctrl-C while it is exported", syscall.SIGINT, 1, "Exporting", []string{"NSYS_STANDIN=fault=export_hang"}, []string{"--grace", "1s", "--", "true"}, "did not end within 1s (--grace sets it)", leavesRecording},
		{"Ctrl-C while the raw stream is imported", syscall.SIGINT, 1, "Importing", []string{"NSYS_STANDIN=fault=importer_hang"}, []string{"--grace", "1s", "--", "true"}, "did not end within 1s (--grace sets it)", leavesRecording},
		{"Ctrl-C while nsys stop hangs", syscall.SIGINT, 1, "Recording", []string{"NSYS_STANDIN=fault=stop_hang"}, []string{"--no-report", "--grace", "1s", "--ready", "ready", "--duration", "100ms", "--", "sh", "-c", "touch ready; sleep 60"}, kept, leavesWhole},
		{"hangup while the server is measured again", hup, 1, "Starting the server again", []string{"STANDIN=tokens=4,healthy_after=3s"},
			[]string{"vllm", "--model", "m", "--mode", "full", "--num-requests", "2", "--warmup-requests", "0", "--grace", "1s"}, failed, leavesRecording},
	}, 8) {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := append([]string{"capture"}, x.args...)
			at := 1
			if x.args[0] == "vllm" {
				at = 2
			}
			args = append(args[:at:at], append([]string{"--out", "out"}, args[at:]...)...)
			c := explaintest.Process(t, dir, x.env, args...)
			code, said := signalWhen(t, c, x.sig, x.when, x.times)
			if strings.HasPrefix(x.name, "Ctrl-C twice") && strings.Contains(said, kept) { // the export was done before the second
				x.says, x.keeps = kept, leavesWhole
			}
			if code != cmdenv.Input || !strings.Contains(said, x.says) || strings.Count(said, "explain: ") != 1 {
				t.Errorf("exit code %d; said:\n%s", code, said)
			}
			checkLeft(t, c, dir, x.keeps)
		})
	}
}

// TestNohupIsHeard: a capture that was started with SIGHUP ignored outlives its terminal.
func TestNohupIsHeard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := explaintest.Process(t, dir, nil)
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", "trap '' HUP; exec explain capture --no-report --out out -- sleep 2"}
	if code, said := signalWhen(t, c, syscall.SIGHUP, "Recording", 1); code != cmdenv.OK || strings.Contains(said, "nterrupted") {
		t.Errorf("exit code %d; said:\n%s", code, said)
	}
	checkLeft(t, c, dir, leavesWhole)
}

// TestRepeatsThatCompletedAreKept: the third of three captures fails, by its program or by a signal; the first two are in their place.
func TestRepeatsThatCompletedAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	count := `n=$(ls -d out/run-* 2>/dev/null | wc -l); `
	c := explaintest.Process(t, dir, nil, "capture", "--no-report", "--repeat", "3", "--timeout", "3s", "--grace", "300ms", "--out", "out", "--", "sh", "-c",
		count+`test "$n" = 2 && sleep 60; true`)
	code, said := signalWhen(t, c, 0, "", 0)
	if code != cmdenv.Input || !strings.Contains(said, "did not end within 3s") || !strings.Contains(said, "continue with: explain capture resume out.failed") {
		t.Errorf("exit code %d; said:\n%s", code, said)
	}
	resume := explaintest.Process(t, dir, nil, "capture", "resume", "out.failed")
	if text, err := resume.CombinedOutput(); err != nil || !strings.Contains(string(text), "Wrote out") {
		t.Errorf("%v: %s", err, text)
	}
	for _, name := range []string{"run-1", "run-2", "run-3"} {
		if _, err := os.Stat(filepath.Join(dir, "out", name, "trace.sqlite")); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out.failed")); err == nil {
		t.Error("out.failed is still there")
	}
	if left := processesOf(dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// TestReadyFileOfTheRunBefore: the file by which a program says that it is ready stays from one run of a capture to the next. The next run
// waits until its own program has written it.
func TestReadyFileOfTheRunBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := explaintest.Process(t, dir, nil, "capture", "--no-report", "--repeat", "2", "--ready", "flag", "--client", "sh -c 'date +%s%N >> opened'", "--out", "out", "--",
		"sh", "-c", "sleep 1; date +%s%N >> written; touch flag; while :; do sleep 0.1; done")
	if code, said := signalWhen(t, c, 0, "", 0); code != cmdenv.OK {
		t.Fatalf("exit code %d; said:\n%s", code, said)
	}
	written, opened := strings.Fields(string(explaintest.Read(t, filepath.Join(dir, "written")))), strings.Fields(string(explaintest.Read(t, filepath.Join(dir, "opened"))))
	if len(written) != 2 || len(opened) != 2 || opened[0] < written[0] || opened[1] < written[1] {
		t.Errorf("the file was written at %v, and the client ran at %v", written, opened)
	}
	if left := processesOf(dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// TestSecondCaptureIsRefused: two captures into one folder; the second refuses before it starts its program.
func TestSecondCaptureIsRefused(t *testing.T) {
	dir := t.TempDir()
	first := explaintest.Process(t, dir, nil, "capture", "--no-report", "--out", "out", "--", "sh", "-c", "touch begun; while [ ! -e go ]; do sleep 0.05; done")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(dir, "begun"))
	second := explaintest.Process(t, dir, nil, "capture", "--force", "--out", "out", "--", "touch", "second")
	text, err := second.CombinedOutput()
	if code := explaintest.Exit(t, err); code != cmdenv.Usage || !strings.Contains(string(text), "out is being written by another explain capture (pid ") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "second")); err == nil {
		t.Error("the second program ran")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := explaintest.Exit(t, first.Wait()); code != cmdenv.OK {
		t.Errorf("the first: exit code %d", code)
	}
	checkLeft(t, first, dir, leavesWhole)
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for range 1200 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s is not there after a minute", path)
}

// TestKilledExplain: explain dies by SIGKILL at each stage, and nsys waits for a daemon as the real one does. Its watcher ends
// what is left, and keeps what was recorded.
func TestKilledExplain(t *testing.T) {
	const deaf = `(trap '' TERM INT HUP; setsid sh -c 'while :; do sleep 0.1; done') & `
	for _, x := range longtest.Some([]struct {
		name, when string
		env, args  []string
		keeps      bool
	}{
		{"a program", "Recording", nil, []string{"--", "sleep", "60"}, true},
		{"a program with a deaf daemon", "Recording", nil, []string{"--", "sh", "-c", deaf + "sleep 60"}, true},
		{"a daemon that is waited for", "The program has ended", nil, []string{"--", "sh", "-c", deaf + "sleep 1"}, true},
		{"a window that is open", "Recording", nil, []string{"--ready", "ready", "--duration", "60s", "--", "sh", "-c", deaf + "touch ready; sleep 60"}, true},
		{"an export", "Exporting", []string{"NSYS_STANDIN=fault=export_hang"}, []string{"--", "true"}, true},
		{"a window that is to open", "Waiting until", nil, []string{"--ready", "ready", "--duration", "60s", "--", "sh", "-c", deaf + "sleep 60"}, false},
	}, 3) {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := explaintest.Process(t, dir, x.env, append([]string{"capture", "--no-report", "--out", "out"}, x.args...)...)
			_, said := signalWhen(t, c, syscall.SIGKILL, x.when, 1)
			for until := time.Now().Add(2 * time.Minute); len(processesOf(dir)) > 0; time.Sleep(100 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("processes are left: %v; said %s", processesOf(dir), said)
				}
			}
			_, err := os.Stat(filepath.Join(dir, "out.failed/trace.nsys-rep"))
			if kept := err == nil; kept != x.keeps {
				t.Errorf("kept: %t, in %q", kept, explaintest.FilesIn(t, dir))
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".explain-*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if !x.keeps {
				return
			}
			if text, err := explaintest.Process(t, dir, nil, "capture", "resume", "out.failed", "--quiet").CombinedOutput(); err != nil || len(text) > 0 {
				t.Errorf("%v: %s", err, text)
			}
			if _, err := os.Stat(filepath.Join(dir, "out", "trace.sqlite")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKilledWatcher: explain and its watcher die by SIGKILL. The next capture ends what is left, and names it and the capture
// that was killed.
func TestKilledWatcher(t *testing.T) {
	dir := t.TempDir()
	first := explaintest.Process(t, dir, nil, "capture", "--no-report", "--out", "out", "--", "sh", "-c", "setsid sh -c 'trap \"\" INT TERM HUP; touch begun; sleep 61; sleep 61' & sleep 62")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(dir, "begun"))
	for pid, words := range processesOf(dir) {
		if strings.Contains(words, capture.WatchName) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	if left := processesOf(dir); len(left) == 0 {
		t.Fatal("nothing is left to be found")
	}
	next := explaintest.Process(t, dir, nil, "capture", "--no-report", "--out", "next", "--", "true")
	text, err := next.CombinedOutput()
	if code := explaintest.Exit(t, err); code != cmdenv.OK || !strings.Contains(string(text), "killed capture left running: ") || !strings.Contains(string(text), "sleep (pid ") ||
		!strings.Contains(string(text), "the capture of out was killed (pid ") || !strings.Contains(string(text), "explain capture resume out.failed") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if left := processesOf(dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	resume := explaintest.Process(t, dir, nil, "capture", "resume", "out.failed", "--quiet")
	if text, err := resume.CombinedOutput(); err != nil || len(text) > 0 {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "trace.sqlite")); err != nil {
		t.Error(err)
	}
}
