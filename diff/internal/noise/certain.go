package noise

import (
	"fmt"
	"math"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/infer"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Certain reports whether a change is more than noise, and why. It goes by a fifth of alpha, which by default is 0.01,
// since these metrics are tested one by one, without a correction for their number.
//
// Exact metrics are equal unless something changed. With several captures a side the logarithms of their values are
// tested (infer.TREAT against no change, p <= alpha/5). With one a side the change has to be beyond the noise floor,
// and where the metric has a summary with a mean and a spread s over n observations, the interval of the difference
// of the means,
//
//	head - base ± z sqrt(s0²/n0 + s1²/n1), with z the normal quantile of 1 - alpha/10: 2.576 by default,
//
// must not hold 0. Observations in one capture are not independent, which is what the floor is for.
//
// A share that falls to 0 or rises from it has changed if it was more than the floor.
func Certain(base, head side.Sample, m *report.Metric, alpha float64) (bool, string) {
	level := alpha / 5
	b, h := *base.Mean(), *head.Mean()
	if b == h {
		return true, "the values are equal"
	}
	if m.Assume == report.Exact {
		return true, "the metric is exact"
	}
	if b <= 0 || h <= 0 {
		if m.Unit == report.Ratio && math.Abs(h-b) > comparison.DefaultFloor {
			return true, "a share of 0 on one side only"
		}
		return false, "one of the values is 0, so that no noise floor applies"
	}
	if len(base.Values) > 1 && len(head.Values) > 1 && side.Positive(base.Values) && side.Positive(head.Values) {
		t := infer.TREAT([]infer.Sample{{ID: "value", Base: side.Logs(base.Values), Head: side.Logs(head.Values)}}, 0, level, false)[0]
		why := fmt.Sprintf("p = %s over %d and %d captures", strconv.FormatFloat(t.P, 'g', 3, 64), len(base.Values),
			len(head.Values))
		return t.P <= level, why
	}
	ratio := math.Abs(math.Log(h / b))
	why := "unreplicated; noise floor " + unit.Percent(comparison.DefaultFloor)
	if ratio <= math.Log1p(comparison.DefaultFloor) {
		return false, why + " is not exceeded"
	}
	if x, y := base.Summary, head.Summary; x != nil && y != nil && x.N > 1 && y.N > 1 && base.Spreads() {
		half := infer.NormalQuantile(level/2) * math.Sqrt(x.Stddev*x.Stddev/float64(x.N)+y.Stddev*y.Stddev/float64(y.N))
		if math.Abs(y.Mean-x.Mean) <= half {
			return false, why + " is exceeded, but the means differ by no more than their spread explains"
		}
	}
	return true, why + " is exceeded"
}
