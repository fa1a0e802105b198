package significance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// Swapping the sides mirrors ratio, interval and class; where more is better, so does the rule.
func TestMirror(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	for range 40 {
		var b, h [][]float64
		for range 1 + rng.IntN(3) {
			b = append(b, series(rng, 8+rng.IntN(30), 1, 0.03))
		}
		for range 1 + rng.IntN(3) {
			h = append(h, series(rng, 8+rng.IntN(30), 1.07, 0.03))
		}
		n := significance.Number{Tolerance: 0.03, Timer: 1, Base: captures(b...), Head: captures(h...)}
		m := significance.Number{Tolerance: 0.03, Timer: 1, Base: captures(h...), Head: captures(b...)}
		v, w := judge(n), judge(m)
		if math.Abs(v.Low*w.High-1) > 1e-9 || math.Abs(v.High*w.Low-1) > 1e-9 || math.Abs(v.Ratio*w.Ratio-1) > 1e-9 {
			t.Errorf("%+v and %+v", v, w)
		}
		if (v.Class == comparison.Regressed) != (w.Class == comparison.Improved) || v.Class == comparison.Improved {
			t.Errorf("classes %v and %v", v.Class, w.Class)
		}
		// A throughput that falls by 3/103 is as bad as a time that grows by 3 %.
		m.HigherBetter, m.Tolerance = true, 3./103
		u := judge(m)
		if u.Outcome != v.Outcome || math.Abs(u.Ratio*v.Ratio-1) > 1e-9 || math.Abs(u.P-v.P) > 1e-9 {
			t.Errorf("time %+v and throughput %+v", v, u)
		}
	}
}

// A mean that changes by the tolerance of 3 % to the ns is within it, both ways, whatever logarithms round to.
func TestMirrorOnTheTolerance(t *testing.T) {
	units := func(v float64) (list []float64) {
		for i := range 9 { // -0.4 % to +0.4 %
			list = append(list, v*(1+float64(i-4)/1000))
		}
		return list
	}
	for v := 100.; v <= 1_000_000; v *= 1.7 {
		v := math.Round(v) * 100
		low := []significance.Capture{{Value: v, Units: units(v)}}
		high := []significance.Capture{{Value: v * 103 / 100, Units: units(v * 103 / 100)}}
		for _, pair := range [][2][]significance.Capture{{low, high}, {high, low}} {
			u := judge(significance.Number{Tolerance: 0.03, Timer: 1e-6, Base: pair[0], Head: pair[1]})
			if u.Class != comparison.Same || u.Outcome != significance.Holds {
				t.Errorf("%v to %v: %s, outcome %v", pair[0][0].Value, pair[1][0].Value, u.Class, u.Outcome)
			}
		}
	}
}

// Swapping the sides mirrors the interval also where both are equally slow, and where the lists are the same sample of
// units that differ.
func TestMirrorOfEqualMeans(t *testing.T) {
	a := []float64{10, 12, 9, 11, 13, 8, 10, 11, 9, 10, 7}
	b := []float64{10, 10, 10, 11, 9, 10, 14, 6, 10}
	c := []significance.Capture{{Units: a, Value: 10, N: 50}}
	d := []significance.Capture{{Units: a, Value: 10.2, N: 50}}
	for i, pair := range [][2][]significance.Capture{{captures(a), captures(b)}, {captures(a, b), captures(b)}, {c, d}} {
		v := judge(significance.Number{Tolerance: 0.03, Timer: 1e-6, Base: pair[0], Head: pair[1]})
		w := judge(significance.Number{Tolerance: 0.03, Timer: 1e-6, Base: pair[1], Head: pair[0]})
		if v.Low >= v.High || math.Abs(v.Low*w.High-1) > 1e-9 || math.Abs(v.High*w.Low-1) > 1e-9 {
			t.Errorf("%d: %v to %v, mirrored %v to %v", i, v.Low, v.High, w.Low, w.High)
		}
	}
}

