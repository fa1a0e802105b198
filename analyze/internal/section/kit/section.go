// Package kit is the toolkit of the sections of a report: declarations of metrics and tables, the read-only [Input]
// that all sections share, the [Output] that each writes, and the computations that several need. The families of
// sections (gpu, host, ncu, engine, and package compat) use the kit and never each other; their sections run side by
// side.
//
// To add a section or a metric, follow examples/docs/architecture.md.
package kit

import (
	"fmt"
	"slices"
	"sync"

	"github.com/nsys-llm/explain/analyze/internal/evidence"
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Section declares one part of the report.
type Section struct {
	ID    string // names its file, its test, its page and its golden folder
	Title string
	Group string // group of sections on a page, a report.Group constant; empty: evidence
	// Needs are the tables without which the section is unavailable.
	Needs []trace.Role
	// Work says that the section is unavailable without GPU work.
	Work bool
	// Evidence are the kinds of evidence of which one is needed for the section to be in the report at all. A section
	// without any needs a trace.
	Evidence []file.Kind
	// Asked, if set, says whether the options ask for the section: otherwise the report omits it.
	Asked func(o *Options) bool
	// Findings are the findings it may make; making another one is an error.
	Findings []FindingDef
	// Metrics are the metrics it may emit; emitting another one is an error.
	Metrics []report.MetricDef
	// Tables are the tables it may emit, without rows. Each has a CSV file even if it stays empty.
	Tables []report.Table
	// Derivation says in one or two sentences how the numbers are computed.
	Derivation string
	// Steady says that the findings describe the steady part of the window if the capture has units of work. The
	// section then runs once more on that part.
	Steady bool
	// Early, if set, computes what this one shares with others and takes long, if it needs no gaps: it starts before
	// the sections. Alone does the same for what takes most memory, while nothing else runs.
	Early, Alone func(in *Input)
	// Long says that the section takes longer than most: it starts before the others, so that none waits for it at the
	// end.
	Long bool
	// Gaps, if set, makes visitors, one for each device of the input's timeline, that collect what the section needs
	// from every gap: all sections share one walk over a device, see [Input.Visit]. It makes none if the section needs
	// nothing.
	Gaps func(in *Input) []*timeline.Visitor
	Run  func(in *Input, out *Output)
}

// Options of an analysis that sections use.
type Options struct {
	Top          int     // rows of ranked tables in the report
	DetailRows   int     // rows of a CSV file with a row per event
	AllRows      bool    // every row in every CSV file
	NoDetails    bool    // keep no tables that are files only
	Percentiles  bool    // exact percentiles of kernel durations
	RangeMap     bool    // attribute kernels to NVTX ranges
	CoverageWarn float64 // NVTX coverage, 0..1, below which a warning is given
	GPUPrice     float64 // of a GPU for an hour, in the user's currency; 0: not given
	// Phases of the phase map in the order of the file, or of the built-in patterns. The phase of a range name is in
	// the low bits of its tag, see PhaseOf.
	Phases     []string
	PhasesFrom string // where the phases come from: the map's file name, or "built-in patterns"
}

// Input is what all sections share.
type Input struct {
	Trace    *trace.Trace
	Options  Options
	Window   report.Window
	Span     interval.Interval // the window
	Host     interval.Interval // where host rows count: the window, or everything if the window is the whole capture
	Calls    *timeline.Calls
	Contexts *timeline.Contexts
	Timeline *timeline.Timeline
	Threads  *timeline.Threads
	NVTX     *timeline.NVTX    // nil if kernels are not attributed to ranges
	Kinds    []kernelname.Info // by kernel name
	Units    *workunit.Result
	Evidence *evidence.Set // evidence beside the trace; nil if there is none
	Brief    bool          // only metrics, and tables that a comparison reads
	NoTrace  bool          // evidence alone: the trace is empty, and Calls, Contexts, Timeline and Units are nil
	// Steady is the input of the steady part, from the first to the last kept unit; nil if it is the window or almost
	// the window, or if it is not known.
	Steady *Input
	// Whole is, for the steady part, the input that contains it.
	Whole *Input

	shared sync.Map // values that several sections need, by name: see Once
	walk   gapWalk
	left   leftOut
}

// applies reports whether the section has a place in the report: evidence that was not given is not missed.
func (s *Section) applies(in *Input) bool {
	if s.Asked != nil {
		return s.Asked(&in.Options)
	}
	if len(s.Evidence) == 0 {
		return !in.NoTrace
	}
	return slices.ContainsFunc(s.Evidence, in.Evidence.Has)
}

// broken ends a section that breaks its own declaration: a defect of the program, never of its input. It panics, since
// every caller would only pass an error on to [Section.run], which makes it the status of this section.
func broken(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// run computes one section. A panic becomes a section with status error, so that the others survive.
func (s *Section) run(in *Input) (out *Output) {
	out = newOutput(s, in)
	defer func() {
		if p := recover(); p != nil {
			out = newOutput(s, in)
			out.Status(report.Error, fmt.Sprintf("explain failed here, please report it: %v", p))
		}
	}()
	for _, role := range s.Needs {
		if !in.Trace.Tables.Has(role) {
			out.Status(report.Unavailable, in.Lack(role))
			return out
		}
	}
	if s.Work && len(in.Timeline.Devices) == 0 {
		out.Status(report.Unavailable, in.NoWork())
		return out
	}
	s.Run(in, out)
	for _, m := range out.metrics {
		if m.Summary != nil && !out.defs[m.ID].Stats {
			broken("section %s gives statistics of %s, which declares none", s.ID, m.ID)
		}
	}
	return out
}

// NoCallNames says why calls without names tell nothing.
const NoCallNames = "the export has no table of strings with the names of the API calls: export the .nsys-rep again with --lazy=false"

// GPUName is the model of the trace's devices, if all are alike; empty if it is not known.
func (in *Input) GPUName() (name string) {
	if in.NoTrace {
		return ""
	}
	for i := range in.Timeline.Devices {
		n := in.Trace.GPU(in.Timeline.Devices[i].ID).Name
		if i > 0 && n != name {
			return ""
		}
		name = n
	}
	return name
}

// Lack says why a table is missing, as far as the capture tells.
func (in *Input) Lack(role trace.Role) string {
	name := trace.UsualTable(role)
	switch role {
	case trace.RoleKernel:
		if in.CallStats().InCapture(func(n *trace.APIName) bool { return n.Launch }) > 0 {
			return "the capture has launch calls but no kernels (table " + name +
				"): GPU activity was not captured, which is not the same as no GPU work"
		}
		if in.Trace.Graphs.Len() > 0 {
			return "the capture has no kernel rows (table " + name +
				"): all GPU work ran inside CUDA graphs traced as a whole"
		}
		return "the capture has no kernels (table " + name + ")"
	case trace.RoleCounter:
		return "the capture has no GPU counters (table GPU_METRICS): capture with --gpu-metrics-devices=all"
	case trace.RoleGeneric:
		return "the capture has no events of plugins (table GENERIC_EVENTS): capture with --enable=nvml_metrics"
	case trace.RoleAPI:
		return "the capture has no CUDA API calls (table " + name + "): capture with --trace=cuda"
	case trace.RoleNVTX:
		return "the capture has no NVTX ranges (table " + name +
			"): capture with --trace=nvtx and a workload that emits ranges"
	}
	return "the capture has no table " + name
}

// NoWork says why there is no GPU work.
func (in *Input) NoWork() string {
	if !in.Trace.Tables.Has(trace.RoleKernel) {
		return in.Lack(trace.RoleKernel)
	}
	return "the capture holds no GPU work"
}

// Outputs are the results of the sections, in their order.
type Outputs struct {
	in     *Input
	list   []*Section
	whole  []*Output
	steady []*Output // of the steady part, if there is one: of the sections whose findings describe it
}

// Compute runs the sections, several at a time.
func Compute(sections []*Section, in *Input) *Outputs {
	x := &Outputs{in: in}
	x.list = lists.Filter(sections, func(s *Section) bool { return s.applies(in) })
	x.whole = runEach(in, x.list)
	if in.Steady != nil {
		again := lists.Filter(x.list, func(s *Section) bool { return s.Steady })
		Begin(again, in.Steady)
		x.steady = runEach(in.Steady, again)
	}
	return x
}

// Into puts the output of the sections into a report.
//
// Attachments are tables too long for the report: they are written as CSV only.
func (x *Outputs) Into(r *report.Report) (attachments []report.Table) {
	x.sayOfSteady(r)
	var list []*Finding
	for _, out := range x.whole {
		r.Sections = append(r.Sections, out.section)
		for _, m := range out.metrics {
			r.Metrics = append(r.Metrics, *m)
		}
		list = append(list, out.findings...)
		r.Warnings = append(r.Warnings, out.warnings...)
		attachments = append(attachments, out.files()...)
	}
	engine := x.in.Engine()
	for _, f := range list {
		engine.adviseAll(f.Advice)
	}
	for i := range r.Sections {
		r.Sections[i].Reason = engine.advise(r.Sections[i].Reason)
		engine.adviseAll(r.Sections[i].Notes)
	}
	dedupeLatencies(r)
	replayWorths(x.in, list)
	r.Findings, r.Remarks = rankFindings(x.in.Step(), list)
	limitMetrics(r, x.in.left)
	sayGrouped(r)
	lists.InOrder(r.Warnings, worstFirst, func(w report.Warning) string { return w.Code })
	adviseOnce(r.Findings)
	return attachments
}

// adviseOnce removes advice that an earlier finding gives, unless it is the only advice of a finding.
func adviseOnce(findings []report.Finding) {
	given := map[string]bool{}
	for i := range findings {
		f := &findings[i]
		more := lists.Filter(f.Advice, func(a string) bool {
			again := given[a]
			given[a] = true
			return !again
		})
		if len(more) > 0 {
			f.Advice = more
		}
	}
}

// With is the input with other units of work. Nothing that sections share is computed yet.
func (in *Input) With(units *workunit.Result) *Input {
	return &Input{
		Trace: in.Trace, Options: in.Options, Window: in.Window, Span: in.Span, Host: in.Host, Calls: in.Calls,
		Contexts: in.Contexts, Timeline: in.Timeline, Threads: in.Threads, NVTX: in.NVTX, Kinds: in.Kinds, Units: units,
		Evidence: in.Evidence, NoTrace: in.NoTrace,
	}
}

// Part computes the section by itself and returns its output and metrics.
func (s *Section) Part(in *Input) (report.Section, []report.Metric) {
	out := s.run(in)
	metrics := lists.Map(out.metrics, func(m *report.Metric) report.Metric { return *m })
	return out.section, metrics
}

// GapWarn is the share of the window, 0..1, from which a single gap without GPU work gives a warning.
const GapWarn = 0.20

// worstFirst are the codes of warnings about the whole report, the most important first: the kind of capture, its
// missing parts, and the parts that the window mixes. Others follow in the order of the sections.
var worstFirst = []string{
	"no_gpu_work", "no_kernels", "gpu_activity_missing", "time_unit", "incomplete_units", "hidden_graph_launches", "lost_kernels", "skipped_rows",
	"unjoined_kernels", "no_api_calls", "no_correlation", "no_process_column", "no_strings",
	"shared_device", "window_gap", "impossible_copies", "graph_trace", "phase_map", "unknown_device", "profiler_overhead", "nsys_errors", "lost_data",
}
