package kit

import "github.com/nsys-llm/explain/analyze/report"

// The usual kinds of metric. A kind fixes the unit, whether two captures of the same program may differ in the value,
// and whether that grows with the length of the capture.
var (
	TotalTime  = define(report.Nanoseconds, report.Noisy, report.Total)
	EventTime  = define(report.Nanoseconds, report.Noisy, report.Event)
	UnitTime   = define(report.Nanoseconds, report.Noisy, report.PerUnit)
	Ratio      = define(report.Ratio, report.Noisy, report.Level)
	Rate       = define(report.PerSecond, report.Noisy, report.Level)
	NoisyCount = define(report.Count, report.Noisy, report.Total)
	ExactCount = define(report.Count, report.Exact, report.Total)
	NoisyLevel = define(report.Count, report.Noisy, report.Level)
	ExactLevel = define(report.Count, report.Exact, report.Level)
)

func define(unit string, assume report.Noise, scale report.Scale) func(id string, better report.Direction,
	merge report.Merge, meaning string) report.MetricDef {

	return func(id string, better report.Direction, merge report.Merge, meaning string) report.MetricDef {
		return report.Define(id, unit, better, assume, scale, merge, meaning)
	}
}
