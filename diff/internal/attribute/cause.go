package attribute

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Explain writes into the comparison, once its gates stand, what changed and why, in one sentence that follows by rule
// from the tables. It begins with the kind of unit that the headline is about, or, where that is of no kind, with the
// one that most of the change comes from. The attribution becomes that of the same kind; other kinds that got
// slower follow in the sentence.
func (x *Parts) Explain() {
	c := x.C
	switch {
	case c.Identical:
		c.Cause = "No change: every number that both sides have is equal."
	case !c.Comparable && len(c.Reasons) > 0:
		c.Cause = "Not comparable: " + c.Reasons[0].Text + "."
	case c.Depth == comparison.DepthEvidence:
		c.Cause = x.evidenceCause()
	case c.Row("unit.time.mean") == nil:
		c.Cause = "Nothing could be compared."
	default:
		c.Cause = x.cause()
	}
}

func (x *Parts) cause() string {
	stories := x.stories()
	lead := stories[0]
	text := upperFirst(lead.text())
	work := x.C.Row(comparison.MetricWork)
	if row, _ := x.C.Headline(); work != nil && row == work && comparison.Real(work) {
		text = upperFirst(direction(work)) + ", " + workText(work) + ": " + lead.subject()
		work = nil
	}
	texts := []string{text}
	add := func(text string) {
		if text != "" {
			texts = append(texts, text)
		}
	}
	for _, s := range stories[1:] {
		add(s.text())
	}
	if work != nil && work.Class == comparison.Regressed {
		add(workText(work))
	}
	if x.C.Has(comparison.GraphCaptureMismatch) && x.C.Depth == comparison.DepthUnit {
		add("CUDA graphs hide kernels on one side: single kernels are not compared")
	}
	add(x.Moved)
	if !slices.ContainsFunc(stories, func(s *story) bool { return s.what != "" }) {
		add(x.mixText())
	}
	add(x.unjudgedText())
	add(x.elsewhere(strings.Join(texts, "; ")))
	if lead.Parts != x && lead.what == "" {
		x.C.Attribution = lead.C.Attribution
		x.C.Attribution.Kind = lead.Kind.String()
	}
	return strings.Join(texts, "; ") + "."
}

func workText(w *comparison.Row) string {
	return "base's work takes " + rowChange(w) + " at head's times"
}

func rowChange(r *comparison.Row) string {
	if r.Ratio == nil {
		return "of unknown size"
	}
	return unit.Change(*r.Ratio - 1)
}

// direction is the word for a change that is known.
func direction(r *comparison.Row) string {
	if r.Class == comparison.Improved {
		return "faster"
	}
	return "slower"
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
