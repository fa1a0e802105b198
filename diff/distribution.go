package diff

import (
	"errors"
	"math"
	"slices"
	"strconv"
)

// Distribution is how the times of single units of both sides are spread, in bins that both share. Bin i holds the times
// from Edges[i] up to Edges[i+1]; the last one has no upper edge.
type Distribution struct {
	Metric string    `json:"metric"`
	Edges  []float64 `json:"edges"` // ns, lower edges; empty where single units are not known
	Base   []int64   `json:"base"`  // units
	Head   []int64   `json:"head"`
}

const (
	distributionBins = 40
	distributionTail = 0.99 // of the slower side: what lies above is counted in the last bin
)

// distribution counts the units that both sides' reports list.
func (x *Parts) distribution() {
	base, head := x.base.unitTimes(), x.head.unitTimes()
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
	d := Distribution{Metric: "unit.time", Edges: make([]float64, distributionBins), Base: make([]int64, distributionBins), Head: make([]int64, distributionBins)}
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
	x.c.Distribution = d
}

// unitTimes are the times of the units that the captures list, in no order.
func (s *side) unitTimes() []float64 {
	var list []float64
	for _, v := range s.views {
		for _, u := range v.units {
			list = append(list, u.time)
		}
	}
	return list
}

func formatEdge(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// validate reports what makes the bins none.
func (d *Distribution) validate() error {
	if d.Edges == nil || d.Base == nil || d.Head == nil || len(d.Base) != len(d.Edges) || len(d.Head) != len(d.Edges) || len(d.Edges) > maxFewRows || !finite(d.Edges...) {
		return errors.New("comparison: the distribution's bins do not fit together")
	}
	for i := range d.Edges {
		if d.Base[i] < 0 || d.Head[i] < 0 || i > 0 && d.Edges[i] < d.Edges[i-1] {
			return errors.New("comparison: the distribution's bins are not in order, or hold less than nothing")
		}
	}
	return nil
}
