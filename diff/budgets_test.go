package diff_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
	"github.com/nsys-llm/explain/diff/policy"
)

// A capture without steps says so where a budget per step has nothing to judge.
func TestABudgetOfStepsWithoutSteps(t *testing.T) {
	p, err := policy.Read(strings.NewReader("version: 1\nbudgets:\n  - {id: step, metric: unit.time.p50, max: 25ms}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := diff.JudgeBudgets([]*report.Report{{}}, diff.Options{Policy: p})
	if err != nil || c.Verdict != comparison.Inconclusive || len(c.Reasons) != 2 || c.Reasons[1].Code != comparison.NoUnit ||
		!strings.Contains(c.Reasons[1].Text, "name a unit with --unit") {
		t.Errorf("%v, %+v", err, c)
	}
}

// A budget on steps of a phase that the capture does not have is missing its steps, not a base.
func TestABudgetOfAPhaseThatIsNotThere(t *testing.T) {
	head := one(reportOfFile(t, "../testdata/head.sqlite", analyze.Options{}))
	text := "version: 1\nbudgets:\n  - {id: step, metric: unit.time.p50, labels: {phase: prefill}, max: 2.5ms}\n"
	p, err := policy.Read(strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := diff.JudgeBudgets(head, diff.Options{Policy: p})
	if err != nil || c.Verdict != comparison.Inconclusive || len(c.Gates) != 1 {
		t.Fatalf("%v, %+v", err, c)
	}
	if g := &c.Gates[0]; g.Code != comparison.NothingMatched || !strings.Contains(g.Reason, "the capture has no such metric") {
		t.Errorf("%s: %s", g.Code, g.Reason)
	}
	var out strings.Builder
	if err := render.Terminal(&out, diffdoc.Terminal(c), render.TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "Judged on the head alone") {
		t.Error(out.String())
	}
}

// A failed budget is not called inconclusive in JUnit because no change was judged.
func TestAFailedBudgetInJUnit(t *testing.T) {
	head := one(reportOfFile(t, "../testdata/serving.sqlite", analyze.Options{}))
	p, err := policy.Read(strings.NewReader("version: 1\nbudgets:\n  - {id: step, metric: unit.time.p50, max: 1us}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := diff.JudgeBudgets(head, diff.Options{Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := diffdoc.WriteJUnit(&text, c); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), `above the budget of 1 µs" type="fail"`) || strings.Contains(text.String(), `type="inconclusive"`) {
		t.Error(text.String())
	}
}

// A budget is judged on every kind of step of the head, with and without a base: prefill steps of 5.055 ms do not pass a
// limit of 2.5 ms because most of the time is in decode steps of 0.63 ms.
func TestABudgetHoldsForEachKindOfStep(t *testing.T) {
	head := one(reportOfFile(t, "../testdata/serving.sqlite", analyze.Options{}))
	decode := []string{"", "batch=16,phase=decode", "batch=8,phase=decode"}
	other := []string{"batch=1,phase=prefill,tokens=2048", "batch=1,phase=prefill,tokens=512", "batch=17,phase=mixed,tokens=512"}
	for _, c := range []struct {
		budget  string
		judged  []string
		failing []string
	}{
		{"{id: step, metric: unit.time.p50, max: 2.5ms}", append(slices.Clone(decode), other...), other[:1]},
		{`{id: step, metric: unit.time.p50, labels: {phase: "*", batch: "*"}, max: 2.5ms}`, append(slices.Clone(decode), other...), other[:1]},
		{"{id: step, metric: unit.time.p50, labels: {phase: decode}, max: 600us}", decode, decode[:1]}, // 628.8, 567.7, 537.8 µs
		{"{id: step, metric: unit.time_per_output_token, max: 30us}", decode, decode[1:]},              // 19.6, 35.5, 67.2 µs
	} {
		p, err := policy.Read(strings.NewReader("version: 1\nbudgets:\n  - "+c.budget+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := diff.JudgeBudgets(head, diff.Options{Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		both, err := diff.Compare(head, head, diff.Options{Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		if alone.Verdict != comparison.Fail {
			t.Errorf("%s: %s without a base", c.budget, alone.Verdict)
		}
		slices.Sort(c.judged)
		for name, got := range map[string]*comparison.Comparison{"without a base": alone, "with a base": both} {
			judged := map[string]bool{} // and whether it failed
			for _, g := range got.Gates {
				judged[g.Labels.String()] = g.Verdict == comparison.Fail
			}
			if labels := slices.Sorted(maps.Keys(judged)); !slices.Equal(labels, c.judged) {
				t.Errorf("%s %s: judged %q", c.budget, name, labels)
			}
			for labels, failed := range judged {
				if failed != slices.Contains(c.failing, labels) {
					t.Errorf("%s %s: {%s} fails: %v", c.budget, name, labels, failed)
				}
			}
		}
	}
}
