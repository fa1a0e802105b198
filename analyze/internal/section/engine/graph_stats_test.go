package engine_test

import (
	"math"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
)

// The example has two tables: 20 batches of 3 in 4, 10 and 5 of 1, 2 of 100 in 128, and one of 600 without a graph. 20 + 56
// tokens of 80 + 15 + 256 + 600 are padding.
func TestCUDAGraphStats(t *testing.T) {
	r := analyseLog(t, exampleLog)
	sectiontest.Metric(t, r, 38, "serve.graph_batches")
	sectiontest.Metric(t, r, 35, "serve.graph_batches", "mode", "FULL")
	sectiontest.Metric(t, r, 76.0/951, "serve.graph_padding")
	sectiontest.Metric(t, r, 20.0/95, "serve.graph_padding", "mode", "FULL")
	sectiontest.Metric(t, r, 35.0/38, "serve.graph_mode_share", "mode", "FULL")
	sectiontest.Metric(t, r, 1.0/38, "serve.graph_mode_share", "mode", "NONE")
	if hasFinding(r, "graph_padding") || hasFinding(r, "batches_without_graph") {
		t.Errorf("findings %v", r.Findings)
	}
}

func TestCUDAGraphStatsFindings(t *testing.T) {
	const at = "(APIServer pid=1) INFO 03-01 10:00:30 [cuda_graph.py:123] "
	r := logOf(t, at+"CUDAGraph Stats:", at+"| 5 | 8 | 3 | FULL | 10 |", at+"| 300 | 300 | 0 | NONE | 10 |", at+"| 3 | 4 | 1 | ODD_MODE | 1 |")
	if !hasFinding(r, "batches_without_graph") || hasFinding(r, "graph_padding") {
		t.Errorf("findings %v", r.Findings)
	}
	sectiontest.Metric(t, r, 1, "serve.graph_batches", "mode", "other")
	r = logOf(t, at+"CUDAGraph Stats:", at+"| 5 | 8 | 3 | FULL | 10 |")
	if !hasFinding(r, "graph_padding") {
		t.Errorf("findings %v", r.Findings)
	}
}

// The excerpt of a real log has one table of one row.
func TestCUDAGraphStatsOfTheRealLog(t *testing.T) {
	r := sharedLog(t, "excerpt_vllm022_cudagraph_stats.log")
	sectiontest.Metric(t, r, 116, "serve.graph_batches", "mode", "FULL")
	if v := *r.Find("serve.graph_padding", nil).Value; math.Abs(v) > 0 {
		t.Errorf("padding %v", v)
	}
}
