package compat

import (
	"github.com/nsys-llm/explain/analyze/compat/perfopt"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
)

var NCURegions = kit.Section{
	ID: "ncu_regions", Title: "Regions profiled with Nsight Compute",
	Evidence: ofRun,
	Derivation: "Regions of llm-perf-opt's ncu/regions/report.json. Names that are not made of plain words are " +
		"numbered.",
	Metrics: []report.MetricDef{
		kit.ExactCount("ncu_region.kernels", report.None, report.Leave,
			"kernels profiled inside the region").By("region"),
		kit.TotalTime("ncu_region.time", report.Lower, report.Leave,
			"their durations added up, if the file is right about its unit").By("region"),
	},
	Tables: []report.Table{
		{ID: "ncu_regions", Title: "Regions", File: "ncu_regions.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("region", "Region"),
			kit.NameCol("parent", "Inside"),
			kit.IDCol("depth", "Depth"),
			kit.CountCol("kernels", "Kernels"),
			kit.MeanCol("time", "Time as stated", "total_ms"),
		}},
	},
	Run: ncuRegions,
}

const maxRegionMetrics = 200

func ncuRegions(in *kit.Input, out *kit.Output) {
	list := runOf(in).Regions
	if len(list) == 0 {
		out.Status(report.Unavailable, "the evidence has no list of regions (ncu/regions/report.json)")
		return
	}
	t := out.Table("ncu_regions")
	seen := map[string]bool{}
	out.FromEvidence(perfopt.Kind, len(list), "ncu/regions/report.json", "name", "total_ms", "kernel_count")
	for _, r := range list {
		t.Row(
			kit.Text("region", r.Name), kit.Put("parent", report.OrNull(r.Parent)), kit.Int("depth", r.Depth),
			kit.Int("kernels", r.Kernels), kit.Float("time", r.Time))
		if seen[r.Name] || len(seen) >= maxRegionMetrics {
			continue
		}
		seen[r.Name] = true
		l := kit.Labels("region", r.Name)
		out.Int("ncu_region.kernels", l, r.Kernels)
		out.Float("ncu_region.time", l, r.Time)
	}
	t.Cut(in.Options.Top, "kernels", "time").Add()
	out.Note("llm-perf-opt adds durations up whatever their unit is: they are right only where Nsight Compute printed milliseconds.")
}
