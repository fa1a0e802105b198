package infer

import "math"

// MinCommon is how many matched kernels it takes to tell a shift that is common to all from changes of some. A decode
// step has a dozen or two of distinct kernels: with 12 instead of 20, TestAA finds 98 % instead of 77 % of the
// slowdowns in a step of 15, and fails no more often.
const MinCommon = 12

// CommonMode takes out what moves all kernels of a capture alike: clocks, temperature, a power limit. With y the ln
// value of kernel j in capture i, per side,
//
//	c(i) = median over j of y(j,i) - mean(j),  then y(j,i) -= c(i)
//	shift = median over j of mean of head(j) - mean of base(j),  then head y(j,i) -= shift
//
// Only samples with a value in every capture count for the medians; all are adjusted. shift is the ln difference that
// was taken out of head. With fewer than MinCommon such samples nothing is taken out, and ok is false.
//
// A change that slows all kernels alike is taken out too: metrics of the whole unit must be tested as they are.
func CommonMode(samples []Sample) (shift float64, adjusted []Sample, ok bool) {
	adjusted = make([]Sample, len(samples))
	var full []int
	for i, s := range samples {
		s.Base = append([]float64(nil), s.Base...)
		s.Head = append([]float64(nil), s.Head...)
		adjusted[i] = s
		if len(s.Base) > 0 && len(s.Head) > 0 && len(s.Base) == len(samples[0].Base) &&
			len(s.Head) == len(samples[0].Head) &&
			complete(s.Base) &&
			complete(s.Head) {
			full = append(full, i)
		}
	}
	if len(full) < MinCommon {
		return 0, adjusted, false
	}
	for _, side := range [][][]float64{values(adjusted, baseOf), values(adjusted, headOf)} {
		takeOut(side, full)
	}
	d := make([]float64, 0, len(full))
	for _, i := range full {
		mb, _ := mean(adjusted[i].Base)
		mh, _ := mean(adjusted[i].Head)
		d = append(d, mh-mb)
	}
	shift = median(d)
	for i := range adjusted {
		for k := range adjusted[i].Head {
			adjusted[i].Head[k] -= shift
		}
	}
	return shift, adjusted, true
}

func baseOf(s *Sample) []float64 { return s.Base }
func headOf(s *Sample) []float64 { return s.Head }

func values(samples []Sample, of func(*Sample) []float64) [][]float64 {
	list := make([][]float64, len(samples))
	for i := range samples {
		list[i] = of(&samples[i])
	}
	return list
}

func complete(values []float64) bool {
	for _, v := range values {
		if math.IsNaN(v) {
			return false
		}
	}
	return true
}

// takeOut subtracts from every capture of a side the median of its deviations, and returns them.
func takeOut(side [][]float64, full []int) (shifts []float64) {
	if len(full) == 0 {
		return nil
	}
	captures := len(side[full[0]])
	centre := make([]float64, len(side))
	for _, j := range full {
		centre[j], _ = mean(side[j])
	}
	shifts = make([]float64, captures)
	d := make([]float64, len(full))
	for i := range captures {
		for k, j := range full {
			d[k] = side[j][i] - centre[j]
		}
		shifts[i] = median(d)
		for j := range side {
			if i < len(side[j]) {
				side[j][i] -= shifts[i]
			}
		}
	}
	return shifts
}

// CaptureShifts takes the common mode out of captures of one commit, value by kernel and capture: each capture's shift,
// and the values without it. ok is false, and nothing taken out, with fewer than MinCommon kernels that every
// capture has.
func CaptureShifts(kernels [][]float64) (shifts []float64, adjusted [][]float64, ok bool) {
	adjusted = make([][]float64, len(kernels))
	var full []int
	for j, v := range kernels {
		adjusted[j] = append([]float64(nil), v...)
		if len(v) > 0 && len(v) == len(kernels[0]) && complete(v) {
			full = append(full, j)
		}
	}
	if len(full) < MinCommon {
		return nil, adjusted, false
	}
	return takeOut(adjusted, full), adjusted, true
}
