// Command explain says where the time of an LLM inference trace went, and what to do about it.
//
// Each command is one file of its name, whose parts are prefixed with it (capture.go, capture_pair.go). What commands
// share:
//
//	root          the tree of commands and exit codes
//	evidence      what lies beside traces and reports, as people name it
//	rules_file    policies and noise floors
//	action        what action.yml runs
//	github        the session with GitHub, for gate and comment
//
// Large commands have packages of their own below internal, and so does what needs no command line: cmdenv holds what
// all commands share (their environment, the flags of an analysis), input tells files apart, reports makes reports of
// them, output writes folders that appear whole or not at all, capturesession makes captures and their reports, load
// sends requests.
//
// This package computes nothing: analyze, diff and gate do. run is the whole program as a function, so that tests call
// it without a process.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/crash"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/interrupt"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == capture.WatchName {
		signal.Ignore(interrupt.Signals()...)
		capture.WatchOver(os.Args[2], os.Args[3], os.Stdin)
		return
	}
	capture.Self = os.Args[0]
	ctx, stop := signal.NotifyContext(context.Background(), interrupt.Signals()...)
	code := run(ctx, os.Args[1:], &env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: withoutTokens()})
	stop()
	os.Exit(code)
}

// withoutTokens removes GitHub's tokens from the environment, so that no program that explain starts (git, nsys, what
// nsys profiles) inherits one. It returns a lookup in the original environment.
func withoutTokens() func(string) string {
	tokens := map[string]string{}
	for _, name := range []string{
		"GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
		actionInputsVariable,
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
func run(ctx context.Context, args []string, e *env) int {
	cmd := newRoot(e)
	guard(cmd)
	cmd.SetArgs(args)
	cmd.SetIn(e.In)
	cmd.SetOut(e.Out)
	cmd.SetErr(e.Err)
	ran, err := cmd.ExecuteContextC(ctx)
	err = limit.FullText(err)
	var usage usageError
	var answer exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &answer):
		return int(answer)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(e.Err, "explain: interrupted; nothing was written")
		return exitInput
	case errors.As(err, &usage), errors.Is(err, analyze.ErrOptions):
		fmt.Fprintf(e.Err, "explain: %s\n", clean(strings.TrimPrefix(input.Plain(err), analyze.ErrOptions.Error()+": ")))
		fmt.Fprintf(e.Err, "Run '%s --help' for usage.\n", ran.CommandPath())
		return exitUsage
	case errors.Is(err, syscall.EPIPE): // the reader closed the pipe early
		return exitOK
	}
	fmt.Fprintf(e.Err, "explain: %s\n", clean(input.Plain(err)))
	return errorCode(err)
}

// guard turns a panic in a command or in its subcommands into an error.
func guard(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		guard(below)
	}
	if do := cmd.RunE; do != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
			defer crash.Caught(cmd.CommandPath(), &err)
			return do(cmd, args)
		}
	}
}

// Exit codes of every command.
const (
	exitOK           = cmdenv.OK
	exitFail         = cmdenv.Fail
	exitUsage        = cmdenv.Usage
	exitInput        = cmdenv.Input
	exitInconclusive = cmdenv.Inconclusive
)

// usageError is an error in how explain was called: exit 2.
type usageError = usage.Error

func usagef(format string, args ...any) error { return usage.Errorf(format, args...) }

// Short names for what all commands share.
type (
	env           = cmdenv.Env
	analysisFlags = cmdenv.AnalysisFlags
	exitCode      = cmdenv.Exit
)

// clean makes untrusted text safe for a terminal or a log line.
func clean(s string) string { return render.Visible(s) }

// errorCode returns the exit code of a command that ended in an error.
func errorCode(err error) int {
	switch {
	case errors.As(err, new(usageError)) || errors.Is(err, analyze.ErrOptions):
		return exitUsage
	case errors.As(err, new(gate.UnreadError)):
		return exitInconclusive
	}
	return exitInput
}

// verdictOf returns the verdict that a command's error stands for.
func verdictOf(err error) comparison.Verdict {
	code := exitCode(errorCode(err))
	switch {
	case err == nil:
		return comparison.Pass
	case errors.As(err, &code) && code == exitFail:
		return comparison.Fail
	case code == exitInconclusive:
		return comparison.Inconclusive
	}
	return comparison.Error
}

// verdictCode returns the exit code of a verdict.
func verdictCode(v comparison.Verdict) int {
	switch v {
	case comparison.Pass, comparison.Warn:
		return exitOK
	case comparison.Fail:
		return exitFail
	case comparison.Inconclusive:
		return exitInconclusive
	case comparison.Error:
	}
	return exitInput
}
