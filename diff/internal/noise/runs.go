package noise

import (
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// madEfficiency is the share of the degrees of freedom that the median absolute deviation leaves of normal values
// (Rousseeuw and Croux 1993).
const madEfficiency = 0.37

// oddRun: runs contain an outlier if their standard deviation is this many times the robust one.
const oddRun = 1.5

// MeasureRuns computes the noise between runs of several commits, which may contain an outlier. If the standard deviation
// shows one, the noise comes from the median absolute deviation, with its fewer degrees of freedom. If most values are
// equal, so that the MAD is 0, the noise of MeasureFloors stays.
func MeasureRuns(runs []*report.Report) *Noise {
	n := MeasureFloors(runs)
	for i := range n.Metrics {
		m := &n.Metrics[i]
		if m.MAD <= 0 || m.Noise <= oddRun*significance.NormalMAD*m.MAD {
			continue
		}
		m.Noise, m.DF = significance.NormalMAD*m.MAD, max(1, madEfficiency*float64(len(runs)-1))
		m.floor()
	}
	return n
}
