package breakdown

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Another load: the number of running requests differs by this factor, and by this many requests.
const (
	otherLoad     = 1.5
	otherRequests = 2.0
)

// Running is the row of the requests that ran at a time; nil if a side does not know them.
func Running(c *comparison.Comparison) *comparison.Row {
	return lists.Find(c.Primary, func(r *comparison.Row) bool {
		return strings.HasPrefix(r.Metric, "serve.requests_running") && r.Base != nil && r.Head != nil
	})
}

// loadText warns of sides whose logs or metrics show another load: their steps may be alike, and what the server did
// besides is not. It is empty if they do not, if one is silent, or if that is studied.
func loadText(c *comparison.Comparison, answer comparison.Direction) string {
	r := Running(c)
	if r == nil || c.Study != nil && slices.ContainsFunc(c.Study.Fields,
		func(f comparison.StudyField) bool { return f.Name == "load" }) {
		return ""
	}
	base, head := comparison.Value(r.Base), comparison.Value(r.Head)
	few, many := min(base, head), max(base, head)
	if many < otherLoad*few || math.Abs(many-few) < otherRequests {
		return ""
	}
	text := fmt.Sprintf("the load differs, %s → %s requests running (%s): send the same load to both sides",
		unit.Format(base, r.Unit), unit.Format(head, r.Unit), r.Metric)
	if answer == comparison.NotComparable {
		text += ", or leave it so on purpose: --study need not name it"
	}
	return text
}

// lacksText says which evidence is missing on a side if only that keeps the verdict open.
func lacksText(c *comparison.Comparison) string {
	if c.Verdict != comparison.Inconclusive || !c.Comparable {
		return ""
	}
	open := lists.Filter(c.Gates, func(g comparison.Gate) bool { return g.CountsAs == comparison.Inconclusive })
	other := func(g comparison.Gate) bool { return g.Code != comparison.MissingMetric }
	side, flags := c.Lacks()
	if len(open) == 0 || side == "" || slices.ContainsFunc(open, other) {
		return ""
	}
	having := map[string]string{"base": "head", "head": "base"}[side]
	return fmt.Sprintf("only the %s's report has %s: add it to the %s's (explain report %s %s FILE --out %s/), or leave it out of both",
		having, strings.Join(flags, " and "), side, strings.ToUpper(side), strings.Join(flags, " FILE "), side)
}
