package analyze

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/section/steps"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// newReport fills in everything of a report but what the sections say.
func newReport(in *kit.Input, id *report.Capture, cuts []report.UnitCut, opt *Options) *report.Report {
	t := in.Trace
	r := &report.Report{
		Schema:  report.SchemaID,
		Tool:    report.Tool{Name: "explain", Version: cmp.Or(opt.Version, defaultVersion)},
		Window:  in.Window,
		Capture: *id,
		Trace: report.Provenance{
			Name: t.File.Name, Kind: t.File.Kind, Source: t.Meta.Source, Bytes: t.File.Bytes,
			ExporterVersion: report.Stated(t.Meta.ExporterVersion), SchemaVersion: report.Stated(t.Meta.SchemaVersion),
		},
	}
	if opt.Phases != nil {
		r.Trace.Maps = append(r.Trace.Maps, opt.Phases.file)
	}
	if opt.Kernels != nil {
		r.Trace.Maps = append(r.Trace.Maps, opt.Kernels.file)
	}
	r.Capture.Overhead = opt.Overhead
	if in.NoTrace {
		r.Trace.Name, r.Trace.Kind, r.Trace.Bytes = in.Evidence.Files[0].Name, string(in.Evidence.Files[0].Kind),
			in.Evidence.Files[0].Bytes
		if in.Evidence.Folder != "" {
			r.Trace.Name, r.Trace.Bytes = in.Evidence.Folder, 0
			for _, f := range in.Evidence.Files {
				r.Trace.Bytes += f.Bytes
			}
		}
		r.Unit = evidenceUnit(in.Evidence)
	} else {
		r.Environment, r.Unit = environment(in), unitOf(in, cuts)
	}
	if in.Evidence != nil {
		in.Evidence.Describe(r)
		r.Warnings = append(r.Warnings, otherRun(in)...)
	}
	for _, s := range t.Tables {
		r.Trace.Tables = append(r.Trace.Tables, report.TableCount{Name: s.Name, Rows: s.Rows, Skipped: s.Skipped})
	}
	return r
}

// clocks says whether the clocks of the GPUs held while they worked, where the capture has counters.
func clocks(r *report.Report) *string {
	switch {
	case slices.ContainsFunc(r.Warnings, func(w report.Warning) bool { return w.Code == "throttled" }):
		return new("throttled")
	case slices.ContainsFunc(r.Metrics, func(m report.Metric) bool { return m.ID == "gpu.clock" }):
		return new("steady")
	}
	return nil
}

// environment states where the capture was made. Devices come from the event rows: the capture's own list names every
// adapter of the machine.
func environment(in *kit.Input) report.Environment {
	t := in.Trace
	e := report.Environment{
		TraceSet: t.Meta.TraceSet, Driver: report.Stated(t.Meta.Driver), CUDA: report.Stated(t.Meta.CUDA),
		CaptureVersion: report.Stated(t.Meta.CaptureVersion), OS: report.Stated(t.Meta.OS), CPU: report.Stated(t.Meta.CPU),
		ExporterVersion: report.Stated(t.Meta.ExporterVersion), SchemaVersion: report.Stated(t.Meta.SchemaVersion),
	}
	if t.Meta.Source != "nsys" {
		e.Source = report.Stated(t.Meta.Source)
	}
	switch {
	case t.Graphs.Len() > 0:
		e.GraphTrace = new("graph")
	case t.Kernels.InGraphs():
		e.GraphTrace = new("node")
	case slices.ContainsFunc(t.API.Names, func(n trace.APIName) bool { return n.GraphLaunch }):
		e.GraphTrace = report.Stated(t.Meta.GraphTrace)
	}
	for i := range in.Timeline.Devices {
		e.GPUs = append(e.GPUs, describeGPU(t, in.Timeline.Devices[i].ID))
	}
	return e
}

// describeGPU describes one device as far as the capture does.
func describeGPU(t *trace.Trace, device int32) report.GPU {
	g := report.GPU{Device: int(device)}
	a := t.GPU(device)
	g.Name, g.Chip, g.SMs, g.MemoryBytes = report.Stated(a.Name), report.Stated(a.Chip), report.Stated(a.SMs), report.Stated(a.MemoryBytes)
	g.MemoryBandwidth, g.ClockHz = report.Stated(float64(a.MemoryBandwidth)), report.Stated(float64(a.ClockHz))
	if a.CapMajor > 0 {
		g.ComputeCap = report.Stated(strconv.FormatInt(a.CapMajor, 10) + "." + strconv.FormatInt(a.CapMin, 10))
	}
	return g
}

// unitOf states the unit of work of the report; cuts are what it says of units that start at other anchors.
func unitOf(in *kit.Input, cuts []report.UnitCut) report.Unit {
	x := in.Units
	u := report.Unit{Kind: x.Kind, Name: x.Name, Why: x.Why, Groups: []report.UnitGroup{}, Cuts: cuts}
	if x.Kind == workunit.KindNone {
		return u
	}
	u.Groups, u.Trimmed, u.Series = unitKinds(in)
	u.Steps, u.Parts = steps.Steps(in), steps.Parts(in)
	u.Coverage = new(x.Coverage)
	for i := range x.Anchors {
		a := anchorOf(&x.Anchors[i])
		a.Used = i == 0
		u.Anchors = append(u.Anchors, a)
	}
	return u
}

