package infer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Capture is one number in one capture: its units, or what is known of them.
type Capture struct {
	Units []float64 // of each unit in the order in which they ran, plain; may be a sample of them, or missing
	Kinds []int     // what work each of Units was, by any numbering; nil where it is not known
	Value float64   // what the row shows of the capture; 0: the statistic of Units
	N     int       // units behind Value; 0: len(Units)
	SD    float64   // over units, where Units is missing; for a quantile, of the normal distribution that is as wide there
	Lag1  float64   // autocorrelation of the units, where Units is missing
}

// Tie is the evidence that unit i of one capture is the same work as unit i of the other.
type Tie int

const (
	// TieNone: nothing says so.
	TieNone Tie = iota
	// TieStart: both captures begin at the same point, by an equal prologue or because both hold the whole program.
	// What is decided has to survive shifts of 1 % and 2 % of the units either way.
	TieStart
	// TieNumber: the units carry equal marker numbers.
	TieNumber
)

// Number is one noisy number to be judged: what is compared, by which rule, and what is known of its noise. All
// values are plain, in one unit of the caller's choice.
type Number struct {
	Stat         Statistic
	Base, Head   []Capture
	Tolerance    float64 // of the rule: 0.05 allows 5 % more (less, if HigherBetter); 0: Options.Tau
	HigherBetter bool
	Count        bool // exact where it is the same in every unit of a side
	// Floor is what 99 % of changes between two captures of one commit stay below, a ratio. 0: from History, else
	// AssumedFloor.
	Floor float64
	// FloorStays says that the sides are from different runs, so that captures of one run do not contain what
	// differs.
	FloorStays bool
	History    *History // variance of ln between captures of one commit, of a calibration
	Timer      float64  // resolution of the values; with 0, values that do not vary prove nothing
	Tie        Tie
	Given      *Given // interval of the ratio, where the caller has one over units
}

// Given is an interval of the ratio of head to base, of level 1 - 2 alpha. It is held to be no narrower than the timer
// allows.
type Given struct {
	Low, High float64
	Method    string
}

// Options of a family of numbers that are judged together.
type Options struct {
	Alpha  float64                   // 0: Alpha
	Tau    float64                   // classes are of changes beyond it, or beyond a smaller tolerance; 0: 0.03
	Adjust func([]float64) []float64 // Holm or BH; nil: every number by itself
	Seed   uint64
}

// Class is what became of a number.
type Class int

const (
	Unsettled Class = iota
	Same
	Improved
	Regressed
)

// Outcome is what a rule makes of a number.
type Outcome int

const (
	// Undecided: neither beyond the rule for certain, nor surely within rule and floor. Never a pass.
	Undecided Outcome = iota
	// Holds: no worse than the rule allows, and the interval reaches no further than rule + floor on the bad side.
	Holds
	// Warns: a mean that few units carry, and that holds without them; see Verdict.Stalls.
	Warns
	// Fails: worse than the rule allows, for certain.
	Fails
)

// Code says why a number is undecided.
type Code string

const (
	WideInterval Code = "wide_interval"
	TooFewUnits  Code = "too_few_units"
	Drifting     Code = "trend"
)

// Verdict is one number judged. Ratios are head over base.
type Verdict struct {
	Class      Class
	Outcome    Outcome
	Code       Code    // of Undecided, else empty
	Ratio      float64 // of what was judged, which for pairs and strata is not that of the values. 0: there is none
	Low, High  float64 // interval of Ratio; equal to it where there is none
	Level      float64 // of the interval: 1 - alpha over captures, 1 - 2 alpha over units, less for few units; 0: none
	Method     string  // of the interval
	P          float64 // that the change is beyond Tolerance by noise alone, in its direction
	PAdjusted  float64 // over the family
	Test       *Result // over captures, where the noise between them is known
	Floor      float64 // noise floor that was reckoned with, a ratio
	Resolution float64 // the smallest loss that would have failed, a ratio above 0; 0: no loss would have
	Need       int     // captures a side that would settle it; 0: none would, or it is settled
	Replicated bool    // several captures on both sides
	Base, Head Trend   // of the first capture of each side
	Positions  []float64
	Stalls     *Excess
}

