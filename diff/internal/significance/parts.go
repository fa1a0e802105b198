package significance

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/order"
	"github.com/nsys-llm/explain/diff/student"
)

// Part is one part of the units' time: a family of kernels, a kind of copies, a cause of idle time. Times are plain
// (not ln), by unit, in one unit of the caller's choice; they may be 0.
type Part struct {
	Base, Head []float64
	Waits      bool // as communication does for other GPUs: single long units are common on any side
}

// PartVerdict is the judgement of a part. Changes are head less base of the mean unit.
type PartVerdict struct {
	Delta     float64
	Low, High float64 // interval of Delta, at level 1 - 2 alpha
	P         float64 // probability of no change in this direction, adjusted over the parts (Holm)
	Certain   bool
	Hits      int     // units that alone carry the change, on the side that has it; 0: all do
	Every     int     // even distance of hits: 7 says "every 7th"; else 0
	Times     float64 // a hit over the other side's median; 0 if that is 0
	Drifts    bool    // strongly, on a side: the time depends on where in the work the unit is
}

// Limits for changes that few units carry.
const (
	alikeHits = 3    // the largest hit is at most this many times the smallest
	leastHit  = 0.1  // least that a hit adds, as a share of the mean unit
	carried   = 0.7  // least share of a certain change that hits must explain
	thinUnits = 5    // from so many units on, a side shows how much its parts vary
	likeSides = 0.25 // most probability of a certain change's hits if the sides are alike
)

// JudgeParts judges the parts of two units a side or more as one family; unit is the mean time of a unit of base. If the
// series are tied, unit i with unit i, it judges the differences of pairs, else the two means. A part is certain
//
//   - by its mean: Student's t of the mean difference, adjusted over the parts by Holm; n units with a lag-1
//     autocorrelation of ρ count as n (1-ρ)/(1+ρ) independent ones; or
//   - by units that stand apart: at least two and 2 % of all. Each exceeds the other side's largest unit by more than
//     that exceeds its median, and the median by a tenth of a unit. They are alike within a factor of three, or most of
//     all, or more than chance would give (Rosenbaum 1954); a part that waits needs the last of these, or most of all.
//     In a quarter of all cases at most would like sides have them on one side: base may have few units.
//     A test of means misses them: each one changes the mean.
//
// timer is the resolution of the times.
func JudgeParts(parts []Part, unit float64, tied bool, timer, alpha float64) []PartVerdict {
	list := make([]PartVerdict, len(parts))
	p := make([]float64, len(parts))
	for i := range parts {
		list[i], p[i] = parts[i].byMean(tied, timer, alpha)
		if parts[i].thin(unit) {
			p[i] = 1
		}
	}
	for i, adjusted := range Holm(p) {
		v := &list[i]
		v.P = adjusted
		v.Certain = adjusted <= alpha
		v.Drifts = drifts(parts[i].Base) || drifts(parts[i].Head)
		up, down := parts[i].hits(unit, alpha), Part{parts[i].Head, parts[i].Base, parts[i].Waits}.hits(unit, alpha)
		switch {
		case len(up.at) > 0 && len(down.at) == 0:
			v.few(&up, 1, len(parts[i].Head), parts[i].thin(unit) && up.chance > alpha)
		case len(down.at) > 0 && len(up.at) == 0:
			v.few(&down, -1, len(parts[i].Base), parts[i].thin(unit) && down.chance > alpha)
		}
	}
	return list
}

// drifts reports whether times, which may be 0, drift strongly, see [Trend].
func drifts(times []float64) bool {
	m := mean(times)
	above := slices.Clone(times)
	for i := range above {
		above[i] += m / 100
	}
	return TrendOf(above).strong(len(times))
}

// thin reports whether the sides overlap, and one has too few units for that to be certain all the same.
func (x Part) thin(unit float64) bool {
	return !math.IsInf(unit, 1) && min(len(x.Base), len(x.Head)) < thinUnits && overlap(x.Base, x.Head)
}

// few records that single units carry a part. If most units stand apart, the mean gives the size, however units
// correlate. A certain change that hits explain only in part stays with all units.
func (v *PartVerdict) few(h *hits, sign float64, n int, thin bool) {
	if 2*len(h.at) > n {
		v.Certain = !thin
		return
	}
	delta := sign * h.excess / float64(n)
	if v.Certain && math.Abs(delta) < carried*math.Abs(v.Delta) {
		return
	}
	v.Hits, v.Every, v.Times = len(h.at), Even(h.at, n), h.times
	v.Delta, v.Low, v.High = delta, delta, delta
	v.Certain = len(h.at) > outliers(n) && h.chance <= likeSides
}

func (x Part) byMean(tied bool, timer, alpha float64) (v PartVerdict, p float64) {
	v.Delta = mean(x.Head) - mean(x.Base)
	of := func(values []float64) (variance, n float64) { // of the mean
		n = max(independent(len(values), within(Lag1(values))), 2)
		sd := Deviation(values)
		return sd * sd / n, n
	}
	var se, df float64
	if tied && len(x.Base) == len(x.Head) {
		d := make([]float64, len(x.Base))
		for i := range d {
			d[i] = x.Head[i] - x.Base[i]
		}
		variance, n := of(d)
		se, df = math.Sqrt(variance), n-1
	} else {
		vb, n := of(x.Base)
		vh, m := of(x.Head)
		se, df = math.Sqrt(vb+vh), student.MaxDF
		if vb+vh > 0 {
			df = (vb + vh) * (vb + vh) / (vb*vb/(n-1) + vh*vh/(m-1))
		}
	}
	se = max(se, timer)
	half := student.Quantile(alpha, df) * se
	v.Low, v.High = v.Delta-half, v.Delta+half
	return v, student.Tail(math.Abs(v.Delta)/se, df)
}

// hits are the units of head that stand apart from all units of base.
type hits struct {
	at     []int
	excess float64 // sum above base's median
	times  float64
	chance float64 // that as many of like units are all on this side
}

func (x Part) hits(unit, alpha float64) (h hits) {
	n := len(x.Head)
	if n < LeastUnits || len(x.Base) < LeastUnits {
		return h
	}
	middle, most := order.Median(slices.Clone(x.Base)), slices.Max(x.Base)
	beyond := max(most+(most-middle), middle+leastHit*unit)
	smallest, largest := math.Inf(1), 0.0
	for i, v := range x.Head {
		if v > beyond {
			h.at = append(h.at, i)
			h.excess += v - middle
			smallest, largest = min(smallest, v-middle), max(largest, v-middle)
		}
	}
	h.chance = exceedances(len(h.at), n, len(x.Base))
	if 2*len(h.at) <= n && (x.Waits || largest > alikeHits*smallest) && h.chance > alpha {
		return hits{}
	}
	if k := float64(len(h.at)); k > 0 && middle > 0 {
		h.times = (h.excess/k + middle) / middle
	}
	return h
}

// exceedances is the probability that the k largest of n + m like units are all among the n (Rosenbaum 1954).
func exceedances(k, n, m int) float64 {
	p := 1.0
	for i := range k {
		p *= float64(n-i) / float64(n+m-i)
	}
	return p
}
