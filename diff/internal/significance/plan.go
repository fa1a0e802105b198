package significance

import (
	"math"

	"github.com/nsys-llm/explain/diff/student"
)

// Levels of the plans below: two-sided tests at Alpha that find a change with probability Power.
const (
	Alpha = 0.05
	Power = 0.80
)

// Plan is a future comparison, with what is known of the noise. Its power is that of the test that [Judge] will run:
// the effect of [TREAT] against Tau, with a variance estimated from the captures, pooled with a calibration if there is
// one, and the floor if the change must exceed one.
type Plan struct {
	Captures int     // a side, at least 1
	SD       float64 // between captures of one commit, ln
	DF       float64 // degrees of freedom that a calibration adds to the test; 0 without one
	Tau      float64 // ln of 1 + the rule's tolerance
	Alpha    float64 // of the test; with Holm over m numbers, the first is tested at Alpha/m
	Floor    float64 // ln; the change must exceed it as well. 0: none
	Margin   float64 // ln; how far an interval may reach beyond Tau and still pass
}

// maxPlanned is the most captures a side that Need advises.
const maxPlanned = 100

// known is the degrees of freedom from which a standard deviation counts as known: its error is 1/√(2·10⁴), 0.7 %.
const known = 1e4

// spread is one possible estimate of the standard error, with its probability; near and far are quantiles of the test.
type spread struct{ weight, se, df, near, far float64 }

// spreads returns the possible estimates of the standard error: s/SD is √(χ²/df), whose density
//
//	2 (df/2)^(df/2) / Γ(df/2) · u^(df-1) · exp(-df u²/2)
//
// is summed by Simpson's rule. Without degrees of freedom there is one estimate, a standard error of 0: only the floor
// decides.
func (p *Plan) spreads() []spread {
	k := float64(max(p.Captures, 1))
	df := p.DF + 2*k - 2
	se := p.SD * math.Sqrt(2/k)
	if df <= 0 || !(p.SD > 0) {
		return []spread{{weight: 1}}
	}
	near, far := student.Quantile(p.Alpha, df), student.Quantile(p.Alpha/2, df)
	at := func(u, weight float64) spread { return spread{weight, u * se, df, near, far} }
	if df > known {
		return []spread{at(1, 1)}
	}
	const steps = 48
	gamma, _ := math.Lgamma(df / 2)
	front := math.Ln2 + df/2*math.Log(df/2) - gamma
	lo, hi := max(0, 1-8/math.Sqrt(2*df)), 1+8/math.Sqrt(2*df)
	list := make([]spread, 0, steps+1)
	var sum float64
	for i := range steps + 1 {
		u := max(lo+(hi-lo)*float64(i)/steps, 1e-12)
		weight := math.Exp(front + (df-1)*math.Log(u) - df*u*u/2)
		switch {
		case i == 0 || i == steps:
		case i%2 == 1:
			weight *= 4
		default:
			weight *= 2
		}
		sum += weight
		list = append(list, at(u, weight))
	}
	for i := range list {
		list[i].weight /= sum
	}
	return list
}

// cuts returns the least change that is found with each estimate.
func (p *Plan) cuts(list []spread) []float64 {
	cuts := make([]float64, len(list))
	for i, s := range list {
		cuts[i] = max(p.Floor, p.Tau)
		if s.se > 0 {
			cuts[i] = max(p.Floor, student.Least(p.Tau, s.se, s.df, p.Alpha, s.near))
		}
	}
	return cuts
}

// Power returns the probability, 0 to 1, of finding that a true change of effect (ln, either way) is beyond Tau.
func (p Plan) Power(effect float64) float64 {
	list := p.spreads()
	return p.power(list, p.cuts(list), effect)
}

func (p *Plan) power(list []spread, cuts []float64, effect float64) float64 {
	se := p.SD * math.Sqrt(2/float64(max(p.Captures, 1)))
	var sum float64
	for i, s := range list {
		switch d := cuts[i] - math.Abs(effect); {
		case se > 0:
			sum += s.weight * student.NormalTail(d/se)
		case d < 0:
			sum += s.weight
		}
	}
	return sum
}

// Detectable returns the smallest change, as a ratio (0.05 is 5 %), that is found with the given power; +Inf if that
// needs more than a factor of e³.
func (p Plan) Detectable(power float64) float64 {
	list := p.spreads()
	cuts := p.cuts(list)
	lo, hi := 0.0, 3.0
	if p.power(list, cuts, hi) < power {
		return math.Inf(1)
	}
	for hi-lo > 1e-6 {
		if mid := (lo + hi) / 2; p.power(list, cuts, mid) < power {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Expm1(hi)
}

// settles returns the probability that the comparison has an answer: it finds a change beyond Tau, or passes one within
// Tau, because the interval reaches at most Tau + Margin.
func (p *Plan) settles(effect float64) float64 {
	if math.Abs(effect) > p.Tau {
		return p.Power(effect)
	}
	se := p.SD * math.Sqrt(2/float64(max(p.Captures, 1)))
	var sum float64
	for _, s := range p.spreads() {
		switch room := min(p.Tau, p.Tau+p.Margin-s.far*s.se) - math.Abs(effect); {
		case se > 0:
			sum += s.weight * student.NormalTail(-room/se)
		case room >= 0:
			sum += s.weight
		}
	}
	return sum
}

// Need returns the least number of captures a side, at least 2, that decide with the given power whether a change of
// effect (ln) is beyond Tau: they find it, or their interval passes. It ignores the floor, which applies to one capture
// a side. 0: not even maxPlanned captures would; effect is too close to Tau.
func (p Plan) Need(effect, power float64) int {
	p.Floor = 0
	enough := func(k int) bool {
		p.Captures = k
		return p.settles(effect) >= power
	}
	if !(p.SD >= 0) || math.IsInf(p.SD, 0) || math.IsNaN(effect) || !enough(maxPlanned) {
		return 0
	}
	lo, hi := 1, maxPlanned // hi is enough; lo is never tested
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; enough(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
