package doc_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report/doc"
)

// TestPartsMakeCells: a string is own words, spans and cells are themselves, nil is blank; marks before a title say what its
// column is.
func TestPartsMakeCells(t *testing.T) {
	var table doc.Table
	table.Columns = doc.Cols("Kernel", ">Time", ">+Runs", "+Note", "> 5 %", "")
	table.Row("own", doc.Name("a"), doc.Cell{doc.Code("b")}, nil, doc.Spans("x ", []doc.Span{doc.Name("y")}), "")
	table.Last("others")
	want := doc.Table{
		Columns: []doc.Column{{Title: "Kernel"}, {Title: "Time", Right: true}, {Title: "Runs", Right: true, Wide: true},
			{Title: "Note", Wide: true}, {Title: " 5 %", Right: true}, {}},
		Rows: [][]doc.Cell{{{doc.Text("own")}, {doc.Name("a")}, {doc.Code("b")}, nil, {doc.Text("x "), doc.Name("y")}, {doc.Text("")}}},
		Foot: [][]doc.Cell{{{doc.Text("others")}}},
	}
	if !reflect.DeepEqual(table, want) {
		t.Errorf("got  %+v\nwant %+v", table, want)
	}
	var list doc.List
	list.Add("a ", doc.Name("b"))
	var fields doc.Fields
	fields.Add("label", "value")
	if want := (doc.List{Items: []doc.Item{{Spans: []doc.Span{doc.Text("a "), doc.Name("b")}}}}); !reflect.DeepEqual(list, want) {
		t.Errorf("list %+v", list)
	}
	if want := (doc.Fields{Items: []doc.Field{{Label: "label", Value: []doc.Span{doc.Text("value")}}}}); !reflect.DeepEqual(fields, want) {
		t.Errorf("fields %+v", fields)
	}
	defer func() {
		if recover() == nil {
			t.Error("a number is taken for a text")
		}
	}()
	doc.Spans(1)
}

// TestEmptyBlocksAreLeftOut: a document, a part and a fold hold only what shows something.
func TestEmptyBlocksAreLeftOut(t *testing.T) {
	text := doc.P("text")
	empty := []doc.Block{doc.P(), doc.P(""), doc.Answer{}, doc.List{}, doc.Fields{}, doc.Table{Columns: doc.Cols("A")}, doc.Details{}, doc.Table{Foot: [][]doc.Cell{{}}},
		doc.Note{}, doc.Command{}, doc.Chart{Series: []doc.Series{{Name: "a"}}}, doc.Timeline{}, doc.Fold("id", "summary", doc.List{})}
	var d doc.Document
	d.Add(append(slices.Clone(empty), text)...)
	if !reflect.DeepEqual(d, doc.Document{text}) {
		t.Errorf("the document has %+v", d)
	}
	h := doc.H(2, "id", "title").In("group")
	if got := doc.Part(h, empty...); got != nil {
		t.Errorf("a heading over nothing: %+v", got)
	}
	if got := doc.Part(h, doc.List{}, text); !reflect.DeepEqual(got, []doc.Block{h, text}) || h.Group != "group" {
		t.Errorf("the part is %+v", got)
	}
	full := []doc.Block{doc.Table{Columns: doc.Cols("A"), Foot: [][]doc.Cell{{}}}, doc.Chart{Series: []doc.Series{{Values: []float64{1}}}}, h, doc.Command{Text: "a"}}
	if got := doc.Some(full...); len(got) != len(full) {
		t.Errorf("%d of %d blocks are left", len(got), len(full))
	}
	if got := doc.Names([]string{"a", "b"}); !reflect.DeepEqual(got, []doc.Span{doc.Name("a"), doc.Text(", "), doc.Name("b")}) {
		t.Errorf("names %+v", got)
	}
}
