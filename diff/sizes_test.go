package diff_test

import (
	"math"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff/comparison"
)

// launched is a kernel of a step: blocks of 128 threads, and µs that it takes.
type launched struct{ blocks, us int64 }

// steps of two kernels, a stencil and a norm; step i has the i-th of their launches, over and over.
func launchedSteps(t *testing.T, steps ...[2]launched) *report.Report {
	t.Helper()
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "python")
	at := int64(1_000_000)
	for i := range 24 {
		for k, l := range steps[i%len(steps)] {
			th.Launch([]string{"stencil", "norm"}[k], at-900, at-500,
				tracetest.Kernel{Start: at, End: at + 1000*l.us, Grid: [3]int64{l.blocks, 1, 1}})
			at += 1000*l.us + 1000
		}
	}
	return reportOfFile(t, b.WriteTB(t), analyze.Options{})
}

// Steps of a stencil of 64 blocks and 400 µs, and a norm of 8 blocks and 100 µs: 80 and 20 % of the compute time.
// Where a launch of more threads takes longer and has most of that time, the problem is another one. With the norm
// at 400 µs it has 20 % of the base's time and 50 % of the head's, 35 % on average: the head is slower by 300 of
// 502 µs.
func TestProblemsOfAnotherSize(t *testing.T) {
	stencil, norm := launched{64, 400}, launched{8, 100}
	base := launchedSteps(t, [2]launched{stencil, norm})
	for _, x := range []struct {
		what    string
		head    [][2]launched
		verdict comparison.Verdict
		says    string
	}{
		{"twice the batch", [][2]launched{{{128, 800}, {16, 200}}}, comparison.Inconclusive,
			"kernel stencil is launched with 2 times the threads (8,192 → 16,384), and kernels like it take 100 % of"},
		{"half the batch", [][2]launched{{{32, 200}, {4, 50}}}, comparison.Inconclusive, "with 0.5 times the threads (8,192 → 4,096)"},
		{"twice the sequence", [][2]launched{{{128, 1600}, {16, 200}}}, comparison.Inconclusive, "another size"},
		// 80 % of the base's time and 800 of 900 µs on the head, 88.9 %.
		{"a larger stencil", [][2]launched{{{128, 800}, norm}}, comparison.Inconclusive, "kernels like it take 84.4 % of"},
		// 12 of the 23 steps, the last of 24 being cut: (12 · 16,384 + 11 · 8,192) / 23.
		{"half of the steps of another problem", [][2]launched{{stencil, norm}, {{128, 800}, {16, 200}}}, comparison.Inconclusive,
			"with 1.52 times the threads (8,192 → 12,466)"},
		{"a larger norm", [][2]launched{{stencil, {32, 400}}}, comparison.Fail, "norm +300.0 % at #0: grid 8 → 32"},
		// (12 · 8 + 11 · 56) / 23 = 31 blocks.
		{"the norm in launches of two sizes", [][2]launched{{stencil, {8, 100}}, {stencil, {56, 700}}}, comparison.Fail, "launches of 3.87 times the threads"},
		{"a stencil tuned for the worse", [][2]launched{{{128, 480}, norm}}, comparison.Fail, "stencil +20.0 % at #1: grid 64 → 128"},
		{"a stencil of less threads that takes longer", [][2]launched{{{32, 480}, norm}}, comparison.Fail, "grid 64 → 32"},
		{"a larger stencil, and far slower", [][2]launched{{{128, 1700}, norm}}, comparison.Fail, "grid 64 → 128"},
		{"slower", [][2]launched{{{64, 480}, {8, 120}}}, comparison.Fail, "+19.9 % slower"}, // 502 → 602 µs
		{"3 % more threads, 20 % slower", [][2]launched{{{66, 480}, {8, 120}}}, comparison.Fail, "slower"},
	} {
		head := launchedSteps(t, x.head...)
		c := ofReports(t, base, head)
		if c.Verdict != x.verdict || !strings.Contains(c.Cause, x.says) || c.Has(comparison.DifferentWork) != (x.verdict == comparison.Inconclusive) {
			t.Errorf("%s: %s: %s", x.what, c.Verdict, c.Cause)
		}
		if back := ofReports(t, head, base); back.Has(comparison.DifferentWork) != c.Has(comparison.DifferentWork) {
			t.Errorf("%s, back: %s: %s", x.what, back.Verdict, back.Cause)
		}
	}
}

