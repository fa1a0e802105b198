package doc_test

import (
	"reflect"
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
		Columns: []doc.Column{{Title: "Kernel"}, {Title: "Time", Align: doc.Right}, {Title: "Runs", Align: doc.Right, Wide: true},
			{Title: "Note", Wide: true}, {Title: " 5 %", Align: doc.Right}, {}},
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
