package report

import (
	"reflect"
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

// Names that metrics share are written once, and what is written comes back.
func TestCutMetrics(t *testing.T) {
	v := 5.0
	metric := func(id string, l Labels) Metric {
		return Metric{ID: id, Labels: l, Value: &v, Unit: "ns", Better: Lower, Assume: Noisy, Scale: PerUnit, Lifecycle: Stable, N: 3}
	}
	list := CutMetrics{metric("time", Labels{"kernel": "a<1>"}), metric("count", Labels{"kernel": "a<1>"}), metric("time", Labels{}),
		metric("time", Labels{"kernel": "b", "phase": "decode"})}
	list[0].Summary = &Summary{N: 3, Min: 4, P50: 5, P90: 6, P99: 6.5, Max: 7, Mean: 5.25, Stddev: 1}
	list[1].Group, list[1].Value = "decode", nil
	list.Order()
	b, err := list.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const def = `"unit":"ns","better":"lower","assume":"noisy","scale":"per_unit","lifecycle":"stable"`
	const want = `{"texts":["a<1>","decode","b"],"tables":[{"id":"count",` + def + `,"labels":["kernel"],"rows":[[0,1,3,null]]},` +
		`{"id":"time",` + def + `,"labels":[],"rows":[[-1,3,5]]},` +
		`{"id":"time",` + def + `,"labels":["kernel"],"rows":[[0,-1,3,5,3,4,5,6,6.5,7,5.25,1]]},` +
		`{"id":"time",` + def + `,"labels":["kernel","phase"],"rows":[[2,1,-1,3,5]]}]}`
	if got := strings.TrimSpace(string(b)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var again CutMetrics
	if err := again.UnmarshalJSON(b); err != nil || !reflect.DeepEqual(again, list) {
		t.Errorf("%+v, %v", again, err)
	}
	for _, bad := range []string{"[0]", "[0,-1,3]", "[1,-1,3,5]", "[-2,-1,3,5]", "[0,-1,null,5]", "[0,7,3,5]", "[0,-1,3,5,6]"} {
		text := `{"texts":["a"],"tables":[{"id":"time","labels":["kernel"],"rows":[` + bad + `]}]}`
		if err := new(CutMetrics).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("row %s is read", bad)
		}
	}
}
