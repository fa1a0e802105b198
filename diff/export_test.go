package diff

import "github.com/nsys-llm/explain/analyze/report"

// Judge judges a comparison whose rows stand by rules alone, or by none for the default ones.
func Judge(c *Comparison, base, head []*report.Report, rules []Rule) {
	p := DefaultPolicy()
	if len(rules) > 0 {
		p.Rules = rules
	}
	j := &judge{c: c, p: p, base: base, head: head}
	j.judge()
}
