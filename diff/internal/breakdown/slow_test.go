package breakdown

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/internal/side"
)

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
	few := make([]float64, 41)
	for i := range few {
		if few[i] = 10; i == 13 || i == 18 || i == 23 {
			few[i] = 30
		}
	}
	if e := stallsOf(few); e != (slowSteps{Units: 3, Of: 41, Times: 3}) {
		t.Errorf("three at a distance of 5 are not every fifth of 41: %+v", e)
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

// Slow steps are those of one side, and the sentence says of which.
func TestStallsNameTheirSide(t *testing.T) {
	of := func(every int) *side.Side {
		v := &side.View{C: &side.Capture{Index: report.NewIndex(&report.Report{})}, Time: &report.Summary{N: 64}}
		for i := range 64 {
			u := side.UnitRow{Time: 10}
			if every > 0 && i%every == every-1 && i > 3 || i < -every {
				u.Time = 30
			}
			v.Units = append(v.Units, u)
		}
		return &side.Side{Views: []*side.View{v}}
	}
	for _, c := range []struct {
		base, head int
		want       string
	}{
		{0, 2, "head: every second step takes 3 times as long as the others"},
		{0, 8, "head: 1 in 8 steps takes 3 times as long as the others"},
		{8, 0, "base: 1 in 8 steps takes 3 times as long as the others"},
		{0, -3, "head: the first 3 of 64 steps take 3 times as long as the others"},
		{-1, 0, "base: 1 of 64 steps take 3 times as long as the others"},
		{8, 8, ""}, {0, 0, ""},
	} {
		if got := stalls(of(c.base), of(c.head)); got != c.want {
			t.Errorf("%d, %d: %q, want %q", c.base, c.head, got, c.want)
		}
	}
}

// TestMoreOfTheLongerSteps by hand: steps take 10 or 16 ms on both sides, 16 in 3 and 6 of 12. Where the longer ones got
// longer too, or all did, or there is one length, the mix is not the cause.
func TestMoreOfTheLongerSteps(t *testing.T) {
	side := func(short, long float64, every int) (list []float64) {
		for i := range 12 {
			v := short
			if i%every == 0 {
				v = long
			}
			list = append(list, v+float64(i%5)*0.01)
		}
		return list
	}
	three, six := side(10, 16, 4), side(10, 16, 2)
	for _, c := range []struct {
		base, head []float64
		want       string
	}{
		{three, six, "more of the longer steps: 6 of 12 instead of 3 of 12 take 1.6 times as long as the others, and either take as long as before"},
		{six, three, "fewer of the longer steps: 3 of 12 instead of 6 of 12 take 1.6 times as long as the others, and either take as long as before"},
		{three, three, ""},
		{three, side(10, 17, 2), ""},
		{three, side(10.5, 16.8, 2), ""},
		{side(10, 10, 2), side(10.6, 10.6, 2), ""},
		{side(10, 10, 2), six, ""},
		{nil, six, ""},
	} {
		if got := otherLengths(c.base, c.head); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
