package diffdoc

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// CombinedComment returns several comparisons in one comment of at most o.Limit bytes: the worst verdict, a row for
// each leg, worst first, and each leg folded. To fit, it drops rows and parts as [Comment] does.
func CombinedComment(legs []comparison.Leg, o CommentOptions) string {
	legs = slices.Clone(legs)
	lists.Sort(legs, func(a, b comparison.Leg) int {
		return comparison.Rank(b.Comparison.Verdict) - comparison.Rank(a.Comparison.Verdict)
	})
	p := mergedPage{legs: legs, o: &o}
	return fit(o.Limit, p.document(p.folded()), p.document(leftOut()),
		doc.Document{p.title()}, doc.Document{doc.P(verdictWord(p.worst()))})
}

// Worst returns the comparison with the worst verdict, the first one if there are several. legs must not be empty.
func Worst(legs []comparison.Leg) *comparison.Comparison {
	return slices.MaxFunc(legs, func(a, b comparison.Leg) int {
		return comparison.Rank(a.Comparison.Verdict) - comparison.Rank(b.Comparison.Verdict)
	}).Comparison
}

type mergedPage struct {
	legs []comparison.Leg
	o    *CommentOptions
}

func (p mergedPage) worst() comparison.Verdict {
	if len(p.legs) == 0 {
		return comparison.Inconclusive
	}
	return p.legs[0].Comparison.Verdict
}

// title counts the legs by their verdicts, the worst first: "2 failed, 1 error of 7".
func (p mergedPage) title() doc.Block {
	words := []verdictCount{{comparison.Fail, "failed"}, {comparison.Error, "error"},
		{comparison.Inconclusive, "inconclusive"}, {comparison.Warn, "warned"}}
	parts := tally(p.legs, words, func(l comparison.Leg) comparison.Verdict { return l.Comparison.Verdict })
	if len(parts) == 0 {
		parts = []string{"all passed"}
	}
	spans := doc.Spans(verdictWord(p.worst()), " "+strings.Join(parts, ", ")+" of "+unit.Int(len(p.legs)))
	return commentPage{o: p.o}.heading(p.worst(), spans)
}

func (p mergedPage) document(parts []doc.Block) doc.Document {
	var d doc.Document
	d.Add(p.title())
	d.Add(commentPage{o: p.o}.notes()...)
	t := doc.Table{ID: "legs", Columns: doc.Cols("Comparison", "Verdict", ">Change", ">Gates not passed", "Cause")}
	for _, l := range p.legs {
		c := l.Comparison
		verdict := doc.Text(string(c.Verdict)).With(verdictTones[c.Verdict])
		if c.Verdict == p.worst() && c.Verdict != comparison.Pass {
			verdict.Kind = doc.KindStrong
		}
		change := doc.Text(comparison.NoValue)
		if size := c.Answer.Size(); c.Comparable && size != "" {
			change = doc.Text(size)
		}
		t.Row(doc.Name(l.Name), verdict, change, unit.Int(len(noticedGates(c))), firstCause(c))
	}
	d.Add(t)
	d.Add(parts...)
	d.Add(doc.P(commentPage{o: p.o}.provenance()))
	return d
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

// folded shows the primary numbers and the evidence of each leg.
func (p mergedPage) folded() []doc.Block {
	var list []doc.Block
	for _, l := range p.legs {
		leg := commentPage{c: l.Comparison, o: &CommentOptions{}}
		list = append(list, doc.Fold("", doc.Spans(doc.Name(l.Name), ": "+string(l.Comparison.Verdict)), slices.Concat(
			obstructions(l.Comparison), everyNumber(l.Comparison), leg.footer())...))
	}
	return list
}
