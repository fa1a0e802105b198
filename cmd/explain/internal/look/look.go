// Package look is the commands that look at captures: report, which is also what explain does without a command, diff
// and whatif.
package look

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/compat/export"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/mergecmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/whatifcmd"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Commands are the commands in the order of the help, those that it does not list last.
func Commands(e *cmdenv.Env) []*cobra.Command {
	return []*cobra.Command{newReport(e), newDiff(e), whatifcmd.New(e), mergecmd.NewPartial(e), mergecmd.NewMerge(e)}
}

// Bare makes a command do what report does; without a trace and without evidence it prints its help.
func Bare(cmd *cobra.Command, e *cmdenv.Env) {
	var f reportFlags
	f.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && !f.hasEvidence() {
			return cmd.Help()
		}
		return f.run(cmd, e, args)
	}
}

// writeStep writes the median and the slowest unit of a report for Perfetto.
func writeStep(path string, force bool, r *report.Report) error {
	units, err := export.PerfettoUnits(r)
	if err != nil {
		return noStep(r, err)
	}
	return writePerfetto(path, force, units)
}

// writeSteps writes the median units of both sides of a comparison for Perfetto, of the first capture of each.
func writeSteps(path string, force bool, base, head *report.Report, c *comparison.Comparison) error {
	device := int64(-1)
	if c.Step != nil {
		device = c.Step.Device
	}
	var units []export.PerfettoUnit
	for _, s := range []struct {
		name string
		of   *report.Report
	}{{"base", base}, {"head", head}} {
		u, err := export.PerfettoMedian(s.of, kindOf(s.of, &c.Unit, s.name == "head"), device, s.name)
		if err != nil {
			return noStep(s.of, err)
		}
		u.Changes = changesOf(c.Step, s.name == "base")
		units = append(units, u)
	}
	return writePerfetto(path, force, units)
}

// kindOf is the id of the kind of unit that is compared, on one side; empty if the sides differ in it.
func kindOf(r *report.Report, u *comparison.Unit, head bool) string {
	batch := u.Batch
	if head {
		batch = cmp.Or(u.HeadBatch, batch)
	}
	same := func(a, b *int64) bool { return report.ValueOr(a, -1) == report.ValueOr(b, -1) }
	first, shown := "", ""
	for _, g := range r.Unit.Groups {
		if g.Phase != u.Phase || !same(g.Batch, batch) || !same(g.Tokens, u.Tokens) {
			continue
		}
		first = cmp.Or(first, g.ID)
		if r.Unit.Step(g.ID, -1) != nil {
			shown = cmp.Or(shown, g.ID)
		}
	}
	return cmp.Or(shown, first)
}

// changesOf maps the position of each paired kernel on one side to the change of its time from base to head, in ns.
func changesOf(s *comparison.Step, base bool) map[int64]float64 {
	if s == nil {
		return nil
	}
	changes := map[int64]float64{}
	for _, r := range s.Rows {
		at := r.HeadPosition
		if base {
			at = r.BasePosition
		}
		if at != nil && r.Kind == comparison.RowPaired {
			changes[*at] = r.HeadKernel - r.BaseKernel
		}
	}
	return changes
}

func noStep(r *report.Report, err error) error {
	return &analyze.InputError{File: r.Trace.Name, What: fmt.Sprintf("--perfetto: %v", err),
		Do: "name a unit with --unit, or record more steps; a report.json of an older version has none: " +
			"analyse the trace again"}
}

// overStep returns which existing file a step may replace.
func overStep(force bool) atomicfile.Over {
	return atomicfile.Over{Begins: `{"displayTimeUnit":"ns","traceEvents":[`, Force: force}
}

func writePerfetto(path string, force bool, units []export.PerfettoUnit) error {
	return atomicfile.File(path, overStep(force), func(w io.Writer) error { return export.Perfetto(w, units) })
}
