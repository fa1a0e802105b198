package infer

// MinCommon is how many kernels it takes to tell a shift that is common to all from changes of some.
const MinCommon = 12

// CaptureShifts takes what moves all kernels of a capture alike (clocks, temperature, a power limit) out of captures of one
// commit, value by kernel and capture: each capture's shift, the median of its kernels' distances from their means, and
// the values without it. ok is false, and nothing taken out, with fewer than MinCommon kernels.
func CaptureShifts(kernels [][]float64) (shifts []float64, adjusted [][]float64, ok bool) {
	if len(kernels) < MinCommon {
		return nil, kernels, false
	}
	adjusted = make([][]float64, len(kernels))
	for i := range kernels[0] {
		var d []float64
		for _, v := range kernels {
			d = append(d, v[i]-average(v))
		}
		shifts = append(shifts, median(d))
		for j, v := range kernels {
			adjusted[j] = append(adjusted[j], v[i]-shifts[i])
		}
	}
	return shifts, adjusted, true
}
