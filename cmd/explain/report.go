package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
)

func newReport(e *env) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report TRACE",
		Short: "Analyse one capture (the default command)",
		Long: `report analyses one capture. Without --out it prints a summary; with --out it also writes a folder:

Evidence that lies next to a capture goes into the same report: Nsight Compute CSV exports, server
logs, Prometheus metrics, the files of profilers ("explain doc evidence"). Each is also analysed
alone: TRACE may be left out, or be such a file.

  report.html             the full report for a browser, in one file
  report.md               the same as text, warnings and findings first
  report.json             the same as data, see "explain schema report" and "explain metrics"
  tables/*.csv            every table
  summary.json            profilemate's summary
  kernels.md, stakeholder_summary.md   as llm-perf-opt writes them

--format md prints a version of report.md that fits into a comment on a pull request. The folder
appears whole or not at all.`,
		Example: `  explain report trace.sqlite --out report/
  explain report trace.nsys-rep --phase-map phases.json --out report/
  explain report trace.sqlite --from 2s --to 5s --format json
  explain report trace.sqlite --window 'nvtx:^decode' --format md
  explain report trace.sqlite --ncu 'ncu/*.csv' --server-log server.log --prometheus metrics.prom --out report/
  explain report --server-log server.log --out report/`,
		Args: f.oneTrace,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	f.register(cmd)
	return cmd
}

// reportFlags are the flags of explain report and of the bare explain.
type reportFlags struct {
	out           string
	phaseMap      string
	kernelMap     string
	top           int
	noPercentiles bool
	noRangeMap    bool
	coverageWarn  float64
	printSchema   bool
	open          bool
	unit          string
	window        string
	from, to      time.Duration
	steady        bool
	ncu           []string
	serverLogs    []string
	prometheus    []string
	evidence      []string
	format        string
	memory        memoryFlag
	quiet         bool
	verbose       bool
}

// formats of --format, in the order of the help text.
var formats = []string{"text", "md", "json", "summary"}

func (f *reportFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.out, "out", "o", "", "write the report into this `DIR`")
	fl.StringVar(&f.format, "format", "",
		"print this `FORMAT` to standard output: "+strings.Join(formats, ", ")+" (default text)")
	fl.StringVar(&f.phaseMap, "phase-map", "",
		"map NVTX ranges to phases by a JSON `FILE`: {\"prefill\": [\"prompt\", \"re:^ctx\"], …}")
	fl.StringVar(&f.kernelMap, "kernel-map", "", kernelMapHelp)
	fl.StringVar(&f.phaseMap, "phases-json", "", "the same as --phase-map")
	fl.StringVar(&f.unit, "unit", "",
		"one step of the work is this `UNIT`: nvtx:REGEX, kernel:REGEX, graph or none (default: found automatically)")
	fl.StringVar(&f.window, "window", "", "analyse from the first to the last NVTX range that matches `nvtx:REGEX`")
	fl.DurationVar(&f.from, "from", 0, "analyse from this `TIME` after the first GPU work (1.5s, 200ms)")
	fl.DurationVar(&f.to, "to", 0, "analyse up to this `TIME` after the first GPU work")
	fl.BoolVar(&f.steady, "steady", false, "analyse from the first to the last steady unit of work")
	fl.StringSliceVar(&f.ncu, "ncu", nil,
		"add Nsight Compute CSV exports, raw or details pages: `FILES`, globs, or a folder")
	fl.StringSliceVar(&f.serverLogs, "server-log", nil, "add the log of a vLLM or SGLang server: `FILE`")
	fl.StringSliceVar(&f.prometheus, "prometheus", nil,
		"add a dump of the server's /metrics: `FILE`; two are compared, later minus earlier")
	fl.StringSliceVar(&f.evidence, "evidence", nil,
		"add a folder or file of evidence of any kind, recognised by content: `DIR`")
	fl.IntVar(&f.top, "top-kernels", 30, "rows of ranked tables, `N` at most")
	fl.IntVar(&f.top, "kernel-limit", 30, "the same as --top-kernels")
	fl.BoolVar(&f.noPercentiles, "no-kernel-percentiles", false, "leave out percentiles of kernel durations")
	fl.BoolVar(&f.noRangeMap, "no-nvtx-kernel-map", false, "do not attribute kernels to NVTX ranges")
	fl.Float64Var(&f.coverageWarn, "nvtx-coverage-warn-threshold", 0.7,
		"warn when less than this `SHARE` of kernel time lies in NVTX ranges (0..1)")
	f.memory.register(fl)
	fl.BoolVar(&f.printSchema, "print-schema", false, "print the tables of the capture and stop")
	fl.BoolVar(&f.open, "open", false, "show report.html in the browser, once it is written")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say on standard error what is being done")
	_ = cmd.MarkFlagDirname("out")
	_ = cmd.MarkFlagFilename("phase-map", "json")
	_ = cmd.MarkFlagFilename("kernel-map", "yml", "yaml", "csv")
	_ = fl.MarkHidden("phases-json")
	_ = fl.MarkHidden("kernel-limit")
	completeFlag(cmd, "format", formats)
}

