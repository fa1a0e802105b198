package diffdoc

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// screenWords bounds the first screen of a comment: what a reader sees without unfolding anything.
const (
	screenWords = 120
	screenRows  = 3 // of gates
)

// screen returns what comes before the first fold below the title: causes, the gates that decided the verdict, notes
// and what to do. What exceeds screenWords is folded, the least important part first.
func (p commentPage) screen() (first, folded []doc.Block) {
	accept, reproduce := p.next()
	parts := [][]doc.Block{
		doc.Some(causeList(&p.c.Answer, causeWords)),
		doc.Some(failing(p.c)),
		p.notes(),
		doc.Some(doc.P(clipTo(paragraph(notes(p.c)), causeText))),
		doc.Some(accept),
		doc.Some(reproduce),
	}
	left := screenWords - wordCount([]doc.Block{p.title()})
	keep := make([]bool, len(parts))
	for _, i := range []int{0, 1, 4, 2, 3, 5} { // the most important first
		if n := wordCount(parts[i]); n <= left {
			keep[i], left = true, left-n
		}
	}
	for i, part := range parts {
		if keep[i] {
			first = append(first, part...)
		} else {
			folded = append(folded, part...)
		}
	}
	return first, folded
}

// causeWords bounds the words in the line of a cause, without its size.
const causeWords = 16

func wordCount(blocks []doc.Block) int {
	return lists.Count(strings.Fields(strings.ReplaceAll(markdownText(blocks), "|", " ")), func(w string) bool {
		return strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	})
}

// failing lists the gates that decided the verdict, unless it is a pass: first the one whose number the title states.
func failing(c *comparison.Comparison) doc.Table {
	t := doc.Table{ID: "failing", Columns: doc.Cols("Gate", ">Base", ">Head", ">Change", "Limit")}
	if !c.Comparable && !c.FirstRun() {
		return t
	}
	more := 0
	gates := standing(c)
	if row, _ := c.Headline(); row != nil {
		lists.Lead(gates, func(g comparison.Gate) bool { return g.Of(row) })
	}
	for i := range gates {
		switch g := &gates[i]; {
		case g.Base == nil && g.Head == nil:
		case len(t.Rows) == screenRows:
			more++
		default:
			u := unitOf(c, g)
			t.Row(doc.Spans(doc.Name(g.Rule), " ", gateMetric(c, g)), format(g.Base, u), format(g.Head, u),
				cmp.Or(ratioText(g.Ratio), comparison.NoValue), limitText(g.Threshold))
		}
	}
	andMore(&t, more)
	return t
}

// unitOf is the unit of what a gate judged, taken from the row of the same name or from the name; empty if unknown.
func unitOf(c *comparison.Comparison, g *comparison.Gate) string {
	if r := lists.Find(c.Primary, func(r *comparison.Row) bool { return g.Of(r) || r.Metric == g.Metric }); r != nil {
		return r.Unit
	}
	switch {
	case g.Metric == comparison.MetricTokenRate, strings.Contains(g.Metric, "throughput"):
		return report.PerSecond
	case strings.Contains(g.Metric, "time"), strings.Contains(g.Metric, "latency"):
		return report.Nanoseconds
	case strings.Contains(g.Metric, "ratio"), strings.Contains(g.Metric, "coverage"):
		return report.Ratio
	case strings.Contains(g.Metric, "bytes"):
		return report.Bytes
	}
	return report.Count
}

// limitText formats a threshold for people: 3 % and 10 µs.
func limitText(threshold string) string {
	parts := strings.Split(threshold, ",")
	for i, s := range parts {
		s = strings.TrimLeft(s, "+-±")
		s = strings.NewReplacer("<=", "at most ", ">=", "at least ").Replace(s)
		at := strings.LastIndexAny(s, "0123456789") + 1
		parts[i] = strings.TrimSpace(s[:at] + " " + strings.TrimSpace(s[at:]))
	}
	return strings.Join(parts, " and ")
}

