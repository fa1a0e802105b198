package policy

import (
	"github.com/nsys-llm/explain/diff/comparison"
)

// ForEvidence is the policy for sides without a trace, of which nobody who chose a preset can expect a step or findings
// of structure: the preset's rules judge what is there.
func (p *Policy) ForEvidence() *Policy {
	own := *p
	own.Rules = nil
	for i, r := range p.Rules {
		if i < p.presetRules {
			if r.Metric == comparison.MetricStructure {
				own.presetRules--
				continue
			}
			r.Optional = true
		}
		own.Rules = append(own.Rules, r)
	}
	return &own
}

// With is the policy with other rules, none of which are a preset's.
func (p *Policy) With(rules []Rule) *Policy {
	own := *p
	own.Rules, own.presetRules = rules, 0
	return &own
}
