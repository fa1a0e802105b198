package attribute

import (
	"fmt"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// ofEvidence writes what a comparison of evidence came to: which numbers got worse, better, and are not settled.
func (x *Parts) ofEvidence() {
	texts := map[comparison.Class][]string{}
	for i := range x.C.Primary {
		r := &x.C.Primary[i]
		name := r.Metric
		if kernel := r.Labels["kernel"]; kernel != "" {
			name += " of " + wording.Shorten(kernel, 60)
		}
		if r.Delta != nil {
			name += " " + comparison.ChangeText(r)
		}
		texts[r.Class] = append(texts[r.Class], name)
	}
	a := &x.C.Answer
	if row, _ := x.C.Headline(); row != nil {
		a.OfRow(row, x.C.Verdict)
	}
	const most = 3
	for _, part := range []struct {
		class comparison.Class
		word  string
	}{{comparison.Regressed, "worse: "}, {comparison.Improved, "better: "}, {comparison.Unsettled, "not settled: "}} {
		t := texts[part.class]
		if len(t) == 0 || part.class == comparison.Unsettled && x.C.Verdict == comparison.Pass {
			continue
		}
		text := part.word + strings.Join(t[:min(len(t), most)], ", ")
		if more := len(t) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		a.Notes = append(a.Notes, text)
	}
	if len(a.Notes) == 0 {
		a.Notes = []string{"no change beyond noise in " + wording.Count(len(x.C.Primary), "number")}
	}
}
