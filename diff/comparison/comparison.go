package comparison

import (
	"fmt"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// SchemaID names the format of a comparison.
const SchemaID = "explain.comparison/1"

// Comparison is the whole result about two sides. Times are ns; ratios are head over base; unknown is null.
type Comparison struct {
	Schema     string      `json:"schema"`
	Tool       report.Tool `json:"tool"`
	Verdict    Verdict     `json:"verdict"`
	Study      *Study      `json:"study,omitempty"` // of sides that differ on purpose; absent if they are judged
	Answer     Answer      `json:"answer"`
	Cause      string      `json:"cause"` // the answer in one sentence
	Comparable bool        `json:"comparable"`
	Depth      Depth       `json:"depth"`     // how far down the sides were compared
	Identical  bool        `json:"identical"` // every metric that both sides hold is equal, and there is GPU work
	Reasons    []Reason    `json:"reasons"`   // why not comparable, or not conclusive
	Warnings   []Reason    `json:"warnings"`  // what limits trust in a side, and by itself decides nothing
	Base       Side        `json:"base"`
	Head       Side        `json:"head"`
	Unit       Unit        `json:"unit"`
	Primary    []Row       `json:"primary"`
	// Parts of the units' time, each judged as a series of its own; of one capture a side whose reports list them
	Parts       []Part      `json:"parts,omitempty"`
	Attribution Attribution `json:"attribution" lines:"true"`
	// absent if the sequences of a side are not known, or too different
	Step         *Step        `json:"step,omitempty" lines:"true"`
	Ranks        *Ranks       `json:"ranks,omitempty" lines:"true"` // absent if a side is no merged run
	Distribution Distribution `json:"distribution"`
	Kernels      []Kernel     `json:"kernels"`
	API          []API        `json:"api"`
	Structure    []Structural `json:"structure"` // new blocking call, graph coverage lost, launches per unit, …
	// units by phase and batch on both sides: a change of mix is no change of cost
	Mix        []Mix       `json:"mix"`
	Unjudged   []Unjudged  `json:"unjudged"` // shown with its change and never judged
	Policy     PolicyInfo  `json:"policy"`
	Resolution *float64    `json:"resolution"` // smallest loss of the unit's time that would have failed, a ratio
	Gates      []Gate      `json:"gates"`
	Waivers    []WaiverUse `json:"waivers"`
	Overrides  []Override  `json:"overrides"` // by which a verdict of fail became warn
	Residue    []Residue   `json:"residue"`
	Counts     Counts      `json:"counts"`
}

// Judgement is what the rules of a policy make of a comparison.
type Judgement struct {
	Policy     PolicyInfo
	Gates      []Gate
	Waivers    []WaiverUse
	Verdict    Verdict
	Checked    int64    // gates that judged a number
	Resolution *float64 // as in [Comparison]
}

// Judged takes over a judgement.
func (c *Comparison) Judged(j Judgement) {
	c.Policy, c.Gates, c.Waivers, c.Verdict, c.Resolution = j.Policy, j.Gates, j.Waivers, j.Verdict, j.Resolution
	c.Counts.GatesChecked = j.Checked
}

func (c *Comparison) Row(metric string) *Row {
	return lists.Find(c.Primary, func(r *Row) bool { return r.Metric == metric })
}

// Classes counts the metrics and kernels that got worse, got better, and are not settled.
func (c *Comparison) Classes() (regressed, improved, unsettled int) {
	of := map[Class]int{}
	for i := range c.Primary {
		of[c.Primary[i].Class]++
	}
	for i := range c.Kernels {
		of[c.Kernels[i].Class]++
	}
	return of[Regressed], of[Improved], of[Unsettled]
}

// Side names the compared captures, without paths.
type Side struct {
	Names    []string `json:"names"`
	Captures int      `json:"captures"`
	Engine   string   `json:"engine,omitempty"` // who served, with its version; empty if it is not known
}

// Unit is the unit of work that numbers are compared per.
type Unit struct {
	Kind  string `json:"kind"` // "kernel → graph" where the sides differ
	Name  string `json:"name"`
	Phase string `json:"phase"` // empty if the sides' differ
	Batch *int64 `json:"batch"` // null if one side has none
	// HeadBatch is the head's batch size where it differs from Batch, the base's: only in a study.
	HeadBatch *int64 `json:"head_batch,omitempty"`
	Tokens    *int64 `json:"tokens"` // prompt tokens, rounded up to a power of two
	// BaseN and HeadN count the units behind the numbers, over all captures of a side.
	BaseN int64 `json:"base_n"`
	HeadN int64 `json:"head_n"`
	// BaseCoverage and HeadCoverage are the shares of GPU compute time that lie in units, 0 to 1, averaged over captures.
	BaseCoverage *float64 `json:"base_coverage"`
	HeadCoverage *float64 `json:"head_coverage"`
	// BaseGPU and HeadGPU say which GPU of a side is compared, where a side has several.
	BaseGPU *OneGPU `json:"base_gpu,omitempty"`
	HeadGPU *OneGPU `json:"head_gpu,omitempty"`
	// Overlap is the share of the work that both sides do, 0 to 1, and OverlapNeeded the share from which it is the
	// same work. Null if kernels are hidden.
	Overlap       *float64 `json:"overlap"`
	OverlapNeeded float64  `json:"overlap_needed"`
}

// OneGPU is the GPU that is compared, one of those that ran units of the kind, or of those that did work if that is not
// known.
type OneGPU struct {
	Device int64 `json:"device"` // deviceId
	Of     int64 `json:"of"`     // at least 1
}

// Interval is a confidence interval of a ratio of head to base, with its level.
type Interval struct {
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Level  float64 `json:"level"`
	Method string  `json:"method"`
}

// Test is the result of a test over several captures a side, in natural logarithms: the effect, its standard error and
// degrees of freedom, the threshold, and the variance between captures, pooled over both sides and moderated by the
// other rows.
type Test struct {
	Effect    float64 `json:"effect"`
	SE        float64 `json:"se"`
	DF        float64 `json:"df"`
	Tau       float64 `json:"tau"`
	S2        float64 `json:"s2"`
	Moderated float64 `json:"moderated"`
}

// Row compares one metric. Base and Head are means over the captures of a side.
type Row struct {
	Metric string `json:"metric"`
	// of unit that the row is of: decode 32; absent if it is of no kind
	Kind string `json:"kind,omitempty"`
	// of the kind, empty if the reports' unlabelled metrics are of it
	Labels       report.Labels `json:"labels"`
	Unit         string        `json:"unit"`
	Base         *float64      `json:"base"`
	Head         *float64      `json:"head"`
	Delta        *float64      `json:"delta"`
	Ratio        *float64      `json:"ratio"` // head over base
	Class        Class         `json:"class"`
	Code         Code          `json:"code"`   // of the reason, where the class is inconclusive; else empty
	Why          string        `json:"why"`    // how the class was decided, with the numbers it can be checked by
	NBase        int64         `json:"n_base"` // units
	NHead        int64         `json:"n_head"`
	BaseValues   []float64     `json:"base_values"` // by capture, empty if a capture lacks the metric
	HeadValues   []float64     `json:"head_values"`
	Interval     *Interval     `json:"interval"`
	NoiseFloor   *float64      `json:"noise_floor"` // ratio, e.g. 0.05
	P            *float64      `json:"p"`
	PAdjusted    *float64      `json:"p_adjusted"`
	EffectSize   *float64      `json:"effect_size"`   // Cliff's delta over units, -1 to 1
	Test         *Test         `json:"test"`          // several captures a side only
	NeedCaptures *int64        `json:"need_captures"` // a side, that would settle an inconclusive row
	Resolution   *float64      `json:"resolution"`    // smallest loss that would have been found, a ratio: 0.06 is 6 %
	Unreplicated bool          `json:"unreplicated"`  // one capture on a side
}

// Attribution splits the change of one metric into parts that sum to it.
type Attribution struct {
	Metric     string           `json:"metric"`
	Kind       string           `json:"kind,omitempty"` // of unit, which the verdict stands on; absent if there is one
	Base       float64          `json:"base"`
	Head       float64          `json:"head"`
	TotalDelta float64          `json:"total_delta"`
	Rows       []AttributionRow `json:"rows"`
	// Residual is the total less the finest rows: kernels and others, exposed_copy and idle causes. It holds only the
	// rounding of means.
	Residual float64 `json:"residual"`
}

// AttributionRow is one part. Kind is class, category, kernel, idle_cause, host_cause, host_call or others. Rows of
// kind class sum to the total. Rows of kind category sum to the classes compute and exposed_comm together, and so do
// those of kind kernel with others; rows of kind idle_cause sum to the class idle. Each nanosecond belongs to one
// kernel: to compute before communication, and within these to the kernel that started first. Rows of kind host_cause
// sum to the idle cause host, if the captures record it; those of kind host_call are the calls of the host that changed
// most, within the causes that their category names.
type AttributionRow struct {
	ID            string   `json:"id"`
	Kind          string   `json:"kind"`
	Category      string   `json:"category"` // of a kernel; of a call of the host its cause
	Base          float64  `json:"base"`
	Head          float64  `json:"head"`
	Delta         float64  `json:"delta"`
	CountEffect   *float64 `json:"count_effect"`
	PerCallEffect *float64 `json:"per_call_effect"`
}

// Kernel compares one kernel, or a pair of kernels if one replaced the other. Times add up the durations of its runs in
// one unit, even if other kernels run at the same time. With c runs of t ns each,
//
//	count effect    = (c1 - c0) (t0 + t1) / 2
//	per-call effect = delta - count effect = (t1 - t0) (c0 + c1) / 2
//
// An added or removed kernel is all count effect.
type Kernel struct {
	BaseName      *string  `json:"base_name"`
	HeadName      *string  `json:"head_name"`
	BaseShort     *string  `json:"base_short"` // the name as it is displayed, unlike any other's on its side
	HeadShort     *string  `json:"head_short"`
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
	// a replacement, a split into several kernels, another launch; else empty
	Note string `json:"note"`
	// how its launch geometry changed: block 4×4 → 16×16; absent if it did not
	Launch string `json:"launch,omitempty"`
	// Interval of the ratio, if the row was judged over units or captures; it is around the ratio in this row.
	Interval  *Interval `json:"interval,omitempty"`
	SplitOf   *string   `json:"split_of"` // of an added kernel: the base's kernel that it and others replaced
	P         *float64  `json:"p"`
	PAdjusted *float64  `json:"p_adjusted"`
	Test      *Test     `json:"test"` // several captures a side only
}

// API compares one host call per unit.
type API struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`       // launch, sync, copy
	BaseCount *float64 `json:"base_count"` // calls per unit
	HeadCount *float64 `json:"head_count"`
	BaseTime  *float64 `json:"base_time"` // ns per unit, summed over threads
	HeadTime  *float64 `json:"head_time"`
	BaseMean  *float64 `json:"base_mean"` // ns per call
	HeadMean  *float64 `json:"head_mean"`
	Ratio     *float64 `json:"ratio"` // of the means
	Class     Class    `json:"class"`
}

// Cost is the change of a unit's time in these calls, ns.
func (a API) Cost() float64 { return Value(a.HeadTime) - Value(a.BaseTime) }

// Structural is a change of the work rather than of its duration.
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
	Tokens    *int64   `json:"tokens"`
	Compared  bool     `json:"compared"` // the kind of unit that the primary rows are of
	BaseCount int64    `json:"base_count"`
	HeadCount int64    `json:"head_count"`
	BaseTime  *float64 `json:"base_time"` // mean, ns
	HeadTime  *float64 `json:"head_time"`
	Ratio     *float64 `json:"ratio"`      // of the times
	BaseShare *float64 `json:"base_share"` // of the kept units' time
	HeadShare *float64 `json:"head_share"`
}

// Unjudged is a number that is shown with its change but that no rule judges: means over the captures of a side.
type Unjudged struct {
	ID    string   `json:"id"`
	Text  string   `json:"text"`
	Unit  string   `json:"unit"`
	Base  float64  `json:"base"`
	Head  float64  `json:"head"`
	Delta float64  `json:"delta"`
	Ratio *float64 `json:"ratio"` // head over base; null if the base is 0
}

// Part is one part of the time of the units of a kind: a family of kernels, exposed communication, exposed copies of
// one kind, idle time of one cause. Times are of the mean unit, ns. If single units carry the change, Delta is the time
// that they add, and there is no interval.
type Part struct {
	Unit     string        `json:"unit"` // kind of unit
	Labels   report.Labels `json:"labels"`
	Kind     string        `json:"kind"` // compute, comm, copy, idle; rest: all that is smaller
	Name     string        `json:"name"`
	Base     float64       `json:"base"`
	Head     float64       `json:"head"`
	Delta    float64       `json:"delta"`
	Share    float64       `json:"share"` // Delta over the base's mean unit
	Class    Class         `json:"class"`
	P        float64       `json:"p"`        // that it did not change, adjusted over the parts
	Interval *Interval     `json:"interval"` // of Delta, ns; null if single units carry it
	Hits     *PartHits     `json:"hits"`     // null: all units changed, or none
}

// PartHits are the units that carry a change alone: "3 of 26, every 7th".
type PartHits struct {
	Units int64   `json:"units"`
	Of    int64   `json:"of"`
	Every int64   `json:"every"` // 0: at no even distance
	Times float64 `json:"times"` // how many times as long the part is in them; 0: the others have none of it
}

// String says which units: 3 of 26 units, every 7th.
func (h *PartHits) String() string {
	text := unit.Int(h.Units) + " of " + unit.Int(h.Of) + " units"
	if h.Every > 0 {
		text += ", every " + ordinal(h.Every)
	}
	return text
}

func ordinal(n int64) string {
	end := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		end = "st"
	case n%10 == 2:
		end = "nd"
	case n%10 == 3:
		end = "rd"
	}
	return fmt.Sprint(n) + end
}

// Gate is one judged rule.
type Gate struct {
	Rule      string        `json:"rule"`
	Metric    string        `json:"metric"`
	Labels    report.Labels `json:"labels"`
	Level     string        `json:"level"` // error or warn
	Threshold string        `json:"threshold"`
	// Limit is the relative change from which the rule objects, signed: the larger of its relative and absolute part
	// for this base. Absent if the rule has no relative part.
	Limit *float64 `json:"limit,omitempty"`
	// Tested is the estimate that is compared with the rule if noise decides: the ratio less 1 and the ends of its
	// interval. Absent if the values alone decide.
	Tested *Tested  `json:"tested,omitempty"`
	Base   *float64 `json:"base"`
	Head   *float64 `json:"head"`
	Delta  *float64 `json:"delta"`
	Ratio  *float64 `json:"ratio"`
	Class  Class    `json:"class"`
	P      *float64 `json:"p"` // that the change is beyond the rule by noise alone, adjusted over what is judged
	// Resolution is the smallest loss that would have failed, a ratio: 0.061 is "would have failed from +6.1 % on". Null
	// if that is not known.
	Resolution *float64 `json:"resolution"`
	// ByParts is true where the parts of the unit decided, and not the number alone.
	ByParts  bool       `json:"by_parts,omitempty"`
	Verdict  Verdict    `json:"verdict"`
	CountsAs Verdict    `json:"counts_as"` // towards the verdict of the comparison, by level and policy
	Code     Code       `json:"code"`      // of the reason, where the gate is inconclusive; else empty
	Reason   string     `json:"reason"`
	Waiver   *WaiverRef `json:"waiver"` // that covers what the gate found, also one that does not hold
}

// Tested is a relative change with its interval, equal to it if there is none.
type Tested struct {
	Change float64 `json:"change"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// PolicyInfo describes the policy of the comparison, beside the rules that the gates name.
type PolicyInfo struct {
	Preset            string   `json:"preset"` // empty: none
	Unit              string   `json:"unit"`   // of work that the policy asks for: auto, graph, nvtx:REGEX, …
	Alpha             float64  `json:"alpha"`
	FDR               float64  `json:"fdr"`
	MinCaptures       int64    `json:"min_captures"` // a side, below which durations do not fail
	OnInconclusive    Verdict  `json:"on_inconclusive"`
	OnNotComparable   Verdict  `json:"on_not_comparable"`
	OnMissing         Verdict  `json:"on_missing"`
	OnMissingBaseline Verdict  `json:"on_missing_baseline"`
	Rules             int64    `json:"rules"`           // on changes
	Budgets           int64    `json:"budgets"`         // which need no base
	IgnoredKernels    []string `json:"ignored_kernels"` // globs
	Hard              []string `json:"hard"`            // fields of the environment that the policy moved
	Soft              []string `json:"soft"`
	Residue           []string `json:"residue"`
}

// WaiverUse is one waiver of the policy and its effect.
type WaiverUse struct {
	Rule    string `json:"rule"`
	Match   string `json:"match"`   // a glob, /an expression/ or both; empty: all that the rule judges
	Ceiling string `json:"ceiling"` // as it was written; empty: none
	Expires string `json:"expires"` // 2026-12-31, the last day
	Issue   string `json:"issue"`
	Reason  string `json:"reason"`
	Status  string `json:"status"` // applied, unused, expired, exceeded, not_judged
	Gates   int64  `json:"gates"`  // that pass by it
}

// WaiverRef is the waiver of one gate.
type WaiverRef struct {
	Ceiling string `json:"ceiling"`
	Expires string `json:"expires"`
	Issue   string `json:"issue"`
	Reason  string `json:"reason"`
	Status  string `json:"status"` // applied, expired, exceeded
}

// Residue is something that differs between the sides and was not compared.
type Residue struct {
	Field string `json:"field"`
	Base  string `json:"base"`
	Head  string `json:"head"`
	Soft  bool   `json:"soft"` // warned of; otherwise named only
}

// Counts says how much was compared, even if nothing changed.
type Counts struct {
	GatesChecked    int64 `json:"gates_checked"`
	MetricsCompared int64 `json:"metrics_compared"`
	KernelsCompared int64 `json:"kernels_compared"`
	KernelsPaired   int64 `json:"kernels_paired"`
	UnitsBase       int64 `json:"units_base"`
	UnitsHead       int64 `json:"units_head"`
}

// Checked reports whether the gate had anything to judge.
func (g *Gate) Checked() bool {
	return g.Verdict != Inconclusive || g.Code == WideInterval || g.Code == Trend || g.Code == TooFewUnits
}

// Open makes a gate inconclusive, for a reason.
func (g *Gate) Open(code Code, text string) {
	g.Verdict, g.Code, g.Reason = Inconclusive, code, string(code)+": "+text
}

// Value is the value of a field, zero if the side has no such thing: a kernel that it does not run, a call that it does
// not make. Packages that render a comparison read its fields only through it, so that none of them can fail.
func Value[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}

// FirstRun reports whether there was no base to compare with.
func (c *Comparison) FirstRun() bool { return c.Base.Captures == 0 }

// Leg is one of several comparisons that are reported together: a job of a matrix.
type Leg struct {
	Name       string // empty for the only one
	Comparison *Comparison
}

// Change fills in delta and ratio.
func (r *Row) Change() {
	if r.Base == nil || r.Head == nil {
		return
	}
	r.Delta = new(Value(r.Head) - Value(r.Base))
	if Value(r.Base) > 0 {
		r.Ratio = new(Value(r.Head) / Value(r.Base))
	}
}

// Warns reports whether somebody must act on a waiver.
func (w *WaiverUse) Warns() bool {
	return w.Status == WaiverUnused || w.Status == WaiverExpired
}
