package ci

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
)

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
	for i := range p.Rules {
		r := &p.Rules[i]
		out.Add("rule %s: %s %s", r.Name(), r.Selects(), r.Does())
		if r.Level == comparison.LevelOff {
			continue
		}
		found := 0
		for k := range c.Gates {
			if g := &c.Gates[k]; g.Rule == r.Name() && g.Threshold == r.Threshold() && g.Level == r.Level {
				found++
				if g.Checked() || g.Head != nil && g.Code == comparison.SameCapture {
					said := gateValue(g)
					if v := g.CountsAs; r.Budgeted() && (v == comparison.Fail || v == comparison.Warn) {
						said += ": would " + string(v) + " (" + r.Threshold() + ")"
					}
					out.Add("  %-60s %s", gateName(c, g), said)
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
	switch {
	case len(g.Labels) == 0:
		return g.Metric
	case !ok:
		return g.Metric + "{" + g.Labels.String() + "}"
	}
	for i := range c.Kernels {
		if k := &c.Kernels[i]; k.HeadName != nil && *k.HeadName == kernel && k.HeadShort != nil {
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
	facts, _ := policy.Facts(g.Metric, rulesfile.MetricFacts()) // none: the gate says so
	return unit.Format(*g.Head, cmp.Or(facts.Unit, report.Count))
}
