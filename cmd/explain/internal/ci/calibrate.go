package ci

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	diffrender "github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/diff/policy"
)

// newCalibration returns explain policy init, or the hidden explain calibrate behind it: both measure the noise between
// captures of one commit, and print a policy, text, or the noise block that --noise of diff and gate reads.
func newCalibration(e *cmdenv.Env, name string) *cobra.Command {
	f := calibrateFlags{format: "policy"}
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
		Args: cmdenv.Args(2, cmdenv.Any, "name at least 2 captures of one commit, better 5: explain "+path+" A1 A2 A3…"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.preset, "preset", policy.PresetNames()[0],
		"start the policy from this `PRESET`: "+strings.Join(policy.PresetNames(), ", "))
	fl.StringVarP(&f.out, noise, map[string]string{"out": "o"}[noise], "", "write the noise block into this `FILE`")
	fl.StringVar(&f.format, "format", f.format,
		"print this `FORMAT` to standard output: "+strings.Join(calibrateFormats, ", "))
	cmdenv.Force(fl, &f.force)
	f.analysis.Register(cmd)
	_ = cmd.MarkFlagFilename(noise, "json")
	cmdenv.Complete(cmd, "format", calibrateFormats)
	return cmd
}

// calibrateFlags are the flags of explain policy init.
type calibrateFlags struct {
	analysis            cmdenv.AnalysisFlags
	preset, format, out string
	force               bool
}

// calibrateFormats are the values of --format, in the order of the help text.
var calibrateFormats = []string{"policy", "text", "json"}

func (f *calibrateFlags) run(cmd *cobra.Command, e *cmdenv.Env, args []string) error {
	if err := cmdenv.Format(f.format, calibrateFormats); err != nil {
		return err
	}
	if _, ok := policy.PresetText(f.preset); !ok {
		return usage.Errorf("--preset %s is unknown; it is one of %s", f.preset, strings.Join(policy.PresetNames(), ", "))
	}
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
		if err := atomicfile.File(f.out, over, func(w io.Writer) error { return diff.WriteCalibration(w, c) }); err != nil {
			return err
		}
	}
	switch {
	case f.format == "json":
		return diff.WriteCalibration(e.Out, c)
	case f.format == "policy":
		text, err := diff.ProposePolicy(&c.Noise, f.preset, rulesfile.MetricFacts())
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
