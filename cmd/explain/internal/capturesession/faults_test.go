//go:build linux

package capturesession_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// fault is one way in which a capture goes wrong.
type fault struct {
	name   string
	args   []string // after explain capture; OUT stands for the output folder
	env    []string
	code   int
	says   string
	keeps  state
	again  int // exit code of explain capture resume, where a recording is kept
	before func(t *testing.T, dir string) (env []string)
}

// state is what a capture leaves.
type state int

const (
	leavesNothing   state = iota // or the logs, in out.failed
	leavesWhole                  // the folder
	leavesRecording              // out.failed, which explain capture resume makes whole
	leavesForeign                // the folder with what somebody else wrote, as it was
)

var serverArgs = []string{"vllm", "--model", "m", "--num-requests", "4", "--warmup-requests", "1", "--no-report", "--grace", "300ms", "--ready-timeout", "20s"}

func server(more ...string) []string { return append(append([]string{}, serverArgs...), more...) }

// TestEveryFaultEndsInOneSentence injects faults into captures. Each ends in one sentence, with the right exit code, without a process
// that is left over, and without a folder that is only half there.
func TestEveryFaultEndsInOneSentence(t *testing.T) {
	t.Parallel()
	for _, f := range longtest.Some([]fault{
		// Nsight Systems.
		{name: "nsys is missing", args: []string{"--nsys", "no-such-nsys", "--", "true"}, code: 3, says: "no-such-nsys is not installed here"},
		{name: "nsys is too old", env: []string{"NSYS_STANDIN=version=2020.3"}, args: []string{"--", "true"}, code: 3, says: "is too old: explain capture needs 2021.4"},
		{name: "nsys is another program", env: []string{"NSYS_STANDIN=fault=foreign"}, args: []string{"--", "true"}, code: 3, says: "does not say which version"},
		{name: "nsys fails", env: []string{"NSYS_STANDIN=fault=profile_fail"}, args: []string{"--", "true"}, code: 3, says: "nsys-profile ended with exit code 1: profile failed as the test says"},
		{name: "nsys leaves nothing", env: []string{"NSYS_STANDIN=fault=no_report"}, args: []string{"--", "true"}, code: 3, says: "nsys ended without leaving a report"},
		{name: "nsys is killed", env: []string{"NSYS_STANDIN=fault=profile_kill"}, args: []string{"--", "sleep", "60"}, code: 3, says: "nsys-profile was ended by a signal (killed)"},
		{name: "export fails", keeps: leavesRecording, env: []string{"NSYS_STANDIN=fault=export_fail"}, args: []string{"--", "true"}, code: 3, says: "nsys-export ended with exit code 1"},
		{name: "export is killed", keeps: leavesRecording, env: []string{"NSYS_STANDIN=fault=export_kill"}, args: []string{"--", "true"}, code: 3, says: "nsys-export was ended by a signal (killed)"},
		{name: "export writes nothing", keeps: leavesRecording, env: []string{"NSYS_STANDIN=fault=no_sqlite"}, args: []string{"--", "true"}, code: 3, says: "said that it succeeded and wrote no trace.sqlite"},
		{name: "export writes an empty file", keeps: leavesRecording, env: []string{"NSYS_STANDIN=fault=empty_sqlite"}, args: []string{"--", "true"}, code: 3, says: "that is not a database"},
		{name: "a raw stream without importer", keeps: leavesRecording, env: []string{"NSYS_STANDIN=fault=qdstrm", "QDSTRM_IMPORTER=no-such-importer"}, args: []string{"--", "true"}, code: 3, says: "no-such-importer is not installed here"},
		{name: "the importer fails", keeps: leavesRecording, env: []string{"NSYS_STANDIN=fault=importer_fail"}, args: []string{"--", "true"}, code: 3, says: "importer ended with exit code 127: error while loading shared libraries"},
		{name: "the importer is killed", keeps: leavesRecording, env: []string{"NSYS_STANDIN=fault=importer_kill"}, args: []string{"--", "true"}, code: 3, says: "importer was ended by a signal (killed)"},
		// The program.
		{name: "the program is missing", args: []string{"--", "no-such-program"}, code: 3, says: "no-such-program"},
		{name: "the program fails", keeps: leavesWhole, args: []string{"--", "sh", "-c", "echo out of memory; exit 7"}, code: 3, says: "explain: the program ended with exit code 7: out of memory; its trace is kept in"},
		{name: "the program is killed", keeps: leavesWhole, args: []string{"--", "sh", "-c", "kill -9 $$"}, code: 3, says: "the program ended with exit code 143; its trace is kept in"},
		{name: "the program hangs", keeps: leavesRecording, args: []string{"--timeout", "1s", "--grace", "200ms", "--", "sleep", "60"}, code: 3, says: "did not end within 1s: raise --timeout"},
		{name: "the range never begins", args: []string{"--nvtx", "decode", "--", "true"}, code: 3, says: `the NVTX range "decode" never began`},
		{name: "the program ends too soon", args: []string{"--delay", "9s", "--", "true"}, code: 3, says: "ended before the delay of 9s was over"},
		{name: "never ready", args: []string{"--ready", "flag", "--ready-timeout", "500ms", "--duration", "1s", "--grace", "200ms", "--", "sleep", "60"}, code: 3, says: "was not ready within 500ms (the file does not exist)"},
		{name: "ready before the start", args: []string{"--ready", "flag", "--duration", "1s", "--", "sleep", "60"}, code: 3, says: "flag is there before the program is started: remove it",
			before: func(t *testing.T, dir string) []string {
				return noError(t, os.WriteFile(filepath.Join(dir, "flag"), nil, 0o600))
			}},
		{name: "another server answers", args: []string{"--duration", "1s", "--", "sleep", "60"}, code: 3, says: "answers before the program is started: another server has its port", before: otherServer},
		{name: "ended before it was ready", args: []string{"--ready", "flag", "--duration", "1s", "--", "sh", "-c", "echo bad config; exit 3"}, code: 3, says: "server ended with exit code 3: bad config (before it was ready)"},
		{name: "killed while recorded", keeps: leavesRecording, args: []string{"--ready", "flag", "--duration", "60s", "--grace", "200ms", "--", "sh", "-c", "touch flag; sleep 1; kill -9 $$"}, code: 3, says: "server ended with exit code 137"},
		{name: "fails when it is stopped", keeps: leavesWhole, args: []string{"--ready", "flag", "--duration", "100ms", "--no-report", "--", "sh", "-c", "trap 'exit 9' TERM; touch flag; while :; do sleep 0.1; done"}, code: 0, says: "the server ended with exit code 9 after the recording"},
		// The session.
		{name: "nsys launch is killed", env: []string{"NSYS_STANDIN=fault=launch_kill"}, args: []string{"--ready", "flag", "--duration", "1s", "--", "sleep", "60"}, code: 3, says: "server was ended by a signal (killed)"},
		{name: "nsys start fails", env: []string{"NSYS_STANDIN=fault=start_fail"}, args: server(), code: 3, says: "nsys-start ended with exit code 1"},
		{name: "nsys start is killed", env: []string{"NSYS_STANDIN=fault=start_kill"}, args: server(), code: 3, says: "nsys-start was ended by a signal (killed)"},
		{name: "nsys stop fails", keeps: leavesRecording, env: []string{"NSYS_STANDIN=fault=stop_fail"}, args: server(), code: 3, says: "nsys-stop ended with exit code 1"},
		{name: "nsys stop is killed", keeps: leavesRecording, env: []string{"NSYS_STANDIN=fault=stop_kill"}, args: server(), code: 3, says: "nsys-stop was ended by a signal (killed)"},
		{name: "nsys shutdown is killed", keeps: leavesWhole, env: []string{"NSYS_STANDIN=fault=shutdown_kill"}, args: server(), code: 0, says: "ended by force"},
		{name: "the client fails", keeps: leavesRecording, args: server("--client", "sh -c 'echo no route; exit 4'"), code: 3, says: "client ended with exit code 4: no route"},
		{name: "the client is killed", keeps: leavesRecording, args: server("--client", "sh -c 'kill -9 $$'"), code: 3, says: "client was ended by a signal (killed)"},
		// The server.
		{name: "no server installed", env: []string{"VLLM_VENV=/no/such/venv"}, args: server(), code: 3, says: "/no/such/venv/bin/vllm"},
		{name: "the server dies at start", env: []string{"STANDIN=start_fail=3"}, args: server(), code: 3, says: "ValueError: the script says so (before it was ready)"},
		{name: "the server dies under load", keeps: leavesRecording, env: []string{"STANDIN=tokens=4,die_after=3"}, args: server(), code: 3, says: "server ended with exit code 1"},
		{name: "the server is never healthy", env: []string{"STANDIN=healthy_after=never"}, args: server("--ready-timeout", "500ms"), code: 3, says: "was not ready within 500ms"},
		{name: "the server wants a key to say that it is ready", env: []string{"STANDIN=key=k"}, args: server(), code: 3, says: "the server wants a key before it says whether it is ready"},
		{name: "no profiler in its folder", args: []string{"vllm", "--model", "m", "--mode", "moe", "--profiler-path", "nowhere"}, code: 2, says: "nowhere holds no sitecustomize.py"},
		{name: "the server only fails", env: []string{"STANDIN=fault=http_500"}, args: server(), code: 3, says: "the load failed"},
		{name: "the port is taken", args: server(), code: 3, says: "is taken or not allowed", before: takePort},
		{name: "the trace cannot be analysed", keeps: leavesRecording, again: 3, args: []string{"--", "true", "bad.sqlite"}, code: 3, says: "the recording is in", before: badTrace},
		{name: "the server dies and its worker lives", env: []string{"STANDIN=start_fail=3,orphan=60"}, args: server(), code: 3, says: "are still running: sleep (pid "},
		{name: "its last words are quoted", env: []string{"STANDIN=start_fail=3,orphan=60"}, args: server(), code: 3, says: "(before it was ready): ValueError: the script says so"},
		{name: "not ready, with last words", args: []string{"--ready", "flag", "--ready-timeout", "1s", "--duration", "1s", "--grace", "200ms", "--", "sh", "-c", "echo loading shard 3 of 8; sleep 60"}, code: 3, says: "was not ready within 1s (the file does not exist): raise --ready-timeout, or see its log: loading shard 3 of 8"},
		{name: "a program ends and its worker lives", args: []string{"--ready", "flag", "--duration", "60s", "--grace", "200ms", "--", "sh", "-c", "sleep 60 & sleep 1; echo worker lost >&2; exit 1"}, code: 3, says: "are still running: sleep (pid "},
		{name: "a worker is all that is left under load", keeps: leavesRecording, args: []string{"--ready", "flag", "--client", "sleep 60", "--grace", "200ms", "--", "sh", "-c", "touch flag; sleep 60 & sleep 2; exit 1"}, code: 3, says: "(while the load was sent)"},
		{name: "the program fails at its end, without a word", keeps: leavesWhole, args: []string{"--", "sh", "-c", "exit 9"}, code: 3, says: "explain: the program ended with exit code 9; its trace is kept in"},
		{name: "nothing on the GPU", keeps: leavesWhole, args: []string{"--", "true", "empty.sqlite"}, code: 3, says: "nothing was recorded", before: emptyTrace},
		{name: "no CUDA asked for", keeps: leavesWhole, args: []string{"--trace", "osrt", "--", "true", "empty.sqlite"}, code: 3, says: "--trace osrt records no CUDA; add cuda to it", before: emptyTrace},
		{name: "force on somebody's folder", keeps: leavesForeign, args: []string{"--force", "--", "true"}, code: 2, says: "(src), and --force replaces captures alone", before: precious},
		{name: "a folder that is not empty", keeps: leavesForeign, args: []string{"--", "true"}, code: 2, says: "exists and is not empty", before: precious},
		// Nsight Compute.
		{name: "ncu is missing", env: []string{"NCU=no-such-ncu"}, args: []string{"vllm", "--model", "m", "--mode", "full"}, code: 3, says: "no-such-ncu is not installed here"},
		{name: "ncu fails", keeps: leavesRecording, env: []string{"NCU_STANDIN=fault=fail"}, args: []string{"vllm", "--model", "m", "--mode", "full", "--num-requests", "2", "--warmup-requests", "0"}, code: 3, says: "ERR_NVGPUCTRPERM"},
		{name: "ncu is killed", keeps: leavesRecording, env: []string{"NCU_STANDIN=fault=kill"}, args: []string{"vllm", "--model", "m", "--mode", "full", "--num-requests", "2", "--warmup-requests", "0"}, code: 3, says: "ncu was ended by a signal (killed)"},
		// The disk.
		{name: "the folder cannot be", args: []string{"--out", "/dev/null/x", "--", "true"}, code: 3, says: "cannot write /dev/null/x"},
		{name: "the disk is full", keeps: leavesRecording, again: 3, args: []string{"--", "true"}, code: 3, says: "the disk is full", before: smallDisk},
	}, 16) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.check(t)
		})
	}
}

