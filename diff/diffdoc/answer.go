package diffdoc

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// answerBlocks are the answer under its size: both values, a line for each cause, and what else there is to know.
func answerBlocks(c *comparison.Comparison) []doc.Block {
	var list []doc.Block
	if p := sidesOf(&c.Answer); len(p) > 0 {
		list = append(list, doc.P(p))
	}
	if l := causeList(&c.Answer); len(l.Items) > 0 {
		list = append(list, l)
	}
	if n := notes(c); len(n) > 0 {
		list = append(list, doc.P(sentence(n)))
	}
	return list
}

// notes are what else there is to know; of a first run the verdict's line says all.
func notes(c *comparison.Comparison) []string {
	if c.FirstRun() {
		return nil
	}
	return c.Answer.Notes
}

// sidesOf are both values of the answer, what they are of, and in how many steps the change is.
func sidesOf(a *comparison.Answer) []doc.Span {
	text := a.Sides()
	if a.Of != nil {
		text += ", in " + comparison.Value(a.Of)
	}
	if text == "" {
		return nil
	}
	return doc.Spans(doc.Strong(text))
}

// causeList is a line for each cause, and one for what they leave.
func causeList(a *comparison.Answer) (l doc.List) {
	for i := range a.Rows {
		r := &a.Rows[i]
		l.Add(doc.Strong(unit.Delta(r.Delta, report.Nanoseconds)).With(deltaTone(r.Delta)), " "+r.Text())
	}
	if rest := a.RestText(); rest != "" {
		l.Add(doc.Text(rest + " the rest").With(doc.Muted))
	}
	return l
}

// sentence ends with a full stop, and begins with a capital where its first word is no name.
func sentence(parts []string) string {
	text := strings.Join(parts, "; ")
	if word, _, _ := strings.Cut(text, " "); strings.Trim(word, "abcdefghijklmnopqrstuvwxyz,") == "" && word != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text + "."
}

func deltaTone(d float64) doc.Tone {
	if d < 0 {
		return doc.Good
	}
	return doc.Bad
}
