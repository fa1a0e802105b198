package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Directions of a rule.
const (
	Up   = "up"   // a rise is bad
	Down = "down" // a fall is bad
	Both = "both" // any change is bad
)

// Rule says how much one metric may change, or the bounds of its value. A rule judges the numbers that its labels and
// its match select; if several select the same number, the last one judges it.
//
// A change breaks the rule if it is real (its class says so) and larger than Rel and larger than Abs, in Direction. A
// change of exactly the tolerated size is tolerated. Max and Min are budgets: they bound the head alone, and are the
// only rules allowed on numbers that grow with the length of a capture.
type Rule struct {
	ID     string        // names the rule in gates; the text of the rule if empty
	Metric string        // a metric id, with or without a statistic: unit.time, unit.time.p50, api.time.mean
	Labels report.Labels // exactly these keys; in a value * and ? match any text
	Match  Match         // of the one label that names a kernel, a call or a range
	Level  string        // LevelError, LevelWarn or LevelOff

	Rel       *float64 // tolerated relative change, above 0: 0.03 is 3 %
	Abs       *float64 // tolerated absolute change in base units; for ratios, 0.02 is two percentage points
	AbsUnit   string   // base unit that Abs was written in; empty: the metric's own
	Direction string   // Up, Down, Both; empty: the metric says what is better, and its other way is bad

	Max, Min  *float64 // bounds of the head's value, in base units
	LimitUnit string   // base unit that they were written in; empty: the metric's own

	// a tag or commit: Max is how much worse the head may be than that, a ratio; empty: Max and Min bound its value
	Since string
	// of a rule with Since, by the labels of the number, see [Rule.SpentOn]; nil: no history was asked
	Spent map[string]Spent

	Improve bool  // the change is one that must be made: for the better, by Rel and Abs at least
	Milder  *Rule // of level warn, asked where this one passes; nil: none
	// When says on which head the rule is asked: patterns by field of its environment. One that it does not state is no
	// reason to leave the rule out.
	When report.Labels
	// OnInconclusive is the verdict for a change that is too large and not certain; empty: the policy's
	OnInconclusive comparison.Verdict

	OnlySlower bool // it fails only if the unit's time got worse too, and warns otherwise

	Optional bool         // captures may lack its numbers, and that is not a missing metric
	scale    report.Scale // of the metric, where the rule was held to the metrics that exist
	names    *nameMatch   // of Match, compiled if the rule is used for many names
	of       []Rule       // what a rule whose metric is a pattern stands for, one for each metric
}

// DefaultRules are what is judged if nobody wrote rules: those of the preset [defaultPreset], whose file says what
// each is for. Its absolute parts are small, because a unit can be a decode step of less than a millisecond; they keep
// what nobody can measure out of the verdict. What is real is for the classes to say: a kernel has to be beyond its
// noise floor as well.
func DefaultRules() []Rule { return Default().Rules }

// Validate reports parts of a rule that do not go together; each by itself is for its reader to check.
func (r *Rule) Validate() error {
	change, budget := r.Rel != nil || r.Abs != nil, r.Budgeted()
	switch {
	case r.Level == comparison.LevelOff && (change || budget):
		return errors.New("level off takes no threshold")
	case r.Level != comparison.LevelOff && !change && !budget && r.Metric != comparison.MetricStructure:
		return errors.New("has no threshold; add one such as +3%, +200us or <=15%")
	case change && budget:
		return errors.New("has both a budget and a change; write two rules")
	case r.Metric == comparison.MetricStructure && (change || budget):
		return errors.New("structural findings have no size; write structure:error, structure:warn or structure:off")
	case r.Improve && (!change || r.Direction == Both || r.OnlySlower || r.Milder != nil):
		return errors.New("must improve: write improve: {rel: 5%}, without warn, both ways and only_slower")
	case r.Min != nil && r.Max != nil && *r.Min > *r.Max:
		return errors.New("its lower bound is above its upper one")
	}
	return nil
}

func (r *Rule) Budgeted() bool { return r.Max != nil || r.Min != nil }

// Asked reports whether the rule is asked of a head with this environment.
func (r *Rule) Asked(e *report.Environment) bool {
	for _, f := range report.EnvironmentFields() {
		if pattern, ok := r.When[f.Name]; ok {
			if v := f.Get(e); v != "" && !glob(pattern, v) {
				return false
			}
		}
	}
	return true
}

// Subject is what a rule is about, for which it has one judge: its change, its value, its change since an anchor.
func (r *Rule) Subject() string {
	switch {
	case r.Since != "":
		return "since " + r.Since
	case r.Budgeted():
		return "budget"
	}
	return "change"
}

// stats are the statistics of a metric's summary that a rule can name behind its id.
var stats = []string{"min", "p50", "p90", "p99", "max", "mean", "stddev"}

// SplitStat takes the statistic off a metric: unit.time.p50 is the p50 of unit.time.
func SplitStat(metric string) (id, stat string) {
	if i := strings.LastIndexByte(metric, '.'); i >= 0 && slices.Contains(stats, metric[i+1:]) &&
		strings.Contains(metric[:i], ".") {
		return metric[:i], metric[i+1:]
	}
	return metric, ""
}

// JoinStat adds a statistic, if there is one, to a metric.
func JoinStat(id, stat string) string { return strings.TrimSuffix(id+"."+stat, ".") }

// Grows reports whether a metric, or a statistic of it, grows with the length of a recording: a total does, and so does
// an extreme.
func Grows(scale report.Scale, stat string) bool {
	return stat == "min" || stat == "max" || stat == "" && scale == report.Total
}

