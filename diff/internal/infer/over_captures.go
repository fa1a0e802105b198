package infer

import (
	"math"
	"slices"
	"strconv"
)

// test runs TREAT over all numbers that are not settled, each at its own thresholds, with one prior for the family.
func test(list []question, o Options) {
	var samples []Sample
	var history []History
	var of []int
	for i := range list {
		q := &list[i]
		if q.settled {
			continue
		}
		s := Sample{ID: strconv.Itoa(i), Base: logs(q.b), Head: logs(q.h), Resolution: q.leastError()}
		q.least = s.Resolution
		if h := q.n.History; h != nil && h.DF > 0 {
			history = append(history, History{ID: s.ID, S2: h.S2, DF: h.DF})
			q.sd, q.sdDF = math.Sqrt(h.S2), h.DF
		}
		samples, of = append(samples, s), append(of, i)
	}
	for k, r := range TREAT(samples, 0, o.Alpha, false, history...) {
		q := &list[of[k]]
		if r.Known && (q.several() || q.sdDF > 0 || r.DF >= 2) {
			q.r, q.overCaptures, q.sd = r, true, math.Sqrt(r.Moderated)
		}
	}
}

// leastError is the least standard error of d that can be believed: the timer's resolution, and what the units of each
// capture differ by, see [steadiness], which is s: the standard error of the mean is s/√n, of a quantile
// √(q(1-q))/φ(z(q)) · s/√n. How much captures differ beyond that they show themselves.
func (q *question) leastError() float64 {
	side := func(captures []Capture) float64 {
		var sum float64
		for i := range captures {
			c := &captures[i]
			n := float64(c.units())
			switch {
			case len(c.Units) > 1 && slices.Min(c.Units) > 0:
				sd := steadiness(logs(c.Units))
				sum += sd * sd / n
			case c.SD > 0 && c.Value > 0 && n > 0:
				sum += c.SD * c.SD / (c.Value * c.Value) / n
			}
		}
		return sum / float64(len(captures)*len(captures))
	}
	units := q.n.Stat.width() * math.Sqrt(side(q.base)+side(q.head))
	return max(units, q.timer())
}

// timer is the standard error that the timer leaves, ln.
func (q *question) timer() float64 { return q.n.Timer / min(average(q.b), average(q.h)) }
