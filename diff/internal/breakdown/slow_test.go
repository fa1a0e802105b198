package breakdown

import "testing"

func TestSlowSteps(t *testing.T) {
	many := make([]float64, 64)
	for i := range many {
		if many[i] = 10; i%8 == 7 {
			many[i] = 30
		}
	}
	if e := stallsOf(many); e != (slowSteps{Units: 8, Of: 64, Times: 3, Every: 8}) {
		t.Errorf("every eighth: %+v", e)
	}
	// 10, 10, 10, 10, 50: the median is 10, one unit took 5 times that.
	if e := stallsOf([]float64{10, 10, 50, 10, 10}); e != (slowSteps{Units: 1, Of: 5, Times: 5}) {
		t.Errorf("by hand: %+v", e)
	}
	if e := stallsOf(nil); e != (slowSteps{}) {
		t.Errorf("nothing: %+v", e)
	}
	// The median distance from 10 is 0: what counts lies 2 % beyond, as 50 does and 10.1 does not.
	if n, _, sum, middle := slowUnits([]float64{10, 10, 10.1, 10, 50}); n != 1 || sum != 40 || middle != 10 {
		t.Errorf("%d, %v, %v", n, sum, middle)
	}
}
