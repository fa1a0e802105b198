package ci

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	diffrender "github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/diff/policy"
)

func newPolicy(e *cmdenv.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check, test, show, explain and propose policy files: what diff and gate judge",
		Long: `A policy file holds rules on changes, budgets that need no baseline, waivers that end on a given day,
and the verdicts for results that are inconclusive, not comparable or missing. It is YAML or JSON, and
values have units.

  version: 1
  preset: llm-serving        # or ` + strings.Join(policy.PresetNames()[1:], ", ") + `: explain policy show PRESET prints it
  unit: auto                 # or nvtx:REGEX, kernel:REGEX, graph, none; also phase and batch
  stats: {alpha: 0.05, fdr: 0.05, min_captures: 1, on_inconclusive: inconclusive,
          on_not_comparable: inconclusive, on_missing: inconclusive, on_missing_baseline: warn}
                             # also floor: 3%, the noise between two captures of one commit,
                             # which explain policy init writes, and max_overhead: 20%, what
                             # profiling may cost: see explain capture --overhead
  ignore: {kernels: ["*memset*"], min_share: 0.5%}
  environment: {hard: [driver], soft: [trace_set], residue: [os]}
  rules:                     # after the preset's; of several for a number the last one judges
    - {id: step, metric: unit.time.p50, warn: {rel: 3%}, fail: {rel: 5%, abs: 200us}}
    - {id: token, metric: unit.time_per_output_token, regress: {rel: 5%},
       when: {gpu: "*H100*"}, optional: true}
    - {id: attn, metric: kernel.time_per_unit, match: {regex: '(?i)^(flash|fmha)'},
       regress: {rel: 5%, abs: 20us}}
    - {id: calls, metric: "api.*_per_unit", level: warn, regress: {rel: 10%}}
  budgets:
    - {id: idle, metric: gpu.idle_ratio, max: 15%, level: error}
  waivers:
    - {rule: attn, match: {regex: fmha_v2}, ceiling: 12%, expires: 2026-12-31,
       issue: "#412", reason: "fp8 rollout"}

"extends: FILE" extends a policy file instead of a preset. A change breaks a rule if it is real and
exceeds both the relative and the absolute part of the rule. Level error fails, warn warns, off does
not judge. In a glob only * and ? are special; expressions are RE2. Both match the name that tables
show, or the full one. Until its last day, a waiver accepts failures up to its ceiling; then the rule
fails again. A waiver that is not needed warns. "explain doc schema policy" prints the JSON Schema.`,
		Example: `  explain policy check policy.yml
  explain policy test policy.yml --on report/report.json
  explain policy explain unit.time.p50 --policy policy.yml
  explain policy show strict
  explain policy init a1.sqlite a2.sqlite a3.sqlite > policy.yml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return usage.Errorf("policy has no command %q; did you mean %q?", args[0], near[0])
			}
			return usage.Errorf("policy has no command %q; there are check, explain, init, show, test", args[0])
		},
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(newPolicyCheck(e), newPolicyExplain(e), newCalibration(e, "init"), newPolicyShow(e), newPolicyTest(e))
	return cmd
}

func newPolicyCheck(e *cmdenv.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "check FILE",
		Short:   "Say whether a policy file is valid, and what it holds in one line",
		Example: "  explain policy check .github/explain.yml",
		Args:    cmdenv.Args(1, 1, "name one policy file: explain policy check FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := rulesfile.Policy(args[0])
			if err != nil {
				return err
			}
			day, err := e.Today()
			if err != nil {
				return err
			}
			var out cmdenv.Lines
			out.Add("%s: valid; %s", args[0], p.Summary())
			for _, s := range p.Shadowed() {
				out.Add("note: rule %s judges nothing: %s comes later and selects all that it does; put the more general rule first", s[0], s[1])
			}
			for _, wv := range p.Waivers {
				if day.After(wv.Expires) {
					out.Add("note: the waiver of rule %s expired on %s", strings.Join(wv.Rules, ", "),
						wv.Expires.Format(time.DateOnly))
				}
			}
			return out.To(e.Out)
		},
	}
}

func newPolicyShow(e *cmdenv.Env) *cobra.Command {
	return cmdenv.Printer(e, "preset", policy.PresetNames(), policy.PresetText, &cobra.Command{
		Use:     "show PRESET",
		Short:   "Print a preset as a policy file",
		Long:    "show prints a preset as a policy file: " + strings.Join(policy.PresetNames(), ", ") + ".",
		Example: "  explain policy show llm-serving > policy.yml",
	})
}

func newPolicyExplain(e *cmdenv.Env) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "explain METRIC|KERNEL|RULE",
		Short: "Say which rule judges a metric or a kernel, or what a rule judges, and how",
		Example: `  explain policy explain unit.time.p50
  explain policy explain step
  explain policy explain 'gpu.idle_ratio{device=0}' --policy policy.yml
  explain policy explain flash_fwd_kernel --policy policy.yml`,
		Args: cmdenv.Args(1, 1, "name one metric, kernel or rule: explain policy explain unit.time.p50"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			p, err := rulesfile.Policy(path)
			if p == nil || err != nil {
				p = policy.Default()
			}
			return slices.Concat(p.RuleIDs(), cmdenv.MetricIDs()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := rulesfile.Policy(path)
			if err != nil {
				return err
			}
			from := path
			if p == nil {
				p, from = policy.Default(), "the default rules"
			}
			if slices.Contains(p.RuleIDs(), args[0]) {
				return explainRule(e.Out, p, args[0], from)
			}
			metric, list, ignored, err := p.Explain(args[0], analyze.Metrics())
			if err != nil {
				return usage.Error{Err: err}
			}
			return explainRules(e.Out, p, from, metric, list, ignored)
		},
	}
	cmd.Flags().StringVar(&path, "policy", "", "the policy `FILE` to ask, instead of the default rules")
	_ = cmd.MarkFlagFilename("policy", "yml", "yaml", "json")
	return cmd
}

// explainRule prints what the rules with an id judge, and their thresholds.
func explainRule(w io.Writer, p *policy.Policy, id, from string) error {
	var out cmdenv.Lines
	out.Add("rule %s, of %s", id, from)
	list := p.ExplainRule(id)
	for i := range list {
		x, more := &list[i], ""
		if x.Preset && x.By != "" {
			more = " of the preset"
		}
		if x.By != "" {
			more = "not" + more + ", since rule " + x.By + " comes later and selects it too: "
		}
		out.Add("  %s%s %s", more, x.Rule.Selects(), x.Rule.Does())
	}
	addFloor(&out, p, list)
	for _, wv := range p.Waivers {
		if slices.Contains(wv.Rules, id) {
			out.Add("  %s", wv.String())
		}
	}
	return out.To(w)
}

// addFloor says what a change has to exceed besides its rule, if one of the rules judges the change of a duration.
func addFloor(out *cmdenv.Lines, p *policy.Policy, list []policy.Explanation) {
	for _, r := range list {
		facts, err := policy.Facts(r.Rule.Metric, analyze.Metrics())
		if err == nil && facts.Unit == report.Nanoseconds && r.By == "" && r.Rule.Level != comparison.LevelOff && !r.Rule.Budgeted() {
			out.Add("  and beyond the %s", p.FloorText())
			return
		}
	}
}

// explainRules prints the rules that select a number, starting with the one that judges it.
func explainRules(w io.Writer, p *policy.Policy, from, metric string, list []policy.Explanation, ignored bool) error {
	var out cmdenv.Lines
	out.Add("%s, by %s", metric, from)
	switch {
	case ignored:
		out.Add("  not judged: ignore.kernels of the policy has it")
		return out.To(w)
	case len(list) == 0:
		out.Add("  judged by no rule")
	}
	lists.Sort(list, func(a, b policy.Explanation) int { return min(len(a.By), 1) - min(len(b.By), 1) })
	for _, r := range list {
		verb, of, later := "judged by", "", ""
		if r.By != "" {
			verb, later = "not by", "; rule "+r.By+" comes later and selects it too"
		}
		if r.Preset {
			of = " of the preset"
		}
		out.Add("  %s rule %s%s: %s %s%s", verb, r.Rule.Name(), of, r.Rule.Selects(), r.Rule.Does(), later)
		for _, wv := range r.Waivers {
			out.Add("    %s", wv.String())
		}
	}
	addFloor(&out, p, list)
	return out.To(w)
}

func newPolicyTest(e *cmdenv.Env) *cobra.Command {
	var f cmdenv.AnalysisFlags
	var on []string
	cmd := &cobra.Command{
		Use:   "test POLICY --on FILES",
		Short: "Say what each rule of a policy selects in a capture, and whether it can be judged",
		Long: `test tries a policy on one capture, or several of one commit, and lists for each rule the numbers
that it would judge, with their values. A number that several rules select is listed with the last
one, which judges it.

Exit codes: 0 each rule can be judged, 2 wrong usage or policy file, 3 input that cannot be analysed,
4 a rule selects nothing, or cannot be judged.`,
		Example: `  explain policy test policy.yml --on report/report.json
  explain policy test policy.yml --on 'captures/*.sqlite'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args)+len(on) < 2 || len(args) == 0 {
				return usage.Errorf("name a policy and a capture: explain policy test POLICY --on FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := rulesfile.Policy(args[0])
			if err != nil {
				return err
			}
			inputs, err := input.Captures("--on", append(on, args[1:]...))
			if err != nil {
				return err
			}
			opt := diff.Options{Version: e.Version, Policy: f.Follow(p)}
			if opt.Today, err = e.Today(); err != nil {
				return err
			}
			reports, err := f.Reports(cmd.Context(), e, inputs)
			if err != nil {
				return err
			}
			c, err := diff.Compare(reports, reports, opt) // gives the rows and names of an ordinary comparison
			if err != nil {
				return err
			}
			tested, all := testedRules(opt.Policy, c)
			if err := tested.To(e.Out); err != nil || all {
				return err
			}
			return cmdenv.Exit(cmdenv.Inconclusive)
		},
	}
	cmd.Flags().StringArrayVar(&on, "on", nil,
		"test it on these `FILES`: traces, reports or folders (repeatable, commas, globs)")
	f.Register(cmd)
	return cmd
}