// AssumedFloor is the noise floor of a number that nobody calibrated: 5 %.
const AssumedFloor = 0.05

// leastFloor bounds a calibrated floor: two captures that agree better than that were lucky, or are copies.
const leastFloor = 0.005

// Where units are few.
const (
	separated      = 3   // units a side from which complete separation counts
	separation     = 3   // floors by which the sides must differ then
	fewIndependent = 3.0 // independent units below which a series says nothing,
	highLag1       = 0.6 // if its lag-1 autocorrelation is above this
	leastLevel     = 0.9 // of the interval between extremes
)

// classTau is the change up to which a number can be called the same.
const classTau = 0.03

// Judge judges the numbers of one family: in the order of the numbers, what each became, and what its rule makes of
// that. It is the one place where noise is told from change:
//
//   - several captures on both sides: [TREAT] over captures at the rule's own tolerance, variances moderated over the
//     family, with a least standard error from timer and units;
//   - else the change must exceed the floor, and be certain at the rule's own tolerance by the units inside the
//     captures: as pairs where they are tied, as strata where their work is known, else as two samples; and by the noise between
//     captures, where a calibration or one side's captures show it;
//   - with fewer than MinUnits units, or units that depend on each other too much, only sides that are separated
//     completely and by three floors are told apart, from 3 units on.
//
// p-values are adjusted over the family for classes and for rules alike. A number that fails is of class Regressed.
// The pages give the formulae. The same arguments give the same verdicts; swapping the sides mirrors classes and
// intervals.
func Judge(numbers []Number, o Options) []Verdict {
	if o.Alpha == 0 {
		o.Alpha = Alpha
	}
	if o.Tau == 0 {
		o.Tau = classTau
	}
	if o.Adjust == nil {
		o.Adjust = func(p []float64) []float64 { return p }
	}
	list := make([]question, len(numbers))
	for i := range numbers {
		list[i] = ask(&numbers[i], o)
	}
	test(list, o)
	var open []int
	var pClass, pRule []float64
	for i := range list {
		if q := &list[i]; !q.settled {
			q.measure(o)
			open = append(open, i)
			pClass, pRule = append(pClass, q.p(q.tauClass)), append(pRule, q.p(q.tau))
		}
	}
	adjustedClass, adjustedRule := o.Adjust(pClass), o.Adjust(pRule)
	for k, i := range open {
		list[i].decide(pRule[k], adjustedRule[k], adjustedClass[k], o)
	}
	verdicts := make([]Verdict, len(list))
	for i := range list {
		q := &list[i]
		if !q.settled && q.n.Stat == Mean && (q.v.Outcome == Fails || q.v.Outcome == Undecided) {
			q.stalls(o)
		}
		if !q.settled && q.v.Outcome == Undecided {
			q.need(o)
		}
		verdicts[i] = q.verdict()
	}
	return verdicts
}

// question is a number on its way to a verdict, turned so that more is worse: the sides are swapped where higher is
// better.
type question struct {
	n             *Number
	base, head    []Capture
	b, h          []float64 // what the row shows of each capture
	settled       bool      // v is final
	d             float64   // ln of the ratio of the values
	tau, tauClass float64   // ln
	floor         float64   // ln
	c             contrast  // over units
	overUnits     bool      // c is there
	level         float64   // of c
	few           bool      // units are too few for c, or depend on each other too much
	apart         float64   // ln of the smallest ratio of any two units, in the direction of d; where few
	loose         bool      // the units are compared as two samples: nothing ties them
	drifts        bool      // strongly, and loose
	r             Result    // over captures
	overCaptures  bool      // r is there
	least         float64   // standard error of d that cannot be undercut, ln
	sd, sdDF      float64   // between captures, and what a calibration knows of it
	v             Verdict
}

