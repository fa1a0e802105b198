package diff

import (
	"time"

	"github.com/nsys-llm/explain/analyze/report"
)

// Judge judges a comparison whose rows stand by rules alone, or by none for the default ones.
func Judge(c *Comparison, base, head []*report.Report, rules []Rule) {
	p := DefaultPolicy()
	if len(rules) > 0 {
		p.Rules = rules
	}
	JudgeBy(c, base, head, p, time.Time{})
}

// JudgeBy judges a comparison whose rows stand by a policy, on a day.
func JudgeBy(c *Comparison, base, head []*report.Report, p *Policy, today time.Time) {
	judgeAll(c, p, &side{captures: newCaptures(base)}, &side{captures: newCaptures(head)}, today)
}
