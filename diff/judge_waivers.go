package diff

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
)

// Status of a waiver after a comparison.
const (
	WaiverApplied   = "applied"    // it accepted what some gates found
	WaiverUnused    = "unused"     // nothing was there to accept: it warns, so that it is taken out
	WaiverExpired   = "expired"    // its day has passed: it accepts nothing, and what it would have accepted fails again
	WaiverExceeded  = "exceeded"   // what it covers went beyond its ceiling, and fails
	WaiverNotJudged = "not_judged" // what it covers could not be judged this time
)

// warns reports whether a waiver needs somebody's hand.
func (w *WaiverUse) warns() bool {
	return w.Status == WaiverUnused || w.Status == WaiverExpired
}

// waive lets waivers accept what gates found: the gate passes, and names its waiver. The first waiver that covers a gate and
// holds is the one that counts.
func (j *judge) waive() []WaiverUse {
	uses := make([]WaiverUse, 0, len(j.p.Waivers))
	for i := range j.p.Waivers {
		w := &j.p.Waivers[i]
		use := WaiverUse{Rule: w.Rule, Match: w.Match.String(), Expires: w.Expires.Format(time.DateOnly), Issue: w.Issue, Reason: w.Reason}
		if w.Ceiling != nil {
			use.Ceiling = w.Ceiling.Text
		}
		expired := j.today.After(w.Expires)
		names := w.Match.compile()
		covered, applied, exceeded, open := 0, int64(0), false, false
		for k := range j.c.Gates {
			g := &j.c.Gates[k]
			if g.Rule != w.Rule || !w.Match.empty() && !names.covers(g, j.rulings[k].alias) {
				continue
			}
			covered++
			if g.Verdict == Inconclusive {
				open = true
				continue
			}
			if g.Verdict != Fail && g.Verdict != Warn || g.Waiver != nil && g.Waiver.Status == WaiverApplied {
				continue
			}
			ref := &WaiverRef{Expires: use.Expires, Issue: w.Issue, Reason: w.Reason, Ceiling: use.Ceiling, Status: WaiverApplied}
			switch {
			case expired:
				ref.Status = WaiverExpired
				g.Reason += fmt.Sprintf("; its waiver%s expired on %s", issueText(w.Issue), use.Expires)
			case !w.Ceiling.holds(g, j.rulings[k].kind):
				ref.Status, exceeded = WaiverExceeded, true
				g.Reason += fmt.Sprintf("; its waiver%s accepts %s at most", issueText(w.Issue), use.Ceiling)
			default:
				applied++
				g.Verdict = Pass
				g.Reason += fmt.Sprintf("; accepted until %s by a waiver%s: %s", use.Expires, issueText(w.Issue), w.Reason)
			}
			g.Waiver = ref
		}
		use.Gates = applied
		switch {
		case expired:
			use.Status = WaiverExpired
		case exceeded:
			use.Status = WaiverExceeded
		case applied > 0:
			use.Status = WaiverApplied
		case open || !j.c.Comparable && covered == 0:
			use.Status = WaiverNotJudged
		default:
			use.Status = WaiverUnused
		}
		uses = append(uses, use)
	}
	return uses
}

func issueText(issue string) string {
	if issue == "" {
		return ""
	}
	return " (" + issue + ")"
}

// covers reports whether a match is of what a gate judged. Of a kernel that replaced another, either name will do.
func (m *nameMatch) covers(g *Gate, alias string) bool {
	for _, key := range naming {
		if v, ok := g.Labels[key]; ok {
			return m.matches(v) || alias != "" && m.matches(alias)
		}
	}
	return false
}

// holds reports whether what a gate found is at most the ceiling. A change that has no base to be relative to is above any
// relative one.
func (c *Ceiling) holds(g *Gate, kind string) bool {
	switch {
	case c == nil:
		return true
	case kind == ruledMax:
		return g.Head != nil && within(*g.Head, c.Value)
	case kind == ruledMin:
		return g.Head != nil && *g.Head >= c.Value
	}
	size := math.Abs(value(g.Head) - value(g.Base))
	if !c.Relative {
		return within(size, c.Value)
	}
	return g.Base != nil && *g.Base != 0 && within(size/math.Abs(*g.Base), c.Value)
}

// String is a match as a policy would write it.
func (m Match) String() string {
	switch {
	case m.Regex == "":
		return m.Glob
	case m.Glob == "":
		return "/" + m.Regex + "/"
	}
	return m.Glob + " /" + m.Regex + "/"
}

// maxOverrideText bounds, in characters, what is kept of a label or a name.
const maxOverrideText = 100

// Accept records that somebody accepts what was found, by a label on the pull request say: a verdict of fail becomes warn,
// and the comparison names who said so. The gates stand as they were judged. It reports whether there was anything to
// accept; if not, nothing is recorded.
func (c *Comparison) Accept(label, by string) bool {
	if c.Verdict != Fail {
		return false
	}
	c.Overrides = append(c.Overrides, Override{Label: printable(label), By: printable(by), From: c.Verdict, To: Warn})
	c.Verdict = Warn
	return true
}

// Withdraw takes back what [Comparison.Accept] did: whoever reads a comparison of somebody else asks for the label again.
func (c *Comparison) Withdraw() {
	if len(c.Overrides) > 0 {
		c.Verdict, c.Overrides = c.Overrides[0].From, []Override{}
	}
}

// printable keeps the start of a text, without what cannot be printed.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if r := []rune(s); len(r) > maxOverrideText {
		s = string(r[:maxOverrideText])
	}
	return s
}
