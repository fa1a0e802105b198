package infer

import "math"

// TREAT tests, for each sample, whether head differs from base by more than tau >= 0 (ln units: ln 1.03 for 3 %), by the
// variance within the sides, pooled with the history (McCarthy & Smyth 2009). A small P says that the change is beyond tau,
// which is more than that there is one:
//
//	two-sided  P = P(T > (|d|-tau)/SE) + P(T > (|d|+tau)/SE)
//	one-sided  P = P(T > (d-tau)/SE): an increase beyond tau; negate both sides' values to test for a decrease
//
// with SE = s √(1/captures of base + 1/captures of head). [Low, High] is the two-sided interval of level 1-alpha
// around d, also for a one-sided test. The results are in the order of the samples. A sample without values on a side
// has Known false.
func TREAT(samples []Sample, tau, alpha float64, oneSided bool, history ...History) []Result {
	past := byID(history)
	results := make([]Result, len(samples))
	for i := range samples {
		results[i] = testOne(&samples[i], past, tau, alpha, oneSided)
	}
	return results
}

func testOne(s *Sample, past map[string]History, tau, alpha float64, oneSided bool) Result {
	mb, nb := mean(s.Base)
	mh, nh := mean(s.Head)
	r := Result{ID: s.ID, P: 1, NBase: nb, NHead: nh}
	if nb == 0 || nh == 0 {
		return r
	}
	r.Effect = mh - mb
	r.Low, r.High = r.Effect, r.Effect
	r.S2, r.DF = s.variance(past)
	if r.DF == 0 {
		return r
	}
	r.Known = true
	r.SE = max(math.Sqrt(r.S2*(1/float64(nb)+1/float64(nh))), s.Resolution)
	half := TQuantile(alpha/2, r.DF) * r.SE
	r.Low, r.High = r.Effect-half, r.Effect+half
	if oneSided {
		r.P = tail(r.Effect-tau, r.SE, r.DF)
		return r
	}
	a := math.Abs(r.Effect)
	r.P = min(1, tail(a-tau, r.SE, r.DF)+tail(a+tau, r.SE, r.DF))
	return r
}

// tail is P(T > d/se), also for se = 0: values that do not vary leave no doubt.
func tail(d, se, df float64) float64 {
	switch {
	case se > 0:
		return TTail(d/se, df)
	case d > 0:
		return 0
	}
	return 1
}

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
