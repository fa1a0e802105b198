package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// Short names for what tests give a command line and want of it.
type env = cmdenv.Env

const (
	exitOK           = cmdenv.OK
	exitFail         = cmdenv.Fail
	exitUsage        = cmdenv.Usage
	exitInput        = cmdenv.Input
	exitInconclusive = cmdenv.Inconclusive
)

func TestMain(m *testing.M) { explaintest.Main(m) }

// TestScripts runs testdata/script: the command line as a user sees it. $TRACES holds the synthetic traces of testdata,
// $REPORTS the reports of some traces, in folders of their names, for what does not depend on which of the two is given.
// The command "code N explain …" wants exactly that exit code; "standin --port-file FILE &" is a server by script (package
// fakeserver), and "port VAR FILE" waits until it listens and sets $VAR to its port. What is behind "[!long] stop" runs
// with -args -long alone.
func TestScripts(t *testing.T) {
	t.Parallel()
	traces, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	edited := explaintest.Edited(t)
	reports := shownReports(t, traces, edited)
	explaintest.Program(t)
	standins := explaintest.StandinPath(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TRACES", traces)
			e.Setenv("REPORTS", reports)
			e.Setenv("TMPDIR", e.WorkDir+"/.tmp")
			e.Values[gitHubKey{}] = new(gitHubServer)
			e.Setenv("GITHUB_ACTIONS", "") // wherever the tests run, scripts begin outside of GitHub
			e.Setenv("STANDINS", standins)
			for name, content := range edited {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), content, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "long" {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			return longtest.On(), nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":       wantCode,
			"github":     startGitHub,
			"transcript": gitHubTranscript,
			"comments":   gitHubComments,
			"port":       waitPort,
			"fleet":      writeFleet,
		},
	})
}

// shownReports makes reports of the serving trace and of some that are edited, once for all scripts.
func shownReports(t *testing.T, traces string, edited map[string][]byte) string {
	t.Helper()
	dir, from := t.TempDir(), t.TempDir()
	for _, name := range []string{"serving", "slow", "again", "attention"} {
		trace := filepath.Join(traces, name+".sqlite")
		if content, ok := edited[name+".sqlite"]; ok {
			trace = filepath.Join(from, name+".sqlite")
			put(t, trace, content, 0o644)
		}
		if code, said := runHere(t, "report", trace, "--out", filepath.Join(dir, name), "--quiet"); code != exitOK {
			t.Fatalf("%s: exit code %d: %s", name, code, said)
		}
	}
	return dir
}

// writeFleet writes the captures of a run of N ranks into a folder: fleet N DIR [SEED]. Rank 1 is late in all of
// the steps.
func writeFleet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: fleet N DIR [SEED]")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	seed := 0
	if len(args) == 3 {
		seed, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	dir := ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(dir, 0o755))
	run := tracetest.Fleet{Ranks: n, Steps: 30, Layers: 2, Jitter: 20_000, EndJitter: 2_000, Slow: 1, SlowBy: 0.3, SlowSteps: 1,
		Seed: uint64(seed)}.Run()
	for i := range run {
		ts.Check(run[i].Build(tracetest.Schema("3.25.0")).Write(filepath.Join(dir, "rank"+strconv.Itoa(i)+".sqlite")))
	}
}

func wantCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// waitPort waits for the file into which a server writes its port.
func waitPort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: port VARIABLE FILE")
	}
	for range 3000 {
		if b, err := os.ReadFile(ts.MkAbs(args[1])); err == nil {
			ts.Setenv(args[0], strings.TrimSpace(string(b)))
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s was not written in 30 s", args[1])
}
