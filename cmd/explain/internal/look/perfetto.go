package look

import (
	"fmt"
	"io"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/compat/export"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/diff/comparison"
)

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
		u, err := export.PerfettoMedian(s.of, device, s.name)
		if err != nil {
			return noStep(s.of, err)
		}
		u.Changes = changesOf(c.Step, s.name == "base")
		units = append(units, u)
	}
	return writePerfetto(path, force, units)
}

// changesOf maps the position of each paired kernel on one side to the change of its time from base to head, in ns.
func changesOf(s *comparison.Step, base bool) map[int64]float64 {
	if s == nil {
		return nil
	}
	changes := map[int64]float64{}
	for i := range s.Rows {
		r := &s.Rows[i]
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
		Do: "name a unit with --unit, or record more steps; a report.json of an older version has none: analyse the trace again"}
}

// overStep returns which existing file a step may replace.
func overStep(force bool) atomicfile.Over {
	return atomicfile.Over{Begins: `{"displayTimeUnit":"ns","traceEvents":[`, Force: force}
}

func writePerfetto(path string, force bool, units []export.PerfettoUnit) error {
	return atomicfile.File(path, overStep(force), func(w io.Writer) error { return export.Perfetto(w, units) })
}
