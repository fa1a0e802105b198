package policy

import (
	"fmt"
	"strings"
	"testing"
)

// The example of the page is a policy, and the defaults that it names are those of a policy that says nothing.
func TestPage(t *testing.T) {
	_, rest, _ := strings.Cut(Page(), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page has no example")
	}
	p, err := Read(strings.NewReader(example), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Preset != defaultPreset || len(p.Waivers) != 1 || p.Budgets() != 2 {
		t.Errorf("%+v", p)
	}
	s := DefaultStats()
	for key, value := range map[string]any{
		"alpha": s.Alpha, "fdr": s.FDR, "min_captures": s.MinCaptures, "on_inconclusive": s.OnInconclusive,
		"on_not_comparable": s.OnNotComparable, "on_missing": s.OnMissing,
	} {
		at := strings.Index(Page(), "| `stats."+key+"` |")
		if at < 0 {
			t.Errorf("stats.%s is not on the page", key)
			continue
		}
		if line, _, _ := strings.Cut(Page()[at:], "\n"); !strings.Contains(line, fmt.Sprintf("| `%v`", value)) {
			t.Errorf("the default of %s is %v: %s", key, value, line)
		}
	}
	for _, f := range statsFields {
		if !strings.Contains(Page(), "`stats."+f.key+"`") {
			t.Errorf("stats.%s is not on the page", f.key)
		}
	}
}
