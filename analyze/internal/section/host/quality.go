package host

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	units "github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

var Quality = kit.Section{
	ID: "quality", Group: report.GroupCapture, Title: "Capture quality", Long: true,
	Derivation: "Checks whether the capture is complete, whether rows, times and pids are plausible, and whether the " +
		"window shows the steady state. Each check says what it counted, or why it could not be made.",
	Findings: []kit.FindingDef{{ID: "host_place", Title: "No kernel was captured, and one place holds much of the host's time"}},
	Metrics: []report.MetricDef{
		kit.TotalTime("capture.place_time", report.Lower, report.Leave, "in a capture without kernels, time of one "+
			"thread inside this range or CUDA call, if it is 30 % of capture.host_time or more").By("range", "api"),
		kit.TotalTime("capture.host_time", report.None, report.Leave, "in a capture without kernels, time from the "+
			"first to the last of its ranges, or of its CUDA calls if no range is named"),
		kit.Ratio("quality.unjoined_kernels", report.Lower, report.RatioOf("", "kernel.count"),
			"share of the window's kernels whose launch call is not in the capture"),
		kit.Ratio("quality.lost_kernels", report.Lower, report.Max, "share of the calls that launch a kernel, from "+
			"the first to the last in the window that has one, whose kernel is not in the capture"),
		kit.Ratio("quality.hidden_graph_launches", report.Lower, report.Max, "share of the launches of CUDA graphs "+
			"that have no GPU time under them: no kernel, copy, memset or graph trace"),
		kit.Ratio("quality.incomplete_units", report.Lower, report.Max,
			"share of the units of work with missing events: launches without their kernel, copy or graph among "+
				"others that have theirs, kernels without their launch call after others that have it"),
		kit.ExactCount("quality.skipped_rows", report.Lower, report.Sum, "rows left out of every sum: NULL times, end "+
			"before start, or times that no capture can hold (days away from the other rows)"),
		kit.ExactCount("quality.lost_data_messages", report.Lower, report.Sum,
			"messages of nsys which say that events are missing from the capture"),
		kit.TotalTime("quality.profiler_overhead", report.Lower, report.Sum,
			"time the profiler spent on itself in the application's threads, added up over threads"),
		kit.Ratio("quality.profiler_overhead_ratio", report.Lower, report.Max,
			"share of the window that the profiler's own overhead covers in some thread"),
		kit.TotalTime("quality.longest_gap", report.Lower, report.Max,
			"longest time in the window in which no device worked"),
		kit.Ratio("quality.longest_gap_ratio", report.Lower, report.Max, "the same as a share of the window"),
		kit.ExactLevel("quality.open_ranges", report.None, report.Sum,
			"NVTX ranges still open when the capture stopped"),
		kit.ExactCount("quality.unknown_process", report.Lower, report.Sum, "kernels that name no process"),
		kit.ExactCount("quality.unknown_device", report.Lower, report.Sum, "kernels that name no device"),
	},
	Tables: []report.Table{
		{ID: "quality", Title: "Checks", File: "quality.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("check", "Check"),
			kit.TextCol("result", "Result"),
			kit.CountCol("count", "Count"),
			kit.NsCol("time", "Time", "time_ns", "time_ms"),
			kit.RatioCol("share", "Share", "pct"),
		}},
	},
	Run: quality,
}

// Bounds from which a check warns.
const (
	unjoinedWarn  = 0.01
	lostWarn      = 0.02
	overheadWarn  = 0.05
	pidShareWarn  = 0.80 // nsys-llm-explainer's, as is the next one
	largePid      = 10_000_000
	sharedWarn    = 0.01
	uncheckable   = 1e6 // ns
	shortestMean  = 100 // ns
	longestMeanNs = 10e9
)

// measured is the count of a check: events or nanoseconds, and their share of all.
type measured struct {
	count, time, share report.Cell
}

func counted(n int64, share *float64) measured {
	return measured{count: report.I(n), share: kit.Cell(share)}
}

func timed(ns int64, share *float64) measured {
	return measured{time: report.I(ns), share: kit.Cell(share)}
}

// checked is what became of a check, with a warning if it matters.
type checked struct {
	result string
	measured
	code, warning string
}

func passed(m measured) *checked { return &checked{result: "ok", measured: m} }

