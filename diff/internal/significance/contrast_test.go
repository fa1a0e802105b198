package significance_test

import (
	"math"
	"testing"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// Sixteen units that double along the run, 10 % slower throughout, with noise of ±0.1 % in turn that cancels: the ratio of
// the sums is 1.1 to 0.1 %, the median of the ratios is exp of the mean of the two middle ones, and all eighths say +10 %.
func TestPairsByHand(t *testing.T) {
	var b, h []float64
	for i := range 16 {
		work := 1000 * (1 + float64(i)/16)
		b = append(b, work)
		h = append(h, work*1.1*math.Exp(0.001*float64(1-2*(i%2))))
	}
	n := significance.Number{Tolerance: 0.03, Timer: 1e-3, Tie: significance.TieNumber, Base: captures(b), Head: captures(h)}
	v := judge(n)
	var sb, sh float64
	for i := range b {
		sb, sh = sb+b[i], sh+h[i]
	}
	near(t, "ratio of sums", v.Ratio, sh/sb, 1e-12)
	if v.Outcome != significance.Fails {
		t.Fatalf("%+v", v)
	}
	n.Stat = significance.Median
	near(t, "median of ratios", judge(n).Ratio, 1.1, 1e-12)
	n.Tie = significance.TieNone
	if v := judge(n); v.Code != comparison.Trend {
		t.Errorf("not tied: %+v", v)
	}
}

// A window of a ramp from 200 down to 160, its eighths 1.22 apart. In another one, from 1000 to 300, no eighth is below
// 320: 1.6 times as long, which a drift of 2.9 explains, and one of 1.22 would not. Steady units of 1000 are 5 times as
// long, which it does not explain.
func TestWindowsOfARamp(t *testing.T) {
	ramp := func(from, to float64) (list []float64) {
		for i := range 64 {
			list = append(list, from*math.Pow(to/from, float64(i)/63))
		}
		return list
	}
	for _, c := range []struct {
		head []float64
		want significance.Outcome
		code comparison.Code
	}{
		{ramp(1000, 300), significance.Undecided, comparison.Trend},
		{ramp(1000, 999), significance.Fails, ""},
	} {
		v := judge(significance.Number{Timer: 1e-3, Base: captures(ramp(200, 160)), Head: captures(c.head)})
		if v.Outcome != c.want || v.Code != c.code {
			t.Errorf("to %.0f: %+v", c.head[0], v)
		}
	}
}

// Units of 1, 2, … 16: the medians of the eighths are 1.5 to 15.5, the correlation of ln with the place is by hand below.
func TestTrend(t *testing.T) {
	var v []float64
	var xy, xx, yy, m float64
	for i := range 16 {
		v = append(v, float64(i+1))
		m += math.Log(float64(i+1)) / 16
	}
	for i := range 16 {
		x, y := float64(i)-7.5, math.Log(float64(i+1))-m
		xy, xx, yy = xy+x*y, xx+x*x, yy+y*y
	}
	trend := significance.TrendOf(v)
	near(t, "range", trend.Range, 15.5/1.5, 1e-12)
	near(t, "correlation", trend.Correlation, xy/math.Sqrt(xx*yy), 1e-12)
	if significance.TrendOf(v[:7]) != (significance.Trend{Range: 1}) {
		t.Error("seven units have no trend")
	}
}
