package attribute

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/diff/comparison"
)

const (
	distributionBins = 40
	distributionTail = 0.99 // of the slower side: what lies above is counted in the last bin
)

// Distribution counts the units that both sides' reports list.
func (x *Parts) Distribution() {
	base, head := x.Base.UnitTimes(), x.Head.UnitTimes()
	if len(base) < 2 || len(head) < 2 {
		return
	}
	slices.Sort(base)
	slices.Sort(head)
	low := min(base[0], head[0])
	high := max(base[int(distributionTail*float64(len(base)-1))], head[int(distributionTail*float64(len(head)-1))])
	if high <= low {
		return
	}
	d := comparison.Distribution{Metric: "unit.time", Edges: make([]float64, distributionBins),
		Base: make([]int64, distributionBins), Head: make([]int64, distributionBins)}
	width := (high - low) / distributionBins
	for i := range d.Edges {
		d.Edges[i] = math.Round(low + float64(i)*width)
	}
	for _, side := range []struct {
		times  []float64
		counts []int64
	}{{base, d.Base}, {head, d.Head}} {
		for _, t := range side.times {
			at := 0
			for at+1 < len(d.Edges) && t >= d.Edges[at+1] {
				at++
			}
			side.counts[at]++
		}
	}
	x.C.Distribution = d
}
