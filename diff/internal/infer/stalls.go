package infer

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/order"
)

// Excess is what few slow units add to a side: "3 of 64 steps took 6 times as long".
type Excess struct {
	Units int     // that took more than twice the median
	Of    int     // units looked at
	Times float64 // their mean over the median of the side; 0 where there are none
	Every int     // they come at even distances: 8 says "1 in 8"; 0: they do not, or are fewer than 3
}

// stalled is how many times the median makes a stall.
const stalled = 2

// StallsOf describes the slow units of one capture, in the order in which they ran. Distances are even where none
// differs from their median by more than a quarter of it and more than 1.
func StallsOf(units []float64) Excess {
	e := Excess{Of: len(units)}
	middle := order.Median(slices.Clone(units))
	var sum float64
	var gaps []float64
	last := -1
	for i, v := range units {
		if v <= stalled*middle {
			continue
		}
		e.Units++
		sum += v
		if last >= 0 {
			gaps = append(gaps, float64(i-last))
		}
		last = i
	}
	if e.Units == 0 || !(middle > 0) {
		return Excess{Of: len(units)}
	}
	e.Times = sum / float64(e.Units) / middle
	if len(gaps) < 2 {
		return e
	}
	e.Every = even(gaps)
	return e
}

// SlowUnits are the units of one capture that lie apart above the others: beyond the median by 2 % of it and by six times
// the median distance from it. excess is by how much they do in all, middle the median.
func SlowUnits(units []float64) (n int, excess, middle float64) {
	middle = order.Median(slices.Clone(units))
	far := make([]float64, len(units))
	for i, v := range units {
		far[i] = math.Abs(v - middle)
	}
	limit := middle + max(6*order.Median(far), middle/50)
	for _, v := range units {
		if v > limit {
			n++
			excess += v - middle
		}
	}
	return n, excess, middle
}

// even is the median of distances where none differs from it by more than a quarter of it and more than 1, else 0; units
// that follow each other are at no distance.
func even(gaps []float64) int {
	g := order.Median(slices.Clone(gaps))
	if g < 2 {
		return 0
	}
	for _, v := range gaps {
		if math.Abs(v-g) > max(1, g/4) {
			return 0
		}
	}
	return int(math.Round(g))
}

// outliers is how many units of n are fewer than two and fewer than 2 %: no property of the program is read off them.
func outliers(n int) int { return max(2, (n+49)/50) - 1 }

// forgive takes a mean back that outliers alone carry: the slowest units of the slower side, so few that they may be
// accidents, and without which it holds and has changed by less than half as much. That is a warning. Where it is the
// fastest units of the faster side, it holds.
func (q *question) forgive(o Options) {
	if !(q.d > 0) {
		return
	}
	if t := q.n.Trimmed; t > 0 {
		if !q.n.HigherBetter && math.Log(t) <= min(q.tau, q.d/2) {
			q.v.Outcome, q.v.Code, q.v.Few = Warns, "", true
		}
		return
	}
	holds := func(head bool) bool {
		n := *q.n
		n.Tolerance, n.HigherBetter = math.Expm1(q.tau), false
		n.Base, n.Head = slices.Clone(q.base), slices.Clone(q.head)
		tied := n.Tie != TieNone && len(n.Base) == 1 && len(n.Head) == 1 && len(n.Base[0].Steps) == 0 &&
			len(n.Base[0].Units) == len(n.Head[0].Units)
		trimmed := n.Head
		if !head {
			trimmed = n.Base
		}
		for i := range trimmed {
			of := slices.Clone(trimmed[i].Units)
			if len(of) < MinUnits {
				return false
			}
			for k := range of {
				if tied {
					of[k] = n.Head[0].Units[k] / n.Base[0].Units[k]
				} else if !head {
					of[k] = -of[k]
				}
			}
			drop := ascending(of)[len(of)-outliers(len(of)):]
			if tied {
				n.Base[0], n.Head[0] = n.Base[0].without(drop), n.Head[0].without(drop)
			} else {
				trimmed[i] = trimmed[i].without(drop)
			}
		}
		for i := range n.Base { // of the same units as the head's
			if n.Base[i].Value = 0; len(n.Base[i].Units) == 0 {
				return false
			}
		}
		for i := range n.Head {
			if n.Head[i].Value = 0; len(n.Head[i].Units) == 0 {
				return false
			}
		}
		v := Judge([]Number{n}, Options{Alpha: o.Alpha, Tau: o.Tau, Seed: o.Seed, whole: true})[0]
		return v.Outcome == Holds && math.Log(v.Ratio) < q.d/2
	}
	switch {
	case holds(true):
		q.v.Outcome, q.v.Code, q.v.Few = Warns, "", true
	case q.v.Outcome == Undecided && holds(false):
		q.v.Outcome, q.v.Code, q.v.Loose = Holds, "", true
	}
}

// without is a capture without the units at these places.
func (c *Capture) without(drop []int) Capture {
	var out Capture
	for i, v := range c.Units {
		if slices.Contains(drop, i) {
			continue
		}
		out.Units = append(out.Units, v)
		if len(c.Steps) > 0 {
			out.Steps = append(out.Steps, c.Steps[i])
		}
	}
	return out
}
