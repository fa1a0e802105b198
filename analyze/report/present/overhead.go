package present

import (
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// OverheadText states in a sentence how much time profiling cost.
func OverheadText(o *report.Overhead) string {
	what := map[string]string{"request": "A request", "client": "The load"}[o.Of]
	how := "longer"
	ratio := o.Ratio
	if ratio < 0 {
		how, ratio = "shorter", -ratio
	}
	text := what + " took " + unit.Percent(ratio) + " " + how + " under the profiler: " +
		unit.Format(o.Profiled, report.Nanoseconds) + " against " + unit.Format(o.Plain, report.Nanoseconds) + " without it"
	if o.Low == nil || o.High == nil {
		return text + " (one run of each: no interval)."
	}
	return text + " (95 % interval " + unit.Percent(*o.Low) + " to " + unit.Percent(*o.High) + ", " +
		unit.Int(o.ProfiledN) + " and " + unit.Int(o.PlainN) + " observations)."
}
