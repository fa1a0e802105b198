// Package analyze turns one capture into one report.
//
// The phases, in order, each in a package of its own:
//
//  1. open (internal/trace): find out what the file is, open it without touching it, load its events into columns
//  2. attribute (internal/timeline, internal/kernelname): which API call launched what, inside which NVTX ranges; what
//     each kernel is; what the GPU waited for while idle
//  3. find the unit of work (internal/workunit)
//  4. compute the sections (internal/section and compat), side by side, from what the phases before made
//  5. validate (report)
//
// Rendering is done elsewhere: report/present and report/render.
//
// To add a section or a metric, follow examples/docs/architecture.md.
package analyze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/section/steps"
	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// InputError is the error of an input that cannot be analysed: it says what the file is and what to do.
type InputError = trace.InputError

// Options of Run. The zero value gives the default report.
type Options struct {
	Version string // of the program, for the report's tool field; empty: devel

	Top           int     // rows of ranked tables; 0: 30
	AllRows       bool    // every row in every CSV file, however many
	NoDetails     bool    // leave out Result.Details, which can be large
	NoPercentiles bool    // leave out percentiles of kernel durations
	NoRangeMap    bool    // do not attribute kernels to NVTX ranges
	CoverageWarn  float64 // NVTX coverage, 0..1, below which a warning is given; 0: 0.7; negative: never
	GPUPrice      float64 // of a GPU for an hour, in the user's currency; 0: not given
	Phases        *PhaseMap
	Kernels       *KernelMap
	Overhead      *report.Overhead // what profiling cost, if it was measured
	Unit          string           // --unit: nvtx:REGEX, kernel:REGEX, graph, none; empty: automatic
	Window        WindowOptions
	Evidence      []Evidence          // files beside the trace, or instead of one
	Getenv        func(string) string // nil: os.Getenv
	// MaxMemory is how many bytes the process should hold at most: a capture that would not fit keeps the rest of its
	// columns in a temporary file, and gives the same report. 0 means no bound.
	MaxMemory int64
	// Progress is called while the analysis runs: for "read evidence" with files, for "read" and "unpack" with the
	// bytes done so far, and at their end once more as "read: done" and "unpack: done"; for other phases with rows. It
	// may be nil, and is called from several goroutines.
	Progress func(stage string, done int64)

	at *workunit.Anchor // where units start instead, in tests of cuts
}

// Defaults that the zero value of Options stands for.
const (
	defaultTop          = 30
	detailRows          = 10_000 // of a CSV file with a row per event
	defaultCoverageWarn = 0.7
	defaultVersion      = "devel"
)

// WindowOptions narrow the analysis. At most one way may be set.
type WindowOptions struct {
	From, To *time.Duration // since the first GPU work
	NVTX     string         // regular expression: from the first start to the last end of matching ranges
	Steady   bool           // from the first to the last steady unit of work
}

// Result is a report, and the tables that are too long for it.
type Result struct {
	Report *report.Report
	// Details are CSV tables with a row per event, or with every row of a table that the report cuts.
	Details []report.Table
}

// DefaultMaxMemory is half of the memory, in bytes, that this process could have: of the machine, or of its control
// group. 0 means that it is not known.
func DefaultMaxMemory() int64 { return spill.Machine() / 2 }

// ErrOptions marks errors of usage rather than of input.
var ErrOptions = errors.New("wrong usage")

// Run analyses the capture in path, with the evidence beside it. If path is empty, or is itself evidence, the report
// covers the evidence alone. An input that cannot be analysed gives an *InputError, a wrong option an error that wraps
// ErrOptions.
func Run(ctx context.Context, path string, opt Options) (res *Result, err error) {
	return run(ctx, path, opt, nil)
}

// run is Run, which also passes what the report was made of to a function; nil: to none. Evidence alone does not call
// it.
func run(ctx context.Context, path string, opt Options, look func(*kit.Input, *Result)) (res *Result, err error) {
	defer recovered(&err)
	tags, err := newTagger(&opt)
	if err != nil {
		return nil, err
	}
	ev, path, err := readEvidence(ctx, path, &opt)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return finish(evidenceOnly(ev, &opt), nil, &opt)
	}
	t, err := openTrace(ctx, path, &opt, tags)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	in, others, err := prepare(ctx, t, &opt, tags)
	if err != nil {
		return nil, err
	}
	in.Evidence = ev
	res, err = finish(in, others, &opt)
	if err == nil && look != nil {
		look(in, res)
	}
	return res, err
}

// recovered makes an error of a panic.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("explain failed on this capture, please report it: %v", p)
	}
}

// openTrace opens a capture that can be analysed.
func openTrace(ctx context.Context, path string, opt *Options, tags *tagger) (*trace.Trace, error) {
	t, err := trace.Open(ctx, path, trace.Options{
		Tag: tags.tag, CoarseTag: tags.coarse(), MaxMemory: opt.MaxMemory,
		FileOptions: trace.FileOptions{Progress: opt.Progress, Getenv: opt.Getenv},
	})
	if err != nil {
		return nil, err
	}
	if err := numberable(path, t.Kernels.Len(), t.Graphs.Len(), t.Copies.Len(), t.Sets.Len()); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	tags.settle(t.Ranges.Names)
	return t, nil
}

