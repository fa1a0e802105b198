package capturesession

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/interrupt"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// Resume finishes each capture in the folder of a failed one and moves it into its place.
func (r *Session) Resume(ctx context.Context, dir string) error {
	dir = filepath.Clean(dir)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usage.Errorf("%s is not a folder: name the one of the failed capture", dir)
	}
	found := capture.Recordings(dir)
	if len(found) == 0 {
		return fmt.Errorf("%s holds no recording: there is nothing to continue, capture again", dir)
	}
	status, err := capture.ReadStatus(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w", filepath.Join(dir, "status.json"), err)
	}
	r.Want.recall(status)
	if r.Analysis, err = r.Want.Analysis.Options(r.Env, 1); err != nil {
		return err
	}
	if r.Want.Out, err = r.resumeTo(dir, status.Out, found); err != nil {
		return err
	}
	defer capture.Watch("")()
	ctx, _, done := interrupt.Contexts(ctx, capture.ErrInterrupted)
	defer done()
	r.soft, r.hard = ctx, ctx
	for _, sub := range found {
		if err := r.finish(ctx, filepath.Join(dir, sub)); err != nil {
			return fmt.Errorf("%w; %s is as it was", capture.DiskFull(dir, err), dir)
		}
	}
	if err := moveResumed(dir, r.Want.Out, found); err != nil {
		return fmt.Errorf("%w; the capture is in %s", err, dir)
	}
	if r.Want.Repeat = 1; len(found) > 1 {
		r.result = nil // each result is in its folder
	}
	return r.wrote(nil)
}

// recall takes from the status what the command line does not say.
func (r *Options) recall(status *capture.Status) {
	a := &r.Analysis
	r.NsysName, r.NoReport = cmp.Or(r.NsysName, status.Nsys), r.NoReport || status.NoReport
	a.Unit = cmp.Or(a.Unit, status.Unit)
	if r.NoReport {
		return // what a report would be made with may be gone
	}
	a.PhaseMap, a.KernelMap = cmp.Or(a.PhaseMap, status.PhaseMap), cmp.Or(a.KernelMap, status.KernelMap)
}

// resumeTo returns the folder for the resumed captures, which must be free.
func (r *Session) resumeTo(dir, name string, found []string) (string, error) {
	out := r.Want.Out
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
		if err == nil && len(entries) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", usage.Errorf("%s is there already: name another folder with --out", filepath.Join(out, sub))
		}
	}
	return out, nil
}

// finish exports and analyses one capture, as far as that has not been done.
func (r *Session) finish(ctx context.Context, dir string) (err error) {
	run, err := capture.NewRun(context.Background(), ctx, dir, r.Env.Getenv, r.Say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if err := run.Resume(cmp.Or(r.Want.NsysName, r.Env.Getenv("NSYS"), "nsys")); err != nil {
		return err
	}
	if !r.Want.NoReport {
		if r.result, err = r.report(run); err != nil {
			return err
		}
	}
	return run.NoteResumed(r.Began)
}

// moveResumed moves the captures of a folder to where they belong. What marks them as unfinished stays until then.
func moveResumed(dir, out string, found []string) error {
	if dir == out {
		return capture.Finished(dir)
	}
	marks := dir
	for _, sub := range found {
		to := filepath.Join(out, sub)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := capture.RemoveEmpty(to); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(dir, sub), to); err != nil {
			return err
		}
		if sub == "." { // the folder itself
			marks = out
		}
	}
	if err := capture.Finished(marks); err != nil {
		return err
	}
	_ = os.Remove(dir) // stays if it has logs of a capture that recorded nothing
	return nil
}
