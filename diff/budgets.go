package diff

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/rules"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// JudgeBudgets judges captures without a base: the first run of a gate, before a baseline was recorded. Budgets are
// judged; rules on changes are left out and counted in the reason. The comparison has no base, is not comparable, and
// states [NoBaseline] first. It fails if there is no report, and for the reasons for which [Compare] does.
func JudgeBudgets(head []*report.Report, opt Options) (*comparison.Comparison, error) {
	if len(head) == 0 {
		return nil, errors.New("diff: there is no report to judge")
	}
	if err := opt.fill(); err != nil {
		return nil, err
	}
	c := &comparison.Comparison{Schema: comparison.SchemaID, Tool: report.Tool{Name: "explain", Version: opt.Version},
		Depth: comparison.DepthNone}
	s := &side.Side{Captures: side.NewCaptures(head)}
	c.Head = s.Describe()
	c.Unit.Kind, c.Unit.Name, c.Unit.OverlapNeeded = head[0].Unit.Kind, head[0].Unit.Name, pairing.OverlapNeeded
	text := map[policy.NoBase]string{policy.NotNamed: "none was named",
		policy.NeverMade: "there can be none yet (first run)",
		policy.Lost:      "the requested one does not exist"}[opt.NoBase]
	if n := opt.Policy.Changes(); n > 0 {
		text += fmt.Sprintf("; %s of the policy judge changes, need a baseline and were skipped", wording.Count(n, "rule"))
	}
	c.Reason(comparison.NoBaseline, text)
	if len(s.Captures[0].Kinds) == 0 {
		c.Reason(comparison.NoUnit, "budgets of unit metrics judge nothing: name a unit with --unit (explain doc unit)")
	}
	c.Fill()
	c.Judged(rules.Budgets(c, opt.Policy, s, opt.Today, opt.NoBase))
	c.Answer.Notes = []string{"there is no baseline to compare with", wording.Count(c.Counts.GatesChecked, "budget") + " checked"}
	if i := slices.IndexFunc(c.Gates, func(g comparison.Gate) bool { return g.Verdict == comparison.Fail }); i >= 0 {
		c.Answer.Notes = []string{"budget of " + c.Gates[i].Metric + ": " + c.Gates[i].Reason, c.Answer.Notes[0]}
	}
	c.Cause = c.Answer.String()
	return c, c.Validate()
}
