package analyze

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/merge"
)

// leftToCaptures are the metrics of a trace that a merged report does not have, because they say nothing of a run: rates
// and shares over windows that differ, statistics of events that partials do not count, the steady part of one capture,
// and what is only known by process.
var leftToCaptures = []string{
	"graph.kernels_per_launch", "kernel.rate", "kernel.under_ratio", "kernel.window_share", "launch.queue_time", "launch.rate",
	"phase.gpu_share", "phase.kernel_duration", "phase.launch_rate", "phase.wall_share", "process.busy_time",
	"sync.gpu_busy_ratio", "sync.share",
}

// Every metric of a section on the trace is merged in some way, or left to the captures on purpose.
func TestEveryMetricHasARule(t *testing.T) {
	merged := map[string]bool{}
	for _, s := range sections {
		if len(s.Evidence) > 0 || s.ID == "steady" || s.ID == "regions" {
			continue
		}
		for i := range s.Metrics {
			d := &s.Metrics[i]
			merged[d.ID] = merged[d.ID] || merge.Merges(d)
		}
	}
	for id, yes := range merged {
		if yes == slices.Contains(leftToCaptures, id) {
			t.Errorf("%s: give it a rule in analyze/merge/rules.go, or list it here", id)
		}
	}
}
