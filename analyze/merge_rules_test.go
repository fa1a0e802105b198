package analyze

import (
	"reflect"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report"
)

// Every metric says what becomes of it in a run, and every column of a table that a run has: a new one without a rule
// would be missing from every run without a word. Sections that share a metric agree, and rules name what there is.
func TestEveryMetricAndColumnSaysHowItMerges(t *testing.T) {
	metrics := map[string]*report.MetricDef{}
	for _, s := range sections {
		for i := range s.Metrics {
			d := &s.Metrics[i]
			if d.Merge.How == "" {
				t.Errorf("metric %s of section %s has no Merge: what is it of a whole run? report.Leave if nothing", d.ID, s.ID)
			}
			if o := metrics[d.ID]; o != nil && !reflect.DeepEqual(o.Merge, d.Merge) {
				t.Errorf("two sections disagree on how %s merges: %+v and %+v", d.ID, o.Merge, d.Merge)
			}
			metrics[d.ID] = d
			if (d.Merge.How == report.HowStep) != (d.Scale == report.PerUnit || d.ID == "unit.count" || d.ID == "unit.token_rate" || d.ID == "unit.mode_share") {
				t.Errorf("%s has scale %s and merges as %s", d.ID, d.Scale, d.Merge.How)
			}
		}
	}
	for i := range merge.Metrics {
		if d := &merge.Metrics[i]; d.Merge.How != report.HowLeave {
			t.Errorf("%s is of a merged run already, and merges as %q", d.ID, d.Merge.How)
		}
	}
	for id, d := range metrics {
		for _, of := range []string{d.Merge.Of, d.Merge.Over} {
			if of != "" && (metrics[of] == nil || metrics[of].Merge.How != report.HowSum) {
				t.Errorf("%s is made of %q, which no section adds up", id, of)
			}
		}
	}
	for _, s := range sections {
		for i := range s.Tables {
			columnsMerge(t, s.ID, &s.Tables[i])
		}
	}
}

// columnsMerge holds that a table that a run has says so of every column, and one that it has not says nothing.
func columnsMerge(t *testing.T, section string, table *report.Table) {
	t.Helper()
	count := map[report.How]int{}
	byID := map[string]report.How{}
	for _, c := range table.Columns {
		count[c.Merge.How]++
		byID[c.ID] = c.Merge.How
		for _, of := range []string{c.Merge.Of, c.Merge.Over} {
			if of != "" && !slices.ContainsFunc(table.Columns, func(x report.Column) bool { return x.ID == of && x.Merge.How == report.HowSum }) {
				t.Errorf("column %s of %s/%s is made of %q, which is no column that adds up", c.ID, section, table.ID, of)
			}
		}
	}
	switch table.Merge.How {
	case report.HowLeave, report.HowStep:
		if len(count) > 1 || count[""] == 0 {
			t.Errorf("table %s/%s merges as %s, and its columns have rules: %v", section, table.ID, table.Merge.How, byID)
		}
	case "":
		if count[""] > 0 {
			t.Errorf("columns of %s/%s do not say how they merge: %v; where the whole table stays with a capture it says Merge: report.Leave", section, table.ID, byID)
		}
		if count[report.HowKey]+count[report.HowDevice] == 0 {
			t.Errorf("no column of %s/%s tells its rows apart: report.Key or report.Device", section, table.ID)
		}
	default:
		t.Errorf("table %s/%s merges as %s: a table can be left, or be of one step", section, table.ID, table.Merge.How)
	}
}

// contracted are metrics of a trace that a merged report has as that of a capture does.
var contracted = []string{
	"kernel.total_time", "kernel.count", "gpu.window", "gpu.busy_time", "gpu.idle_time", "gpu.idle_ratio",
	"gpu.kernel_idle_ratio", "gpu.compute_time", "gpu.comm_time", "gpu.exposed_comm_time", "gpu.copy_time",
	"gpu.exposed_copy_time", "gpu.idle_cause_time", "kernel.time_per_unit", "kernel.count_per_unit", "launch.count",
	"launch.api_time", "sync.total_time", "sync.count", "memcpy.time", "memcpy.bytes", "memcpy.throughput", "nvtx.coverage",
	"nvtx.gpu_time", "nvtx.gpu_time_self", "nvtx.wall_time", "phase.gpu_time", "phase.wall_time", "component.gpu_time",
	"graph.coverage", "graph.launches", "unit.count", "unit.time", "unit.gpu_busy", "unit.gpu_idle", "unit.launches",
	"unit.kernels", "comm.time", "comm.count",
}

func TestMetricsOfTheContractAreMerged(t *testing.T) {
	for _, id := range contracted {
		for _, s := range sections {
			for _, d := range s.Metrics {
				if d.ID == id && d.Merge.How == report.HowLeave {
					t.Errorf("%s stays with the captures", id)
				}
			}
		}
	}
}
