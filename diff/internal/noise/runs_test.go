package noise

import (
	"math"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// runsOf are reports whose step takes these times.
func runsOf(values ...float64) []*report.Report {
	var list []*report.Report
	for _, v := range values {
		list = append(list, &report.Report{Unit: report.Unit{Kind: "nvtx"}, Metrics: []report.Metric{{ID: "unit.time", Labels: report.Labels{},
			Value: &v, Unit: report.Nanoseconds, Better: report.Lower, Assume: report.Noisy, Scale: report.PerUnit, N: 1}}})
	}
	return list
}

// TestMeasureRuns by hand. ln 99 to 101 of 100 are -0.01005, 0, 0.00995: nine runs in threes have a median deviation of
// 0.00995, robust 0.01475, standard deviation 0.00866; none is odd. With one run of 150 instead of one of 101 the standard deviation is
// 0.137, and the robust one holds: deviations 0.01005 ×3, 0 ×3, 0.00995 ×2, 0.405; their median is 0.00995.
func TestMeasureRuns(t *testing.T) {
	for _, x := range []struct {
		values []float64
		want   float64
		df     float64
	}{
		{[]float64{99, 100, 101, 99, 100, 101, 99, 100, 101}, 0.00866, 8},
		{[]float64{99, 100, 150, 99, 100, 101, 99, 100, 101}, 0.01475, 0.37 * 8},
	} {
		m := MeasureRuns(runsOf(x.values...)).Find("unit.time", report.Labels{})
		if m == nil || math.Abs(m.Noise-x.want) > 1e-4 || math.Abs(m.DF-x.df) > 1e-9 || m.Floor <= m.Noise {
			t.Errorf("%v: %+v, want noise %v with %v degrees of freedom", x.values, m, x.want, x.df)
		}
	}
}
