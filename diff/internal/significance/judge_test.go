package significance_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/student"
)

// series is n units around 1 ms with a standard deviation of noise (ln), times factor.
func series(rng *rand.Rand, n int, factor, noise float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Round(1e6 * factor * math.Exp(noise*rng.NormFloat64()))
	}
	return v
}

func captures(units ...[]float64) []significance.Capture {
	list := make([]significance.Capture, len(units))
	for i, u := range units {
		list[i] = significance.Capture{Units: u}
	}
	return list
}

func judge(n significance.Number) significance.Verdict {
	return significance.Judge([]significance.Number{n}, significance.Options{})[0]
}

// Four captures a side, one unit each, of 1 and of e^0.1: d = 0.1; nothing varies. With a timer of 0.001 the standard error
// is 0.001, so p against τ = ln 1.05 is P(T6 > (0.1-τ)/0.001) + P(T6 > (0.1+τ)/0.001); without one it proves nothing.
func TestNoCertaintyFromNoVariance(t *testing.T) {
	one, more := []float64{1}, []float64{math.Exp(0.1)}
	n := significance.Number{Tolerance: 0.05, Base: captures(one, one, one, one), Head: captures(more, more, more, more)}
	if v := judge(n); v.Outcome != significance.Undecided || v.P != 1 || v.Code != comparison.WideInterval {
		t.Errorf("without a timer: %+v", v)
	}
	n.Timer = 0.001
	v := judge(n)
	tau := math.Log(1.05)
	near(t, "p", v.P, student.Tail((0.1-tau)/0.001, 6)+student.Tail((0.1+tau)/0.001, 6), 1e-12)
	near(t, "ratio", v.Ratio, math.Exp(0.1), 1e-12)
	near(t, "low", v.Low, math.Exp(0.1-2.4469118511449692*0.001), 1e-9)
	near(t, "resolution", v.Resolution, math.Expm1(tau+1.9431802805153022*0.001), 1e-5)
	if v.Outcome != significance.Fails || v.Class != comparison.Regressed || v.Test == nil {
		t.Errorf("got %+v", v)
	}
}

// Three copies a side of 9 units that alternate by 1 %, one of which stalls: |ln x(i+1) - ln x(i)| is ln 1.01 at 6 of 8
// places, so s = 1.4826 ln 1.01 / √2; the shortest stretch that holds 5 of 9 is ln 1.01 long, s = 0.7413 ln 1.01, which is
// less. Over 3 + 3 captures of 9 units the standard error is s √(1/9 · (3/9 + 3/9)) = s √(2/27), whatever the stall.
func TestLeastErrorByHand(t *testing.T) {
	units := []float64{1e6, 1.01e6, 1e6, 1.01e6, 5e6, 1.01e6, 1e6, 1.01e6, 1e6}
	v := judge(significance.Number{Stat: significance.Mean, Tolerance: 0.03, Timer: 1, Base: captures(units, units, units),
		Head: captures(scaled(units, 2), scaled(units, 2), scaled(units, 2))})
	near(t, "standard error", v.Test.SE, 0.7413*math.Log(1.01)*math.Sqrt(2./27), 1e-9)
}

func scaled(units []float64, factor float64) []float64 {
	list := slices.Clone(units)
	for i := range list {
		list[i] *= factor
	}
	return list
}

// Every eighth step takes twice as long in each of three captures, which makes the mean 12.5 % larger: what the captures
// differ by is what counts, not that the steps differ. It fails. The median, which moved by nothing, holds.
func TestEveryEighthStepOverCaptures(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	var base, head [][]float64
	for range 3 {
		base = append(base, series(rng, 62, 1, 0.003))
		slow := series(rng, 62, 1, 0.003)
		for i := 7; i < len(slow); i += 8 {
			slow[i] *= 2
		}
		head = append(head, slow)
	}
	if v := judge(significance.Number{Stat: significance.Mean, Tolerance: 0.05, Timer: 1, Base: captures(base...), Head: captures(head...)}); v.Outcome != significance.Fails {
		t.Errorf("mean: %+v", v)
	}
	if v := judge(significance.Number{Stat: significance.Median, Tolerance: 0.03, Timer: 1, Base: captures(base...), Head: captures(head...)}); v.Outcome != significance.Holds {
		t.Errorf("median: %+v", v)
	}
}

