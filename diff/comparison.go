// Package diff compares reports: what changed per unit of work, why, and whether it is real. Reports go in, one or
// several a side; a [Comparison] with a verdict comes out. It knows analyze/report and nothing else of this module: no
// trace, no SQLite, no GitHub.
package diff

import "github.com/nsys-llm/explain/analyze/report"

// SchemaID names the format of a comparison.
const SchemaID = "explain.comparison/1"

// Comparison is everything explain says of two sides. Times are ns; ratios are head over base; unknown is null.
type Comparison struct {
	Schema      string       `json:"schema"`
	Tool        report.Tool  `json:"tool"`
	Verdict     Verdict      `json:"verdict"`
	Cause       string       `json:"cause"` // one sentence, derived by rule from the tables below
	Comparable  bool         `json:"comparable"`
	Reasons     []Reason     `json:"reasons"` // why not comparable, or not conclusive
	Base        Side         `json:"base"`
	Head        Side         `json:"head"`
	Unit        Unit         `json:"unit"`
	Primary     []Row        `json:"primary"`
	Attribution Attribution  `json:"attribution"`
	Kernels     []Kernel     `json:"kernels"`
	API         []API        `json:"api"`
	Structure   []Structural `json:"structure"` // new blocking call, graph coverage lost, launches per unit, …
	Mix         []Mix        `json:"mix"`       // units by phase and batch on both sides: a change of mix is no change of cost
	Gates       []Gate       `json:"gates"`
	Residue     []Residue    `json:"residue"`
	Counts      Counts       `json:"counts"`
}

// Verdict of a comparison or of one rule.
type Verdict string

// Verdicts, from best to worst. Error means that explain itself failed.
const (
	Pass         Verdict = "pass"
	Warn         Verdict = "warn"
	Inconclusive Verdict = "inconclusive"
	Fail         Verdict = "fail"
	Error        Verdict = "error"
)

// Class of a change.
type Class string

// Classes of a change.
const (
	Improved  Class = "improved"
	Regressed Class = "regressed"
	Same      Class = "same"
	Added     Class = "added"
	Removed   Class = "removed"
	Unsettled Class = "inconclusive"
)

// Code of a reason.
type Code string

// Reason codes (design.md, section 6).
const (
	DifferentWork        Code = "different_work"
	NoUnit               Code = "no_unit"
	EmptySide            Code = "empty_side"
	EnvironmentMismatch  Code = "environment_mismatch"
	GraphCaptureMismatch Code = "graph_capture_mismatch"
	MissingMetric        Code = "missing_metric"
	LowCoverage          Code = "low_coverage"
	NothingMatched       Code = "nothing_matched"
	WideInterval         Code = "wide_interval"
)

// Reason says why in one sentence, and what would help.
type Reason struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

// Side names what was compared, without paths.
type Side struct {
	Names    []string `json:"names"`
	Captures int      `json:"captures"`
}

// Unit says what was compared per what.
type Unit struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Phase string `json:"phase"`
	Batch *int64 `json:"batch"`
	BaseN int64  `json:"base_n"`
	HeadN int64  `json:"head_n"`
}

// Interval is a confidence interval of a ratio of head to base, with its level.
type Interval struct {
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Level  float64 `json:"level"`
	Method string  `json:"method"`
}

// Row compares one metric.
type Row struct {
	Metric       string        `json:"metric"`
	Labels       report.Labels `json:"labels"`
	Unit         string        `json:"unit"`
	Base         *float64      `json:"base"`
	Head         *float64      `json:"head"`
	Delta        *float64      `json:"delta"`
	Ratio        *float64      `json:"ratio"` // head over base
	Class        Class         `json:"class"`
	Why          string        `json:"why"` // how the class was decided, with the numbers it can be checked by
	NBase        int64         `json:"n_base"`
	NHead        int64         `json:"n_head"`
	Interval     *Interval     `json:"interval"`
	NoiseFloor   *float64      `json:"noise_floor"` // ratio, e.g. 0.05
	P            *float64      `json:"p"`
	PAdjusted    *float64      `json:"p_adjusted"`
	EffectSize   *float64      `json:"effect_size"`
	NeedCaptures *int64        `json:"need_captures"` // a side, that would settle an inconclusive row
	Unreplicated bool          `json:"unreplicated"`  // one capture on a side
}

