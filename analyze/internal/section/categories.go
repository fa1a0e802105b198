package section

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

var categoriesSection = Section{
	ID: "categories", Title: "Kernel categories", Rank: 40,
	Needs: []trace.Role{trace.RoleKernel},
	Derivation: "Kernel rows that start in the window, grouped by the category and the library that their names " +
		"tell. Shares are of kernel time and the time of CUDA graphs traced as a whole together.",
	Metrics: []report.MetricDef{
		{
			ID: "kernel.total_time", Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy,
			Scale: report.Total, Stats: true, Labels: []string{"category", "library"},
			Meaning: "sum of kernel durations; unlabelled over the whole window",
		},
		{
			ID: "kernel.count", Unit: report.Count, Better: report.None, Assume: report.Exact,
			Scale: report.Total, Labels: []string{"category", "library"},
			Meaning: "number of kernels",
		},
	},
	Tables: []report.Table{
		{ID: "categories", Title: "Time by category", File: "categories.csv", Columns: groupColumns("category", "Category")},
		{ID: "libraries", Title: "Time by library", File: "libraries.csv", Columns: groupColumns("library", "Library")},
	},
	Run: categories,
}

// Share of the time from which the pointwise finding is made.
const pointwiseShare = 0.25

// insideGraphs names the time of CUDA graphs whose kernels were not traced.
const insideGraphs = "(inside CUDA graphs)"

// kernelGroup is the kernels of one category, library, …
type kernelGroup struct {
	name     string
	count    int64
	total    int64
	names    int64 // distinct kernel names
	top      int32 // the name with the most time, or trace.None
	topTotal int64
}

func categories(in *Input, out *Output) {
	k := &in.Trace.Kernels
	lo, hi := k.Starting(in.Span.Start, in.Span.End)
	hidden, graphs := in.wholeGraphs()
	if hi == lo {
		out.Status(report.NotApplicable, "no kernel starts in the window")
		return
	}
	times := in.kernelStats()
	groupBy := func(of func(kind *kernelname.Info) string) []kernelGroup {
		return groupKernels(in, times.names, of)
	}
	list := groupBy(func(kind *kernelname.Info) string { return string(kind.Category) })
	libraries := groupBy(func(kind *kernelname.Info) string { return kind.Library })

	all, unclear := hidden, hidden
	chart := report.Chart{ID: "categories", Title: "Kernel time by category", Kind: "bar", Unit: report.Nanoseconds}
	series := report.Series{Name: "kernel time"}
	out.From(trace.RoleKernel, hi-lo, "start", "end", "demangledName", "shortName")
	for _, g := range list {
		all += g.total
		if g.name == string(kernelname.Other) || g.name == string(kernelname.Triton) {
			unclear += g.total
		}
		out.kernelGroup("category", &g)
		series.Labels, series.Values = append(series.Labels, g.name), append(series.Values, float64(g.total))
	}
	for _, g := range libraries {
		out.kernelGroup("library", &g)
	}
	if graphs > 0 {
		out.Status(report.Partial, hiddenKernels)
		series.Labels, series.Values = append(series.Labels, insideGraphs), append(series.Values, float64(hidden))
		whole := kernelGroup{name: insideGraphs, count: -1, total: hidden, top: trace.None}
		list, libraries = append(list, whole), append(libraries, whole)
	}
	out.groupTable(in, "categories", list, all)
	out.groupTable(in, "libraries", libraries, all)
	chart.Series = []report.Series{series}
	out.Chart(chart)
	out.Coverage(stat.Ratio(all-unclear, all))
	out.Note("Coverage is the share of the time whose category the kernel name tells: all but other, triton (compiled by Triton, purpose unknown) and what CUDA graphs hide.")
	pointwiseFinding(in, out, list, all)
}

// groupKernels adds up kernels by what of says of their name, most time first.
func groupKernels(in *Input, times []totals, of func(kind *kernelname.Info) string) []kernelGroup {
	index := map[string]int{}
	var list []kernelGroup
	for _, e := range times {
		n := e.key
		name := of(&in.Kinds[n])
		at, ok := index[name]
		if !ok {
			at = len(list)
			index[name] = at
			list = append(list, kernelGroup{name: name, top: trace.None})
		}
		g := &list[at]
		g.count, g.total, g.names = g.count+e.count, g.total+e.total, g.names+1
		if g.top == trace.None || e.total > g.topTotal || e.total == g.topTotal && in.kernelName(int32(n)) < in.kernelName(g.top) {
			g.top, g.topTotal = int32(n), e.total
		}
	}
	slices.SortFunc(list, func(a, b kernelGroup) int { return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name)) })
	return list
}

func (in *Input) kernelName(n int32) string { return in.Trace.Kernels.Names[n].Name }

func (o *Output) kernelGroup(label string, g *kernelGroup) {
	o.source.Rows = g.count
	o.Int("kernel.total_time", Labels(label, g.name), g.total)
	o.Int("kernel.count", Labels(label, g.name), g.count)
}

// groupColumns are the columns of a table of kernels by what they are.
func groupColumns(column, heading string) []report.Column {
	return []report.Column{
		textCol(column, heading), countCsv("count", "Calls", "call_count"),
		nsCol("total", "Total", "total_time_ns", "total_time_ms"), ratioCol("share", "Share", "pct_total_time"), meanCol("mean", "Mean", "avg_duration_us"),
		wide(countCsv("names", "Distinct kernels", "kernel_names")), nameCol("top_kernel", "Top kernel"),
	}
}

func (o *Output) groupTable(in *Input, id string, list []kernelGroup, all int64) {
	t := o.Table(id)
	for _, g := range list {
		count, mean, names, top := report.Null, report.Null, report.Null, report.Null
		if g.count >= 0 {
			count, names = report.I(g.count), report.I(g.names)
			mean = cell(stat.Ratio(g.total, g.count))
			top = report.S(in.Kinds[g.top].Display)
		}
		t.Row(report.S(g.name), count, report.I(g.total), cell(stat.Ratio(g.total, all)), mean, names, top)
	}
	t.Cut(-1).Add()
}

// pointwiseFinding names what fusion would remove: kernels that only move or touch each element once.
func pointwiseFinding(in *Input, out *Output, list []kernelGroup, all int64) {
	var ns int64
	evidence := []report.MetricRef{}
	for _, g := range list {
		switch kernelname.Category(g.name) {
		case kernelname.Elementwise, kernelname.Memory:
			ns += g.total
			evidence = append(evidence, Ref("kernel.total_time", "category", g.name))
		}
	}
	if share := stat.Ratio(ns, all); share == nil || *share < pointwiseShare {
		return
	}
	severity := report.Medium
	if in.minor(ns) {
		severity = report.Low
	}
	out.Find("pointwise_kernels", severity, "Pointwise and copy kernels take a large share of the kernel time", append(evidence, Ref("kernel.total_time")),
		"These kernels are bound by memory bandwidth, and fusing them into their neighbours removes them: torch.compile, or the engine's fused norm, activation, rope and quantisation kernels (check that no fallback path is taken).",
		"Layout changes and casts between kernels point at producers and consumers that disagree on layout or dtype: the NVTX range around the launch says where.")
}
