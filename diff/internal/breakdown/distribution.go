package breakdown

import (
	"math"
	"slices"
	"sort"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

const (
	distributionBins = 40
	distributionTail = 0.99 // quantile of the slower side; the last bin counts all units above it
)

// Distribution counts the units that both sides' reports list, in bins of unit.time, ns.
func Distribution(onBase, onHead *side.Side) (d comparison.Distribution) {
	base, head := onBase.Series("unit.time"), onHead.Series("unit.time")
	for i, s := range []*side.Side{onBase, onHead} {
		for _, v := range s.Views[:min(len(s.Views), maxCaptures)] {
			if len(v.Units) > 0 {
				d.Captures = append(d.Captures, captureUnits([]string{"base", "head"}[i], v))
			}
		}
	}
	if len(base) < 2 || len(head) < 2 {
		return d
	}
	slices.Sort(base)
	slices.Sort(head)
	low := min(base[0], head[0])
	high := max(base[int(distributionTail*float64(len(base)-1))], head[int(distributionTail*float64(len(head)-1))])
	if high <= low {
		return d
	}
	d.Metric, d.Edges = "unit.time", make([]float64, distributionBins)
	d.Base, d.Head = make([]int64, distributionBins), make([]int64, distributionBins)
	width := (high - low) / distributionBins
	for i := range d.Edges {
		d.Edges[i] = math.Round(low + float64(i)*width)
	}
	for _, side := range []struct {
		times  []float64
		counts []int64
	}{{base, d.Base}, {head, d.Head}} {
		for _, t := range side.times {
			side.counts[sort.Search(len(d.Edges)-1, func(i int) bool { return t < d.Edges[i+1] })]++
		}
	}
	return d
}

// Limits on the single units that a comparison lists: captures of a side, and units of a capture.
const (
	maxCaptures     = 16
	maxCaptureUnits = 400
)

// captureUnits returns the units that a capture's report lists, every k-th if there are many.
func captureUnits(name string, v *side.View) comparison.CaptureUnits {
	list := comparison.CaptureUnits{Side: name, Name: v.C.Report.Trace.Name, Count: int64(len(v.Units)),
		Times: []float64{}}
	every := (len(v.Units) + maxCaptureUnits - 1) / maxCaptureUnits
	for i := 0; i < len(v.Units); i += every {
		list.Times = append(list.Times, v.Units[i].Time)
	}
	return list
}
