package gpu

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

var Categories = kit.Section{
	ID: "categories", Group: report.GroupKernels, Steady: true, Title: "Kernel categories",
	Needs: []trace.Role{trace.RoleKernel},
	Derivation: "Kernel rows that start in the window, grouped by category and library according to their names. " +
		"Shares refer to kernel time plus the time of CUDA graphs traced as a whole.",
	Findings: []kit.FindingDef{
		{ID: "unnamed_kernels", Title: "Much of the kernel time is in kernels whose names do not say what they do", General: true},
		{ID: "pointwise_kernels", Title: "Pointwise and copy kernels take a large share of the kernel time"},
		{ID: "dominant_category", Title: "One kind of work takes most of the judged time", General: true, Part: true},
		{ID: "layout_conversions", Title: "Kernels convert between layouts"},
	},
	Metrics: []report.MetricDef{
		kit.TotalTime("kernel.total_time", report.Lower, report.Sum.Counting("kernel", "kernel"), "sum of kernel "+
			"durations; unlabelled over the whole window").Summarised().By("category", "library").Quoted(),
		kit.ExactCount("kernel.count", report.None, report.Sum, "number of kernels").By("category", "library").Quoted(),
		kit.TotalTime("kernel.unnamed_time", report.None, report.Sum,
			"sum of durations of kernels whose names do not say what they do: categories other and triton").Quoted(),
		kit.TotalTime("kernel.hinted_time", report.None, report.Sum, "sum of durations of kernels whose category only "+
			"a word hints at that other kernels have too (gate, score, input): no finding relies on it"),
	},
	Tables: []report.Table{
		{ID: "categories", Title: "Time by category", File: "categories.csv",
			Columns: groupColumns("category", "Category")},
		{ID: "libraries", Title: "Time by library", File: "libraries.csv", Columns: groupColumns("library", "Library")},
		{
			ID: "unnamed_kernels", Title: "Kernels whose names do not say what they do", File: "unnamed_kernels.csv", Merge: report.Leave,
			Columns: []report.Column{
				kit.NameCol("kernel_name", "Kernel"), kit.TextCol("category", "Category"),
				kit.CountCol("count", "Calls", "call_count"), kit.NsCol("total", "Total", "total_time_ns", "total_time_ms"),
				kit.RatioCol("share", "Share", "pct_total_time"),
			},
		},
	},
	Run: categories,
}

const (
	pointwiseShare = 0.25 // of the time, from which the pointwise finding is made
	unnamedShare   = 0.10 // of the time, from which the finding about names is made
	unnamedShown   = 10   // rows of the table of kernels without a category
)

// kernelGroup is the kernels of one category, library, …
type kernelGroup struct {
	name  string
	count int64
	total int64
	names int64 // distinct kernel names; 0 if they are hidden
	top   int   // the name with the most time
}

func categories(in *kit.Input, out *kit.Output) {
	k := &in.Trace.Kernels
	lo, hi := k.Starting(in.Span.Start, in.Span.End)
	hidden, graphs := wholeGraphs(in)
	if hi == lo {
		out.Status(report.NotApplicable, "no kernel starts in the window")
		return
	}
	times := in.KernelStats()
	list := groupKernels(in, times.Names, func(kind *kernelname.Info) string { return string(kind.Category) })
	libraries := groupKernels(in, times.Names, func(kind *kernelname.Info) string { return kind.Library })
	all, unclear := hidden, hidden
	series := report.Series{Name: "kernel time"}
	out.From(trace.RoleKernel, hi-lo, "start", "end", "demangledName", "shortName")
	for _, g := range list {
		all += g.total
		if !kernelname.Category(g.name).Named() {
			unclear += g.total
		}
		emitGroup(out, "category", g)
		series.Labels, series.Values = append(series.Labels, g.name), append(series.Values, float64(g.total))
	}
	for _, g := range libraries {
		emitGroup(out, "library", g)
	}
	if graphs > 0 {
		out.Status(report.Partial, hiddenKernels)
		series.Labels, series.Values = append(series.Labels, insideGraphs), append(series.Values, float64(hidden))
		whole := &kernelGroup{name: insideGraphs, total: hidden}
		list, libraries = append(list, whole), append(libraries, whole)
	}
	groupsTable(out, in, "categories", "category", list, all)
	groupsTable(out, in, "libraries", "library", libraries, all)
	out.Chart(report.Chart{ID: "categories", Title: "Kernel time by category", Kind: "bar", Unit: report.Nanoseconds,
		Series: []report.Series{series}})
	out.Coverage(stat.Ratio(all-unclear, all))
	out.Note("Coverage is the share of the time whose category follows from the kernel name: all but other, triton " +
		"(compiled by Triton, purpose unknown) and kernels hidden in CUDA graphs.")
	var hinted, launches int64
	for _, e := range times.Names {
		if in.Kinds[e.Key].Weak {
			hinted, launches = hinted+e.Total, launches+e.Count
		}
	}
	out.Source.Rows = launches
	out.Int("kernel.hinted_time", nil, hinted)
	if share := stat.Ratio(hinted, all); hinted > 0 && share != nil {
		out.Note(unit.Percent(*share) + " of the time is in kernels whose category only a word of the name hints at; `weak` marks them in the file of kernels, and no finding relies on them.")
	}
	categoryFindings(in, out)
	unnamed(in, out, times.Names, unclear-hidden, all)
}