// Attribution splits the change of one metric into parts that sum to it.
type Attribution struct {
	Metric     string           `json:"metric"`
	TotalDelta float64          `json:"total_delta"`
	Rows       []AttributionRow `json:"rows"` // kind class; the rows of each kind sum to the total or to their class
	Residual   float64          `json:"residual"`
}

// AttributionRow is one part. Kind is class, category, kernel, idle_cause or others.
type AttributionRow struct {
	ID            string   `json:"id"`
	Kind          string   `json:"kind"`
	Base          float64  `json:"base"`
	Head          float64  `json:"head"`
	Delta         float64  `json:"delta"`
	CountEffect   *float64 `json:"count_effect"`
	PerCallEffect *float64 `json:"per_call_effect"`
}

// Kernel compares one kernel, or a pair of kernels where one replaced the other.
type Kernel struct {
	BaseName      *string  `json:"base_name"`
	HeadName      *string  `json:"head_name"`
	PairedBy      string   `json:"paired_by"` // exact, canonical, family, position; empty for added and removed
	Category      string   `json:"category"`
	Base          *float64 `json:"base"` // mean time per unit, ns
	Head          *float64 `json:"head"`
	Delta         float64  `json:"delta"`
	Ratio         *float64 `json:"ratio"`
	BaseCount     *float64 `json:"base_count"` // mean count per unit
	HeadCount     *float64 `json:"head_count"`
	CountEffect   float64  `json:"count_effect"`
	PerCallEffect float64  `json:"per_call_effect"`
	Share         *float64 `json:"share"` // of the base unit
	Class         Class    `json:"class"`
	Why           string   `json:"why"`
	P             *float64 `json:"p"`
	PAdjusted     *float64 `json:"p_adjusted"`
}

// API compares one host call per unit.
type API struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`       // launch, sync, copy
	BaseCount *float64 `json:"base_count"` // calls per unit
	HeadCount *float64 `json:"head_count"`
	BaseMean  *float64 `json:"base_mean"` // ns per call
	HeadMean  *float64 `json:"head_mean"`
	Ratio     *float64 `json:"ratio"` // of the means
	Class     Class    `json:"class"`
}

// Structural is a change of what is done rather than of how long it takes.
type Structural struct {
	ID    string   `json:"id"`
	Text  string   `json:"text"`
	Base  *float64 `json:"base"`
	Head  *float64 `json:"head"`
	Class Class    `json:"class"`
}

// Mix counts the units of one kind on both sides.
type Mix struct {
	Phase     string   `json:"phase"`
	Batch     *int64   `json:"batch"`
	BaseCount int64    `json:"base_count"`
	HeadCount int64    `json:"head_count"`
	BaseTime  *float64 `json:"base_time"` // mean, ns
	HeadTime  *float64 `json:"head_time"`
}

// Gate is one rule as it was judged.
type Gate struct {
	Rule      string        `json:"rule"`
	Metric    string        `json:"metric"`
	Labels    report.Labels `json:"labels"`
	Level     string        `json:"level"` // error or warn
	Threshold string        `json:"threshold"`
	Base      *float64      `json:"base"`
	Head      *float64      `json:"head"`
	Delta     *float64      `json:"delta"`
	Ratio     *float64      `json:"ratio"`
	Class     Class         `json:"class"`
	Verdict   Verdict       `json:"verdict"`
	Reason    string        `json:"reason"`
}

// Residue is something that differs between the sides and was not compared.
type Residue struct {
	Field string `json:"field"`
	Base  string `json:"base"`
	Head  string `json:"head"`
	Soft  bool   `json:"soft"` // warned of; otherwise named only
}

// Counts says how much was looked at, even when nothing changed.
type Counts struct {
	GatesChecked    int64 `json:"gates_checked"`
	MetricsCompared int64 `json:"metrics_compared"`
	KernelsCompared int64 `json:"kernels_compared"`
	KernelsPaired   int64 `json:"kernels_paired"`
	UnitsBase       int64 `json:"units_base"`
	UnitsHead       int64 `json:"units_head"`
}
