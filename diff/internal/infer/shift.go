package infer

import "math"

// assumedClock is the standard deviation of ln of what all kernels of a capture share, where nobody calibrated it: 1
// %.
const assumedClock = 0.01

// What makes a common shift plausible noise.
const (
	shiftLimit = 3     // standard deviations
	shiftAlike = 0.8   // share of kernel time that moved with it
	alikeLimit = 3     // standard errors within which a kernel moved with it
	alikeWidth = 0.003 // or within so much of it, ln
)

// Shift is what moved all kernels of head against base, and whether that may be taken for noise.
type Shift struct {
	Ln        float64 // median over kernels of the difference of the sides' means, see [CommonMode]
	Limit     float64 // ln; what noise can do
	Alike     float64 // share of kernel time that moved within three standard errors of it
	Plausible bool    // take it out; otherwise test the kernels as they are, and say both readings
}

// PlausibleShift takes the common mode out of kernels, as [CommonMode] does, and says whether that may be believed.
// weights are the kernels' times, in any unit; sd is the calibrated standard deviation of the common mode between
// captures (ln), 0 where nobody calibrated it: assumedClock. The shift is plausible noise if
//
//	|shift| ≤ 3 sd √(1/captures of base + 1/captures of head)
//
// and kernels of at least 80 % of the time lie within three of their own standard errors of it; or if it is within
// one such standard deviation, where taking it out cannot mislead. A real change of most kernels is neither: 17 of 27
// kernels 8 % slower look like a clock of 8 %, from which the unchanged ones would then have improved.
//
// adjusted has the shift taken out, for the second reading where it is not plausible. ok is false, and nothing is
// taken out, with fewer than MinCommon kernels that every capture has.
func PlausibleShift(samples []Sample, weights []float64, sd float64, history ...History) (
	s Shift, adjusted []Sample, ok bool) {
	shift, adjusted, ok := CommonMode(samples)
	if !ok || len(weights) != len(samples) {
		return Shift{}, adjusted, false
	}
	if !(sd > 0) {
		sd = assumedClock
	}
	one := sd * math.Sqrt(1/float64(len(samples[0].Base))+1/float64(len(samples[0].Head)))
	s = Shift{Ln: shift, Limit: shiftLimit * one}
	var alike, total float64
	for i, r := range TREAT(adjusted, 0, Alpha, false, history...) {
		if !(weights[i] > 0) || r.NBase == 0 || r.NHead == 0 {
			continue
		}
		total += weights[i]
		if math.Abs(r.Effect) <= max(alikeLimit*r.SE, alikeWidth) {
			alike += weights[i]
		}
	}
	if total > 0 {
		s.Alike = alike / total
	}
	s.Plausible = math.Abs(shift) <= one || math.Abs(shift) <= s.Limit && s.Alike >= shiftAlike
	return s, adjusted, true
}
