// Package report is the model of an analysis: what explain says about one capture, as data.
//
// A [Report] is the result of analyze, the content of report.json, and the only input of comparisons and renderers. The
// package knows nothing of traces, of SQLite or of output formats, and imports the standard library only.
//
// Conventions that hold for every value in it:
//
//   - Times are in nanoseconds, sizes in bytes, shares are ratios in [0,1]. Scaling is the renderer's work.
//   - Unknown is null, never zero. NaN and infinities never appear ([Report.Validate] refuses them).
//   - Slices are never null, and their order is part of the content: the same input gives the same bytes.
package report

import "fmt"

// SchemaID names the format of report.json. Additive fields keep the major number behind the slash; removing or
// redefining a field or a metric id raises it.
const SchemaID = "explain.report/1"

// Report is the whole analysis of one capture.
type Report struct {
	Schema      string         `json:"schema"`
	Tool        Tool           `json:"tool"`
	Trace       Provenance     `json:"trace"`
	Capture     Capture        `json:"capture"`
	Evidence    []EvidenceFile `json:"evidence"`
	Environment Environment    `json:"environment"`
	Window      Window         `json:"window"`
	Unit        Unit           `json:"unit"`
	Metrics     []Metric       `json:"metrics"`
	Sections    []Section      `json:"sections"`
	Findings    []Finding      `json:"findings"`
	Remarks     []Remark       `json:"remarks"`
	Warnings    []Warning      `json:"warnings"`
}

// Tool names the program that wrote the report.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Provenance says which file the report was made from. It holds no path, only the file's own name.
type Provenance struct {
	Name string `json:"name"`
	// nsys-sqlite, nsys-rep when explain exported it itself, pytorch-profiler; without a trace the kind of the first
	// evidence
	Kind string `json:"kind"`
	// nsys, pytorch or pytorch-rocm: who recorded the capture; empty without one
	Source          string       `json:"source,omitempty"`
	Bytes           int64        `json:"bytes"`
	ExporterVersion *string      `json:"exporter_version"` // version of nsys that wrote the SQLite file
	SchemaVersion   *string      `json:"schema_version"`   // version of nsys' export schema
	Tables          []TableCount `json:"tables"`           // the tables that were read
	Maps            []MapFile    `json:"maps,omitempty"`   // the files that name phases and kernels
	Run             *MeasuredBy  `json:"run,omitempty"`    // of GitHub Actions, where the action's command report made it
}

// MeasuredBy is the run of a workflow that made a report, so that a report left behind by another run is recognised.
type MeasuredBy struct {
	ID      int64  `json:"id"`
	Attempt int64  `json:"attempt"`
	Base    string `json:"base,omitempty"` // branch that the change was to be merged into
}

// MapFile is a file that defines the meaning of names: reports made with different ones call the same work differently.
type MapFile struct {
	Kind string `json:"kind"` // phase or kernel
	Name string `json:"name"` // of the file, without its folder
	Hash string `json:"hash"` // of its content, in hexadecimal
}

// TableCount is the size of one input table. Skipped rows (NULL times, end before start) enter no sum.
type TableCount struct {
	Name    string `json:"name"`
	Rows    int64  `json:"rows"`
	Skipped int64  `json:"skipped"`
}

// EvidenceFile is one artifact that was read beside the trace, or instead of one: Records = Understood +
// Known + Unknown.
type EvidenceFile struct {
	Name       string  `json:"name"`   // the file's own name, or its path below the folder that was named
	Kind       string  `json:"kind"`   // ncu-csv, server-log, prometheus, profiler-session, llm-perf-opt, load
	Format     string  `json:"format"` // what exactly it is: raw page, vLLM V1, …
	Version    *string `json:"version"`
	Bytes      int64   `json:"bytes"`
	Records    int64   `json:"records"`    // lines of a log, rows of a table
	Understood int64   `json:"understood"` // something was taken from them
	Known      int64   `json:"known"`      // of a known form that holds nothing to take
	Unknown    int64   `json:"unknown"`    // of no known form
}

