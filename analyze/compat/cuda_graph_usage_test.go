package compat_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// Four graphs captured, two of them replayed: FULL of 4 tokens three times (6, 7, 11 ms), PIECEWISE of 16 once.
func TestCudaGraphUsage(t *testing.T) {
	r := folderReport(t, sessionFolder)
	sectiontest.WantStatus(t, r, "cuda_graph_usage", report.OK, "")
	sectiontest.Metric(t, r, 4, "cudagraph.captured")
	sectiontest.Metric(t, r, 2, "cudagraph.captured", "mode", "FULL")
	sectiontest.Metric(t, r, 4, "cudagraph.replays")
	sectiontest.Metric(t, r, 3, "cudagraph.replays", "mode", "FULL")
	sectiontest.Metric(t, r, 1, "cudagraph.replays", "mode", "PIECEWISE")
	sectiontest.Metric(t, r, 7*ms, "cudagraph.replay_time", "mode", "FULL")
	sectiontest.Metric(t, r, 0.5, "cudagraph.unused")
	wantFindings(t, r, true, "cudagraphs_unused")
	wantFindings(t, r, false, "cudagraphs_never_run")
	row := sectiontest.SectionOf(t, r, "cuda_graph_usage").Tables[0].Rows[0]
	if tokens, _ := row[1].Int(); tokens != 4 {
		t.Errorf("the graph with most replays is of %d tokens", tokens)
	}
	if mean, _ := row[8].Num(); mean != 8*ms {
		t.Errorf("its mean replay takes %v ns", mean)
	}
}

// Some versions write the class of the mode, and cannot tell the descriptor.
func TestCudaGraphUsageNever(t *testing.T) {
	r := filesReport(t, map[string]string{
		"c.csv": "runtime_mode,num_tokens,num_reqs,uniform,has_lora,capture_time_sec\nCUDAGraphMode.FULL,unknown,None,False,False,1.0\n",
		"u.csv": "runtime_mode,num_tokens,num_reqs,uniform,has_lora,replay_count\n",
	})
	sectiontest.Metric(t, r, 1, "cudagraph.captured", "mode", "FULL")
	sectiontest.Metric(t, r, 0, "cudagraph.replays")
	wantFindings(t, r, true, "cudagraphs_never_run")
}

func TestCudaGraphTimelineAlone(t *testing.T) {
	r := filesReport(t, map[string]string{"t.csv": "timestamp_sec,descriptor,duration_ms\n0.1,\"FULL:BatchDescriptor(num_tokens=8, num_reqs=None, uniform=True, has_lora=False)\",1.000\n0.2,\"FULL:BatchDescriptor(num_tokens=8, num_reqs=None, uniform=True, has_lora=False)\",3.000\n"})
	sectiontest.Metric(t, r, 2, "cudagraph.replays", "mode", "FULL")
	sectiontest.Metric(t, r, 2*ms, "cudagraph.replay_time", "mode", "FULL")
	sectiontest.NoMetric(t, r, "cudagraph.captured")
	sectiontest.NoMetric(t, r, "cudagraph.unused")
}