// unitKinds lists the kinds of unit, what was left out, and every unit.
func unitKinds(in *kit.Input) (groups []report.UnitGroup, trimmed report.UnitTrim, series *report.UnitSeries) {
	x := in.Units
	groups = make([]report.UnitGroup, 0, len(x.Groups))
	ids, devices := kit.GroupIDs(x), steps.SlowestDevices(in)
	for i, g := range x.Groups {
		if g.Count == 0 {
			continue
		}
		device := devices[i]
		groups = append(groups, report.UnitGroup{
			ID: ids[i], Main: i == x.Primary, Phase: g.Phase, Batch: report.Stated(g.Batch), Tokens: report.Stated(g.Tokens),
			Signature: g.Signature, Kernels: g.Kernels, Count: g.Count, Device: &device,
		})
	}
	groups = mostFrequent(groups)
	place := make(map[string]int64, len(groups))
	for i := range groups {
		place[groups[i].ID] = int64(i)
	}
	series = steps.Series(in, func(g int32) int64 {
		if g >= 0 {
			if at, ok := place[ids[g]]; ok {
				return at
			}
			if at, ok := place[kit.OtherGroups]; ok && x.Groups[g].Count > 0 {
				return at
			}
		}
		return -1
	})
	trimmed.Rule = workunit.Rule
	trimmed.Cut, trimmed.Warmup, trimmed.Other = x.Trimmed()
	return groups, trimmed, series
}

func anchorOf(a *workunit.Anchor) report.UnitAnchor {
	return report.UnitAnchor{Names: slices.Clone(a.Names), Ranges: a.Ranges, Start: a.Start, Families: a.Families, Merged: a.Merged, Paired: a.Paired,
		Coverage: a.Coverage, Count: int64(a.Count)}
}

// unitCut says what a comparison needs of units that are cut at another anchor: no charts, no histograms, and of the
// main kind no numbers under the label of its phase too.
func unitCut(in *kit.Input) report.UnitCut {
	x := in.Units
	c := report.UnitCut{Anchor: anchorOf(&x.Anchors[0]), Name: x.Name, Why: x.Why, Coverage: new(x.Coverage)}
	c.Steps = steps.Steps(in) // the rest waits for the visit of the gaps
	c.Groups, c.Trimmed, c.Series = unitKinds(in)
	c.Parts = steps.Parts(in)
	var metrics []report.Metric
	c.Section, metrics = steps.Section.Part(in)
	main := ""
	if at := slices.IndexFunc(c.Groups, func(g report.UnitGroup) bool { return g.Main }); at >= 0 {
		main = c.Groups[at].ID
	}
	c.Metrics = make(report.CutMetrics, 0, len(metrics))
	for i := range metrics {
		m := &metrics[i]
		if m.Group == main && m.Labels["phase"] != "" {
			continue
		}
		c.Source.Add(&m.Source)
		m.Histogram, m.Source = nil, report.Source{Tables: []string{}, Columns: []string{}}
		c.Metrics = append(c.Metrics, *m)
	}
	c.Metrics.Order()
	return c
}

// maxGroups bounds the kinds of unit that a report lists: a server whose every step has its own batch size has
// thousands.
const maxGroups = 200

// mostFrequent keeps the main kind and those with most units, in their order, and counts the others together.
func mostFrequent(groups []report.UnitGroup) []report.UnitGroup {
	if len(groups) <= maxGroups {
		return groups
	}
	order := lists.Indexes[int](len(groups))
	lists.Falling(order, func(i int) float64 { return float64(groups[i].Count) })
	lists.Lead(order, func(i int) bool { return groups[i].Main })
	slices.Sort(order[:maxGroups])
	kept := lists.Map(order[:maxGroups], func(i int) report.UnitGroup { return groups[i] })
	return append(kept, report.UnitGroup{ID: kit.OtherGroups, Phase: kit.OtherGroups,
		Count: lists.Sum(order[maxGroups:], func(i int) int64 { return groups[i].Count })})
}

// citeKept leaves in findings and remarks only numbers that are in the report: one that the input does not state, or
// that a limit (--kernel-limit, --top) kept out, is not cited. A metric that no section declares is a mistake of a
// section, and stays for the writer to refuse.
func citeKept(r *report.Report) {
	kept, declared := lists.Set(r.Metrics, func(m report.Metric) string { return report.MetricKey(m.ID, m.Labels) }), map[string]bool{}
	for _, s := range sections {
		for i := range s.Metrics {
			declared[s.Metrics[i].ID] = true
		}
	}
	gone := func(ref report.MetricRef) bool {
		return declared[ref.ID] && !kept[report.MetricKey(ref.ID, ref.Labels)]
	}
	for i := range r.Findings {
		r.Findings[i].Evidence = slices.DeleteFunc(r.Findings[i].Evidence, gone)
	}
	for i := range r.Remarks {
		r.Remarks[i].Evidence = slices.DeleteFunc(r.Remarks[i].Evidence, gone)
	}
}
