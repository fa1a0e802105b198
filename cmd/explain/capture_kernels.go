package main

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// kernelsToMeasure picks the kernels with most time, as explain ncu-targets does, for a run of Nsight Compute: an expression for their
// names, how many launches to let pass, and how many to measure. Collective communication is left out. ok is false where nothing is left.
func kernelsToMeasure(r *report.Report, top int) (names string, skip, count int64, ok bool) {
	var expressions []string
	launches := int64(0)
	for _, t := range targets(r) {
		if !t.comm && len(expressions) < top {
			expressions = append(expressions, nameExpression(t.name))
			launches += t.count
		}
	}
	count = min(int64(perKernel*len(expressions)), launches)
	return "^(" + strings.Join(expressions, "|") + ")$", min(skipLaunches, (launches-count)/2), count, len(expressions) > 0
}
