package pairing_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/internal/difftest"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

type runs = map[string]float64

// layers is a step of six kernels with 20 runs in all, and half the first of the steps.
func layers() (whole, half runs) {
	whole = runs{"gemm_a": 6, "gemm_b": 4, "flash": 4, "norm": 4, "rope": 1, "sample": 1}
	half = runs{"gemm_a": 3, "gemm_b": 2, "flash": 2, "norm": 2}
	return whole, half
}

func without(r runs, name, instead string) runs {
	out := maps.Clone(r)
	delete(out, name)
	if instead != "" {
		out[instead] = r[name]
	}
	return out
}

func chosen(t *testing.T, base, head []*report.Report) *pairing.Sides {
	t.Helper()
	x := pairing.New(side.NewCaptures(base), side.NewCaptures(head), pairing.Options{Policy: policy.Default()})
	if !x.Check() {
		t.Fatalf("nothing to compare: %+v", x.Found().Reasons)
	}
	return x
}

// pairs are the matched kinds as "base/head", with a "-" for none, and "~ name" of the kind whose work one does.
func pairs(x *pairing.Sides) string {
	var list []string
	for _, k := range x.Kinds {
		name := func(s *side.Side, row []int) string {
			if row == nil {
				return "-"
			}
			return s.Captures[0].Kinds[row[0]].Kind.Phase
		}
		text := name(x.Base, k.Base) + "/" + name(x.Head, k.Head)
		if k.Like != nil {
			text += " ~ " + k.Like.Name.Phase
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// Steps that only their kernels name are matched by these: with the smallest or the largest kernel renamed, in another
// order, half a step is another kind, and a step with one kernel more is a variant of the step.
func TestKindsAreMatchedByTheirWork(t *testing.T) {
	whole, half := layers()
	kind := func(phase string, units int64, time float64, signature string, r runs) difftest.Kind {
		return difftest.Kind{Phase: phase, Units: units, Time: time, Signature: signature, Kernels: r}
	}
	base := difftest.Kinds(kind("step", 40, 20e6, "aaaaaa", whole), kind("step:bbbbbb", 20, 10e6, "bbbbbb", half))
	more := maps.Clone(whole)
	more["log"] = 1
	for name, c := range map[string]struct {
		head *report.Report
		want string
	}{
		"equal": {base, "step/step, step:bbbbbb/step:bbbbbb"},
		"smallest renamed": {difftest.Kinds(kind("step", 40, 20e6, "cccccc", without(whole, "rope", "rope_v2")),
			kind("step:bbbbbb", 20, 10e6, "bbbbbb", half)), "step/step, step:bbbbbb/step:bbbbbb"},
		"largest renamed, both": {difftest.Kinds(kind("step", 40, 20e6, "cccccc", without(whole, "gemm_a", "gemm_x")),
			kind("step:dddddd", 20, 10e6, "dddddd", without(half, "gemm_a", "gemm_x"))), "step/step, step:bbbbbb/step:dddddd"},
		"the other is the main one": {difftest.Kinds(kind("step", 50, 10e6, "dddddd", without(half, "norm", "norm_v2")),
			kind("step:eeeeee", 10, 20e6, "eeeeee", without(whole, "rope", ""))), "step/step:eeeeee, step:bbbbbb/step"},
		"one more": {difftest.Kinds(kind("step", 40, 20e6, "aaaaaa", whole), kind("step:ffffff", 4, 21e6, "ffffff", more),
			kind("step:bbbbbb", 20, 10e6, "bbbbbb", half)), "step/step, step:bbbbbb/step:bbbbbb, -/step:ffffff ~ step"},
		"no half": {difftest.Kinds(kind("step", 60, 20e6, "aaaaaa", whole)), "step/step, step:bbbbbb/-"},
	} {
		x := chosen(t, []*report.Report{base}, []*report.Report{c.head})
		if got := pairs(x); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		back := chosen(t, []*report.Report{c.head}, []*report.Report{base})
		for i := range x.Kinds { // the same pairs the other way round
			k := x.Kinds[i]
			found := false
			for _, o := range back.Kinds {
				found = found || (k.Base == nil) == (o.Head == nil) && (k.Head == nil) == (o.Base == nil) &&
					(k.Base == nil || k.Base[0] == o.Head[0]) && (k.Head == nil || k.Head[0] == o.Base[0])
			}
			if !found {
				t.Errorf("%s: %+v has no mirror", name, k)
			}
		}
	}
}

// A step cut into two is not two steps: what does two thirds of a step's work has no price of its own.
func TestPartsOfAStepAreNoSteps(t *testing.T) {
	whole, _ := layers()
	kind := func(phase, signature string, r runs) difftest.Kind {
		return difftest.Kind{Phase: phase, Units: 40, Time: 20e6, Signature: signature, Kernels: r}
	}
	base := difftest.Kinds(kind("step", "aaaaaa", whole))
	cut := difftest.Kinds(kind("step", "aaaaaa", whole), kind("step:999999", "999999", runs{"gemm_a": 6, "gemm_b": 4, "flash": 4}))
	if got := pairs(chosen(t, []*report.Report{base}, []*report.Report{cut})); got != "step/step, -/step:999999" {
		t.Error(got)
	}
}

// A step without its smallest kernels is a variant of the step, and no counterpart of two thirds of one: priced as such, a
// capture with more of these two thirds would take longer for the same work.
func TestAVariantIsNoCounterpartOfAPart(t *testing.T) {
	whole, _ := layers()
	kind := func(phase, signature string, units int64, ms float64, r runs) difftest.Kind {
		return difftest.Kind{Phase: phase, Units: units, Time: ms * 1e6, Signature: signature, Kernels: r}
	}
	base := difftest.Kinds(kind("step", "aaaaaa", 40, 20, whole), kind("step:999999", "999999", 4, 19, without(whole, "rope", "")))
	cut := difftest.Kinds(kind("step", "aaaaaa", 24, 20, whole), kind("step:888888", "888888", 20, 14, runs{"gemm_a": 6, "gemm_b": 4, "flash": 2}))
	if got := pairs(chosen(t, []*report.Report{base}, []*report.Report{cut})); got != "step/step, step:999999/- ~ step, -/step:888888" {
		t.Error(got)
	}
	if got := pairs(chosen(t, []*report.Report{cut}, []*report.Report{base})); got != "step/step, step:888888/-, -/step:999999 ~ step" {
		t.Error(got)
	}
}

// Kinds that markers name are of one phase and size, whatever else they share.
func TestMarkersTellKindsApart(t *testing.T) {
	whole, _ := layers()
	kind := func(batch int64, signature string) difftest.Kind {
		return difftest.Kind{Phase: "decode", Batch: batch, Units: 10, Time: 1e6, Signature: signature, Kernels: whole}
	}
	x := chosen(t, []*report.Report{difftest.Kinds(kind(32, "aaaaaa"), kind(16, "aaaaaa"))},
		[]*report.Report{difftest.Kinds(kind(16, "bbbbbb"), kind(8, "aaaaaa"))})
	var both []int64
	for i := range x.Kinds {
		if x.Kinds[i].Both() {
			both = append(both, x.Kinds[i].Name.Batch)
		}
	}
	if len(both) != 1 || both[0] != 16 || x.Kind.Batch != 16 || len(x.Kinds) != 3 {
		t.Errorf("matched %v of %d kinds, compared %v", both, len(x.Kinds), x.Kind)
	}
}

// series lists the units of a report made by hand in this order of its kinds.
func series(r *report.Report, kinds ...int64) *report.Report {
	var list []report.UnitPoint
	for i, k := range kinds {
		list = append(list, report.UnitPoint{Number: int64(i), Group: k, Signature: r.Unit.Groups[k].Signature, Start: int64(i) * 1e6, Duration: 1e6})
	}
	r.Unit.Series = report.NewUnitSeries(list)
	return r
}

// With every kernel replaced, kinds are told by the places of their units. Where other units have the places, or another
// number of units ran, nothing tells them.
func TestReplacedKindsAreMatchedByTheirPlaces(t *testing.T) {
	whole, half := layers()
	replaced := func(r runs) runs {
		out := runs{}
		for name, n := range r {
			out["new_"+name] = 3 * n // equally many of unknown category would be the same work
		}
		return out
	}
	kinds := func(of func(r runs) runs, first, second string) *report.Report {
		return difftest.Kinds(difftest.Kind{Phase: "step", Units: 6, Time: 20e6, Signature: first, Kernels: of(whole)},
			difftest.Kind{Phase: "step:" + second, Units: 2, Time: 10e6, Signature: second, Kernels: of(half)})
	}
	base := series(kinds(maps.Clone, "aaaaaa", "bbbbbb"), 0, 0, 0, 1, 0, 0, 0, 1)
	for name, c := range map[string]struct {
		head []int64
		want string
	}{
		"same places":   {[]int64{0, 0, 0, 1, 0, 0, 0, 1}, "step/step, step:bbbbbb/step:dddddd"},
		"other places":  {[]int64{1, 0, 0, 0, 0, 1, 0, 0}, "step/step:dddddd, step:bbbbbb/-, -/step"},
		"one unit more": {[]int64{0, 0, 0, 1, 0, 0, 0, 1, 0}, "step/step:dddddd, step:bbbbbb/-, -/step"},
	} {
		head := series(kinds(replaced, "cccccc", "dddddd"), c.head...)
		if got := pairs(chosen(t, []*report.Report{base}, []*report.Report{head})); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// One kind of a side does nearly the work of another one there, and the other side runs only that, by other kernels.
func TestAVariantIsToldByItsOwnSide(t *testing.T) {
	whole, _ := layers()
	base := difftest.Kinds(difftest.Kind{Phase: "step", Units: 40, Time: 20e6, Signature: "aaaaaa", Kernels: runs{"split": 60}})
	head := difftest.Kinds(difftest.Kind{Phase: "step", Units: 36, Time: 20e6, Signature: "bbbbbb", Kernels: whole},
		difftest.Kind{Phase: "step:cccccc", Units: 4, Time: 19e6, Signature: "cccccc", Kernels: without(whole, "rope", "")})
	if got := pairs(chosen(t, []*report.Report{base}, []*report.Report{head})); got != "step/step, -/step:cccccc ~ step" {
		t.Error(got)
	}
}

// Twice the layers are other work, even under markers of one name. One kernel that became twelve of its name is not, nor is
// one that became three others.
func TestMoreOfTheSameIsOtherWork(t *testing.T) {
	whole, _ := layers()
	twice, split := runs{}, maps.Clone(whole)
	for name, n := range whole {
		twice[name] = 2 * n
	}
	split["gemm_a"] *= 12
	three := without(whole, "gemm_a", "part_1")
	three["part_2"], three["part_3"] = 6, 6
	for name, c := range map[string]struct {
		head runs
		same bool
	}{"equal": {whole, true}, "twice the layers": {twice, false}, "one kernel split": {split, true}, "one replaced by three": {three, true}} {
		kinds := func(r runs, signature string) []*report.Report {
			k := difftest.Kinds(difftest.Kind{Phase: "step", Units: 40, Time: 20e6, Signature: signature, Kernels: r})
			k.Unit.Kind, k.Unit.Name = "nvtx", "Step #"
			return []*report.Report{k}
		}
		for _, sides := range [][2][]*report.Report{{kinds(whole, "aaaaaa"), kinds(c.head, "bbbbbb")}, {kinds(c.head, "bbbbbb"), kinds(whole, "aaaaaa")}} {
			x := chosen(t, sides[0], sides[1])
			x.Work()
			if found := x.Found(); found.Comparable != c.same {
				t.Errorf("%s: comparable %v, reasons %+v", name, found.Comparable, found.Reasons)
			}
		}
	}
}
