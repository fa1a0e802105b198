package cmdenv

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/policy"
)

// AnalysisFlags are the analysis flags of commands that take both traces and reports.
type AnalysisFlags struct {
	Unit, window   string
	from, to       time.Duration
	steady         bool
	PhaseMap       string // a file, empty for none
	KernelMap      string // a file, empty for none
	memory         string
	Quiet, Verbose bool
	Reads          func(*report.Metric) bool // metrics that are read if there are many reports; nil: all
	policyUnit     string                    // the policy's unit, used without --unit
	given          *pflag.FlagSet            // the command's; nil if there is no command line
}

// Register adds the flags to a command that takes traces and reports: they are about the traces.
func (f *AnalysisFlags) Register(cmd *cobra.Command) { f.RegisterFor(cmd, " (traces only)") }

// RegisterFor adds the flags, and appends where to the help of those that apply to traces.
func (f *AnalysisFlags) RegisterFor(cmd *cobra.Command, where string) {
	fl := cmd.Flags()
	f.given = fl
	fl.StringVar(&f.Unit, "unit", "",
		"one step of the work, a `UNIT`: nvtx:REGEX, kernel:REGEX, graph or none (default: found automatically)"+where)
	fl.StringVar(&f.window, "window", "",
		"analyse from the first to the last NVTX range that matches: nvtx:`REGEX`"+where)
	fl.DurationVar(&f.from, "from", 0, "analyse from this `TIME` after the first GPU work, 1.5s or 200ms"+where)
	fl.DurationVar(&f.to, "to", 0, "analyse up to this `TIME` after the first GPU work"+where)
	fl.BoolVar(&f.steady, "steady", false, "analyse from the first to the last steady step"+where)
	RegisterMaps(cmd, &f.PhaseMap, &f.KernelMap, where)
	fl.StringVar(&f.memory, "max-memory", "",
		"use at most this `SIZE` of memory (1GiB, 800MB); a larger capture keeps the rest of its columns in $TMPDIR (default: half of the machine's memory)")
	quiet := "print nothing but errors"
	if fl.Lookup("format") != nil {
		quiet += ", and what --format asks for"
	}
	fl.BoolVarP(&f.Quiet, "quiet", "q", false, quiet)
	fl.BoolVarP(&f.Verbose, "verbose", "v", false, "print progress on standard error")
}

// RegisterMaps adds the flags that name a phase map and a kernel map, and appends where to their help.
func RegisterMaps(cmd *cobra.Command, phases, kernels *string, where string) {
	cmd.Flags().StringVar(phases, "phase-map", "",
		"map NVTX ranges to phases by a JSON `FILE`: {\"prefill\": [\"prompt\", \"re:^ctx\"], …}"+where)
	cmd.Flags().StringVar(kernels, "kernel-map", "",
		"set the categories of kernels from a YAML or CSV `FILE`: \"my_router: moe_route\", \"re:^acme_: gemm\""+where)
	_ = cmd.MarkFlagFilename("phase-map", "json")
	_ = cmd.MarkFlagFilename("kernel-map", "yml", "yaml", "csv")
}

// Changed reports whether a flag of the command was given.
func (f *AnalysisFlags) Changed(name string) bool { return f.given != nil && f.given.Changed(name) }

// Given returns the value of a flag of the command as it was given; empty if it was not.
func (f *AnalysisFlags) Given(name string) string {
	if !f.Changed(name) {
		return ""
	}
	return f.given.Lookup(name).Value.String()
}

// Options returns the options of an analysis; traces is how many of them run at once.
func (f *AnalysisFlags) Options(e *Env, traces int) (analyze.Options, error) {
	opt := analyze.Options{Version: e.Version, Unit: cmp.Or(f.Unit, f.policyUnit), Getenv: e.Getenv}
	if f.Quiet && f.Verbose {
		return opt, usage.Errorf("--quiet and --verbose exclude each other")
	}
	var err error
	opt.Window.NVTX = strings.TrimPrefix(f.window, "nvtx:")
	if f.window == "nvtx:" || f.window != "" && opt.Window.NVTX == f.window {
		return opt, usage.Errorf("--window %s: expected nvtx:REGEX", f.window)
	}
	if f.Changed("from") {
		opt.Window.From = &f.from
	}
	if f.Changed("to") {
		opt.Window.To = &f.to
	}
	opt.Window.Steady = f.steady
	if opt.Phases, err = readMap(f.PhaseMap, "phase map", analyze.ParsePhaseMap); err != nil {
		return opt, err
	}
	if opt.Kernels, err = readMap(f.KernelMap, "kernel map", analyze.ParseKernelMap); err != nil {
		return opt, err
	}
	opt.MaxMemory, err = memoryOf(f.memory, traces)
	return opt, err
}

