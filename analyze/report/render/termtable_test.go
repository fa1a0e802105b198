package render

import "testing"

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
