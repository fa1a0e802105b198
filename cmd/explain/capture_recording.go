package main

import (
	"cmp"
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
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
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
	programs  []error         // of each capture: how its program failed, nil where it did not
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
	if errors.Is(err, capture.ErrExists) || errors.Is(err, capture.ErrTaken) || errors.Is(err, capture.ErrAlien) {
		return usageError{Err: err}
	}
	if err != nil {
		return err
	}
	for _, n := range folder.Notes {
		r.say("Note: " + n)
	}
	if names := capture.EndStale(); names != "" {
		r.say("Note: ended what a capture had left running whose explain was killed: " + names)
	}
	soft, hard, done := interruptible(r.cmd.Context(), capture.ErrInterrupted)
	defer done()
	r.soft, r.hard = soft, hard
	err = (&capture.Status{Out: filepath.Base(r.out), NoReport: r.noReport, Unit: r.unit}).Write(folder.Stage)
	if err == nil {
		err = r.captures(folder, programs)
	}
	if errors.Is(err, errStopped) { // with all that was recorded in its place
		if err := folder.Done(); err != nil {
			return err
		}
		return fmt.Errorf("%w: %s holds what was recorded up to then", capture.ErrInterrupted, r.out)
	}
	if err == nil && !r.several() {
		err = folder.Done()
	}
	if err != nil {
		return r.failed(folder, err)
	}
	var comparison *comparison.Comparison
	if r.pair {
		comparison, err = r.compare(r.out)
	}
	if r.several() {
		err = errors.Join(err, folder.Done())
	}
	if err != nil {
		return fmt.Errorf("%w; the captures are in %s", capture.DiskFull(filepath.Dir(r.out), err), r.out)
	}
	return r.wrote(comparison)
}

// failed keeps what was recorded and says how to continue.
func (r *recording) failed(folder *capture.Folder, err error) error {
	err = capture.DiskFull(folder.Stage, err)
	kept, resumable := folder.Fail(err)
	switch {
	case resumable:
		return fmt.Errorf("%w; what was recorded is in %s, continue with: explain capture resume %s",
			err, kept, capture.Shell([]string{kept}))
	case kept != "":
		return fmt.Errorf("%w (logs: %s)", err, kept)
	}
	return err
}

// errStopped is the end of captures that the user ended, when the last one has been exported.
var errStopped = errors.New("stopped")

// captures runs the programs in turns. Each of several captures is in its place as soon as it is whole.
func (r *recording) captures(folder *capture.Folder, programs [][]string) error {
	for i := 1; i <= r.repeat; i++ {
		for side, program := range programs {
			sub := r.subfolder(side, i)
			dir := filepath.Join(folder.Stage, sub)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			stopped := r.one(dir, program)
			if stopped != nil && !errors.Is(stopped, errStopped) {
				return stopped
			}
			if r.several() {
				if err := folder.Keep(sub); err != nil {
					return err
				}
			}
			if stopped != nil {
				return stopped
			}
		}
	}
	return nil
}

// several reports whether the call makes more than one capture, each in a folder of its own.
func (r *recording) several() bool { return r.pair || r.repeat > 1 }

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

// one makes one capture: record, export, facts, analysis. What is known of a capture that failed is written too, as
// far as it goes.
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
		if len(capture.Recordings(dir)) > 0 {
			_ = run.WriteFacts(context.WithoutCancel(r.hard), r.facts(job))
		}
		return err
	}
	if err := run.WriteFacts(r.hard, r.facts(job)); err != nil {
		return err
	}
	if run.Interrupted {
		return errStopped
	}
	r.result = res
	r.programs = append(r.programs, run.Program)
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
	r.measureOverhead(run, job)
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
	if err := r.programsFailed(); err != nil {
		return err
	}
	if r.result != nil && nothingRecorded(r.result) {
		return fmt.Errorf("nothing was recorded (%s): %s", r.out, r.nothingAdvice())
	}
	if comparison != nil {
		if code := verdictCode(comparison.Verdict); code != exitOK {
			return exitCode(code)
		}
	}
	return nil
}

// programsFailed says how the programs ended that failed, whose captures are whole all the same.
func (r *recording) programsFailed() error {
	var first error
	failed := 0
	for _, err := range r.programs {
		if err != nil {
			failed++
			first = cmp.Or(first, err)
		}
	}
	switch {
	case first == nil:
		return nil
	case r.several():
		return fmt.Errorf("%w; so ended %d of %d programs; their traces are kept in %s", first, failed, len(r.programs), r.out)
	}
	return fmt.Errorf("%w; its trace is kept in %s", first, r.out)
}

// nothingRecorded reports whether a trace holds nothing that can be analysed.
func nothingRecorded(res *analyze.Result) bool { return res.Report.Window.Length == 0 }

// nothingAdvice is what to change when nothing was recorded.
func (r *recording) nothingAdvice() string {
	switch {
	case !strings.Contains(","+r.trace+",", ",cuda,"):
		return "--trace " + r.trace + " records no CUDA; add cuda to it"
	case r.server != nil:
		return "did the server use the GPU? See logs/server.log, and whether its worker processes are traced (nsys 2022.4 or later)"
	case r.window.Triggered(), r.window.Delay > 0, r.window.Duration > 0:
		return "the GPU did no work in the window; move it with --delay, --warmup or --duration, or record the whole run"
	}
	return "the program did no work on a GPU while it was recorded; start it so that it uses one (CUDA_VISIBLE_DEVICES, nvidia-smi)"
}

func (r *recording) tell(comparison *comparison.Comparison) error {
	switch {
	case r.quiet:
		return nil
	case comparison != nil:
		if err := diffrender.WriteText(r.env.Out, comparison, r.env.terminal()); err != nil {
			return err
		}
	case r.result != nil && r.repeat == 1:
		return output.Terminal(r.env.Out, r.result, r.out, r.env.terminal()) // which ends in where it is
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
