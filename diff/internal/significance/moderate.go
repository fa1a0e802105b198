package significance

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
	"github.com/nsys-llm/explain/diff/student"
)

// MinModerate is the least number of samples to learn from how variances are spread. With fewer, every sample keeps its
// own variance.
const MinModerate = 10

// Moderation is what a family of samples shows about the variance of any of them: a scaled inverse chi-square prior
// (Smyth 2004) with D0 degrees of freedom around S02. D0 = 0 means that nothing was learned.
type Moderation struct {
	D0, S02 float64
	// degrees of freedom of the samples learned from; they limit those of any moderated variance
	Pooled float64
	Limit  float64 // samples of a larger variance differ from the others and keep their own
}

// maxPrior limits D0 to this many times a sample's own degrees of freedom. If all variances look alike, D0 would be
// infinite and a sample's own variance would not count. That is too sure for a dozen kernels that share clocks: kernels
// noisier than the others would look certain.
const maxPrior = 2

// outlier is how many standard deviations, estimated by the median absolute deviation, a sample's ln s² may lie from
// the median of all.
const outlier = 3 * NormalMAD

// Moderate learns from variances with df degrees of freedom each. It uses those whose ln is at most the median +
// 3·1.4826 MAD: a few that vary much more, as communication does among kernels, would make all look unlike. v is the
// excess of the variance of ln s² over that due to chance, ψ'(df/2):
//
//	ψ'(x) ≈ 1/x + 1/2x² + 1/6x³,  D0 = (1 + √(1+2v))/v, which is ψ'(D0/2) = v to the second term, and at most 2 df
//
// S02 is the mean of s² weighted by df. A variance of 0 counts as 1e-5 times the median variance.
func Moderate(s2, df []float64) (m Moderation) {
	least := order.Median(slices.Clone(s2)) * 1e-5
	if len(s2) < MinModerate || least == 0 { // most samples are constant: there is no distribution to learn
		return m
	}
	ln := lists.Map(s2, func(v float64) float64 { return math.Log(max(v, least)) })
	limit := order.Median(slices.Clone(ln)) + max(outlier*MAD(ln), 1e-9) // 1e-9 for variances equal up to rounding
	m.Limit = math.Exp(limit)
	var kept []float64
	var sum, chance float64
	for i, v := range ln {
		if v <= limit {
			x := df[i] / 2
			kept, m.Pooled, sum, chance = append(kept, v), m.Pooled+df[i], sum+s2[i]*df[i], chance+1/x+1/(2*x*x)+1/(6*x*x*x)
		}
	}
	n := float64(len(kept))
	m.D0, m.S02 = maxPrior*m.Pooled/n, sum/m.Pooled
	if sd := Deviation(kept); sd*sd > chance/n {
		v := sd*sd - chance/n
		m.D0 = min(m.D0, (1+math.Sqrt(1+2*v))/v)
	}
	return m
}

// Squeeze draws a variance with df degrees of freedom towards the prior, unless it is above Limit:
//
//	s̃² = (D0·S02 + df·s²) / (D0 + df),  with D0 + df degrees of freedom, at most Pooled
func (m Moderation) Squeeze(s2, df float64) (moderated, dfTotal float64) {
	if m.D0 == 0 || s2 > m.Limit {
		return s2, min(df, student.MaxDF)
	}
	return (m.D0*m.S02 + df*s2) / (m.D0 + df), min(m.D0+df, max(m.Pooled, df), student.MaxDF)
}