// LengthReason says why a change of such a number is not judged, and which number to judge instead. has says that the
// metric carries a summary, so that its statistics can be named.
func LengthReason(id, stat string, has bool) string {
	if stat == "min" || stat == "max" {
		return "the longer a capture, the more extreme its " + stat + "; use p50, p90, p99 or mean, or a budget (<=)"
	}
	events := ""
	if has {
		events = fmt.Sprintf("a statistic of single events (%s.p50), ", id)
	}
	return fmt.Sprintf("%s grows with the length of the capture, so its change means nothing; use a metric per unit of work "+
		"(unit.time, kernel.time_per_unit, api.count_per_unit), %sor a budget (<=)", id, events)
}

// Check holds rules to the metrics that exist: it reports the first unknown metric or label, and units that do not fit.
func Check(rules []Rule, known []report.MetricDef) error {
	for _, r := range rules {
		if r.Metric == comparison.MetricStructure {
			continue
		}
		m, err := Facts(r.Metric, known)
		if err == nil {
			err = cmp.Or(checkLabels(&m, &r), checkLimits(&m, &r))
		}
		if err != nil {
			return fmt.Errorf("rule %q: %w", r.Name(), err)
		}
	}
	return nil
}

// checkLabels reports labels that the metric does not come with.
func checkLabels(m *report.MetricDef, r *Rule) error {
	keys := r.Labels.Keys()
	fits := func(set string) bool {
		own := strings.Split(set, ",")
		slices.Sort(own)
		return strings.Join(own, ",") == keys
	}
	if len(r.Labels) == 0 && !r.Match.Empty() || slices.ContainsFunc(m.Labels, fits) {
		return nil
	}
	known := strings.Join(lists.Map(m.Labels, orNone), " | ")
	return fmt.Errorf("%s comes with the labels %s, not %s", m.ID, known, orNone(keys))
}

// checkLimits reports thresholds in another unit than the metric's, statistics that it does not have, and changes of
// what only says how long somebody recorded.
func checkLimits(m *report.MetricDef, r *Rule) error {
	_, stat := SplitStat(r.Metric)
	switch {
	case !r.FitsAbs(m.Unit):
		return fmt.Errorf("%s is in %s, and the change is given in %s%s", m.ID, m.Unit, r.AbsUnit, bare(r.AbsUnit, m.Unit))
	case r.Since == "" && !r.FitsLimits(m.Unit):
		return fmt.Errorf("%s is in %s, and the budget is given in %s%s", m.ID, m.Unit, r.LimitUnit, bare(r.LimitUnit, m.Unit))
	case stat != "" && !m.Stats:
		return fmt.Errorf("%s is a single number and has no %s; name it without", m.ID, stat)
	case (r.Rel != nil || r.Abs != nil || r.Since != "") && Grows(m.Scale, stat):
		return errors.New(LengthReason(m.ID, stat, m.Stats))
	}
	return nil
}

// fits reports whether a value in one unit can be compared with a metric in the other. Metrics that count bytes per
// second say per_second, and values GB/s.
func fits(given, metric string) bool {
	return given == metric || given == report.BytesPerSec && metric == report.PerSecond
}

// FitsAbs reports whether the rule's absolute change can be compared with a metric in this unit.
func (r *Rule) FitsAbs(metric string) bool {
	return r.Abs == nil || *r.Abs == 0 || r.AbsUnit == "" || fits(r.AbsUnit, metric)
}

// FitsLimits reports whether the rule's bounds can be compared with a metric in this unit, as bounds of 0 always can.
func (r *Rule) FitsLimits(metric string) bool {
	return r.LimitUnit == "" || fits(r.LimitUnit, metric) ||
		r.LimitUnit == report.Count && comparison.Value(r.Max) == 0 && comparison.Value(r.Min) == 0
}

// bare says what a number without a unit lacks.
func bare(given, wanted string) string {
	example := map[string]string{report.Nanoseconds: "200us", report.Bytes: "2MiB",
		report.Ratio: "5pp, or 15% of a budget", report.PerSecond: "27.7 GB/s or 100/s"}[wanted]
	if given != report.Count || example == "" {
		return ""
	}
	return "; a number needs its unit: " + example
}

// PerUnit reports whether a metric, or a statistic of it, is named as one of a unit of work.
func PerUnit(metric string) bool {
	id, _ := SplitStat(metric)
	return strings.HasPrefix(id, "unit.") && id != "unit.count" || strings.HasSuffix(id, "_per_unit")
}

// PerUnit reports whether the metric is of one unit of work, so that nothing can be said of it where a side has none.
func (r *Rule) PerUnit() bool {
	return r.scale == report.PerUnit || r.scale == "" && PerUnit(r.Metric)
}

// Name is the rule's id, or its text.
func (r *Rule) Name() string {
	if r.ID != "" {
		return r.ID
	}
	return r.subject() + ":" + r.Threshold()
}

func (r *Rule) subject() string {
	if len(r.Labels) == 0 {
		return r.Metric
	}
	return r.Metric + "{" + r.Labels.String() + "}"
}

func orNone(keys string) string {
	if keys == "" {
		return "(none)"
	}
	return "{" + keys + "}"
}

// nearest is the known metric with the fewest edits to id, if few are enough.
func nearest(id string, known []report.MetricDef) string {
	return nearestWord(id, lists.Map(known, func(m report.MetricDef) string { return m.ID }))
}
