package analyze_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden compares each section of the serving trace, with the evidence of testdata/evidence, with
// testdata/ID/serving.golden of its family: its status, findings, warnings, metrics and tables. Read a change before you
// accept it.
func TestGolden(t *testing.T) {
	testdata := filepath.FromSlash("../testdata/")
	opt := analyze.Options{GPUPrice: 2.5}
	if files, err := os.ReadDir(testdata + "evidence"); err == nil && len(files) > 0 {
		opt.Evidence = []analyze.Evidence{{Path: testdata + "evidence"}}
	}
	res, err := analyze.Run(context.Background(), testdata+"serving.sqlite", opt)
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string][]string{}
	for _, m := range analyze.Metrics() {
		owner[m.ID] = m.Sections
	}
	for i := range res.Report.Sections {
		s := &res.Report.Sections[i]
		t.Run(s.ID, func(t *testing.T) {
			got := golden(t, res.Report, s, owner)
			pages, err := filepath.Glob(filepath.FromSlash("internal/section/*/" + s.ID + ".md"))
			if err != nil {
				t.Fatal(err)
			}
			path := "compat"
			if len(pages) > 0 {
				path = filepath.Dir(pages[0])
			}
			path = filepath.Join(path, "testdata", s.ID, "serving.golden")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); d != "" {
				t.Errorf("%s (-golden +got; -update writes it anew):\n%s", path, d)
			}
		})
	}
}

func golden(t *testing.T, r *report.Report, s *report.Section, owner map[string][]string) []byte {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s %s\n", s.ID, s.Status, s.Reason)
	for _, w := range r.Warnings {
		if w.Section == s.ID {
			fmt.Fprintf(&b, "warning %s: %s\n", w.Code, w.Text)
		}
	}
	for _, f := range r.Findings {
		if f.Doc == s.ID {
			fmt.Fprintf(&b, "finding %s (%s): %s\n", f.ID, f.Severity, f.Title)
			for _, e := range f.Evidence {
				fmt.Fprintf(&b, "  %s{%s}\n", e.ID, e.Labels)
			}
		}
	}
	for _, m := range r.Remarks {
		if m.Doc == s.ID {
			fmt.Fprintf(&b, "remark %s: %s\n", m.ID, m.Title)
		}
	}
	b.WriteByte('\n')
	for i := range r.Metrics {
		m := &r.Metrics[i]
		if owner[m.ID][0] != s.ID {
			continue // shared by several sections: with the first of them
		}
		v, err := json.Marshal(m.Value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s{%s} = %s %s\n", m.ID, m.Labels, v, m.Unit)
	}
	for i := range s.Tables {
		fmt.Fprintf(&b, "\n%s (%d rows)\n", s.Tables[i].ID, s.Tables[i].TotalRows)
		if err := render.CSV(&b, &s.Tables[i]); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}