// unnamed says which kernels have no category, most time first.
func unnamed(in *kit.Input, out *kit.Output, times []kit.Totals, total, all int64) {
	list, count := lists.Filter(times, func(e kit.Totals) bool {
		return !in.Kinds[e.Key].Category.Named()
	}), int64(0)
	t := out.Table("unnamed_kernels")
	for _, e := range list {
		count += e.Count
		t.Row(
			kit.Text("kernel_name", in.Trace.Kernels.Names[e.Key].Name), kit.Text("category", string(in.Kinds[e.Key].Category)),
			kit.Int("count", e.Count), kit.Int("total", e.Total), kit.Maybe("share", stat.Ratio(e.Total, all)))
	}
	t.Cut(unnamedShown, "count", "total", "share").Add()
	out.Source.Rows = count
	out.Int("kernel.unnamed_time", nil, total)
	unnamedFinding(in, out, stat.Ratio(total, all))
}

// unnamedFinding reports them from a tenth of the judged time on. share is theirs of the kernel time. A program most of
// whose kernels are its own is no engine, and its author knows them.
func unnamedFinding(in *kit.Input, out *kit.Output, share *float64) {
	step := in.Step()
	unknown := func(n int) bool { return !in.Kinds[n].Category.Named() }
	claims, ns, largest := kernelClaims(in, step, unknown)
	few := step.Share(ns) < leastCategory
	if few && (share == nil || *share < unnamedShare) {
		return
	}
	refs := kit.Refs("kernel.unnamed_time", "kernel.total_time")
	advice := []string{"Say what your own kernels do with --kernel-map FILE, one \"pattern: category\" a line; " +
		"the table of these kernels lists the largest."}
	if few || 2*ns > step.Compute || toldAlone(in, step, largest) {
		out.Find("unnamed_kernels", refs, advice...)
		return
	}
	name, place := in.Kinds[largest].Display, ""
	title := "Kernels that no rule knows take " + unit.Percent(step.Share(ns)) + " of the " + step.What() +
		mostIs(step.Kernels[largest], ns, name)
	if 10*step.Kernels[largest] >= 3*ns { // as of any place
		place = name
	}
	if at := kit.LaunchedIn(in, unknown, ns); at != "" {
		title += ", launched inside " + kit.Quoted(at)
	}
	refs, advice = append(kernelRefs(in, step, largest), refs...), append(advice, counterAdvice(in))
	out.FindAs("unnamed_kernels", title, refs, advice...).At(place).Costs(step.Worth(ns), claims...)
}

// groupKernels adds up kernels, which come with most time first, by a property of their names; so do the groups.
func groupKernels(in *kit.Input, times []kit.Totals, of func(kind *kernelname.Info) string) []*kernelGroup {
	groups := kit.NewTally[string, kernelGroup]()
	for _, e := range times {
		name := of(&in.Kinds[e.Key])
		g := groups.At(name)
		if g.names == 0 {
			g.name, g.top = name, e.Key
		}
		g.count, g.total, g.names = g.count+e.Count, g.total+e.Total, g.names+1
	}
	lists.Sort(groups.Values, func(a, b *kernelGroup) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.name, b.name))
	})
	return groups.Values
}

func emitGroup(o *kit.Output, label string, g *kernelGroup) {
	o.Source.Rows = g.count
	o.Int("kernel.total_time", kit.Labels(label, g.name), g.total)
	o.Int("kernel.count", kit.Labels(label, g.name), g.count)
}

// groupColumns are the columns of a table of kernels by kind.
func groupColumns(column, heading string) []report.Column {
	return []report.Column{
		kit.TextCol(column, heading).Merged(report.Key),
		kit.CountCol("count", "Calls", "call_count").Merged(report.Sum),
		kit.NsCol("total", "Total", "total_time_ns", "total_time_ms").Merged(report.Sum.First()),
		kit.RatioCol("share", "Share", "pct_total_time").Merged(report.PartOf("total")),
		kit.MeanCol("mean", "Mean", "avg_duration_us").Merged(report.RatioOf("total", "count")),
		kit.Wide(kit.CountCol("names", "Distinct kernels", "kernel_names")).Merged(report.Max),
		kit.NameCol("top_kernel", "Top kernel").Merged(report.OfMost),
	}
}

