package compat_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

func TestOperators(t *testing.T) {
	r := folderReport(t, perfoptFolder)
	sectiontest.WantStatus(t, r, "operators", report.OK, "")
	sectiontest.Metric(t, r, 120.5*ms, "operator.total_time", "operator", "aten::mm")
	sectiontest.Metric(t, r, 2.5*ms, "operator.cuda_time", "operator", "aten::copy_")
	sectiontest.Metric(t, r, 5, "operator.calls", "operator", "(other operators)")
	if rows := sectiontest.FindTable(t, r, "operators", "stated_kernels").Rows; len(rows) != 2 {
		t.Errorf("%d kernels", len(rows))
	}
}

// A name with a bar in it, and one cell too few.
func TestOperatorsOddRows(t *testing.T) {
	r := filesReport(t, map[string]string{"o.md": "| op_name | total_time_ms | cuda_time_ms | calls |\n|---|---:|---:|---:|\n| aten::a | 1.000 | 0.500 | 2 |\n| a | b | 3.000 | 0.500 | 4 |\n| aten::b | 1.000 | 2 |\n",
		"k.md": "| kernel_name | total_ms | calls | mean_ms | device |\n|---|---|---|---|---|\n| k | 0.000 | 3 | 0.000000 | cuda:0 |\n"})
	sectiontest.Metric(t, r, 2, "operator.calls", "operator", "aten::a")
	sectiontest.Metric(t, r, 3*ms, "operator.total_time", "operator", "(other operators)")
	if e := r.Evidence[1]; e.Understood != 2 || e.Unknown != 1 {
		t.Errorf("%+v", e)
	}
	if !warnsOf(r, "kernels_untimed") {
		t.Error("no warning about kernels of 0 ms")
	}
}
