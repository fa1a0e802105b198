package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture/capturetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"explain": func() {
			os.Exit(run(context.Background(), os.Args[1:], &env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}))
		},
		"standin":        func() { os.Exit(fakeserver.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) },
		"standin-nsys":   func() { os.Exit(capturetest.Nsys(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) },
		"standin-ncu":    func() { os.Exit(capturetest.NCU(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) },
		"standin-import": func() { os.Exit(capturetest.Importer(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs testdata/script: the command line as a user sees it. $TRACES holds the synthetic traces of testdata.
// The command "code N explain …" wants exactly that exit code; "standin --port-file FILE &" is a server by script (package
// fakeserver), and "port VAR FILE" waits until it listens and sets $VAR to its port.
func TestScripts(t *testing.T) {
	traces, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	edited := editedTraces(t, filepath.Join(traces, "serving.sqlite"))
	standins := standinPrograms(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TRACES", traces)
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

// editedTraces are copies of the serving trace, each with one change, that every script finds in its folder.
func editedTraces(t *testing.T, src string) map[string][]byte {
	t.Helper()
	all := func(string) bool { return true }
	traces := map[string][]byte{}
	for name, edit := range map[string]tracetest.Edit{
		"again.sqlite":     tracetest.ScaleKernels(all, 1.0001), // recorded once more
		"more.sqlite":      tracetest.InsertGaps(61_000, stepStarts(t, src)...),
		"slow.sqlite":      tracetest.InsertGaps(60_000, stepStarts(t, src)...),
		"attention.sqlite": tracetest.ScaleKernels(func(name string) bool { return strings.Contains(name, "FlashAttn") }, 1.2),
		"pageable.sqlite":  tracetest.PageableCopies(),
		"a1.sqlite":        tracetest.ScaleKernels(all, 1.01),
		"a2.sqlite":        tracetest.ScaleKernels(all, 0.98),
		"a3.sqlite":        tracetest.ScaleKernels(all, 1.005),
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := tracetest.Rewrite(src, path, edit); err != nil {
			t.Fatal(err)
		}
		anotherSession(t, path, int64(len(traces)+1))
		traces[name] = read(t, path)
	}
	return traces
}

// anotherSession makes a copy of a trace a recording of its own: its session began later.
func anotherSession(t *testing.T, path string, later int64) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + ?", later); err != nil {
		t.Fatal(err)
	}
}

// stepStarts are moments inside the steps of a trace: a little after each unit of work of the first device began.
func stepStarts(t *testing.T, src string) []int64 {
	t.Helper()
	res, err := analyze.Run(context.Background(), src, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var at []int64
	for _, s := range res.Report.Sections {
		for _, table := range s.Tables {
			if table.ID != "units" {
				continue
			}
			column := func(id string) int {
				return slices.IndexFunc(table.Columns, func(c report.Column) bool { return c.ID == id })
			}
			for _, row := range table.Rows {
				start, _ := row[column("start")].Int()
				if device, _ := row[column("device_id")].Int(); device == 0 {
					at = append(at, start+1)
				}
			}
		}
	}
	return at
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