// Units of which the caller knows the spread and what they come to without outliers count as listed ones: where the floor of
// 5 % keeps the tolerance of 3 % already, the units only have to agree that there is a change. The interval of +10 % ends at
// low where the standard error is ln(1.1/low)/1.645, which 5,000 units a side leave of √2500 times as much each.
func TestSharesCountAsUnits(t *testing.T) {
	for low, want := range map[float64]significance.Outcome{1.024: significance.Fails, 0.99: significance.Undecided} {
		side := func(value float64) []significance.Capture {
			return []significance.Capture{{Value: value, N: 5000, SD: value * math.Log(1.1/low) / 1.645 * 50}}
		}
		v := judge(significance.Number{Tolerance: 0.03, Timer: 1, Base: side(100e6), Head: side(110e6), Trimmed: 1.1})
		if near(t, "low", v.Low, low, 1e-4); v.Outcome != want {
			t.Errorf("from %v: %+v", low, v)
		}
	}
}

// A capture that is named twice has no spread between captures. The units inside still vary, and +4.3 % against +3 % is
// within what they allow: undecided, as it is with the capture named once.
func TestCopiesAreNotCertain(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	b, h := series(rng, 16, 1, 0.03), series(rng, 16, 1.043, 0.03)
	for _, k := range []int{1, 2, 3} {
		var base, head [][]float64
		for range k {
			base, head = append(base, b), append(head, h)
		}
		if v := judge(significance.Number{Tolerance: 0.03, Timer: 1, Base: captures(base...), Head: captures(head...)}); v.Outcome == significance.Fails {
			t.Errorf("%d copies a side: %+v", k, v)
		}
	}
}

// One against two captures of 32 and 320 units: each counts once, in the row and in its interval.
func TestIntervalIsOfTheRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	for _, stat := range []significance.Statistic{significance.Mean, significance.Median} {
		n := significance.Number{Stat: stat, Tolerance: 0.05, Timer: 1, Base: captures(series(rng, 64, 1, 0.01)),
			Head: captures(series(rng, 320, 1, 0.01), series(rng, 32, 1.25, 0.01))}
		v := judge(n)
		if !(v.Low < v.Ratio && v.Ratio < v.High) || math.Abs(v.Ratio-1.125) > 0.01 || v.Replicated {
			t.Errorf("%v: %+v", stat, v)
		}
	}
}

// Launches drawn from 100 to 139 in each of 32 units are not exact: of comparisons of one commit at most 1.5 % fail a rule
// of +1 %. Where they are the same in every unit, one more is one more.
func TestCountsThatVary(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	draw := func() []float64 {
		v := make([]float64, 32)
		for i := range v {
			v[i] = float64(100 + rng.IntN(40))
		}
		return v
	}
	fails := 0
	const trials = 200
	for range trials {
		v := judge(significance.Number{Stat: significance.Median, Count: true, Tolerance: 0.01, Timer: 1, Base: captures(draw()), Head: captures(draw())})
		if v.Outcome == significance.Fails {
			fails++
		}
	}
	if fails > trials*3/200 {
		t.Errorf("%d of %d fail", fails, trials)
	}
	constant := func(v float64) []significance.Capture { return captures(slices.Repeat([]float64{v}, 12)) }
	v := judge(significance.Number{Count: true, Tolerance: 0.005, Base: constant(100), Head: constant(101)})
	if v.Outcome != significance.Fails || v.Class != comparison.Regressed || v.P != 0 || v.Level != 1 {
		t.Errorf("exact: %+v", v)
	}
	if v := judge(significance.Number{Count: true, Tolerance: 0.02, Base: constant(100), Head: constant(101)}); v.Outcome != significance.Holds {
		t.Errorf("within the rule: %+v", v)
	}
	if v := judge(significance.Number{Count: true, Tolerance: 0.02, Base: constant(100), Head: constant(100)}); v.Outcome != significance.Holds || v.Class != comparison.Same {
		t.Errorf("equal: %+v", v)
	}
}