// numberable refuses a table of GPU work with more rows than the timeline can number.
func numberable(path string, rows ...int) error {
	if n := slices.Max(rows); n > timeline.MaxRows {
		return &InputError{
			File: filepath.Base(path),
			What: fmt.Sprintf("a table of GPU work has %d rows, and explain can number %d", n, timeline.MaxRows),
			Do:   "record a shorter time, or trace CUDA graphs as a whole (--cuda-graph-trace=graph)",
		}
	}
	return nil
}

// finish computes the sections and makes sure that the report keeps its contract. others holds the units cut at other
// anchors.
func finish(in *kit.Input, others []*workunit.Result, opt *Options) (*Result, error) {
	kit.Begin(sections, in)
	var cuts []*kit.Input
	for _, x := range others {
		cut := in.With(x)
		cut.Brief = true
		in.Beside(cut, &steps.Section)
		cuts = append(cuts, cut)
	}
	var r *report.Report
	var outs *kit.Outputs
	parallel.Do(
		func() {
			id := identity(in)
			r = newReport(in, &id, lists.Map(cuts, unitCut), opt)
		},
		func() { outs = kit.Compute(sections, in) })
	details := outs.Into(r)
	r.Environment.Clocks = clocks(r)
	citeKept(r)
	report.Complete(r)
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("explain made a report that breaks its own contract, please report it: %w", err)
	}
	return &Result{Report: r, Details: details}, nil
}

func sectionOptions(opt *Options) kit.Options {
	o := kit.Options{Top: cmp.Or(opt.Top, defaultTop), Percentiles: !opt.NoPercentiles, RangeMap: !opt.NoRangeMap,
		CoverageWarn: cmp.Or(opt.CoverageWarn, defaultCoverageWarn), GPUPrice: opt.GPUPrice,
		DetailRows: detailRows, AllRows: opt.AllRows, NoDetails: opt.NoDetails}
	if o.AllRows {
		o.DetailRows = math.MaxInt32
	}
	return o
}

// narrowed reports whether the window is less than the whole capture.
func narrowed(in *kit.Input) bool {
	return in.Window.Mode != "capture" && in.Window.Mode != "host" && in.Window.Mode != "empty"
}

// prepare computes the values that sections share, and the units at anchors other than the report's.
func prepare(ctx context.Context, t *trace.Trace, opt *Options, tags *tagger) (*kit.Input, []*workunit.Result, error) {
	in := &kit.Input{Trace: t, Options: sectionOptions(opt)}
	in.Options.Phases, in.Options.PhasesFrom = tags.phases()
	isComm := make([]bool, len(t.Kernels.Names))
	in.Kinds = make([]kernelname.Info, len(t.Kernels.Names))
	for i, n := range t.Kernels.Names {
		in.Kinds[i] = opt.Kernels.classify(n.Name)
		isComm[i] = in.Kinds[i].Comm
	}
	layOut := func(w interval.Interval) *timeline.Timeline { return timeline.New(t, in.Calls, w, isComm) }
	span, why := wholeCapture(t)
	in.Window, in.Span, in.Host = why, span, interval.Interval{Start: math.MinInt64, End: math.MaxInt64}
	in.Calls = timeline.Join(t)
	t.DropCallIDs()
	whole := layOut(span)
	in.Timeline = whole
	var others []*workunit.Result
	var err error
	parallel.Do( // the longest first
		func() { others, err = findUnits(in, opt, tags) },
		func() { in.GraphAhead(whole) },
		func() { in.Contexts = timeline.NewContexts(t) },
		func() { in.Threads = timeline.NewThreads(t) })
	if err != nil {
		return nil, nil, err
	}
	if narrowed(in) {
		in.Host = in.Span
		in.Timeline = layOut(in.Span)
		in.Units.Narrow(in.Span)
	}
	if in.Options.RangeMap && t.Ranges.Len() > 0 && t.Has.RangeThread {
		in.NVTX = timeline.Attribute(t, in.Calls, in.Contexts, in.Span)
	}
	if span, ok := steadyPart(in); ok {
		in.Steady = in.With(in.Units)
		in.Steady.Whole = in
		in.Steady.Span, in.Steady.Host = span, span
		in.Steady.Window = window(span, "steady", steadyWhy)
		in.Steady.Timeline = layOut(span)
	}
	return in, others, ctx.Err()
}

// findUnits finds the units, the window that they define, and the units at other anchors, which it returns.
func findUnits(in *kit.Input, opt *Options, tags *tagger) ([]*workunit.Result, error) {
	search := workunit.NewSearch(&workunit.Input{
		Trace: in.Trace, Calls: in.Calls, Timeline: in.Timeline, Kinds: in.Kinds, Spec: tags.unit,
		Marked: tags.isUnit, MappedPhase: tags.mapped(),
	})
	defer search.Free()
	if in.Units = search.Find(); opt.at != nil {
		in.Units = search.At(opt.at)
	}
	if none := in.Units.Unmatched; none != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, none)
	}
	if err := narrow(in, opt, tags); err != nil {
		return nil, err
	}
	var others []*workunit.Result
	for i := 1; i < len(in.Units.Anchors); i++ {
		x := search.At(&in.Units.Anchors[i])
		if x.Kind == workunit.KindNone {
			continue
		}
		if narrowed(in) {
			x.Narrow(in.Span)
		}
		others = append(others, x)
	}
	return others, nil
}
