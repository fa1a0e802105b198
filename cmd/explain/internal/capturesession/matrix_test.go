//go:build linux

package capturesession_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// Windows, programs, signals and stages of the matrix.
const (
	plain = iota
	delayed
	whenReady
	windows
)

const (
	ordinary = iota
	withDaemon
	deaf // ignores TERM, INT and HUP
	programs
)

var matrixSignals = []struct {
	name string
	sig  syscall.Signal
	more int // times that it is sent again
}{{"INT", syscall.SIGINT, 0}, {"TERM", syscall.SIGTERM, 0}, {"HUP", syscall.SIGHUP, 0}, {"KILL", syscall.SIGKILL, 0}, {"INT twice", syscall.SIGINT, 1}}

const (
	starting = iota // nsys is being started
	before          // the program runs; a window that waits is not open yet
	opening         // the window has just opened
	recording
	closing // the program has ended, or the window shuts
	importing
	exporting
	after // the trace is there
	stages
)

// matrixCase is one run: something is recorded, and a signal comes at a stage.
type matrixCase struct{ window, program, signal, stage int }

func (x matrixCase) String() string {
	return fmt.Sprintf("%s, %s, %s, %s", []string{"plain", "--delay", "--ready"}[x.window], []string{"program", "daemon", "deaf program"}[x.program],
		matrixSignals[x.signal].name, []string{"starting", "before", "opening", "recording", "closing", "importing", "exporting", "after"}[x.stage])
}

