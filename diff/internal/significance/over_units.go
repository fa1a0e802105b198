package significance

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/student"
)

// LeastUnits is the least number of units a side: fewer prove nothing.
const LeastUnits = 3

// measure looks at the units inside the captures.
func (q *question) measure(o Options) {
	q.v.Base, q.v.Head = Trend{Range: 1}, Trend{Range: 1}
	if q.several() {
		if unitsOf(q.base) > 0 && !(q.n.Stat.Enough(unitsOf(q.base)) && q.n.Stat.Enough(unitsOf(q.head))) {
			q.few, q.v.Code = true, comparison.TooFewUnits
		}
		return
	}
	q.level = 1 - 2*o.Alpha
	if q.statedOnce() {
		q.byFloor(o)
		return
	}
	if short := func(c Capture) bool { return !q.n.Stat.Enough(c.units()) }; slices.ContainsFunc(q.base, short) || slices.ContainsFunc(q.head, short) {
		q.few, q.v.Code = true, comparison.TooFewUnits
		return
	}
	listed := func(c Capture) []float64 { return c.Units }
	base, head := lists.Map(q.base, listed), lists.Map(q.head, listed)
	q.v.Base, q.v.Head = TrendOf(base[0]), TrendOf(head[0])
	q.contrast(base, head, o)
	if q.overUnits {
		return
	}
	q.few, q.apart, q.v.Code = true, math.Inf(-1), comparison.TooFewUnits
	all, other := slices.Concat(base...), slices.Concat(head...)
	if min(len(all), len(other)) < LeastUnits || slices.Min(all) <= 0 || slices.Min(other) <= 0 {
		return
	}
	lb, lh := logs(all), logs(other)
	q.apart = slices.Min(lh) - slices.Max(lb)
	if q.d < 0 {
		q.apart = slices.Min(lb) - slices.Max(lh)
	}
	q.overUnits = true
	sb, sh := Deviation(lb), Deviation(lh)
	n, m := float64(len(lb)), float64(len(lh))
	q.c = welch(q.d, []float64{sb * sb / n, sh * sh / m}, []float64{n, m}, q.n.Stat, q.timer(), o.Alpha)
	q.v.Units = q.unitsFor(sb, sh, o)
}

// mostUnits is the most units advised for one capture.
const mostUnits = 1 << 12

// unitsFor returns how many units a side would show the observed change, if they vary like these; base and head are
// their standard deviations in ln. It is 0 if the change is within the floor or the rule, so that no number would, or
// if it takes more than mostUnits.
func (q *question) unitsFor(base, head float64, o Options) int {
	beyond := math.Abs(q.d) - q.unitTau(q.tau)
	if math.Abs(q.d) <= max(q.floor, q.tau) || beyond <= q.timer() {
		return 0
	}
	for n := MinUnits; n <= mostUnits; n++ {
		if student.Quantile(o.Alpha, float64(2*n-2))*q.n.Stat.width()*math.Sqrt((base*base+head*head)/float64(n)) < beyond {
			return n
		}
	}
	return 0
}

func unitsOf(side []Capture) int {
	return lists.Sum(side, func(c Capture) int { return c.units() })
}

// statedOnce reports whether nothing is known of how a mean or a median varies inside the captures: a share, a time to
// start, kernels that all took equally long.
func (q *question) statedOnce() bool {
	if q.n.Stat != Mean && q.n.Stat != Median || q.n.Trimmed > 0 {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(q.base, q.head), func(c Capture) bool {
		return len(c.Units) > 0 || c.SD > 0 || c.N > 0 && c.N < MinUnits
	})
}

// byFloor treats the noise floor as the 99 % point of the difference of two captures of one commit, and that difference
// as normal: d ± z(1-alpha)/z(0.99) · floor.
func (q *question) byFloor(o Options) {
	half := student.NormalQuantile(o.Alpha) / student.NormalQuantile(0.01) * q.floor
	q.overUnits = true
	q.c = contrast{d: q.d, low: q.d - half, high: q.d + half, least: math.Abs(q.d), df: student.MaxDF, alpha: o.Alpha,
		method: "noise floor, taken for the 99 % point of a normal distribution"}
}

