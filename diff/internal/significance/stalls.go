package significance

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/order"
)

// Even is the median of distances if none differs from it by more than a quarter of it and more than 1, else 0;
// units that follow each other are at no distance.
func Even(gaps []float64) int {
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
// accidents, and without which it holds and has changed by less than half as much. That is a warning. If it is the
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
