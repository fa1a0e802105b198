package main

import (
	"errors"
	"fmt"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate"
)

// Exit codes of every command.
const (
	exitOK           = 0
	exitFail         = 1 // the verdict is fail
	exitUsage        = 2 // wrong usage or policy file
	exitInput        = 3 // input that cannot be analysed, or explain itself failed
	exitInconclusive = 4 // not comparable
)

// usageError is an error in how explain was called: exit 2.
type usageError = usage.Error

func usagef(format string, args ...any) error { return usage.Errorf(format, args...) }

// exitCode is the error of a command that did its work, and whose answer is not 0.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

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
