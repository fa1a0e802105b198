package policy

import (
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
)

// EvidenceRules are what is judged where nobody wrote rules and no trace is behind the sides:
//
//	unit.time.p50                     error  +3% and +10us   the median iteration of a kind, where a log details them
//	serve.generation_throughput.p50   error  -5%             tokens per second
//	serve.prompt_throughput.p50       warn   -5%             what clients ask for, as much as what the server does
//	serve.ttft.mean, serve.e2e.mean   error  +10%            means, which a histogram knows exactly
//	serve.tpot.mean                   error  +5%
//	serve.spec_acceptance_rate        warn   -5pp
//	ncu.duration.mean                 warn   +5% and +1us    each kernel: clocks decide as much as code does
//
// Each has something to say where both sides hold its number.
func EvidenceRules() []Rule {
	num := func(v float64) *float64 { return &v }
	up := func(id, metric, level string, rel float64) Rule {
		return Rule{ID: id, Metric: metric, Labels: report.Labels{}, Level: level, Rel: num(rel),
			Direction: Up, Optional: true}
	}
	step, kernels := up("step", "unit.time.p50", comparison.LevelError,
		0.03), up("kernels", "ncu.duration.mean", comparison.LevelWarn, 0.05)
	step.Abs, step.AbsUnit = num(10e3), report.Nanoseconds
	kernels.Abs, kernels.AbsUnit, kernels.Labels = num(1e3), report.Nanoseconds, report.Labels{"kernel": "*"}
	down := func(r Rule) Rule {
		r.Direction = Down
		return r
	}
	return []Rule{
		step,
		down(up("generation", "serve.generation_throughput.p50", comparison.LevelError, 0.05)),
		down(up("prompt", "serve.prompt_throughput.p50", comparison.LevelWarn, 0.05)),
		up("ttft", "serve.ttft.mean", comparison.LevelError, 0.10),
		up("tpot", "serve.tpot.mean", comparison.LevelError, 0.05),
		up("e2e", "serve.e2e.mean", comparison.LevelError, 0.10),
		{ID: "drafting", Metric: "serve.spec_acceptance_rate", Labels: report.Labels{},
			Level: comparison.LevelWarn, Abs: num(0.05), AbsUnit: report.Ratio, Direction: Down,
			Optional: true},
		kernels,
	}
}