// Kernels have no series. With 8 units of mean 100 and 108 and s = 2 on each side, the standard error of ln is
// √(0.02²/8 + (2/108)²/8), Welch's degrees of freedom follow, and the interval is d ± t(0.95) of it.
func TestKernelsBySummary(t *testing.T) {
	one := func(mean float64, n int) []significance.Capture {
		return []significance.Capture{{Value: mean, N: n, SD: 2}}
	}
	v := judge(significance.Number{Tolerance: 0.05, Base: one(100, 8), Head: one(108, 8)})
	vb, vh := 0.02*0.02/8, 4./108/108/8
	df := (vb + vh) * (vb + vh) / (vb*vb/7 + vh*vh/7)
	half := student.Quantile(0.05, df) * math.Sqrt(vb+vh)
	near(t, "low", v.Low, 1.08*math.Exp(-half), 1e-12)
	near(t, "high", v.High, 1.08*math.Exp(half), 1e-12)
	near(t, "p", v.P, student.Tail((math.Log(1.08)-math.Log(1.05))/math.Sqrt(vb+vh), df), 1e-12)
	if v := judge(significance.Number{Tolerance: 0.05, Base: one(100, 7), Head: one(160, 7)}); v.Outcome != significance.Undecided || v.Code != comparison.TooFewUnits {
		t.Errorf("7 units: %+v", v)
	}
	// Of kernels that did not change and vary by 10 %, 5 % at most fail with 8 units, before any adjustment and floor.
	rng := rand.New(rand.NewPCG(8, 8))
	fails := 0
	const trials = 500
	for range trials {
		side := func() []significance.Capture {
			u := series(rng, 8, 1, 0.1)
			return []significance.Capture{{Value: mean(u), N: 8, SD: significance.Deviation(u)}}
		}
		if v := judge(significance.Number{Tolerance: 0.0001, Floor: 0.0001, Base: side(), Head: side()}); v.Outcome == significance.Fails {
			fails++
		}
	}
	if share := float64(fails) / trials; share > most(0.05, trials) {
		t.Errorf("%.1f %% fail", 100*share)
	}
}

// A percentile needs five units beyond it, and keeps to the floor that was measured: of 20 comparisons of one commit, 9
// failed p99 +5 % with a floor of 90 %.
func TestTails(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	n := significance.Number{Stat: significance.P99, Tolerance: 0.05, Timer: 1, Base: captures(series(rng, 64, 1, 0.1)), Head: captures(series(rng, 64, 1.5, 0.1))}
	if v := judge(n); v.Outcome != significance.Undecided || v.Code != comparison.TooFewUnits || v.Resolution != 0 {
		t.Errorf("p99 of 64 units: %+v", v)
	}
	for stat, size := range map[significance.Statistic]int{significance.P90: 64, significance.P99: 500} {
		fails, floored, found, trials := 0, 0, 0, 10
		if longtest.On() {
			trials = 40
		}
		for range trials {
			b, h := captures(series(rng, size, 1, 0.1)), captures(series(rng, size, 1, 0.1))
			if judge(significance.Number{Stat: stat, Tolerance: 0.05, Timer: 1, Base: b, Head: h}).Outcome == significance.Fails {
				fails++
			}
			h = captures(series(rng, size, 1.4, 0.1))
			if judge(significance.Number{Stat: stat, Tolerance: 0.05, Timer: 1, Base: b, Head: h}).Outcome == significance.Fails {
				found++
			}
			if judge(significance.Number{Stat: stat, Tolerance: 0.05, Timer: 1, Floor: 0.9, Base: b, Head: h}).Outcome == significance.Fails {
				floored++
			}
		}
		if fails > max(1, trials/20) || floored > 0 || found < trials*9/10 {
			t.Errorf("%v of %d units: %d false fails, %d with a floor of 90 %%, +40 %% found %d times of %d", stat, size, fails, floored, found, trials)
		}
	}
	for n, want := range map[int]significance.Statistic{49: 0, 50: significance.P90, 499: significance.P90, 500: significance.P99} {
		if got, ok := significance.Tail(n); got != want || ok != (want != 0) {
			t.Errorf("tail of %d units: %v", n, got)
		}
	}
}