func groupsTable(o *kit.Output, in *kit.Input, id, column string, list []*kernelGroup, all int64) {
	t := o.Table(id)
	for _, g := range list {
		row := []kit.Field{kit.Text(column, g.name), kit.Int("total", g.total), kit.Maybe("share", stat.Ratio(g.total, all))}
		if g.names > 0 {
			row = append(row, kit.Int("count", g.count), kit.Maybe("mean", stat.Ratio(g.total, g.count)),
				kit.Int("names", g.names), kit.Text("top_kernel", in.Kinds[g.top].Display))
		}
		t.Partial(row...)
	}
	t.Add()
}

// leastCategory is the share of the judged time, 0..1, from which a category is reported.
const leastCategory = 0.10

// categoryFindings name the kinds of kernels that take the judged time, and those that fusion would remove.
func categoryFindings(in *kit.Input, out *kit.Output) {
	s := in.Step()
	convertsLayout := func(n int) bool { return kernelname.ConvertsLayout(in.Trace.Kernels.Names[n].Name) }
	layout, converts, _ := kernelClaims(in, s, convertsLayout)
	if s.Share(converts) > 0 {
		out.FindAs("layout_conversions", "Kernels that only convert between NCHW and NHWC take "+unit.Percent(s.Share(converts))+" of the "+s.What(),
			categoryRefs(s, string(kernelname.Memory)),
			"Keep one layout from end to end (PyTorch: model and input .to(memory_format=torch.channels_last)), so that no convolution converts.",
		).Costs(s.Worth(converts), layout...)
	}
	var refs []report.MetricRef
	seen := map[kernelname.Category]bool{}
	pointwise, ns, largest := kernelClaims(in, s, func(n int) bool {
		c := in.Kinds[n].Category
		if in.Kinds[n].Weak || convertsLayout(n) || c != kernelname.Elementwise && c != kernelname.Memory {
			return false
		}
		if !seen[c] {
			seen[c], refs = true, append(refs, categoryRefs(s, string(c))...)
		}
		return true
	})
	if s.Share(ns) >= leastCategory || s.Compute > 0 && float64(ns) >= pointwiseShare*float64(s.Compute) {
		title, place := "Pointwise and copy kernels take "+unit.Percent(s.Share(ns))+" of the "+s.What(), ""
		if 10*s.Kernels[largest] >= 3*ns { // as of any place
			place = in.Kinds[largest].Display
			title, refs = title+mostIs(s.Kernels[largest], ns, place), append(refs, kernelRefs(in, s, largest)...)
		}
		out.FindAs("pointwise_kernels", title, refs,
			"They are bound by memory bandwidth, and fusing them into their neighbours removes them: torch.compile, or the engine's fused norm, activation, rope and quantisation kernels.",
			"Layout changes and casts between kernels point at producers and consumers that disagree: the NVTX range around the launch says where.",
		).At(place).Costs(s.Worth(ns), pointwise...)
	}
	top := topKernel(in, s)
	for _, c := range kernelname.Categories {
		if c == kernelname.Elementwise || c == kernelname.Memory || !c.Named() || c == kernelname.Comm {
			continue
		}
		claims, ns, lead := kernelClaims(in, s, func(n int) bool { return in.Kinds[n].Category == c && !in.Kinds[n].Weak })
		if s.Share(ns) < leastTold || 2*s.Kernels[lead] > ns && lead == top && 4*s.Kernels[lead] >= s.Compute {
			continue // the kernel is reported on its own
		}
		most := "the largest, "
		if 2*s.Kernels[lead] > ns {
			most = "most of it, "
		}
		out.FindAs("dominant_category", "Kernels of category "+string(c)+" take "+unit.Percent(s.Share(ns))+" of the "+s.What()+": "+
			most+unit.Percent(s.Share(s.Kernels[lead]))+", is "+kit.Quoted(in.Kinds[lead].Display),
			append(categoryRefs(s, string(c)), kernelRefs(in, s, lead)...), kernelAdvice[c]...,
		).At(in.Kinds[lead].Display).Costs(s.Worth(ns), claims...)
	}
}

// categoryRefs point at the time of a category: of a unit of work, or of the window.
func categoryRefs(s *kit.Step, category string) []report.MetricRef {
	if s.Units > 0 {
		return []report.MetricRef{kit.Ref("kernel.exclusive_time_per_unit", "category", category)}
	}
	return []report.MetricRef{kit.Ref("kernel.total_time", "category", category)}
}
