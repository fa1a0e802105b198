package diff_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/diff"
)

func written(t testing.TB, c *diff.Comparison) string {
	t.Helper()
	var b bytes.Buffer
	if err := diff.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// judged is a comparison with every part that policies add: a waiver, an override, a policy.
func judged(t testing.TB) *diff.Comparison {
	t.Helper()
	p := policy(t, designExample)
	idle := side(metric("gpu.idle_ratio", report.Ratio, 0.3, "device", "0"))
	c, err := diff.Compare(idle, idle, diff.Options{Policy: p, Today: day("2027-01-01")})
	if err != nil {
		t.Fatal(err)
	}
	c.Accept("perf:accept", "somebody")
	return c
}

// TestComparisonsReadBack: what is written is read as it was.
func TestComparisonsReadBack(t *testing.T) {
	for _, c := range []*diff.Comparison{regression(), different(), judged(t)} {
		text := written(t, c)
		got, err := diff.Read(strings.NewReader(text))
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
	good := written(t, regression())
	for _, c := range []struct{ from, to, want string }{
		{`"explain.comparison/1"`, `"explain.comparison/2"`, "has format"},
		{`"explain.comparison/1"`, `"explain.report/1"`, "not an explain comparison"},
		{`"cause": "`, `"cause": "` + strings.Repeat("x", 70_000), "a text of 7"},
		{`"residue": [`, `"residue": ` + strings.Repeat("[", 100) + `[`, "nested more than 32 deep"},
		{`"units_base": 40`, `"units_base": -40`, "a count is -40"},
		{`"units_base":40`, `"units_base":-40`, "a count is -40"},
		{`"delta":400000,`, `"delta":1e999,`, "cannot be read"},
		{`"delta":400000,`, `"delta":NaN,`, "not a comparison"},
		{`"verdict": "fail"`, `"verdict": "pass"`, "the verdict is pass, and gate 0 counts as fail"},
		{`"verdict": "fail"`, `"verdict": "great"`, `verdict is "great"`},
		{`"reasons": [`, `"reasons": [` + strings.Repeat(`{"code":"x","text":"y"},`, 1000) + `{"code":"x","text":"y"}`, "1001 reasons, at most 1000"},
		{`"counts_as":"fail"`, `"counts_as":"fine"`, "is not valid"},
		{`"gates_checked":`, `"gates_checked":9`, "gates checked of"},
		{`"on_missing":"inconclusive"`, `"on_missing":"whatever"`, "its policy is not valid"},
	} {
		if !strings.Contains(good, c.from) {
			continue // one of the two spellings
		}
		if _, err := diff.Read(strings.NewReader(strings.Replace(good, c.from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: error %v, want %q", c.to, err, c.want)
		}
	}
	if _, err := diff.Read(io.LimitReader(zeros{}, 17<<20)); err == nil || !strings.Contains(err.Error(), "larger than 16 MB") {
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

// TestComparisonsFromBeforePolicies: files without the fields that policies added are read.
func TestComparisonsFromBeforePolicies(t *testing.T) {
	lines := strings.Split(written(t, regression()), "\n")
	var kept []string
	for _, l := range lines {
		if !strings.HasPrefix(l, `"policy"`) && !strings.HasPrefix(l, `"waivers"`) && !strings.HasPrefix(l, `"overrides"`) {
			l = strings.NewReplacer(`"counts_as":"fail",`, "", `"counts_as":"warn",`, "", `"counts_as":"pass",`, "", `,"waiver":null`, "").Replace(l)
			kept = append(kept, l)
		}
	}
	text := strings.Join(kept, "\n")
	if strings.Contains(text, "counts_as") {
		t.Fatal("the test takes nothing out")
	}
	c, err := diff.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(regression().Gates, c.Gates); d != "" {
		t.Error(d)
	}
}

// FuzzRead: whatever is read can be written, is read as the same again, and every voice says it.
func FuzzRead(f *testing.F) {
	for _, c := range []*diff.Comparison{regression(), different(), judged(f)} {
		f.Add([]byte(written(f, c)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := diff.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		again := written(t, c)
		d, err := diff.Read(strings.NewReader(again))
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		if written(t, d) != again {
			t.Fatal("reading and writing changes it")
		}
		for _, voice := range []func() error{
			func() error { return diff.WriteText(io.Discard, c, render.TerminalOptions{}) },
			func() error { return diff.WriteMarkdown(io.Discard, c, render.MarkdownOptions{}) },
			func() error { return diff.WriteJUnit(io.Discard, c) },
			func() error { return diff.WriteCSV(io.Discard, c) },
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
	gate := func(v, counts diff.Verdict, level string) diff.Gate {
		return diff.Gate{Rule: "step", Metric: "unit.time.p50", Labels: report.Labels{}, Verdict: v, CountsAs: counts, Level: level, Class: diff.Same}
	}
	for _, c := range []struct {
		why       string
		verdict   diff.Verdict
		gate      diff.Gate
		overrides []diff.Override
		ok        bool
	}{
		{"a gate that passed", diff.Pass, gate(diff.Pass, diff.Pass, diff.LevelError), nil, true},
		{"a failure that only warns", diff.Warn, gate(diff.Fail, diff.Warn, diff.LevelWarn), nil, true},
		{"an accepted failure", diff.Warn, gate(diff.Fail, diff.Fail, diff.LevelError), []diff.Override{{Label: "perf:accept", From: diff.Fail, To: diff.Warn}}, true},
		{"a failure that counts as a pass", diff.Pass, gate(diff.Fail, diff.Pass, diff.LevelError), nil, false},
		{"a failure of level warn that counts as a pass", diff.Pass, gate(diff.Fail, diff.Pass, diff.LevelWarn), nil, false},
		{"a pass by a label", diff.Pass, gate(diff.Fail, diff.Fail, diff.LevelError), []diff.Override{{Label: "perf:accept", From: diff.Fail, To: diff.Warn}}, false},
		{"a label that does more than it can", diff.Warn, gate(diff.Fail, diff.Fail, diff.LevelError), []diff.Override{{Label: "perf:accept", From: diff.Fail, To: diff.Pass}}, false},
	} {
		x := regression()
		x.Verdict, x.Gates, x.Overrides, x.Counts.GatesChecked = c.verdict, []diff.Gate{c.gate}, append([]diff.Override{}, c.overrides...), 1
		if _, err := diff.Read(strings.NewReader(written(t, x))); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	x := regression()
	x.Verdict, x.Gates, x.Counts.GatesChecked = diff.Pass, []diff.Gate{}, 0
	if _, err := diff.Read(strings.NewReader(written(t, x))); err == nil {
		t.Error("a pass without a gate is read")
	}
}
