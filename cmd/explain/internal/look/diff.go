package look

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	diffrender "github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/diff/policy"
)

func newDiff(e *cmdenv.Env) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:        "diff BASE HEAD",
		SuggestFor: []string{"compare", "comparison"},
		Short:      "Say what changed between two captures per unit of work, why, and whether it is real",
		Long: `diff compares two captures, or several a side, per unit of work: the cost of one step, whatever the
length of the recordings.

BASE and HEAD are traces, reports (report.json) or folders that "explain --out" wrote, in any
combination; a quoted glob or a list separated by commas names several captures of a side. Those are
repeats, each of a run of its own. Captures of the ranks of one run are not: make one report of each
run first ("explain report run1.rank*.sqlite --out run1/") and compare those.

A rule names a metric and the change that it tolerates: +3% is relative, +10us absolute; if both are
given, a change must exceed both. If several rules select a number, the last one judges it. Without
--fail-on, these do:

` + rulesfile.Defaults() + `
A duration fails only if the change is larger than the rule, larger than the noise floor ("explain
policy init"; 5 % without calibration) and certain, judging by the units inside the captures (explain
doc statistics). If something cannot be known, the verdict is inconclusive, never a pass. A policy
file (--policy) can set all of this: explain policy --help.

Sides that differ on purpose are compared with --study FIELD, which shows the difference and gives no
verdict. FIELD is gpu (another model or number of GPUs), parallelism (TP1 against TP2, with or without
a server's log), dtype, batch (another size), engine (or its version), work (other kernels), …
("explain doc diff" has them all). Without it, diff refuses such sides and prints the FIELD to name,
except for another engine or version, which it compares and names.

Exit codes: 0 pass or warn, 1 fail, 2 wrong usage, 3 input that cannot be analysed, 4
inconclusive. A study exits with 0, or with 4 if its sides cannot be compared.`,
		Example: `  explain diff base.sqlite head.sqlite
  explain diff base/report.json head/report.json --out comparison/
  explain diff --base a1.json,a2.json,a3.json --head b1.json,b2.json,b3.json --noise noise.json
  explain diff 'base/*.sqlite' 'head/*.sqlite' --steady
  explain diff base.sqlite head.sqlite --fail-on 'unit.time.p50:+3%,+200us'
  explain diff a100.sqlite h100.sqlite --study gpu
  explain base.sqlite --server-log base.log --out base/     diff base/ head/ then names versions
  explain diff old/summary.json new/summary.json --threshold 10`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	f.register(cmd)
	return cmd
}

type diffFlags struct {
	analysis   cmdenv.AnalysisFlags
	rules      rulesfile.Flags
	open       bool
	base, head []string
	opt        diff.Options // those that flags set as they are
	batch      int64
	device     int64
	minShare   string
	threshold  string
	format     string
	out        string
	perfetto   string
	force      bool
}

func (f *diffFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.base, "base", nil,
		"`FILES` of the base: several captures of one commit (repeatable, commas, globs)")
	fl.StringArrayVar(&f.head, "head", nil, "`FILES` of the head")
	fl.StringVarP(&f.out, "out", "o", "",
		"write diff.html, comparison.json, comparison.md, comparison.csv and, but for a study, junit.xml into this `DIR`")
	cmdenv.FormatFlag(cmd, &f.format, output.ComparisonFormats)
	f.rules.Register(cmd)
	fl.StringVar(&f.threshold, "threshold", "",
		"fail as check_regression does, at this `PERCENT`: prefill, decode, graph coverage, top kernel; also on profilemate's summary.json")
	fl.StringVar(&f.opt.Phase, "phase", "",
		"compare units of this `PHASE` (prefill, decode, …; default: the one with most time)")
	fl.Int64Var(&f.batch, "batch", 0, "compare units of this batch size `N`")
	fl.Int64Var(&f.device, "device", 0, "compare units on GPU `N` (default: the one on which they take longest)")
	fl.StringVar(&f.minShare, "min-share", "0.5%", "kernels below this `SHARE` of the unit are not compared one by one")
	fl.IntVar(&f.opt.Top, "top", diff.DefaultTop, "rows of the kernels table, `N` at most")
	fl.StringSliceVar(&f.opt.Study, "study", nil,
		"the sides differ in this `FIELD` on purpose: compare them without a verdict ("+strings.Join(comparison.StudyFields(), ", ")+"; repeatable)")
	fl.StringVar(&f.perfetto, "perfetto", "", "write the median unit of each side, and nothing else, into this `FILE` for ui.perfetto.dev")
	cmdenv.Force(fl, &f.force)
	fl.BoolVar(&f.open, "open", false, "show diff.html in the browser, once it is written")
	f.analysis.Register(cmd)
	_ = cmd.MarkFlagDirname("out")
	cmdenv.Complete(cmd, "study", comparison.StudyFields())
}

