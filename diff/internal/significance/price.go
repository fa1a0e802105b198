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

// Priced is a kind of unit that both sides ran, with the kinds that do nearly the same work.
type Priced struct{ Base, Head []Share }

// OfShares sets how the sums of several kinds of unit vary: the variance of a sum is that of the kinds' means, weighted
// by their sums. The number of units of a kind is taken as fixed; only their times are noise. Nobody knows how a kind
// varies of which a side has one unit: its standard deviation is its change, less what the other kinds changed by in
// proportion, where their time together vouches for no more time than its own. Captures of a side count as alike.
//
// With fewer than MinUnits units on a side it leaves the decision to the floor; unless there are fewer than LeastUnits,
// or the sides overlap: then there are too few.
func (n *Number) OfShares(kinds []Priced) {
	var base, head []Share
	for _, k := range kinds {
		base, head = append(base, k.Base...), append(head, k.Head...)
	}
	switch least := min(units(base), units(head)); {
	case least >= MinUnits:
	case least >= LeastUnits && !slices.ContainsFunc(kinds, Priced.overlap): // the floor decides
		return
	default: // none at all, if the reports list none
		for i := range n.Base {
			n.Base[i].N = least
		}
		return
	}
	var onBase, onHead float64
	for _, k := range kinds {
		if min(units(k.Base), units(k.Head)) == 1 {
			own, rest := total(k.Base), total(base)-total(k.Base)
			change, others := total(k.Head)-own, total(head)-total(k.Head)-rest
			by := change - others*min(1, own/rest)
			onBase += by * by
		}
	}
	if total(head) < total(base) { // which is the larger share there
		onBase, onHead = 0, onBase
	}
	for i := range n.Base {
		n.Base[i].spread(base, len(n.Base), onBase)
	}
	for i := range n.Head {
		n.Head[i].spread(head, len(n.Head), onHead)
	}
	n.Trimmed = trimmed(head) / trimmed(base)
}

func (k Priced) overlap() bool { return overlap(times(k.Base), times(k.Head)) }

// overlap reports whether a unit of the slower side takes no longer than one of the other side.
func overlap(base, head []float64) bool {
	return len(base) > 0 && len(head) > 0 &&
		slices.Max(base) >= slices.Min(head) && slices.Max(head) >= slices.Min(base)
}

func times(kinds []Share) []float64 {
	return slices.Concat(lists.Map(kinds, func(s Share) []float64 { return s.Times })...)
}

func units(kinds []Share) int {
	return lists.Sum(kinds, func(s Share) int { return len(s.Times) })
}

func total(kinds []Share) float64 {
	return lists.Sum(kinds, func(s Share) float64 { return s.Sum })
}

// spread fills in N, SD and Lag1 of one of several captures that together hold these units, and whose sum has this
// variance beside that of the units.
func (c *Capture) spread(kinds []Share, captures int, variance float64) {
	n := float64(units(kinds))
	for i := range kinds {
		k := &kinds[i]
		sd := k.Sum * Deviation(k.Times) / mean(k.Times)
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
		each := k.Sum / mean(k.Times) / float64(len(k.Times))
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