// options turns flags into the options of an analysis.
func (f *reportFlags) options(cmd *cobra.Command, e *env) (analyze.Options, error) {
	var err error
	opt := analyze.Options{
		Version: versionText(), Top: f.top, NoPercentiles: f.noPercentiles, NoRangeMap: f.noRangeMap,
		CoverageWarn: f.coverageWarn, Unit: f.unit, Getenv: e.Getenv,
	}
	switch {
	case f.top < 1:
		return opt, usagef("--top-kernels must be at least 1, got %d", f.top)
	case !(f.coverageWarn >= 0 && f.coverageWarn <= 1): // NaN is neither
		return opt, usagef("--nvtx-coverage-warn-threshold is a share between 0 and 1, got %g", f.coverageWarn)
	case f.out == "" && cmd.Flags().Changed("out"):
		return opt, usagef("--out is empty; name a folder")
	case f.open && f.out == "":
		return opt, usagef("--open shows the page that --out writes: name a folder")
	case f.quiet && f.verbose:
		return opt, usagef("--quiet and --verbose exclude each other")
	case f.format != "" && !slices.Contains(formats, f.format):
		return opt, usagef("--format %s is unknown; it is one of %s", f.format, strings.Join(formats, ", "))
	}
	if f.coverageWarn == 0 {
		opt.CoverageWarn = -1
	}
	if opt.Evidence, err = f.evidenceFiles(); err != nil {
		return opt, err
	}
	if opt.Phases, err = readMap(f.phaseMap, "phase map", analyze.ParsePhaseMap); err != nil {
		return opt, err
	}
	if opt.Kernels, err = readMap(f.kernelMap, "kernel map", analyze.ParseKernelMap); err != nil {
		return opt, err
	}
	if opt.Window.NVTX, err = windowRange(f.window); err != nil {
		return opt, err
	}
	if cmd.Flags().Changed("from") {
		opt.Window.From = &f.from
	}
	if cmd.Flags().Changed("to") {
		opt.Window.To = &f.to
	}
	opt.Window.Steady = f.steady
	return opt, f.memory.apply(&opt, 1)
}

func (f *reportFlags) run(cmd *cobra.Command, e *env, args []string) error {
	opt, err := f.options(cmd, e)
	if err != nil {
		return err
	}
	if f.printSchema && len(args) == 0 {
		return usagef("--print-schema is about a trace: name one")
	}
	if f.printSchema {
		return analyze.PrintSchema(cmd.Context(), e.Out, args[0], opt)
	}
	if f.out != "" {
		if err := checkOut(f.out); err != nil {
			return err
		}
	}
	bar := newProgress(e, f.quiet, f.verbose)
	opt.Progress = bar.update
	trace := "" // evidence alone
	if len(args) > 0 {
		trace = args[0]
	}
	res, err := analyze.Run(cmd.Context(), trace, opt)
	bar.stop()
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := writeFolder(cmd.Context(), f.out, folder(res)); err != nil {
			return err
		}
		if f.open {
			e.openPage(f.out, "report.html")
		}
	}
	if f.quiet && f.format == "" {
		return nil
	}
	return f.print(e, res)
}

// print writes the chosen format to standard output.
func (f *reportFlags) print(e *env, res *analyze.Result) error {
	switch f.format {
	case "json":
		return writeJSON(e.Out, res.Report)
	case "md":
		return writeComment(e.Out, res.Report)
	case "summary":
		return writeSummary(e.Out, res.Report)
	}
	return e.writeTerminal(res, f.out)
}