// Environment describes where the capture was made, from an allow-list of keys: nothing else of a capture's environment
// is ever read. [EnvironmentFields] says how a difference in each field affects a comparison.
type Environment struct {
	GPUs []GPU `json:"gpus"` // the devices that did work
	// who recorded the capture if it was not nsys: pytorch
	Source *string `json:"source,omitempty"`
	// CUDA graphs traced per "graph" or per "node"; null if no graph was seen
	GraphTrace     *string `json:"graph_trace"`
	Model          *string `json:"model"`
	DType          *string `json:"dtype"`
	Quantization   *string `json:"quantization"`  // fp8, mxfp4, awq, …
	Parallelism    *string `json:"parallelism"`   // tp4, tp4 pp2, …
	MaxModelLen    *int64  `json:"max_model_len"` // tokens
	MaxNumSeqs     *int64  `json:"max_num_seqs"`
	Engine         *string `json:"engine,omitempty"`          // who served, with its version: vLLM 0.10.0
	EngineSettings *string `json:"engine_settings,omitempty"` // how, in parts separated by "; ": prefix caching yes; eager no
	// Python packages with their versions, in parts separated by ", ": torch 2.6.0+cu124, transformers 4.46.3
	Packages *string `json:"packages,omitempty"`
	// what explain load asked of the server, in parts separated by "; ": options, and a fingerprint last
	Load            *string  `json:"load"`
	Driver          *string  `json:"driver"`
	CUDA            *string  `json:"cuda"`            // version of CUDA that the driver supports
	CaptureVersion  *string  `json:"capture_version"` // version of nsys that captured, where the file says it
	OS              *string  `json:"os"`
	CPU             *string  `json:"cpu"`
	Clocks          *string  `json:"clocks,omitempty"` // of GPUs with counters: steady, or throttled where one fell
	TraceSet        []string `json:"trace_set"`        // what was traced (cuda, nvtx, osrt, …)
	ExporterVersion *string  `json:"exporter_version"`
	SchemaVersion   *string  `json:"schema_version"`
}

// GPU is one device that did work in the capture. Attributes are null if the capture does not state them.
type GPU struct {
	Device          int      `json:"device"` // the deviceId of the event rows
	Name            *string  `json:"name"`
	Chip            *string  `json:"chip"`
	SMs             *int64   `json:"sms"`
	MemoryBytes     *int64   `json:"memory_bytes"`
	MemoryBandwidth *float64 `json:"memory_bandwidth"` // bytes per second
	ClockHz         *float64 `json:"clock_hz"`
	ComputeCap      *string  `json:"compute_capability"`
}

// Window is the part of the capture that was analysed, in the capture's own nanoseconds, common to all devices.
type Window struct {
	Start  int64 `json:"start"`
	End    int64 `json:"end"`
	Length int64 `json:"length"`
	// capture, range (--from/--to), nvtx (--window), steady (--steady), host (no GPU work), empty
	Mode string `json:"mode"`
	Why  string `json:"why"`
}

// Unit describes one step of the workload, how it was found, and how many of them were kept.
type Unit struct {
	Kind    string      `json:"kind"` // nvtx, graph, kernel, none; iteration where it comes from a log
	Name    string      `json:"name"` // marker pattern, anchor kernel, or empty
	Why     string      `json:"why"`  // one sentence: how it was found, or why none was
	Groups  []UnitGroup `json:"groups"`
	Trimmed UnitTrim    `json:"trimmed"`
	// Coverage is the share of the GPU's compute time, 0 to 1, inside units, including those of the warm-up and those
	// that an end of the capture cut.
	Coverage *float64 `json:"coverage"`
	// where units may start, the best first; of those found in the kernel sequence or by the program's own ranges
	Anchors []UnitAnchor `json:"anchors,omitempty"`
	Series  *UnitSeries  `json:"series,omitempty"`
	Steps   *UnitSteps   `json:"steps,omitempty"`
	Parts   []*UnitParts `json:"parts,omitempty"`
	Cuts    []UnitCut    `json:"cuts,omitempty"` // what the report would be at the other anchors, see [Report.CutAt]
}

