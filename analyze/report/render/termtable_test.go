package render

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report/doc"
)

// A cell of text loses whole clauses.
func TestCellsLoseWholeClauses(t *testing.T) {
	cell := row{{text: "prefill 127 ms, decode 36 ms"}, {text: ", mixed 13 ms; sampling 2 ms"}}
	for width, want := range map[int]string{60: "prefill 127 ms, decode 36 ms, mixed 13 ms; sampling 2 ms", 45: "prefill 127 ms, decode 36 ms, mixed 13 ms, …", 35: "prefill 127 ms, decode 36 ms, …", 20: "prefill 127 ms, …", 10: "prefill 1…"} {
		got := ""
		for _, f := range shrink(cell, width) {
			got += f.text
		}
		if got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}

// A table that loses columns names them, and the width that shows them: 40 + 2·22 wide, with two gutters of 2.
func TestTableNamesTheColumnsThatItLeavesOut(t *testing.T) {
	tab := doc.Table{Columns: doc.Cols("Name", ">Base", ">+Interval")}
	tab.Columns[0].Whole = true
	tab.Row(strings.Repeat("n", 40), strings.Repeat("1", 22), strings.Repeat("2", 22))
	var out strings.Builder
	if err := Terminal(&out, doc.Document{tab}, TerminalOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "(left out for lack of width: Interval; COLUMNS=88 shows all)") {
		t.Error(out.String())
	}
}
