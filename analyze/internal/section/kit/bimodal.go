package kit

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Bimodal describes steps of equal kernels that take two different times.
type Bimodal struct {
	Short, Long float64 // median of each kind, ns
	Slow        float64 // share of the steps that are long
	Alternate   bool    // short and long mostly alternate
}

// Bounds from which steps have two kinds of times.
const (
	minBimodal   = 10   // steps
	leastKind    = 0.10 // of the steps in each kind
	bimodalRatio = 1.5  // of the two medians
	bimodalFit   = 0.80 // share of the variance of log times that lies between the kinds
	byTurns      = 0.75 // of neighbours that are of different kinds
)

// TwoTimes describes the judged steps if they have two kinds of times; nil if they do not.
func TwoTimes(units *workunit.Result) *Bimodal {
	return bimodal(lists.Map(units.Judged(), func(u int32) int64 { return units.Units[u].Time() }))
}

// bimodal cuts times, in the order in which they ran, in two so that the variance between the parts is largest.
func bimodal(times []int64) *Bimodal {
	n := len(times)
	if n < minBimodal || slices.Min(times) <= 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(times))
	var sum, squares float64
	for _, t := range sorted {
		l := math.Log(float64(t))
		sum, squares = sum+l, squares+l*l
	}
	mean := sum / float64(n)
	all := squares/float64(n) - mean*mean
	cut, most, low := 0, 0.0, 0.0
	for i := 1; i < n; i++ {
		low += math.Log(float64(sorted[i-1]))
		if k := float64(i); k < leastKind*float64(n) || float64(n)-k < leastKind*float64(n) || sorted[i] == sorted[i-1] {
			continue
		}
		a, b := low/float64(i), (sum-low)/float64(n-i)
		if v := float64(i) * float64(n-i) / float64(n*n) * (b - a) * (b - a); v > most {
			cut, most = i, v
		}
	}
	if cut == 0 || all <= 0 || most < bimodalFit*all {
		return nil
	}
	x := &Bimodal{Slow: float64(n-cut) / float64(n), Short: stat.Percentile(sorted[:cut], 0.5), Long: stat.Percentile(sorted[cut:], 0.5)}
	turns := 0
	for i := 1; i < n; i++ {
		if (times[i] >= sorted[cut]) != (times[i-1] >= sorted[cut]) {
			turns++
		}
	}
	if x.Long < bimodalRatio*x.Short {
		return nil
	}
	x.Alternate = float64(turns) >= byTurns*float64(n-1)
	return x
}

// String describes it in a clause.
func (b *Bimodal) String() string {
	short, long := unit.Format(b.Short, report.Nanoseconds), unit.Format(b.Long, report.Nanoseconds)
	if b.Alternate {
		return "steps alternate between " + short + " and " + long
	}
	return unit.Percent(1-b.Slow) + " of the steps take " + short + ", " + unit.Percent(b.Slow) + " take " + long
}