func (q *question) several() bool { return len(q.base) > 1 && len(q.head) > 1 }

// ask sets a question up: what needs no statistics is settled at once.
func ask(n *Number, o Options) question {
	q := question{n: n, base: n.Base, head: n.Head}
	tolerance := n.Tolerance
	if tolerance == 0 {
		tolerance = o.Tau
	}
	q.tau, q.tauClass = math.Log1p(tolerance), math.Log1p(min(tolerance, o.Tau))
	if n.HigherBetter {
		q.base, q.head = n.Head, n.Base
		q.tau, q.tauClass = -math.Log1p(-min(tolerance, 0.999)), -math.Log1p(-min(tolerance, o.Tau))
	}
	q.b, q.h = valuesOf(q.base, n.Stat), valuesOf(q.head, n.Stat)
	floor := n.Floor
	switch {
	case floor > 0:
	case n.History != nil && n.History.DF > 0:
		floor = max(leastFloor, Floor(math.Sqrt(n.History.S2), n.History.DF))
	default:
		floor = AssumedFloor
	}
	q.floor = math.Log1p(floor)
	q.v = Verdict{P: 1, PAdjusted: 1, Floor: floor, Code: WideInterval, Replicated: q.several()}
	b, h := average(q.b), average(q.h)
	switch {
	case len(q.b) == 0 || len(q.h) == 0:
		q.settled = true
	case same(q.base, q.head) && slices.Equal(q.b, q.h):
		q.settle(Same, Holds)
		q.v.Ratio, q.v.Low, q.v.High = 1, 1, 1
	case !all(q.b, positive) || !all(q.h, positive) || !listed(q.base) || !listed(q.head):
		q.settled = true
	case n.Count && constant(q.base) && constant(q.head):
		q.d = math.Log(h / b)
		q.exact()
	default:
		q.d = math.Log(h / b)
	}
	return q
}

// Floor is the change, as a ratio, that 99 % of comparisons of two captures of one commit stay below, from the
// standard deviation of ln between captures and its degrees of freedom: exp( t(0.99, df) · sd · √2 ) - 1.
func Floor(sd, df float64) float64 {
	return math.Expm1(TQuantile(0.01, min(df, MaxDF)) * sd * math.Sqrt2)
}

// same reports whether the sides list the same units.
func same(base, head []Capture) bool {
	return slices.EqualFunc(base, head, func(a, b Capture) bool {
		return slices.Equal(a.Units, b.Units) && a.SD == b.SD
	})
}

func valuesOf(side []Capture, stat Statistic) []float64 {
	list := make([]float64, 0, len(side))
	for i := range side {
		switch v := side[i].Value; {
		case v != 0:
			list = append(list, v)
		case len(side[i].Units) > 0:
			list = append(list, stat.Of(slices.Clone(side[i].Units)))
		}
	}
	return list
}

func all(values []float64, ok func(float64) bool) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !ok(v) })
}

// listed reports whether all units are numbers that a time or a count can be.
func listed(side []Capture) bool {
	return !slices.ContainsFunc(side, func(c Capture) bool {
		number := func(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }
		return !all(c.Units, number) || !number(c.SD)
	})
}

func average(values []float64) float64 {
	m, _ := mean(values)
	return m
}

// constant reports whether a number is the same in all units of all captures.
func constant(side []Capture) bool {
	first := math.NaN()
	for i := range side {
		if len(side[i].Units) == 0 && side[i].SD != 0 {
			return false
		}
		for _, v := range append([]float64{side[i].Value}, side[i].Units...) {
			switch {
			case v == 0 && len(side[i].Units) > 0:
			case math.IsNaN(first):
				first = v
			case v != first:
				return false
			}
		}
	}
	return true
}

func (c *Capture) units() int {
	if c.N > 0 {
		return c.N
	}
	return len(c.Units)
}

func (q *question) settle(class Class, outcome Outcome) {
	q.settled, q.v.Class, q.v.Outcome, q.v.Code = true, class, outcome, ""
}

