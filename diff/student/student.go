// Package student provides Student's t distribution and the test behind every answer to "did it get slower": whether
// two levels differ by more than is allowed, given the standard error of their difference. A comparison applies it to
// two sides of captures or units, a history to the nights before and after a place in a series.
package student

import "math"

// MaxDF stands for infinity, so that results can be written as JSON. With this many degrees of freedom, a t
// distribution equals the normal distribution to nine digits.
const MaxDF = 1e9

// Beyond returns the probability that noise alone shows an effect at least as far beyond tau >= 0, in either direction,
// given its standard error se with df degrees of freedom (TREAT: McCarthy & Smyth 2009; with tau = 0 the two-sided t
// test). With se = 0 it is 0 or 1.
func Beyond(effect, tau, se, df float64) float64 {
	a := math.Abs(effect)
	switch {
	case se > 0:
		return min(1, Tail((a-tau)/se, df)+Tail((a+tau)/se, df))
	case a > tau:
		return 0
	}
	return 1
}

// Tail returns P(T > t) for Student's t distribution with df > 0 degrees of freedom. From MaxDF on it uses the normal
// distribution.
func Tail(t, df float64) float64 {
	switch {
	case math.IsNaN(t) || !(df > 0):
		return math.NaN()
	case t < 0:
		return 1 - Tail(-t, df)
	case t == 0:
		return 0.5
	}
	p, _ := upper(t, df)
	return p
}

// upper returns P(T > t) for t > 0, half the regularised incomplete beta function I(df/(df+t²); df/2, 1/2) (Abramowitz &
// Stegun 26.7.1) by its continued fraction (26.5.8), and t times the density there.
func upper(t, df float64) (p, slope float64) {
	switch {
	case math.IsInf(t, 1):
		return 0, 0
	case df >= MaxDF:
		return NormalTail(t), t * math.Exp(-t*t/2) / math.Sqrt(2*math.Pi)
	}
	// x = df/(df+t²) and y = 1-x, computed from r = t/√df to avoid overflow for huge t.
	r := t / math.Sqrt(df)
	x, y := 1/(1+r*r), 1/(1+1/(r*r))
	a := df / 2
	// x^a √y / B(a, 1/2), with ln x from log1p, so that large df lose no digits.
	slope = math.Exp(-a*log1pSquare(r)+0.5*math.Log(y)+gammaStep(a)) / math.SqrtPi
	if x < (a+1)/(a+2.5) {
		return 0.5 * slope * betaFraction(x, a, 0.5) / a, slope
	}
	return 0.5 * (1 - slope*betaFraction(y, 0.5, a)*2), slope
}

// log1pSquare is ln(1+r²), even if r² is beyond the range of a float.
func log1pSquare(r float64) float64 {
	if r > 1e150 {
		return 2 * math.Log(r)
	}
	return math.Log1p(r * r)
}

// gammaStep is ln Γ(a+1/2) - ln Γ(a). As a difference of two large numbers it loses digits, so from a = 30 on it uses
// the asymptotic series.
func gammaStep(a float64) float64 {
	if a >= 30 {
		r := 1 / (a * a)
		return 0.5*math.Log(a) - (1./8-r*(1./192-r*(1./640-r*17./14336)))/a
	}
	hi, _ := math.Lgamma(a + 0.5)
	lo, _ := math.Lgamma(a)
	return hi - lo
}

// betaFraction is the continued fraction of the incomplete beta function by Lentz's method as Thompson and Barnett
// modified it; it converges fast for x < (a+1)/(a+b+2).
func betaFraction(x, a, b float64) float64 {
	const tiny = 1e-300
	keep := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c := 1.0
	d := 1 / keep(1-(a+b)*x/(a+1))
	f := d
	for i := 1; i <= 10000; i++ {
		m := float64(i)
		n := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / keep(1+n*d)
		c = keep(1 + n/c)
		f *= d * c
		n = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / keep(1+n*d)
		c = keep(1 + n/c)
		f *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return f
}

// Quantile returns the t for which P(T > t) = q, for 0 < q < 1 and df > 0.
func Quantile(q, df float64) float64 {
	switch {
	case !(q > 0 && q < 1) || !(df > 0):
		return math.NaN()
	case q == 0.5:
		return 0
	case q > 0.5:
		return -Quantile(1-q, df)
	case df >= MaxDF:
		return NormalQuantile(q)
	}
	return inverse(q, math.Inf(1), df, min(NormalQuantile(q), 8)) // infinite for the smallest q
}

// Least returns the least effect that [Beyond] gives the probability p, 0 < p < 1/2, or less. near is Quantile(p, df).
func Least(tau, se, df, p, near float64) float64 {
	if !(se > 0) {
		return tau
	}
	return tau + se*inverse(p, 2*tau/se, df, near)
}

// inverse returns the t for which P(T > t) + P(T > t+apart) = q, from a t > 0 that is not beyond it. The logarithm of
// the sum is concave in ln t, so that Newton's method finds it.
func inverse(q, apart, df, t float64) float64 {
	last := t
	for range 100 {
		p, slope := upper(t, df)
		far, s := upper(t+apart, df)
		if p += far; p == 0 { // too far: halve the way in ln t
			t = math.Sqrt(t * last)
			continue
		}
		last = t
		step := p * math.Log(p/q) / (slope + s*t/(t+apart))
		t = min(t*math.Exp(step), 1e300)
		if !(math.Abs(step) > 1e-9) {
			break
		}
	}
	return t
}

// NormalQuantile returns the z for which P(Z > z) = q, for 0 < q < 1.
func NormalQuantile(q float64) float64 { return math.Sqrt2 * math.Erfcinv(2*q) }

// NormalTail returns P(Z > z).
func NormalTail(z float64) float64 { return 0.5 * math.Erfc(z/math.Sqrt2) }
