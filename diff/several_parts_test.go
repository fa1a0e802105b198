package diff_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Three captures a side of steps of 8 ms of kernels and 1, 2 or 3 ms in which the host keeps the GPU waiting. The head's
// kernels take 1 ms longer: 10 % of a step, which varies by 10 % from capture to capture, so that its own time tells
// nothing. The kernels do, of which captures differ by 0.1 %. Without that millisecond nothing fails.
func TestPartsOfSeveralCaptures(t *testing.T) {
	side := func(more int64) (list []*report.Report) {
		for i, wait := range []int64{2e6, 3e6, 1e6} {
			kernels := 8e6 + 8e3*int64(i) + more
			times := make([]float64, 16)
			numbers, compute, idle := make([]int64, 16), make([]int64, 16), make([]int64, 16)
			for k := range times {
				times[k] = float64(kernels + wait)
				numbers[k], compute[k], idle[k] = int64(k), kernels, wait
			}
			r := sample{times: times}.report()
			p := report.NewUnitParts("0", 0, numbers)
			p.Add(report.PartCompute, "gemm", compute)
			p.Add(report.PartIdle, "host", idle)
			r.Unit.Parts = append(r.Unit.Parts, p)
			list = append(list, r)
		}
		return list
	}
	c := compare(t, side(0), side(1e6), diff.Options{})
	if c.Verdict != comparison.Fail || !strings.Contains(failing(c), "kernels gemm +1 ms per unit") {
		t.Errorf("%s: %s; %+v", c.Verdict, failing(c), c.Parts)
	}
	for _, p := range c.Parts {
		if want := p.Kind == report.PartCompute; (p.Class == comparison.Regressed) != want {
			t.Errorf("%s %s is %s", p.Kind, p.Name, p.Class)
		}
	}
	if c := compare(t, side(0), side(0)[1:], diff.Options{}); c.Verdict == comparison.Fail {
		t.Errorf("nothing changed: %s", failing(c))
	}
}

