package significance

import (
	"math"

	"github.com/nsys-llm/explain/diff/student"
)

// TREAT tests whether head differs from base by more than tau >= 0 (ln units: ln 1.03 for 3 %). It pools the variance
// within the sides with that of earlier captures, past (or nil), and moderates it by the family (McCarthy & Smyth
// 2009). A small P says that the change is beyond tau, see [student.Beyond], with SE = s̃ √(1/captures of base +
// 1/captures of head). [Low, High] is the two-sided interval of level 1-alpha around the effect. Known is false if a
// side has no values.
func TREAT(s *Sample, past *History, m Moderation, tau, alpha float64) Result {
	mb, nb := mean(s.Base)
	mh, nh := mean(s.Head)
	r := Result{P: 1, NBase: nb, NHead: nh}
	if nb == 0 || nh == 0 {
		return r
	}
	r.Effect = mh - mb
	r.Low, r.High = r.Effect, r.Effect
	var df float64
	r.S2, df = s.Variance(past)
	if r.Moderated, r.DF = m.Squeeze(r.S2, df); r.DF == 0 {
		return r
	}
	r.Known = true
	r.SE = max(math.Sqrt(r.Moderated*(1/float64(nb)+1/float64(nh))), s.Resolution)
	half := student.Quantile(alpha/2, r.DF) * r.SE
	r.Low, r.High = r.Effect-half, r.Effect+half
	r.P = student.Beyond(r.Effect, tau, r.SE, r.DF)
	return r
}

// Variance pools a sample's variance within both sides and its history, with its degrees of freedom.
func (s *Sample) Variance(past *History) (s2, df float64) {
	mb, nb := mean(s.Base)
	mh, nh := mean(s.Head)
	sum := squares(s.Base, mb) + squares(s.Head, mh)
	df = float64(max(nb-1, 0) + max(nh-1, 0))
	if past != nil && past.DF > 0 && past.S2 >= 0 {
		sum, df = sum+past.S2*past.DF, df+past.DF
	}
	if df == 0 {
		return 0, 0
	}
	return sum / df, df
}
