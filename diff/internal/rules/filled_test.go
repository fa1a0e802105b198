package rules

import (
	"math"
	"testing"
)

// TestLessFilled by hand: kernels take 6 % of the step longer. Of that, 5 % fill idle time, so that 1 % is left, or as
// much as the mean shows; back it is the opposite.
func TestLessFilled(t *testing.T) {
	for _, x := range []struct{ share, filled, mean, want float64 }{
		{0.06, -0.05, 0.001, 0.01}, {0.06, -0.05, 0.04, 0.04}, {0.06, -0.05, 0.07, 0.06}, {0.06, 0, 0.001, 0.06},
		{0.06, 0.05, 0.12, 0.06}, {0.06, -0.08, -0.02, -0.02}, {0, -0.05, 0, 0},
	} {
		for _, sign := range []float64{1, -1} {
			if got := lessFilled(sign*x.share, sign*x.filled, sign*x.mean); math.Abs(got-sign*x.want) > 1e-12 {
				t.Errorf("%v of %v, %v filled, mean %v: want %v", got, sign*x.share, sign*x.filled, sign*x.mean, sign*x.want)
			}
		}
	}
}
