package gpu

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Components = kit.Section{
	ID: "components", Group: report.GroupKernels, Title: "Model components",
	Needs: []trace.Role{trace.RoleKernel},
	Derivation: "Kernel rows that start in the window, by the part of the model they belong to. The part comes from " +
		"the nearest enclosing NVTX range of the launch that names one, otherwise from the kernel's own name. Components sum to the kernel time.",
	Findings: []kit.FindingDef{
		{ID: "attention_dominates", Title: "Attention takes most of the kernel time", General: true},
	},
	Metrics: []report.MetricDef{
		kit.TotalTime("component.gpu_time", report.Lower, report.Sum, "kernel time by component: by NVTX range where "+
			"one names a component, else by kernel name; with by=nvtx or by=name by that alone (nvtx covers only what "+
			"lies in such a range)").By("component", "by,component"),
		kit.ExactCount("component.kernel_count", report.None, report.Sum,
			"kernels by component, assigned as component.gpu_time is").By("component"),
	},
	Tables: []report.Table{
		{ID: "components", Title: "Kernel time by component", File: "components.csv", Columns: []report.Column{
			kit.TextCol("component", "Component").Merged(report.Key),
			kit.NsCol("total", "Total", "total_time_ns", "total_time_ms").Merged(report.Sum.First()),
			kit.RatioCol("share", "Share", "pct_total_time").Merged(report.PartOf("total")),
			kit.CountCol("count", "Kernels", "kernel_count").Merged(report.Sum),
			kit.NsCol("by_nvtx", "By NVTX", "by_nvtx_ns", "by_nvtx_ms").Merged(report.Sum),
			kit.NsCol("by_name", "By name", "by_name_ns", "by_name_ms").Merged(report.Sum),
		}},
	},
	Run: components,
}

// outsideRanges is the label of kernel time outside of ranges that name a component.
const outsideRanges = "(in no component range)"

// componentTime is the time of one component, by either view and by both together.
type componentTime struct {
	name             string
	count            int64
	time             int64
	nvtx, byName     int64
	nvtxRows, byRows int64
}

func components(in *kit.Input, out *kit.Output) {
	k := &in.Trace.Kernels
	lo, hi := k.Starting(in.Span.Start, in.Span.End)
	if hi == lo {
		out.Status(report.NotApplicable, "no kernel starts in the window")
		return
	}
	all := kit.NewTally[string, componentTime]()
	byName := lists.Map(in.Kinds, func(i kernelname.Info) *componentTime { return all.At(i.Component) })
	byRange := make([]*componentTime, len(in.Trace.Ranges.Names)) // nil: it names none
	for n := range byRange {
		if c := kernelname.RangeComponent(in.Trace.Ranges.Names[n].Text); c != "" {
			byRange[n] = all.At(c)
		}
	}
	nearest := in.Contexts.Nearest(func(name int32) bool { return byRange[name] != nil })
	var total, covered, coveredRows int64
	for i := lo; i < hi; i++ {
		dur, best := k.Dur(i), byName[k.Name(i)]
		total += dur
		best.byName += dur
		best.byRows++
		if in.NVTX != nil {
			if n := nearest.Of(in.Calls.Kernel[i]); n != trace.None {
				best = byRange[n]
				best.nvtx += dur
				best.nvtxRows++
				covered += dur
				coveredRows++
			}
		}
		best.time += dur
		best.count++
	}
	for i, c := range all.Values {
		c.name = all.Keys[i]
	}
	list := slices.DeleteFunc(all.Values, func(c *componentTime) bool { return c.count == 0 && c.byRows == 0 })
	lists.Sort(list, func(a, b *componentTime) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(b.byName, a.byName), cmp.Compare(a.name, b.name))
	})
	coverage := stat.Ratio(covered, total)
	emitComponents(out, list, coverage, coveredRows > 0)
	hidden, graphs := wholeGraphs(in)
	componentTable(out, list, total, covered, hidden)
	for _, c := range list {
		if c.name == string(kernelname.CompAttention) && float64(c.time) > dominantAttention*float64(total+hidden) {
			out.Find("attention_dominates",
				[]report.MetricRef{kit.Ref("component.gpu_time", "component", c.name), kit.Ref("kernel.total_time")},
				"Check that a fused attention back end is in use"+kit.SetAttention+" and that it fits the head size and the data type of the KV cache.",
				"Long contexts make attention grow: prefix caching, a lower limit on the length of a request"+kit.SetRequestLength+" or chunked prefill keep it in bounds.")
		}
	}

	switch {
	case !in.Options.RangeMap:
		out.Note("Ranges were left out (--no-nvtx-kernel-map): components are by kernel name alone.")
	case coveredRows == 0:
		out.Note("No range names a component here. Kernel names tell attention, norm and communication well, but not which part of the model a matrix product belongs to: that is component gemm. Capture with --trace=cuda,nvtx and ranges per layer, without CUDA graphs (vLLM: --enable-layerwise-nvtx-tracing; SGLang: --enable-layerwise-nvtx-marker).")
	default:
		out.Coverage(coverage)
		out.Note("Coverage is the share of the kernel time inside an NVTX range that names a component; the rest is classified by kernel name.")
		out.Note("A range counts all kernels launched in it: norms, copies and collectives inside an attention module are attention by NVTX, and themselves by name.")
	}
	if graphs > 0 {
		out.Status(report.Partial, hiddenKernels)
	}
}

// dominantAttention is profilemate's bound on the share of attention.
const dominantAttention = 0.60

func emitComponents(out *kit.Output, list []*componentTime, coverage *float64, ranges bool) {
	for _, c := range list {
		out.From(trace.RoleKernel, int(c.count), "start", "end", "demangledName", "shortName")
		if ranges {
			out.Source.With(trace.RoleAPI, "correlationId", "globalTid")
			out.Source.With(trace.RoleNVTX, "text", "textId")
		}
		if c.count > 0 {
			out.Int("component.gpu_time", kit.Labels("component", c.name), c.time)
			out.Int("component.kernel_count", kit.Labels("component", c.name), c.count)
		}
		if c.nvtxRows > 0 {
			out.Source.Rows = c.nvtxRows
			out.Int("component.gpu_time", kit.Labels("component", c.name, "by", "nvtx"), c.nvtx).Coverage = coverage
		}
		if c.byRows > 0 {
			out.From(trace.RoleKernel, int(c.byRows), "start", "end", "demangledName", "shortName")
			out.Int("component.gpu_time", kit.Labels("component", c.name, "by", "name"), c.byName)
		}
	}
}

func componentTable(out *kit.Output, list []*componentTime, total, covered, hidden int64) {
	t := out.Table("components")
	all := total + hidden
	for _, c := range list {
		row := []kit.Field{kit.Text("component", c.name), kit.Int("total", c.time), kit.Maybe("share", stat.Ratio(c.time, all)),
			kit.Int("count", c.count), kit.Int("by_name", c.byName)}
		if covered > 0 {
			row = append(row, kit.Int("by_nvtx", c.nvtx))
		}
		t.Partial(row...)
	}
	if covered > 0 && covered < total {
		t.Partial(kit.Text("component", outsideRanges), kit.Int("by_nvtx", total-covered))
	}
	if hidden > 0 {
		t.Partial(kit.Text("component", insideGraphs), kit.Int("total", hidden), kit.Maybe("share", stat.Ratio(hidden, all)))
	}
	t.Add()
}
