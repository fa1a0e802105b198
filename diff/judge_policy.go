package diff

import (
	"errors"
	"fmt"

	"github.com/nsys-llm/explain/analyze/report"
)

// counts is what a gate contributes to the verdict of the comparison: its own verdict, or what the policy says of an answer
// that is none, and warn at most where the rule only warns.
func (p *Policy) counts(g *Gate) Verdict {
	v := g.Verdict
	if v == Inconclusive {
		switch g.Code {
		case WideInterval:
			v = p.Stats.OnInconclusive
		case DifferentWork, NoUnit, EmptySide, EnvironmentMismatch, GraphCaptureMismatch, LowCoverage:
			v = p.Stats.OnNotComparable
		case MissingMetric, NothingMatched:
			v = p.Stats.OnMissing
		case NoBaseline: // budgets need none
		}
	}
	if g.Level == LevelWarn && rank(v) > rank(Warn) {
		return Warn
	}
	return v
}

// firstRun is the least verdict where there is no base: what the policy says of that, if it has rules that need one. Where
// no budget was judged either, nothing was answered, which is never a pass.
func (p *Policy) firstRun(checked int64) Verdict {
	switch {
	case p.Changes() == 0 && checked == 0:
		return Inconclusive
	case p.Changes() == 0:
		return Pass
	case checked == 0:
		return worse(p.Stats.OnMissingBaseline, Warn)
	}
	return p.Stats.OnMissingBaseline
}

// info is what a comparison says of the policy it was judged by.
func (p *Policy) info() PolicyInfo {
	i := PolicyInfo{
		Preset: p.Preset, Unit: p.Unit, Alpha: p.Stats.Alpha, FDR: p.Stats.FDR, MinCaptures: int64(p.Stats.MinCaptures),
		OnInconclusive: p.Stats.OnInconclusive, OnNotComparable: p.Stats.OnNotComparable, OnMissing: p.Stats.OnMissing, OnMissingBaseline: p.Stats.OnMissingBaseline,
		Rules: int64(p.Changes()), Budgets: int64(p.Budgets()), IgnoredKernels: append([]string{}, p.IgnoreKernels...),
		Hard: append([]string{}, p.Environment.Hard...), Soft: append([]string{}, p.Environment.Soft...), Residue: append([]string{}, p.Environment.Residue...),
	}
	if i.Unit == "" {
		i.Unit = "auto"
	}
	return i
}

// JudgeBudgets judges captures that there is nothing to compare with: the first run of a gate, before a baseline was
// recorded. Rules on changes are left out and counted in the reason; budgets are judged. The comparison has no base, is not
// comparable, and says [NoBaseline] first. It fails where there is no report, and for the reasons that [Compare] does.
func JudgeBudgets(head []*report.Report, opt Options) (*Comparison, error) {
	if len(head) == 0 {
		return nil, errors.New("diff: there is no report to judge")
	}
	if err := opt.fill(); err != nil {
		return nil, err
	}
	c := &Comparison{Schema: SchemaID, Tool: report.Tool{Name: "explain", Version: opt.Version}, Depth: DepthNone}
	s := &side{captures: newCaptures(head)}
	c.Head = s.describe()
	c.Unit.Kind, c.Unit.Name, c.Unit.OverlapNeeded = head[0].Unit.Kind, head[0].Unit.Name, overlapNeeded
	text := "no baseline (first run): nothing to compare with"
	if n := opt.Policy.Changes(); n > 0 {
		text += fmt.Sprintf("; %s of the policy judge changes and wait for one", count(int64(n), "rule"))
	}
	c.Reasons = []Reason{{NoBaseline, text}}
	c.fill()
	judgeFirst(c, opt.Policy, s, opt.Today)
	c.Cause = "First run: there is no baseline to compare with; " + count(c.Counts.GatesChecked, "budget") + " checked"
	return c, c.Validate()
}

// FirstRun reports whether there was no base to compare with.
func (c *Comparison) FirstRun() bool { return c.Base.Captures == 0 }
