// Package record is the commands that record: capture, load, which sends requests to a server, and scrub, which makes a
// capture fit to share.
package record

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/capturesession"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// Commands are the commands in the order of the help.
func Commands(e *cmdenv.Env) []*cobra.Command {
	return []*cobra.Command{newCapture(e), newLoad(e), newScrub(e)}
}

func newCapture(e *cmdenv.Env) *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "capture [flags] -- COMMAND [ARGUMENT…]",
		Short: "Record a program with nsys, and report on it",
		Long: `capture runs a program under Nsight Systems with the flags that suit inference, exports the trace and
analyses it. The result is one folder, which appears only when it is complete:

  trace.nsys-rep, trace.sqlite            the trace and its export
  report.*, tables/, …                    what "explain report" writes
  metadata.txt, env.json                  versions, devices, commands and how they ended
  inputs.yaml, config.yaml, cmd.txt       the workload, every option, every command
  logs/                                   output, exit code and signal of each program that was run
                                          (children.json)

What is recorded:

  (no flag)                               the whole run
  --delay 30s --duration 10s              10 s, 30 s after the start; nsys ends the program then
  --nvtx 'decode@*'                       from the start to the end of an NVTX range
  --ready http://127.0.0.1:8000/health    from the moment the program is ready, or --warmup later:
                                          while --client runs, for --duration at most. It works for
                                          any server; cudaProfilerStart in a client never reaches it

"explain capture vllm" also starts the server and sends the load. The nsys flags fit the installed
version (2021.4 to 2026; CUDA graphs need 2022.4); --dry-run shows them. Ctrl-C ends the recording and
every process, and exports what was recorded; a second Ctrl-C gives up. Closing the terminal counts as
Ctrl-C.

--repeat 3 makes three captures, run-1 to run-3, which a reliable comparison needs. With --pair, base
and head are two command lines in quotes, captured in turns on this machine (base, head, base, head,
…) and compared; exit codes are then those of explain diff. --until-decided captures pairs until a
test says whether the head's step is slower, or until the --budget ends: exit 0 if it is not, 1 if it
is, 4 if that is not known; comparison/decisions.json shows what was known after each pair.

In the command lines that it writes, the values of --api-key, --hf-token, *TOKEN*= and the like are
replaced by ` + capture.Redacted + `. The trace, logs/ and evidence/ hold what the programs wrote, secrets
included.

Recordings are never lost. Each of several captures is in its place as soon as it is complete. If
something fails after the recording, everything is in DIR.failed, and "explain capture resume
DIR.failed" continues; if nothing was recorded, DIR.failed holds the logs. If explain itself is
killed, the same happens within 45 s, and nothing keeps running.

Exit codes: 0 done, 1 --pair: a rule failed, or the head is slower, 2 wrong usage, 3 the program, nsys
or the analysis failed (the trace of a failed program is kept), nothing was recorded, or the capture
was interrupted, 4 --pair: inconclusive, or not decided.`,
		Example: `  explain capture --delay 60s --duration 10s --out run/ -- python bench.py
  explain capture --nvtx 'decode@*' --repeat 3 --out run/ -- python bench.py
  explain capture --ready http://127.0.0.1:8000/health --client 'python send.py' -- vllm serve MODEL
  explain capture --pair --fail-on 'unit.time.p50:+3%' 'python base.py' 'python head.py'
  explain capture --dry-run -- python bench.py`,
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
	f.Until.Register(fl)
	f.Rules.RegisterPair(cmd)
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
	if r.Decider, err = f.Until.Decider(r.Want.Out, r.Say); err != nil {
		return err
	}
	err = runCaptures(cmd, r, programs)
	if r.Decider == nil || r.Want.DryRun {
		return err
	}
	answer := r.Decider.Answer()
	if err != nil && !errors.As(err, new(cmdenv.Exit)) {
		return err
	}
	return answer // overrides the verdict of the comparison, which does not account for repeated looks
}

// runCaptures makes the captures. For a pair it returns the verdict as the exit code that explain diff would have.
func runCaptures(cmd *cobra.Command, r *capturesession.Session, programs [][]string) error {
	c, err := r.Run(cmd.Context(), programs)
	if err != nil || c == nil {
		return err
	}
	return cmdenv.Exited(cmdenv.VerdictCode(c.Verdict))
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

func newCaptureResume(e *cmdenv.Env) *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "resume DIR.failed",
		Short: "Continue a capture that failed after the recording",
		Long: `A capture that fails after the recording leaves everything in DIR.failed. resume does the remaining
steps (import, export, analysis) and moves the result to DIR. First fix what failed: a missing
importer, a full disk, a broken nsys. If resume fails, DIR.failed stays unchanged.`,
		Example: `  explain capture resume artifacts/run_20260101_120000.failed
  explain capture resume --nsys /opt/nvidia/nsight-systems/2024.2.3/bin/nsys run.failed`,
		Args: cmdenv.Args(1, 1, "name the folder of the failed capture: explain capture resume DIR.failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.session(cmd, e)
			if err != nil {
				return err
			}
			return r.Resume(cmd.Context(), args[0])
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.Out, "out", "o", "", "move it to this `DIR` (default: the folder that the capture was to write)")
	f.registerReport(cmd, "define one step of the work by this `UNIT` (default: as in the capture's command)")
	return cmd
}
