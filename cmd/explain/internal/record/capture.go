package record

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/capturesession"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

func newCapture(e *cmdenv.Env) *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "capture [flags] -- COMMAND [ARGUMENT…]",
		Short: "Record a program with nsys, and report on it",
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case f.Pair && len(args) != 2:
				return usage.Errorf("--pair takes two command lines in quotes: explain capture --pair 'python base.py' 'python head.py'")
			case f.Pair:
			case dash > 0:
				return usage.Errorf("unexpected argument %q before --: put the program after --", args[0])
			case len(args) == 0:
				return usage.Errorf("name the program: explain capture [flags] -- COMMAND [ARGUMENT…]")
			case dash < 0:
				return usage.Errorf("put -- before the program, so that its flags are its own: explain capture [flags] -- %s …", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	f.register(cmd, "artifacts/RUN_ID")
	fl := cmd.Flags()
	fl.DurationVar(&f.Window.Delay, "delay", 0, "begin to record this `TIME` after the start, in whole seconds")
	fl.StringVar(&f.Window.NVTX, "nvtx", "",
		"record the first NVTX range of this name: `RANGE@DOMAIN`, RANGE@* for any domain")
	fl.StringVar(&f.Window.Ready, "ready", "", "begin to record when this `URL` answers 200, or this file exists")
	fl.DurationVar(&f.Window.Warmup, "warmup", 0,
		"with --ready: begin to record this `TIME` later, or after the start of --client, whose load warms up")
	fl.DurationVar(&f.Window.Duration, "duration", 0,
		"record for this `TIME` (whole seconds, except with --ready); with --client at most, and end the client then")
	fl.DurationVar(&f.Limit, "timeout", 0, "give up when the program has not ended after this `TIME` (default: never)")
	fl.BoolVar(&f.Pair, "pair", false, "capture two command lines, base and head, in turns, and compare them")
	f.until.Register(fl)
	f.rules.RegisterPair(cmd)
	cmd.AddCommand(newCaptureServer(e), newCaptureResume(e))
	return cmd
}

func (f *captureFlags) run(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	if err := f.checkWindow(); err != nil {
		return err
	}
	programs := [][]string{args}
	if f.Pair {
		programs = nil
		for _, line := range args {
			words, err := capture.Words(line)
			if err != nil {
				return usage.Errorf("--pair %q: %w", line, err)
			}
			programs = append(programs, words)
		}
	}
	r, err := f.prepare(cmd, e)
	if err != nil {
		return err
	}
	until, err := f.until.Decide(r)
	if err != nil {
		return err
	}
	err = runCaptures(cmd, r, programs)
	if code := cmdenv.Exit(0); until == nil || r.Want.DryRun || err != nil && !errors.As(err, &code) {
		return err
	}
	return until.Answer() // overrides the verdict of the comparison, which does not account for repeated looks
}

// runCaptures makes the captures. For a pair it returns the verdict as the exit code that explain diff would have.
func runCaptures(cmd *cobra.Command, r *capturesession.Session, programs [][]string) error {
	c, err := r.Run(cmd.Context(), programs)
	if err != nil || c == nil {
		return err
	}
	if code := cmdenv.VerdictCode(c.Verdict); code != cmdenv.OK {
		return cmdenv.Exit(code)
	}
	return nil
}

func (f *captureFlags) checkWindow() error {
	w := f.Window
	if f.client != "" {
		w.Client = []string{f.client}
	}
	if err := w.Check(); err != nil {
		return usage.Error{Err: err}
	}
	if f.Overhead && len(w.Client) == 0 {
		return usage.Errorf("--overhead sends the same load with nsys and without it: name what sends it with --ready and --client, or use explain capture vllm")
	}
	if f.Overhead && w.Duration > 0 {
		return usage.Errorf("--overhead compares how long the client takes: leave out --duration, which ends it")
	}
	if w.Triggered() && f.Limit > 0 {
		return usage.Errorf(
			"--timeout is for a program that ends on its own: with --ready, --ready-timeout and --duration bound it")
	}
	return nil
}