// Grids and times of a real capture's kernels by a factor and its powers, as another batch has them, are another
// problem; the same times with the base's grids, smaller ones, or hardly larger ones are judged as slower.
func TestOtherSizesOfRealCaptures(t *testing.T) {
	t.Parallel()
	names := longtest.Some([]string{"nsightful_power_iter", "cs336zx_2_7B_clean", "cs336_hoponga_exp2024_2", "cs336_jsun_4ae893",
		"cs336_tianshi_a", "nsysai_mfu_2gpu_before", "rodinia_report3_native"}, 1)
	unlike, n := 0, 0
	for _, name := range names {
		c := realCapture(t, name)
		if c == nil {
			t.Skip("the real captures are not here")
		}
		base := mutantReport(t, c, nil)
		judged := func(edit mutant.Edit) *comparison.Comparison {
			return ofReports(t, base, mutantReport(t, c, []mutant.Edit{edit, mutant.Noise(0.002, 12)}))
		}
		for _, size := range longtest.Some([]float64{1.25, 2, 4}, 2) {
			for _, power := range longtest.Some([]float64{0.5, 1, 2}, 2) {
				n++
				x := judged(mutant.Resize(mutant.On{}, "", size, math.Pow(size, power)))
				if x.Verdict == comparison.Inconclusive && x.Has(comparison.DifferentWork) {
					unlike++
				} else {
					t.Logf("%s, grids × %g, times × its power %g: %s: %s", name, size, power, x.Verdict, x.Cause)
				}
			}
		}
		for _, factor := range longtest.Some([]float64{1.05, 1.1, 1.2}, 2) {
			slower := judged(mutant.ScaleKernels(mutant.On{}, "", factor))
			for _, size := range []float64{0.5, 1.02} {
				x := judged(mutant.Resize(mutant.On{}, "", size, factor))
				if x.Verdict != slower.Verdict || slower.Has(comparison.DifferentWork) {
					t.Errorf("%s, %g times as long, grids × %g: %s, and %s with the base's grids: %s", name, factor, size, x.Verdict,
						slower.Verdict, x.Cause)
				}
			}
		}
	}
	// A report lists sizes of its slowest device alone, which another size can move.
	if t.Logf("%d of %d problems of another size are told", unlike, n); n-unlike > n/50 {
		t.Error("more than 2 % are not")
	}
}

// Three kernels of a step in launches of twice the threads, each in the same times: three with one ratio are a problem
// of another size, and not the same capture again, whose numbers are all equal.
func TestAnotherSizeInTheSameTimesIsNotIdentical(t *testing.T) {
	capture := func(blocks int64) *report.Report {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "python")
		at := int64(1_000_000)
		for range 24 {
			for _, name := range []string{"stencil", "norm", "gemm"} {
				th.Launch(name, at-900, at-500, tracetest.Kernel{Start: at, End: at + 100_000, Grid: [3]int64{blocks, 1, 1}})
				at += 101_000
			}
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	c := ofReports(t, capture(8), capture(16))
	if c.Verdict != comparison.Inconclusive || c.Identical || c.Comparable || !c.Has(comparison.DifferentWork) {
		t.Errorf("%s, identical %v, comparable %v: %s", c.Verdict, c.Identical, c.Comparable, c.Cause)
	}
	if c := ofReports(t, capture(8), capture(8)); !c.Identical || c.Has(comparison.DifferentWork) {
		t.Errorf("itself: %s", c.Cause)
	}
}
