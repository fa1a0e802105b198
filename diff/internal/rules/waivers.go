package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
)

// waive applies waivers to what gates found: the gate passes and names its waiver. The first waiver that covers a gate
// and holds counts.
func (j *judge) waive() []comparison.WaiverUse {
	uses := make([]comparison.WaiverUse, 0, len(j.p.Waivers))
	for i := range j.p.Waivers {
		w := &j.p.Waivers[i]
		use := comparison.WaiverUse{Rule: strings.Join(w.Rules, ", "), Match: w.Match.String(),
			Expires: w.Expires.Format(time.DateOnly), Issue: w.Issue, Reason: w.Reason}
		if w.Ceiling != nil {
			use.Ceiling = w.Ceiling.Text
		}
		expired := j.today.After(w.Expires)
		names := w.Match.Compile()
		covered, applied, exceeded, open := 0, int64(0), false, false
		for k := range j.gates {
			g := &j.gates[k]
			if !slices.Contains(w.Rules, g.Rule) || !w.Match.Empty() && !names.Covers(g.Labels, j.questions[k].also()...) {
				continue
			}
			covered++
			if g.Verdict == comparison.Inconclusive {
				open = true
				continue
			}
			if g.Verdict != comparison.Fail && g.Verdict != comparison.Warn ||
				g.Waiver != nil && g.Waiver.Status == comparison.WaiverApplied {
				continue
			}
			ref := &comparison.WaiverRef{Expires: use.Expires, Issue: w.Issue, Reason: w.Reason,
				Ceiling: use.Ceiling, Status: comparison.WaiverApplied}
			switch {
			case expired:
				ref.Status = comparison.WaiverExpired
				g.Reason += fmt.Sprintf("; its waiver%s expired on %s", policy.IssueText(w.Issue), use.Expires)
			case !holds(w.Ceiling, g, j.questions[k].r):
				ref.Status, exceeded = comparison.WaiverExceeded, true
				g.Reason += fmt.Sprintf("; its waiver%s accepts %s at most", policy.IssueText(w.Issue), use.Ceiling)
			default:
				applied++
				g.Verdict = comparison.Pass
				g.Reason += fmt.Sprintf("; accepted until %s by a waiver%s: %s", use.Expires, policy.IssueText(w.Issue),
					w.Reason)
			}
			g.Waiver = ref
		}
		use.Gates = applied
		switch {
		case expired:
			use.Status = comparison.WaiverExpired
		case exceeded:
			use.Status = comparison.WaiverExceeded
		case applied > 0:
			use.Status = comparison.WaiverApplied
		case open || !j.c.Comparable && covered == 0:
			use.Status = comparison.WaiverNotJudged
		default:
			use.Status = comparison.WaiverUnused
		}
		uses = append(uses, use)
	}
	return uses
}

// also returns all names of a kernel and of the one that it replaced, other than the label's.
func (q *question) also() []string {
	if q.s == nil {
		return nil
	}
	return slices.Concat(q.s.kernel, q.s.replaced)
}

// holds reports whether what a rule's gate found is at most the ceiling. A change without a base to relate to exceeds
// any relative ceiling.
func holds(c *policy.Ceiling, g *comparison.Gate, r *policy.Rule) bool {
	switch {
	case c == nil:
		return true
	case r.Budgeted() && g.Head == nil:
		return false
	case r.Min != nil && comparison.Value(g.Head) < *r.Min:
		return comparison.Value(g.Head) >= c.Value
	case r.Budgeted():
		return policy.Within(comparison.Value(g.Head), c.Value)
	}
	size := math.Abs(comparison.Value(g.Head) - comparison.Value(g.Base))
	if !c.Relative {
		return policy.Within(size, c.Value)
	}
	return g.Base != nil && comparison.Value(g.Base) != 0 && policy.Within(size/math.Abs(comparison.Value(g.Base)), c.Value)
}
