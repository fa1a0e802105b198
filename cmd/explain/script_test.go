package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"explain": func() {
			os.Exit(run(context.Background(), os.Args[1:], &world{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}))
		},
	})
}

// TestScripts runs testdata/script: the command line as a user sees it. $TRACES holds the synthetic traces of testdata.
// The command "code N explain …" wants exactly that exit code.
func TestScripts(t *testing.T) {
	traces, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TRACES", traces)
			e.Setenv("TMPDIR", e.WorkDir+"/.tmp")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code": wantCode,
		},
	})
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
