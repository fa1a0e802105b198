package diff_test

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	diffrender "github.com/nsys-llm/explain/diff/diffdoc"
)

// mergedRun is the merged report of a fleet, whose captures are called rank0.sqlite and so on.
func mergedRun(t *testing.T, f tracetest.Fleet, opt merge.Options) *report.Report {
	t.Helper()
	dir := t.TempDir()
	var sources []merge.Source
	for _, r := range f.Run() {
		path := filepath.Join(dir, fmt.Sprintf("rank%d.sqlite", r.Rank))
		if err := r.Build().Write(path); err != nil {
			t.Fatal(err)
		}
		c, err := analyze.Digest(t.Context(), path, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Partial()
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, merge.Source{Name: path,
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }})
	}
	opt.Rules = analyze.MergeRules()
	r, err := merge.Report(t.Context(), sources, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func rankRow(t *testing.T, c *comparison.Comparison, id string) comparison.RankRow {
	t.Helper()
	for _, r := range c.Ranks.Rows {
		if r.ID == id {
			return r
		}
	}
	t.Fatalf("no row %q in %+v", id, c.Ranks.Rows)
	return comparison.RankRow{}
}

// Four ranks compute 1 ms and meet; on the head rank 1 computes 1.5 ms. Every rank's step takes 500 µs longer, the others
// wait 500 µs more in the collective, and rank 1, which comes last, waits as little as before.
func TestRunsAreComparedRankByRank(t *testing.T) {
	f := tracetest.Fleet{Ranks: 4, Steps: 24}
	byName := merge.Options{Rank: regexp.MustCompile(`rank(\d+)`)}
	base := mergedRun(t, f, byName)
	f.Slow, f.SlowBy, f.SlowSteps, f.Seed = 1, 0.5, 1, 3
	head := mergedRun(t, f, byName)
	c := compareReports(t, []*report.Report{base}, []*report.Report{head}, diff.Options{})
	if c.Ranks == nil || c.Ranks.By != comparison.ByRank || len(c.Ranks.Rows) != 4 || c.Ranks.Where != "" {
		t.Fatalf("%+v", c.Ranks)
	}
	for _, id := range []string{"0", "1", "2", "3"} {
		r := rankRow(t, c, id)
		if r.Delta == nil || *r.Delta != 500_000 || r.Steps == 0 || r.Slower != r.Steps {
			t.Errorf("rank %s: %+v", id, r)
		}
		wait, last := 500_000.0, 0.0
		if id == "1" {
			wait, last = 0, 1
		}
		if *r.HeadWait-*r.BaseWait != wait || *r.HeadLast != last {
			t.Errorf("rank %s waits %v longer and comes last in %v", id, *r.HeadWait-*r.BaseWait, *r.HeadLast)
		}
	}
	// By hand: 24 steps, in which three of four ranks wait 500 µs more of the 36 ms and more that the head takes.
	held := c.Ranks.Held
	if held == nil || held.Head-held.Base < 0.2 || held.Head-held.Base > 0.25 || held.HeadRank != "1" || held.HeadFirst < 0.99*(held.Head-held.Base) ||
		held.Slower == "1" || held.Slower == "" || !strings.HasSuffix(held.Text, "and the cause sits on rank 1 (compute)") {
		t.Errorf("%+v", held)
	}
	for _, id := range []string{"held up", "first rank"} {
		at := slices.IndexFunc(c.Gates, func(g comparison.Gate) bool { return g.Rule == id })
		if at < 0 || c.Gates[at].CountsAs != comparison.Warn || *c.Gates[at].Delta < 0.2 {
			t.Errorf("%s: %+v", id, c.Gates)
		}
	}
	if n := len(c.Ranks.Steps); int64(n) != c.Ranks.Rows[0].Steps || c.Ranks.Steps[0].Delta != 500_000 {
		t.Errorf("%d steps, the first %+v", n, c.Ranks.Steps)
	}
	var text bytes.Buffer
	if err := render.Terminal(&text, diffrender.Terminal(c), render.TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "Steps rank by rank") {
		t.Errorf("the terminal shows no ranks:\n%s", &text)
	}
	var b bytes.Buffer
	if err := comparison.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	if again, err := comparison.Read(&b); err != nil || len(again.Ranks.Rows) != 4 {
		t.Errorf("read again: %v", err)
	}
}

// A run of another number of ranks is other work, and its ranks are shown by role.
func TestRunsOfOtherSizeAreComparedByRole(t *testing.T) {
	roles := func(prefill string) merge.Options {
		return merge.Options{Roles: []merge.Role{{Name: "prefill", Of: regexp.MustCompile(prefill)},
			{Name: "decode", Of: regexp.MustCompile("rank")}}}
	}
	base := mergedRun(t, tracetest.Fleet{Ranks: 4, Steps: 24}, roles("rank[01]"))
	head := mergedRun(t, tracetest.Fleet{Ranks: 3, Steps: 24, Compute: 1_200_000, Seed: 5}, roles("rank0"))
	c := compareReports(t, []*report.Report{base}, []*report.Report{head}, diff.Options{})
	if c.Comparable || !c.Has(comparison.DifferentWork) || c.Ranks == nil || c.Ranks.By != comparison.ByRole {
		t.Fatalf("%v %+v", c.Reasons, c.Ranks)
	}
	for id, n := range map[string][2]int64{"prefill": {2, 1}, "decode": {2, 2}} {
		r := rankRow(t, c, id)
		if r.BaseRanks != n[0] || r.HeadRanks != n[1] || r.Delta == nil || *r.Delta != 200_000 {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if len(c.Ranks.Steps) != 0 {
		t.Errorf("steps of other runs were put side by side: %+v", c.Ranks.Steps)
	}
}

// A report may come from anybody: one that names a rank twice is compared by role.
func TestRankThatIsThereTwice(t *testing.T) {
	r := mergedRun(t, tracetest.Fleet{Ranks: 2, Steps: 24}, merge.Options{Rank: regexp.MustCompile(`rank(\d+)`)})
	table := report.NewIndex(r).Table("ranks", "ranks")
	at := slices.IndexFunc(table.Columns, func(c report.Column) bool { return c.ID == "rank" })
	table.Rows[1][at] = table.Rows[0][at]
	c := compareReports(t, []*report.Report{r}, []*report.Report{r}, diff.Options{})
	if c.Ranks == nil || c.Ranks.By != comparison.ByRole {
		t.Errorf("%+v", c.Ranks)
	}
}

// A comparison of single captures has no ranks.
func TestSingleCapturesHaveNoRanks(t *testing.T) {
	r := engineReport(t, engine{})
	if c := compareReports(t, []*report.Report{r}, []*report.Report{r}, diff.Options{}); c.Ranks != nil {
		t.Errorf("%+v", c.Ranks)
	}
}
