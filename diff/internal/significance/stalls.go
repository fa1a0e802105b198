package significance

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// Even returns the median distance of units, rounded, by their ascending positions among of units. It is 0 if there are
// fewer than 3; if the median is below 2; if a distance differs from it by more than a quarter of it and by more than 1;
// and if units at that distance reach over less than nine tenths of all.
func Even(at []int, of int) int {
	if len(at) < 3 {
		return 0
	}
	gaps := make([]float64, len(at)-1)
	for i := range gaps {
		gaps[i] = float64(at[i+1] - at[i])
	}
	g := order.Median(slices.Clone(gaps))
	if g < 2 || float64(len(at)+1)*g < 0.9*float64(of) {
		return 0
	}
	if slices.ContainsFunc(gaps, func(v float64) bool { return math.Abs(v-g) > max(1, g/4) }) {
		return 0
	}
	return int(math.Round(g))
}

// Stalled is the multiple of the median from which a unit is a stall.
const Stalled = 2

// TwoLengths reports whether more than a quarter of the units are stalls: then the median lies between two lengths of
// unit, and describes neither.
func TwoLengths(units []float64) bool {
	middle := order.Median(slices.Clone(units))
	return 4*lists.Count(units, func(v float64) bool { return v > Stalled*middle }) > len(units)
}

// outliers returns the most units of n that prove nothing about the program: fewer than two, or fewer than 2 %.
func outliers(n int) int { return max(2, (n+49)/50) - 1 }

// comesBack reports whether more units of the head's one capture than may be outliers exceed every unit of base's one by
// more than tau, ln, and by at least a quarter as much as the longest does.
func comesBack(base, head []Capture, tau float64) bool {
	if len(base) != 1 || len(head) != 1 || len(base[0].Units) == 0 {
		return false
	}
	h, most := slices.Sorted(slices.Values(head[0].Units)), slices.Max(base[0].Units)
	next := len(h) - 1 - outliers(len(h))
	return next >= 0 && h[next]-most >= (h[len(h)-1]-most)/4 && h[next] > most*math.Exp(tau)
}

// forgive eases the outcome of a mean that outliers alone carry. It warns if the mean holds without the slowest units
// of the slower side, so few that they may be accidents, and has then changed by less than half as much. If that is so
// without the fastest units of the faster side, such as one that is cut short, a failure warns and an undecided mean
// holds.
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
	if comesBack(q.base, q.head, q.tau) {
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
		for _, side := range [][]Capture{n.Base, n.Head} {
			for i := range side { // judged by their remaining units
				if side[i].Value = 0; len(side[i].Units) == 0 {
					return false
				}
			}
		}
		v := Judge([]Number{n}, Options{Alpha: o.Alpha, Tau: o.Tau, Seed: o.Seed, whole: true})[0]
		return v.Outcome == Holds && math.Log(v.Ratio) < q.d/2
	}
	switch {
	case holds(true), q.v.Outcome == Fails && holds(false):
		q.v.Outcome, q.v.Code, q.v.Few = Warns, "", true
	case q.v.Outcome == Undecided && holds(false):
		q.v.Outcome, q.v.Code, q.v.Loose = Holds, "", true
	}
}

// without returns a copy of the capture without the units at these indexes.
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
