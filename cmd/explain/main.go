// Command explain says where the time of an LLM inference trace went, and what to do about it.
//
// This package is the tree of commands, the version and exit codes. The commands lie below internal, a room for each
// group of the help and in it a file for each command, whose parts are prefixed with its name (gate.go, gate_output.go):
//
//	look     report, diff, whatif
//	ci       gate, policy, history, bisect, and what action.yml runs
//	record   capture, load, scrub
//	guide    doc, demo, mcp
//
// Large commands have rooms of their own, and so does what commands share: cmdenv holds their environment and the flags
// of an analysis and makes reports, rulesfile policies and noise floors, input tells files apart, output writes folders
// that appear whole or not at all, capturesession makes captures and their reports, load sends requests.
//
// No command computes: analyze, diff and gate do. run is the whole program as a function, so that tests call
// it without a process.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/ci"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/interrupt"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == capture.WatchName {
		signal.Ignore(interrupt.Signals()...)
		capture.WatchOver(os.Args[2], os.Args[3], os.Stdin)
		return
	}
	capture.Self, cmdenv.OwnProcess = os.Args[0], true
	ctx, stop := signal.NotifyContext(context.Background(), interrupt.Signals()...)
	code := run(ctx, os.Args[1:], &cmdenv.Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: withoutTokens()})
	stop()
	os.Exit(code)
}

// withoutTokens removes GitHub's tokens from the environment, so that no program that explain starts (git, nsys, what
// nsys profiles) inherits one. It returns a lookup in the original environment.
func withoutTokens() func(string) string {
	tokens := map[string]string{}
	for _, name := range []string{
		"GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
		ci.ActionInputs,
	} {
		tokens[name] = os.Getenv(name)
		os.Unsetenv(name)
	}
	return func(name string) string {
		if token, ok := tokens[name]; ok {
			return token
		}
		return os.Getenv(name)
	}
}

// run executes the command line in args and returns the exit code.
func run(ctx context.Context, args []string, e *cmdenv.Env) int {
	e.Run = run
	cmd := newRoot(e)
	cmd.SetArgs(args)
	cmd.SetIn(e.In)
	help := bufio.NewWriter(e.Out) // which keeps the first error: cobra gives none of its help
	cmd.SetOut(help)
	cmd.SetErr(e.Err)
	addCompletion(cmd)
	ran, err := cmd.ExecuteContextC(ctx)
	err = limit.FullText(cmp.Or(err, help.Flush()))
	var answer cmdenv.Exit
	switch {
	case err == nil:
		return cmdenv.OK
	case errors.As(err, &answer):
		return int(answer)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(e.Err, "explain: interrupted; nothing was written")
		return cmdenv.Input
	}
	code := ci.ErrorCode(err)
	if errors.Is(err, syscall.EPIPE) && code != cmdenv.Usage { // the reader closed the pipe early
		return cmdenv.OK
	}
	text := strings.TrimPrefix(input.Plain(err), analyze.ErrOptions.Error()+": ")
	fmt.Fprintf(e.Err, "explain: %s\n", render.Visible(text))
	if code == cmdenv.Usage {
		fmt.Fprintf(e.Err, "Run '%s --help' for usage.\n", ran.CommandPath())
	}
	return code
}
