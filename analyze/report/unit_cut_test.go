package report

import (
	"strings"
	"testing"
)

// cutting is a report of units that start at kernel a, of 100 ns, and would be of 200 if they started at b.
func cutting() *Report {
	r := small()
	source := Source{Tables: []string{"CUPTI_ACTIVITY_KIND_KERNEL"}, Columns: []string{}}
	unitTime := func(ns float64) Metric {
		return Metric{ID: "unit.time", Labels: Labels{}, Value: value(ns), Unit: Nanoseconds, Better: Lower, Assume: Noisy, Scale: PerUnit, Lifecycle: Stable, Source: source}
	}
	section := func(note string) Section {
		return Section{ID: "unit", Title: "Unit of work", Status: OK, Notes: []string{note}, Tables: []Table{}, Charts: []Chart{}}
	}
	a, b := UnitAnchor{Names: []string{"a"}, Count: 4, Used: true}, UnitAnchor{Names: []string{"b"}, Count: 2}
	r.Unit = Unit{Kind: "kernel", Name: "a()", Why: "at a", Groups: []UnitGroup{{ID: "step"}}, Anchors: []UnitAnchor{a, b}, Cuts: []UnitCut{{
		Anchor: b, Name: "b()", Why: "at b", Groups: []UnitGroup{{ID: "step"}, {ID: "step#2"}}, Metrics: []Metric{unitTime(200)}, Section: section("cut at b"),
		Source: Source{Tables: []string{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"}, Columns: []string{"start"}, Rows: 9},
	}}}
	r.Metrics = append(r.Metrics, unitTime(100))
	r.Sections = append(r.Sections, section("cut at a"))
	r.Findings = append(r.Findings, Finding{ID: "unit_idle", Severity: Low, Evidence: []MetricRef{{ID: "unit.time", Labels: Labels{}}}, Advice: []string{}, Doc: "unit"})
	r.Warnings = append(r.Warnings, Warning{Code: "few_units", Section: "unit"})
	return r
}

func TestCutAt(t *testing.T) {
	r := cutting()
	before := written(t, r)
	if same, ok := r.CutAt(&UnitAnchor{Names: []string{"a"}}); !ok || same != r {
		t.Error("cut at the anchor that is used, a report is another")
	}
	for _, unknown := range []UnitAnchor{{Names: []string{"c"}}, {Names: []string{"b"}, Merged: true}, {Names: []string{"b"}, Families: true}, {Names: []string{"a", "b"}, Start: 1}} {
		if _, ok := r.CutAt(&unknown); ok {
			t.Errorf("there is a cut at %+v", unknown)
		}
	}
	c, ok := r.CutAt(&UnitAnchor{Names: []string{"b"}})
	if !ok {
		t.Fatal("there is no cut at b")
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	m := NewIndex(c).Metric("unit.time", nil)
	if m == nil || *m.Value != 200 || m.Source.Rows != 9 || len(m.Source.Tables) != 2 || len(c.Metrics) != 2 {
		t.Errorf("metrics %+v", c.Metrics)
	}
	if c.Unit.Name != "b()" || len(c.Unit.Groups) != 2 || c.Unit.Used().Names[0] != "b" || len(c.Unit.Anchors) != 2 || c.Unit.Cuts != nil {
		t.Errorf("unit %+v", c.Unit)
	}
	if len(c.Sections) != 2 || c.Sections[1].Notes[0] != "cut at b" || len(c.Findings) != 1 || len(c.Warnings) != 1 {
		t.Errorf("sections %+v, findings %+v, warnings %+v", c.Sections, c.Findings, c.Warnings)
	}
	if _, ok := c.CutAt(&UnitAnchor{Names: []string{"b"}}); !ok {
		t.Error("what is cut at b is not cut there")
	}
	if after := written(t, r); after != before {
		t.Error("the report that was cut is another")
	}
	read, err := Read(strings.NewReader(before))
	if err != nil {
		t.Fatal(err)
	}
	if again := written(t, read); again != before {
		t.Errorf("first:\n%s\nsecond:\n%s", before, again)
	}
}

func TestCutsAreChecked(t *testing.T) {
	for name, spoil := range map[string]func(r *Report){
		"an anchor that is not listed": func(r *Report) { r.Unit.Cuts[0].Anchor.Names = []string{"c"} },
		"another section":              func(r *Report) { r.Unit.Cuts[0].Section.ID = "idle" },
		"metrics are null":             func(r *Report) { r.Unit.Cuts[0].Metrics = nil },
		"no source":                    func(r *Report) { r.Unit.Cuts[0].Source.Tables = nil },
		"a metric twice":               func(r *Report) { c := &r.Unit.Cuts[0]; c.Metrics = append(c.Metrics, c.Metrics[0]) },
		"two anchors are used":         func(r *Report) { r.Unit.Anchors[1].Used = true },
		"an anchor without a kernel":   func(r *Report) { r.Unit.Anchors[1].Names = nil },
		"a start beyond the kernels":   func(r *Report) { r.Unit.Anchors[0].Start = 1 },
	} {
		r := cutting()
		spoil(r)
		if r.Validate() == nil {
			t.Errorf("%s: the report is valid", name)
		}
	}
}
