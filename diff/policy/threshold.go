package policy

import (
	"regexp"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
)

// ThresholdRules are check_regression's questions to reports: the mean time of one unit of the phases prefill and
// decode, or where the base has neither of one unit; the coverage by CUDA graphs; and the kernel that takes most time
// of a unit of the base.
func ThresholdRules(percent float64, base []*report.Report) []Rule {
	rel := func() *float64 { return new(percent / 100) }
	slower := func(id string, labels report.Labels) Rule {
		return Rule{ID: id, Metric: "unit.time.mean", Labels: labels, Level: comparison.LevelError, Rel: rel(),
			Direction: Up}
	}
	var rules []Rule
	for _, name := range []string{"prefill", "decode"} {
		if phase, ok := phaseOf(base, name); ok {
			rules = append(rules, slower(name, report.Labels{"phase": phase}))
		}
	}
	if len(rules) == 0 {
		rules = append(rules, slower("step", report.Labels{}))
	}
	rules = append(rules, Rule{ID: "graphs", Metric: "graph.coverage", Labels: report.Labels{},
		Level: comparison.LevelError, Abs: rel(), AbsUnit: report.Ratio, Direction: Down, Optional: true})
	if top := topKernel(base); top != "" {
		rules = append(rules, Rule{ID: "top kernel", Metric: KernelTime, Labels: report.Labels{"kernel": "*"},
			Match: Match{Regex: "^" + regexp.QuoteMeta(top) + "$"}, Level: comparison.LevelError, Rel: rel(),
			Direction: Up, Optional: true})
	}
	return rules
}

// phaseOf finds the phase of the units that profilemate would call so.
func phaseOf(side []*report.Report, name string) (string, bool) {
	for _, r := range side {
		for _, m := range report.NewIndex(r).Metrics("unit.time") {
			p := strings.ToLower(m.Labels["phase"])
			if len(m.Labels) == 1 && (name == "prefill" && strings.Contains(p, "prefill") ||
				name == "decode" && !strings.Contains(p, "prefill") &&
					(strings.Contains(p, "decode") || strings.Contains(p, "generation"))) {
				return m.Labels["phase"], true
			}
		}
	}
	return "", false
}

// topKernel is the kernel with most time in one unit of the first report.
func topKernel(side []*report.Report) string {
	name, most := "", -1.0
	for _, m := range report.NewIndex(side[0]).Metrics(KernelTime) {
		if OfKernel(m.ID, m.Labels) && m.Value != nil && *m.Value > most {
			name, most = m.Labels["kernel"], *m.Value
		}
	}
	return name
}
