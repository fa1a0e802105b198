package noise

import "github.com/nsys-llm/explain/analyze/report"

// Of a median absolute deviation of normal values: what makes it a standard deviation, and how much of the degrees of
// freedom it leaves (Rousseeuw and Croux 1993).
const (
	madScale      = 1.4826
	madEfficiency = 0.37
)

// MeasureRuns works out the noise between runs of several commits, which can hold an odd one: standard deviations come
// from median absolute deviations, with the degrees of freedom that those have. Values that mostly repeat keep what
// Measure says.
func MeasureRuns(runs []*report.Report) *Noise {
	n := Measure(runs)
	for i := range n.Metrics {
		m := &n.Metrics[i]
		if m.MAD <= 0 {
			continue
		}
		m.Noise, m.DF = madScale*m.MAD, max(1, madEfficiency*float64(len(runs)-1))
		m.floors()
	}
	return n
}
