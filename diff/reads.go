package diff

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
)

// readTotals are the totals with labels that a comparison reads under any rules.
var readTotals = []string{"gpu.compute_time", "gpu.busy_time", "sync.count"}

// Reads reports which metrics of a report [Compare] reads with these options. A caller with many reports can drop the
// rest: totals by kernel, range or process, which only a rule that names them reads.
func Reads(opt Options) func(m *report.Metric) bool {
	rules := opt.Rules
	if len(rules) == 0 {
		rules = policy.DefaultRules()
		if opt.Policy != nil {
			rules = opt.Policy.Rules
		}
	}
	named := slices.Clone(readTotals)
	for i := range rules {
		id, _ := policy.SplitStat(rules[i].Metric)
		if strings.ContainsAny(id, "*?") { // a pattern
			return func(*report.Metric) bool { return true }
		}
		named = append(named, id)
	}
	return func(m *report.Metric) bool {
		return m.Scale != report.Total || len(m.Labels) == 0 || slices.Contains(named, m.ID) ||
			comparison.Beside(m.ID)
	}
}
