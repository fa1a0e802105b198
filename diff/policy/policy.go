package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Policy is a team's decision about its gate: what is judged, how strictly, and the verdict for a missing answer. It is
// a policy file combined with the preset that it names.
type Policy struct {
	Preset string // that the file names; empty: none

	Unit  string // of work, for traces: nvtx:REGEX, kernel:REGEX, graph, none; empty: found automatically
	Phase string // units of this phase are compared; empty: the one with most time
	Batch *int64 // and of this batch size

	Stats       Stats
	Rules       []Rule // on changes and budgets, those of the preset first; the last that selects a number judges it
	Waivers     []Waiver
	Environment Environment

	IgnoreKernels []string // globs: kernels of these names are judged by no rule
	// kernels below this share of the shorter unit are not compared one by one, 0..1; 0: DefaultMinShare
	MinShare float64

	presetRules int // of Rules, that are the preset's
}

// Stats say how certain a verdict must be, and which verdict stands for a missing answer.
type Stats struct {
	Alpha       float64 // adjusted p-value up to which a change of a primary row is real, above 0 and below 0.5
	FDR         float64 // share of false discoveries among kernels that are found changed, above 0 and below 0.5
	MinCaptures int     // a side, below which durations cannot fail; at least 1
	Floor       float64 // noise floor of the unit's time, a ratio that captures of one commit showed; 0: the assumed one
	MaxOverhead float64 // of profiling, a ratio above which a capture says too little of the program; 0: none

	OnInconclusive    comparison.Verdict // a change that is too large for its rule and not certain
	OnNotComparable   comparison.Verdict // sides that cannot be compared
	OnMissing         comparison.Verdict // a metric that a side lacks, or that neither has; never Pass
	OnMissingBaseline comparison.Verdict // rules need a base, and there is none; empty: what [Policy.FirstRun] says
}

// alpha is the adjusted p-value up to which a change beyond the least one is taken for one, unless the policy says
// otherwise. The level of intervals over several captures a side follows from it, 1 - alpha, and that of intervals over
// the units of one capture a side, 1 - 2 alpha: a gate asks whether it got slower, so that each end is passed by chance
// in one of twenty.
const alpha = 0.05

// MostFloor is the noise floor above which no rule could see what it is for.
const MostFloor = 0.15

// DefaultStats are those of a policy that does not set them.
func DefaultStats() Stats {
	return Stats{Alpha: alpha, FDR: alpha, MinCaptures: 1,
		OnInconclusive: comparison.Inconclusive, OnNotComparable: comparison.Inconclusive,
		OnMissing: comparison.Inconclusive}
}

// Waiver accepts, until a day, that a rule is broken. An expired one accepts nothing.
type Waiver struct {
	Rules   []string  // ids of the rules and budgets
	Match   Match     // of the kernel, call, range or finding; empty: all that the rule judges
	Ceiling *Ceiling  // beyond which it accepts nothing; nil: none
	Expires time.Time // the last day on which it holds, at 0:00 UTC
	Issue   string    // where it is discussed, may be empty
	Reason  string
}

// Ceiling bounds what a waiver accepts: a change in the direction that is bad, or for a budget the head's value.
type Ceiling struct {
	Value    float64 // in base units; a ratio of the base where Relative
	Unit     string  // base unit, where not Relative
	Relative bool
	Text     string // as it was written
}

// Environment moves fields of a report's environment, see report.EnvironmentFields: a difference in a hard one
// makes sides not comparable, one in a soft one is warned of, residue is named only. Fields that no list has stay
// where they are.
type Environment struct {
	Hard, Soft, Residue []string
}

// Class of a field that environments have: the policy's, else the one that it has by itself.
func (e *Environment) Class(field string) report.FieldClass {
	switch {
	case slices.Contains(e.Hard, field):
		return report.HardField
	case slices.Contains(e.Soft, field):
		return report.SoftField
	case slices.Contains(e.Residue, field):
		return report.ResidueField
	}
	return lists.Find(report.EnvironmentFields(), func(f *report.EnvironmentField) bool { return f.Name == field }).Class
}

// environmentFields are the names of the fields that a policy can move.
func environmentFields() []string {
	return lists.Map(report.EnvironmentFields(), func(f report.EnvironmentField) string { return f.Name })
}

// Default is the policy if there is no policy file: the preset [defaultPreset]. Rules that are read without a list of
// metrics name labels and directions themselves. Each caller may change its rules.
func Default() *Policy {
	p := *readDefault()
	p.Rules = slices.Clone(p.Rules)
	return &p
}

// readDefault reads [defaultPreset], which takes a millisecond, once.
var readDefault = sync.OnceValue(func() *Policy {
	text, _ := PresetText(defaultPreset)
	p, err := Read(strings.NewReader(text), nil)
	if err != nil {
		return &Policy{Stats: DefaultStats()} // no rules: a test holds that the preset can be read
	}
	p.presetRules = len(p.Rules)
	return p
})

// Budgets counts the rules that need no base.
func (p *Policy) Budgets() int { return p.count(true) }

// Changes counts the rules that need a base.
func (p *Policy) Changes() int { return p.count(false) }

func (p *Policy) count(budgets bool) int {
	return lists.Count(p.Rules, func(r Rule) bool { return r.Budgeted() == budgets && r.Level != comparison.LevelOff })
}

// maxMinCaptures bounds what a policy can ask for: nobody records more a side.
const maxMinCaptures = 100

// validUnit checks a unit of work as --unit takes it. Its expression is checked against the capture by the analysis.
func validUnit(s string) error {
	kind, expr, has := strings.Cut(s, ":")
	switch {
	case s == "" || s == "graph" || s == "none":
		return nil
	case has && expr != "" && (kind == "nvtx" || kind == "kernel"):
		if _, err := regexp.Compile(expr); err != nil {
			return fmt.Errorf("unit %q: %w", s, err)
		}
		return nil
	}
	return fmt.Errorf("unit %q is not one of auto, nvtx:REGEX, kernel:REGEX, graph, none", s)
}

// UnitKind is the kind of unit that a report has which was made with the policy's unit; empty: any.
func (p *Policy) UnitKind() string {
	kind, _, _ := strings.Cut(p.Unit, ":")
	return kind
}

// Ignores reports whether no rule is to judge the kernel that goes by these names, in full and as tables show it.
func (p *Policy) Ignores(names ...string) bool {
	return slices.ContainsFunc(p.IgnoreKernels, func(pattern string) bool {
		return anyOf(names, func(name string) bool { return glob(pattern, name) })
	})
}
