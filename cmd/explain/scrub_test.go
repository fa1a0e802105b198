package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

func scrubbed(t *testing.T, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if _, err := analyze.Scrub(context.Background(), path, out, nil, analyze.Options{}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestScrubKeepsEveryNumber: every trace analyses to the same report before and after, but for what says which file it was, and
// that there were tables which no report reads.
func TestScrubKeepsEveryNumber(t *testing.T) {
	for _, trace := range explaintest.Traces(t) {
		t.Run(explaintest.TraceName(trace), func(t *testing.T) {
			t.Parallel()
			var text [2]string
			for i, path := range []string{trace, scrubbed(t, trace)} {
				res, err := analyze.Run(context.Background(), path, analyze.Options{})
				if err != nil {
					t.Fatal(err)
				}
				res.Report.Trace.Name, res.Report.Trace.Bytes = "", 0
				forgetUnread(res.Report)
				var b bytes.Buffer
				if err := report.Write(&b, res.Report); err != nil {
					t.Fatal(err)
				}
				text[i] = b.String()
			}
			if d := cmp.Diff(strings.Split(text[0], "\n"), strings.Split(text[1], "\n")); d != "" {
				t.Errorf("-before +after:\n%.4000s", d)
			}
		})
	}
}

func forgetUnread(r *report.Report) {
	for i := range r.Sections {
		for k := range r.Sections[i].Tables {
			t := &r.Sections[i].Tables[k]
			if t.ID == "tables" {
				t.Rows = slices.DeleteFunc(t.Rows, func(row []report.Cell) bool { return row[1] == report.S("not read") })
				t.TotalRows = int64(len(t.Rows))
			}
		}
	}
}

// TestScrubLeavesSecretsBehind: none of the texts planted in an export is in the bytes of its copy.
func TestScrubLeavesSecretsBehind(t *testing.T) {
	for _, schema := range []string{"3.0.0", "3.16.1", "3.25.0"} {
		b := tracetest.Serving(tracetest.Schema(schema))
		planted := b.Canaries(func(table, column string) string { return fmt.Sprintf("SECRET-%s-%s-hunter2", table, column) })
		out := read(t, scrubbed(t, b.WriteTB(t)))
		if len(planted) < 5 {
			t.Fatalf("%d secrets", len(planted))
		}
		for _, c := range planted {
			if bytes.Contains(out, []byte(c.Text)) {
				t.Errorf("schema %s: %s.%s comes through", schema, c.Table, c.Column)
			}
		}
	}
}
