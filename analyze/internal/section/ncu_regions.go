package section

import (
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report"
)

var ncuRegionsSection = Section{
	ID: "ncu_regions", Title: "Regions profiled with Nsight Compute", Rank: 710,
	Evidence: []file.Kind{file.PerfOpt},
	Derivation: "Regions of llm-perf-opt's ncu/regions/report.json. Names that are not made of plain words are " +
		"numbered.",
	Metrics: []report.MetricDef{
		{
			ID: "ncu_region.kernels", Unit: report.Count, Better: report.None, Assume: report.Exact,
			Scale: report.Total, Labels: []string{"region"},
			Meaning: "kernels profiled inside the region",
		},
		{
			ID: "ncu_region.time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Labels: []string{"region"},
			Meaning: "their durations added up, if the file is right about its unit",
		},
	},
	Tables: []report.Table{
		{ID: "ncu_regions", Title: "Regions", File: "ncu_regions.csv", Columns: []report.Column{
			nameCol("region", "Region"),
			nameCol("parent", "Inside"),
			idCol("depth", "Depth"),
			countCol("kernels", "Kernels"),
			meanCol("time", "Time as stated", "total_ms"),
		}},
	},
	Run: ncuRegions,
}

const maxRegionMetrics = 200

func ncuRegions(in *Input, out *Output) {
	list := in.Evidence.PerfOpt.Regions
	if len(list) == 0 {
		out.Status(report.Unavailable, "the evidence has no list of regions (ncu/regions/report.json)")
		return
	}
	t := out.Table("ncu_regions")
	seen := map[string]bool{}
	out.FromEvidence(file.PerfOpt, len(list), "ncu/regions/report.json", "name", "total_ms", "kernel_count")
	for _, r := range list {
		t.Row(report.S(r.Name), optionalCell(r.Parent), report.I(r.Depth), report.I(r.Kernels), report.F(r.Time))
		if seen[r.Name] || len(seen) >= maxRegionMetrics {
			continue
		}
		seen[r.Name] = true
		l := Labels("region", r.Name)
		out.Int("ncu_region.kernels", l, r.Kernels)
		out.Float("ncu_region.time", l, r.Time)
	}
	t.Cut(in.Options.Top, "kernels", "time").Add()
	out.Note("llm-perf-opt adds durations up whatever their unit is: they are right only where Nsight Compute printed milliseconds.")
}
