package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
	"github.com/nsys-llm/explain/cmd/explain/internal/reports"
)

func newNCUTargets(e *env) *cobra.Command {
	var f targetFlags
	cmd := &cobra.Command{
		Use:   "ncu-targets TRACE",
		Short: "Write which kernels to measure with Nsight Compute, and the command that does it",
		Long: `ncu-targets lists the kernels that take most of a trace's kernel time: as YAML, in the form of
llm-perf-opt's extract-top-kernels (name, regex, description), with the ncu command that measures
them in the comment above. TRACE may also be a report.json.

Kernels of collective communication are in the list and not in the command: ncu runs each kernel
several times, and a collective that runs again on one rank waits for the others forever.

With --out the YAML goes into a file, and the command to standard output, ready to be edited and
run.`,
		Example: `  explain ncu-targets trace.sqlite --top 10
  explain ncu-targets trace.sqlite --top 5 --out kernels.yaml
  explain report trace.sqlite --ncu ncu.csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one trace or report.json: explain ncu-targets TRACE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args[0]) },
	}
	f.register(cmd)
	return cmd
}

// targetFlags are the flags of explain ncu-targets.
type targetFlags struct {
	analysis analysisFlags
	top      int
	out      string
}

func (f *targetFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.IntVar(&f.top, "top", 10, "list the `N` kernels with most time")
	fl.StringVarP(&f.out, "out", "o", "", "write the YAML into this `FILE`")
	f.analysis.Register(cmd)
	_ = cmd.MarkFlagFilename("out", "yaml", "yml")
}

func (f *targetFlags) run(cmd *cobra.Command, e *env, path string) error {
	if f.top < 1 {
		return usagef("--top must be at least 1, got %d", f.top)
	}
	in, err := input.Find(path)
	if err != nil {
		return err
	}
	if in.Kind == input.Summary {
		return usagef("%s is a summary.json, which holds shortened names: name a trace or a report", path)
	}
	opt, err := f.analysis.Options(e, 1)
	if err != nil {
		return err
	}
	if err := f.analysis.Fits([]input.File{in}); err != nil {
		return err
	}
	opt.Top = f.top
	bar := progress.New(e.Err, f.analysis.Quiet, f.analysis.Verbose)
	res, err := reports.One(cmd.Context(), in, opt, bar)
	bar.Stop()
	if err != nil {
		return err
	}
	list := capture.Targets(res.Report)
	if len(list) == 0 {
		return fmt.Errorf("%s holds no kernels: there is nothing to measure (capture with --trace=cuda, and CUDA graphs by node)", path)
	}
	list = list[:min(f.top, len(list))]
	write := func(to io.Writer) error {
		_, err := io.WriteString(to, capture.TargetsYAML(list))
		return err
	}
	if f.out == "" {
		return write(e.Out)
	}
	if err := atomicfile.File(f.out, write); err != nil {
		return err
	}
	if line := capture.NCUCommand(list); line != "" && !f.analysis.Quiet {
		_, err = fmt.Fprintln(e.Out, line)
	}
	return err
}
