package gpu

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
)

// mapKernels bounds the kernels that the map of kernel time names.
const mapKernels = 40

// kernelMap is an area for each of the kernels with most time, in ns, those of a category together, and one for the
// rest; all of them sum to the kernel time. Kernels whose short names are equal share an area.
func kernelMap(in *kit.Input, list []kit.Totals, total int64) report.Chart {
	type category struct {
		name  string
		time  int64
		order []string
		by    map[string]int64
	}
	found := map[string]*category{}
	add := func(of, kernel string, ns int64) {
		c := found[of]
		if c == nil {
			c = &category{name: of, by: map[string]int64{}}
			found[of] = c
		}
		if _, ok := c.by[kernel]; !ok {
			c.order = append(c.order, kernel)
		}
		c.time += ns
		c.by[kernel] += ns
	}
	rest := total
	for _, e := range list[:min(len(list), mapKernels)] {
		kind := &in.Kinds[e.Key]
		add(string(kind.Category), kind.Display, e.Total)
		rest -= e.Total
	}
	categories := slices.SortedFunc(maps.Values(found), func(a, b *category) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.name, b.name))
	})
	chart := report.Chart{ID: "kernel_map", Title: "Kernel time by kernel and category", Kind: "treemap",
		Unit: report.Nanoseconds, XTitle: "Kernel", Series: []report.Series{}}
	for _, c := range categories {
		s := report.Series{Name: c.name, Labels: c.order}
		for _, k := range c.order {
			s.Values = append(s.Values, float64(c.by[k]))
		}
		chart.Series = append(chart.Series, s)
	}
	if rest > 0 {
		chart.Series = append(chart.Series, report.Series{Name: "(others)", Labels: []string{"(others)"},
			Values: []float64{float64(rest)}})
	}
	return chart
}
