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

// A row takes the statistics that its table has columns for, whole ones where the column counts; without a summary they
// are unknown.
func TestStats(t *testing.T) {
	x := &Table{Table: report.Table{ID: "t", Columns: []report.Column{TextCol("a", "A"), MeanCol("mean", "Mean"), NsCol("max", "Max"),
		MeanCol("p50", "p50")}}}
	s := &report.Summary{N: 3, Min: 1, P50: 2, P90: 4, Max: 5, Mean: 2.5}
	x.Row(append(x.Stats(s), Text("a", "one"))...)
	x.Row(append(x.Stats(nil), Text("a", "two"))...)
	want := [][]report.Cell{
		{report.S("one"), report.F(2.5), report.I(5), report.F(2)}, {report.S("two"), report.Null, report.Null, report.Null},
	}
	for i, w := range want {
		if got := x.Rows[i]; !slices.EqualFunc(got, w, report.Cell.Equal) {
			t.Errorf("row %d is %v, want %v", i, got, w)
		}
	}
}

// The row of others adds up what is known: whole numbers stay whole, and a column that no row knows is unknown.
func TestOthers(t *testing.T) {
	x := &Table{Table: report.Table{ID: "t", Columns: []report.Column{CountCol("a", "A"), FloatCol("b", "B", report.Count), CountCol("c", "C"),
		FloatCol("d", "D", report.Count)}}}
	for i := range int64(3) {
		x.Partial(Int("a", i), Float("b", 0.5), Int("d", 1))
	}
	x.Partial(Float("d", 0.25))
	x.Cut(1, "a", "b", "c", "d")
	want := []report.Cell{report.I(3), report.F(1), report.Null, report.F(2.25)}
	if got := x.Rows[1]; !slices.EqualFunc(got, want, report.Cell.Equal) {
		t.Errorf("others are %v, want %v", got, want)
	}
}

// A tally keeps its keys in order of first appearance, and one value for each.
func TestTally(t *testing.T) {
	x := NewTally[string, int]()
	for _, k := range []string{"b", "a", "b", "b", "a"} {
		*x.At(k)++
	}
	if !slices.Equal(x.Keys, []string{"b", "a"}) || *x.Values[0] != 3 || *x.Values[1] != 2 {
		t.Errorf("%v: %d, %d", x.Keys, *x.Values[0], *x.Values[1])
	}
}

// A budget has room for so many names, and for so many bytes of them.
func TestBudget(t *testing.T) {
	names := Budget{Names: 2, Bytes: 100}
	bytes := Budget{Names: 100, Bytes: 5}
	for i, want := range []struct{ names, bytes bool }{{true, true}, {true, false}, {false, false}} {
		if got := names.Take("abc"); got != want.names {
			t.Errorf("name %d: %t", i, got)
		}
		if got := bytes.Take("abc"); got != want.bytes {
			t.Errorf("bytes of %d: %t", i, got)
		}
	}
}
