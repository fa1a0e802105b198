package infer

import (
	"math"
	"slices"
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
	middle := median(slices.Clone(units))
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
	g := median(slices.Clone(gaps))
	for _, v := range gaps {
		if math.Abs(v-g) > max(1, g/4) {
			return e
		}
	}
	e.Every = int(math.Round(g))
	return e
}

// SlowUnits are the units of one capture that lie apart above the others: beyond the median by 2 % of it and by six times
// the median distance from it. excess is by how much they do in all, middle the median.
func SlowUnits(units []float64) (n int, excess, middle float64) {
	middle = median(slices.Clone(units))
	far := make([]float64, len(units))
	for i, v := range units {
		far[i] = math.Abs(v - middle)
	}
	limit := middle + max(6*median(far), middle/50)
	for _, v := range units {
		if v > limit {
			n++
			excess += v - middle
		}
	}
	return n, excess, middle
}

// fewUnits is how many slow units are an accident rather than a property of n units: 3 or 2 %, and always fewer than
// one in eight.
func fewUnits(n int) int { return max(0, min(max(3, n*2/100), (n-1)/8)) }

// without drops the stalls: units that took more than twice the median of their capture; of pairs, those whose time
// grew to more than twice what it grew to in the middle, on both sides. ok is false where there are none, or more than
// a few.
func without(base, head []Capture, tied bool) (b, h []Capture, ok bool) {
	if tied && len(base) == 1 && len(head) == 1 {
		n := min(len(base[0].Units), len(head[0].Units))
		grown := make([]float64, n)
		for i := range grown {
			grown[i] = head[0].Units[i] / base[0].Units[i]
		}
		drop := stalls(grown)
		return []Capture{base[0].less(drop)}, []Capture{head[0].less(drop)}, len(drop) > 0 && len(drop) <= fewUnits(n)
	}
	few, dropped := true, 0
	trim := func(side []Capture) []Capture {
		list := make([]Capture, len(side))
		for i := range side {
			drop := stalls(side[i].Units)
			few = few && len(drop) <= fewUnits(len(side[i].Units))
			dropped += len(drop)
			list[i] = side[i].less(drop)
		}
		return list
	}
	b, h = trim(base), trim(head)
	return b, h, few && dropped > 0
}

// stalls are the places of values beyond twice their median.
func stalls(values []float64) map[int]bool {
	middle := median(slices.Clone(values))
	drop := map[int]bool{}
	for i, v := range values {
		if v > stalled*middle {
			drop[i] = true
		}
	}
	return drop
}

// less is a capture without some of its units.
func (c *Capture) less(drop map[int]bool) Capture {
	var out Capture
	for i, v := range c.Units {
		if drop[i] {
			continue
		}
		out.Units = append(out.Units, v)
		if c.Kinds != nil {
			out.Kinds = append(out.Kinds, c.Kinds[i])
		}
	}
	return out
}

// forgive takes a mean back to a warning that a few stalls carry: without those of each side it holds.
func (q *question) forgive(o Options) {
	if !(q.d > 0) {
		return
	}
	base, head, ok := without(q.base, q.head, q.n.Tie != TieNone)
	if !ok {
		return
	}
	n := *q.n
	n.Base, n.Head = base, head
	if n.HigherBetter {
		n.Base, n.Head = head, base
	}
	rest := ask(&n, o)
	if rest.settled {
		return
	}
	one := []question{rest}
	test(one, o)
	rest = one[0]
	rest.measure(o)
	rest.decide(rest.p(rest.tau), rest.p(rest.tau), rest.p(rest.tauClass), o)
	if rest.v.Outcome != Holds && rest.v.Outcome != Warns {
		return
	}
	slow := q.head
	e := Excess{}
	for i := range slow {
		if s := StallsOf(slow[i].Units); s.Units > 0 || i == 0 {
			e = s
		}
	}
	if e.Units == 0 {
		return
	}
	q.v.Outcome, q.v.Code, q.v.Stalls = Warns, "", &e
}
