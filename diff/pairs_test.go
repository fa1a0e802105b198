package diff_test

import (
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// All of what TestPairsOfEdits, TestLadders and TestFigures draw a sample of:
//
//	go test ./diff -run 'TestPairsOfEdits|TestLadders|TestFigures' -timeout 0 -v -args -long

// severity orders verdicts by how loud they are.
func severity(c *comparison.Comparison) int {
	return slices.Index([]comparison.Verdict{comparison.Pass, comparison.Warn, comparison.Inconclusive, comparison.Fail}, c.Verdict)
}

// tried compares, and makes a panic an error of the test that says where.
func tried(t *testing.T, what string, base, head *report.Report) (c *comparison.Comparison) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: panic: %v\n%s", what, p, debug.Stack())
		}
	}()
	c, err := diff.Compare(one(base), one(head), diff.Options{})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return nil
	}
	return c
}

// edit is one of those whose pairs are tried, by strength: 1, 3.
type pairedEdit struct {
	name string
	harm bool // slower, the more the stronger
	edit func(s *subject, x float64) mutant.Edit
}

// pairedEdits are all edits of the mutator. The unit of ns is a hundredth of the step.
func pairedEdits() []pairedEdit {
	all := mutant.On{}
	kernel := func(s *subject, n int) string {
		names := biggest(s.base[0])
		return names[min(n, len(names)-1)]
	}
	return []pairedEdit{
		{"largest kernel", true, func(s *subject, x float64) mutant.Edit { return mutant.ScaleKernels(all, kernel(s, 0), 1+0.3*x) }},
		{"third kernel", true, func(s *subject, x float64) mutant.Edit { return mutant.ScaleKernels(all, kernel(s, 2), 1+0.5*x) }},
		{"all kernels", true, func(_ *subject, x float64) mutant.Edit { return mutant.ScaleKernels(all, "", 1+0.1*x) }},
		{"drift", true, func(_ *subject, x float64) mutant.Edit { return mutant.Drift(1 + 0.2*x) }},
		{"launch calls", true, func(_ *subject, x float64) mutant.Edit { return mutant.Launches(all, 1+x) }},
		{"stall", true, func(s *subject, x float64) mutant.Edit { return mutant.Stall(all, 10*x*s.hundredth()) }},
		{"stall each 7th", true, func(s *subject, x float64) mutant.Edit { return mutant.Stall(mutant.On{Every: 7}, 50*x*s.hundredth()) }},
		{"new sync", true, func(s *subject, x float64) mutant.Edit { return mutant.Sync(all, 5*x*s.hundredth()) }},
		{"new copy", true, func(s *subject, x float64) mutant.Edit { return mutant.Copy(all, true, 5*x*s.hundredth()) }},
		{"new kernels", true, func(s *subject, x float64) mutant.Edit { return mutant.Extra(all, 3, loggingKernel, 5*x*s.hundredth()) }},
		{"new kernel once", false, func(s *subject, x float64) mutant.Edit {
			return mutant.Extra(mutant.On{Once: true}, 1, loggingKernel, x*s.hundredth())
		}},
		{"renamed", false, func(s *subject, _ float64) mutant.Edit { return mutant.Rename(kernel(s, 0), "another_kernel") }},
		{"fused", false, func(s *subject, _ float64) mutant.Edit { return mutant.Fuse(all, s.pair[0], s.pair[1], 1) }},
		{"half of the steps halved", false, func(*subject, float64) mutant.Edit { return mutant.Halve(mutant.On{Every: 2}) }},
		{"steps dropped", false, func(*subject, float64) mutant.Edit { return mutant.Drop(mutant.On{Every: 3}) }},
		{"events lost", false, func(_ *subject, x float64) mutant.Edit { return mutant.Lose(200/int(x), 9, false) }},
		{"longer recording", false, func(*subject, float64) mutant.Edit { return mutant.Repeat(all) }},
		{"noise", false, func(_ *subject, x float64) mutant.Edit { return mutant.Noise(0.003*x, 5) }},
		{"one rank", true, func(_ *subject, x float64) mutant.Edit { return mutant.Collectives(1, 1+x) }},
	}
}

// hundredth of a step, ns.
func (s *subject) hundredth() float64 {
	m := report.NewIndex(s.base[0]).Metric("unit.time", nil)
	if m == nil || m.Summary == nil {
		return 10_000
	}
	return m.Summary.Mean / 100
}

