package analyze

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/merge"
)

// contracted are metrics of a trace that a merged report has as that of a capture does. Others are left to the captures
// where nobody gave them a rule: rates and shares over windows that differ, statistics of events that partials do not
// count, the steady part of one capture.
var contracted = []string{
	"kernel.total_time", "kernel.count", "gpu.window", "gpu.busy_time", "gpu.idle_time", "gpu.idle_ratio",
	"gpu.kernel_idle_ratio", "gpu.compute_time", "gpu.comm_time", "gpu.exposed_comm_time", "gpu.copy_time",
	"gpu.exposed_copy_time", "gpu.idle_cause_time", "kernel.time_per_unit", "kernel.count_per_unit", "launch.count",
	"launch.api_time", "sync.total_time", "sync.count", "memcpy.time", "memcpy.bytes", "memcpy.throughput", "nvtx.coverage",
	"nvtx.gpu_time", "nvtx.gpu_time_self", "nvtx.wall_time", "phase.gpu_time", "phase.wall_time", "component.gpu_time",
	"graph.coverage", "graph.launches", "unit.count", "unit.time", "unit.gpu_busy", "unit.gpu_idle", "unit.launches",
	"unit.kernels", "comm.time", "comm.count",
}

// Every metric of the contract is merged, and no rule is of a metric that does not exist.
func TestRulesOfMerging(t *testing.T) {
	merged, known := map[string]bool{}, map[string]bool{}
	for _, s := range sections {
		for i := range s.Metrics {
			d := &s.Metrics[i]
			known[d.ID] = true
			merged[d.ID] = merged[d.ID] || merge.Merges(d)
		}
	}
	for _, id := range contracted {
		if !merged[id] {
			t.Errorf("%s is not merged: give it a rule in analyze/merge/rules.go", id)
		}
	}
	for _, id := range merge.Ruled() {
		if !known[id] {
			t.Errorf("analyze/merge/rules.go has a rule for %s, which no section emits", id)
		}
	}
}
