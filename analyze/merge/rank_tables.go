package merge

import "github.com/nsys-llm/explain/analyze/report"

// Tables are the tables that only the report of a run has, without rows: those of its section on ranks.
var Tables = []report.Table{
	{ID: "ranks", Title: "Ranks", File: "ranks.csv", Columns: []report.Column{
		column("rank", "Rank", report.Name, ""),
		wide("role", "Role", report.Name, ""),
		wide("clock", "Clock", report.Int, ""),
		column("step_p50", "Step p50", report.Float, report.Nanoseconds),
		column("kernel_time", "Kernel time", report.Int, report.Nanoseconds),
		column("collectives", "Collectives", report.Int, report.Count),
		column("collective_time", "In collectives", report.Int, report.Nanoseconds),
		column("wait", "Waiting", report.Int, report.Nanoseconds),
		column("transfer", "Transfer", report.Int, report.Nanoseconds),
		column("last", "Came last", report.Int, report.Count),
		column("late_mean", "Late by", report.Float, report.Nanoseconds),
		wide("late_max", "At most", report.Int, report.Nanoseconds),
		column("held_up", "Held others up", report.Int, report.Nanoseconds),
		column("because", "Because of", report.Name, ""),
		column("capture", "Capture", report.Name, ""),
		wide("pid", "Process", report.Int, ""),
		wide("device_id", "GPU", report.Int, ""),
		wide("bubble", "Bubbles", report.Int, report.Nanoseconds),
		wide("experts", "Experts", report.Int, report.Nanoseconds),
	}},
	{ID: "rank_causes", Title: "What late ranks did more than others", File: "rank_causes.csv", Columns: []report.Column{
		column("rank", "Rank", report.Name, ""),
		column("what", "Did", report.Name, ""),
		column("more", "More than others", report.Float, report.Nanoseconds),
		column("each", "Each time", report.Float, report.Nanoseconds),
	}},
	{ID: "rank_chains", Title: "Where waiting begins", File: "rank_chains.csv", Columns: []report.Column{
		column("rank", "Rank", report.Name, ""),
		column("waits", "Holds up", report.Name, ""),
		wide("others", "And holds up", report.Name, ""),
		column("through", "Passed on by", report.Name, ""),
		column("time", "Waits for it", report.Int, report.Nanoseconds),
		column("because", "Because of", report.Name, ""),
		column("because_time", "Due to that", report.Int, report.Nanoseconds),
		column("in", "Waits in", report.Name, ""),
		column("calls", "Calls with a wait", report.Int, report.Count),
		column("of_calls", "Calls in all", report.Int, report.Count),
		wide("capture", "Capture", report.Name, ""),
		wide("at", "Longest at", report.Moment, report.Nanoseconds),
	}},
	{ID: "clocks", Title: "Clocks", File: "clocks.csv", Columns: []report.Column{
		column("clock", "Clock", report.Int, ""),
		column("ranks", "Ranks", report.Int, report.Count),
		column("known", "Compared", report.Bool, ""),
		column("collectives", "By collectives", report.Int, report.Count),
		wide("messages", "By messages", report.Int, report.Count),
		column("offset", "Ahead", report.Float, report.Nanoseconds),
		column("drift", "Drift", report.Float, report.Ratio),
		column("residual_p50", "Left p50", report.Float, report.Nanoseconds),
		column("residual_p99", "Left p99", report.Float, report.Nanoseconds),
	}},
	{ID: "steps", Title: "Slowest rank of each step", File: "rank_steps.csv", Columns: []report.Column{
		column("step", "Step", report.Int, ""),
		column("rank", "Slowest", report.Name, ""),
		column("time", "Took", report.Int, report.Nanoseconds),
		column("middle", "Middle rank", report.Int, report.Nanoseconds),
	}},
	{ID: "gpu_spread", Title: "How GPUs are spread", File: "gpu_spread.csv", Columns: []report.Column{
		column("what", "Of each GPU", report.Name, ""),
		wide("unit", "Unit", report.Name, ""),
		column("gpus", "GPUs", report.Int, report.Count),
		column("least", "Least", report.Name, ""),
		column("p50", "Median", report.Name, ""),
		column("p90", "p90", report.Name, ""),
		column("most", "Most", report.Name, ""),
		column("median_gpu", "Median GPU", report.Name, ""),
		column("worst_gpu", "Worst GPU", report.Name, ""),
	}},
}

func column(id, title string, kind report.Kind, unit string) report.Column {
	return report.Column{ID: id, Title: title, Kind: kind, Unit: unit}
}

// wide is a column that narrow formats leave out.
func wide(id, title string, kind report.Kind, unit string) report.Column {
	return report.Column{ID: id, Title: title, Kind: kind, Unit: unit, Wide: true}
}
