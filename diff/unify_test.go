package diff

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// cutReport is a report of units that start at the first of the anchors, with a number of kernels a unit for each of them.
func cutReport(name string, kernels map[string]int64, anchors ...string) *report.Report {
	r := &report.Report{Trace: report.Provenance{Name: name}, Unit: report.Unit{Kind: "kernel"}}
	groups := func(a string) []report.UnitGroup {
		return []report.UnitGroup{{ID: "step", Main: true, Kernels: kernels[a]}}
	}
	if strings.HasSuffix(anchors[0], "#") {
		r.Unit.Kind = "nvtx"
	}
	for i, a := range anchors {
		at := report.UnitAnchor{Names: []string{a}, Ranges: strings.HasSuffix(a, "#"), Used: i == 0}
		r.Unit.Anchors = append(r.Unit.Anchors, at)
		if i == 0 {
			r.Unit.Groups = groups(a)
			continue
		}
		r.Unit.Cuts = append(r.Unit.Cuts, report.UnitCut{Anchor: at, Groups: groups(a), Section: report.Section{ID: "unit"}})
	}
	table := report.Table{ID: "unit_kernels", Columns: []report.Column{{ID: "canonical", Kind: report.Name}}}
	for _, a := range anchors {
		table.Rows = append(table.Rows, []report.Cell{report.S(a)})
	}
	r.Sections = []report.Section{{ID: "unit", Tables: []report.Table{table}}}
	return r
}

// Of anchors that captures rank alike the first by name is taken.
func TestUnify(t *testing.T) {
	even := map[string]int64{"a": 20, "b": 20, "c": 20, "step #": 20, "pass #": 8}
	for name, c := range map[string]struct {
		base, head *report.Report
		want       string
	}{
		"the base's":            {cutReport("base", even, "a", "b", "c"), cutReport("head", even, "a", "b", "c"), "a"},
		"the head knows it":     {cutReport("base", even, "a", "b"), cutReport("head", even, "b", "a"), "a"},
		"ranked best":           {cutReport("base", even, "c", "b", "a"), cutReport("head", even, "b", "a", "c"), "b"},
		"the next common":       {cutReport("base", even, "a", "b"), cutReport("head", even, "c", "b"), "b"},
		"not half the units":    {cutReport("base", even, "a", "b"), cutReport("head", map[string]int64{"a": 30, "b": 20}, "a", "b"), "b"},
		"no better":             {cutReport("base", even, "a", "b"), cutReport("head", map[string]int64{"a": 30, "b": 30}, "a", "b"), "a"},
		"ranges beside kernels": {cutReport("base", even, "step #", "a"), cutReport("head", even, "b", "step #"), "step #"},
		"kernels beside ranges": {cutReport("base", even, "step #", "a"), cutReport("head", even, "a"), "a"},
		"other ranges":          {cutReport("base", even, "step #", "pass #", "a"), cutReport("head", even, "pass #", "step #", "a"), "pass #"},
		"ranges that both use": {cutReport("base", even, "step #", "a"),
			cutReport("head", map[string]int64{"step #": 40, "a": 20}, "step #", "a"), "step #"},
	} {
		for _, turned := range []bool{false, true} { // the same if the sides change places
			one, two := c.base, c.head
			if turned {
				one, two = two, one
			}
			b, h, apart := unify([]*report.Report{one}, []*report.Report{two})
			if apart != "" || len(b) != 1 || len(h) != 1 {
				t.Fatalf("%s: %d and %d reports, %s", name, len(b), len(h), apart)
			}
			for _, r := range append(b, h...) {
				if got := r.Unit.Used().Names[0]; got != c.want {
					t.Errorf("%s, turned %v: cut at %s, want %s", name, turned, got, c.want)
				}
			}
		}
	}
}

// Without a common anchor, the cuts are chosen whose units have about as many kernels: the base's second and the head's
// first, not half a step of the base and a whole one of the head.
func TestUnifyAnywhere(t *testing.T) {
	base := cutReport("base", map[string]int64{"a": 40, "b": 62}, "a", "b")
	head := cutReport("head", map[string]int64{"c": 62, "d": 59}, "c", "d")
	for _, turned := range []bool{false, true} {
		one, two, want := base, head, "b c"
		if turned {
			one, two, want = head, base, "c b"
		}
		b, h, _ := unify([]*report.Report{one}, []*report.Report{two})
		if got := b[0].Unit.Used().Names[0] + " " + h[0].Unit.Used().Names[0]; got != want {
			t.Errorf("turned %v: cut at %s, want %s", turned, got, want)
		}
	}
}

// Captures of models with 24 and 32 layers of 4 kernels have the layer in common, and are not compared by it, whether
// it starts at one kernel or at two: no capture has it for its unit.
func TestUnifyNotByLayers(t *testing.T) {
	for _, layer := range []string{"x", "y"} {
		base := cutReport("base", map[string]int64{"a": 100, "x": 4}, "a", "x")
		head := cutReport("head", map[string]int64{"b": 132, layer: 4}, "b", layer)
		if b, h, apart := unify([]*report.Report{base}, []*report.Report{head}); b[0] != base || h[0] != head || apart == "" {
			t.Errorf("cut at %s and %s", b[0].Unit.Used().Names, h[0].Unit.Used().Names)
		}
	}
}

// Where no anchor is common, each side keeps its unit, and the kernels that one lacks are named. Where a side has no
// anchor, since its units were found in another way, nothing is changed, and the ways are named.
func TestUnifyLeavesApart(t *testing.T) {
	even := map[string]int64{}
	base, head := cutReport("base.sqlite", even, "a", "b"), cutReport("head.sqlite", even, "c")
	b, h, apart := unify([]*report.Report{base}, []*report.Report{head})
	if b[0] != base || h[0] != head || !strings.Contains(apart, "head.sqlite have no a") {
		t.Errorf("%q", apart)
	}
	marked := &report.Report{Unit: report.Unit{Kind: "nvtx", Name: "step#N"}}
	b, h, apart = unify([]*report.Report{base}, []*report.Report{marked})
	if b[0] != base || h[0] != marked || !strings.Contains(apart, "found in the kernel sequence") || !strings.Contains(apart, "by the markers step#N") {
		t.Errorf("%q", apart)
	}
	for _, c := range []struct{ kind, name, way, unit string }{
		{"graph", "CUDA graph launch", "by CUDA graph launches: emit the same markers, or", "--unit graph"},
		{"nvtx", "run#N", "by the markers run#N: emit the same markers, or", "--unit kernel:REGEX"},
	} {
		other := &report.Report{Unit: report.Unit{Kind: c.kind, Name: c.name}}
		_, _, apart = unify([]*report.Report{marked}, []*report.Report{other})
		if !strings.Contains(apart, c.way) || !strings.Contains(apart, c.unit) {
			t.Errorf("%q, want %s, %s", apart, c.way, c.unit)
		}
	}
	for _, r := range []*report.Report{marked, {Unit: report.Unit{Kind: "none"}}} {
		if b, h, apart = unify([]*report.Report{marked}, []*report.Report{r}); b[0] != marked || h[0] != r || apart != "" {
			t.Errorf("%s: %q", r.Unit.Kind, apart)
		}
	}
}