// exact decides a count that does not vary: any change is one, and the rule is held to the value itself.
func (q *question) exact() {
	r := ratio(q.d)
	q.v.Ratio, q.v.Low, q.v.High, q.v.Level, q.v.Method = r, r, r, 1, "exact: it is the same in every unit"
	q.v.P, q.v.PAdjusted = 0, 0
	q.v.Floor, q.v.Resolution = 0, math.Expm1(q.tau)
	class, outcome := Regressed, Holds
	switch {
	case q.d == 0:
		class = Same
	case q.d < 0:
		class = Improved
	}
	if q.d > q.tau+1e-12 {
		outcome = Fails
	}
	q.settle(class, outcome)
}

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

// leastError is the least standard error of d that can be believed: the timer's resolution, and what units that
// follow each other differ by. For that, per capture, s² = Σ (ln x(i+1) - ln x(i))² / 2(n-1) (von Neumann 1941),
// which a drift does not inflate, and the standard error of the mean s/√n, or of a quantile √(q(1-q))/φ(z(q)) · s/√n.
func (q *question) leastError() float64 {
	side := func(captures []Capture) float64 {
		var sum float64
		for i := range captures {
			c := &captures[i]
			n := float64(c.units())
			switch {
			case len(c.Units) > 1 && slices.Min(c.Units) > 0:
				ln := logs(c.Units)
				var squared float64
				for k := 1; k < len(ln); k++ {
					squared += (ln[k] - ln[k-1]) * (ln[k] - ln[k-1])
				}
				sum += squared / float64(2*(len(ln)-1)) / n
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

// measure looks at the units inside the captures.
func (q *question) measure(o Options) {
	q.v.Base, q.v.Head = Trend{Range: 1}, Trend{Range: 1}
	if q.several() {
		if q.unitsOf(q.base) > 0 && !q.enough() {
			q.few, q.v.Code = true, TooFewUnits
		}
		return
	}
	q.level = 1 - 2*o.Alpha
	if g := q.n.Given; g != nil && !q.n.HigherBetter && g.Low > 0 && g.High > 0 {
		q.overUnits = true
		room := TQuantile(o.Alpha, MaxDF) * q.timer() // units that do not vary are still as uncertain as the timer
		low, high := min(math.Log(g.Low), q.d-room), max(math.Log(g.High), q.d+room)
		q.c = contrast{d: q.d, low: low, high: high, least: math.Abs(q.d), df: MaxDF, alpha: o.Alpha,
			method: g.Method}
		return
	}
	if q.statedOnce() {
		q.byFloor(o)
		return
	}
	if !q.enough() {
		q.few, q.v.Code = true, TooFewUnits
		return
	}
	var base, head [][]float64
	for _, c := range q.base {
		base = append(base, c.Units)
	}
	for _, c := range q.head {
		head = append(head, c.Units)
	}
	q.v.Base, q.v.Head = TrendOf(base[0]), TrendOf(head[0])
	q.contrast(base, head, o)
	if q.overUnits && q.c.lag1 > highLag1 && q.c.effective < fewIndependent {
		q.few = true
	}
	if q.overUnits && !q.few {
		return
	}
	q.few, q.apart = true, math.Inf(-1)
	all, other := slices.Concat(base...), slices.Concat(head...)
	if len(all) < separated || len(other) < separated || slices.Min(all) <= 0 || slices.Min(other) <= 0 {
		q.overUnits = false
		return
	}
	q.extremes(all, other)
}

// enough reports whether the side with fewer units has what a tail needs: over all its captures where several are
// compared, in each of them otherwise.
func (q *question) enough() bool {
	for _, side := range [][]Capture{q.base, q.head} {
		if q.several() {
			if !q.n.Stat.Enough(q.unitsOf(side)) {
				return false
			}
			continue
		}
		for i := range side {
			if !q.n.Stat.Enough(side[i].units()) {
				return false
			}
		}
	}
	return true
}

func (q *question) unitsOf(side []Capture) int {
	n := 0
	for i := range side {
		n += side[i].units()
	}
	return n
}

// statedOnce reports whether nothing is known of what a mean or a median varies by inside the captures: a share, a time
// to start, kernels that all took the same.
func (q *question) statedOnce() bool {
	if q.n.Stat != Mean && q.n.Stat != Median {
		return false
	}
	for _, side := range [][]Capture{q.base, q.head} {
		for i := range side {
			if c := &side[i]; len(c.Units) > 0 || c.SD > 0 || c.N > 0 && c.N < MinUnits {
				return false
			}
		}
	}
	return true
}

// byFloor takes the noise floor for what it is, the 99 % point of the difference of two captures of one commit, as if
// that were normal: d ± z(1-alpha)/z(0.99) · floor.
func (q *question) byFloor(o Options) {
	half := NormalQuantile(o.Alpha) / NormalQuantile(0.01) * q.floor
	q.overUnits = true
	q.c = contrast{d: q.d, low: q.d - half, high: q.d + half, least: math.Abs(q.d), df: MaxDF, alpha: o.Alpha,
		method: "noise floor, taken for the 99 % point of a normal distribution"}
}

// contrast picks how the units are compared.
func (q *question) contrast(base, head [][]float64, o Options) {
	stat, seed := q.n.Stat, o.Seed
	if len(base) == 1 && len(head) == 1 {
		b, h := base[0], head[0]
		q.v.Positions = Positions(b, h)
		switch q.n.Tie {
		case TieNumber:
			q.c, q.overUnits = pairs(b, h, 0, stat, o.Alpha, q.timer(), seed)
		case TieStart:
			q.c, q.overUnits = robust(b, h, stat, o.Alpha, q.timer(), seed)
		}
		if !q.overUnits && q.base[0].Kinds != nil && q.head[0].Kinds != nil {
			q.c, q.overUnits = strata(b, h, q.base[0].Kinds, q.head[0].Kinds, stat, o.Alpha, q.timer(), seed)
		}
		if q.overUnits {
			q.d = q.c.d
			return
		}
	}
	if q.c, q.overUnits = twoSamples(base, head, stat, o.Alpha, q.timer(), seed); q.overUnits {
		// A report may list a sample of the units: the interval moves to where all of them are.
		q.c.low, q.c.high, q.c.d = q.c.low+q.d-q.c.d, q.c.high+q.d-q.c.d, q.d
		q.c.least = math.Abs(q.d)
		q.loose = q.n.Tie == TieNone // where they are the same units, pairing did not pay, and a drift is part of the work
		q.drifts = q.loose && (q.v.Base.strong(len(base[0])) || q.v.Head.strong(len(head[0])))
		return
	}
	q.c, q.overUnits = q.summaries(o)
}

// summaries contrasts numbers of which only the spread over units is known: Welch's interval, with as many units as
// they are worth by their autocorrelation, n (1-ρ)/(1+ρ), and for quantiles the standard error of [Statistic.width].
func (q *question) summaries(o Options) (c contrast, ok bool) {
	var total, pooled float64
	fewest := math.Inf(1)
	for _, side := range [][]Capture{q.base, q.head} {
		k := float64(len(side))
		for i := range side {
			s := &side[i]
			if len(s.Units) > 0 || s.N < MinUnits || !(s.Value > 0) || !(s.SD >= 0) {
				return c, false
			}
			n := max(independent(s.N, within(s.Lag1)), 2)
			sd := q.n.Stat.width() * s.SD / s.Value
			v := sd * sd / n / (k * k)
			total += v
			pooled += v * v / (n - 1)
			fewest = min(fewest, n)
			c.lag1 = max(c.lag1, within(s.Lag1))
		}
	}
	c.d, c.least, c.alpha, c.effective, c.df = q.d, math.Abs(q.d), o.Alpha, fewest, MaxDF
	if pooled > 0 {
		c.df = min(max(total*total/pooled, 1), MaxDF)
	}
	half := TQuantile(o.Alpha, c.df) * max(math.Sqrt(total), q.timer())
	c.low, c.high = c.d-half, c.d+half
	c.method = "Welch's t interval over units"
	return c, true
}

// extremes is what few units can say: the smallest and the largest ratio of any unit of head to any of base. By
// chance all of one side lie above all of the other with a probability of n! m! / (n+m)!, which gives the level.
func (q *question) extremes(base, head []float64) {
	chance := 1.0
	n, m := min(len(base), len(head)), max(len(base), len(head))
	for k := 1; k <= min(n, 60); k++ {
		chance *= float64(k) / float64(m+k)
	}
	low, high := math.Log(slices.Min(head)/slices.Max(base)), math.Log(slices.Max(head)/slices.Min(base))
	q.apart = low
	if q.d < 0 {
		q.apart = -high
	}
	q.level = 1 - 2*chance
	if q.overUnits = q.level >= leastLevel-1e-12; q.overUnits {
		q.c = contrast{d: q.d, low: low, high: high, least: math.Abs(q.d), alpha: q.c.alpha,
			method: fmt.Sprintf("ratios of the most extreme of %d and %d units", len(base), len(head))}
	}
}

// apartFor reports whether few units are enough: complete separation, by more than tau, of sides that differ by three
// floors.
func (q *question) apartFor(tau float64) bool {
	return q.few && !q.several() && q.apart > tau && math.Abs(q.d) > math.Log1p(separation*math.Expm1(q.floor))
}

// p that the change is beyond tau by noise alone: over captures, or the larger of those over units and over captures.
// With few units it is that of the floor, as if the difference of two captures were normal and the floor its 99 %
// point.
func (q *question) p(tau float64) float64 {
	d := math.Abs(q.d)
	over := 0.0
	if q.overCaptures {
		if q.r.SE == 0 {
			return 1
		}
		over = min(1, TTail((math.Abs(q.r.Effect)-tau)/q.r.SE, q.r.DF)+TTail((math.Abs(q.r.Effect)+tau)/q.r.SE, q.r.DF))
		if q.r.Effect*q.d < 0 {
			over = 1
		}
	}
	switch {
	case q.several():
		if !q.overCaptures {
			return 1
		}
		return over
	case q.few:
		if !q.apartFor(tau) {
			return 1
		}
		return max(over, NormalTail(NormalQuantile(0.01)*(d-tau)/q.floor))
	case q.overUnits:
		return max(over, q.c.p(q.unitTau(tau)))
	case q.overCaptures:
		return over
	}
	return 1
}

// unitTau is what the units inside one capture a side have to exceed, where the change has to exceed a tolerance of tau
// and the floor. A floor that is wider than the tolerance of a time keeps it already: then the units, where they are
// listed, only have to agree that there is a change.
func (q *question) unitTau(tau float64) float64 {
	if tau <= q.floor && !q.n.Count && len(q.base[0].Units) > 0 {
		return 0
	}
	return tau
}

// decide makes a verdict of p-values.
func (q *question) decide(p, adjustedRule, adjustedClass float64, o Options) {
	v := &q.v
	v.P, v.PAdjusted = p, adjustedRule
	low, high := q.interval(o)
	stays := !q.several() || q.n.FloorStays
	least := math.Abs(q.d)
	if q.overUnits && !q.several() {
		least = q.c.least
	}
	beyond := !stays || least > q.floor
	open := !q.drifts && !(q.several() && q.few)
	change := beyond && open && adjustedClass <= o.Alpha && math.Abs(q.d) > q.tauClass
	reach := math.Log(math.Exp(q.tau) + math.Expm1(q.floor))
	surely := v.Level > 0 && open && (!q.few || q.overUnits)
	same := q.tauClass
	if stays {
		same = q.floor
	}
	switch {
	case change && q.d > 0:
		v.Class = Regressed
	case change:
		v.Class = Improved
	case surely && low >= -same && high <= same && math.Abs(q.d) <= q.tauClass:
		v.Class = Same
	}
	switch {
	case change && q.d > q.tau && adjustedRule <= o.Alpha:
		v.Outcome, v.Code = Fails, ""
	case surely && q.d <= q.tau && high <= reach:
		v.Outcome, v.Code = Holds, ""
	case q.drifts:
		v.Code = Drifting
	case q.few:
		v.Code = TooFewUnits
	case q.loose && (q.v.Base.drifts(q.unitsOf(q.base)) || q.v.Head.drifts(q.unitsOf(q.head))):
		v.Code = Drifting
	default:
		v.Code = WideInterval
	}
	q.resolution(o)
}

// interval fills in the interval that is shown, and returns it in ln.
func (q *question) interval(o Options) (low, high float64) {
	v := &q.v
	low, high = q.d, q.d
	switch {
	case q.overUnits && !q.several():
		low, high = q.c.low, q.c.high
		v.Level, v.Method = q.level, q.c.method
	case q.overCaptures && q.r.SE > 0:
		low, high = q.r.Low, q.r.High
		v.Level, v.Method = 1-o.Alpha, "t interval over captures, moderated variance"
	}
	v.Ratio, v.Low, v.High = ratio(q.d), ratio(low), ratio(high)
	return low, high
}

// ratio of ln, kept within what a float holds, and so does its inverse.
func ratio(ln float64) float64 { return math.Exp(min(max(ln, -700), 700)) }

// resolution is the loss from which on these captures, varying as they do, would have failed.
func (q *question) resolution(o Options) {
	if q.drifts || q.several() && (q.few || !q.overCaptures || q.r.SE == 0) {
		return
	}
	least := q.tau
	if !q.several() || q.n.FloorStays {
		least = max(least, q.floor)
	}
	if q.overCaptures {
		near, far := TQuantile(o.Alpha, q.r.DF), TQuantile(o.Alpha/2, q.r.DF)
		least = max(least, cutoff(q.tau, q.r.SE, q.r.DF, o.Alpha, near, far))
	}
	switch {
	case q.several():
	case q.few:
		if math.IsInf(q.apart, -1) || q.apart == 0 {
			return
		}
		least = max(least, math.Log1p(separation*math.Expm1(q.floor)), q.tau+math.Abs(q.d)-q.apart)
	case q.overUnits:
		least = max(least, q.unitTau(q.tau)+q.c.d-q.c.low)
	case !q.overCaptures:
		return
	}
	q.v.Resolution = ratio(least) - 1
	if q.n.HigherBetter {
		q.v.Resolution = -math.Expm1(-least)
	}
}

// need is how many captures a side would settle it. Where the noise between captures is not known, the floor stands
// for it: 2.326 standard deviations of a difference.
func (q *question) need(o Options) {
	p := Plan{SD: q.sd, DF: q.sdDF, Tau: q.tau, Alpha: o.Alpha}
	if !q.overCaptures && q.sdDF == 0 {
		p.SD = q.floor / (NormalQuantile(0.01) * math.Sqrt2)
	}
	p.SD = max(p.SD, q.timer())
	p.Margin = math.Log(math.Exp(q.tau)+math.Expm1(q.floor)) - q.tau
	effect := q.d
	if effect < 0 {
		effect = 0
	}
	q.v.Need = p.Need(effect, Power)
}

// verdict turns the answer back to how the question was put.
func (q *question) verdict() Verdict {
	v := q.v
	if q.overCaptures && q.r.ID != "" {
		r := q.r
		v.Test = &r
	}
	if !q.n.HigherBetter {
		return v
	}
	if v.Ratio != 0 {
		v.Ratio, v.Low, v.High = 1/v.Ratio, 1/v.High, 1/v.Low
	}
	if t := v.Test; t != nil {
		t.Effect, t.Low, t.High, t.NBase, t.NHead = -t.Effect, -t.High, -t.Low, t.NHead, t.NBase
	}
	v.Base, v.Head = v.Head, v.Base
	for i, p := range v.Positions {
		v.Positions[i] = 1 / p
	}
	return v
}
