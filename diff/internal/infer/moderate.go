package infer

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/order"
)

// MinModerate is how many samples it takes to learn from the others how variances are spread. With fewer, nothing is
// moderated and every sample stands on its own variance.
const MinModerate = 10

// Moderation is what a family of samples says of the variance of any of them: a scaled inverse chi-square prior (Smyth
// 2004) with D0 degrees of freedom around S02. D0 = 0 means that nothing was learned.
type Moderation struct {
	D0, S02 float64
	// degrees of freedom of the samples that were learned from, which bound those of any moderated variance
	Pooled float64
	Limit  float64 // samples with a larger e (see Moderate) are not like the others and stand on their own variance
}

// maxPrior bounds D0: what the others say counts for no more than so many times a sample's own captures. Where all
// variances look alike, Smyth's D0 is infinite and a sample's own variance counts for nothing. That is too sure of a
// dozen kernels that share clocks: it would make the ones that are noisier than the others look certain.
const maxPrior = 2

// outlier is how many standard deviations, estimated by the median absolute deviation, a sample's e may lie from the
// median of all.
const outlier = 3 * normalMAD

// variance pools a sample's variance within both sides and its history, with its degrees of freedom.
func (s *Sample) variance(history map[string]History) (s2, df float64) {
	mb, nb := mean(s.Base)
	mh, nh := mean(s.Head)
	sum := squares(s.Base, mb) + squares(s.Head, mh)
	df = float64(max(nb-1, 0) + max(nh-1, 0))
	if h, ok := history[s.ID]; ok && h.DF > 0 && h.S2 >= 0 {
		sum += h.S2 * h.DF
		df += h.DF
	}
	if df == 0 {
		return 0, 0
	}
	return sum / df, df
}

func byID(history []History) map[string]History {
	m := make(map[string]History, len(history))
	for _, h := range history {
		m[h.ID] = h
	}
	return m
}

// Moderate estimates the prior of the samples' variances. With z = ln s² and ν degrees of freedom each,
//
//	e = z - ψ(ν/2) + ln(ν/2)
//	solve ψ'(D0/2) = var(e) - mean ψ'(ν/2);  D0 = ∞ where the right side is not positive
//	S02 = exp(mean(e) + ψ(D0/2) - ln(D0/2));  for D0 = ∞, the mean of s² weighted by ν
//	D0 at most 2 mean ν
//
// over the samples whose e is at most Limit, the median + 3·1.4826 MAD: a few that vary much more, as communication
// does among kernels, would make all look unlike, and their own variance must not be drawn to that of the others
// (Phipson et al. 2016 have a finer way). Samples without a variance are left out. One of zero would have z = -∞: it
// counts as 1e-5 times the median variance. The history adds degrees of freedom to the samples it names.
func Moderate(samples []Sample, history ...History) Moderation {
	past := byID(history)
	var s2, df []float64
	for i := range samples {
		if v, d := samples[i].variance(past); d > 0 {
			s2, df = append(s2, v), append(df, d)
		}
	}
	if len(s2) < MinModerate {
		return Moderation{}
	}
	least := order.Median(slices.Clone(s2)) * 1e-5
	if least == 0 {
		return Moderation{} // most samples do not vary at all: no distribution to learn
	}
	e := make([]float64, len(s2))
	for i := range s2 {
		e[i] = logVariance(max(s2[i], least), df[i])
	}
	// 1e-9 for variances that are equal but for rounding.
	m := Moderation{Limit: order.Median(slices.Clone(e)) + max(outlier*MAD(e), 1e-9)}
	var n, weighted, meanE, within, spread float64
	for i := range e {
		if e[i] <= m.Limit {
			n++
			m.Pooled += df[i]
			weighted += s2[i] * df[i]
			meanE += e[i]
			within += Trigamma(df[i] / 2)
		}
	}
	meanE /= n
	for _, v := range e {
		if v <= m.Limit {
			spread += (v - meanE) * (v - meanE)
		}
	}
	m.D0, m.S02 = MaxDF, weighted/m.Pooled
	if excess := spread/(n-1) - within/n; n > 1 && excess > 0 {
		if d0 := 2 * TrigammaInverse(excess); d0 < MaxDF {
			m.D0, m.S02 = d0, math.Exp(meanE+Digamma(d0/2)-math.Log(d0/2))
		}
	}
	m.D0 = min(m.D0, maxPrior*m.Pooled/n)
	return m
}

// logVariance is e: the logarithm of a variance, corrected for what it is too low on average.
func logVariance(s2, df float64) float64 { return math.Log(s2) - Digamma(df/2) + math.Log(df/2) }

// Squeeze draws a variance with df degrees of freedom towards the prior, unless its e is above Limit:
//
//	s̃² = (D0·S02 + df·s²) / (D0 + df),  with D0 + df degrees of freedom, at most Pooled
func (m Moderation) Squeeze(s2, df float64) (moderated, dfTotal float64) {
	if m.D0 == 0 || df > 0 && s2 > 0 && logVariance(s2, df) > m.Limit {
		return s2, min(df, MaxDF)
	}
	return (m.D0*m.S02 + df*s2) / (m.D0 + df), min(m.D0+df, max(m.Pooled, df), MaxDF)
}
