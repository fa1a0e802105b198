package attribute

import (
	"fmt"
	"strings"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/match"
)

// ofEvidence writes what a comparison of evidence came to: which numbers got worse, better, and are not settled.
func (x *Parts) ofEvidence() {
	texts := map[comparison.Class][]string{}
	for i := range x.C.Primary {
		r := &x.C.Primary[i]
		name := r.Metric
		if kernel := r.Labels["kernel"]; kernel != "" {
			name += " of " + match.Shorten(kernel)
		}
		if r.Delta != nil {
			name += " " + comparison.ChangeText(r)
		}
		texts[r.Class] = append(texts[r.Class], name)
	}
	a := &x.C.Answer
	const most = 3
	for _, part := range []struct {
		class     comparison.Class
		word      string
		direction comparison.Direction
	}{{comparison.Regressed, "worse: ", comparison.More}, {comparison.Improved, "better: ", comparison.Less},
		{comparison.Unsettled, "not settled: ", comparison.NotSettled}} {
		t := texts[part.class]
		if len(t) == 0 {
			continue
		}
		if a.Direction == "" {
			a.Direction = part.direction
		}
		text := part.word + strings.Join(t[:min(len(t), most)], ", ")
		if more := len(t) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		a.Notes = append(a.Notes, text)
	}
	if len(a.Notes) == 0 {
		a.Direction = comparison.Unchanged
		a.Notes = []string{"in " + comparison.Count(int64(len(x.C.Primary)), "number")}
	}
}