// A rule stricter than 3 % is tested at its own tolerance, and what fails it is regressed. At a change of exactly the rule,
// 5 % fail at most.
func TestRulesOwnTolerance(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	side := func(factor, sd float64) []significance.Capture {
		var list []significance.Capture
		for range 3 {
			list = append(list, significance.Capture{Value: 1e6 * factor * math.Exp(sd*rng.NormFloat64()), N: 100})
		}
		return list
	}
	if v := judge(significance.Number{Tolerance: 0.01, Timer: 1, Base: side(1, 0.001), Head: side(1.02, 0.001)}); v.Outcome != significance.Fails || v.Class != comparison.Regressed || v.P > 0.05 {
		t.Errorf("+2 %% against +1 %%: %+v", v)
	}
	const trials = 800
	fails := 0
	for range trials {
		if judge(significance.Number{Tolerance: 0.03, Timer: 1, Base: side(1, 0.004), Head: side(1.03, 0.004)}).Outcome == significance.Fails {
			fails++
		}
	}
	if share := float64(fails) / trials; share > most(0.05, trials) {
		t.Errorf("at the rule itself %.1f %% fail", 100*share)
	}
	// +10 % within a rule of 30 %: it is slower, and that is allowed.
	if v := judge(significance.Number{Tolerance: 0.3, Timer: 1, Base: side(1, 0.001), Head: side(1.1, 0.001)}); v.Outcome != significance.Holds || v.Class != comparison.Regressed {
		t.Errorf("+10 %% against +30 %%: %+v", v)
	}
}

// A calibration of two captures with a standard deviation of 0.44 % makes a floor of 21.9 %, but its own noise says that few
// captures settle a change of 6 %: not 70.
func TestNeedFromTheCalibration(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	n := significance.Number{Tolerance: 0.03, Timer: 1, History: &significance.History{S2: 0.0044 * 0.0044, DF: 1},
		Base: captures(series(rng, 64, 1, 0.005)), Head: captures(series(rng, 64, 1.06, 0.005))}
	v := judge(n)
	near(t, "floor", v.Floor, significance.Floor(0.0044, 1), 1e-12)
	if v.Outcome != significance.Undecided || v.Need < 2 || v.Need > 3 {
		t.Errorf("%+v", v)
	}
}

