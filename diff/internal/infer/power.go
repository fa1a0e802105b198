package infer

import "math"

// Levels of the plans below: two-sided tests at Alpha that find a change with probability Power.
const (
	Alpha = 0.05
	Power = 0.80
)

// maxCaptures bounds what Captures advises: nobody records more a side.
const maxCaptures = 100

// Captures is how many captures a side would settle whether effect is beyond tau, given the standard deviation sd
// between captures: either way, since an effect below tau is settled by an interval that stays below it. It is the
// least k ≥ 2 with
//
//	k ≥ 2 (t(1-Alpha/2, ν) + z(Power))² sd² / (|effect| - tau)²,  ν = the larger of df and 2k-2
//
// where df is behind sd. [Plan.Need] stands in for it, by the test that will run. Zero means that no sensible number would: effect is too close to tau.
func Captures(effect, tau, sd, df, alpha float64) int64 {
	gap := math.Abs(math.Abs(effect) - tau)
	if !(gap > 0) || math.IsInf(gap, 0) || !(sd >= 0) || math.IsInf(sd, 0) {
		return 0
	}
	for k := 2; k <= maxCaptures; k++ {
		t := TQuantile(alpha/2, min(max(df, float64(2*k-2)), MaxDF)) + NormalQuantile(1-Power)
		if float64(k) >= 2*t*t*sd*sd/(gap*gap) {
			return int64(k)
		}
	}
	return 0
}

// Detectable is the smallest change, in ln units beyond the threshold, that k captures a side find with probability
// Power, where sd between captures was estimated with df degrees of freedom: (t(1-Alpha/2, df) + z(Power)) sd √(2/k).
// With MaxDF the sd counts as known. With few degrees of freedom it claims more than the test
// finds; [Plan.Detectable] stands in for it.
func Detectable(sd, df float64, k int) float64 {
	return (TQuantile(Alpha/2, df) + NormalQuantile(1-Power)) * sd * math.Sqrt(2/float64(k))
}
