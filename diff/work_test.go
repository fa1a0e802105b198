package diff_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/difftest"
)

func serving(phase string, batch, units int64, ms float64) difftest.Kind {
	return difftest.Kind{Phase: phase, Batch: batch, Units: units, Time: ms * 1e6, Signature: phase,
		Kernels: map[string]float64{"gemm": 10, "flash": 2}}
}

func ofReports(tb testing.TB, base, head *report.Report) *comparison.Comparison {
	tb.Helper()
	c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, diff.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// The base ran 30 decode steps of 10 ms and 10 prefills of 20 ms: 500 ms. At the head's 10 and 32 ms that work takes 300 +
// 320 = 620 ms, +24 %, however many of each the head ran. Decode steps alone did not change.
func TestWorkAtTheHeadsPrices(t *testing.T) {
	base := difftest.Kinds(serving("decode", 32, 30, 10), serving("prefill", 1, 10, 20))
	head := difftest.Kinds(serving("decode", 32, 90, 10), serving("prefill", 1, 12, 32))
	c := ofReports(t, base, head)
	w := c.Primary[0]
	if w.Metric != comparison.MetricWork || math.Abs(*w.Base-500e6) > 1 || math.Abs(*w.Head-620e6) > 1 || w.Class != comparison.Regressed {
		t.Errorf("%+v", w)
	}
	if c.Verdict != comparison.Fail {
		t.Errorf("%s: %s", c.Verdict, c.Cause)
	}
	says(t, c, "+60.0 % slower, 20 → 32 ms per prefill, batch 1, median: "+
		"+10 ms kernel gemm +60.0 %: 10 × 1.667 → 2.667 ms; +2 ms kernel flash +60.0 %: 2 × 1.667 → 2.667 ms; base's work takes +24.0 % at head's times")
	if c.Attribution.Kind != "prefill 1" || math.Abs(c.Attribution.TotalDelta-12e6) > 1 {
		t.Errorf("the attribution is of %q: %+v", c.Attribution.Kind, c.Attribution)
	}
	var prefill []string
	for _, r := range c.Primary {
		if r.Kind == "prefill 1" {
			prefill = append(prefill, r.Metric)
			if r.Labels["phase"] != "prefill" || r.Labels["batch"] != "1" {
				t.Errorf("%s has the labels %v", r.Metric, r.Labels)
			}
		}
	}
	if len(prefill) != 2 { // the report has no launches
		t.Errorf("rows of the prefill: %v", prefill)
	}
	if same := ofReports(t, base, difftest.Kinds(serving("decode", 32, 60, 10), serving("prefill", 1, 9, 20))); same.Verdict != comparison.Pass || *same.Primary[0].Delta != 0 {
		t.Errorf("another mix at the same prices: %s, %+v", same.Verdict, same.Primary[0])
	}
}

// Half of the base's time is decode in CUDA graphs: 30 × 10 of 30 × 10 + 15 × 20 ms. The head lost them, or ran
// fewer such steps: only 10 × 10 of 100 + 500 ms, so that 17 % are in graphs as they were.
func TestCoverageOfAnotherMix(t *testing.T) {
	of := func(decodes, prefills int64, coverage float64) *report.Report {
		r := difftest.Kinds(serving("decode", 32, decodes, 10), serving("prefill", 1, prefills, 20))
		m := difftest.Metric("graph.coverage", report.Ratio, coverage)
		m.Better, m.Source.Tables = report.Higher, []string{"CUPTI_ACTIVITY_KIND_KERNEL"}
		r.Metrics = append(r.Metrics, m)
		return r
	}
	for _, tt := range []struct {
		name  string
		head  *report.Report
		want  comparison.Verdict
		class comparison.Class
	}{
		{"graphs lost", of(30, 15, 0.25), comparison.Fail, comparison.Regressed},
		{"graphs lost, 4 % more of the time is prefill", of(30, 17, 0.25), comparison.Fail, comparison.Regressed},
		{"another mix", of(10, 25, 0.17), comparison.Inconclusive, comparison.Unsettled},
		{"another mix, nearly as much in graphs", of(10, 25, 0.47), comparison.Pass, comparison.Unsettled},
	} {
		c := ofReports(t, of(30, 15, 0.5), tt.head)
		i := slices.IndexFunc(c.Gates, func(g comparison.Gate) bool { return g.Metric == "graph.coverage" })
		if i < 0 || c.Gates[i].Verdict != tt.want || c.Gates[i].Class != tt.class || c.Verdict != tt.want {
			t.Errorf("%s: %s, %+v", tt.name, c.Verdict, c.Gates)
		}
	}
}

// Half of ten steps of 10 ms is in CUDA graphs. The head warms up for 60 ms more, so that 50 of 160 ms are: 60/160 of
// its time, 0.375, is in no step that is compared. It can explain 0.1875, and not 0.45.
func TestCoverageOutsideTheUnits(t *testing.T) {
	of := func(warmup int64, coverage float64) *report.Report {
		r := difftest.Kinds(serving("decode", 32, 10, 10))
		points := make([]report.UnitPoint, 10)
		for i := range points {
			n := int64(i)
			points[i] = report.UnitPoint{Number: n, Start: n * 10e6, Duration: 10e6, Busy: 10e6, Kernels: 1}
		}
		r.Unit.Series = report.NewUnitSeries(points)
		m := difftest.Metric("graph.coverage", report.Ratio, coverage)
		m.Better, m.Source.Tables = report.Higher, []string{"CUPTI_ACTIVITY_KIND_KERNEL"}
		busy := difftest.Metric("gpu.busy_time", report.Nanoseconds, 100e6+float64(warmup), "device", "0")
		r.Metrics = append(r.Metrics, m, busy)
		return r
	}
	for _, tt := range []struct {
		head *report.Report
		want comparison.Verdict
	}{
		{of(0, 0.3125), comparison.Fail},
		{of(60e6, 0.3125), comparison.Inconclusive},
		{of(60e6, 0.05), comparison.Fail},
	} {
		if c := ofReports(t, of(0, 0.5), tt.head); c.Verdict != tt.want {
			t.Errorf("%s instead of %s: %+v", c.Verdict, tt.want, c.Gates)
		}
	}
}

// Of the base's 300 + 120 ms, the head lacks what took 120: 29 %.
func TestAKindThatTheHeadLacks(t *testing.T) {
	base := difftest.Kinds(serving("decode", 32, 30, 10), serving("decode", 16, 20, 6))
	head := difftest.Kinds(serving("decode", 32, 50, 10))
	c := ofReports(t, base, head)
	if c.Verdict != comparison.Inconclusive || len(c.Reasons) != 1 || c.Reasons[0].Code != comparison.MissingKind {
		t.Errorf("%s %+v", c.Verdict, c.Reasons)
	}
	if back := ofReports(t, head, base); back.Verdict == comparison.Inconclusive {
		t.Errorf("a kind that the base lacks: %s %+v", back.Verdict, back.Reasons)
	}
	// 4 % of the time may stay without a price: 12 of 312 ms.
	few := difftest.Kinds(serving("decode", 32, 30, 10), serving("decode", 16, 2, 6))
	if c := ofReports(t, few, head); c.Verdict != comparison.Pass {
		t.Errorf("%s %+v", c.Verdict, c.Reasons)
	}
}

// Decode at batch 32 takes 10 ms a step, 312.5 µs a token; at batch 16 it takes 6 ms, 375 µs a token: 20 % more. The head ran
// both once each: 16 ms for 48 tokens, 333.3 µs, 6.7 % more. A prefill is one sequence. Nothing of this is judged.
func TestTimePerTokenAndSequence(t *testing.T) {
	prefill := serving("prefill", 1, 10, 20)
	base := difftest.Kinds(prefill, serving("decode", 32, 30, 10))
	both := difftest.Kinds(prefill, serving("decode", 32, 20, 10), serving("decode", 16, 20, 6))
	c := ofReports(t, base, both)
	var tokens, sequences *comparison.Unjudged
	for i := range c.Unjudged {
		switch u := &c.Unjudged[i]; u.ID {
		case comparison.TimePerToken:
			tokens = u
		case comparison.TimePerPrompt:
			sequences = u
		}
	}
	if tokens == nil || tokens.Base != 312500 || math.Abs(tokens.Head-1e6/3) > 1 || sequences == nil || *sequences.Ratio != 1 {
		t.Fatalf("%+v, %+v", tokens, sequences)
	}
	says(t, c, "time per output token +20.83 µs (312.5 µs → 333.3 µs) at the batch sizes that each side ran")
	for _, g := range c.Gates {
		if strings.HasPrefix(g.Metric, "time_per") {
			t.Errorf("judged: %+v", g)
		}
	}
	unknown := difftest.Kinds(prefill, serving("decode", 0, 30, 10))
	for _, u := range ofReports(t, unknown, unknown).Unjudged {
		if u.ID == comparison.TimePerToken {
			t.Errorf("without a batch size: %+v", u)
		}
	}
}

// Equal steps, and 300 ms more before the first of them in a window of 1 s: the cause says where they went.
func TestTimeOutsideTheUnitsIsSaid(t *testing.T) {
	captured := func(before int64) *report.Report {
		r := difftest.Kinds(serving("decode", 32, 30, 10))
		points := make([]report.UnitPoint, 30)
		for i := range points {
			points[i] = report.UnitPoint{Number: int64(i), Start: before + int64(i)*10e6, Duration: 10e6, Busy: 10e6}
		}
		r.Unit.Series = report.NewUnitSeries(points)
		r.Window = report.Window{End: before + 700e6, Length: before + 700e6, Mode: "capture"}
		r.Metrics = append(r.Metrics, difftest.Metric("gpu.window", report.Nanoseconds, float64(r.Window.Length)))
		return r
	}
	c := ofReports(t, captured(300e6), captured(600e6))
	says(t, c, "outside the units, which is not judged: before the first unit +300 ms (300 ms → 600 ms).")
	if c.Verdict != comparison.Pass {
		t.Errorf("%s", c.Verdict)
	}
	if c := ofReports(t, captured(300e6), captured(310e6)); strings.Contains(c.Cause, "outside") {
		t.Errorf("1 %% of the window: %s", c.Cause)
	}
}

// Steps that no marker names: a third of head's are of another kind that base never ran, and nothing says whether they are
// other work or the same work done worse. Of 30 · 10 + 15 · 20 = 600 ms they take 300, half.
func TestAKindThatTheBaseLacks(t *testing.T) {
	step := func(phase string, units int64, ms float64, kernels map[string]float64) difftest.Kind {
		return difftest.Kind{Phase: phase, Units: units, Time: ms * 1e6, Signature: phase, Kernels: kernels}
	}
	usual, other := map[string]float64{"gemm": 10, "flash": 2}, map[string]float64{"gemm": 60, "flash": 20}
	base := difftest.Kinds(step("step", 45, 10, usual))
	c := ofReports(t, base, difftest.Kinds(step("step", 30, 10, usual), step("step:b", 15, 20, other)))
	if c.Verdict != comparison.Inconclusive || !c.Has(comparison.MissingKind) || !strings.Contains(c.Reasons[0].Text, "50.0 % of head's unit time") {
		t.Errorf("%s %+v", c.Verdict, c.Reasons)
	}
	if c := ofReports(t, base, difftest.Kinds(step("step", 44, 10, usual), step("step:b", 1, 20, other))); c.Has(comparison.MissingKind) {
		t.Errorf("4 %% of the time: %+v", c.Reasons)
	}
}

// Of two prefills of 20 ms nothing can be told by themselves: no row, and no verdict that is left open. The work has them: 30
// decode steps of 10 ms and 2 prefills take 340 ms, and 380 with prefills of 40.
func TestAKindOfTwoUnits(t *testing.T) {
	base := difftest.Kinds(serving("decode", 32, 30, 10), serving("prefill", 1, 2, 20))
	for ms, want := range map[float64]comparison.Verdict{20.2: comparison.Pass, 40: comparison.Fail} {
		c := ofReports(t, base, difftest.Kinds(serving("decode", 32, 30, 10), serving("prefill", 1, 2, ms)))
		if w := c.Primary[0]; c.Verdict != want || w.Metric != comparison.MetricWork || math.Abs(*w.Head-(300+2*ms)*1e6) > 1 {
			t.Errorf("%v ms: %s, %+v", ms, c.Verdict, w)
		}
		for _, r := range c.Primary {
			if r.Kind == "prefill 1" {
				t.Errorf("a row of two units: %+v", r)
			}
		}
	}
}

// W2: the same 1,280 tokens in half the batch and twice the steps. Base: 30 steps of batch 32 at 10 ms and 20 of batch 16 at
// 6 ms, 420 ms in all; head: 80 steps of batch 16 at 6 ms, 480 ms: 14.3 % more a token, though a step of batch 16 takes what
// it took. With 50 of these steps the tokens differ, and what batch 32 would take is not known.
func TestHalfTheBatchIsALossPerToken(t *testing.T) {
	base := difftest.Kinds(serving("decode", 32, 30, 10), serving("decode", 16, 20, 6))
	c := ofReports(t, base, difftest.Kinds(serving("decode", 16, 80, 6)))
	row := c.Row("work.time")
	if row == nil || math.Abs(*row.Ratio-480./420) > 1e-9 || !strings.Contains(row.Why, "priced by the token") || c.Verdict != comparison.Fail {
		t.Errorf("%s: %+v", c.Verdict, row)
	}
	if !strings.Contains(c.Cause, "+14.3 %") {
		t.Errorf("told first: %s", c.Cause)
	}
	if c := ofReports(t, base, difftest.Kinds(serving("decode", 16, 50, 6))); c.Verdict != comparison.Inconclusive || !c.Has(comparison.MissingKind) {
		t.Errorf("other tokens: %s %+v", c.Verdict, c.Reasons)
	}
}

// W4: four sizes of prefill, four units of each, all 10.2 % slower; decode as it was. Each size is too few for the usual
// intervals, and none of them varies: the phase fails by +10.2 %, all work by 0.102 · 320/620.
func TestPhasesOfFewUnitsFail(t *testing.T) {
	side := func(factor float64) *report.Report {
		kinds := []difftest.Kind{serving("decode", 32, 30, 10)}
		for i := range int64(4) {
			kinds = append(kinds, serving("prefill", i+1, 4, 20*factor))
		}
		return difftest.Kinds(kinds...)
	}
	c := ofReports(t, side(1), side(1.102))
	if c.Verdict != comparison.Fail {
		t.Errorf("%s: %s %+v", c.Verdict, c.Cause, c.Reasons)
	}
	phase := false
	for i := range c.Primary {
		r := &c.Primary[i]
		switch {
		case r.Metric == "work.time" && r.Labels["phase"] == "prefill":
			phase = true
			if math.Abs(*r.Ratio-1.102) > 1e-9 || r.Class != comparison.Regressed {
				t.Errorf("%+v", r)
			}
		case r.Metric == "work.time":
			if math.Abs(*r.Ratio-(1+0.102*320/620)) > 1e-9 {
				t.Errorf("%+v", r)
			}
		}
	}
	if !phase {
		t.Errorf("no row of the phase: %+v", c.Primary)
	}
	if same := ofReports(t, side(1), side(1.001)); same.Verdict != comparison.Pass {
		t.Errorf("no change: %s %s", same.Verdict, same.Cause)
	}
}
