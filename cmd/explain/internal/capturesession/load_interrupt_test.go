//go:build linux

package capturesession_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
)

// TestInterruptEndsTheLoad: Ctrl-C ends a load with what was measured until then, whole and marked, in one sentence; pressed twice it
// ends whatever is going on, and leaves no half of a file.
func TestInterruptEndsTheLoad(t *testing.T) {
	t.Parallel()
	slow := fakeserver.Script{TTFT: 10 * time.Millisecond, Tokens: 4, Gap: time.Millisecond}
	for _, x := range []struct {
		name    string
		script  fakeserver.Script
		args    []string
		after   int // completion requests until the signal
		signal  syscall.Signal
		twice   bool
		says    string
		written bool
	}{
		{name: "closed loop", script: slow, args: []string{"--num-requests", "5000", "--concurrency", "4", "--out", "out/"}, after: 60, signal: syscall.SIGINT,
			says: `^explain: interrupted after [0-9.]+ m?s: [0-9]+ of 5,000 requests measured; written to out/load\.json\n$`, written: true},
		{name: "terminated open loop", script: slow, args: []string{"--rate", "300", "--duration", "10m", "--out", "out/load.json"}, after: 60, signal: syscall.SIGTERM,
			says: `^explain: interrupted after [0-9.]+ m?s: [0-9]+ requests measured; written to out/load\.json\n$`, written: true},
		{name: "no file", script: slow, args: []string{"--num-requests", "5000", "--quiet"}, after: 60, signal: syscall.SIGINT,
			says: `^explain: interrupted after [0-9.]+ m?s: [0-9]+ of 5,000 requests measured\n$`},
		{name: "nothing answered", script: fakeserver.Script{TTFT: time.Hour}, args: []string{"--warmup", "0", "--timeout", "2h", "--out", "out/load.json"}, after: 1, signal: syscall.SIGINT,
			says: `^explain: interrupted before any request succeeded; nothing was written\n$`},
		{name: "warm-up", script: fakeserver.Script{Plan: func(i int) fakeserver.Plan { return fakeserver.Plan{TTFT: time.Duration(i) * time.Hour} }}, args: []string{"--timeout", "2h", "--out", "out/load.json"}, after: 2, signal: syscall.SIGINT,
			says: `^explain: interrupted before any request succeeded; nothing was written\n$`},
		// More than a pipe takes, which nobody reads: after the first signal explain waits there.
		{name: "twice", script: fakeserver.Script{Tokens: 1}, args: []string{"--num-requests", "5000000", "--out", "out/load.json", "--format", "json"}, after: 3000, signal: syscall.SIGINT, twice: true,
			says: `^explain: interrupted\n$`, written: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			srv := fakeserver.New(x.script)
			ts := httptest.NewServer(srv)
			defer ts.Close()
			dir := t.TempDir()
			c := explaintest.Process(t, dir, nil, append([]string{"load", "--url", ts.URL}, x.args...)...)
			var errs bytes.Buffer
			c.Stderr = &errs
			if _, err := c.StdoutPipe(); err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "out", "load.json")
			send := func(when func() bool) {
				for range 6000 {
					if when() {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if err := c.Process.Signal(x.signal); err != nil {
					t.Fatal(err)
				}
			}
			send(func() bool { return srv.Completions() >= x.after })
			if x.twice {
				send(func() bool { _, err := os.Stat(file); return err == nil })
			}
			if code := explaintest.Exit(t, c.Wait()); code != cmdenv.Input || !regexp.MustCompile(x.says).MatchString(errs.String()) {
				t.Errorf("exit code %d; said:\n%s", code, errs.String())
			}
			for _, name := range explaintest.FilesIn(t, filepath.Join(dir, "out")) {
				if name != "load.json" {
					t.Errorf("%s is left", name)
				}
			}
			text, err := os.ReadFile(file)
			if whole := err == nil; whole != x.written {
				t.Fatalf("load.json is there: %v, want %v", whole, x.written)
			}
			if !x.written {
				return
			}
			res, err := loadfile.Read(bytes.NewReader(text))
			if err != nil || res.Complete || res.Stopped != "interrupted" || res.Counts.Succeeded == 0 || res.Counts.Failed > 0 {
				t.Errorf("%v: %+v", err, res)
			}
			var out bytes.Buffer
			report := explaintest.Process(t, dir, nil, "report", "--evidence", file)
			report.Stdout, report.Stderr = &out, &out
			if code := explaintest.Exit(t, report.Run()); code != cmdenv.OK || !strings.Contains(out.String(), "The load is incomplete: the load was interrupted.") {
				t.Errorf("exit code %d; the report says:\n%s", code, out.String())
			}
		})
	}
}