// Every other step waits ten times as long as it works, and each seventh runs three kernels more, as long as the mean step:
// those are units of another kind, which no pair of steps shows, and the times of all steps vary too much to tell. The new
// kernels do not.
func TestPartsOfUnitsThatDoMore(t *testing.T) {
	recipes := mutant.Recipes()
	r := recipes[slices.IndexFunc(recipes, func(r mutant.Recipe) bool { return r.Name == "loop" })]
	c, err := r.Capture(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s := &figureSubject{T: t, subject: subject{name: r.Name, capture: c}, dir: t.TempDir()}
	s.subject.base = []*report.Report{mutantReport(t, c, nil)}
	waits := mutant.Stall(mutant.On{Every: 2}, 1000*s.hundredth())
	more := mutant.Extra(mutant.On{Every: 7}, 3, loggingKernel, 200*s.hundredth())
	base := s.report("base", func() ([]mutant.Edit, error) { return []mutant.Edit{waits, mutant.Noise(0.003, 1)}, nil })
	s.subject.base[0] = base
	head := s.report("head", func() ([]mutant.Edit, error) { return []mutant.Edit{waits, more, mutant.Noise(0.003, 2)}, nil })
	got := diffOf(t, base, head, diff.Options{})
	if w := got.Row(comparison.MetricWork); w == nil || w.Class != comparison.Unsettled {
		t.Fatalf("%+v", w)
	}
	if got.Verdict != comparison.Fail || !strings.Contains(failing(got), "logging_probe") || !strings.Contains(failing(got), "every 7th") {
		t.Errorf("%s: %s | %s", got.Verdict, failing(got), got.Cause)
	}
	if back := diffOf(t, head, base, diff.Options{}); back.Verdict == comparison.Fail {
		t.Errorf("back: %s", failing(back))
	}
}

// Steps of 2 ms: 1.2 ms of matrix products, 0.3, 0.25 and 0.15 ms of other kernels, 0.1 ms idle. In some steps of the head all
// kernels take 1.43 times as long: 1.9 · 0.43 = 0.817 ms more, 41 % of a step. In two of 15 that is 0.817 · 2/15 = 0.1089 ms a
// step, +5.4 %: it fails, though of its parts the matrix products alone stand apart by a tenth of a step, which are +3.4 %. One
// such step is an accident, and those that both sides have are no change.
func TestStepsThatStandApartByAllTheirKernels(t *testing.T) {
	of := func(slow ...int) *report.Report {
		names, parts := []string{"gemm", "attention", "norm", "act"}, make([][]int64, 4)
		numbers, idle, times := make([]int64, 15), make([]int64, 15), make([]float64, 15)
		for k := range times {
			numbers[k], idle[k] = int64(k), 100_000+100*int64(k%3)
			times[k] = float64(idle[k])
			for i, ns := range []int64{1_200_000, 300_000, 250_000, 150_000} {
				if slices.Contains(slow, k) {
					ns = ns * 143 / 100
				}
				parts[i] = append(parts[i], ns)
				times[k] += float64(ns)
			}
		}
		r := sample{times: times}.report()
		p := report.NewUnitParts("0", 0, numbers)
		for i, name := range names {
			p.Add(report.PartCompute, name, parts[i])
		}
		p.Add(report.PartIdle, "host", idle)
		r.Unit.Parts = append(r.Unit.Parts, p)
		return r
	}
	there, back := ofReports(t, of(), of(6, 13)), ofReports(t, of(6, 13), of())
	if there.Verdict != comparison.Fail || !strings.Contains(failing(there), "time +108.9 µs per unit, in 2 of 15 units") {
		t.Errorf("%s: %s | %s", there.Verdict, failing(there), there.Cause)
	}
	if back.Verdict != comparison.Pass {
		t.Errorf("back: %s: %s", back.Verdict, failing(back))
	}
	if one := ofReports(t, of(), of(6)); one.Verdict == comparison.Fail {
		t.Errorf("one step: %s", failing(one))
	}
	if same := ofReports(t, of(6, 13), of(3, 9)); same.Verdict != comparison.Pass {
		t.Errorf("on both sides: %s: %s", same.Verdict, failing(same))
	}
}

// The host keeps the GPU waiting for 0 to 300 µs of each step of 1 ms, and in two of 16 steps of the base for 1.4 ms more:
// 175 µs a step. The head lacks these two waits, has 60 µs in every step, and launches 15 times instead of 12. Its median is 10 µs
// later, which tells nothing; the mean is 124 µs lower, and the waits are gone for certain: the step got faster, and the launches
// are shown only. Where the waits are on both sides they fail.
func TestMoreLaunchesOfAStepThatItsPartsMakeFaster(t *testing.T) {
	of := func(n int, launches float64, more int64, slow ...int) *report.Report {
		numbers, compute, idle, times := make([]int64, n), make([]int64, n), make([]int64, n), make([]float64, n)
		for k := range times {
			numbers[k], compute[k], idle[k] = int64(k), 1_000_000, 20_000*int64(k*7%16)+more
			if slices.Contains(slow, k) {
				idle[k] += 1_400_000
			}
			times[k] = float64(compute[k] + idle[k])
		}
		r := sample{times: times, launches: slices.Repeat([]float64{launches}, n)}.report()
		p := report.NewUnitParts("0", 0, numbers)
		p.Add(report.PartCompute, "gemm", compute)
		p.Add(report.PartIdle, "host", idle)
		r.Unit.Parts = append(r.Unit.Parts, p)
		return r
	}
	c := ofReports(t, of(16, 12, 0, 5, 12), of(17, 15, 60_000))
	if p50 := c.Row("unit.time.p50"); p50.Class != comparison.Unsettled || math.Abs(*p50.Delta-10_000) > 1 {
		t.Fatalf("%+v", p50)
	}
	if c.Verdict == comparison.Fail || !strings.HasPrefix(c.Cause, "-9.3 % faster") {
		t.Errorf("%s: %s; %s", c.Verdict, failing(c), c.Cause)
	}
	if c := ofReports(t, of(16, 12, 0, 5, 12), of(17, 15, 60_000, 5, 12)); c.Verdict != comparison.Fail {
		t.Errorf("the waits are on both sides: %s: %+v", c.Verdict, c.Row("unit.time.p50"))
	}
}

// Two kernels have one name, at equal time: it says that the name is new, and there is nothing to look at, both ways. Where
// one of them takes 30 % longer it fails.
func TestTwoKernelsOfOneNewNameAreNothingToLookAt(t *testing.T) {
	checked := 0
	for _, s := range shortSubjects(t) {
		names := biggest(s.base[0])
		if len(names) < 3 {
			continue // all of its work has other names: not comparable
		}
		checked++
		both := mutant.Both(mutant.Rename(names[0], "another_kernel"), mutant.Rename(names[1], "another_kernel"))
		head := s.head(t, "two renamed", []mutant.Edit{both})
		for _, c := range []*comparison.Comparison{tried(t, s.name, s.base[0], head), tried(t, s.name+" back", head, s.base[0])} {
			if c.Verdict != comparison.Pass {
				t.Errorf("%s: %s: %s", s.name, c.Verdict, c.Cause)
			}
		}
		slower := s.head(t, "two renamed, slower", []mutant.Edit{mutant.ScaleKernels(mutant.On{}, names[0], 1.3), both})
		if c := tried(t, s.name, s.base[0], slower); c.Verdict != comparison.Fail {
			t.Errorf("%s, slower: %s: %s", s.name, c.Verdict, c.Cause)
		}
	}
	if checked == 0 {
		t.Error("no capture has three kernels")
	}
}

// The largest kernel has another name, at equal time in its place: one row that says so, and nothing to look at. That it takes
// 30 % longer, or that kernels are new beside it, fails as under its old name.
func TestARenamedKernelIsNothingToLookAt(t *testing.T) {
	t.Parallel()
	for _, s := range shortSubjects(t) {
		old := biggest(s.base[0])[0]
		rename := mutant.Rename(old, "another_kernel")
		c := tried(t, s.name, s.base[0], s.head(t, "renamed", []mutant.Edit{rename}))
		rows := 0
		for i := range c.Kernels {
			k := &c.Kernels[i]
			if k.HeadName == nil || *k.HeadName != "another_kernel" {
				continue
			}
			if rows++; k.BaseName == nil || k.Delta != 0 || !strings.HasPrefix(k.Note, "renamed") {
				t.Errorf("%s: %+v", s.name, k)
			}
		}
		for _, p := range c.Parts { // of the family that the kernel left, or of both names
			if p.Kind == report.PartCompute && (p.Delta != 0 || p.Base != p.Head || p.Class != comparison.Same || strings.HasPrefix(p.Name, "triton-jit")) {
				t.Errorf("%s: %+v", s.name, p)
			}
		}
		if c.Verdict != comparison.Pass || rows != 1 || !strings.Contains(c.Cause, "a kernel was renamed") {
			t.Errorf("%s: %s, %d rows: %s", s.name, c.Verdict, rows, c.Cause)
		}
		for name, more := range map[string]mutant.Edit{
			"slower": mutant.ScaleKernels(mutant.On{}, old, 1.3), "new": mutant.Extra(mutant.On{}, 3, loggingKernel, 5*s.hundredth()),
		} {
			if c := tried(t, s.name, s.base[0], s.head(t, "renamed "+name, []mutant.Edit{more, rename})); c.Verdict != comparison.Fail {
				t.Errorf("%s, %s: %s: %s", s.name, name, c.Verdict, c.Cause)
			}
		}
	}
}

// TestKernelsThatFillIdleTimeDoNotFail: in a capture whose steps wait for the host, a new kernel of 6 % of a step runs
// in that time. By the rows, the steps take less than 1 % more.
func TestKernelsThatFillIdleTimeDoNotFail(t *testing.T) {
	t.Parallel()
	c := realCapture(t, "nsysai_mfu_2gpu_after")
	if c == nil {
		t.Skip("the real capture is not here")
	}
	s := &subject{name: "nsysai_mfu_2gpu_after", capture: c, base: []*report.Report{mutantReport(t, c, nil)}}
	edit := mutant.Extra(mutant.On{}, 1, loggingKernel, 6*s.hundredth())
	m, err := c.Mutate(edit)
	if err != nil || m.Truth.Mean > 1.01 {
		t.Fatalf("%v, %+v", err, m.Truth)
	}
	head := s.head(t, "new kernel", []mutant.Edit{edit})
	if c := tried(t, s.name, s.base[0], head); c.Verdict == comparison.Fail {
		t.Errorf("%s: %s", failing(c), c.Cause)
	}
}
