package significance

import (
	"math"
	"slices"
)

// test runs TREAT over all unsettled numbers, with one prior for the family.
func test(list []question, o Options) {
	samples := make([]Sample, len(list))
	var s2, df []float64
	for i := range list {
		if q := &list[i]; !q.settled {
			samples[i] = Sample{Base: logs(q.b), Head: logs(q.h), Resolution: q.leastError()}
			if v, d := samples[i].Variance(q.n.History); d > 0 {
				s2, df = append(s2, v), append(df, d)
			}
		}
	}
	m := Moderate(s2, df)
	for i := range list {
		q := &list[i]
		if q.settled {
			continue
		}
		if h := q.n.History; h != nil && h.DF > 0 {
			q.sd, q.sdDF = math.Sqrt(h.S2), h.DF
		}
		r := TREAT(&samples[i], q.n.History, m, o.Alpha)
		if r.DF > 0 && (q.several() || q.sdDF > 0 || r.DF >= 2) {
			q.r, q.sd = &r, math.Sqrt(r.Moderated)
		}
	}
}

// leastError is the least credible standard error of d: the timer's resolution, or the scatter s of each capture's
// units, see [steadiness]. The standard error of the mean is s/√n, of a quantile √(q(1-q))/φ(z(q)) · s/√n. The captures
// themselves show how much more they differ.
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

// timer returns the standard error due to the timer, ln.
func (q *question) timer() float64 { return q.n.Timer / min(mean(q.b), mean(q.h)) }

// Odd is a capture, of three or more on a side, whose value differs from the others by more than 5 % and by more than
// four times their range.
type Odd struct {
	Head  bool
	At    int     // index on its side
	Ratio float64 // its value over the geometric mean of the others
}

const (
	oddLeast = 0.05
	oddTimes = 4
)

// oddOf finds the odd one among values, which are above 0.
func oddOf(values []float64) (at int, ratio float64, ok bool) {
	if len(values) < 3 {
		return 0, 0, false
	}
	ln := logs(values)
	for i, v := range ln {
		others := slices.Concat(ln[:i], ln[i+1:])
		m := mean(others)
		if d := math.Abs(v - m); d > max(math.Log1p(oddLeast), oddTimes*(slices.Max(others)-slices.Min(others))) {
			return i, math.Exp(v - m), true
		}
	}
	return 0, 0, false
}

// apartFromSiblings judges a number of several captures a side without the odd one on either side: an accident in one
// capture must not hide what the others show.
func (q *question) apartFromSiblings(o Options) {
	n := *q.n
	n.Tolerance = math.Expm1(q.tau)
	n.HigherBetter, n.Base, n.Head = false, q.base, q.head
	for _, s := range []struct {
		values []float64
		of     *[]Capture
		head   bool
	}{{q.b, &n.Base, q.n.HigherBetter}, {q.h, &n.Head, !q.n.HigherBetter}} {
		at, ratio, ok := oddOf(s.values)
		if !ok {
			continue
		}
		q.v.Odd = &Odd{Head: s.head, At: at, Ratio: ratio}
		*s.of = slices.Concat((*s.of)[:at], (*s.of)[at+1:])
	}
	if q.v.Odd == nil || q.v.Outcome == Fails {
		return
	}
	switch v := Judge([]Number{n}, Options{Alpha: o.Alpha, Tau: o.Tau, Seed: o.Seed, whole: true})[0]; {
	case v.Outcome == Fails:
		odd := q.v.Odd
		q.v = v
		q.v.Odd = odd
	case v.Outcome == Undecided:
		q.v.Outcome, q.v.Code, q.v.Loose = Undecided, v.Code, false
	case q.v.Outcome == Undecided:
		q.v.Outcome, q.v.Code = Warns, ""
	}
}
