package diff_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// subject is a capture that mutants are made of, with its reports.
type subject struct {
	name    string
	capture *mutant.Capture
	base    []*report.Report // four captures of it: as it is, and with noise
	pair    [2]string        // kernels that follow each other in each step
}

// newSubject analyses a capture as the mutator writes it.
func newSubject(tb testing.TB, name string, c *mutant.Capture) *subject {
	tb.Helper()
	s := &subject{name: name, capture: c, base: []*report.Report{mutantReport(tb, c, nil)}, pair: c.Pair()}
	for i := range uint64(3) {
		s.base = append(s.base, mutantReport(tb, c, []mutant.Edit{mutant.Noise(0.01, 1+i)}))
	}
	return s
}

// side is one capture, as it is, or three with noise.
func (s *subject) side(captures int) []*report.Report {
	if captures == 1 {
		return s.base[:1]
	}
	return s.base[1:4]
}

// mutantReport analyses a mutant.
func mutantReport(tb testing.TB, c *mutant.Capture, edits []mutant.Edit) *report.Report {
	tb.Helper()
	m, err := c.Mutate(edits...)
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp(tb.TempDir(), "")
	if err != nil {
		tb.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path, err := m.WriteTo(dir)
	if err != nil {
		tb.Fatal(err)
	}
	result, err := analyze.Run(context.Background(), path, analyze.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return result.Report
}

// mutantHeads are captures of the changed program, with noise of their own.
func mutantHeads(tb testing.TB, s *subject, captures int, seed uint64, edits ...mutant.Edit) []*report.Report {
	var list []*report.Report
	for i := range captures {
		list = append(list, mutantReport(tb, s.capture, append(slices.Clone(edits), mutant.Noise(0.01, seed+uint64(i)))))
	}
	return list
}

func compareSides(tb testing.TB, base, head []*report.Report) *comparison.Comparison {
	tb.Helper()
	c, err := diff.Compare(base, head, diff.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	for _, r := range c.Primary {
		_, device := r.Labels["device"]
		judged := slices.ContainsFunc(c.Gates, func(g comparison.Gate) bool {
			return g.Metric == r.Metric && g.Labels.String() == r.Labels.String() && g.Verdict == comparison.Pass
		})
		if c.Verdict == comparison.Pass && r.Class == comparison.Regressed && strings.Contains(r.Metric, ".time") && !device && !judged {
			tb.Errorf("pass over %s{%s} %+.1f %%", r.Metric, r.Labels, 100*(*r.Ratio-1))
		}
	}
	return c
}

// syntheticSubjects are those of the mutator, whose units are known.
func syntheticSubjects(tb testing.TB) []*subject {
	tb.Helper()
	var list []*subject
	for _, r := range mutant.Recipes() {
		c, err := r.Capture(tb.TempDir(), 1)
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, newSubject(tb, r.Name, c))
	}
	return list
}

// steadyCaptures are real captures of 9 to 46 equal steps.
var steadyCaptures = []string{"cs336_hoponga_exp2024_2", "nsysai_h100_2gpu_1s", "nsysai_mfu_2gpu_before", "cs336zx_2_7B_clean"}

// realSubjects are those of the captures that are there. Their units are found by the mutator's own rule.
func realSubjects(tb testing.TB, names ...string) []*subject {
	tb.Helper()
	var list []*subject
	for _, name := range names {
		if c := realCapture(tb, name); c != nil {
			list = append(list, newSubject(tb, name, c))
		}
	}
	return list
}

// realCapture is nil where the capture is not there.
func realCapture(tb testing.TB, name string) *mutant.Capture {
	tb.Helper()
	path := filepath.Join("..", "..", "shared", "traces", name+".sqlite")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	c, err := mutant.Read(path)
	if err == nil {
		err = c.FindUnits()
	}
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return c
}

// biggest are the short names of the kernels with most time in a capture, collectives aside.
func biggest(r *report.Report) []string {
	var list []string
	for i := range r.Sections {
		for j := range r.Sections[i].Tables {
			t := &r.Sections[i].Tables[j]
			if t.ID != "unit_kernels" {
				continue
			}
			at := func(id string) int {
				return slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.ID == id })
			}
			for _, row := range t.Rows {
				name, _ := row[at("kernel_name")].Str()
				category, _ := row[at("category")].Str()
				short := mutant.Short(name)
				if name != "" && category != "comm" && category != "graph" && !slices.Contains(list, short) {
					list = append(list, short)
				}
			}
		}
	}
	return list
}
