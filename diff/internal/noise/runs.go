package noise

import "github.com/nsys-llm/explain/analyze/report"

// Of a median absolute deviation of normal values: what makes it a standard deviation, and how much of the degrees of
// freedom it leaves (Rousseeuw and Croux 1993).
const (
	madScale      = 1.4826
	madEfficiency = 0.37
)

// oddRun is how much larger than the robust one the standard deviation is where runs hold an odd one.
const oddRun = 1.5

// MeasureRuns works out the noise between runs of several commits, which can hold an odd one: where the standard
// deviation says so, it comes from the median absolute deviation, with the degrees of freedom that this has. Values
// that mostly repeat keep what Measure says.
func MeasureRuns(runs []*report.Report) *Noise {
	n := MeasureFloors(runs)
	for i := range n.Metrics {
		m := &n.Metrics[i]
		if m.MAD <= 0 || m.Noise <= oddRun*madScale*m.MAD {
			continue
		}
		m.Noise, m.DF = madScale*m.MAD, max(1, madEfficiency*float64(len(runs)-1))
		m.floor()
	}
	return n
}
