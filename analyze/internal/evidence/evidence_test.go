package evidence_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/compat"
	"github.com/nsys-llm/explain/analyze/internal/evidence"
	"github.com/nsys-llm/explain/analyze/report/schema"
)

// A kind of evidence is declared once, with its reader; the published schema and the page follow.
func TestEveryKindIsInSchemaAndPage(t *testing.T) {
	type kinds struct {
		Properties struct {
			Kind struct{ Enum []string }
		}
	}
	var root struct {
		Properties struct {
			Trace    kinds
			Evidence struct{ Items kinds }
		}
	}
	text, _ := schema.Text("report")
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	trace, files := root.Properties.Trace.Properties.Kind.Enum, root.Properties.Evidence.Items.Properties.Kind.Enum
	var want []string
	for _, r := range evidence.Readers(compat.Readers) {
		want = append(want, string(r.Kind))
		if !strings.Contains(evidence.Page(), "`"+string(r.Kind)+"`") {
			t.Errorf("evidence.md does not name %s, %s", r.Kind, r.Title)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(files)); !slices.Equal(got, want) {
		t.Errorf("kinds of evidence %v in the schema, %v have a reader", got, want)
	}
	of := append([]string{"nsys-sqlite", "nsys-rep", "pytorch-profiler"}, want...)
	if got := slices.Sorted(slices.Values(trace)); !slices.Equal(got, slices.Sorted(slices.Values(of))) {
		t.Errorf("kinds of a report's first file %v in the schema, want %v", got, of)
	}
}