func (f *diffFlags) run(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	remove, err := input.Spool(cmd.Context(), e.In, args)
	defer remove()
	if err != nil {
		return err
	}
	base, head, err := f.sides(args)
	if err != nil {
		return err
	}
	opt, err := f.compareOptions(e)
	if err != nil {
		return err
	}
	if f.open && f.out == "" {
		return usage.Errorf("--open shows the page that --out writes: name a folder")
	}
	if err := checkOuts(f.out, f.perfetto, "", f.force); err != nil {
		return err
	}
	c, err := f.compare(cmd.Context(), e, base, head, opt)
	if err != nil {
		return err
	}
	if f.out != "" {
		pages := diffrender.Links{
			Base: output.PageBeside(base[0].Path, f.out), Head: output.PageBeside(head[0].Path, f.out),
		}
		if err := output.WriteOver(cmd.Context(), f.out, output.Comparison(c, pages), f.force); err != nil {
			return err
		}
		if f.open {
			e.OpenPage(f.out, "diff.html")
		}
	}
	// if the reader closes the pipe early, the exit code still is the verdict
	if err := f.print(e, c); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	code := cmdenv.VerdictCode(c.Verdict)
	switch {
	case c.Study != nil && c.Comparable:
		code = cmdenv.OK
	case c.Study != nil:
		code = cmdenv.Inconclusive
	}
	return cmdenv.Exited(code)
}

// sides returns the inputs of both sides, in the order in which they were named.
func (f *diffFlags) sides(args []string) (base, head []input.File, err error) {
	switch {
	case len(f.base) == 0 && len(f.head) == 0 && len(args) == 2:
		f.base, f.head = args[:1], args[1:]
	case len(args) > 0 && (len(f.base) > 0 || len(f.head) > 0):
		return nil, nil, usage.Errorf("name files either as BASE HEAD or with --base and --head, not both")
	case len(f.base) > 0 && len(f.head) == 0, len(f.head) > 0 && len(f.base) == 0:
		return nil, nil, usage.Errorf("--base and --head go together")
	case len(args) > 2:
		return nil, nil, usage.Errorf("two captures are compared, got %d; several a side: --base a,b --head c,d", len(args))
	case len(f.base) == 0:
		return nil, nil, usage.Errorf("name two captures: explain diff BASE HEAD; budgets of one: explain gate --head HEAD")
	}
	baseIs, headIs := "BASE", "HEAD"
	if len(args) == 0 {
		baseIs, headIs = "--base", "--head"
	}
	if base, err = input.FindAll(baseIs, f.base); err != nil {
		return nil, nil, err
	}
	head, err = input.FindAll(headIs, f.head)
	return base, head, err
}

// compareOptions turns flags into the options of a comparison.
func (f *diffFlags) compareOptions(e *cmdenv.Env) (diff.Options, error) {
	opt := f.opt
	opt.Version = e.Version
	var err error
	if opt.Today, err = e.Today(); err != nil {
		return opt, err
	}
	switch {
	case f.format != "" && !slices.Contains(output.ComparisonFormats, f.format):
		return opt, usage.Errorf("--format %s is unknown; it is one of %s", f.format, strings.Join(output.ComparisonFormats, ", "))
	case opt.Top < 1:
		return opt, usage.Errorf("--top must be at least 1, got %d", opt.Top)
	case f.threshold != "" && len(f.rules.FailOn) > 0:
		return opt, usage.Errorf("--threshold and --fail-on exclude each other")
	case len(opt.Study) > 0 && (f.rules.Policy != "" || f.threshold != "" || len(f.rules.FailOn) > 0 || f.format == "junit"):
		return opt, usage.Errorf("--study has no verdict: it goes without --policy, --threshold, --fail-on and --format junit")
	case f.rules.Policy != "" && (f.threshold != "" || len(f.rules.FailOn) > 0):
		return opt, usage.Errorf("--policy excludes --threshold and --fail-on")
	}
	if f.analysis.Changed("batch") {
		if f.batch < 1 {
			return opt, usage.Errorf("--batch must be at least 1, got %d", f.batch)
		}
		opt.Batch = &f.batch
	}
	if f.analysis.Changed("device") {
		if f.device < 0 {
			return opt, usage.Errorf("--device %d: GPUs are numbered from 0", f.device)
		}
		opt.Device = &f.device
	}
	if f.analysis.Changed("min-share") { // else the policy or the default decides
		if opt.MinShare, err = cmdenv.Share(f.minShare); err != nil {
			return opt, usage.Errorf("--min-share %s: a share such as 0.5%% or 0.005", f.minShare)
		}
	}
	for _, field := range opt.Study {
		if !slices.Contains(comparison.StudyFields(), field) {
			return opt, usage.Errorf("--study %s: a study is of %s", field, strings.Join(comparison.StudyFields(), ", "))
		}
	}
	if opt.Rules, err = f.rules.Parsed(); err != nil {
		return opt, err
	}
	if opt.Policy, err = rulesfile.Policy(f.rules.Policy); err != nil {
		return opt, err
	}
	opt.Policy = f.analysis.Follow(opt.Policy)
	opt.Noise, err = f.rules.NoiseBlock()
	return opt, err
}

