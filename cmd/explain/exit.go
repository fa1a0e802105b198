package main

import (
	"errors"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate"
)

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

// What a command of this package has of the room that all share.
type (
	env           = cmdenv.Env
	analysisFlags = cmdenv.AnalysisFlags
	exitCode      = cmdenv.Exit
)

// clean makes text from the outside fit for a terminal or a log line.
func clean(s string) string { return render.Visible(s) }

// errorCode is the exit code of a command that ended in an error.
func errorCode(err error) int {
	switch {
	case errors.As(err, new(usageError)) || errors.Is(err, analyze.ErrOptions):
		return exitUsage
	case errors.As(err, new(gate.UnreadError)):
		return exitInconclusive
	}
	return exitInput
}

// verdictOf is what a command ended with, as a verdict.
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

// verdictCode is the exit code of a verdict.
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
