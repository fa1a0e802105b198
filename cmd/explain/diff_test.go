package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/diff/comparison"
)

// explainDiff runs explain diff and returns what it printed and its exit code.
func explainDiff(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), append([]string{"diff"}, args...), &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	return out.String(), errs.String(), code
}

// TestEveryComparisonKeepsTheContract: any trace against itself and against the next one gives a comparison that the
// published schema and our own reader accept, the same bytes twice, a summary that fits, and an exit code that is the
// verdict's. Each trace is analysed once for all that its report can show; pairs of two are compared as traces too.
func TestEveryComparisonKeepsTheContract(t *testing.T) {
	t.Parallel()
	published := explaintest.Schema(t, "comparison")
	traces := longtest.Some(explaintest.Traces(t), 8)
	folder := t.TempDir()
	reports := map[string]func() (string, error){}
	for _, trace := range traces {
		reports[trace] = sync.OnceValues(func() (string, error) {
			dir := filepath.Join(folder, explaintest.TraceName(trace))
			if said, code := said(trace, "--out", dir, "--quiet"); code != exitOK {
				return "", fmt.Errorf("exit %d: %s", code, said)
			}
			return filepath.Join(dir, "report.json"), nil
		})
	}
	of := func(t *testing.T, trace string) string {
		t.Helper()
		path, err := reports[trace]()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	for i, base := range traces {
		for _, head := range []string{base, traces[(i+1)%len(traces)]} {
			t.Run(explaintest.TraceName(base)+"-"+explaintest.TraceName(head), func(t *testing.T) {
				t.Parallel()
				baseReport, headReport := of(t, base), of(t, head)
				files := []string{base, head}
				if base == head {
					files = []string{baseReport, headReport}
				}
				body, errs, code := explainDiff(t, append(files, "--format", "json")...)
				if errs != "" {
					t.Fatalf("exit %d: %s", code, errs)
				}
				value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if err := published.Validate(value); err != nil {
					t.Errorf("schema: %v", err)
				}
				c, err := comparison.Read(strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if want := map[comparison.Verdict]int{comparison.Pass: 0, comparison.Warn: 0, comparison.Fail: 1, comparison.Inconclusive: 4}[c.Verdict]; code != want {
					t.Errorf("verdict %s with exit code %d", c.Verdict, code)
				}
				if known := slices.ContainsFunc(c.Reasons, func(r comparison.Reason) bool {
					return r.Code == comparison.SameCapture || r.Code == comparison.EmptySide
				}); base == head && (c.Verdict != comparison.Inconclusive || !known) {
					t.Errorf("a trace against itself: %s, %v (%s)", c.Verdict, c.Reasons, c.Cause)
				}
				var again bytes.Buffer
				if err := comparison.Write(&again, c); err != nil || again.String() != body {
					t.Errorf("reading and writing the comparison changes it (%v)", err)
				}
				text, _, _ := explainDiff(t, baseReport, headReport)
				second, _, _ := explainDiff(t, baseReport, headReport)
				if text != second || text == "" {
					t.Error("a second run prints something else")
				}
				for _, line := range strings.Split(text, "\n") {
					if len([]rune(line)) > 100 {
						t.Errorf("a line of %d columns: %s", len([]rune(line)), line)
					}
				}
			})
		}
	}
}

// TestComparisonsKeepSecrets plants secrets in both sides and looks for them in everything that diff writes.
func TestComparisonsKeepSecrets(t *testing.T) {
	t.Parallel()
	b := tracetest.ServingGraphMode()
	planted := b.Canaries(func(table, column string) string { return fmt.Sprintf("SECRET-%s-%s-hunter2", table, column) })
	path := b.WriteTB(t)
	dir := filepath.Join(t.TempDir(), "out")
	text, errs, _ := explainDiff(t, path, "../../testdata/serving.sqlite", "--out", dir, "--verbose")
	all := map[string]string{"stdout": text, "stderr": errs}
	for _, name := range []string{"diff.html", "comparison.json", "comparison.md", "comparison.csv", "junit.xml"} {
		all[name] = string(read(t, filepath.Join(dir, name)))
	}
	for name, content := range all {
		if strings.Contains(content, "hunter2") || name != "stdout" && strings.Contains(content, filepath.Dir(path)) {
			t.Errorf("%s leaks a secret or a path", name)
		}
		for _, c := range planted {
			if strings.Contains(content, c.Text) {
				t.Errorf("%s leaks the text of %s.%s", name, c.Table, c.Column)
			}
		}
	}
}

// TestAnInterruptedDiffLeavesNothing, and has the exit code of a tool error.
func TestAnInterruptedDiffLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	parent := t.TempDir()
	var errs bytes.Buffer
	code := run(ctx, []string{"diff", "../../testdata/tiny.sqlite", "../../testdata/tiny.sqlite", "--out", filepath.Join(parent, "out")}, &env{Out: &errs, Err: &errs, Getenv: os.Getenv})
	left, err := os.ReadDir(parent)
	if code != exitInput || err != nil || len(left) > 0 || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit %d, left %v (%v), said %q", code, left, err, errs.String())
	}
}
