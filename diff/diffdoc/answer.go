package diffdoc

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// notes returns the answer's notes; none for a first run, whose verdict line says all.
func notes(c *comparison.Comparison) []string {
	if c.FirstRun() {
		return nil
	}
	return c.Answer.Notes
}

// sidesText states both values of the answer, what they measure, and in how many steps the change is.
func sidesText(a *comparison.Answer) string {
	return a.Sides() + report.Of(a.Of, func(steps string) string { return ", in " + steps }, "")
}

// causeList has a line for each cause, of at most so many words, and one for the rest.
func causeList(a *comparison.Answer, words int) (l doc.List) {
	for _, r := range a.Rows {
		tone := doc.Bad
		if r.Delta < 0 {
			tone = doc.Good
		}
		l.Add(doc.Strong(delta(r.Delta)).With(tone), " "+r.Brief(words))
	}
	if rest := a.RestText(); rest != "" {
		l.Add(doc.Text(rest + " the rest").With(doc.Muted))
	}
	return l
}

// paragraph is one sentence of the parts, or one of each if they are more than three.
func paragraph(parts []string) string {
	if len(parts) <= 3 {
		return sentence(parts)
	}
	return strings.Join(lists.Map(parts, func(part string) string { return sentence([]string{part}) }), " ")
}

// sentence joins parts to a sentence that ends with a full stop, and that begins with a capital unless its first word
// is a name; of no parts it is empty.
func sentence(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, "; ")
	if word, _, _ := strings.Cut(text, " "); strings.Trim(word, "abcdefghijklmnopqrstuvwxyz,") == "" && word != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text + "."
}
