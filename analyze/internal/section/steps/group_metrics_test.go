package steps_test

import (
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// Every metric of a kind of unit, and no other, says which kind it is of: without phase the main one, with a batch the one
// that its labels name, with a phase alone one of that phase. The log has iterations for units.
func TestMetricsNameTheirKindOfUnit(t *testing.T) {
	log := []analyze.Evidence{{Path: filepath.FromSlash("../../../../testdata/evidence/vllm.log")}}
	for path, opt := range map[string]analyze.Options{"../../../../testdata/serving.sqlite": {}, "": {Evidence: log}} {
		r := sectiontest.AnalyseFile(t, filepath.FromSlash(path), opt).Report
		groups, main := map[string]*report.UnitGroup{}, ""
		for i := range r.Unit.Groups {
			g := &r.Unit.Groups[i]
			if groups[g.ID] != nil || g.ID == "" {
				t.Errorf("%s: two kinds of unit are called %q", path, g.ID)
			}
			if groups[g.ID] = g; g.Main {
				if main != "" {
					t.Errorf("%s: %s and %s are both the main kind", path, main, g.ID)
				}
				main = g.ID
			}
		}
		if main == "" {
			t.Fatalf("%s: no kind of unit is the main one of %d", path, len(groups))
		}
		seen := map[string]bool{}
		for i := range r.Metrics {
			m := &r.Metrics[i]
			ofUnit := m.Scale == report.PerUnit || m.ID == "unit.count"
			if ofUnit != (m.Group != "") {
				t.Errorf("%s: %s{%s} is of kind %q", path, m.ID, m.Labels, m.Group)
			}
			if !ofUnit {
				continue
			}
			want := main
			if phase, ok := m.Labels["phase"]; ok {
				if want = phase; m.Labels["batch"] != "" {
					want += "/" + m.Labels["batch"]
				} else if m.Labels["tokens"] != "" {
					want += "/-"
				}
				if m.Labels["tokens"] != "" {
					want += "/" + m.Labels["tokens"]
				}
				if g := groups[m.Group]; g != nil && g.Phase == phase && len(m.Labels) == 1 {
					want = m.Group
				} else if g != nil && g.Phase == phase && m.Labels["batch"] == "" && m.Labels["tokens"] == "" {
					want = m.Group // of the phase's main kind, whatever its batch
				}
			}
			if m.Group != want {
				t.Errorf("%s: %s{%s} is of kind %q, want %q", path, m.ID, m.Labels, m.Group, want)
			}
			seen[m.Group] = true
		}
		if len(groups) < 2 || len(seen) < 2 {
			t.Errorf("%s: %d kinds of unit, %d with metrics: too few to tell them apart", path, len(groups), len(seen))
		}
	}
}
