package report

import (
	"math"
	"testing"
)

// Worked by hand: 120 ± 10 against 100 ± 10, 100 of each. The variance of the logarithm of the ratio is (10/120)²/100 + (10/100)²/100 =
// 1.6944e-4, its root 0.013017, times 1.96 is 0.025513, and e to that 1.025841: 1.2/1.025841 - 1 and 1.2 × 1.025841 - 1.
func TestOverhead(t *testing.T) {
	o := NewOverhead("request", Summary{N: 100, Mean: 120, Stddev: 10}, Summary{N: 100, Mean: 100, Stddev: 10})
	if near := func(got, want float64) bool { return math.Abs(got-want) < 1e-5 }; o == nil || !near(o.Ratio, 0.2) || !near(*o.Low, 0.169772) || !near(*o.High, 0.231010) {
		t.Errorf("%+v", o)
	}
	if o := NewOverhead("client", Summary{N: 1, Mean: 3e9}, Summary{N: 1, Mean: 2e9}); o == nil || o.Ratio != 0.5 || o.Low != nil || o.High != nil {
		t.Errorf("one of each: %+v", o)
	}
	for _, none := range [][2]Summary{{{N: 1, Mean: 1}, {}}, {{}, {N: 1, Mean: 1}}, {{N: 2, Mean: math.MaxFloat64}, {N: 2, Mean: 1e-300}}, {{N: 1, Mean: math.NaN()}, {N: 1, Mean: 1}}} {
		if o := NewOverhead("request", none[0], none[1]); o != nil {
			t.Errorf("%+v: %+v", none, o)
		}
	}
}