// next says how to accept a verdict and when that takes effect, and how to repeat the comparison.
func (p commentPage) next() (accept, reproduce doc.Paragraph) {
	var spans []doc.Span
	under := "under "
	failed := p.c.Verdict == comparison.Fail
	if p.o.AcceptLabel != "" && (failed || p.c.Verdict == comparison.Inconclusive) {
		spans = doc.Spans("the label ", doc.Name(p.o.AcceptLabel), " (at once)")
		under = ", or under "
	}
	if waivers := p.waivers(); failed && len(waivers) > 0 {
		unshortened := func(w string) any { return doc.Code(w) } // a name would be cut in its middle
		spans = doc.Spans(spans, under, doc.Code("waivers:"), " of the base's policy (once merged) ",
			doc.Joined(" and ", waivers, unshortened))
		if p.o.Provenance.Policy == DefaultRules {
			spans = doc.Spans(spans, "; a new policy begins with ", doc.Code("version: 1"), " and ", doc.Code("preset: llm-serving"))
		}
	}
	if len(spans) > 0 {
		accept = doc.P("To accept this: ", spans)
	}
	if p.o.Reproduce != "" {
		reproduce = doc.P("To reproduce: ", doc.Code(p.o.Reproduce)) // unshortened: it is pasted into a shell
	}
	return accept, reproduce
}

// waivers returns policy entries that accept every failure, in the format of a policy file: one for the rules with a
// relative change, with the worst change as ceiling, and one for the others, which have no such size, such as a budget
// or something new.
func (p commentPage) waivers() []string {
	var sized, others []string
	worst := 0.0
	if p.o.Provenance.Policy == FlagRules {
		return nil
	}
	if slices.ContainsFunc(p.c.Gates, func(g comparison.Gate) bool {
		return comparison.Rank(g.CountsAs) >= comparison.Rank(comparison.Inconclusive) && !failed(g)
	}) {
		return nil // no waiver accepts an uncertain result
	}
	failures := lists.Filter(p.c.Gates, failed)
	for _, gates := range lists.Groups(failures, func(g comparison.Gate) string { return g.Rule }) {
		rule := gates[0].Rule
		switch {
		case !waivable().MatchString(rule):
			return nil
		case lists.Count(gates, hasSize) < len(gates):
			others = append(others, rule)
		default:
			sized = append(sized, rule)
			worst = max(worst, lists.Most(gates, func(g comparison.Gate) float64 {
				return math.Abs(comparison.Value(g.Head)/comparison.Value(g.Base) - 1)
			}))
		}
	}
	day := "YYYY-MM-DD"
	if !p.o.Today.IsZero() {
		day = p.o.Today.AddDate(0, 1, 0).Format(time.DateOnly)
	}
	var list []string
	for _, w := range []struct {
		rules   []string
		ceiling string
	}{{sized, fmt.Sprintf(", ceiling: %.0f%%", math.Ceil(worst*100))}, {others, ""}} {
		if len(w.rules) == 0 {
			continue
		}
		rules := strings.Join(w.rules, ", ")
		if len(w.rules) > 1 {
			rules = "[" + rules + "]"
		}
		list = append(list, "- {rule: "+rules+w.ceiling+", expires: "+day+", reason: say why}")
	}
	return list
}

// waivable matches ids of rules that a waiver can name. A rule without an id is known by its text.
var waivable = pattern.New(`^[A-Za-z0-9][A-Za-z0-9 ._/-]{0,99}$`)

// failed reports whether a gate failed, or would have failed if a label had not accepted it.
func failed(g comparison.Gate) bool {
	return g.Verdict == comparison.Fail || g.Verdict == comparison.Warn && g.Level == comparison.LevelError
}

// hasSize reports whether the gate's result is a relative change, which a ceiling can bound.
func hasSize(g comparison.Gate) bool {
	return comparison.Value(g.Base) != 0 && g.Head != nil && !strings.ContainsAny(g.Threshold, "<>") && !strings.HasPrefix(g.Threshold, "improve")
}

// acceptedBy says in the title what accepted a failure; empty if nothing did.
func (p commentPage) acceptedBy() []doc.Span {
	if len(p.c.Overrides) > 0 {
		o := p.c.Overrides[0]
		spans := doc.Spans(", accepted by ", doc.Name(o.Label))
		if o.By != "" {
			spans = append(spans, doc.Text(" of "), doc.Name(o.By))
		}
		return spans
	}
	n := accepted(p.c)
	w := lists.Find(p.c.Waivers, func(w *comparison.WaiverUse) bool { return w.Status == comparison.WaiverApplied })
	if n == 0 || w == nil {
		return nil
	}
	return doc.Spans(", "+wording.Count(n, "gate")+" accepted by a waiver until ", doc.Name(w.Expires))
}
