package significance

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// ascending returns the indexes of p in order of size, ties by index.
func ascending(p []float64) []int {
	order := lists.Indexes[int](len(p))
	lists.Sort(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	return order
}

// Holm adjusts p-values so that the chance of any false one among those up to alpha is at most alpha (Holm 1979):
// with p ascending, the i-th of m becomes the largest of (m-k+1)·p(k) over k ≤ i, at most 1. The results are in
// the order of p.
func Holm(p []float64) []float64 {
	out := make([]float64, len(p))
	least := 0.0
	for i, at := range ascending(p) {
		least = max(least, min(1, float64(len(p)-i)*p[at]))
		out[at] = least
	}
	return out
}

// BH adjusts p-values so that of those up to q at most a share q is false on average (Benjamini & Hochberg 1995): with
// p ascending, the i-th of m becomes the smallest of m/k·p(k) over k ≥ i. The results are in the order of p.
func BH(p []float64) []float64 {
	out := make([]float64, len(p))
	order := ascending(p)
	most := 1.0
	for i := len(order) - 1; i >= 0; i-- {
		most = min(most, float64(len(p))/float64(i+1)*p[order[i]])
		out[order[i]] = most
	}
	return out
}
