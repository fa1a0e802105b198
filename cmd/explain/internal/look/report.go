package look

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/fetch"
	"github.com/nsys-llm/explain/cmd/explain/internal/help"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/mergecmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/comparison"
)

func newReport(e *cmdenv.Env) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:        "report TRACE…",
		SuggestFor: []string{"summary", "analyze", "analyse", "profile", "ranks", "kernels"},
		Short:      "Analyse a capture, or those of a run (the default command)",
		Long: `report analyses a capture. Several captures, a glob or a folder are the ranks of one run and make one
report, which says who waits for whom ("explain doc ranks"). To compare two captures, use "explain
diff". Without --out it prints a summary; with --out it also writes a folder:

  report.html             the full report for a browser, in one file
  report.md               the same as text, warnings and findings first
  report.json             the same as data, see "explain doc schema report"
  tables/*.csv            every row of every table; see --all-rows for tables with a row per event
  summary.json            profilemate's summary
  kernels.md, operators.md, stakeholder_summary.md   as llm-perf-opt writes them

Evidence beside a capture goes into the same report: Nsight Compute CSV exports, server logs,
Prometheus metrics, files of other profilers ("explain doc evidence"). Each can also be analysed
alone: leave TRACE out, or name such a file. An existing report.json, comparison.json or the folder of
one is shown again. In the folder of a capture without a report, the trace is analysed with the
evidence beside it.

--format md prints a version of report.md that fits into a comment on a pull request. The folder
appears whole or not at all.`,
		Example: `  explain report trace.sqlite --out report/
  explain report trace.nsys-rep --phase-map phases.json --out report/
  explain report trace.sqlite --from 2s --to 5s --format json
  explain report trace.sqlite --window 'nvtx:^decode' --format md
  explain report trace.sqlite --ncu 'ncu/*.csv' --server-log server.log --out report/
  explain report --server-log server.log --out report/
  explain report ranks/*.sqlite --out report/    one report of a run of many ranks`,
		Args: f.someTrace,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	f.register(cmd)
	return cmd
}

// reportFlags are the flags of explain report and of the bare explain.
type reportFlags struct {
	cmdenv.AnalysisFlags
	out         string
	opt         analyze.Options // those that flags set as they are
	printSchema bool
	open        bool
	ncu         []string
	serverLogs  []string
	prometheus  []string
	evidence    []string
	format      string
	perfetto    string
	ncuTargets  string
	force       bool
	rank        string
	roles       []string
}

func (f *reportFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "out", "o", "", "write the report into this `DIR`")
	cmdenv.FormatFlag(cmd, &f.format, output.Formats)
	f.RegisterFor(cmd, "")
	fl.StringSliceVar(&f.ncu, "ncu", nil,
		"add Nsight Compute CSV exports, raw or details pages: `FILES`, globs, or a folder")
	fl.StringSliceVar(&f.serverLogs, "server-log", nil, "add this log `FILE` of a vLLM, SGLang, TensorRT-LLM, LMDeploy or TGI server")
	fl.StringSliceVar(&f.prometheus, "prometheus", nil,
		"add this `FILE`, a dump of the server's /metrics; two are compared, later minus earlier")
	fl.StringSliceVar(&f.evidence, "evidence", nil,
		"add evidence of any kind, recognised by content, from this `DIR` or file")
	fl.IntVar(&f.opt.Top, "top", 30, "rows of ranked tables, `N` at most")
	fl.BoolVar(&f.opt.AllRows, "all-rows", false, "write every row of the tables with a row per event (default the 10,000 longest)")
	fl.BoolVar(&f.opt.NoPercentiles, "no-kernel-percentiles", false, "leave out percentiles of kernel durations")
	fl.BoolVar(&f.opt.NoRangeMap, "no-nvtx-kernel-map", false, "do not attribute kernels to NVTX ranges")
	fl.Float64Var(&f.opt.CoverageWarn, "nvtx-coverage-warn-threshold", 0.7,
		"warn when less than this `SHARE` of kernel time lies in NVTX ranges (0..1)")
	fl.Float64Var(&f.opt.GPUPrice, "gpu-price", 0,
		"show the cost of a million generated tokens if a GPU costs this `PRICE` an hour, in any currency")
	fl.BoolVar(&f.printSchema, "print-schema", false, "print the tables of the capture and stop")
	fl.StringVar(&f.perfetto, "perfetto", "", "write the median and the slowest unit of work, and nothing else, into this `FILE` for ui.perfetto.dev")
	fl.StringVar(&f.ncuTargets, "ncu-targets", "",
		"write the kernels worth measuring with Nsight Compute, 10 or --top, into this YAML `FILE`, and print the ncu command")
	cmdenv.Force(fl, &f.force)
	mergecmd.RegisterRanks(fl, &f.rank, &f.roles)
	fl.BoolVar(&f.open, "open", false, "show report.html in the browser, once it is written")
	_ = cmd.MarkFlagDirname("out")
	help.Renamed(cmd, map[string]string{
		"phases-json": "phase-map", "top-kernels": "top", "kernel-limit": "top"}) // nsys-llm-explainer's, and older ones
}

