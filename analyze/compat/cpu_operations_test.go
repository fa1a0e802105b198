package compat_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// Scheduling takes 2, 3, 5 ms, model execution 41 ms of prefill and 9 ms of decode.
func TestCPUOperations(t *testing.T) {
	r := folderReport(t, sessionFolder)
	sectiontest.WantStatus(t, r, "cpu_operations", report.OK, "")
	sectiontest.Metric(t, r, 3*ms, "cpu.op_time", "operation", "scheduling")
	sectiontest.Metric(t, r, 25*ms, "cpu.op_time", "operation", "model_execution")
	sectiontest.Metric(t, r, 41*ms, "cpu.op_time", "operation", "model_execution", "phase", "prefill")
	sectiontest.Metric(t, r, 10*ms, "cpu.op_total", "operation", "scheduling")
	nearly(t, r, 10.0/60, "cpu.scheduling_ratio")
	wantFindings(t, r, true, "scheduler_slow")
}

// A name that is on no list is not shown.
func TestCPUOperationsOther(t *testing.T) {
	r := filesReport(t, map[string]string{"c.csv": "timestamp_sec,operation,duration_ms,context\n0.1,hf_AbCdEf,2.0,\n0.2,another,4.0,phase=hf_AbCdEf\n"})
	sectiontest.Metric(t, r, 3*ms, "cpu.op_time", "operation", "other")
	for _, m := range r.Metrics {
		if strings.Contains(m.Labels.String(), "hf_") {
			t.Errorf("%s{%s}", m.ID, m.Labels)
		}
	}
}

func TestCPUOperationsSummaryAlone(t *testing.T) {
	r := filesReport(t, map[string]string{"cpu.json": `{"scheduling": {"count": 2, "mean_ms": 1.0, "std_ms": 0, "min_ms": 1, "max_ms": 1, "p95_ms": 1}, "model_execution": {"count": 2, "mean_ms": 19.0, "std_ms": 0, "min_ms": 19, "max_ms": 19, "p95_ms": 19}}`})
	sectiontest.WantStatus(t, r, "cpu_operations", report.Partial, "")
	sectiontest.Metric(t, r, 1*ms, "cpu.op_time", "operation", "scheduling")
	sectiontest.Metric(t, r, 0.05, "cpu.scheduling_ratio")
	wantFindings(t, r, false, "scheduler_slow")
}
