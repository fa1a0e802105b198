package significance

import "github.com/nsys-llm/explain/analyze/report/order"

// MinCommon is the least number of kernels to tell a shift common to all from changes of some.
const MinCommon = 12

// CaptureShifts returns how far all kernels of each capture of one commit move together (clocks, temperature, a power
// limit), from values by kernel and capture: the median of the kernels' distances from their means. It is nil for fewer
// than MinCommon kernels.
func CaptureShifts(kernels [][]float64) (shifts []float64) {
	if len(kernels) < MinCommon {
		return nil
	}
	for i := range kernels[0] {
		var d []float64
		for _, v := range kernels {
			d = append(d, v[i]-average(v))
		}
		shifts = append(shifts, order.Median(d))
	}
	return shifts
}
