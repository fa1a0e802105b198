// Package ci is the commands of CI: gate and its comment, policy, history, bisect, and what action.yml runs.
package ci

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/cmd/explain/internal/bisectcmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/historycmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate"
)

// Commands are the commands in the order of the help, those that it does not list last.
func Commands(e *cmdenv.Env) []*cobra.Command {
	return []*cobra.Command{newGate(e), newPolicy(e), historycmd.New(e), bisectcmd.NewBisect(e), newAction(e), newCalibration(e, "calibrate")}
}

// ErrorCode returns the exit code of a command that ended in an error.
func ErrorCode(err error) int {
	switch {
	case errors.As(err, new(usage.Error)) || errors.Is(err, analyze.ErrOptions):
		return cmdenv.Usage
	case errors.As(err, new(gate.UnreadError)):
		return cmdenv.Inconclusive
	}
	return cmdenv.Input
}

// verdictOf returns the verdict that a command's error stands for.
func verdictOf(err error) comparison.Verdict {
	code := cmdenv.Exit(ErrorCode(err))
	switch {
	case err == nil:
		return comparison.Pass
	case errors.As(err, &code) && code == cmdenv.Fail:
		return comparison.Fail
	case code == cmdenv.Inconclusive:
		return comparison.Inconclusive
	}
	return comparison.Error
}
