package infer

import (
	"math"
	"slices"
)

// What makes the kernels of two single captures a control of each other.
const (
	controlWidth = 0.003 // kernels that agree lie within so much of their middle, ln, either way
	controlLeast = 0.015 // no floor below 1.5 %
)

// Control is what the kernels that did not change say of the noise between two single captures.
type Control struct {
	Kernels int     // that agree
	Shift   float64 // ln by which they moved: the clock
	Floor   float64 // of this pair of captures, a ratio: what 99 % of changes of GPU time that are noise stay below
}

// Controls looks for kernels that moved alike from one capture to another: of the ln ratios of all matched kernels,
// the densest stretch of 0.6 % must hold MinCommon of them and half of all. Their median is the shift, and
//
//	floor = exp( |shift| + z(0.99) · 1.4826 · MAD of all kernels about the shift ) - 1, at least 1.5 %
//
// ok is false where they do not agree: then the pair does not tell its own noise. The floor is for GPU time and
// kernels; what the host does between them is not in it.
func Controls(effects []float64) (c Control, ok bool) {
	d := slices.Clone(effects)
	if len(d) < MinCommon || slices.ContainsFunc(d, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		return c, false
	}
	slices.Sort(d)
	best, first := 0, 0
	for i, j := 0, 0; j < len(d); j++ {
		for d[j]-d[i] > 2*controlWidth {
			i++
		}
		if j-i+1 > best {
			best, first = j-i+1, i
		}
	}
	if best < MinCommon || 2*best < len(d) {
		return c, false
	}
	c.Kernels = best
	c.Shift = median(slices.Clone(d[first : first+best]))
	for i, v := range d {
		d[i] = math.Abs(v - c.Shift)
	}
	c.Floor = max(controlLeast, math.Expm1(math.Abs(c.Shift)+NormalQuantile(0.01)*normalMAD*median(d)))
	return c, true
}