func (f *reportFlags) options(cmd *cobra.Command, e *cmdenv.Env) (analyze.Options, error) {
	opt, err := f.AnalysisFlags.Options(e, 1)
	if err != nil {
		return opt, err
	}
	opt.Top, opt.NoPercentiles, opt.NoRangeMap = f.opt.Top, f.opt.NoPercentiles, f.opt.NoRangeMap
	opt.CoverageWarn, opt.AllRows, opt.GPUPrice = f.opt.CoverageWarn, f.opt.AllRows, f.opt.GPUPrice
	switch {
	case f.opt.Top < 1:
		return opt, usage.Errorf("--top must be at least 1, got %d", f.opt.Top)
	case !(f.opt.CoverageWarn >= 0 && f.opt.CoverageWarn <= 1): // NaN fails both
		return opt, usage.Errorf("--nvtx-coverage-warn-threshold is a share between 0 and 1, got %g", f.opt.CoverageWarn)
	case cmd.Flags().Changed("gpu-price") && !(f.opt.GPUPrice > 0 && f.opt.GPUPrice < 1e6):
		return opt, usage.Errorf("--gpu-price is the price of a GPU for an hour, above 0 and below a million, got %g", f.opt.GPUPrice)
	case f.open && f.out == "":
		return opt, usage.Errorf("--open shows the page that --out writes: name a folder")
	case f.format == "summary": // its older name
		f.format = "profilemate"
	case f.format != "" && !slices.Contains(output.Formats, f.format):
		return opt, usage.Errorf("--format %s is unknown; it is one of %s", f.format, strings.Join(output.Formats, ", "))
	}
	if f.opt.CoverageWarn == 0 {
		opt.CoverageWarn = -1
	}
	opt.Evidence, err = f.evidenceFiles()
	return opt, err
}

func (f *reportFlags) run(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	opt, err := f.options(cmd, e)
	if err != nil {
		return err
	}
	switch captures, err := runOf(args); {
	case err != nil:
		return err
	case captures != nil:
		return f.runReport(cmd, e, captures)
	case f.rank != "" || len(f.roles) > 0:
		return usage.Errorf("--rank and --role are about the captures of a run: name several, a glob, or their folder")
	}
	remove, err := input.Spool(cmd.Context(), e.In, args)
	defer remove()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if shown, err := f.showAgain(cmd, e, args[0]); shown {
			return err
		}
		var beside []analyze.Evidence
		args[0], beside = output.TraceIn(args[0])
		opt.Evidence = append(opt.Evidence, beside...)
	}
	if f.printSchema && len(args) == 0 {
		return usage.Errorf("--print-schema is about a trace: name one")
	}
	if f.printSchema {
		return analyze.PrintSchema(cmd.Context(), e.Out, args[0], opt)
	}
	if err := checkOuts(f.out, f.perfetto, f.ncuTargets, f.force); err != nil {
		return err
	}
	bar := progress.New(e.Err, f.Quiet, f.Verbose)
	opt.Progress = bar.Update
	trace := lists.Nth(args, 0, "") // empty: evidence only
	opt.Overhead = cmdenv.OverheadBeside(trace)
	cmdenv.HoldMemory(trace)
	res, err := analyze.Run(cmd.Context(), trace, opt)
	cmdenv.Analysed()
	bar.Stop()
	if err != nil {
		return input.AsTyped(err, trace)
	}
	if f.out != "" {
		if err := output.WriteOver(cmd.Context(), f.out, output.Report(res), f.force); err != nil {
			return err
		}
		if f.open {
			e.OpenPage(f.out, "report.html")
		}
	}
	if f.perfetto != "" {
		if err := writeStep(f.perfetto, f.force, res.Report); err != nil {
			return err
		}
	}
	if !f.Quiet || f.format != "" {
		if err := output.Print(e.Out, res, f.format, f.out, e.Terminal()); err != nil {
			return err
		}
	}
	return f.targets(cmd, e, res.Report)
}