// fewSteps of a kind are too few for a verdict on what varies.
const fewSteps = 8

// longCaptures are all shared captures and testdata whose units the mutator finds too, or those that -subjects names.
func longCaptures(t *testing.T) []*subject {
	t.Helper()
	named := func(name string) bool {
		return *subjectsOf == "" || slices.Contains(strings.Split(*subjectsOf, ","), strings.TrimSuffix(name, ".sqlite"))
	}
	var list []*subject
	for _, r := range mutant.Recipes() {
		if !named(r.Name) {
			continue
		}
		c, err := r.Capture(t.TempDir(), 1)
		if err != nil {
			t.Fatal(err)
		}
		s := &subject{name: r.Name, capture: c, pair: c.Pair()}
		s.base = one(s.head(t, "base", nil))
		list = append(list, s)
	}
	for _, dir := range []string{"../testdata", "../../shared/traces", "../../shared/traces/ranks"} {
		files, err := filepath.Glob(dir + "/*.sqlite")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if !named(filepath.Base(path)) {
				continue
			}
			c, err := mutant.Read(path)
			if err == nil {
				err = c.FindUnits()
			}
			if err != nil {
				continue // no units to edit
			}
			s := &subject{name: filepath.Base(path), capture: c, pair: c.Pair()}
			s.base = one(s.head(t, "base", nil))
			if u := &s.base[0].Unit; len(biggest(s.base[0])) == 0 || !slices.ContainsFunc(u.Groups, func(g report.UnitGroup) bool { return g.Count >= fewSteps }) {
				continue // hidden kernels, or explain finds no step in what the mutator cuts
			}
			list = append(list, s)
		}
	}
	return list
}

