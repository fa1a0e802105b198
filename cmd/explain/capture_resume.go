package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

func newCaptureResume(e *env) *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "resume DIR.failed",
		Short: "Continue a capture that failed after the recording",
		Long: `A capture that fails after something was recorded leaves all of it in DIR.failed. resume imports,
exports and analyses what is there, as far as that has not been done, and moves it to DIR. What stood
in the way (a missing importer, a full disk, an nsys that failed) has to be out of it.

Where it fails again, DIR.failed stays as it is.`,
		Example: `  explain capture resume artifacts/run_20260101_120000.failed
  explain capture resume --nsys /opt/nvidia/nsight-systems/2024.2.3/bin/nsys run.failed`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name the folder of the failed capture: explain capture resume DIR.failed")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.resume(cmd, e, args[0]) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.out, "out", "o", "", "move it to this `DIR` (default: the folder that it was to be)")
	fl.StringVar(&f.nsys, "nsys", "", "run this `PROGRAM` (default: $NSYS, else nsys)")
	fl.BoolVar(&f.noReport, "no-report", false, "export the trace and do not analyse it")
	fl.StringVar(&f.unit, "unit", "", "one step of the work is this `UNIT` (default: as the capture was told)")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say on standard error what the analysis does")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// resume finishes each capture in a folder and moves it into its place.
func (f *captureFlags) resume(cmd *cobra.Command, e *env, dir string) error {
	dir = filepath.Clean(dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usagef("%s is not a folder: name the one of the failed capture", dir)
	}
	found := capture.Recordings(dir)
	if len(found) == 0 {
		return fmt.Errorf("%s holds no recording: there is nothing to continue, capture again", dir)
	}
	status, err := capture.ReadStatus(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", filepath.Join(dir, "status.json"), err)
	}
	f.unit, f.noReport = cmp.Or(f.unit, status.Unit), f.noReport || status.NoReport
	opt, err := (&analysisFlags{unit: f.unit}).options(e, 1)
	if err != nil {
		return err
	}
	if f.out, err = f.resumeTo(dir, status.Out, found); err != nil {
		return err
	}
	ctx, _, done := interruptible(cmd.Context(), capture.ErrInterrupted)
	defer done()
	r := &recording{captureFlags: f, env: e, cmd: cmd, now: time.Now(), options: opt, soft: ctx, hard: ctx}
	for _, sub := range found {
		if err := r.finish(ctx, filepath.Join(dir, sub)); err != nil {
			return fmt.Errorf("%w; %s is as it was", capture.DiskFull(dir, err), dir)
		}
	}
	if err := moveResumed(dir, f.out, found); err != nil {
		return fmt.Errorf("%w; the capture is in %s", err, dir)
	}
	if r.repeat = 1; len(found) > 1 {
		r.result = nil // each is in its folder
	}
	return r.wrote(nil)
}

// resumeTo is where the captures in a folder belong, which must be free.
func (f *captureFlags) resumeTo(dir, name string, found []string) (string, error) {
	out := f.out
	switch base, failed := strings.CutSuffix(dir, ".failed"); {
	case out != "":
	case name != "" && name == filepath.Base(name):
		out = filepath.Join(filepath.Dir(dir), name)
	case failed:
		out = base
	default:
		return dir, nil // where it is
	}
	for _, sub := range found {
		entries, err := os.ReadDir(filepath.Join(out, sub))
		if err == nil && len(entries) > 0 {
			return "", usagef("%s is there already: name another folder with --out", filepath.Join(out, sub))
		}
	}
	return out, nil
}

// finish exports and analyses one capture, as far as that has not been done.
func (r *recording) finish(ctx context.Context, dir string) (err error) {
	run, err := capture.NewRun(dir, os.Environ(), r.env.Getenv, r.say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	find := func() (*capture.Nsys, error) {
		return capture.FindNsys(ctx, cmp.Or(r.nsys, r.env.Getenv("NSYS"), "nsys"))
	}
	if err := run.Resume(ctx, find); err != nil {
		return err
	}
	if !r.noReport {
		if r.result, err = r.report(run); err != nil {
			return err
		}
	}
	return run.NoteResumed(r.now)
}

// moveResumed moves the captures of a folder to where they belong.
func moveResumed(dir, out string, found []string) error {
	if err := capture.Finished(dir); err != nil || dir == out {
		return err
	}
	for _, sub := range found {
		to := filepath.Join(out, sub)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) { // it is empty
			return err
		}
		if err := os.Rename(filepath.Join(dir, sub), to); err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil // logs of a capture that recorded nothing
	}
	return nil
}
