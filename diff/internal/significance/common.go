package significance

import "github.com/nsys-llm/explain/analyze/report/order"

// MinCommon is how many kernels it takes to tell a shift that is common to all from changes of some.
const MinCommon = 12

// CaptureShifts are how far all kernels of each capture of one commit move together (clocks, temperature, a power
// limit), of values by kernel and capture: the median of the kernels' distances from their means. Fewer than MinCommon
// kernels have none.
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
