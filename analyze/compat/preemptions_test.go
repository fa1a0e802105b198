package compat_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// Four requests start. req-1 is preempted at 1.0 and 2.0 s and resumes at 1.5 and 3.0 s, req-2 at 1.2 and 2.5 s.
func TestPreemptions(t *testing.T) {
	r := folderReport(t, sessionFolder)
	sectiontest.WantStatus(t, r, "preemptions", report.OK, "")
	sectiontest.Metric(t, r, 3, "preemption.count")
	sectiontest.Metric(t, r, 2, "preemption.count", "reason", "recompute")
	sectiontest.Metric(t, r, 1, "preemption.count", "reason", "swap")
	sectiontest.Metric(t, r, 4, "preemption.requests")
	sectiontest.Metric(t, r, 0.75, "preemption.rate")
	sectiontest.Metric(t, r, 1000*ms, "preemption.delay") // of 0.5, 1.0, 1.3 s
	sectiontest.Metric(t, r, 700*ms, "preemption.run_time")
	sectiontest.Metric(t, r, 3900*ms, "request.total_time")
	if n := r.Find("preemption.delay", nil).N; n != 3 {
		t.Errorf("%d delays", n)
	}
	wantFindings(t, r, true, "preempted_often")
	wantFindings(t, r, false, "preempted_long") // the mean is 0.93 s
}

// profilemate divides by the requests that it saw, which are those that were preempted.
func TestPreemptionsOfNoKnownRequests(t *testing.T) {
	r := filesReport(t, map[string]string{"e.csv": "timestamp_sec,request_id,event,reason,running_time_sec,extra_info\n1.0,a,preempted,RECOMPUTE,0.5,\n4.0,a,resumed,,0,\n5.0,b,preempted,RECOMPUTE,0.5,\n"})
	unknownMetric(t, r, "preemption.rate")
	sectiontest.Metric(t, r, 3000*ms, "preemption.delay")
	wantFindings(t, r, false, "preempted_often")
	wantFindings(t, r, true, "preempted_long")
}

func TestPreemptionsSummaryAlone(t *testing.T) {
	r := filesReport(t, map[string]string{"p.json": `{"total_preemptions": 7, "total_requests": 7, "preemption_reasons": {}, "mean_running_time_before_preempt": 0, "mean_resume_delay": 0.25, "max_resume_delay": 1}`})
	sectiontest.WantStatus(t, r, "preemptions", report.Partial, "")
	sectiontest.Metric(t, r, 7, "preemption.count")
	sectiontest.Metric(t, r, 250*ms, "preemption.delay")
	sectiontest.NoMetric(t, r, "preemption.rate")
}
