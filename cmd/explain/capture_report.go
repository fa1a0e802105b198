package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/nsys-llm/explain/analyze"
	recorder "github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// analyse makes the report of a capture with the evidence beside it, as explain report does.
func (r *recording) analyse(ctx context.Context, run *recorder.Run) (*analyze.Result, error) {
	opt := analyze.Options{Version: versionText(), Unit: r.unit, Getenv: r.w.Getenv}
	for _, e := range []struct{ pattern, kind string }{
		{"evidence/*.prom", analyze.EvidencePrometheus}, {"evidence/*.json", ""}, {"evidence/session", ""}, {"logs/server.log", analyze.EvidenceServerLog}, {"ncu/raw.csv", analyze.EvidenceNCU},
	} {
		found, err := filepath.Glob(filepath.Join(run.Dir, filepath.FromSlash(e.pattern)))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			if analyze.IsEvidence(path) { // a server of another kind logs as it likes
				opt.Evidence = append(opt.Evidence, analyze.Evidence{Path: path, Kind: e.kind})
			}
		}
	}
	bar := newProgress(r.w, r.quiet, r.verbose)
	defer bar.stop()
	opt.Progress = bar.update
	res, err := analyze.Run(ctx, run.SQLite(), opt)
	var input *analyze.InputError
	if !errors.As(err, &input) || len(opt.Evidence) == 0 {
		return res, err
	}
	// A report without what another program wrote is better than none: first without one piece of it, then without all.
	all := opt.Evidence
	for i := 0; i <= len(all); i++ {
		what := "the evidence beside it"
		opt.Evidence = nil
		if i < len(all) {
			what = filepath.Base(all[i].Path)
			opt.Evidence = slices.Delete(slices.Clone(all), i, i+1)
		}
		if less, e := analyze.Run(ctx, run.SQLite(), opt); e == nil {
			run.Note("the report leaves out " + what + ": " + err.Error())
			return less, nil
		}
	}
	return nil, err
}

// report analyses a capture and writes the report beside its trace. A trace that cannot be analysed is kept: it took a GPU to make.
func (r *recording) report(run *recorder.Run) (*analyze.Result, error) {
	r.say("Analysing")
	res, err := r.analyse(r.hard, run)
	var input *analyze.InputError
	if errors.As(err, &input) {
		return nil, &keptError{err, "%w; the capture is in %s, without a report"}
	}
	if err != nil {
		return nil, err
	}
	return res, writeFolder(r.hard, run.Dir, folder(res))
}
