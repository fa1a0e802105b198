package diffdoc

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// CombinedComment returns several comparisons, at least one, in one comment of at most limit bytes: the worst verdict,
// a row for each leg, worst first, and each leg folded. To fit, it drops rows and parts as [Comment] does.
func CombinedComment(legs []comparison.Leg, o CommentOptions, limit int) string {
	legs = slices.Clone(legs)
	lists.Sort(legs, func(a, b comparison.Leg) int {
		return comparison.Rank(b.Comparison.Verdict) - comparison.Rank(a.Comparison.Verdict)
	})
	p, worst := commentPage{o: &o}, legs[0].Comparison.Verdict
	title := p.heading(worst, doc.Spans(verdictWord(worst), " "+countedLegs(legs)))
	page := func(parts []doc.Block) (d doc.Document) {
		d.Add(slices.Concat([]doc.Block{title}, p.notes(), []doc.Block{legTable(legs)}, parts, []doc.Block{doc.P(p.provenance())})...)
		return d
	}
	return fit(limit, page(foldedLegs(legs)), page(leftOut()), doc.Document{title}, doc.Document{doc.P(verdictWord(worst))})
}

// Worst returns the comparison with the worst verdict, the first one if there are several. legs must not be empty.
func Worst(legs []comparison.Leg) *comparison.Comparison {
	return slices.MaxFunc(legs, func(a, b comparison.Leg) int {
		return comparison.Rank(a.Comparison.Verdict) - comparison.Rank(b.Comparison.Verdict)
	}).Comparison
}

// countedLegs counts the legs by their verdicts, the worst first: "2 failed, 1 error of 7".
func countedLegs(legs []comparison.Leg) string {
	words := []verdictCount{{comparison.Fail, "failed"}, {comparison.Error, "error"},
		{comparison.Inconclusive, "inconclusive"}, {comparison.Warn, "warned"}}
	parts := tally(legs, words, func(l comparison.Leg) comparison.Verdict { return l.Comparison.Verdict })
	return cmp.Or(strings.Join(parts, ", "), "all passed") + " of " + unit.Int(len(legs))
}

// legTable has a row for each leg; the first is one of the worst.
func legTable(legs []comparison.Leg) doc.Table {
	t := doc.Table{ID: "legs", Columns: doc.Cols("Comparison", "Verdict", ">Change", ">Gates not passed", "Cause")}
	for _, l := range legs {
		c := l.Comparison
		verdict := doc.Text(string(c.Verdict)).With(verdictTones[c.Verdict])
		if c.Verdict == legs[0].Comparison.Verdict && c.Verdict != comparison.Pass {
			verdict.Kind = doc.KindStrong
		}
		change := comparison.NoValue
		if c.Comparable {
			change = cmp.Or(c.Answer.Size(), change)
		}
		t.Row(doc.Name(l.Name), verdict, change, unit.Int(len(noticedGates(c))), firstCause(c))
	}
	return t
}

// firstCause is the largest cause in one line; if there is none, the first note.
func firstCause(c *comparison.Comparison) string {
	if a := &c.Answer; len(a.Rows) > 0 {
		return delta(a.Rows[0].Delta) + " " + clip(a.Rows[0].Text())
	}
	if n := c.Answer.Notes; len(n) > 0 {
		return clip(n[0])
	}
	return ""
}

// foldedLegs shows the primary numbers and the evidence of each leg.
func foldedLegs(legs []comparison.Leg) []doc.Block {
	return lists.Map(legs, func(l comparison.Leg) doc.Block {
		leg := commentPage{c: l.Comparison, o: &CommentOptions{}}
		return doc.Fold("", doc.Spans(doc.Name(l.Name), ": "+string(l.Comparison.Verdict)), slices.Concat(
			obstructions(l.Comparison), everyNumber(l.Comparison), leg.footer())...)
	})
}