// UnitAnchor is one to three kernels in a row at which each unit starts, or the program's own ranges that are its
// units. Two captures that are cut at the same anchor have the same unit of work.
type UnitAnchor struct {
	Names    []string `json:"names"`            // canonical names of the kernels, or their families, or the ranges
	Ranges   bool     `json:"ranges,omitempty"` // names are ranges, with # for each number
	Start    int      `json:"start"`            // at which of them the unit starts, from 0
	Families bool     `json:"families"`         // names are families: library, operation and type
	Merged   bool     `json:"merged"`           // kernels of all streams follow each other, not of the one with most compute alone
	Paired   bool     `json:"paired,omitempty"` // two kinds of different kernels alternate, and one of each is a unit
	Coverage float64  `json:"coverage"`         // share of compute time in units of kinds that recur, 0 to 1
	Count    int64    `json:"count"`            // how often it occurs
	Used     bool     `json:"used"`             // this report's units start there; one at most
}

// UnitGroup is one kind of unit: same phase, same batch size, same work.
type UnitGroup struct {
	ID    string `json:"id"`    // names the kind within this report; metrics of the kind carry it as their group
	Main  bool   `json:"main"`  // the kind that the report's unlabelled metrics are of; one at most
	Phase string `json:"phase"` // prefill, decode, mixed, step, …
	Batch *int64 `json:"batch"` // where the marker carries it
	// prompt tokens of the step, rounded up to a power of two, if the marker states them
	Tokens    *int64 `json:"tokens"`
	Signature string `json:"signature"` // hash of the canonical kernels and their counts in one unit
	Kernels   int64  `json:"kernels"`   // kernels in one unit (median)
	Count     int64  `json:"count"`     // units kept, over all devices
	Device    *int64 `json:"device"`    // deviceId of the slowest, by the median unit
}

// UnitTrim counts the units that were left out, by reason, and states the rule.
type UnitTrim struct {
	Rule   string `json:"rule"`
	Cut    int64  `json:"cut"`    // incomplete at an end of the window
	Warmup int64  `json:"warmup"` // slower than the rule allows, at the start
	Other  int64  `json:"other"`  // different work
}

// Section is one part of the report, computed by one file of internal/section.
type Section struct {
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	Group      string   `json:"group,omitempty"` // what it stands with on a page, "Step/unit"; before the slash a part of the contents
	Status     Status   `json:"status"`
	Reason     string   `json:"reason"`   // why the status is not ok; empty otherwise
	Coverage   *float64 `json:"coverage"` // share of the data the section could use, if that is a question
	Derivation string   `json:"derivation"`
	Notes      []string `json:"notes"` // limitations and definitions a reader needs
	Tables     []Table  `json:"tables"`
	Charts     []Chart  `json:"charts"`
}

// Groups of sections. Sections of one group stand together, the first of them visible; a section without a group is
// about evidence.
const (
	GroupRanks   = "Step/ranks"
	GroupStep    = "Step/unit"
	GroupTime    = "GPU/time"
	GroupKernels = "GPU/kernels"
	GroupMemory  = "GPU/memory"
	GroupLate    = "Host/late"
	GroupRanges  = "Host/ranges"
	GroupCapture = "Capture"
)

// Status of a section.
type Status string

const (
	OK            Status = "ok"
	Partial       Status = "partial"        // computed from a part of the data, see Reason
	Unavailable   Status = "unavailable"    // the capture lacks the tables or columns, see Reason
	NotApplicable Status = "not_applicable" // the tables are there and hold nothing of this kind
	Error         Status = "error"          // explain failed; the other sections stand
)

func (s Status) Valid() bool {
	return s == OK || s == Partial || s == Unavailable || s == NotApplicable || s == Error
}

// Chart is a drawing as data. Renderers that cannot draw leave it out: its numbers are also in a table or a metric.
//
//	bar        one bar per label; several series stand side by side
//	stacked    one bar per series, made of the parts that the labels name
//	histogram  columns over bins; labels are the lower edges of the bins, as numbers in XUnit
//	strip      one row of equal steps per series; labels are where each step starts, as numbers in XUnit. A series of style
//	           marks follows the row that it marks: its labels are where a stretch starts, its values the share of the row
//	           that the stretch takes
//	line       labels are x, as numbers in XUnit
//	scatter    the same, both axes logarithmic
//	heat       one row per series, one column per label
//	flame      one box per series: its labels are depth, start, total and self, in this order; a box with a category is a kernel
type Chart struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Kind   string   `json:"kind"`
	Unit   string   `json:"unit"`             // base unit of the values
	XUnit  string   `json:"x_unit,omitempty"` // base unit of labels that are numbers; empty: they count
	XTitle string   `json:"x_title,omitempty"`
	Series []Series `json:"series"`
}

