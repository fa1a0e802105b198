// Package reports returns the reports of the traces and reports that a user names. It analyses all traces with the same
// options and units.
package reports

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/capturesession"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
)

// Parallel is how many traces are analysed at a time: each is held in memory.
const Parallel = 2

// manyInputs is the number of inputs beyond which reports keep only what is compared.
const manyInputs = 8

// All returns the reports of all inputs in their order. Those analysed here from traces keep their detail tables from
// the index whole on: these can be large. reads selects the metrics to keep of many reports; nil: all.
func All(
	ctx context.Context, inputs []input.File, opt analyze.Options, whole int, reads func(*report.Metric) bool,
	bar *progress.Bar,
) ([]*analyze.Result, error) {
	list, errs := make([]*analyze.Result, len(inputs)), make([]error, len(inputs))
	each, stop := make([]context.Context, len(inputs)), make([]context.CancelFunc, len(inputs))
	for i := range inputs {
		each[i], stop[i] = context.WithCancel(ctx)
		defer stop[i]()
	}
	lean := report.Lean{Reads: reads}
	var group errgroup.Group
	group.SetLimit(Parallel)
	for i, in := range inputs {
		group.Go(func() error {
			opt := opt
			opt.NoDetails = i < whole
			if list[i], errs[i] = One(each[i], in, opt, bar); errs[i] != nil {
				for _, later := range stop[i+1:] { // earlier ones go on, so that the first error in order is returned
					later()
				}
			} else if i < whole && len(inputs) > manyInputs {
				lean.Compared(list[i].Report)
			}
			return nil
		})
	}
	_ = group.Wait()
	for _, err := range errs { // the first that is not a consequence of another
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return list, oneUnit(ctx, inputs, list, whole, opt, bar)
}

// oneUnit analyses again the traces whose units differ from those of the first. If one lacks the ranges that are the
// first's units, all get its units.
func oneUnit(
	ctx context.Context, inputs []input.File, list []*analyze.Result, whole int, opt analyze.Options, bar *progress.Bar,
) error {
	first := slices.IndexFunc(list, func(r *analyze.Result) bool { return opt.Like(r.Report) })
	if first < 0 {
		return nil
	}
	if err := unitsOf(ctx, first, inputs, list, whole, opt, bar); err != nil || list[first].Report.Unit.Kind != "nvtx" {
		return err
	}
	other := slices.IndexFunc(list, func(r *analyze.Result) bool { return r.Report.Unit.Used() != nil })
	if other < 0 {
		return nil
	}
	return unitsOf(ctx, other, inputs, list, whole, opt, bar)
}

// unitsOf analyses again the traces whose units differ from those of the input at the index one.
func unitsOf(
	ctx context.Context, one int, inputs []input.File, list []*analyze.Result, whole int, opt analyze.Options,
	bar *progress.Bar,
) error {
	opt.Like(list[one].Report)
	for i, in := range inputs {
		if in.Kind != input.Trace || !opt.Again(list[i].Report) {
			continue
		}
		opt.NoDetails = i < whole
		again, err := One(ctx, in, opt, bar)
		if err != nil {
			return err
		}
		if report.Alike(list[one].Report, again.Report) || !report.Alike(list[one].Report, list[i].Report) {
			list[i] = again
		}
	}
	return nil
}

// One reads a report or analyses a trace.
func One(ctx context.Context, in input.File, opt analyze.Options, bar *progress.Bar) (*analyze.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if in.Kind == input.Report {
		r, err := input.ReadReport(in.Path)
		if err != nil {
			return nil, err
		}
		return &analyze.Result{Report: r}, nil
	}
	opt.Progress = func(stage string, done int64) { bar.Update(filepath.Base(in.Path)+": "+stage, done) }
	opt.Overhead = capturesession.OverheadBeside(in.Path)
	res, err := analyze.Run(ctx, in.Path, opt)
	return res, input.AsTyped(err, in.Path)
}