// Units of 100, 101, 102 and 150, 151, 152: Welch's t interval of ln around the ratio of the medians, whose standard error
// is √(π/2) that of the mean. They lie apart by 150/102. Below three units nothing is said; what varies by more than it
// changed does not fail; and what is within the rule passes, with what would have failed.
func TestFewUnits(t *testing.T) {
	b, h := []float64{100, 102, 101}, []float64{151, 150, 152}
	n := significance.Number{Stat: significance.Median, Tolerance: 0.03, Timer: 1e-9, Base: captures(b), Head: captures(h)}
	v := judge(n)
	if v.Outcome != significance.Fails || v.Class != comparison.Regressed {
		t.Errorf("3 units, +50 %%: %+v", v)
	}
	squares := func(v ...float64) (s float64) {
		m := (math.Log(v[0]) + math.Log(v[1]) + math.Log(v[2])) / 3
		for _, x := range v {
			s += (math.Log(x) - m) * (math.Log(x) - m)
		}
		return s
	}
	vb, vh := squares(b...)/2/3, squares(h...)/2/3
	df := (vb + vh) * (vb + vh) / (vb*vb/2 + vh*vh/2)
	se := math.Sqrt(math.Pi/2) * math.Sqrt(vb+vh)
	near(t, "low", v.Low, 151./101*math.Exp(-student.Quantile(0.05, df)*se), 1e-12)
	near(t, "high", v.High, 151./101*math.Exp(student.Quantile(0.05, df)*se), 1e-12)
	near(t, "level", v.Level, 0.9, 1e-12)
	near(t, "p", v.P, student.Tail(math.Log(151./101)/se, df), 1e-12)
	swapped := n
	swapped.Base, swapped.Head = n.Head, n.Base
	if v := judge(swapped); v.Outcome != significance.Holds || v.Class != comparison.Improved {
		t.Errorf("faster: %+v", v)
	}
	n.Base, n.Head = captures(b[:2]), captures(h[:2])
	if v := judge(n); v.Outcome != significance.Undecided || v.Code != comparison.TooFewUnits {
		t.Errorf("2 units: %+v", v)
	}
	n.Base, n.Head = captures(b), captures([]float64{112, 111, 113})
	if v := judge(n); v.Outcome != significance.Fails {
		t.Errorf("+10 %%: %+v", v)
	}
	n.Head = captures([]float64{112, 104, 113}) // not apart by more than 3 %
	if v := judge(n); v.Outcome != significance.Undecided || v.Code != comparison.TooFewUnits {
		t.Errorf("+11 %%, not apart: %+v", v)
	}
	n.Head = captures([]float64{101, 102.5, 100})
	if v := judge(n); v.Outcome != significance.Holds || v.Class != comparison.Same {
		t.Errorf("no change: %+v", v)
	}
	n.Head = captures([]float64{101, 142, 70}) // the same median, and anything may be behind it
	if v := judge(n); v.Outcome != significance.Holds || !v.Loose || !(v.Resolution > 0.3) {
		t.Errorf("no change to be seen: %+v", v)
	}
}

// What cannot be known is no pass: units that vary by half hide a loss of 20 %.
func TestWideIntervalIsNoPass(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	v := judge(significance.Number{Tolerance: 0.05, Timer: 1, Base: captures(series(rng, 16, 1, 0.5)), Head: captures(series(rng, 16, 1, 0.5))})
	if v.Outcome != significance.Undecided || v.Code != comparison.WideInterval || v.High < 1.1 || v.Resolution < 0.15 {
		t.Errorf("%+v", v)
	}
	quiet := judge(significance.Number{Tolerance: 0.05, Timer: 1, Base: captures(series(rng, 64, 1, 0.01)), Head: captures(series(rng, 64, 1, 0.01))})
	if quiet.Outcome != significance.Holds || quiet.Class != comparison.Same || quiet.Resolution < 0.05 || quiet.Resolution > 0.06 {
		t.Errorf("quiet: %+v", quiet)
	}
	// The resolution is what it says: a loss of a little more fails, a little less does not.
	for _, c := range []struct {
		extra float64
		want  bool
	}{{0.001, true}, {-0.001, false}} {
		b := series(rng, 64, 1, 0.01)
		var h []float64
		for i := range b {
			h = append(h, b[len(b)-1-i])
		}
		n := significance.Number{Tolerance: 0.05, Timer: 1, Base: captures(b), Head: captures(h)}
		resolution := judge(n).Resolution
		for i := range h {
			h[i] *= 1 + resolution + c.extra
		}
		if got := judge(n).Outcome == significance.Fails; got != c.want {
			t.Errorf("%+.1f %% beyond the resolution: fails %v", 100*c.extra, got)
		}
	}
}

