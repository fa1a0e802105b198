package breakdown

import (
	"fmt"
	"testing"

	"github.com/nsys-llm/explain/diff/comparison"
)

// TestLoadText by hand: half as many requests again are another load, one more of two requests is not.
func TestLoadText(t *testing.T) {
	for _, x := range []struct {
		base, head float64
		warned     bool
	}{{128, 2, true}, {2, 128, true}, {0, 2, true}, {32, 48, true}, {32, 47, false}, {2, 3, false}, {0, 0, false}} {
		c := &comparison.Comparison{Primary: []comparison.Row{{Metric: "unit.time.p50"},
			{Metric: "serve.requests_running.p50", Unit: "1", Base: &x.base, Head: &x.head}}}
		if got := loadText(c, ""); (got != "") != x.warned {
			t.Errorf("%v → %v: %q", x.base, x.head, got)
		}
	}
	few, many := 2.0, 128.0
	c := &comparison.Comparison{Primary: []comparison.Row{{Metric: "serve.requests_running.p50", Unit: "count", Base: &many, Head: &few}},
		Reasons: []comparison.Reason{{Text: "the model differs"}}}
	answer, _ := (&Parts{C: c}).Answer()
	const want = "Not comparable: the model differs; the load differs, 128 → 2 requests running " +
		"(serve.requests_running.p50): send the same load to both sides, or leave it so on purpose: " +
		"--study need not name it."
	if got := answer.String(); got != want {
		t.Errorf("%q", got)
	}
	c.Study = &comparison.Study{Fields: []comparison.StudyField{{Name: "load"}}}
	if got := loadText(c, ""); got != "" {
		t.Error(got)
	}
	c.Primary = []comparison.Row{{Metric: "serve.requests_running.p50", Unit: "1"}}
	if got := loadText(c, ""); got != "" {
		t.Error(got)
	}
}

// TestLacks: evidence of one side names the flag that adds it to the other; of both kinds neither side has all.
func TestLacks(t *testing.T) {
	for _, x := range []struct{ base, head, side, flags string }{
		{"none", "server-log", "base", "[--server-log]"},
		{"server-log, prometheus", "server-log", "head", "[--prometheus]"},
		{"ncu-csv, load | ncu-csv", "none", "head", "[--ncu --evidence]"},
		{"server-log", "prometheus", "", "[]"},
	} {
		c := &comparison.Comparison{Residue: []comparison.Residue{{Field: "evidence", Base: x.base, Head: x.head}}}
		if side, flags := c.Lacks(); side != x.side || fmt.Sprint(flags) != x.flags {
			t.Errorf("%+v: %s %v", x, side, flags)
		}
	}
}
