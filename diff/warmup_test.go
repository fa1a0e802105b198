package diff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff/comparison"
)

// TestWarmupOfOneSide: 20 steps of six kernels of 10 µs, of which the first four take twice as long on the head, as
// while an autotuner tries tiles. The other steps are equal, and 8 % longer where all are.
func TestWarmupOfOneSide(t *testing.T) {
	trace := func(slower float64, warm int) *report.Report {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "python")
		at := int64(1_000_000)
		for i := range 20 {
			ns := int64(10_000 * slower)
			if i < warm {
				ns *= 2
			}
			for k := range 6 {
				th.Launch(fmt.Sprintf("kernel%d", k), at-900, at-500, tracetest.Kernel{Start: at, End: at + ns})
				at += ns + 1000
			}
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	base, warm, slow := trace(1, 0), trace(1, 4), trace(1.08, 4)
	const note = ": the first 4 steps are warm-up, 1.9 times as long as the others, and not compared"
	for _, x := range []struct {
		what       string
		base, head *report.Report
		verdict    comparison.Verdict
		note       string
	}{
		{"warm-up of the head", base, warm, comparison.Pass, "head" + note},
		{"warm-up of the base", warm, base, comparison.Pass, "base" + note},
		{"warm-up of both", warm, warm, comparison.Inconclusive, ""}, // the same capture
		{"slower beside it", base, slow, comparison.Fail, "head" + note},
		{"slower after it", warm, trace(1.08, 0), comparison.Fail, "base" + note},
		{"slower, both", warm, slow, comparison.Fail, ""},
	} {
		c := ofReports(t, x.base, x.head)
		none := x.note == "" && strings.Contains(c.Cause, "warm-up")
		if c.Verdict != x.verdict || !strings.Contains(c.Cause, x.note) || none {
			t.Errorf("%s: %s: %s", x.what, c.Verdict, c.Cause)
		}
	}
}

// TestNothingButWarmup: of the base's 20 steps of 60 µs and gaps, the first four take twice as long and are
// warm-up. A head of four such steps, of which the last is cut, may hold nothing else. Eight of them are more than
// warm-up was, and four that take three times as long take longer.
func TestNothingButWarmup(t *testing.T) {
	trace := func(steps, warm int, times int64) *report.Report {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "python")
		at := int64(1_000_000)
		for i := range steps {
			ns := int64(10_000)
			if i < warm {
				ns *= times
			}
			first := at
			for k := range 6 {
				th.Launch(fmt.Sprintf("kernel%d", k), at-900, at-500, tracetest.Kernel{Start: at, End: at + ns})
				at += ns + 1000
			}
			th.Range(fmt.Sprintf("ProfilerStep#%d", i), first-1000, at-1000)
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	base := trace(20, 4, 2)
	const says = "head has 3 steps, which take as long as the 4 of warm-up that base begins with"
	for _, x := range []struct {
		what string
		head *report.Report
		warm bool
	}{
		{"warm-up alone", trace(4, 4, 2), true}, {"more than that", trace(8, 8, 2), false}, {"slower than that", trace(4, 4, 3), false},
		{"steps after it", trace(4, 0, 1), false},
	} {
		c := ofReports(t, base, x.head)
		if strings.Contains(c.Cause, says) != x.warm || x.warm != c.Has(comparison.TooFewUnits) || x.warm && c.Verdict != comparison.Inconclusive {
			t.Errorf("%s: %s: %s %+v", x.what, c.Verdict, c.Cause, c.Reasons)
		}
		if back := ofReports(t, x.head, base); strings.Contains(back.Cause, "base has 3 steps") != x.warm {
			t.Errorf("%s, back: %s: %s", x.what, back.Verdict, back.Cause)
		}
	}
}

// TestWarmupInRealCaptures: the same in captures of 9 to 46 steps: the first three steps take twice as long.
func TestWarmupInRealCaptures(t *testing.T) {
	t.Parallel()
	for _, name := range longtest.Some(append(slices.Clone(steadyCaptures), "nsightful_power_iter"), 3) {
		if name == "nsysai_h100_2gpu_1s" {
			continue // copies take its time
		}
		c := realCapture(t, name)
		if c == nil {
			t.Skip("the real captures are not here")
		}
		warm := mutant.ScaleKernels(mutant.On{Kind: c.Kinds()[0].Name, First: 3}, "", 2)
		base := []*report.Report{mutantReport(t, c, []mutant.Edit{mutant.Noise(0.002, 11)})}
		head := []*report.Report{mutantReport(t, c, []mutant.Edit{warm, mutant.Noise(0.002, 12)})}
		sides := [][]*report.Report{base, head}
		for i, slow := range []string{"head: the first ", "base: the first "} {
			c := compareSides(t, sides[i], sides[1-i])
			if c.Verdict != comparison.Pass || !strings.Contains(c.Cause, slow) {
				t.Errorf("%s: %s: %s", name, c.Verdict, c.Cause)
			}
		}
	}
}