// matrix has every pair of values at least once, and every window and signal while nsys waits for a daemon.
func matrix() (list []matrixCase) {
	for signal := range matrixSignals {
		for stage := range stages {
			list = append(list, matrixCase{(signal + stage) % windows, (signal + stage/3) % programs, signal, stage})
		}
	}
	for signal := range matrixSignals {
		for window := range windows {
			if x := (matrixCase{window, withDaemon, signal, closing}); !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	return list
}

func TestMatrixHasEveryPair(t *testing.T) {
	list, pairs := matrix(), map[string]bool{}
	for _, x := range list {
		values := []int{x.window, x.program, x.signal, x.stage}
		for i := range values {
			for k := range i {
				pairs[fmt.Sprint(i, k, values[i], values[k])] = true
			}
		}
	}
	if want := 3*3 + 3*5 + 3*8 + 3*5 + 3*8 + 5*8; len(pairs) != want || len(list) > 60 {
		t.Errorf("%d of %d pairs in %d runs", len(pairs), want, len(list))
	}
}

// args are what follows the options: how long the program and its daemon live depends on the stage that is to be reached.
func (x matrixCase) args() (list []string) {
	lives, daemon := 60, 60
	if x.stage >= closing && x.window != whenReady {
		lives = 3
		if x.stage > closing {
			daemon = 5
		}
	}
	switch x.window {
	case delayed:
		list, lives = []string{"--delay", "3s"}, lives+3
	case whenReady:
		list = []string{"--ready", "ready", "--duration", map[bool]string{true: "1s", false: "60s"}[x.stage >= closing]}
	}
	script := "touch begun; sleep 2; touch ready; "
	switch x.program {
	case ordinary:
		script += fmt.Sprintf("sleep %d", lives)
	case withDaemon:
		script = fmt.Sprintf("setsid sleep %d & %ssleep %d", daemon, script, lives)
	case deaf:
		script = fmt.Sprintf("trap '' TERM INT HUP; %sn=0; while [ $n -lt %d ]; do sleep 0.1; n=$((n+1)); done", script, 10*lives)
	}
	return append(list, "--", "sh", "-c", script+"; touch ended")
}

// reached reports whether the stage is reached, by what explain has said and what lies in the folder.
func (x matrixCase) reached(dir, said string) bool {
	age := func(name string) time.Duration {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return -1
		}
		return time.Since(info.ModTime())
	}
	opens := func(by time.Duration) bool { // the window has been open for so long
		switch x.window {
		case delayed:
			return age("begun") > by+3500*time.Millisecond
		case whenReady:
			return by == 0 && strings.Contains(said, "Recording ") || age("begun") > 3*time.Second+by && strings.Contains(said, "Recording ")
		}
		return age("begun") > by+500*time.Millisecond
	}
	switch x.stage {
	case starting:
		return strings.Contains(said, "Recording ") || strings.Contains(said, "Starting ")
	case before:
		return age("begun") >= 0
	case opening:
		return opens(0)
	case recording:
		return opens(time.Second)
	case closing:
		if x.window == whenReady {
			return age(".explain-out/logs/nsys-stop.log") >= 0
		}
		return age("ended") >= 0 && (x.program != withDaemon || strings.Contains(said, "The program has ended"))
	case importing:
		return strings.Contains(said, "Importing ") || runs(dir, "QdstrmImporter") // nsys does it itself where it can
	case exporting:
		return strings.Contains(said, "Exporting ")
	}
	return strings.Contains(said, "Exporting ") && age(".explain-out/trace.sqlite") >= 0 && !runs(dir, "nsys export ")
}

func runs(dir, command string) bool {
	for _, words := range processesOf(dir) {
		if strings.Contains(words, command) {
			return true
		}
	}
	return false
}

// begun reports whether nsys records by then; sure is false where the signal and the beginning are too close to tell.
func (x matrixCase) begun() (records, sure bool) {
	switch {
	case x.stage == starting:
		return false, x.window != plain
	case x.stage == before:
		return x.window == plain, true
	}
	return true, true
}

// TestSignalMatrix: wherever a signal comes, what nsys had begun to record is kept, everything ends in time, and nothing is left
// running or in the temporary folder. $NSYS names a real nsys; else it is the stand-in, of a version that leaves raw streams.
func TestSignalMatrix(t *testing.T) {
	t.Parallel()
	nsys := os.Getenv("NSYS")
	few := 3
	if nsys != "" {
		few = len(matrix())
	}
	tmp := t.TempDir() // of all: nsys 2022.4 has its locks there, and what they protect in /dev/shm
	shared := filesBelow("/dev/shm")
	t.Cleanup(func() {
		if nsys == "" { // the stand-in's own
			return
		}
		for _, name := range filesBelow(tmp) {
			t.Errorf("%s is left in TMPDIR", name)
		}
		for _, name := range filesBelow("/dev/shm") { // it may keep the next nsys from starting
			if strings.Contains(strings.ToLower(name), "nsys") && !slices.Contains(shared, name) {
				t.Errorf("%s is left in /dev/shm", name)
			}
		}
	})
	for _, x := range longtest.Some(matrix(), few) {
		t.Run(x.String(), func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(matrixSignals[x.signal].sig) {
				t.Skip("the signal is ignored here, as under nohup, and explain keeps to that")
			}
			dir := t.TempDir()
			run := func(env []string, args ...string) *exec.Cmd {
				c := explaintest.Process(t, dir, append(env, "TMPDIR="+tmp, "NSYS="+nsys), args...)
				if nsys != "" { // without the other stand-ins
					c.Env = append(c.Env, "PATH="+os.Getenv("PATH"))
				}
				return c
			}
			options := []string{"capture", "--no-report", "--out", "out"}
			if nsys == "" {
				options = append(options, "--grace", "2s")
			}
			c := run([]string{"NSYS_STANDIN=version=2023.4,fault=qdstrm,slow=400ms"}, append(options, x.args()...)...)
			var errs lockedBuffer
			c.Stderr = &errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { _ = c.Wait(); close(ended) }()
			over := func() bool {
				select {
				case <-ended:
					return true
				default:
					return false
				}
			}
			for until := time.Now().Add(3 * time.Minute); !over() && !x.reached(dir, errs.String()); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("the stage is not reached; said:\n%s", errs.String())
				}
			}
			late, sends := over(), matrixSignals[x.signal]
			sent := time.Now()
			for n := range sends.more + 1 {
				if n > 0 {
					time.Sleep(500 * time.Millisecond)
				}
				_ = c.Process.Signal(sends.sig)
			}
			<-ended
			const limit = 2 * time.Minute // 45 s, of which nsys takes most, on a machine with nothing else to do
			for len(processesOf(dir)) > 0 && time.Since(sent) < 2*limit {
				time.Sleep(50 * time.Millisecond)
			}
			took := time.Since(sent)
			left, said := processesOf(dir), errs.String()
			kept := "nothing"
			switch {
			case sqlite(dir):
				kept = "whole"
			case len(capture.Recordings(filepath.Join(dir, "out.failed"))) > 0:
				kept = "resumed"
				if text, err := run(nil, "capture", "resume", "out.failed", "--quiet").CombinedOutput(); err != nil || !sqlite(dir) {
					kept = fmt.Sprintf("not resumed: %v, %s", err, text)
				}
			}
			t.Logf("%s | kept: %s | %.1f s | %d processes | late: %t", x, kept, took.Seconds(), len(left), late)
			if records, sure := x.begun(); late || sure && records != (kept == "whole" || kept == "resumed") {
				t.Errorf("late: %t; kept: %s; said:\n%s", late, kept, said)
			}
			if took > limit || len(left) > 0 || strings.Count(said, "explain: ") > 1 {
				t.Errorf("%v, processes %v; said:\n%s", took, left, said)
			}
			if scratch, err := filepath.Glob(filepath.Join(dir, ".explain-*")); err != nil || len(scratch) > 0 {
				t.Errorf("scratch folders are left: %v (%v)", scratch, err)
			}
		})
	}
}

// lockedBuffer is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// sqlite reports whether the capture left its trace.
func sqlite(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "out", "trace.sqlite"))
	return err == nil && bytes.HasPrefix(text, []byte("SQLite format 3"))
}

// filesBelow are the files in a temporary folder, but for the empty locks and the exit code of its agent, which nsys always leaves.
func filesBelow(dir string) (list []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		always := strings.HasPrefix(name, "nvidia") && strings.Contains(e.Name(), "lock") || strings.Contains(e.Name(), "termination_status")
		if err == nil && !e.IsDir() && !always {
			list = append(list, name)
		}
		return nil
	})
	return list
}
