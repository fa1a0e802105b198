package kit

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// A section that does not keep its declaration has status error and nothing half done; it says which one it is.
func TestABrokenSectionFailsAlone(t *testing.T) {
	declared := []report.MetricDef{{ID: "x.time", Unit: report.Nanoseconds}}
	tables := []report.Table{{ID: "x", Columns: []report.Column{TextCol("a", "A"), CountCol("b", "B")}}}
	one := 1.0
	for want, run := range map[string]func(*Input, *Output){
		"emits undeclared metric y.time": func(_ *Input, out *Output) { out.Metric("x.time", nil, &one); out.Metric("y.time", nil, &one) },
		"has no table y":                 func(_ *Input, out *Output) { out.Table("y") },
		"fills 1 of 2 columns":           func(_ *Input, out *Output) { out.Table("x").Row(Int("b", 1)) },
		"fills column c":                 func(_ *Input, out *Output) { out.Table("x").Partial(Int("c", 1)) },
		"gives statistics of x.time": func(_ *Input, out *Output) {
			out.Metric("x.time", nil, &one).Summary = &report.Summary{}
		},
	} {
		s := &Section{ID: "x", Title: "X", Metrics: declared, Tables: tables, Run: run}
		out := s.run(&Input{Trace: &trace.Trace{}})
		if out.section.Status != report.Error || !strings.Contains(out.section.Reason, want) || len(out.metrics) != 0 {
			t.Errorf("%s: status %s, %q, %d metrics", want, out.section.Status, out.section.Reason, len(out.metrics))
		}
	}
}