// testedRules lists what each rule selects in a comparison of a side with itself; all reports whether every rule that
// is not optional can be judged.
func testedRules(p *policy.Policy, c *comparison.Comparison) (out *cmdenv.Lines, all bool) {
	out, all = &cmdenv.Lines{}, true
	for _, r := range p.Rules {
		out.Add("rule %s: %s %s", r.Name(), r.Selects(), r.Does())
		if r.Level == comparison.LevelOff {
			continue
		}
		found := 0
		for _, g := range c.Gates {
			if g.Rule == r.Name() && g.Threshold == r.Threshold() && g.Level == r.Level {
				found++
				if g.Checked() || g.Head != nil && g.Code == comparison.SameCapture {
					said := gateValue(&g)
					if v := g.CountsAs; r.Budgeted() && (v == comparison.Fail || v == comparison.Warn) {
						said += ": would " + string(v) + " (" + r.Threshold() + ")"
					}
					out.Add("  %-60s %s", gateName(c, &g), said)
				} else {
					all = false
					out.Add("  cannot be judged: %s", g.Reason)
				}
			}
		}
		switch {
		case found > 0:
		case r.Optional:
			out.Add("  selects nothing here, which the rule allows (optional)")
		default:
			out.Add("  judges nothing: later rules judge all that it selects, or ignore.kernels has it")
		}
	}
	return out, all
}

