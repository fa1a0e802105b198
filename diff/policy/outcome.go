package policy

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Counts is the part of a gate in the verdict of the comparison: its own verdict, or the one that its rule or the
// policy sets for a missing answer, and warn at most if the rule only warns.
func (p *Policy) Counts(g *comparison.Gate, onInconclusive comparison.Verdict) comparison.Verdict {
	v := g.Verdict
	if v == comparison.Inconclusive {
		switch g.Code {
		case comparison.WideInterval, comparison.Trend:
			v = cmp.Or(onInconclusive, p.Stats.OnInconclusive)
			if g.Class == comparison.Regressed { // for certain; only how much is not
				v = comparison.Worse(v, comparison.Inconclusive)
			}
		case comparison.DifferentWork, comparison.NoUnit, comparison.EmptySide, comparison.EnvironmentMismatch,
			comparison.GraphCaptureMismatch, comparison.LowCoverage, comparison.SameCapture, comparison.OneRun,
			comparison.IncompleteCapture, comparison.HighOverhead, comparison.FailedRequests:
			v = p.Stats.OnNotComparable
		case comparison.MissingMetric, comparison.MissingKind, comparison.NothingMatched:
			v = p.Stats.OnMissing
		case comparison.TooFewUnits: // no verdict, whatever the policy says of uncertain ones
		case comparison.NoBaseline: // budgets need none
		}
	}
	if g.Level == comparison.LevelWarn && comparison.Rank(v) > comparison.Rank(comparison.Warn) {
		return comparison.Warn
	}
	return v
}

// NoBase says why there is nothing to compare with.
type NoBase int

// Reasons.
const (
	NotNamed  NoBase = iota // nobody named a base: budgets are what is judged
	NeverMade               // the base branch has never run the workflow that makes one
	Lost                    // it was asked for and is not there: a wrong name, expired, deleted
)

// FirstRun is the least verdict if there is no base: the policy's, if it has rules that need one. Without a setting it
// is inconclusive, except for the first run, before a base can exist, and if budgets were judged and nothing else was
// asked for. If no budget was judged either, nothing was answered, which is never a pass.
func (p *Policy) FirstRun(checked int64, why NoBase) comparison.Verdict {
	switch {
	case p.Changes() == 0 && checked == 0:
		return comparison.Inconclusive
	case p.Changes() == 0:
		return comparison.Pass
	case p.Stats.OnMissingBaseline != "" && checked == 0:
		return comparison.Worse(p.Stats.OnMissingBaseline, comparison.Warn)
	case p.Stats.OnMissingBaseline != "":
		return p.Stats.OnMissingBaseline
	case why == NeverMade || why == NotNamed && checked > 0:
		return comparison.Warn
	}
	return comparison.Inconclusive
}

// Info describes the policy by which a comparison was judged.
func (p *Policy) Info() comparison.PolicyInfo {
	s, e := &p.Stats, &p.Environment
	return comparison.PolicyInfo{
		Preset: p.Preset, Unit: cmp.Or(p.Unit, "auto"),
		Alpha: s.Alpha, FDR: s.FDR, MinCaptures: int64(s.MinCaptures),
		OnInconclusive: s.OnInconclusive, OnNotComparable: s.OnNotComparable, OnMissing: s.OnMissing,
		OnMissingBaseline: cmp.Or(s.OnMissingBaseline, comparison.Inconclusive),
		Rules:             int64(p.Changes()), Budgets: int64(p.Budgets()),
		IgnoredKernels: append([]string{}, p.IgnoreKernels...),
		Hard:           append([]string{}, e.Hard...),
		Soft:           append([]string{}, e.Soft...),
		Residue:        append([]string{}, e.Residue...),
	}
}

// Spent is the part of a budget since an anchor that was used up before the judged change.
type Spent struct {
	Ratio float64  // of the base's level to that of the anchor; 0 if it is not known
	SE    float64  // standard error of its ln, from the noise between runs; 0 if that is not known
	By    []string // what used it up, the largest first: 3f2a91c +2.0 %
	Why   string   // why the ratio is not known
}

// SpentOnNothing is the key under which [Rule.Spent] says why nothing is known of any number.
const SpentOnNothing = "*"

// SpentOn is what was spent on the number with these labels, none for that of the main kind of unit. ok is false if
// no history was asked.
func (r *Rule) SpentOn(l report.Labels) (s Spent, ok bool) {
	if r.Spent == nil {
		return s, false
	}
	if s, ok = r.Spent[l.String()]; !ok {
		if s, ok = r.Spent[SpentOnNothing]; !ok {
			s.Why = "the history has no run of this kind of unit"
		}
	}
	return s, true
}
