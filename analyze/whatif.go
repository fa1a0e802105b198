package analyze

import (
	"cmp"
	"context"
	"fmt"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/whatif"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
)

// WhatIfResult says what steps would take at least if something were faster or gone.
type WhatIfResult = whatif.Result

// Change is one thing that is faster or gone, see [ParseChange].
type Change = whatif.Change

// NoUnitError is the error of a capture without units of work: there is nothing to replay.
type NoUnitError struct{ Why string }

func (e *NoUnitError) Error() string {
	return "there is no unit of work to replay: " + e.Why + "; say with --unit what a step is"
}

// ParseChange reads a change: kind is the name of a flag of explain whatif, text its value. The error wraps ErrOptions.
func ParseChange(kind, text string) (Change, error) {
	c, err := whatif.Parse(whatif.Kind(kind), text)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return c, err
}

// WhatIf replays the steps of the capture in path with changes: one scenario after the other, each of several changes
// together. Without any it takes the usual ones, as far as the capture has what they are about. The errors are those of
// Run, and *NoUnitError.
func WhatIf(ctx context.Context, path string, scenarios [][]Change, opt Options) (res *WhatIfResult, err error) {
	defer recovered(&err)
	tags, err := newTagger(&opt)
	if err != nil {
		return nil, err
	}
	t, err := openTrace(ctx, path, &opt, tags)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	in, _, err := prepare(ctx, t, &opt, tags)
	if err != nil {
		return nil, err
	}
	switch x := in.Units; {
	case x.Kind == workunit.KindNone:
		return nil, &NoUnitError{x.Why}
	case x.Primary < 0:
		return nil, &NoUnitError{"no complete unit starts in the window"}
	}
	w := whatif.Input{Trace: t, Graph: in.UnitGraph(), Kinds: in.Kinds,
		Name: func(d *timeline.Device, i int32) string { return in.WorkNames().Of(d, int(i)) }}
	if w.Graph == nil {
		return nil, &InputError{File: t.File.Name, What: "more GPU work than a graph can number", Do: "record a shorter time"}
	}
	if len(scenarios) == 0 {
		scenarios = w.Usual()
	}
	res, err = w.Run(in.Units, scenarios)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if b := kit.TwoTimes(in.Units); b != nil {
		res.Unit.Two = b.String()
	}
	res.Tool, res.Trace = whatif.Tool{Name: "explain", Version: cmp.Or(opt.Version, defaultVersion)}, t.File.Name
	return res, nil
}
