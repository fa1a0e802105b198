package significance

import (
	"math"

	"github.com/nsys-llm/explain/diff/student"
)

// TREAT compares head with base over captures. It pools the variance within the sides with that of earlier captures,
// past (or nil), and moderates it by the family (McCarthy & Smyth 2009), with SE = s̃ √(1/captures of base + 1/captures
// of head). [student.Beyond] says how probable it is that noise alone shows the effect. [Low, High] is the two-sided
// interval of level 1-alpha around it.
func TREAT(s *Sample, past *History, m Moderation, alpha float64) (r Result) {
	r.Effect = mean(s.Head) - mean(s.Base)
	r.Low, r.High = r.Effect, r.Effect
	var df float64
	r.S2, df = s.Variance(past)
	if r.Moderated, r.DF = m.Squeeze(r.S2, df); r.DF == 0 {
		return r
	}
	r.SE = max(math.Sqrt(r.Moderated*(1/float64(len(s.Base))+1/float64(len(s.Head)))), s.Resolution)
	half := student.Quantile(alpha/2, r.DF) * r.SE
	r.Low, r.High = r.Effect-half, r.Effect+half
	return r
}

// Variance pools a sample's variance within both sides and its history, with its degrees of freedom.
func (s *Sample) Variance(past *History) (s2, df float64) {
	sum := squares(s.Base) + squares(s.Head)
	df = float64(len(s.Base) + len(s.Head) - 2)
	if past != nil && past.DF > 0 && past.S2 >= 0 {
		sum, df = sum+past.S2*past.DF, df+past.DF
	}
	if df == 0 {
		return 0, 0
	}
	return sum / df, df
}
