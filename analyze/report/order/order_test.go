package order

import "testing"

func TestMedian(t *testing.T) {
	if got := Median([]int64{9, 1, 5}); got != 5 {
		t.Errorf("of three: %d, want 5", got)
	}
	if got := Median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("of four: %g, want 2.5", got)
	}
	if got := Median[float64](nil); got != 0 {
		t.Errorf("of none: %g, want 0", got)
	}
}

// The sizes are 1, 2 and 4.
func TestSpread(t *testing.T) {
	if got := Spread([]float64{-4, 1, 2}); got != 2*1.4826 {
		t.Errorf("%g, want %g", got, 2*1.4826)
	}
}
