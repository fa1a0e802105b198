package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/diff"
	diffrender "github.com/nsys-llm/explain/diff/diffdoc"
)

func newCalibrate(e *env) *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate CAPTURE CAPTURE…",
		Short: "Measure how much captures of one commit differ, for the noise floors of diff",
		Long: `calibrate takes several captures of the same commit on the same machine, at least 2, preferably 5,
and says for each metric how much it differs between them, which change could be found with one, two
and three captures a side, and what threshold suits it. It also compares each capture to all others,
as diff would: any alarm there is false.

With --out it writes a noise block that "explain diff --noise FILE" reads.

Exit codes: 0 done, 2 wrong usage, 3 input that cannot be analysed, 4 captures that are not
comparable.`,
		Example: `  explain calibrate a1.sqlite a2.sqlite a3.sqlite a4.sqlite a5.sqlite --out noise.json
  explain diff base.sqlite head.sqlite --noise noise.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("name at least 2 captures of one commit, better 5: explain calibrate A1 A2 A3…")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args) },
	}
	f.register(cmd)
	return cmd
}

// calibrateFlags are the flags of explain calibrate.
type calibrateFlags struct {
	analysis    analysisFlags
	format, out string
}

// calibrateFormats of --format, in the order of the help text.
var calibrateFormats = []string{"text", "json"}

func (f *calibrateFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.out, "out", "o", "", "write the noise block into this `FILE`")
	fl.StringVar(&f.format, "format", "",
		"print this `FORMAT` to standard output: "+strings.Join(calibrateFormats, ", ")+" (default text)")
	f.analysis.Register(cmd)
	_ = cmd.MarkFlagFilename("out", "json")
	cmdenv.Complete(cmd, "format", calibrateFormats)
}

func (f *calibrateFlags) run(cmd *cobra.Command, e *env, args []string) error {
	if f.format != "" && !slices.Contains(calibrateFormats, f.format) {
		return usagef("--format %s is unknown; it is one of %s", f.format, strings.Join(calibrateFormats, ", "))
	}
	if info, err := os.Stat(f.out); f.out != "" && err == nil && info.IsDir() {
		return usagef("--out %s is a folder; name a file", f.out)
	}
	c, err := calibrate(cmd, e, &f.analysis, args)
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := atomicfile.File(f.out, func(w io.Writer) error { return diff.WriteCalibration(w, c) }); err != nil {
			return err
		}
	}
	switch {
	case f.format == "json":
		return diff.WriteCalibration(e.Out, c)
	case f.analysis.Quiet && f.format == "":
		return nil
	}
	return diffrender.WriteCalibrationText(e.Out, c, f.out, e.Terminal())
}

// calibrate measures the noise of captures. Those that are not comparable are said to be on standard error.
func calibrate(cmd *cobra.Command, e *env, f *analysisFlags, args []string) (*diff.Calibration, error) {
	var inputs []input.File
	for _, path := range args {
		in, err := input.Find(path)
		if err != nil {
			return nil, err
		}
		if in.Kind == input.Summary {
			return nil, usagef("%s is a summary.json, which holds totals: name traces or reports", path)
		}
		inputs = append(inputs, in)
	}
	reports, err := f.Reports(cmd.Context(), e, inputs)
	if err != nil {
		return nil, err
	}
	c, err := diff.Calibrate(input.Named(inputs, reports))
	var differ *diff.NotComparable
	switch {
	case errors.As(err, &differ):
		if _, err := fmt.Fprintf(e.Err, "explain: %s\n", clean(differ.Error())); err != nil {
			return nil, err
		}
		return nil, exitCode(exitInconclusive)
	case err != nil:
		return nil, err
	}
	return c, nil
}