// Every other unit loses 10 of its 22 launches: the median of 30 is 17, and so it is in every draw of blocks of even length.
// An interval from 17/22 to 17/22 proves nothing, and what rounding leaves of it does not prove it one way alone.
func TestMirrorOfACountWithoutWidth(t *testing.T) {
	var all, half []float64
	for i := range 30 {
		all, half = append(all, 22), append(half, 12+10*float64(i%2))
	}
	n := significance.Number{Stat: significance.Median, Tolerance: 0.01, Count: true, Base: captures(all), Head: captures(half)}
	v := judge(n)
	n.Base, n.Head = n.Head, n.Base
	w := judge(n)
	near(t, "ratio", v.Ratio, 17./22, 1e-12)
	near(t, "high", v.High, 17./22, 1e-9)
	if v.Class != comparison.Unsettled || w.Class != comparison.Unsettled || w.Outcome != significance.Undecided {
		t.Errorf("%+v and %+v", v, w)
	}
}

// Of 15 units 8 take half the time. In more than one draw of twenty the median is the old one: the interval ends at no
// change, exactly, and a change is certain from neither side.
func TestMirrorOfAnEndAtNoChange(t *testing.T) {
	var all, some []float64
	for i := range 15 {
		all, some = append(all, 100), append(some, 100-50*float64((i+1)%2))
	}
	n := significance.Number{Stat: significance.Median, Tolerance: 0.03, Timer: 1e-6, Base: captures(all), Head: captures(some)}
	v := judge(n)
	n.Base, n.Head = n.Head, n.Base
	w := judge(n)
	near(t, "ratio", v.Ratio, 0.5, 1e-12)
	near(t, "high", v.High, 1, 1e-9)
	near(t, "low, mirrored", w.Low, 1, 1e-9)
	if v.Class != comparison.Unsettled || w.Class != comparison.Unsettled {
		t.Errorf("%+v and %+v", v, w)
	}
}

// What leaves a change open leaves its mirror open, although what is faster holds. Four units of 100 to 130 and of 115
// to 150 overlap, 15 % apart in the mean; windows of a ramp drift (see [TestWindowsOfARamp]); units that alternate by
// ±20 % are 5 % apart.
func TestMirrorOfWhyItIsOpen(t *testing.T) {
	ramp := func(from, to float64) (list []float64) {
		for i := range 64 {
			list = append(list, from*math.Pow(to/from, float64(i)/63))
		}
		return list
	}
	alternating := func(a, b float64) (list []float64) {
		for range 8 {
			list = append(list, a, b)
		}
		return list
	}
	for _, x := range []struct {
		base, head []float64
		want       comparison.Code
	}{
		{[]float64{100, 110, 120, 130}, []float64{115, 125, 140, 150}, comparison.TooFewUnits},
		{ramp(200, 160), ramp(1000, 300), comparison.Trend},
		{alternating(80, 120), alternating(84, 126), comparison.WideInterval},
	} {
		slower := judge(significance.Number{Tolerance: 0.03, Timer: 1e-3, Base: captures(x.base), Head: captures(x.head)})
		faster := judge(significance.Number{Tolerance: 0.03, Timer: 1e-3, Base: captures(x.head), Head: captures(x.base)})
		if slower.Code != x.want || slower.Open != x.want || faster.Open != x.want || faster.Code != "" {
			t.Errorf("%s: %s, %s, and back %s, %s", x.want, slower.Code, slower.Open, faster.Code, faster.Open)
		}
	}
}

// So does a mean that outliers alone carry, which only warns where it is slower: four units of about 100 and twelve, of
// which one takes 300, are 17 % apart in the mean and 1 % without it. Nothing of that makes four units enough.
func TestMirrorOfWhyAnOutlierIsOpen(t *testing.T) {
	few := []float64{99, 100, 100, 101}
	more := []float64{99, 100, 101, 100, 99, 101, 300, 100, 99, 101, 100, 100}
	slower := judge(significance.Number{Tolerance: 0.03, Timer: 1e-3, Base: captures(few), Head: captures(more)})
	faster := judge(significance.Number{Tolerance: 0.03, Timer: 1e-3, Base: captures(more), Head: captures(few)})
	if slower.Outcome != significance.Warns || !slower.Few || slower.Open != comparison.TooFewUnits || faster.Open != slower.Open {
		t.Errorf("%+v, and back %+v", slower, faster)
	}
}
