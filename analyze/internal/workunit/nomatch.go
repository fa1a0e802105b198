package workunit

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// NoMatchError says that no name in the capture matches --unit.
type NoMatchError struct {
	Spec    string   // the value of --unit
	What    string   // what was looked for: NVTX range or kernel
	Nearest []string // similar names in the capture, with # for numbers, the most similar first; at most three
}

// Error lists similar names that the capture has.
func (e *NoMatchError) Error() string {
	text := fmt.Sprintf("--unit %s matches no %s of this capture", e.Spec, e.What)
	switch {
	case len(e.Nearest) == 0:
		return text + ", which has none"
	case len(e.Nearest) == 1:
		return text + "; the nearest is " + e.Nearest[0]
	}
	return text + "; the nearest are " + strings.Join(e.Nearest, ", ")
}

// Bounds of the names an error lists.
const (
	maxNearest = 3
	maxCompare = 1 << 12 // names that are compared
	maxName    = 80      // characters of a name
)

// unmatched returns the result if no name matches.
func (s *Spec) unmatched(what string, names []string) *Result {
	expr := s.Pattern.String()
	e := &NoMatchError{Spec: s.Kind + ":" + expr, What: what, Nearest: nearestNames(expr, names)}
	return &Result{Kind: KindNone, Why: e.Error(), Unmatched: e}
}

// nearestNames returns the names most similar to a regular expression; first those that it matches if case is ignored.
func nearestNames(expr string, names []string) []string {
	folded := lists.Set(names, fold)
	delete(folded, "")
	list := slices.Sorted(maps.Keys(folded))
	list = wording.Similar(expr, list[:min(len(list), maxCompare)], len(list))
	if any, err := regexp.Compile("(?i)" + expr); err == nil {
		lists.Lead(list, any.MatchString)
	}
	return lists.Map(list[:min(len(list), maxNearest)], func(name string) string { return wording.ShortenTo(name, maxName, maxName/4) })
}
