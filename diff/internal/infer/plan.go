package infer

import "math"

// Plan is a comparison that is yet to be made, with what is known of the noise. Its powers are of the very test that
// [Judge] will run: TREAT against Tau with a variance estimated from the captures, pooled with a calibration if there is
// one, and the floor where one has to be exceeded.
type Plan struct {
	Captures int     // a side, at least 1
	SD       float64 // between captures of one commit, ln
	DF       float64 // degrees of freedom that a calibration adds to the test; 0 without one
	Tau      float64 // ln of 1 + the rule's tolerance
	Alpha    float64 // of the test; with Holm over m numbers, Alpha/m is what the first one is held to
	Floor    float64 // ln; the change must exceed it as well. 0: none
	Margin   float64 // ln; how far an interval may reach beyond Tau and still pass
}

// maxPlanned bounds what Need advises: nobody records more captures a side.
const maxPlanned = 100

// known is from where on a standard deviation is taken as known: 1/√(2·10⁴) is 0.7 % of it.
const known = 1e4

// spread is one possible estimate of the standard deviation, and how likely it is.
type spread struct{ weight, cut, half float64 }

// spreads are the estimates that the test may end up with: s/SD is √(χ²/df), whose density
//
//	2 (df/2)^(df/2) / Γ(df/2) · u^(df-1) · exp(-df u²/2)
//
// is summed by Simpson's rule. cut is the least change that TREAT finds with that estimate, the a of
// P(T > (a-Tau)/SE) + P(T > (a+Tau)/SE) = Alpha; half is half the width of its interval.
func (p *Plan) spreads() []spread {
	k := float64(max(p.Captures, 1))
	df := p.DF + 2*k - 2
	se := p.SD * math.Sqrt(2/k)
	if df <= 0 || !(p.SD > 0) {
		return []spread{{weight: 1, cut: max(p.Floor, p.Tau)}}
	}
	q, wide := TQuantile(p.Alpha, df), TQuantile(p.Alpha/2, df)
	at := func(u, weight float64) spread {
		return spread{weight, max(p.Floor, cutoff(p.Tau, u*se, df, p.Alpha, q, wide)), wide * u * se}
	}
	if df > known {
		return []spread{at(1, 1)}
	}
	const steps = 96
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

// cutoff is the least change that TREAT calls beyond tau at alpha, given the standard error; near and far are the quantiles
// alpha and alpha/2, which it lies between.
func cutoff(tau, se, df, alpha, near, far float64) float64 {
	lo, hi := tau+near*se, tau+far*se
	for range 40 {
		mid := (lo + hi) / 2
		if TTail((mid-tau)/se, df)+TTail((mid+tau)/se, df) > alpha {
			lo = mid
		} else {
			hi = mid
		}
		if hi-lo < 1e-9*hi {
			break
		}
	}
	return hi
}

// Power is the probability that a true change of effect (ln, either way) is found to be beyond Tau.
func (p Plan) Power(effect float64) float64 { return p.power(p.spreads(), effect) }

func (p *Plan) power(list []spread, effect float64) float64 {
	se := p.SD * math.Sqrt(2/float64(max(p.Captures, 1)))
	var sum float64
	for _, s := range list {
		switch d := s.cut - math.Abs(effect); {
		case se > 0:
			sum += s.weight * NormalTail(d/se)
		case d < 0:
			sum += s.weight
		}
	}
	return sum
}

// Detectable is the smallest change, as a ratio (0.05 is 5 %), that is found with the given power; +Inf where none below
// e³ is.
func (p Plan) Detectable(power float64) float64 {
	list := p.spreads()
	lo, hi := 0.0, 3.0
	if p.power(list, hi) < power {
		return math.Inf(1)
	}
	for range 60 {
		if mid := (lo + hi) / 2; p.power(list, mid) < power {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Expm1(hi)
}

// settles is the probability that the comparison has an answer: a change beyond Tau is found, or one within Tau passes,
// because the interval reaches no further than Tau + Margin.
func (p *Plan) settles(effect float64) float64 {
	list := p.spreads()
	if math.Abs(effect) > p.Tau {
		return p.power(list, effect)
	}
	se := p.SD * math.Sqrt(2/float64(max(p.Captures, 1)))
	var sum float64
	for _, s := range list {
		switch room := min(p.Tau, p.Tau+p.Margin-s.half) - math.Abs(effect); {
		case se > 0:
			sum += s.weight * NormalTail(-room/se)
		case room >= 0:
			sum += s.weight
		}
	}
	return sum
}

// Need is the least number of captures a side, from 2 on, that settle with the given power whether a change of effect (ln)
// is beyond Tau: by finding it, or by an interval that passes. The floor counts for one capture only and is left out. 0: no
// sensible number would; effect is too close to Tau.
func (p Plan) Need(effect, power float64) int {
	p.Floor = 0
	enough := func(k int) bool {
		p.Captures = k
		return p.settles(effect) >= power
	}
	if !(p.SD >= 0) || math.IsInf(p.SD, 0) || math.IsNaN(effect) || !enough(maxPlanned) {
		return 0
	}
	lo, hi := 1, maxPlanned // hi is enough, and lo is not asked
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; enough(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