// readMap reads the file of a flag such as --phase-map; nil if there is none.
func readMap[M any](path, what string, parse func(name string, text []byte) (*M, error)) (*M, error) {
	if path == "" {
		return nil, nil
	}
	text, err := input.ReadText(path)
	if err != nil {
		return nil, usage.Errorf("%s: %w", what, err)
	}
	return parse(filepath.Base(path), text)
}

// Follow takes the unit of work from a policy if --unit is empty; else it returns a copy of the policy with the unit of
// the flag.
func (f *AnalysisFlags) Follow(p *policy.Policy) *policy.Policy {
	switch {
	case p == nil:
		return nil
	case f.Unit == "":
		f.policyUnit = p.Unit
		return p
	}
	told := *p
	told.Unit = strings.TrimPrefix(f.Unit, "auto")
	return &told
}

// Reports returns the reports of all inputs, in their order; it analyses traces.
func (f *AnalysisFlags) Reports(ctx context.Context, e *Env, inputs []input.File) ([]*report.Report, error) {
	results, err := f.Results(ctx, e, inputs, len(inputs))
	list := lists.Map(results, func(r *analyze.Result) *report.Report { return r.Report })
	return list, err
}

// Results returns the reports of all inputs in their order. Those analysed here from traces keep their detail tables
// from the index whole on: these can be large.
func (f *AnalysisFlags) Results(
	ctx context.Context, e *Env, inputs []input.File, whole int,
) ([]*analyze.Result, error) {
	opt, err := f.Options(e, parallel)
	if err != nil {
		return nil, err
	}
	if in := lists.Find(inputs, func(in *input.File) bool { return in.Kind == input.Report }); in != nil {
		if err := f.Refuse(in.Path, "report", "explain TRACE"); err != nil {
			return nil, err
		}
	}
	paths := lists.Map(inputs, func(in input.File) string { return in.Path })
	HoldMemory(paths...)
	if len(inputs) > fewReports && OwnProcess {
		debug.SetGCPercent(often) // from here on: what compares the reports holds them all
	}
	bar := progress.New(e.Err, f.Quiet, f.Verbose)
	defer bar.Stop()
	list, errs := make([]*analyze.Result, len(inputs)), make([]error, len(inputs))
	lean := report.Lean{Reads: f.Reads}
	var group errgroup.Group
	group.SetLimit(parallel)
	later := ctx // of those after the one at hand
	for i, in := range inputs {
		own, opt := later, opt
		var stop context.CancelFunc
		later, stop = context.WithCancel(own)
		defer stop()
		group.Go(func() error {
			opt.NoDetails = i < whole
			if list[i], errs[i] = reportOf(own, in, opt, bar); errs[i] != nil {
				stop() // earlier ones go on, so that the first error in order is returned
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
	return list, nil
}

// Refuse returns a usage error if flags about traces were given: a file is what a command made of a trace already.
func (f *AnalysisFlags) Refuse(path, is, command string) error {
	for _, flag := range []string{"unit", "window", "from", "to", "steady", "phase-map", "kernel-map"} {
		if f.Changed(flag) {
			return usage.Errorf("--%s says how a trace is analysed, and %s is a %s already: make it again with %s --%s, or name the trace", flag, path, is, command, flag)
		}
	}
	return nil
}

// leastMemory is the least that --max-memory accepts, in bytes.
const leastMemory = 128 << 20

// OwnProcess says that this process runs commands one by one, so that how it uses memory is theirs to set: main does.
// Tests run many at once in a process.
var OwnProcess bool

const (
	// usualHeap is enough Go heap for captures of usualFiles bytes together; each byte more has two fifths of one more.
	usualHeap  = 400 << 20
	usualFiles = 50 << 20
	// smallFiles is the total size of input files, in bytes, up to which garbage is collected rarely.
	smallFiles = 256 << 20
)

// HoldMemory limits the Go heap to what captures of these files' size need, so that a small file with very many devices
// or processes, or two of them, stay below 500 MB. Up to smallFiles bytes, garbage is collected rarely.
func HoldMemory(paths ...string) {
	var size int64
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	limit := min(usualHeap+max(0, size-usualFiles)*2/5, heapLimit())
	if size > smallFiles {
		useHeap(limit, size/32, 15)
	} else {
		useHeap(limit, 0, rarely)
	}
}

// ballast counts as heap, but is never touched, so that the system gives no memory for it. An analysis keeps little on
// the Go heap, and a share of little is soon reached: with the ballast, garbage is collected a third less often.
var ballast []byte

// heapLimit is the limit of the Go heap beside the ballast, in bytes.
func heapLimit() int64 { return debug.SetMemoryLimit(-1) - int64(len(ballast)) }

// useHeap limits the Go heap to so many bytes beside a ballast of so many, and collects garbage when it has grown by so
// many percent.
func useHeap(limit, carried int64, percent int) {
	if OwnProcess {
		ballast = make([]byte, carried)
		debug.SetMemoryLimit(limit + carried)
		debug.SetGCPercent(percent)
	}
}

// rarely is the percentage where memory is not scarce, and often the one with the reports of more than fewReports
// inputs.
const (
	rarely, often = 400, 25
	fewReports    = 16
)

// Analysed says that the analysis that [HoldMemory] prepared is over: what is written of it takes little memory.
func Analysed() { useHeap(heapLimit(), 0, rarely) }

// memoryOf reads --max-memory: the memory of each analysis, if traces of them run at once, in bytes. It limits the Go
// heap to a third of the total: columns are outside the heap.
func memoryOf(text string, traces int) (int64, error) {
	limit := analyze.DefaultMaxMemory()
	if text != "" {
		q, err := unit.Parse(text)
		switch {
		case err != nil:
			return 0, usage.Errorf("--max-memory: %w", err)
		case q.Unit != report.Bytes:
			return 0, usage.Errorf("--max-memory %s is not a size; use e.g. 1GiB or 800MB", text)
		case q.Value < leastMemory:
			return 0, usage.Errorf("--max-memory %s is too little; allow 128MiB or more", text)
		case q.Value > 1<<60:
			return 0, usage.Errorf("--max-memory %s is more than any machine has", text)
		}
		limit = int64(q.Value)
	}
	if limit > 0 && OwnProcess {
		debug.SetMemoryLimit(limit/3 + int64(len(ballast)))
	}
	return limit / int64(max(1, traces)), nil
}

// parallel is how many traces are analysed at a time: each is held in memory.
const parallel = 2

// manyInputs is the number of inputs beyond which reports keep only what is compared.
const manyInputs = 8

// reportOf reads a report or analyses a trace.
func reportOf(ctx context.Context, in input.File, opt analyze.Options, bar *progress.Bar) (*analyze.Result, error) {
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
	opt.Overhead = OverheadBeside(in.Path)
	res, err := analyze.Run(ctx, in.Path, opt)
	return res, input.AsTyped(err, in.Path)
}

// OverheadBeside returns the profiling cost that a capture left beside its trace; nil if there is none.
func OverheadBeside(trace string) *report.Overhead {
	if filepath.Base(trace) != "trace.sqlite" {
		return nil
	}
	f, err := os.Open(filepath.Join(filepath.Dir(trace), capture.OverheadFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	o := new(report.Overhead)
	if json.NewDecoder(io.LimitReader(f, 1<<16)).Decode(o) != nil ||
		!(o.Profiled > 0 && o.Plain > 0 && o.ProfiledN > 0 && o.PlainN > 0) ||
		o.Of != "request" && o.Of != "client" {
		return nil
	}
	return o
}
