package infer

import "math"

// Few pairs (of up to fewPairs units) are judged by a model instead of blocks: d(i) is a first-order autoregressive
// series with normal steps. Blocks of 16 values cannot show how much neighbours are alike, so that block lengths had to
// be guessed wide (page one-capture).
const fewPairs = 32

// Before looking, every ρ from 0 to 0.95 is as likely as any other. Chosen by simulation among ten priors, with the
// rule on leastEffective: intervals hold their level for ρ of 0 to 0.5 from 8 units on, and of 16 units nine in ten
// slowdowns by 8 % are found (page one-capture).
const (
	lag1Most  = 0.95
	lag1Steps = 40 // points at which ρ is looked at
)

// leastEffective is how many independent units a few pairs must be worth, expected over ρ: of fewer nothing is said.
const leastEffective = 2.5

// serial is what a first-order autoregressive series tells of its mean: for each ρ a Student distribution, with a
// weight.
type serial struct {
	df   float64
	rhos []serialPoint
}

type serialPoint struct{ rho, weight, mean, se float64 }

// serialOf weighs each ρ by its marginal likelihood. With independent steps of the series, precision
// S = (1-ρ)(2+(n-2)(1-ρ)), generalised least squares give
//
//	mean = (1-ρ)(d1 + dn + (1-ρ) Σ d(2..n-1)) / S
//	q    = (1-ρ²)(d1-mean)² + Σ (d(i)-mean - ρ (d(i-1)-mean))²
//	se   = √(q / ((n-1) S)),   weight = √(1-ρ²) S^(-1/2) q^(-(n-1)/2)
//
// (Zellner & Tiao 1964, with a flat prior for the mean and 1/σ for σ). ok is false for a series that does not vary.
func serialOf(d []float64) (s serial, ok bool) {
	n := float64(len(d))
	s.df = n - 1
	best := math.Inf(-1)
	for k := range lag1Steps {
		rho := lag1Most * (float64(k) + 0.5) / lag1Steps
		a := 1 - rho
		precision := a * (2 + (n-2)*a)
		m := d[0] + d[len(d)-1]
		for _, v := range d[1 : len(d)-1] {
			m += a * v
		}
		m *= a / precision
		q := (1 - rho*rho) * (d[0] - m) * (d[0] - m)
		for i := 1; i < len(d); i++ {
			e := d[i] - m - rho*(d[i-1]-m)
			q += e * e
		}
		if !(q > 0) {
			return s, false
		}
		weight := 0.5*math.Log((1-rho*rho)/precision) - s.df/2*math.Log(q)
		best = max(best, weight)
		s.rhos = append(s.rhos, serialPoint{rho, weight, m, math.Sqrt(q / s.df / precision)})
	}
	var sum float64
	for i := range s.rhos {
		s.rhos[i].weight = math.Exp(s.rhos[i].weight - best)
		sum += s.rhos[i].weight
	}
	for i := range s.rhos {
		s.rhos[i].weight /= sum
	}
	return s, true
}

// effective is how many independent units n of the series are worth, expected over ρ.
func (s *serial) effective(n int) (sum float64) {
	for _, r := range s.rhos {
		sum += r.weight * independent(n, r.rho)
	}
	return sum
}

// below is the probability that the mean is less than x.
func (s *serial) below(x float64) float64 {
	var p float64
	for _, r := range s.rhos {
		p += r.weight * TTail((r.mean-x)/r.se, s.df)
	}
	return p
}

// half is how far from centre one has to go so that a share of alpha, averaged over both ends, lies beyond.
func (s *serial) half(centre, alpha float64) float64 {
	beyond := func(x float64) float64 { return (s.below(centre-x) + 1 - s.below(centre+x)) / 2 }
	low, high := 0.0, 0.0
	for _, r := range s.rhos {
		high = max(high, r.se, math.Abs(r.mean-centre))
	}
	for high *= 2; beyond(high) > alpha; high *= 2 {
	}
	for range 50 {
		if mid := (low + high) / 2; beyond(mid) > alpha {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