func noError(t *testing.T, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return nil
}

// otherServer is healthy already.
func otherServer(t *testing.T, _ string) []string {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	return []string{"READY=" + s.URL + "/health"}
}

func (f *fault) check(t *testing.T) {
	dir := t.TempDir()
	env := f.env
	if f.before != nil {
		env = append(env, f.before(t, dir)...)
	}
	out := filepath.Join(dir, "out")
	args := []string{"capture", "--out", out}
	if f.args[0] == "vllm" {
		args = []string{"capture", "vllm", "--out", out}
		f.args = f.args[1:]
	}
	port := ""
	for _, e := range env {
		if p, ok := strings.CutPrefix(e, "PORT="); ok {
			port = p
		}
	}
	if port != "" {
		args = append(args, "--port", port)
	}
	for _, e := range env {
		if ready, ok := strings.CutPrefix(e, "READY="); ok {
			args = append(args, "--ready", ready)
		}
	}
	c := explaintest.Process(t, dir, env, append(args, f.args...)...)
	var errs bytes.Buffer
	c.Stderr = &errs
	code := explaintest.Exit(t, c.Run())
	said := errs.String()
	if code != f.code || !strings.Contains(said, f.says) {
		t.Errorf("exit code %d, want %d; said:\n%s\nwant %q", code, f.code, said, f.says)
	}
	sentences := 0
	for _, line := range strings.Split(said, "\n") {
		if strings.HasPrefix(line, "explain: ") {
			sentences++
		}
	}
	if want := min(f.code, 1); sentences != want {
		t.Errorf("%d sentences, want %d:\n%s", sentences, want, said)
	}
	checkLeft(t, c, dir, f.keeps)
	if f.keeps != leavesRecording {
		return
	}
	if !strings.Contains(said, "continue with: explain capture resume "+out+".failed") {
		t.Errorf("it does not say how to continue:\n%s", said)
	}
	c = explaintest.Process(t, dir, nil, "capture", "resume", out+".failed")
	text, err := c.CombinedOutput()
	if code := explaintest.Exit(t, err); code != f.again {
		t.Errorf("resume: exit code %d, want %d: %s", code, f.again, text)
	}
	left := leavesWhole
	if f.again != 0 {
		left = leavesRecording
	}
	checkLeft(t, c, dir, left)
}