// gateName returns the name of the number that a gate judges; kernels have their name in the tables.
func gateName(c *comparison.Comparison, g *comparison.Gate) string {
	kernel, ok := g.Labels["kernel"]
	if !ok {
		return report.MetricKey(g.Metric, g.Labels)
	}
	for _, k := range c.Kernels {
		if k.HeadName != nil && *k.HeadName == kernel && k.HeadShort != nil {
			return "kernel " + *k.HeadShort
		}
	}
	return "kernel " + kernel
}

// gateValue returns the measured value of a gate in the metric's unit.
func gateValue(g *comparison.Gate) string {
	if g.Head == nil {
		return g.Reason
	}
	facts, _ := policy.Facts(g.Metric, analyze.Metrics()) // none: the gate says so
	return unit.Format(*g.Head, cmp.Or(facts.Unit, report.Count))
}

// newCalibration returns explain policy init, or the hidden explain calibrate behind it: both measure the noise between
// captures of one commit, and print a policy, text, or the noise block that --noise of diff and gate reads.
func newCalibration(e *cmdenv.Env, name string) *cobra.Command {
	f := calibrateFlags{format: "policy", preset: policy.PresetNames()[0]}
	path, noise := "policy init", "noise"
	if name == "calibrate" {
		f.format, path, noise = "text", name, "out"
	}
	cmd := &cobra.Command{
		Use:    name + " CAPTURE CAPTURE…",
		Hidden: name == "calibrate",
		Short:  "Measure how much captures of one commit differ, and propose a policy beyond that noise",
		Long: path + ` takes several captures of the same commit on the same machine, at least 2, preferably 5, and
measures how much each metric differs between them. It prints a policy file with thresholds above that
noise, and the measured figures as comments.

--format text says for each metric how small a change one, two and three captures a side can find, and
compares each capture with all others, as diff would: any alarm there is false. diff and gate read the
file that --` + noise + ` writes.

Exit codes: 0 done, 2 wrong usage, 3 input that cannot be analysed, 4 captures that are not
comparable.`,
		Example: "  explain " + path + " a1.sqlite a2.sqlite a3.sqlite a4.sqlite a5.sqlite > policy.yml\n" +
			"  explain " + path + " a1.sqlite a2.sqlite a3.sqlite --format text --" + noise + " noise.json\n" +
			"  explain diff base.sqlite head.sqlite --noise noise.json",
		Args: cmdenv.Args(2, cmdenv.Any,
			"name at least 2 captures of one commit, better 5: explain "+path+" A1 A2 A3…"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	fl := cmd.Flags()
	cmdenv.Choice(cmd, &f.preset, "preset", "start the policy from this `PRESET`", policy.PresetNames())
	fl.StringVarP(&f.out, noise, map[string]string{"out": "o"}[noise], "", "write the noise block into this `FILE`")
	cmdenv.Choice(cmd, &f.format, "format", "print this `FORMAT` to standard output", []string{"policy", "text", "json"})
	cmdenv.Force(fl, &f.force)
	f.analysis.Register(cmd)
	_ = cmd.MarkFlagFilename(noise, "json")
	return cmd
}

// calibrateFlags are the flags of explain policy init.
type calibrateFlags struct {
	analysis            cmdenv.AnalysisFlags
	preset, format, out string
	force               bool
}

func (f *calibrateFlags) run(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	over := atomicfile.Over{Begins: `{"schema":"explain.noise/`, Force: f.force}
	if err := atomicfile.Check(f.out, over); err != nil {
		return err
	}
	inputs, err := input.Captures("CAPTURE", args)
	if err != nil {
		return err
	}
	reports, err := f.analysis.Reports(cmd.Context(), e, inputs)
	if err != nil {
		return err
	}
	c, err := diff.Calibrate(input.Named(inputs, reports))
	if differ, ok := errors.AsType[*diff.NotComparable](err); ok {
		fmt.Fprintf(e.Err, "explain: %s\n", render.Visible(differ.Error()))
		return cmdenv.Exit(cmdenv.Inconclusive)
	}
	if err != nil {
		return err
	}
	if f.out != "" {
		err := atomicfile.File(f.out, over, func(w io.Writer) error { return diff.WriteCalibration(w, c) })
		if err != nil {
			return err
		}
	}
	switch {
	case f.format == "json":
		return diff.WriteCalibration(e.Out, c)
	case f.format == "policy":
		text, err := diff.ProposePolicy(&c.Noise, f.preset, analyze.Metrics())
		if err != nil {
			return err
		}
		_, err = io.WriteString(e.Out, text)
		return err
	case f.analysis.Quiet && !cmd.Flags().Changed("format"):
		return nil
	}
	return render.Terminal(e.Out, diffrender.CalibrationPage(c, f.out), e.Terminal())
}
