package diff_test

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/internal/difftest"
	"github.com/nsys-llm/explain/diff/policy"
)

// A comparison of reports that hold what it reads is, byte for byte, that of the whole ones; with a rule on a total by
// kernel too. The lean ones have fewer metrics.
func TestACompareOfWhatItReadsIsTheSame(t *testing.T) {
	base, slow := engineReport(t, engine{}), engineReport(t, engine{gap: 40_000})
	total := policy.Rule{ID: "total", Metric: "kernel.total_time", Level: "error", Max: difftest.Num(1e3),
		Labels: report.Labels{"kernel": "*"}}
	for name, opt := range map[string]diff.Options{
		"default rules": {}, "a budget on kernels": {Rules: []policy.Rule{total}},
	} {
		lean := report.Lean{Reads: diff.Reads(opt)}
		keep := func(r *report.Report) *report.Report {
			own := *r
			own.Metrics, own.Sections = slices.Clone(r.Metrics), slices.Clone(r.Sections)
			for i := range own.Sections {
				own.Sections[i].Tables = slices.Clone(own.Sections[i].Tables)
			}
			lean.Compared(&own)
			if len(own.Metrics) >= len(r.Metrics) {
				t.Errorf("%s: %d of %d metrics are kept", name, len(own.Metrics), len(r.Metrics))
			}
			return &own
		}
		whole := compareReports(t, []*report.Report{base}, []*report.Report{slow}, opt)
		kept := compareReports(t, []*report.Report{keep(base)}, []*report.Report{keep(slow)}, opt)
		if got, want := difftest.JSON(t, kept), difftest.JSON(t, whole); got != want {
			t.Errorf("%s: the comparison of what is read differs:\n%s\n%s", name, got, want)
		}
	}
}