// checkLeft wants no process of the test, no half-written folder, and what a capture is to leave.
func checkLeft(t *testing.T, c *exec.Cmd, dir string, keeps state) {
	t.Helper()
	if left := processesOf(dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if err := syscall.Kill(-c.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) && err != nil {
		t.Errorf("the process group is still there: %v", err)
	}
	if scratch, err := filepath.Glob(filepath.Join(dir, ".explain-*")); err != nil || len(scratch) > 0 {
		t.Errorf("scratch folders are left: %v (%v)", scratch, err)
	}
	out := filepath.Join(dir, "out")
	_, err := os.Stat(out)
	if is := err == nil; is != (keeps == leavesWhole || keeps == leavesForeign) {
		t.Errorf("the output folder is there: %v, but %v is wanted", is, keeps)
	}
	if keeps == leavesForeign {
		if b, err := os.ReadFile(filepath.Join(out, "src", "thesis.tex")); err != nil || string(b) != "precious" {
			t.Errorf("what somebody wrote is %q: %v", b, err)
		}
	}
	if keeps == leavesWhole {
		for _, name := range []string{"trace.sqlite", "metadata.txt", "logs/children.json"} {
			if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if is := len(capture.Recordings(out+".failed")) > 0; is != (keeps == leavesRecording) {
		t.Errorf("a recording is kept in out.failed: %v, want %v", is, keeps == leavesRecording)
	}
}

// processesOf lists running processes that bear the mark of a test.
func processesOf(mark string) map[int]string {
	list := map[int]string{}
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range found {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte("\x00EXPLAIN_TEST="+mark)) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if len(line) > 0 { // else it is only waiting to be buried
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			list[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
	return list
}

func takePort(t *testing.T, _ string) []string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return []string{fmt.Sprintf("PORT=%d", l.Addr().(*net.TCPAddr).Port)}
}

func badTrace(t *testing.T, dir string) []string {
	if err := os.WriteFile(filepath.Join(dir, "bad.sqlite"), append([]byte("SQLite format 3\x00"), make([]byte, 50)...), 0o644); err != nil {
		t.Fatal(err)
	}
	return nil
}

func precious(t *testing.T, dir string) []string {
	src := filepath.Join(dir, "out", "src")
	return noError(t, errors.Join(os.MkdirAll(src, 0o755), os.WriteFile(filepath.Join(src, "thesis.tex"), []byte("precious"), 0o644)))
}

// emptyTrace is a trace of a program that did nothing on a GPU.
func emptyTrace(t *testing.T, dir string) []string {
	return noError(t, tracetest.New().Write(filepath.Join(dir, "empty.sqlite")))
}

// smallDisk mounts a file system that is too small for an export below the folder.
func smallDisk(t *testing.T, dir string) []string { return mountSmall(t, dir, "48k") }

func mountSmall(t *testing.T, dir, size string) []string {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return nil
}

// TestInterruptEndsTheRecording: one Ctrl-C ends every process, keeps what was recorded and says so.
func TestInterruptEndsTheRecording(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name    string
		args    []string
		env     []string
		flag    string // appears when the moment has come
		signals int
		says    string
		keeps   state
	}{
		{name: "whole run", args: []string{"--no-report", "--", "sh", "-c", "touch flag; sleep 60"}, flag: "flag", signals: 1, says: "interrupted: out holds what was recorded up to then", keeps: leavesWhole},
		{name: "window", args: []string{"--no-report", "--ready", "ready", "--client", "sh -c 'touch flag; sleep 60'", "--", "sh", "-c", "touch ready; sleep 60"}, flag: "flag", signals: 1, says: "interrupted: out holds what was recorded up to then", keeps: leavesWhole},
		{name: "before the window", args: []string{"--ready", "never", "--duration", "5s", "--", "sh", "-c", "touch flag; sleep 60"}, flag: "flag", signals: 1, says: "interrupted before anything was recorded"},
		{name: "before the delay is over", args: []string{"--delay", "60s", "--", "sh", "-c", "touch flag; sleep 60"}, flag: "flag", signals: 1, says: "interrupted before anything was recorded"},
		{name: "twice", args: []string{"--grace", "30s", "--", "sh", "-c", "trap '' INT TERM; touch flag; while :; do sleep 0.2; done"}, flag: "flag", signals: 2, says: "interrupted", keeps: leavesRecording},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := explaintest.Process(t, dir, x.env, append([]string{"capture", "--out", "out"}, x.args...)...)
			var errs bytes.Buffer
			c.Stderr = &errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			for range 600 {
				if _, err := os.Stat(filepath.Join(dir, x.flag)); err == nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			for i := range x.signals {
				if i > 0 {
					time.Sleep(500 * time.Millisecond)
				}
				if err := c.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
			code := explaintest.Exit(t, c.Wait())
			if code != cmdenv.Input || !strings.Contains(errs.String(), "explain: "+x.says) {
				t.Errorf("exit code %d; said:\n%s", code, errs.String())
			}
			if strings.HasPrefix(x.name, "before") && (strings.Contains(errs.String(), "ending the recording") || strings.Contains(errs.String(), "complete the recording")) {
				t.Errorf("nothing was recorded; said:\n%s", errs.String())
			}
			checkLeft(t, c, dir, x.keeps)
		})
	}
}

// TestEveryVersionOfNsys: the commands are accepted by each version that explain knows, for every kind of window.
func TestEveryVersionOfNsys(t *testing.T) {
	t.Parallel()
	for _, version := range longtest.Some([]string{"2021.4", "2022.4", "2023.4", "2024.2", "2025.6", "2026.1"}, 2) {
		for name, args := range map[string][]string{
			"whole capture":       {"--cuda-memory", "--", "true"},
			"timed capture":       {"--duration", "1s", "--", "sleep", "60"},
			"range capture":       {"--nvtx", "decode", "--", "true", "nvtx:decode"},
			"trigger capture":     {"--ready", "flag", "--duration", "100ms", "--", "sh", "-c", "touch flag; sleep 60"},
			"server capture vllm": {"--model", "m", "--mode", "light", "--num-requests", "2", "--warmup-requests", "0"},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				c := explaintest.Process(t, dir, []string{"NSYS_STANDIN=version=" + version}, append(strings.Fields(name)[1:], append([]string{"--out", "out", "--no-report", "--quiet"}, args...)...)...)
				var errs bytes.Buffer
				c.Stderr = &errs
				if code := explaintest.Exit(t, c.Run()); code != cmdenv.OK || errs.Len() > 0 {
					t.Errorf("exit code %d; said:\n%s", code, errs.String())
				}
				checkLeft(t, c, dir, leavesWhole)
			})
		}
	}
}
