package diff_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff/comparison"
)

// steps200 are 200 steps that run kernels of these names, each for so many ns.
func steps200(of func(i int) (ns int64, names []string)) *tracetest.Builder {
	return someSteps(200, of)
}

func someSteps(n int, of func(i int) (ns int64, names []string)) *tracetest.Builder {
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "python")
	at := int64(1_000_000)
	for i := range n {
		ns, names := of(i)
		for _, name := range names {
			th.Launch(name, at-900, at-500, tracetest.Kernel{Start: at, End: at + ns})
			at += ns + 1000
		}
	}
	return b
}

// The first and the last fifth of the time of 200 steps. Where step i takes 100 + i µs, as when a cache fills, the
// first holds steps of 100 to 165 µs and the last those of 271 to 299: the middle ones differ by a factor of 2.2,
// ln 0.77, and those of the halves of the first by ln(150/117) = 0.25 a tenth of the time, of which there are 8
// between the windows. Where all steps of the second half take 180 µs, nothing changes inside the windows, and the
// last is slower. Where steps shrink in each half, the last window takes longer although they do. Where those of the
// second half run a third kernel, it is not the ramp alone: the answer names the other work.
func TestWindowsFarApartOfOneRun(t *testing.T) {
	for _, x := range []struct {
		what    string
		us      func(i int) int
		more    bool // kernels in the second half
		verdict comparison.Verdict
		ramp    bool
	}{
		{"a ramp", func(i int) int { return 100 + i }, false, comparison.Inconclusive, true},
		{"a step", func(i int) int { return 120 + 60*(i/100) }, false, comparison.Fail, false},
		{"two ramps down", func(i int) int { return 120 + 60*(i/100) - i%100/4 }, false, comparison.Fail, false},
		{"steady", func(i int) int { return 120 + i%7%3 }, false, comparison.Pass, false},
		{"a ramp of other work", func(i int) int { return 100 + i }, true, comparison.Inconclusive, false},
	} {
		b := steps200(func(i int) (ns int64, names []string) {
			names = []string{"gemm", "softmax"}
			if x.more && i >= 100 {
				names = append(names, "norm")
			}
			return int64(500 * x.us(i)), names
		})
		path, dir := b.WriteTB(t), t.TempDir()
		window := func(name string, from, to float64) *report.Report {
			out := filepath.Join(dir, name)
			tracetest.Window(t, path, out, from, to)
			return reportOfFile(t, out, analyze.Options{})
		}
		base, head := window("base.sqlite", 0, 0.2), window("head.sqlite", 0.8, 1)
		c := ofReports(t, base, head)
		if c.Verdict != x.verdict || strings.Contains(c.Cause, "steps change all along") != x.ramp || c.Has(comparison.Trend) != x.ramp {
			t.Errorf("%s: %s: %s", x.what, c.Verdict, c.Cause)
		}
		if back := ofReports(t, head, base); back.Has(comparison.Trend) != x.ramp {
			t.Errorf("%s, back: %s: %s", x.what, back.Verdict, back.Cause)
		}
	}
}

// Two captures of the same time of one session, as where a change was written into one: step i takes 100 + i µs in the
// base and 15 % more in the head. The head is 15 % longer, so its middle lies 7.5 % of the base's length later, in which
// the steps grow by more than 15 % at twice their rate of ln(250/150) = 0.51 a half. It is no ramp: the same steps differ.
func TestARampExplainsNoChangeOfTheSameTime(t *testing.T) {
	capture := func(content string, scale float64) *report.Report {
		b := steps200(func(i int) (int64, []string) {
			return int64(500 * scale * float64(100+i)), []string{"gemm", "softmax"}
		})
		return identified(reportOf(t, b, analyze.Options{}), content, "session")
	}
	base, head := capture("a", 1), capture("b", 1.15)
	if c := ofReports(t, base, head); c.Verdict != comparison.Fail || c.Has(comparison.Trend) {
		t.Errorf("%s: %s", c.Verdict, c.Cause)
	}
	if c := ofReports(t, head, base); c.Verdict != comparison.Pass || c.Has(comparison.Trend) {
		t.Errorf("back: %s: %s", c.Verdict, c.Cause)
	}
}

// The kernels of the first 60 of 200 steps take 500 µs and the others 100 µs, as where a program warms up: 220 in the
// mean. In another capture, of 150 steps, all take 100. The mean shows no change of the program, in either direction:
// nothing failed for certain, and nothing got faster for certain.
func TestADriftProvesNothingEitherWay(t *testing.T) {
	long := reportOf(t, steps200(func(i int) (int64, []string) {
		if i < 60 {
			return 500_000, []string{"gemm", "softmax"}
		}
		return 100_000, []string{"gemm", "softmax"}
	}), analyze.Options{})
	short := reportOf(t, someSteps(150, func(int) (int64, []string) { return 100_000, []string{"gemm", "softmax"} }), analyze.Options{})
	for _, x := range []struct {
		base, head *report.Report
		verdict    comparison.Verdict
	}{{short, long, comparison.Inconclusive}, {long, short, comparison.Pass}} {
		c := ofReports(t, x.base, x.head)
		row := c.Row("unit.time.mean")
		if c.Verdict != x.verdict || row.Class != comparison.Unsettled || row.Code != comparison.Trend {
			t.Errorf("%s, %s %s", c.Verdict, row.Class, row.Code)
		}
		for _, g := range c.Gates {
			if g.Metric == "unit.time.mean" && (g.ByParts || g.Class == comparison.Improved) {
				t.Errorf("%s by parts: %s", g.Class, g.Reason)
			}
		}
	}
}

// Of 1,200 steps every 40th takes 600 µs instead of 200, which is 2.5 %: the p99 is one of them, and grows by 200 %.
// The table of units lists 300, too few for a p99, and the series all of them. Captures of the same steps differ by
// nothing there.
func TestAFarTailOfMoreUnitsThanATableLists(t *testing.T) {
	t.Parallel()
	capture := func(seed uint64, slow bool) *report.Report {
		rng := rand.New(rand.NewPCG(seed, 1))
		return reportOf(t, someSteps(1200, func(i int) (int64, []string) {
			ns := int64(100_000 * (1 + 0.01*rng.NormFloat64()))
			if slow && i%40 == 7 {
				ns += 200_000
			}
			return ns, []string{"gemm", "softmax"}
		}), analyze.Options{})
	}
	base := capture(1, false)
	for _, x := range []struct {
		head  *report.Report
		class comparison.Class
		ratio float64
	}{{capture(2, true), comparison.Regressed, 3}, {capture(3, false), comparison.Same, 1}} {
		row := ofReports(t, base, x.head).Row("unit.time.p99")
		if row == nil || row.Class != x.class || math.Abs(*row.Ratio/x.ratio-1) > 0.05 {
			t.Errorf("%+v, want %s by a factor of %v", row, x.class, x.ratio)
		}
	}
}
