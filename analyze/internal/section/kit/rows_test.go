package kit

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// Rows are filled by the ids of their columns; what does not fit the table is a panic, which fails the section.
func TestRows(t *testing.T) {
	x := &Table{Table: report.Table{ID: "t", Columns: []report.Column{TextCol("a", "A"), CountCol("b", "B"), FloatCol("c", "C", report.Ratio)}}}
	x.Row(Text("a", "one"), Int("b", 1), Float("c", 0.5))
	x.Row(Maybe("c", nil), Text("a", "two"), Int("b", 2))
	x.Partial(Int("b", 3))
	want := [][]report.Cell{
		{report.S("one"), report.I(1), report.F(0.5)}, {report.S("two"), report.I(2), report.Null}, {report.Null, report.I(3), report.Null},
	}
	for i, w := range want {
		if got := x.Rows[i]; !slices.EqualFunc(got, w, report.Cell.Equal) {
			t.Errorf("row %d is %v, want %v", i, got, w)
		}
	}
	for name, wrong := range map[string]func(){
		"missing":  func() { x.Row(Text("a", "one"), Int("b", 1)) },
		"unknown":  func() { x.Partial(Int("z", 1)) },
		"twice":    func() { x.Row(Text("a", "one"), Int("b", 1), Int("b", 1)) },
		"too many": func() { x.Row(Text("a", "one"), Int("b", 1), Float("c", 0.5), Int("d", 1)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			wrong()
		}()
	}
	if len(x.Rows) != 3 {
		t.Errorf("%d rows", len(x.Rows))
	}
}
