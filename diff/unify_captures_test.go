package diff_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// edited is a capture that a test edits.
type edited struct {
	name    string
	capture *mutant.Capture
}

// toEdit are the synthetic captures of the kit, and after them those of the shared captures that are there.
func toEdit(t *testing.T, few int, shared ...string) (list []edited) {
	t.Helper()
	read := map[string]func() *mutant.Capture{}
	var names []string
	for _, r := range mutant.Recipes() {
		names = append(names, r.Name)
		read[r.Name] = func() *mutant.Capture {
			c, err := r.Capture(t.TempDir(), 1)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	for _, name := range shared {
		names = append(names, name)
		read[name] = func() *mutant.Capture { return realCapture(t, name) }
	}
	for _, name := range longtest.Some(names, few) {
		if c := read[name](); c != nil {
			list = append(list, edited{name, c})
		}
	}
	return list
}

// TestKernelOnAnotherStream moves the largest kernel, with -long each of the three largest, to a stream of its own,
// where it may take most of the time: the steps stay what they were, from both sides.
func TestKernelOnAnotherStream(t *testing.T) {
	t.Parallel()
	list := toEdit(t, 2,
		"cs336_tianshi_a",
		"cs336_hoponga_exp2024_2",
		"cs336zx_2_7B_clean",
		"nsysai_mfu_2gpu_before",
		"nsysai_h100_2gpu_1s",
	)
	for _, s := range list {
		base := mutantReport(t, s.capture, nil)
		for _, kernel := range biggest(base)[:longtest.N(1, 3)] {
			m, err := s.capture.Mutate(mutant.OtherStream(kernel))
			if err != nil {
				t.Fatal(err)
			}
			head := reportOfFile(t, m.WriteTB(t), analyze.Options{})
			for _, way := range [][2]*report.Report{{base, head}, {head, base}} {
				c := compareSides(t, []*report.Report{way[0]}, []*report.Report{way[1]})
				row := c.Row("unit.time.mean")
				if row == nil || row.Ratio == nil || math.Abs(*row.Ratio-1) > 1e-3 || c.Verdict == comparison.Fail {
					t.Errorf("%s, %s: %s, %+v: %s", s.name, kernel, c.Verdict, row, c.Cause)
				}
			}
		}
	}
}

// TestFirstKernelTwice launches the kernel at which the base's steps start once more in each step: right after itself,
// where a step was cut into a stub of one kernel and the rest, which takes as long as before; and in the middle, where
// it was cut into halves. The step's mean changes as the edit says, from both sides.
func TestFirstKernelTwice(t *testing.T) {
	t.Parallel()
	list := toEdit(t, 7,
		"cs336_hoponga_exp2024_2",
		"nsysai_healthy_1pct",
		"rodinia_report2_native",
		"cs336zx_2_7B_clean",
		"nsysai_h100_2gpu_1s",
	)
	pairs := 0
	for _, s := range list {
		base := mutantReport(t, s.capture, nil)
		if base.Unit.Kind != "kernel" {
			continue
		}
		kernels := report.NewIndex(base).Table("unit", "unit_kernels")
		var names []string
		for _, n := range base.Unit.Used().Names {
			for i := range kernels.Len() {
				if kernels.Str(i, "canonical") == n {
					names = append(names, mutant.Short(kernels.Str(i, "kernel_name")))
					break
				}
			}
		}
		if err := s.capture.Cut(names...); err != nil {
			t.Fatal(err)
		}
		for _, middle := range []bool{false, true} {
			m, err := s.capture.Mutate(mutant.Again(mutant.On{}, middle))
			if err != nil {
				t.Fatal(err)
			}
			head := reportOfFile(t, m.WriteTB(t), analyze.Options{})
			for _, way := range []struct {
				base, head *report.Report
				want       float64
			}{{base, head, m.Truth.Work}, {head, base, 1 / m.Truth.Work}} {
				c := compareSides(t, []*report.Report{way.base}, []*report.Report{way.head})
				row, got := c.Row("unit.time.mean"), math.NaN()
				if row != nil && row.Ratio != nil {
					got = *row.Ratio
				}
				if pairs++; !(math.Abs(got-way.want) < 0.005) {
					t.Errorf("%s, middle %v: the mean step changes by %.4f, want %.4f: %s",
						s.name, middle, got, way.want, c.Cause)
				}
			}
		}
	}
	if t.Logf("%d pairs", pairs); pairs < 12 { // of the three synthetic captures whose steps are in the kernel sequence
		t.Errorf("%d pairs are too few", pairs)
	}
}

// A training run names its 12 steps of 20 kernels and a last one of 5; without its ranges, steps are found in the
// kernel sequence, the last one not among them. Both captures get the same units, whichever is the base.
func TestRangesOfOneCapture(t *testing.T) {
	of := func(ranges bool) *report.Report {
		b := tracetest.New()
		th := b.Process(7, "python").Thread(7, "main")
		at := int64(1_000_000)
		for step := range 13 {
			n, start := 20, at
			if step == 12 {
				n = 5
			}
			for k := range n {
				th.Launch(fmt.Sprintf("kernel_%c", 'a'+k), at, at+2_000,
					tracetest.Kernel{Start: at + 3_000, End: at + 43_000, Place: tracetest.Place{Stream: 7}})
				at += 45_000
			}
			if ranges {
				th.Range(fmt.Sprint("train step ", step), start-500, at-500)
			}
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	named, bare := of(true), of(false)
	for _, way := range [][2]*report.Report{{named, bare}, {bare, named}} {
		c := compareReports(t, one(way[0]), one(way[1]), diff.Options{})
		if c.Unit.Kind != "kernel" || !c.Comparable || c.Unit.BaseN != c.Unit.HeadN || c.Verdict == comparison.Fail {
			t.Errorf("%s, %+v: %s", c.Verdict, c.Unit, c.Cause)
		}
	}
	if c := compareReports(t, one(named), one(of(true)), diff.Options{}); c.Unit.Kind != "nvtx" {
		t.Errorf("with ranges: %+v", c.Unit)
	}
}
