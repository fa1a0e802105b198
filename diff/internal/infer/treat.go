package infer

import "math"

// TREAT tests, for each sample, whether head differs from base by more than tau >= 0 (ln units: ln 1.03 for 3 %), with
// variances moderated over the samples given (McCarthy & Smyth 2009). A small P says that the change is beyond tau,
// which is more than that there is one:
//
//	two-sided  P = P(T > (|d|-tau)/SE) + P(T > (|d|+tau)/SE)
//	one-sided  P = P(T > (d-tau)/SE): an increase beyond tau; negate both sides' values to test for a decrease
//
// with SE = s̃ √(1/captures of base + 1/captures of head). [Low, High] is the two-sided interval of level 1-alpha
// around d, also for a one-sided test. The results are in the order of the samples. A sample without values on a side
// has Known false.
func TREAT(samples []Sample, tau, alpha float64, oneSided bool, history ...History) []Result {
	past := byID(history)
	m := Moderate(samples, history...)
	results := make([]Result, len(samples))
	for i := range samples {
		results[i] = testOne(&samples[i], m, past, tau, alpha, oneSided)
	}
	return results
}

func testOne(s *Sample, m Moderation, past map[string]History, tau, alpha float64, oneSided bool) Result {
	mb, nb := mean(s.Base)
	mh, nh := mean(s.Head)
	r := Result{ID: s.ID, P: 1, NBase: nb, NHead: nh}
	if nb == 0 || nh == 0 {
		return r
	}
	r.Effect = mh - mb
	r.Low, r.High = r.Effect, r.Effect
	r.S2, r.S2DF = s.variance(past)
	r.Moderated, r.DF = m.Squeeze(r.S2, r.S2DF)
	if r.DF == 0 {
		return r
	}
	r.Known = true
	r.SE = max(math.Sqrt(r.Moderated*(1/float64(nb)+1/float64(nh))), s.Resolution)
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