func unchecked(why string) *checked { return &checked{result: "not checked: " + why} }

func failed(m measured, code, text string) *checked { return &checked{"warning", m, code, text} }

// that is a check that fails if bad is true.
func that(bad bool, m measured, code, text string) *checked {
	if bad {
		return failed(m, code, text)
	}
	return passed(m)
}

// checks are in the order of the table: those that matter most to other numbers first. A check that does not apply to a
// capture returns nil.
var checks = []struct {
	name string
	make func(in *kit.Input, out *kit.Output) *checked
}{
	{"GPU work of the launch calls was captured", checkGPUWork},
	{"kernels have their launch call", checkLaunchCalls},
	{"launch calls have their kernel", checkLostKernels},
	{"launches of CUDA graphs have GPU time", checkGraphLaunches},
	{"units of work have all their events", checkUnits},
	{"nsys reports no problem", checkMessages},
	{"kernels inside CUDA graphs are visible", checkGraphs},
	{"rows have sound times", checkRows},
	{"copies have plausible sizes, kinds and rates", checkCopies},
	{"no single gap dominates the window", checkWindow},
	{"times are in nanoseconds", checkTimeUnit},
	{"process ids are plausible", checkPIDs},
	{"the profiler itself took little time", checkOverhead},
	{"kernels name their process", checkProcesses},
	{"kernels name their device", checkDevices},
	{"kernels have names", checkKernelNames},
	{"NVTX ranges were closed", checkOpenRanges},
}

func formatCount(n int64) string   { return units.Format(float64(n), report.Count) }
func formatRatio(v float64) string { return units.Format(v, report.Ratio) }
func formatTime(ns int64) string   { return units.Format(float64(ns), report.Nanoseconds) }

func quality(in *kit.Input, out *kit.Output) {
	t := out.Table("quality")
	for _, c := range checks {
		x := c.make(in, out)
		if x == nil {
			continue
		}
		t.Row(kit.Text("check", c.name), kit.Text("result", x.result), kit.Put("count", x.count), kit.Put("time", x.time),
			kit.Put("share", x.share))
		if x.code != "" {
			out.Warn(x.code, x.warning)
		}
	}
	t.Add()
	privateNames(in, out)
	if !in.Trace.RanKernels() && in.CallStats().InCapture(func(n *trace.APIName) bool { return n.Launch }) == 0 {
		hostOnly(in, out)
	}
}

// checkGPUWork tells "not captured" from "no GPU work".
func checkGPUWork(in *kit.Input, out *kit.Output) *checked {
	t := in.Trace
	if len(in.Timeline.Devices) == 0 && t.Kernels.Len() == 0 && !in.Trace.Tables.Has(trace.RoleAPI) {
		return failed(measured{}, "no_gpu_work",
			"The capture holds no GPU work and no CUDA call. Trace the process that uses the GPU, with --trace=cuda,nvtx and while it works.")
	}
	launches := in.CallStats().InCapture(func(n *trace.APIName) bool { return n.Launch })
	if launches == 0 && !in.Trace.RanKernels() {
		return failed(measured{}, "no_kernels", "No kernel ran in this capture, only "+
			otherWork(in)+": capture while the workload computes, with --trace=cuda,nvtx. How well the GPU was used is unknown.")
	}
	if !in.Trace.Tables.Has(trace.RoleAPI) {
		return unchecked("no API calls")
	}
	if !in.Trace.API.Named() {
		return failed(measured{}, "no_strings", "The names of the API calls are missing: "+kit.NoCallNames+". Launches and blocking calls are unknown.")
	}
	return that(launches > 0 && t.Kernels.Len() == 0 && t.Graphs.Len() == 0, counted(launches, nil),
		"gpu_activity_missing",
		"The capture has "+formatCount(launches)+" launch calls and no kernel: GPU activity was not captured (seen under WSL2, without permission to trace the GPU, or with another tool holding CUPTI). This is not the same as no GPU time.")
}