// targets writes the file of --ncu-targets: the kernels with the most time as YAML in the form of llm-perf-opt's
// extract-top-kernels. It prints the ncu command that measures them only if standard output is text. The command leaves
// out collectives: ncu runs each kernel several times, and a collective that one rank repeats alone waits for the
// others for ever.
func (f *reportFlags) targets(cmd *cobra.Command, e *cmdenv.Env, r *report.Report) error {
	if f.ncuTargets == "" {
		return nil
	}
	list, n := capture.Targets(r), 10
	if len(list) == 0 {
		return fmt.Errorf("the capture holds no kernels: there is nothing to measure (capture with --trace=cuda, and CUDA graphs by node)")
	}
	if cmd.Flags().Changed("top") {
		n = f.opt.Top
	}
	list = list[:min(n, len(list))]
	err := atomicfile.File(f.ncuTargets, overTargets(f.force), func(to io.Writer) error {
		_, err := io.WriteString(to, capture.TargetsYAML(list))
		return err
	})
	text := !f.Quiet && (f.format == "" || f.format == "text")
	if line := capture.NCUCommand(list); err == nil && line != "" && text {
		_, err = fmt.Fprintln(e.Out, "\nMeasure these kernels with:\n"+line)
	}
	return err
}

// checkOuts returns an error, before any work, if an output file or folder cannot be written. Empty paths are fine.
func checkOuts(out, perfetto, targets string, force bool) error {
	return cmp.Or(output.Check(out), atomicfile.Check(perfetto, overStep(force)),
		atomicfile.Check(targets, overTargets(force)))
}

func overTargets(force bool) atomicfile.Over {
	return atomicfile.Over{Begins: "# Kernels with most time, as explain report --ncu-targets found them", Force: force}
}

// runOf returns the captures of one run if the arguments name several: as files, a glob, or a folder. It is nil if they
// name one capture.
func runOf(args []string) ([]string, error) {
	switch {
	case len(args) != 1:
	case fetch.Remote(args[0]):
		return nil, input.Local(args[0])
	case input.Exists(args[0]):
		return input.RunIn(args[0]), nil
	case !strings.ContainsAny(args[0], "*?["):
		return nil, nil
	}
	list, err := input.Expand("report", args)
	if err != nil || len(list) < 2 {
		return nil, err
	}
	return list, nil
}

// ofOneCapture lists the flags that apply to a single capture only.
var ofOneCapture = []string{"ncu", "server-log", "prometheus", "evidence", "perfetto", "ncu-targets", "print-schema", "all-rows", "gpu-price",
	"no-nvtx-kernel-map", "no-kernel-percentiles", "nvtx-coverage-warn-threshold"}

func (f *reportFlags) runReport(cmd *cobra.Command, e *cmdenv.Env, captures []string) error {
	if flag := cmdenv.Given(cmd, ofOneCapture); flag != "" {
		return usage.Errorf("--%s is about one capture, and %d are named", flag, len(captures))
	}
	run := mergecmd.Run{Analysis: f.AnalysisFlags, Out: f.out, Format: f.format, Rank: f.rank, Roles: f.roles, Top: f.opt.Top, Force: f.force, Apart: true}
	if err := run.Report(cmd, e, captures); err != nil {
		return err
	}
	if f.open {
		e.OpenPage(f.out, "report.html")
	}
	return nil
}