// One of 64 steps takes 20 times as long: the mean is 30 % larger and the rest is the same. A warning, for one unit is an
// accident. Every eighth step taking three times as long is a property of the program: it fails.
func TestStalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	base := series(rng, 64, 1, 0.01)
	few, many := series(rng, 64, 1, 0.01), series(rng, 64, 1, 0.01)
	few[29] *= 20
	for i := 7; i < 64; i += 8 {
		many[i] *= 3
	}
	v := judge(significance.Number{Tolerance: 0.05, Timer: 1, Base: captures(base), Head: captures(few)})
	if v.Outcome != significance.Warns || !v.Few {
		t.Errorf("one of 64: %+v", v)
	}
	if v := judge(significance.Number{Tolerance: 0.05, Timer: 1, Base: captures(base), Head: captures(many)}); v.Outcome != significance.Fails {
		t.Errorf("every eighth: %+v", v)
	}
	// One of 15 steps of the base is cut short, and the head's are all a little longer: +7.8 % is that step's.
	short, whole := series(rng, 15, 1, 0.001), series(rng, 15, 1.01, 0.001)
	short[14] *= 0.05
	if v := judge(significance.Number{Tolerance: 0.05, Timer: 1, Base: captures(short), Head: captures(whole)}); v.Outcome != significance.Warns || !v.Few {
		t.Errorf("one of 15 cut short: %+v", v)
	}
	// Five of 39 steps take 1.8 times as long and one of them 2.1 times: +11 % is not what one stall did. It fails.
	base, slow := series(rng, 39, 1, 0.01), series(rng, 39, 1, 0.01)
	for _, i := range []int{7, 15, 23, 31} {
		slow[i] *= 1.8
	}
	slow[38] *= 2.1
	if v := judge(significance.Number{Tolerance: 0.05, Timer: 1, Base: captures(base), Head: captures(slow)}); v.Outcome != significance.Fails {
		t.Errorf("five of 39: %+v", v)
	}
}

// One of 23 steps is 1.7 steps longer and another one 0.57: +9.9 %, a third of it in the second. It comes back, so it is
// not an accident, and two steps are too few to be certain: undecided. If the second is 0.2 longer, less than a quarter of
// the first, the first alone carries the mean (+8.3 %, without it +0.9 %): a warning.
func TestAnOutlierThatComesBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 2))
	base := series(rng, 23, 1, 0.0005)
	for _, c := range []struct {
		second float64
		want   significance.Outcome
	}{{0.57, significance.Undecided}, {0.2, significance.Warns}} {
		head := series(rng, 23, 1, 0.0005)
		head[1] *= 2.7
		head[2] *= 1 + c.second
		v := judge(significance.Number{Tolerance: 0.05, Timer: 1e-6, Tie: significance.TieNumber, Base: captures(base), Head: captures(head)})
		if v.Outcome != c.want {
			t.Errorf("second %.2f: %+v", c.second, v)
		}
	}
}

// More than a quarter of the units take more than twice the median.
func TestTwoLengths(t *testing.T) {
	for _, c := range []struct {
		units []float64
		want  bool
	}{{[]float64{10, 230, 10, 230, 10, 230, 10}, true}, {[]float64{10, 10, 10, 30}, false}, {[]float64{10, 19, 10, 19, 10}, false}, {nil, false}} {
		if got := significance.TwoLengths(c.units); got != c.want {
			t.Errorf("%v: %v", c.units, got)
		}
	}
}

// Units that do not vary leave an interval as wide as the timer: 24 % more in every unit has regressed, 2 % more is
// within what the rule allows, and without a timer nothing is certain.
func TestSharesWithoutWidth(t *testing.T) {
	of := func(ratio, timer float64) significance.Verdict {
		return judge(significance.Number{Tolerance: 0.05, Timer: timer, Base: []significance.Capture{{Value: 500, N: 100}}, Head: []significance.Capture{{Value: 500 * ratio, N: 100}},
			Trimmed: ratio})
	}
	v := of(1.24, 0.001)
	if v.Class != comparison.Regressed || v.Outcome != significance.Fails {
		t.Errorf("%+v", v)
	}
	near(t, "low", v.Low, 1.24*math.Exp(-1.6448536269514722*0.001/500), 1e-9)
	if v := of(1.02, 0.001); v.Class != comparison.Same || v.Outcome != significance.Holds {
		t.Errorf("%+v", v)
	}
	if v := of(1.24, 0); v.Outcome != significance.Undecided || v.P != 1 {
		t.Errorf("%+v", v)
	}
}

