package significance

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// Share is what one kind of unit adds to a sum over kinds: its total, and the times of its units (or a sample) in run
// order, above 0.
type Share struct {
	Sum   float64
	Times []float64
}

// OfShares sets how the sums of several kinds of unit vary: the variance of a sum is that of the kinds' means, weighted
// by their sums. The number of units of a kind is taken as fixed; only their times are noise. It does nothing with
// fewer than MinUnits units on a side. Captures of a side count as alike.
func (n *Number) OfShares(base, head []Share) {
	if min(units(base), units(head)) < MinUnits {
		return
	}
	for i := range n.Base {
		n.Base[i].spread(base, len(n.Base))
	}
	for i := range n.Head {
		n.Head[i].spread(head, len(n.Head))
	}
	n.Trimmed = trimmed(head) / trimmed(base)
}

func units(kinds []Share) int {
	return lists.Sum(kinds, func(s Share) int { return len(s.Times) })
}

func total(kinds []Share) float64 {
	return lists.Sum(kinds, func(s Share) float64 { return s.Sum })
}

// spread fills in N, SD and Lag1 of one of several captures that together hold these units.
func (c *Capture) spread(kinds []Share, captures int) {
	n := float64(units(kinds))
	var variance float64
	for i := range kinds {
		k := &kinds[i]
		mean := average(k.Times)
		sd := k.Sum * Deviation(k.Times) / mean
		variance += sd * sd / float64(len(k.Times))
		c.Lag1 += float64(len(k.Times)) * Lag1(k.Times) / n
	}
	c.N = max(int(n)/captures, MinUnits)
	c.SD = c.Value / total(kinds) * math.Sqrt(variance*n)
}

// trimmed returns a sum without the units that add most to it, so few that they may be accidents: each counts as the
// median of its kind.
func trimmed(kinds []Share) float64 {
	var excess []float64
	sum := total(kinds)
	for i := range kinds {
		k := &kinds[i]
		middle := order.Median(slices.Clone(k.Times))
		each := k.Sum / average(k.Times) / float64(len(k.Times))
		for _, v := range k.Times {
			excess = append(excess, each*(v-middle))
		}
	}
	slices.Sort(excess)
	for _, v := range excess[len(excess)-outliers(len(excess)):] {
		sum -= v
	}
	return sum
}
