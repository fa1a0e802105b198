package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// SameStat reports whether two statistics are the same number: a metric of the unit of work has its median
// as its value.
func SameStat(a, b string) bool {
	return a == b || a == "" && b == "p50" || a == "p50" && b == ""
}

func IssueText(issue string) string {
	if issue == "" {
		return ""
	}
	return " (" + issue + ")"
}

// Explanation is one rule that selects a number, in the order of the policy.
type Explanation struct {
	Rule    Rule     // for the metric that was asked for
	Preset  bool     // it is of the preset
	By      string   // the later rule that judges in its place; empty: this one judges
	Waivers []Waiver // of this rule, for what was asked for
}

// Explain finds the rules that select a metric or a kernel, and which of them judges it: the last one of each kind, for
// the change and for the budget. subject is a metric (unit.time.p50, gpu.idle_ratio{device=0}), or the name of a
// kernel, which means its time per unit. metric is the metric that was found. A metric without labels stands for any
// labels: then a rule judges what later ones do not select. ignored says that no rule judges this kernel.
func (p *Policy) Explain(subject string, known []report.MetricDef) (
	metric string, list []Explanation, ignored bool, err error) {
	asked, err := p.asked(subject, known)
	if err != nil {
		return "", nil, false, err
	}
	for i, r := range p.Rules {
		for _, v := range r.Each() {
			if !sameNumber(v.Metric, asked.Metric) || len(asked.Labels) > 0 && !v.Takes(asked.Labels) {
				continue
			}
			e := Explanation{Rule: v, Preset: p.OfPreset(i)}
			for _, w := range p.Waivers {
				names := w.Match.Compile()
				if slices.Contains(w.Rules, v.ID) &&
					(len(asked.Labels) == 0 || w.Match.Empty() || names.Covers(asked.Labels)) {
					e.Waivers = append(e.Waivers, w)
				}
			}
			overrule(list, &v, len(asked.Labels) > 0)
			list = append(list, e)
		}
	}
	return asked.subject(), list, p.Ignores(asked.Labels["kernel"]), nil
}

// overrule notes the rules in whose place a later one judges, if it surely selects the same number.
func overrule(list []Explanation, later *Rule, surely bool) {
	for i := range list {
		if e := &list[i]; e.Rule.Level != comparison.LevelOff && replaces(later, &e.Rule) && (surely || later.selectsAll(&e.Rule)) {
			e.By = later.Name()
		}
	}
}

// replaces reports whether a rule judges in place of another one, where it selects the same number.
func replaces(r, other *Rule) bool {
	return r.Level == comparison.LevelOff || r.Budgeted() == other.Budgeted()
}

// ExplainRule finds the rules with an id, in their order, and which later ones judge in their place.
func (p *Policy) ExplainRule(id string) (list []Explanation) {
	for i, r := range p.Rules {
		for _, v := range r.Each() {
			overrule(list, &v, false)
			if r.ID == id {
				list = append(list, Explanation{Rule: v, Preset: p.OfPreset(i)})
			}
		}
	}
	return list
}

// RuleIDs are the ids of the rules in their order, each once: outputs name rules by them.
func (p *Policy) RuleIDs() []string {
	var list []string
	for _, r := range p.Rules {
		if r.ID != "" {
			lists.Place[int32](&list, r.ID)
		}
	}
	return list
}

// asked understands what somebody wants explained.
func (p *Policy) asked(subject string, known []report.MetricDef) (Rule, error) {
	kernel := Rule{Metric: KernelTime, Labels: report.Labels{"kernel": subject}}
	metric, labels, err := parseSubject(subject)
	if err != nil {
		return kernel, nil
	}
	r := Rule{Metric: metric, Labels: labels}
	if metric == comparison.MetricStructure {
		return r, nil
	}
	facts, err := Facts(r.Metric, known)
	switch id, _ := SplitStat(metric); {
	case err == nil:
	case len(labels) == 0 && nearest(id, known) == "":
		return kernel, nil
	default:
		return Rule{}, err
	}
	if len(labels) == 0 {
		return r, nil
	}
	return r, checkLabels(&facts, &r)
}

// sameNumber reports whether two metrics are the same number: the value of a metric of the unit of work is its median.
func sameNumber(a, b string) bool {
	ida, stata := SplitStat(a)
	idb, statb := SplitStat(b)
	return ida == idb && (stata == statb || strings.HasPrefix(ida, "unit.") && SameStat(stata, statb))
}

// selectsAll reports whether a rule surely selects whatever another one does.
func (r *Rule) selectsAll(other *Rule) bool {
	if !sameNumber(r.Metric, other.Metric) ||
		!r.Match.Empty() && r.Match != other.Match && r.Match != (Match{Glob: "*"}) {
		return false
	}
	if len(r.Labels) != len(other.Labels) {
		return r.Metric == comparison.MetricStructure && len(r.Labels) == 0
	}
	for key, pattern := range r.Labels {
		if v, ok := other.Labels[key]; !ok || pattern != "*" && pattern != v {
			return false
		}
	}
	return true
}