// shortSubjects are one synthetic and one real capture, where that is there.
func shortSubjects(t *testing.T) []*subject {
	t.Helper()
	r := mutant.Recipes()[1]
	c, err := r.Capture(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	list := []*subject{{name: r.Name, capture: c, base: []*report.Report{mutantReport(t, c, nil)}, pair: c.Pair()}}
	if c := realCapture(t, "nsysai_healthy_1pct"); c != nil {
		list = append(list, &subject{name: "nsysai_healthy_1pct", capture: c, base: []*report.Report{mutantReport(t, c, nil)}, pair: c.Pair()})
	}
	return list
}

// TestPairsOfEdits makes every two edits at once, weak and strong, and looks from both sides: no panic; the stronger harm
// is not judged milder, but for a drift that leaves it open; the way back says the opposite, but for a loss that stands on
// its certain parts; and what is faster does not fail.
func TestPairsOfEdits(t *testing.T) {
	t.Parallel()
	subjects, step := shortSubjects(t), 41
	if longtest.On() {
		subjects, step = longCaptures(t), 1
	}
	edits, tried2, impossible, i := pairedEdits(), 0, 0, 0
	for a := range edits {
		for b := a; b < len(edits); b++ {
			for _, s := range subjects {
				if i++; i%step != 0 {
					continue
				}
				if !pairOfEdits(t, s, &edits[a], &edits[b]) {
					impossible++
					continue
				}
				tried2++
			}
		}
	}
	t.Logf("%d pairs of edits, %d of them not possible", tried2+impossible, impossible)
}

// pairOfEdits tries one pair; false where the capture has nothing to edit that way.
func pairOfEdits(t *testing.T, s *subject, a, b *pairedEdit) bool {
	t.Helper()
	what := s.name + ", " + a.name + " and " + b.name
	base := s.base[0]
	var before *comparison.Comparison
	var work float64
	for _, x := range []float64{1, 3} {
		list := []mutant.Edit{a.edit(s, x), b.edit(s, x)}
		if a == b {
			list = list[:1]
		}
		m, err := s.capture.Mutate(list...)
		if err != nil {
			return false
		}
		at := fmt.Sprintf("%s at %g", what, x)
		head := s.head(t, fmt.Sprintf("pair %s, %s at %g", a.name, b.name, x), list)
		there, back := tried(t, at, base, head), tried(t, at+", back", head, base)
		if there == nil || back == nil {
			return true
		}
		// The kind that is attributed is the one that the verdict stands on, which need not be the same on the way back.
		parts := strings.Contains(failing(there)+failing(back), "by the parts that changed for certain") // which is asked of harm alone
		if !parts && there.Attribution.Kind == back.Attribution.Kind && len(there.Primary) == len(back.Primary) && !slices.ContainsFunc(there.Primary, func(r comparison.Row) bool {
			return r.Base == nil || r.Head == nil || r.Delta == nil
		}) {
			mirrored(titled{t, at}, ofUnit(there), ofUnit(back))
		}
		if a.harm && b.harm {
			if m.Truth.Work > 1.01 && back.Verdict == comparison.Fail {
				t.Errorf("%s: faster by %.1f %%, and fails: %s", at, 100*(1-1/m.Truth.Work), failing(back))
			}
			drifts := (a.name == "drift" || b.name == "drift") && drifting(there) // a stronger one leaves more open
			if before != nil && m.Truth.Work > work && severity(there) < severity(before) && !drifts {
				t.Errorf("%s: %+.1f %% is %s (%s), where %+.1f %% was %s", at, 100*(m.Truth.Work-1), there.Verdict, there.Cause, 100*(work-1), before.Verdict)
			}
			before, work = there, m.Truth.Work
		}
	}
	return true
}

// head is the report of a mutant, cut as the base is.
func (s *subject) head(t *testing.T, name string, edits []mutant.Edit) *report.Report {
	t.Helper()
	f := &figureSubject{T: t, subject: *s}
	f.keep()
	return f.report(name, func() ([]mutant.Edit, error) { return edits, nil })
}

// ofUnit leaves out the base's work at the head's prices, which has no way back.
func ofUnit(c *comparison.Comparison) *comparison.Comparison {
	own := *c
	own.Primary = slices.DeleteFunc(slices.Clone(c.Primary), func(r comparison.Row) bool { return r.Metric == comparison.MetricWork })
	if c.Answer.Metric == comparison.MetricWork {
		own.Answer = comparison.Answer{}
	}
	return &own
}

// failing names the gates that fail.
func failing(c *comparison.Comparison) string {
	var list []string
	for i := range c.Gates {
		if g := &c.Gates[i]; g.CountsAs == comparison.Fail {
			list = append(list, g.Metric+"{"+g.Labels.String()+"} "+g.Reason)
		}
	}
	return strings.Join(list, "; ")
}

// drifting says that a gate is open because the work drifts.
func drifting(c *comparison.Comparison) bool {
	return slices.ContainsFunc(c.Gates, func(g comparison.Gate) bool { return g.Code == comparison.Trend })
}

// titled puts a name before errors.
type titled struct {
	*testing.T
	name string
}

func (n titled) Errorf(format string, args ...any) {
	n.T.Helper()
	n.T.Errorf(n.name+": "+format, args...)
}

// TestLadders makes stalls in every step from +50 % to +800 % of it, and slower kernels alike: each is judged as hard as
// the one before, from the first on a failure; the way back does not fail.
func TestLadders(t *testing.T) {
	t.Parallel()
	subjects := shortSubjects(t)
	rungs := []float64{0.5, 4, 8}
	if longtest.On() {
		subjects, rungs = longCaptures(t), []float64{0.5, 1, 2, 4, 8}
	}
	for _, s := range subjects {
		for _, way := range []struct {
			name        string
			none, first float64
			edit        func(x float64) mutant.Edit
		}{
			{"stall", 0, 50 * s.hundredth(), func(x float64) mutant.Edit { return mutant.Stall(mutant.On{}, x) }},
			{"kernels", 1, 1.5, func(x float64) mutant.Edit { return mutant.ScaleKernels(mutant.On{}, "", x) }},
		} {
			worst := 0
			for _, rung := range rungs {
				edit, truth, err := s.capture.Sized(1+rung, way.none, way.first, way.edit)
				if err != nil {
					continue // no strength does it
				}
				head := s.head(t, fmt.Sprintf("ladder %s at %g", way.name, rung), []mutant.Edit{edit})
				at := fmt.Sprintf("%s, %s %+.0f %%", s.name, way.name, 100*(truth.Work-1))
				there, back := tried(t, at, s.base[0], head), tried(t, at+", back", head, s.base[0])
				if there == nil || back == nil {
					continue
				}
				if severity(there) < worst {
					t.Errorf("%s is %s (%s): milder than before", at, there.Verdict, there.Cause)
				}
				worst = max(worst, severity(there))
				if there.Verdict != comparison.Fail {
					t.Errorf("%s: %s, %s %v", at, there.Verdict, there.Cause, there.Reasons)
				}
				if back.Verdict == comparison.Fail {
					t.Errorf("%s, back: fails: %s", at, failing(back))
				}
			}
		}
	}
}
