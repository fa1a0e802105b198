package report

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// What is compared stays: metrics but for their histograms, units, and the tables that a comparison reads. Two reports
// share labels and sources.
func TestLean(t *testing.T) {
	full := func() *Report {
		v := 5.0
		m := func(id string) Metric {
			return Metric{ID: id, Labels: Labels{"kernel": "gemm"}, Value: &v, Unit: Nanoseconds, Better: Lower, Assume: Noisy,
				Scale: Total, Histogram: &Histogram{Growth: 1.02}, Lifecycle: Stable,
				Source: Source{Tables: []string{"K"}, Columns: []string{"start"}, Rows: 3}}
		}
		table := func(id string) Table {
			return Table{ID: id, Columns: []Column{{ID: "kernel_name", Kind: Name}}, Rows: [][]Cell{{S("gemm")}}, TotalRows: 1}
		}
		r := &Report{Schema: SchemaID, Metrics: []Metric{m("a"), m("b")}, Sections: []Section{{ID: "kernels", Status: OK,
			Charts: []Chart{{ID: "c"}}, Tables: []Table{table("kernels"), table("other")}}}}
		r.Fill()
		return r
	}
	var l Lean
	a, b := full(), full()
	l.Compared(a)
	l.Compared(b)
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	want := full()
	for i := range want.Metrics {
		want.Metrics[i].Histogram = nil
	}
	if !reflect.DeepEqual(a.Metrics, want.Metrics) || !reflect.DeepEqual(b.Metrics, want.Metrics) {
		t.Errorf("%+v", a.Metrics)
	}
	if s := a.Sections[0]; len(s.Tables) != 1 || len(s.Charts) != 0 || !bytes.Equal(jsonOf(t, s.Tables), jsonOf(t, want.Sections[0].Tables[:1])) {
		t.Errorf("%+v", s)
	}
	if reflect.ValueOf(a.Metrics[1].Labels).Pointer() != reflect.ValueOf(b.Metrics[0].Labels).Pointer() ||
		&a.Metrics[0].Source.Tables[0] != &b.Metrics[1].Source.Tables[0] {
		t.Error("labels or sources are not shared")
	}
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
