package workunit

import (
	"cmp"
	"fmt"
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

// nearestNames returns the names most similar to a regular expression: first those that it matches if case is ignored,
// then those that share the most pairs of letters.
func nearestNames(expr string, names []string) []string {
	type near struct {
		name  string
		score float64
	}
	any, _ := regexp.Compile("(?i)" + expr)
	want := pairs(expr)
	var list []near
	seen := map[string]bool{}
	for _, name := range names {
		if name = fold(name); name == "" || seen[name] {
			continue
		}
		if seen[name] = true; len(seen) > maxCompare {
			break
		}
		x := near{name: name}
		if any != nil && any.MatchString(name) {
			x.score = 1
		}
		have, shared := pairs(name), 0
		for p := range have {
			if want[p] {
				shared++
			}
		}
		x.score += 2 * float64(shared) / float64(max(1, len(have)+len(want)))
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
	})
	return lists.Map(list[:min(len(list), maxNearest)], func(x near) string {
		return wording.ShortenTo(x.name, maxName, maxName/4)
	})
}

// pairs returns the pairs of adjacent letters and digits in a text, in lower case.
func pairs(text string) map[[2]rune]bool {
	set := map[[2]rune]bool{}
	var last rune
	for _, c := range strings.ToLower(text) {
		if strings.ContainsRune(`^$.*+?()[]{}|\`, c) {
			continue
		}
		if last != 0 {
			set[[2]rune{last, c}] = true
		}
		last = c
	}
	return set
}