// What fails has regressed, whatever the numbers; nothing panics, nothing is not finite.
func TestJudgeIsNeverWrongInItself(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 1))
	values := []float64{0, 1, 1e-9, 1e18, -1, math.NaN(), math.Inf(1), 5}
	for range longtest.N(300, 1000) {
		var numbers []significance.Number
		for range 1 + rng.IntN(4) {
			side := func() []significance.Capture {
				var list []significance.Capture
				for range rng.IntN(4) {
					c := significance.Capture{N: rng.IntN(20)}
					for range rng.IntN(14) {
						v := math.Exp(0.1 * rng.NormFloat64())
						if rng.IntN(40) == 0 {
							v = values[rng.IntN(len(values))]
						}
						c.Units = append(c.Units, v)
					}
					if rng.IntN(3) == 0 {
						c.Value, c.SD = values[rng.IntN(len(values))], rng.Float64()
					}
					list = append(list, c)
				}
				return list
			}
			n := significance.Number{Stat: []significance.Statistic{significance.Mean, significance.Median, significance.P90}[rng.IntN(3)], Base: side(), Head: side(),
				Tolerance: 0.1 * rng.Float64(), HigherBetter: rng.IntN(2) == 0, Count: rng.IntN(4) == 0, Tie: significance.Tie(rng.IntN(3)), Timer: float64(rng.IntN(2)) * 1e-3}
			if rng.IntN(3) == 0 {
				n.History = &significance.History{S2: 1e-4 * rng.Float64(), DF: float64(rng.IntN(4))}
			}
			numbers = append(numbers, n)
		}
		for i, v := range significance.Judge(numbers, significance.Options{Adjust: significance.Holm}) {
			if v.Outcome == significance.Fails && v.Class != comparison.Regressed || (v.Outcome == significance.Undecided) != (v.Code != "") {
				t.Fatalf("%+v\n%+v", numbers[i], v)
			}
			for _, x := range []float64{v.Ratio, v.Low, v.High, v.P, v.PAdjusted, v.Level, v.Resolution, v.Floor} {
				if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
					t.Fatalf("%+v\n%+v", numbers[i], v)
				}
			}
		}
	}
}

// Three captures a side that differ by 1 %, and a rule of +3 %: nothing fails that did not change, 97 % of that passes, and
// +5.5 % is found as often as the plan says.
func TestThreeCapturesASide(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 1))
	side := func(factor float64) []significance.Capture {
		var list []significance.Capture
		for range 3 {
			list = append(list, significance.Capture{Units: series(rng, 16, factor*math.Exp(0.01*rng.NormFloat64()), 0.01)})
		}
		return list
	}
	const trials = 600
	var null, found [4]int
	for range trials {
		null[judge(significance.Number{Tolerance: 0.03, Timer: 1, Base: side(1), Head: side(1)}).Outcome]++
		found[judge(significance.Number{Tolerance: 0.03, Timer: 1, Base: side(1), Head: side(1.055)}).Outcome]++
	}
	// Between captures 1 %, and 1 %/√16 of the mean of 16 units.
	sd := math.Hypot(0.01, 0.0025)
	plan := significance.Plan{Captures: 3, SD: sd, Tau: math.Log1p(0.03), Alpha: 0.05}.Power(math.Log1p(0.055))
	t.Logf("no change: %v of %d, +5.5 %%: %v; the plan says %.1f %%", null, trials, found, 100*plan)
	if null[significance.Fails] > 3 || null[significance.Holds] < trials*97/100 {
		t.Errorf("no change: %v", null)
	}
	if share := float64(found[significance.Fails]) / trials; math.Abs(share-plan) > 0.05 {
		t.Errorf("+5.5 %% is found in %.1f %%, the plan says %.1f %%", 100*share, 100*plan)
	}
}