// contrast picks how to compare the units.
func (q *question) contrast(base, head [][]float64, o Options) {
	stat, seed, all := q.n.Stat, o.Seed, true
	if len(base) == 1 && len(head) == 1 {
		b, h := base[0], head[0]
		if q.n.Tie != TieNone {
			b, h = sameSteps(&q.base[0], &q.head[0])
			all = len(b) == len(base[0]) && len(h) == len(head[0])
		}
		switch q.n.Tie {
		case TieNumber:
			q.c, q.overUnits = pairs(b, h, 0, stat, o.Alpha, q.timer(), seed)
		case TieStart:
			q.c, q.overUnits = robust(b, h, stat, o.Alpha, q.timer(), seed)
		}
		if q.overUnits {
			q.d = q.c.d
			return
		}
	}
	if q.c, q.overUnits = twoSamples(base, head, stat, o.Alpha, q.timer(), seed); q.overUnits {
		// A report may list a sample of the units: the interval moves to the value of all units.
		q.c.low, q.c.high, q.c.d = q.c.low+q.d-q.c.d, q.c.high+q.d-q.c.d, q.d
		q.c.least = math.Abs(q.d)
		// If they are the same units, pairing did not pay, and a drift is part of the work.
		q.loose = q.n.Tie == TieNone || !all
		q.drifts = q.loose && (q.v.Base.strong(len(base[0])) || q.v.Head.strong(len(head[0]))) && !q.v.Base.apart(q.v.Head)
		return
	}
	q.overUnits = q.summaries(o)
}

// sameSteps returns the units of two captures with equal numbers, in base's order.
func sameSteps(base, head *Capture) (b, h []float64) {
	if len(base.Steps) != len(base.Units) || len(head.Steps) != len(head.Units) {
		return base.Units, head.Units
	}
	at := make(map[int64]int, len(head.Steps))
	for i, step := range head.Steps {
		at[step] = i
	}
	for i, step := range base.Steps {
		if k, ok := at[step]; ok {
			b, h = append(b, base.Units[i]), append(h, head.Units[k])
		}
	}
	return b, h
}

// summaries contrasts numbers with a known spread over units but no list, counting the units that are independent by
// their autocorrelation, n (1-ρ)/(1+ρ).
func (q *question) summaries(o Options) bool {
	var variance, units []float64
	for _, side := range [][]Capture{q.base, q.head} {
		k := float64(len(side))
		for i := range side {
			s := &side[i]
			if len(s.Units) > 0 || s.N < MinUnits || !(s.Value > 0) || !(s.SD >= 0) {
				return false
			}
			n := max(independent(s.N, within(s.Lag1)), 2)
			sd := s.SD / s.Value
			variance, units = append(variance, sd*sd/n/(k*k)), append(units, n)
		}
	}
	q.c = welch(q.d, variance, units, q.n.Stat, q.timer(), o.Alpha)
	return true
}

// welch contrasts means of ln by Welch's t interval around d, from their variances and the units behind each. The width
// is scaled to that of the statistic, see [Statistic.width], and at least that of the standard error least, ln.
func welch(d float64, variance, units []float64, stat Statistic, least, alpha float64) contrast {
	var total, pooled float64
	for i, v := range variance {
		total += v
		pooled += v * v / (units[i] - 1)
	}
	df := student.MaxDF
	if pooled > 0 {
		df = min(max(total*total/pooled, 1), student.MaxDF)
	}
	half := student.Quantile(alpha, df) * max(stat.width()*math.Sqrt(total), least)
	return contrast{d: d, low: d - half, high: d + half, least: math.Abs(d), df: df, alpha: alpha,
		method: "Welch's t interval over units"}
}
