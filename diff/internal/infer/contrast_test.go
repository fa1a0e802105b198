package infer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/infer"
)

// Eight units of 10 and eight of 20 on the base's side, twelve of 11 and four of 22 on the head's. The base's work at the
// head's prices is (8·11 + 8·22)/(8·10 + 8·20) = 1.1; the means say 13.75/15.
func TestStrataByHand(t *testing.T) {
	side := func(small, large int, a, b float64) []infer.Capture {
		var c infer.Capture
		for i := range small + large {
			if i < small {
				c.Units, c.Kinds = append(c.Units, a), append(c.Kinds, 7)
				continue
			}
			c.Units, c.Kinds = append(c.Units, b), append(c.Kinds, 9)
		}
		return []infer.Capture{c}
	}
	n := infer.Number{Tolerance: 0.03, Timer: 0.001, Base: side(8, 8, 10, 20), Head: side(12, 4, 11, 22)}
	for _, stat := range []infer.Statistic{infer.Mean, infer.Median} {
		n.Stat = stat
		v := judge(n)
		near(t, "ratio", v.Ratio, 1.1, 1e-12)
		if v.Outcome != infer.Fails {
			t.Errorf("%+v", v)
		}
	}
	// Without the kinds it is two samples that grow: nothing is said.
	n.Base[0].Kinds, n.Head[0].Kinds = nil, nil
	if v := judge(n); v.Outcome != infer.Undecided || v.Code != infer.Drifting || v.Resolution != 0 {
		t.Errorf("without kinds: %+v", v)
	}
}

// Sixteen units that double along the run, 10 % slower throughout, with noise of ±0.1 % in turn that cancels: the ratio of
// the sums is 1.1 to 0.1 %, the median of the ratios is exp of the mean of the two middle ones, and all eighths say +10 %.
func TestPairsByHand(t *testing.T) {
	var b, h []float64
	for i := range 16 {
		work := 1000 * (1 + float64(i)/16)
		b = append(b, work)
		h = append(h, work*1.1*math.Exp(0.001*float64(1-2*(i%2))))
	}
	n := infer.Number{Tolerance: 0.03, Timer: 1e-3, Tie: infer.TieNumber, Base: captures(b), Head: captures(h)}
	v := judge(n)
	var sb, sh float64
	for i := range b {
		sb, sh = sb+b[i], sh+h[i]
	}
	near(t, "ratio of sums", v.Ratio, sh/sb, 1e-12)
	if v.Outcome != infer.Fails || len(v.Positions) != 8 {
		t.Fatalf("%+v", v)
	}
	for _, p := range v.Positions {
		near(t, "by position", p, 1.1, 1e-3)
	}
	n.Stat = infer.Median
	near(t, "median of ratios", judge(n).Ratio, 1.1, 1e-12)
	n.Tie = infer.TieNone
	if v := judge(n); v.Code != infer.Drifting {
		t.Errorf("not tied: %+v", v)
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
	trend := infer.TrendOf(v)
	near(t, "range", trend.Range, 15.5/1.5, 1e-12)
	near(t, "correlation", trend.Correlation, xy/math.Sqrt(xx*yy), 1e-12)
	if infer.TrendOf(v[:7]) != (infer.Trend{Range: 1}) {
		t.Error("seven units have no trend")
	}
}

// Continuous batching of which the kinds are known: at 64 units in 8 kinds +8 % is found, where two samples cannot.
func TestStrataHavePower(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	const trials = 60
	found, plain, null := 0, 0, 0
	for range trials {
		side := func(factor float64) []infer.Capture {
			var c infer.Capture
			scale := math.Exp(0.01 * rng.NormFloat64())
			for range 64 {
				k := rng.IntN(8)
				c.Kinds = append(c.Kinds, k)
				c.Units = append(c.Units, factor*scale*1e6*(1+0.2*float64(k))*math.Exp(0.02*rng.NormFloat64()))
			}
			return []infer.Capture{c}
		}
		n := infer.Number{Tolerance: 0.03, Timer: 1, Base: side(1), Head: side(1.08)}
		if judge(n).Outcome == infer.Fails {
			found++
		}
		if judge(infer.Number{Tolerance: 0.03, Timer: 1, Base: n.Base, Head: side(1)}).Outcome == infer.Fails {
			null++
		}
		n.Base[0].Kinds, n.Head[0].Kinds = nil, nil
		if judge(n).Outcome == infer.Fails {
			plain++
		}
	}
	t.Logf("of %d: found %d with kinds, %d without; %d false", trials, found, plain, null)
	if found < trials*85/100 || null > 2 || plain > found {
		t.Errorf("of %d: found %d with kinds, %d without; %d false", trials, found, plain, null)
	}
}
