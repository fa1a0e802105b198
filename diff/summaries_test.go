package diff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/difftest"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
)

// summary is a summary.json as profilemate writes it.
func summary(prefill, decode, coverage, top float64, kernel string) string {
	return fmt.Sprintf(`{"prefill_decode": {"prefill": {"count": 3, "total_ms": %g, "avg_ms": 1}, "decode": {"count": 9, "total_ms": %g}, "other": {"count": 1, "total_ms": 5}},
		"components": {}, "top_kernels": [{"kernel_name": %q, "invocations": 7, "total_time_ms": %g}, {"kernel_name": "b", "total_time_ms": 1}],
		"cuda_graphs": {"total_kernel_launches": 10, "graph_coverage_pct": %g}}`, prefill, decode, kernel, top, coverage)
}

func compareSummaries(t *testing.T, base, head string, percent float64) (*comparison.Comparison, error) {
	t.Helper()
	b, err := diff.ReadSummary("base.json", strings.NewReader(base))
	if err != nil {
		t.Fatal(err)
	}
	h, err := diff.ReadSummary("head.json", strings.NewReader(head))
	if err != nil {
		t.Fatal(err)
	}
	return diff.CompareSummaries(b, h, percent, diff.Options{Version: "test"})
}

// TestSummariesAreComparedAsCheckRegressionDoes: prefill and decode by percent, coverage by percentage points, the first
// top kernel by percent and whatever its name; worse by more than the threshold is a regression.
func TestSummariesAreComparedAsCheckRegressionDoes(t *testing.T) {
	base := summary(100, 200, 80, 50, "gemm")
	for _, c := range []struct {
		why    string
		head   string
		failed string // metrics, comma-separated
	}{
		{"the same", base, ""},
		{"prefill +10 %: not more than 10 %", summary(110, 200, 80, 50, "gemm"), ""},
		{"prefill +11 %", summary(111, 200, 80, 50, "gemm"), "prefill_decode.prefill.total_ms"},
		{"decode +11 %", summary(100, 222, 80, 50, "gemm"), "prefill_decode.decode.total_ms"},
		{"everything faster", summary(50, 100, 99, 20, "gemm"), ""},
		{"coverage -10 points: not more", summary(100, 200, 70, 50, "gemm"), ""},
		{"coverage -11 points, which is -13.75 %", summary(100, 200, 69, 50, "gemm"), "cuda_graphs.graph_coverage_pct"},
		{"another top kernel, +20 %", summary(100, 200, 80, 60, "flash"), "top_kernels.0.total_time_ms"},
		{"all of it", summary(200, 400, 0, 100, "gemm"), "prefill_decode.prefill.total_ms,prefill_decode.decode.total_ms,cuda_graphs.graph_coverage_pct,top_kernels.0.total_time_ms"},
	} {
		cmp, err := compareSummaries(t, base, c.head, 10)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		var failed []string
		for _, g := range cmp.Gates {
			if g.Verdict == comparison.Fail {
				failed = append(failed, g.Metric)
			}
		}
		want := comparison.Pass
		if c.failed != "" {
			want = comparison.Fail
		}
		if strings.Join(failed, ",") != c.failed || cmp.Verdict != want || cmp.Counts.GatesChecked != 4 {
			t.Errorf("%s: %s, failed %v", c.why, cmp.Verdict, failed)
		}
	}
}

func TestSummariesNeedTheirKeys(t *testing.T) {
	whole := summary(1, 2, 3, 4, "gemm")
	for _, c := range []struct{ text, want string }{
		{"{}", "prefill_decode has neither prefill nor decode"},
		{"[]", "not a summary.json of profilemate"},
		{`{"prefill_decode": null}`, "prefill_decode has neither"},
		{strings.Replace(whole, `"total_ms": 1,`, "", 1), "prefill_decode.prefill.total_ms is missing"},
		{strings.Replace(whole, `"total_ms": 1,`, `"total_ms": null,`, 1), "prefill_decode.prefill.total_ms is missing"},
		{strings.Replace(whole, `"total_ms": 1,`, `"total_ms": "1",`, 1), `prefill_decode.prefill.total_ms is "1", not a number`},
		{strings.Replace(whole, `"total_ms": 1,`, `"total_ms": -1,`, 1), "not a number of 0 or more"},
		{strings.Replace(whole, `"graph_coverage_pct": 3`, `"x": 3`, 1), "cuda_graphs.graph_coverage_pct is missing"},
		{strings.Replace(whole, `"top_kernels"`, `"x"`, 1), "top_kernels is missing or empty"},
		{strings.Replace(whole, `"total_time_ms": 4`, `"x": 4`, 1), "top_kernels[0].total_time_ms is missing"},
	} {
		if _, err := diff.ReadSummary("x", strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.text, err, c.want)
		}
	}
	// A phase that neither file has is not compared; one that a single file has is an error.
	decode := strings.Replace(whole, `"prefill":`, `"x":`, 1)
	cmp, err := compareSummaries(t, decode, decode, 10)
	if err != nil || cmp.Counts.GatesChecked != 3 {
		t.Errorf("without prefill: %v", err)
	}
	if _, err := compareSummaries(t, whole, decode, 10); err == nil || !strings.Contains(err.Error(), "prefill_decode.prefill.total_ms is missing in head.json") {
		t.Errorf("prefill on one side: %v", err)
	}
}

// TestAPhaseFromNothing: 0 ms on the base has no relative change, and any time on the head is worse.
func TestAPhaseFromNothing(t *testing.T) {
	cmp, err := compareSummaries(t, summary(0, 1, 0, 1, "a"), summary(5, 1, 0, 1, "a"), 10)
	if err != nil || cmp.Verdict != comparison.Fail {
		t.Errorf("%v %+v", err, cmp)
	}
	cmp, err = compareSummaries(t, summary(0, 1, 0, 1, "a"), summary(0, 1, 0, 1, "a"), 0)
	if err != nil || cmp.Verdict != comparison.Pass {
		t.Errorf("%v %+v", err, cmp)
	}
}

// TestThresholdOnReportsIsPerUnit: check_regression's questions become rules.
func TestThresholdOnReportsIsPerUnit(t *testing.T) {
	r := difftest.Side(
		difftest.Metric("unit.time", report.Nanoseconds, 1), difftest.Metric("unit.time", report.Nanoseconds, 1, "phase", "decode"), difftest.Metric("unit.time", report.Nanoseconds, 1, "phase", "prefill"),
		difftest.Metric("kernel.time_per_unit", report.Nanoseconds, 3, "kernel", "f(int*)"), difftest.Metric("kernel.time_per_unit", report.Nanoseconds, 2, "kernel", "g"))
	var got []string
	for _, rule := range policy.ThresholdRules(10, r) {
		if err := rule.Validate(); err != nil {
			t.Error(err)
		}
		got = append(got, rule.ID+" "+rule.Metric+"{"+rule.Labels.String()+"}"+rule.Match.Regex+":"+rule.Threshold())
	}
	want := []string{"prefill unit.time.mean{phase=prefill}:+10%", "decode unit.time.mean{phase=decode}:+10%", "graphs graph.coverage{}:-10pp", `top kernel kernel.time_per_unit{kernel=*}^f\(int\*\)$:+10%`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rules:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if list := policy.ThresholdRules(10, difftest.Side(difftest.Metric("unit.time", report.Nanoseconds, 1))); len(list) != 2 || list[0].Metric != "unit.time.mean" || len(list[0].Labels) != 0 {
		t.Errorf("without phases: %+v", list)
	}
}
