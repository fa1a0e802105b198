package compat

import (
	"math"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
)

// Bounds of the heat map: rows and columns beyond them are drawn as the mean of neighbours.
const (
	maxMapLayers  = 64
	maxMapExperts = 128
)

// moeMap draws the load of each expert, 1 being an even share, as a row per layer. Experts beyond the bound share a
// cell with their neighbours, and so do layers.
func moeMap(out *kit.Output, layers []moeLayer) {
	var shown []*moeLayer
	experts := 0
	for i := range layers {
		if l := &layers[i]; l.Counted > 0 {
			shown = append(shown, l)
			experts = max(experts, len(l.Hits), int(l.experts))
		}
	}
	if len(shown) == 0 {
		return
	}
	perCell := (experts + maxMapExperts - 1) / maxMapExperts
	perRow := (len(shown) + maxMapLayers - 1) / maxMapLayers
	c := report.Chart{ID: "moe_load", Title: "Load of experts by layer, 1 is an even share", Kind: "heat",
		Unit: report.Count, XTitle: "Expert", Series: []report.Series{}}
	for lo := 0; lo < len(shown); lo += perRow {
		group := shown[lo:min(lo+perRow, len(shown))]
		s := report.Series{Name: "layer " + span(group[0].Index, group[len(group)-1].Index), Labels: []string{},
			Values: []float64{}}
		for e := 0; e < experts; e += perCell {
			last := min(e+perCell, experts) - 1
			sum := 0.0
			for _, l := range group {
				n := max(int(l.experts), len(l.Hits))
				for i := e; i <= last && i < len(l.Hits); i++ {
					sum += float64(l.Hits[i]) * float64(n) / float64(l.Counted)
				}
			}
			s.Labels = append(s.Labels, span(e, last))
			s.Values = append(s.Values, math.Round(sum/float64((last-e+1)*len(group))*1000)/1000)
		}
		c.Series = append(c.Series, s)
	}
	out.Chart(c)
	if perCell > 1 || perRow > 1 {
		out.Note("The heat map shows the mean of neighbouring experts and layers if there are too many for a cell each; moe_experts.csv has all.")
	}
}

// span names the numbers from a to b.
func span(a, b int) string {
	if a == b {
		return strconv.Itoa(a)
	}
	return strconv.Itoa(a) + "–" + strconv.Itoa(b)
}
