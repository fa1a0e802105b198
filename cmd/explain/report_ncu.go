package main

import (
	"fmt"
	"io"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// writeTargets writes the kernels that take most of a report's kernel time, n at most, as YAML in the form of
// llm-perf-opt's extract-top-kernels, and tells the command of Nsight Compute that measures them. Kernels of collective
// communication are in the list and not in the command: ncu runs each kernel several times, and a collective that runs
// again on one rank waits for the others for ever.
func writeTargets(path string, force bool, r *report.Report, n int, tell io.Writer) error {
	list := capture.Targets(r)
	if len(list) == 0 {
		return fmt.Errorf("the capture holds no kernels: there is nothing to measure (capture with --trace=cuda, and CUDA graphs by node)")
	}
	list = list[:min(n, len(list))]
	err := atomicfile.File(path, overTargets(force), func(to io.Writer) error {
		_, err := io.WriteString(to, capture.TargetsYAML(list))
		return err
	})
	if line := capture.NCUCommand(list); err == nil && line != "" && tell != nil {
		_, err = fmt.Fprintln(tell, "\nMeasure these kernels with:\n"+line)
	}
	return err
}

func overTargets(force bool) atomicfile.Over {
	return atomicfile.Over{Begins: "# Kernels with most time, as explain report --ncu-targets found them", Force: force}
}
