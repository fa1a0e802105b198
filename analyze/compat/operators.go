package compat

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/compat/perfopt"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Operators = kit.Section{
	ID: "operators", Title: "Operators and kernels of llm-perf-opt",
	Evidence: ofRun,
	Derivation: "Rows of llm-perf-opt's operators.md and kernels.md. Times of operators are its own: it adds an " +
		"operator's self time to its total, so one that calls no others counts twice. Operators whose names are not of " +
		"the usual form are grouped.",
	Metrics: []report.MetricDef{
		kit.TotalTime("operator.total_time", report.Lower, report.Leave,
			"host time of an operator as llm-perf-opt states it, self and total added").By("operator"),
		kit.TotalTime("operator.cuda_time", report.Lower, report.Leave,
			"GPU time of an operator as llm-perf-opt states it, self and total added").By("operator"),
		kit.ExactCount("operator.calls", report.None, report.Leave,
			"calls of an operator in the profiled run").By("operator"),
	},
	Tables: []report.Table{
		{ID: "operators", Title: "Operators", File: "operators.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("operator", "Operator"),
			kit.MeanCol("total", "Total", "total_ms"),
			kit.MeanCol("cuda", "CUDA", "cuda_ms"),
			kit.CountCol("calls", "Calls"),
			kit.MeanCol("mean", "Mean", "mean_ms"),
		}},
		{ID: "stated_kernels", Title: "Kernels as llm-perf-opt lists them", File: "stated_kernels.csv", Merge: report.Leave,
			Columns: []report.Column{
				kit.NameCol("kernel", "Kernel"),
				kit.MeanCol("total", "Total", "total_ms"),
				kit.CountCol("calls", "Calls"),
				kit.MeanCol("mean", "Mean", "mean_ms"),
			}},
	},
	Run: operators,
}

func operators(in *kit.Input, out *kit.Output) {
	d := runOf(in)
	if len(d.Operators)+len(d.Kernels) == 0 {
		out.Status(report.Unavailable, "the evidence has neither operators.md nor kernels.md")
		return
	}
	ops := slices.Clone(d.Operators)
	lists.Sort(ops, func(a, b perfopt.Operator) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.CUDA, a.CUDA))
	})
	t := out.Table("operators")
	seen := map[string]bool{}
	for i, o := range ops {
		t.Row(
			kit.Text("operator", o.Name), kit.Float("total", o.Total), kit.Float("cuda", o.CUDA),
			kit.Int("calls", o.Calls), kit.Maybe("mean", stat.Ratio(o.Total, o.Calls)))
		if i < in.Options.Top && !seen[o.Name] {
			seen[o.Name] = true
			l := kit.Labels("operator", o.Name)
			out.FromEvidence(perfopt.Kind, 1, "operators.md", "op_name", "total_time_ms", "cuda_time_ms", "calls")
			out.Float("operator.total_time", l, o.Total)
			out.Float("operator.cuda_time", l, o.CUDA)
			out.Int("operator.calls", l, o.Calls)
		}
	}
	t.Cut(in.Options.Top, "total", "cuda", "calls").Add()
	kernels := slices.Clone(d.Kernels)
	lists.Sort(kernels, func(a, b perfopt.Kernel) int { return cmp.Compare(b.Total, a.Total) })
	k := out.Table("stated_kernels")
	untimed := len(kernels) > 0
	for _, x := range kernels {
		untimed = untimed && x.Total == 0
		k.Row(
			kit.Text("kernel", x.Name), kit.Float("total", x.Total), kit.Int("calls", x.Calls),
			kit.Float("mean", x.Mean))
	}
	k.Cut(in.Options.Top, "total", "calls").Add()
	if untimed {
		out.Warn("kernels_untimed", "kernels.md states 0 ms for every kernel: llm-perf-opt does not read the CSV files of Nsight Compute as they are. Give the CSV files themselves with --ncu.")
	}
}
