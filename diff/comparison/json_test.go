package comparison_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/difftest"

	"github.com/google/go-cmp/cmp"
	"github.com/nsys-llm/explain/analyze/report"
	reportrender "github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
)

// judged is a comparison with every part that policies add: a waiver, an override, a policy.
func judged(t testing.TB) *comparison.Comparison {
	t.Helper()
	p := difftest.Policy(t, difftest.Example)
	idle := difftest.Side(difftest.Metric("gpu.idle_ratio", report.Ratio, 0.3, "device", "0"))
	c, err := diff.Compare(idle, idle, diff.Options{Policy: p, Today: difftest.Day("2027-01-01")})
	if err != nil {
		t.Fatal(err)
	}
	c.Accept("perf:accept", "somebody")
	return c
}

// TestComparisonsReadBack: what is written is read as it was.
func TestComparisonsReadBack(t *testing.T) {
	for _, c := range []*comparison.Comparison{difftest.Regression(), difftest.Different(), judged(t)} {
		text := difftest.JSON(t, c)
		got, err := comparison.Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c, got); d != "" {
			t.Error(d)
		}
	}
}

// TestForeignComparisonsAreBounded: a privileged workflow shows what others wrote.
func TestForeignComparisonsAreBounded(t *testing.T) {
	good := difftest.JSON(t, difftest.Regression())
	for _, c := range []struct{ from, to, want string }{
		{`"explain.comparison/1"`, `"explain.comparison/2"`, "has format"},
		{`"explain.comparison/1"`, `"explain.report/1"`, "not an explain comparison"},
		{`"cause": "`, `"schema": "explain.comparison/2", "cause": "`, `schema is "explain.comparison/2"`}, // the last one counts
		{`"cause": "`, `"cause": "` + strings.Repeat("x", 70_000), "a text of 7"},
		{`"residue": [`, `"residue": ` + strings.Repeat("[", 100) + `[`, "nested more than 32 deep"},
		{`"units_base": 40`, `"units_base": -40`, "a count is -40"},
		{`"units_base":40`, `"units_base":-40`, "a count is -40"},
		{`"delta":400000,`, `"delta":1e999,`, "cannot be read"},
		{`"delta":400000,`, `"delta":NaN,`, "cannot be read"},
		{`"verdict": "fail"`, `"verdict": "pass"`, "the verdict is pass, and gate 0 counts as fail"},
		{`"verdict": "fail"`, `"verdict": "great"`, `verdict is "great"`},
		{`"reasons": [`, `"reasons": [` + strings.Repeat(`{"code":"x","text":"y"},`, 1000) + `{"code":"x","text":"y"}`, "a list of 1001 rows"},
		{`"counts_as":"fail"`, `"counts_as":"fine"`, `counts_as is "fine"`},
		{`"gates_checked":`, `"gates_checked":9`, "gates checked of"},
		{`"on_missing":"inconclusive"`, `"on_missing":"whatever"`, `on_missing is "whatever"`},
	} {
		if !strings.Contains(good, c.from) {
			continue // one of the two spellings
		}
		if _, err := comparison.Read(strings.NewReader(strings.Replace(good, c.from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: error %v, want %q", c.to, err, c.want)
		}
	}
	long := difftest.Regression() // of its two long lists, one is as long as explain writes
	long.Reasons = slices.Repeat([]comparison.Reason{{Code: "x", Text: "y"}}, 1001)
	long.Structure = slices.Repeat([]comparison.Structural{{ID: "x", Class: comparison.Added}}, 2000)
	if _, err := comparison.Read(strings.NewReader(difftest.JSON(t, long))); err == nil || !strings.Contains(err.Error(), "a list of 1001 rows, at most 1000") {
		t.Errorf("a long list beside a longer one: %v", err)
	}
	if _, err := comparison.Read(io.LimitReader(zeros{}, 17<<20)); err == nil || !strings.Contains(err.Error(), "larger than 16 MB") {
		t.Errorf("17 MB: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// FuzzRead: whatever is read can be written, is read as the same again, and every voice says it.
func FuzzRead(f *testing.F) {
	for _, c := range []*comparison.Comparison{difftest.Regression(), difftest.Different(), judged(f)} {
		f.Add([]byte(difftest.JSON(f, c)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := comparison.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		again := difftest.JSON(t, c)
		d, err := comparison.Read(strings.NewReader(again))
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		if difftest.JSON(t, d) != again {
			t.Fatal("reading and writing changes it")
		}
		for _, voice := range []func() error{
			func() error {
				return reportrender.Terminal(io.Discard, diffdoc.Terminal(c), reportrender.TerminalOptions{})
			},
			func() error {
				return reportrender.Markdown(io.Discard, diffdoc.Browser(c, diffdoc.Links{}), reportrender.MarkdownOptions{})
			},
			func() error { return diffdoc.WriteJUnit(io.Discard, c) },
			func() error { return diffdoc.WriteCSV(io.Discard, c) },
		} {
			if err := voice(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestAVerdictIsOneThatItsGatesCanHave: a comparison of strangers cannot say that it passed, or that it was accepted, where
// explain would not have said so.
func TestAVerdictIsOneThatItsGatesCanHave(t *testing.T) {
	gate := func(v, counts comparison.Verdict, level string) comparison.Gate {
		return comparison.Gate{Rule: "step", Metric: "unit.time.p50", Labels: report.Labels{}, Verdict: v, CountsAs: counts, Level: level, Class: comparison.Same}
	}
	for _, c := range []struct {
		why       string
		verdict   comparison.Verdict
		gate      comparison.Gate
		overrides []comparison.Override
		ok        bool
	}{
		{"a gate that passed", comparison.Pass, gate(comparison.Pass, comparison.Pass, comparison.LevelError), nil, true},
		{"a failure that only warns", comparison.Warn, gate(comparison.Fail, comparison.Warn, comparison.LevelWarn), nil, true},
		{"an accepted failure", comparison.Warn, gate(comparison.Fail, comparison.Fail, comparison.LevelError), []comparison.Override{{Label: "perf:accept", From: comparison.Fail, To: comparison.Warn}}, true},
		{"a failure that counts as a pass", comparison.Pass, gate(comparison.Fail, comparison.Pass, comparison.LevelError), nil, false},
		{"a failure of level warn that counts as a pass", comparison.Pass, gate(comparison.Fail, comparison.Pass, comparison.LevelWarn), nil, false},
		{"a pass by a label", comparison.Pass, gate(comparison.Fail, comparison.Fail, comparison.LevelError), []comparison.Override{{Label: "perf:accept", From: comparison.Fail, To: comparison.Warn}}, false},
		{"a label that does more than it can", comparison.Warn, gate(comparison.Fail, comparison.Fail, comparison.LevelError), []comparison.Override{{Label: "perf:accept", From: comparison.Fail, To: comparison.Pass}}, false},
	} {
		x := difftest.Regression()
		x.Verdict, x.Gates, x.Overrides, x.Counts.GatesChecked = c.verdict, []comparison.Gate{c.gate}, append([]comparison.Override{}, c.overrides...), 1
		if _, err := comparison.Read(strings.NewReader(difftest.JSON(t, x))); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	x := difftest.Regression()
	x.Verdict, x.Gates, x.Counts.GatesChecked = comparison.Pass, []comparison.Gate{}, 0
	if _, err := comparison.Read(strings.NewReader(difftest.JSON(t, x))); err == nil {
		t.Error("a pass without a gate is read")
	}
}