// otherWork counts the activity of a capture without kernels.
func otherWork(in *kit.Input) string {
	t := in.Trace
	var parts []string
	for _, x := range []struct {
		n    int
		noun string
	}{{t.Copies.Len(), "copy"}, {t.Sets.Len(), "memset"}, {t.API.Len(), "CUDA call"}, {t.Ranges.Len(), "NVTX range"}} {
		if x.n > 0 {
			parts = append(parts, wording.Count(x.n, x.noun))
		}
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// checkUnits counts the steps that miss events. A gap in the ids that join calls and kernels is not a loss: most calls
// that nsys does not record also take one.
func checkUnits(in *kit.Input, out *kit.Output) *checked {
	n, of := in.Units.Incomplete()
	if of == 0 || !in.Trace.Tables.Has(trace.RoleAPI) || !joins(in) {
		return unchecked("no units whose kernels and calls can be joined")
	}
	ratio := stat.Ratio(n, of)
	out.From(trace.RoleAPI, in.Trace.API.Len(), "correlationId", "nameId")
	out.Source.With(trace.RoleKernel, "correlationId", "globalPid")
	out.Metric("quality.incomplete_units", nil, ratio)
	what := "they are left out"
	if *ratio > workunit.MostIncomplete {
		what = "counts, busy times and launches are lower bounds. Record a shorter time, or trace less"
	}
	return that(n > 0, counted(n, ratio), "incomplete_units", formatCount(n)+" of "+formatCount(of)+
		" units of work ("+formatRatio(*ratio)+") miss events, launches without their kernel or kernels without their call: "+what+".")
}

// joins reports whether the export says which call launched a kernel.
func joins(in *kit.Input) bool {
	has := &in.Trace.Has
	return has.KernelCorrelation && has.APICorrelation && has.KernelPID
}

// doubt is what a kind of nsys' own messages is about.
type doubt struct{ code, what string }

var doubted = []doubt{
	{"not_started", "tracing may not have started in some process"},
	{"events_dropped", "events were dropped"},
	{"out_of_memory", "the profiler ran out of memory"},
}

// incomplete lists the kinds of events that such a message says may be missing.
var incomplete = []doubt{{"cuda_incomplete", "CUDA"}, {"nvtx_incomplete", "NVTX"}}

// checkMessages notes nsys' messages about its own work. nsys writes them for most captures of programs that outlive
// it: only missing events are evidence of loss.
func checkMessages(in *kit.Input, out *kit.Output) *checked {
	list := in.Trace.Diagnostics
	if len(list) == 0 {
		return unchecked("no messages of nsys in the export")
	}
	counts := map[string]int64{}
	var errors, lost int64
	for _, d := range list {
		counts[d.Code]++
		if d.Code == "" && d.Severity == severityError {
			errors++
		}
	}
	among := func(kinds []doubt) (list []string) {
		for _, m := range kinds {
			if n := counts[m.code]; n > 0 {
				lost += n
				list = append(list, m.what)
			}
		}
		return list
	}
	said, missing := among(doubted), among(incomplete)
	if len(missing) > 0 {
		said = append(said, strings.Join(missing, " and ")+" events may be missing")
	}
	out.Source.Source = report.Source{Tables: []string{"DIAGNOSTIC_EVENT"}, Columns: []string{"severity", "text"},
		Rows: int64(len(list))}
	out.Int("quality.lost_data_messages", nil, lost)
	if lost == 0 && errors == 0 {
		return passed(counted(0, nil))
	}
	if lost > 0 {
		measured := "all steps are complete"
		switch n, _ := in.Units.Incomplete(); {
		case n > 0 && in.Trace.Tables.Has(trace.RoleAPI) && joins(in):
			measured = "some steps miss events"
		case len(in.Units.Units) == 0:
			measured = "there is no step to check"
		case !in.Trace.Tables.Has(trace.RoleAPI) || !joins(in):
			measured = "whether steps miss any is unknown"
		}
		out.Warn("lost_data", "nsys ("+wording.Count(lost, "message")+"): "+strings.Join(said, ", ")+"; "+measured+".")
	}
	if errors > 0 {
		out.Warn("nsys_errors", "nsys recorded "+wording.Count(errors, "error")+" that explain does not know: look at the diagnostics summary in the Nsight Systems window.")
	}
	return &checked{result: "warning", measured: counted(lost+errors, nil)}
}

// severityError is nsys' number of an error: 1 is information, 2 a warning.
const severityError = 3

// checkLaunchCalls counts kernels whose launch is missing, as in a capture that starts in the middle.
func checkLaunchCalls(in *kit.Input, out *kit.Output) *checked {
	k, has := &in.Trace.Kernels, &in.Trace.Has
	lo, hi := k.Starting(in.Span.Start, in.Span.End)
	switch {
	case hi == lo:
		return unchecked("no kernels")
	case !in.Trace.Tables.Has(trace.RoleAPI):
		return failed(measured{}, "no_api_calls",
			"The capture has kernels and no API calls ("+in.Lack(trace.RoleAPI)+"): launches, idle causes and NVTX attribution are unknown.")
	case !has.KernelCorrelation || !has.APICorrelation:
		return failed(measured{}, "no_correlation",
			"The export has no correlationId: kernels cannot be joined to the calls that launched them, so idle causes and "+
				"NVTX attribution are unknown.")
	case !has.KernelPID:
		return failed(measured{}, "no_process_column",
			"The export does not say which process a kernel belongs to (no "+
				"globalPid in "+in.Trace.Tables.Name(trace.RoleKernel)+"): kernels cannot be joined to the calls that launched them, so "+
				"idle causes and NVTX attribution are unknown.")
	}
	missing := int64(lists.Count(in.Calls.Kernel[lo:hi], func(call int32) bool { return call == trace.None }))
	ratio := stat.Ratio(missing, int64(hi-lo))
	out.From(trace.RoleKernel, hi-lo, "correlationId", "globalPid")
	out.Source.With(trace.RoleAPI, "globalTid")
	out.Metric("quality.unjoined_kernels", nil, ratio)
	return that(*ratio >= unjoinedWarn, counted(missing, ratio), "unjoined_kernels",
		formatCount(missing)+" of "+formatCount(int64(hi-lo))+" kernels ("+formatRatio(*ratio)+") have no launch call in the capture: it was cut out of a longer one, or API rows were lost. They count in all GPU times, but not in NVTX coverage, phases and idle causes.")
}

func checkRows(in *kit.Input, out *kit.Output) *checked {
	if m := &in.Trace.Meta; m.Cut {
		out.Warn("cut_file", "The file is cut off: the profiler was stopped while it wrote. The part before is read.")
	}
	if m := &in.Trace.Meta; m.Resolution > 1 {
		out.Warn("coarse_times", "Times are whole multiples of "+formatCount(m.Resolution)+" ns: a single duration may be off by as much.")
	}
	if m := &in.Trace.Meta; m.Loose > 0 {
		out.Warn("loose_json", formatCount(m.Loose)+" places of the file are not valid JSON or repeat a key: NaN counts "+
			"as unknown, and the last value of a repeated key counts.")
	}
	tables := in.Trace.Tables
	if len(tables) == 0 {
		return unchecked("no event tables")
	}
	var skipped, rows int64
	var names []string
	for _, t := range tables {
		skipped += t.Skipped
		rows += t.Rows
		names = append(names, t.Name)
	}
	out.Source.Source = report.Source{Tables: names, Columns: []string{"start", "end"}, Rows: rows}
	out.Int("quality.skipped_rows", nil, skipped)
	if skipped == 0 {
		return passed(counted(0, nil))
	}
	for _, t := range tables {
		if t.Skipped > 0 {
			out.Warn("skipped_rows", "Table "+t.Name+": "+formatCount(t.Skipped)+" of "+formatCount(t.Rows)+" rows have no start or end, end before they start, or lie days away from the rest of the capture. No sum includes them.")
		}
	}
	return &checked{result: "warning", measured: counted(skipped, stat.Ratio(skipped, rows))}
}

// checkCopies counts copies and memsets with values that no hardware can reach.
func checkCopies(in *kit.Input, out *kit.Output) *checked {
	var odd, rows int64
	for _, t := range in.Trace.Tables {
		if t.Role == trace.RoleMemcpy || t.Role == trace.RoleMemset {
			odd += t.Odd
			rows += t.Rows
		}
	}
	if rows == 0 {
		return unchecked("no copies and no memsets")
	}
	return that(odd > 0, counted(odd, stat.Ratio(odd, rows)), "impossible_copies",
		formatCount(odd)+" of "+formatCount(rows)+" copies and memsets have impossible values: a size below 0 or above 4 "+
			"TiB (it counts as 0 bytes), a kind that explain does not know, or more bytes than any link or memory moves in "+
			"their time. Bytes and throughput of copies are wrong by as much.")
}
