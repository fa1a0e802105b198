package compat

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var CPUOperations = kit.Section{
	ID: "cpu_operations", Title: "CPU operations",
	Evidence: ofSession,
	Derivation: "Rows of the session's cpu_operations_timing.csv, by operation. Names that explain does not know are " +
		"grouped as other.",
	Findings: []kit.FindingDef{
		{ID: "scheduler_slow", Title: "The scheduler takes a large share of each step"},
	},
	Metrics: []report.MetricDef{
		kit.EventTime("cpu.op_time", report.Lower, report.Leave, "median duration of an operation on the host; the "+
			"summary is over operations").Summarised().By("operation", "operation,phase"),
		kit.TotalTime("cpu.op_total", report.None, report.Leave, "operations added up").By("operation"),
		kit.Ratio("cpu.scheduling_ratio", report.Lower, report.Leave,
			"time in the scheduler over time in the scheduler and in model execution"),
	},
	Tables: []report.Table{
		{ID: "cpu_operations", Title: "CPU operations", File: "cpu_operations.csv", Merge: report.Leave,
			Columns: slices.Concat([]report.Column{
				kit.TextCol("what", "Operation"),
				kit.TextCol("step_phase", "Phase"),
				kit.CountCol("calls", "Calls"),
				kit.MeanCol("total", "Total", "total_ms"),
			}, sampleCols())},
	},
	Run: cpuOperations,
}

// schedulingShare is the share of the scheduler, 0..1, from which the section reports a finding.
const schedulingShare = 0.10

func cpuOperations(in *kit.Input, out *kit.Output) {
	const name, summary = "cpu_operations_timing.csv", "cpu_timing_summary.json"
	d := sessionOf(in)
	if len(d.Operations) == 0 {
		sessionLacks(out, d, name, summary)
		return
	}
	source := []string{name, "operation", "duration_ms", "context"}
	if d.Rows[name] == 0 {
		source = []string{summary, "count", "mean_ms"}
		statedOnly(out, summary, "counts and means", "cpu.op_time")
	}
	t := out.Table("cpu_operations")
	total := map[string]float64{}
	byName := func(a, b session.Operation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Phase, b.Phase))
	}
	for _, o := range slices.SortedFunc(maps.Keys(d.Operations), byName) {
		s, l := d.Operations[o], kit.Labels("operation", o.Name)
		if o.Phase != "" {
			l["phase"] = o.Phase
		}
		distribution(out, "cpu.op_time", l, s, source...)
		if o.Phase == "" {
			total[o.Name] = s.Sum()
			out.Float("cpu.op_total", l, s.Sum())
		}
		t.Partial(append(sampleFields(t, s),
			kit.Text("what", o.Name), kit.Put("step_phase", report.OrNull(o.Phase)), kit.Int("calls", s.N()),
			kit.Float("total", s.Sum()))...)
	}
	if d.Rows[name] > 0 {
		fromSession(out, d.Rows[name], name, "operation", "duration_ms")
	}
	t.Add()
	filesTogether(out, d, name)
	out.Note("model_execution spans the whole step on the host, including any wait for the GPU; the GPU's own time is " +
		"in the forward passes.")
	if total["scheduling"] > 0 && total["model_execution"] > 0 {
		ratio := stat.Ratio(total["scheduling"], total["scheduling"]+total["model_execution"])
		out.Metric("cpu.scheduling_ratio", nil, ratio)
		if *ratio >= schedulingShare {
			out.Find("scheduler_slow",
				[]report.MetricRef{kit.Ref("cpu.scheduling_ratio"), kit.Ref("cpu.op_time", "operation", "scheduling")},
				"Let the next step be scheduled while the GPU works (vLLM: --async-scheduling), and check that the engine has a CPU core of its own.",
				"Long queues make every step's schedule longer: lower --max-num-seqs if requests wait anyway.")
		}
	}
}
