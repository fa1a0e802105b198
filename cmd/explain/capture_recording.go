package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/diff/comparison"
	diffrender "github.com/nsys-llm/explain/diff/render"
)

// recording is one call of explain capture.
type recording struct {
	*captureFlags
	env       *env
	cmd       *cobra.Command
	id        string
	now       time.Time
	nsysFound *capture.Nsys
	options   analyze.Options
	unusable  string          // why the plan is for another nsys than the one here; empty: it is for that one
	soft      context.Context // ends when the user wants the recording to end
	hard      context.Context // ends when the user gives up
	server    *serverFlags    // nil: explain capture -- COMMAND
	result    *analyze.Result // of the last capture; nil with --no-report
}

// job is what one capture runs.
func (r *recording) job(program []string) *capture.Job {
	return &capture.Job{
		Nsys: r.nsysFound,
		Trace: capture.Trace{Trace: r.trace, Graphs: r.graphs, GraphsAsked: r.cmd.Flags().Changed("graph-trace"),
			Memory: r.memory, Forks: r.window.Triggered() || r.server != nil},
		Window:  r.window,
		Program: program,
		Grace:   r.grace,
		Limit:   r.limit,
	}
}

// all makes every capture of the call, into one folder.
func (r *recording) all(programs [][]string) error {
	if r.dryRun {
		return r.plan(programs)
	}
	folder, err := capture.NewFolder(r.out, r.force)
	if errors.Is(err, capture.ErrExists) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	soft, hard, done := interruptible(r.cmd.Context(), capture.ErrInterrupted)
	defer done()
	r.soft, r.hard = soft, hard
	err = r.captures(folder.Stage, programs)
	var kept *keptError
	if err != nil && !errors.As(err, &kept) {
		err = capture.DiskFull(folder.Stage, err)
		if logs := folder.Discard(); logs != "" {
			return fmt.Errorf("%w (logs: %s)", err, logs)
		}
		return err
	}
	var comparison *comparison.Comparison
	if err == nil && r.pair {
		if comparison, err = r.compare(folder.Stage); err != nil {
			folder.Discard()
			return capture.DiskFull(filepath.Dir(r.out), err)
		}
	}
	if err := folder.Commit(); err != nil {
		folder.Discard()
		return err
	}
	if kept != nil {
		return kept.in(r.out)
	}
	return r.wrote(comparison)
}

// keptError is an error after which the folder is kept, since what it holds is whole and took a GPU to make.
type keptError struct {
	error
	format string // with the folder
}

func (k *keptError) in(dir string) error { return fmt.Errorf(k.format, k.error, dir) }
func (k *keptError) Unwrap() error       { return k.error }

// captures runs the programs in turns and reports whether the user ended them early.
func (r *recording) captures(stage string, programs [][]string) error {
	for i := 1; i <= r.repeat; i++ {
		for side, program := range programs {
			dir := filepath.Join(stage, r.subfolder(side, i))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := r.one(dir, program); err != nil {
				return err
			}
		}
	}
	return nil
}

// subfolder of one capture among several: run-2, base-1, head-3; the folder itself where there is only one.
func (r *recording) subfolder(side, i int) string {
	switch {
	case r.pair:
		return []string{"base", "head"}[side] + "-" + strconv.Itoa(i)
	case r.repeat > 1:
		return "run-" + strconv.Itoa(i)
	}
	return "."
}

// one makes one capture: record, export, facts, analysis.
func (r *recording) one(dir string, program []string) error {
	run, err := capture.NewRun(dir, os.Environ(), r.env.Getenv, r.say)
	if err != nil {
		return err
	}
	job := r.job(program)
	res, err := r.record(run, job)
	if e := run.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	facts := r.facts(job)
	if err := run.WriteFacts(r.hard, facts); err != nil {
		return err
	}
	if run.Interrupted {
		return &keptError{capture.ErrInterrupted, "%w: %s holds what was recorded up to then"}
	}
	r.result = res
	return nil
}

// record runs the capture and analyses it; the result is nil with --no-report.
func (r *recording) record(run *capture.Run, job *capture.Job) (*analyze.Result, error) {
	if r.server != nil {
		return r.server.record(r, run, job)
	}
	if err := run.Profile(r.soft, r.hard, job); err != nil {
		return nil, err
	}
	if r.noReport {
		return nil, nil
	}
	return r.report(run)
}

func (r *recording) say(text string) {
	if !r.quiet {
		fmt.Fprintln(r.env.Err, clean(text))
	}
}

// wrote tells what was found, where everything is, and what to do with several captures. It comes when the folder is in
// its place, so that a reader of the output who has seen enough loses nothing. The verdict on a pair is the exit code
// of explain diff.
func (r *recording) wrote(comparison *comparison.Comparison) error {
	if err := r.tell(comparison); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	if comparison != nil {
		if code := verdictCode(comparison.Verdict); code != exitOK {
			return exitCode(code)
		}
	}
	return nil
}

func (r *recording) tell(comparison *comparison.Comparison) error {
	switch {
	case r.quiet:
		return nil
	case comparison != nil:
		opt := render.TerminalOptions{Color: r.env.colour()}
		if err := diffrender.WriteText(r.env.Out, comparison, opt); err != nil {
			return err
		}
	case r.result != nil && r.repeat == 1:
		return r.env.writeTerminal(r.result, r.out) // which ends in where it is
	}
	text := "Wrote " + clean(r.out) + "\n"
	if r.repeat > 1 && !r.pair {
		var dirs []string
		for i := 1; i <= r.repeat; i++ {
			dirs = append(dirs, filepath.Join(r.out, r.subfolder(0, i)))
		}
		text += "How much captures of this program differ: explain calibrate " + clean(strings.Join(dirs, " ")) +
			" --out noise.json\n"
	}
	_, err := fmt.Fprint(r.env.Out, text)
	return err
}
