package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
)

// said is what explain prints, and its exit code.
func said(args ...string) (out string, code int) {
	var b, errs bytes.Buffer
	code = run(context.Background(), args, &env{In: strings.NewReader(""), Out: &b, Err: &errs,
		Getenv: func(string) string { return "" }})
	return b.String() + errs.String(), code
}

// A report is shown again as it was made, by its file and by its folder, in every format, and refuses to be analysed;
// so is a comparison. Of a capture's folder without a report the trace is analysed with what lies beside it.
func TestWhatExplainMadeIsShownAgain(t *testing.T) {
	t.Parallel()
	const trace = "../../testdata/serving.sqlite"
	dir := t.TempDir()
	made := filepath.Join(dir, "made")
	first, code := said(trace, "--out", made)
	if code != exitOK {
		t.Fatal(first)
	}
	first, _, _ = strings.Cut(first, "\nWrote")
	for _, path := range []string{made, filepath.Join(made, "report.json")} {
		again, code := said(path)
		if code != exitOK || strings.TrimSpace(again) != strings.TrimSpace(first) {
			t.Errorf("%s: exit %d, not what was printed first:\n%s", path, code, again)
		}
	}
	for format, file := range map[string]string{"html": "report.html", "json": "report.json"} {
		want, err := os.ReadFile(filepath.Join(made, file))
		if err != nil {
			t.Fatal(err)
		}
		if again, code := said(filepath.Join(made, "report.json"), "--format", format); code != exitOK || again != string(want) {
			t.Errorf("--format %s of report.json: exit %d and not the bytes of %s", format, code, file)
		}
	}
	if text, code := said(made, "--steady"); code != exitUsage || !strings.Contains(text, "name the trace") {
		t.Errorf("--steady of a report: exit %d: %s", code, text)
	}

	compared := filepath.Join(dir, "compared")
	printed, _ := said("diff", "../../testdata/serving.sqlite", "../../testdata/serving_graph.sqlite", "--out", compared)
	printed, _, _ = strings.Cut(printed, "\nWrote")
	for _, path := range []string{compared, filepath.Join(compared, "comparison.json")} {
		if again, code := said(path); code != exitOK || strings.TrimSpace(again) != strings.TrimSpace(printed) {
			t.Errorf("%s: exit %d, not what diff printed:\n%s", path, code, again)
		}
	}

	capture := filepath.Join(dir, "capture")
	if err := os.CopyFS(capture, os.DirFS(made)); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{input.CapturedTrace: trace, "server.log": "../../testdata/evidence/vllm.log"} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(capture, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, code := said(capture, "--steady", "--format", "json") // an analysis: not the report that lies there
	if code != exitOK {
		t.Fatal(text)
	}
	r, err := report.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if r.Window.Mode != "steady" || len(r.Evidence) != 1 || r.Evidence[0].Name != "server.log" {
		t.Errorf("window %s, evidence %+v: want the trace by --steady with the log, and nothing that explain wrote", r.Window.Mode, r.Evidence)
	}
}
