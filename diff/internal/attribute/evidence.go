package attribute

import (
	"fmt"
	"strings"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/match"
)

// evidenceCause says in one sentence what the comparison of evidence came to.
func (x *Parts) evidenceCause() string {
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
	list := func(c comparison.Class) string {
		const most = 3
		t := texts[c]
		if more := len(t) - most; more > 0 {
			return strings.Join(t[:most], ", ") + fmt.Sprintf(" and %d more", more)
		}
		return strings.Join(t, ", ")
	}
	var parts []string
	if len(texts[comparison.Regressed]) > 0 {
		parts = append(parts, "Worse: "+list(comparison.Regressed))
	}
	if len(texts[comparison.Improved]) > 0 {
		parts = append(parts, "Better: "+list(comparison.Improved))
	}
	if n := len(texts[comparison.Unsettled]); n > 0 {
		parts = append(parts, fmt.Sprintf("Not settled: %s", list(comparison.Unsettled)))
	}
	if len(parts) == 0 {
		return fmt.Sprintf("No change beyond noise in %s.", comparison.Count(int64(len(x.C.Primary)), "number"))
	}
	return strings.Join(parts, ". ") + "."
}