func (f *diffFlags) compare(
	ctx context.Context, e *cmdenv.Env, base, head []input.File, opt diff.Options,
) (*comparison.Comparison, error) {
	all := slices.Concat(base, head)
	summaries := lists.Count(all, func(in input.File) bool { return in.Kind == input.Summary })
	percent := 0.0
	if f.threshold != "" {
		v, err := strconv.ParseFloat(strings.TrimSuffix(f.threshold, "%"), 64)
		if err != nil || !(v >= 0 && v <= 1e6) {
			return nil, usage.Errorf("--threshold %s: a number of percent, such as 10", f.threshold)
		}
		percent = v
	}
	switch {
	case summaries == 0:
	case f.threshold == "":
		return nil, usage.Errorf(
			"a summary.json holds totals, which only --threshold compares; compare the traces or the reports instead")
	case summaries < len(all):
		return nil, usage.Errorf("a summary.json is compared to a summary.json: explain TRACE --format profilemate writes one")
	case len(all) > 2:
		return nil, usage.Errorf("--threshold compares one summary.json a side")
	case f.perfetto != "":
		return nil, usage.Errorf("--perfetto writes units of traces or of report.json, and a summary.json has none")
	default:
		return compareSummaries(base[0].Path, head[0].Path, percent, opt)
	}
	if f.threshold == "" && f.perfetto == "" {
		f.analysis.Reads = diff.Reads(opt)
	}
	reports, err := f.analysis.Reports(ctx, e, all)
	if err != nil {
		return nil, err
	}
	reports = input.Named(all, reports)
	if f.threshold != "" {
		opt.Rules = policy.ThresholdRules(percent, reports[:len(base)])
	}
	said, err := f.rules.Past.Apply(ctx, reports[len(base)], "", false, &opt)
	if err != nil {
		return nil, err
	}
	for _, note := range said.Notes {
		if !f.analysis.Quiet {
			fmt.Fprintln(e.Err, render.Visible(note))
		}
	}
	c, err := diff.Compare(reports[:len(base)], reports[len(base):], opt)
	if err == nil && f.perfetto != "" {
		err = writeSteps(f.perfetto, f.force, reports[0], reports[len(base)], c)
	}
	return c, err
}

func compareSummaries(base, head string, percent float64, opt diff.Options) (*comparison.Comparison, error) {
	var sides [2]*diff.Summary
	for i, path := range []string{base, head} {
		b, err := input.ReadText(path)
		if err != nil {
			return nil, err
		}
		if sides[i], err = diff.ReadSummary(filepath.Base(path), bytes.NewReader(b)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return diff.CompareSummaries(sides[0], sides[1], percent, opt)
}

// print writes the chosen format to standard output.
func (f *diffFlags) print(e *cmdenv.Env, c *comparison.Comparison) error {
	if f.format == "" && f.analysis.Quiet {
		return nil
	}
	if f.format == "" || f.format == "text" {
		c = f.withPaths(c)
	}
	if err := output.PrintComparison(e.Out, c, f.format, e.Terminal()); err != nil {
		return err
	}
	if f.out != "" && (f.format == "" || f.format == "text") {
		files := "diff.html, comparison.md, comparison.json, comparison.csv, junit.xml"
		if c.Study != nil {
			files = strings.TrimSuffix(files, ", junit.xml")
		}
		_, err := fmt.Fprintf(e.Out, "\nWrote %s: %s\n", render.Visible(f.out), files)
		return err
	}
	return nil
}

// withPaths is a comparison whose advice names the inputs as the user did, for a command that can be run as it stands.
func (f *diffFlags) withPaths(c *comparison.Comparison) *comparison.Comparison {
	argv := slices.Concat(f.base, f.head)
	if len(f.base) != 1 || len(f.head) != 1 {
		argv = []string{"--base", strings.Join(f.base, ","), "--head", strings.Join(f.head, ",")}
	}
	own := *c
	own.Answer.Notes = lists.Map(c.Answer.Notes, func(note string) string {
		return strings.ReplaceAll(note, " BASE HEAD", " "+capture.Shell(argv))
	})
	return &own
}

// ComparePair compares the captures of a pair, as explain diff does with the same rules.
func ComparePair(ctx context.Context, e *cmdenv.Env, rules rulesfile.Flags, quiet bool, baseDirs, headDirs []string) (
	*comparison.Comparison, error) {
	f := &diffFlags{analysis: cmdenv.AnalysisFlags{Quiet: quiet}, rules: rules, opt: diff.Options{Top: diff.DefaultTop}, base: baseDirs, head: headDirs}
	base, head, err := f.sides(nil)
	if err != nil {
		return nil, err
	}
	opt, err := f.compareOptions(e)
	if err != nil {
		return nil, err
	}
	return f.compare(ctx, e, base, head, opt)
}