// Series is one named row of a chart, with one label for each value.
type Series struct {
	Name string `json:"name"`
	// of line and scatter: line, points; of strip: marks; empty: what the kind draws
	Style  string    `json:"style,omitempty"`
	Labels []string  `json:"labels"`
	Values []float64 `json:"values"`
	// Category of the kernel that a box of a flame is; absent if it is a range.
	Category string `json:"category,omitempty"`
}

// Finding is something a reader should know or do. It quotes no number of its own: evidence points at metrics, and the
// first of them is the number in the title. If the capture has units of work, a finding and its metrics (steady.*)
// cover only the steady part, without load, warm-up and tail.
type Finding struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	// Place is the range, call chain, call, kernel or thread that holds at least 30 % of the time in question; empty if
	// it is not known, or if the title says it.
	Place    string      `json:"place,omitempty"`
	Evidence []MetricRef `json:"evidence"`
	Advice   []string    `json:"advice"`
	Doc      string      `json:"doc"` // id of the section that made it; `explain doc ID` prints its page
	// Worth is how much time could be saved; nil if that is not known.
	Worth *Worth `json:"worth,omitempty"`
}

// Worth is the most time that could be saved if the cause of a finding disappeared: an upper bound, not a forecast. If
// several devices work side by side, it is that of the device with the most to save.
type Worth struct {
	Time  int64  `json:"time"`            // ns that could be won, at most Of
	Of    int64  `json:"of"`              // ns that were looked at: the steady part of the window, else the window
	Units int64  `json:"units,omitempty"` // units of work that the device ran in that time; 0: none are known
	Frame string `json:"frame,omitempty"` // what Of is; empty: the judged steps
	// Replayed says that the units were replayed without the cause of the finding: Time excludes what would then delay
	// them instead.
	Replayed bool `json:"replayed,omitempty"`
}

// Frames of a worth that is not a part of the judged step.
const (
	OfWindow   = "window" // ns of the analysed window
	OfRun      = "run"    // of the run that a log or a load test describes; only the share means something, as in the next
	OfRequests = "requests"
	OfLatency  = "request time"
)

// Share is Time as a part of Of, 0 to 1.
func (w *Worth) Share() float64 { return float64(w.Time) / float64(w.Of) }

// Remark is a fact about the capture or the workload from which no known time can be saved. It has no severity.
type Remark struct {
	ID       string      `json:"id"`
	Title    string      `json:"title"`
	Place    string      `json:"place,omitempty"`
	Evidence []MetricRef `json:"evidence"`
	Advice   []string    `json:"advice"`
	Doc      string      `json:"doc"`
}

// Severity of a finding.
type Severity string

// Severities, most severe first.
const (
	High   Severity = "high"
	Medium Severity = "medium"
	Low    Severity = "low"
)

// SeverityOf is the severity of a finding by its worth, a share of the judged time, 0 to 1.
func SeverityOf(share float64) Severity {
	switch {
	case share >= 0.10:
		return High
	case share >= 0.03:
		return Medium
	}
	return Low
}

// Valid reports whether s is one of the three.
func (s Severity) Valid() bool { return s == High || s == Medium || s == Low }

// MetricRef points at one metric of the same report.
type MetricRef struct {
	ID     string `json:"id"`
	Labels Labels `json:"labels"`
}

// Warning limits the trust in the numbers. It is not an error: the report is valid.
type Warning struct {
	Code    string `json:"code"`
	Section string `json:"section"` // id of the section it concerns; empty for the whole report
	Text    string `json:"text"`
}

// Warnings is a list of warnings in the making.
type Warnings []Warning

// If adds a warning, about the whole report, if something is the case.
func (w *Warnings) If(is bool, code, format string, args ...any) {
	if is {
		*w = append(*w, Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
}