// Shadowed are rules of the file, not of its preset, that judge nothing, since a later one selects all that they do:
// pairs of names. They show a team that it ordered rules from the special to the general.
func (p *Policy) Shadowed() (list [][2]string) {
	each := lists.Map(p.Rules, func(r Rule) []Rule { return r.Each() })
	for i := p.presetRules; i < len(p.Rules); i++ {
		by := i
		for _, v := range each[i] {
			for by = len(p.Rules) - 1; by > i; by-- {
				if slices.ContainsFunc(each[by], func(l Rule) bool { return replaces(&l, &v) && l.selectsAll(&v) }) {
					break
				}
			}
			if by == i {
				break
			}
		}
		if by > i {
			list = append(list, [2]string{p.Rules[i].Name(), p.Rules[by].Name()})
		}
	}
	return list
}

// Selects says in words what a rule selects: unit.time.p50, kernel.time_per_unit{kernel=*} like /^flash/.
func (r *Rule) Selects() string {
	text := r.subject()
	if !r.Match.Empty() {
		text += " like " + r.Match.String()
	}
	return text
}

// Does says in words what a rule does with what it selects.
func (r *Rule) Does() string {
	verb := map[string]string{comparison.LevelError: "fails", comparison.LevelWarn: "warns"}[r.Level]
	switch {
	case r.Level == comparison.LevelOff:
		return "is not judged"
	case r.Metric == comparison.MetricStructure:
		return verb + " if the structure of a step changed"
	case r.Budgeted():
		return verb + " unless it is " + r.Threshold() + ", with or without a baseline"
	}
	text := verb + " beyond " + limits(r)
	if r.Improve {
		text = verb + " unless it changes for the better: " + r.Threshold()
	}
	if r.Milder != nil {
		text += ", warns beyond " + limits(r.Milder)
	}
	for _, field := range slices.Sorted(maps.Keys(r.When)) {
		text += ", if " + field + " is like " + r.When[field]
	}
	return text
}

// limits is the threshold in words: a change has to exceed all its parts.
func limits(r *Rule) string {
	if rel, abs, both := strings.Cut(r.Threshold(), ","); both {
		return "both " + rel + " and " + abs
	}
	return r.Threshold()
}

// FloorText says how large a noise floor a change of a duration has to exceed as well, if nobody measured the noise.
func (p *Policy) FloorText() string {
	if p.Stats.Floor > 0 {
		return fmt.Sprintf("noise floor of the unit's time: %.3g %%, of other durations: %.3g %% (assumed unless measured)",
			100*p.Stats.Floor, 100*comparison.DefaultFloor)
	}
	return fmt.Sprintf("noise floor of a duration: %.3g %% (assumed unless measured: explain policy init)",
		100*comparison.DefaultFloor)
}

// Summary is a policy in one line: its preset, how many rules of each kind, and the waiver that ends first.
func (p *Policy) Summary() string {
	var parts []string
	if p.Preset != "" {
		parts = append(parts, "preset "+p.Preset)
	}
	parts = append(parts, wording.Count(int64(p.Changes()), "rule"), wording.Count(int64(p.Budgets()), "budget"))
	if n := len(p.Waivers); n > 0 {
		first := slices.MinFunc(p.Waivers, func(a, b Waiver) int { return a.Expires.Compare(b.Expires) })
		parts = append(parts, fmt.Sprintf("%s (the first ends on %s)", wording.Count(n, "waiver"),
			first.Expires.Format(time.DateOnly)))
	}
	if n := len(p.IgnoreKernels); n > 0 {
		parts = append(parts, wording.Count(n, "pattern")+" of ignored kernels")
	}
	if p.Unit != "" {
		parts = append(parts, "unit "+p.Unit)
	}
	s := &p.Stats
	parts = append(parts, fmt.Sprintf("alpha %v, fdr %v, at least %s a side", s.Alpha, s.FDR,
		wording.Count(s.MinCaptures, "capture")))
	if p.Changes() > 0 {
		parts = append(parts, p.FloorText())
	}
	if s.MaxOverhead > 0 {
		parts = append(parts, fmt.Sprintf("profiling may cost %.3g %%", 100*s.MaxOverhead))
	}
	open := map[string]comparison.Verdict{"a change is not settled": s.OnInconclusive, "the sides are not comparable": s.OnNotComparable,
		"a number is missing": s.OnMissing, "there is no baseline": cmp.Or(s.OnMissingBaseline, comparison.Inconclusive)}
	for _, what := range slices.Sorted(maps.Keys(open)) {
		parts = append(parts, "if "+what+": "+string(open[what]))
	}
	switch {
	case p.Budgets() > 0 && p.Changes() == 0:
		parts[len(parts)-1] = "without a baseline: budgets are judged, and nothing else is asked for"
	case p.Budgets() > 0:
		parts[len(parts)-1] += " for rules on changes; budgets are judged anyway"
	}
	return strings.Join(parts, "; ")
}

// String is a waiver in words.
func (w *Waiver) String() string {
	text := "waiver"
	if !w.Match.Empty() {
		text += " of what is like " + w.Match.String()
	}
	if w.Ceiling != nil {
		text += ", up to " + w.Ceiling.Text
	}
	return text + ", until " + w.Expires.Format(time.DateOnly) + IssueText(w.Issue) + ": " + w.Reason
}