func (f *reportFlags) someTrace(_ *cobra.Command, args []string) error {
	if len(args) == 0 && !f.hasEvidence() {
		return usage.Errorf("name a trace: explain report TRACE; or evidence: --ncu, --server-log, --prometheus, --evidence")
	}
	return nil
}

func (f *reportFlags) hasEvidence() bool {
	return len(f.ncu)+len(f.serverLogs)+len(f.prometheus)+len(f.evidence) > 0
}

// evidenceFiles returns the evidence files that the flags name, and expands globs that the shell left.
func (f *reportFlags) evidenceFiles() ([]analyze.Evidence, error) {
	var list []analyze.Evidence
	for _, flag := range []struct {
		name, kind string
		paths      []string
	}{
		{"ncu", analyze.EvidenceNCU, f.ncu},
		{"server-log", analyze.EvidenceServerLog, f.serverLogs},
		{"prometheus", analyze.EvidencePrometheus, f.prometheus},
		{"evidence", "", f.evidence},
	} {
		for _, p := range flag.paths {
			paths, err := input.Expand("--"+flag.name, []string{p})
			if err != nil {
				return nil, usage.Error{Err: err}
			}
			pattern := ""
			if !input.Exists(p) && strings.ContainsAny(p, "*?[") {
				pattern = p
			}
			for _, path := range paths {
				list = append(list, analyze.Evidence{Path: path, Kind: flag.kind, Pattern: pattern})
			}
		}
	}
	return list, nil
}

// showAgain prints an existing report.json or comparison.json, or the one in a folder, without analysing again. If the
// folder also holds the trace, flags that need an analysis make it return false.
func (f *reportFlags) showAgain(cmd *cobra.Command, e *cmdenv.Env, path string) (shown bool, err error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		for _, name := range []string{"report.json", "comparison.json"} {
			if file = filepath.Join(path, name); input.Exists(file) {
				break
			}
		}
		if input.Exists(filepath.Join(path, input.CapturedTrace)) && cmdenv.Given(cmd, ofAnAnalysis) != "" {
			return false, nil
		}
	}
	schema, content := input.Schema(file)
	comparing := strings.HasPrefix(schema, "explain.comparison/")
	if !comparing && !strings.HasPrefix(schema, "explain.report/") {
		return false, nil
	}
	if flag := cmdenv.Given(cmd, ofAnAnalysis); flag != "" {
		return true, usage.Errorf("--%s is about an analysis, and %s is the result of one: name the trace", flag, file)
	}
	if flag := cmdenv.Given(cmd, []string{"perfetto", "ncu-targets"}); comparing && flag != "" {
		return true, usage.Errorf("--%s is about a trace or a report.json, and %s is a comparison", flag, file)
	}
	quiet := f.Quiet && f.format == ""
	if comparing {
		c, err := comparison.Read(bytes.NewReader(content))
		if err != nil {
			return true, fmt.Errorf("%s: %w", file, err)
		}
		switch {
		case f.format == "profilemate":
			err = usage.Errorf("--format profilemate prints a report, not a comparison")
		case !quiet:
			err = output.PrintComparison(e.Out, c, f.format, e.Terminal())
		}
		return true, err
	}
	r, err := report.Read(bytes.NewReader(content))
	if err != nil {
		return true, fmt.Errorf("%s: %w", file, err)
	}
	if f.perfetto != "" {
		if err := writeStep(f.perfetto, f.force, r); err != nil {
			return true, err
		}
	}
	switch {
	case quiet:
	case f.format == "html":
		err = output.HTML(e.Out, r, output.StepBeside(file))
	default:
		err = output.Print(e.Out, &analyze.Result{Report: r}, f.format, f.out, e.Terminal())
	}
	if err != nil {
		return true, err
	}
	return true, f.targets(cmd, e, r)
}

// ofAnAnalysis lists the flags that only an analysis can serve.
var ofAnAnalysis = []string{"unit", "window", "from", "to", "steady", "phase-map", "kernel-map", "ncu",
	"server-log", "prometheus", "evidence", "gpu-price", "top", "all-rows", "no-kernel-percentiles",
	"no-nvtx-kernel-map", "nvtx-coverage-warn-threshold", "print-schema", "out"}
